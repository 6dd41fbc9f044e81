"""Runs on the terminal: the report of a run, one question in full, failures, and the list of runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from answerkey.model.run import GateResult, Latency, Run, RunInfo, Slice, Summary
from answerkey.model.scorecard import Trial, letter_grade
from answerkey.report.detail import Limits, TrialDetail, TurnDetail, link_note, trial_detail
from answerkey.report.layout import (
    Console,
    Group,
    Indented,
    Justify,
    Renderable,
    Table,
    Text,
    encodes,
    make_console,
)
from answerkey.report.view import QuestionView, ReportView, build_view
from answerkey.report.wording import (
    cost_line,
    count,
    critical_line,
    gate_value,
    gate_words,
    grade_words,
    judge_line,
    key_lines,
    list_words,
    metric_range_text,
    metric_text,
    milliseconds,
    name_words,
    passed_texts,
    percent,
    range_text,
    rate_range_text,
    score_percent,
    score_text,
    suspected_lines,
    time_range_text,
    used_text,
)
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.report.sheets import Sheet


GRADE_COLOURS = {"A": "green", "B": "green", "C": "yellow", "D": "dark_orange", "F": "red"}
_CATEGORIES_SHOWN = 20
_SLICES_SHOWN = 8
_TOOLS_SHOWN = 12
_SHEET_ROWS = 12
# Shares of a cell, for bars that are finer than the terminal's grid.
_EIGHTHS = " ▏▎▍▌▋▊▉"


def print_report(run: Run, *, file: TextIO | None = None, width: int | None = None, worst: int = 10) -> None:
    """Print the report of a run; colour only where the output is a terminal."""
    console = make_console(file, width=width)
    emit(console, "", *_parts(build_view(run, worst=worst), console), "")


def emit(console: Console, *parts: Renderable) -> None:
    """Print parts one below the other."""
    for part in parts:
        console.print(part)


def _parts(view: ReportView, console: Console) -> Iterator[Renderable]:
    yield Text(" · ".join(_run_facts(view)), style="dim")
    yield Text("")
    if view.failed_gates:
        # In the log of a failed job, the reason is seen first.
        yield from _critical(view)
        yield from failed_gate_lines(view.failed_gates)
        yield from _causes(view.reasons)
        yield Text("")
    yield from _headline(view)
    if view.causes and not view.reasons:
        yield Text("")
        yield from _causes(view.causes)
    if view.warnings:
        yield _section("Warnings")
        yield _marked([("!", "yellow", warning) for warning in view.warnings])
    if view.gates:
        yield _section("Gates")
        yield _gates(view)
    yield _section("Components")
    yield _components(view, console)
    if len(view.categories) > 1 or (view.categories and view.categories[0].name != "uncategorised"):
        yield _section("Categories, weakest first")
        yield _slices(view.categories, _CATEGORIES_SHOWN, console)
    for kind in ("persona", "tag"):
        if len(view.slices.get(kind, ())) > 1:
            yield _section(f"By {kind}, weakest first")
            yield _slices(view.slices[kind], _SLICES_SHOWN, console)
    yield from _latency(view, console)
    if view.summary.errors:
        yield _section("Errors")
        rate = f"{percent(view.summary.error_rate)} of replies{rate_range_text(view.summary.error_interval)}"
        yield _indented(f"{list_words(view.summary.errors)}  ({rate})", "red")
    if view.summary.suspected_errors:
        yield _section("Suspected errors, not charged")
        yield _indented(count(view.summary.suspected_errors, "reply", "replies"), "yellow")
        for words in suspected_lines(view.summary):
            yield _indented(words)
    yield from _metrics(view)
    yield from _worst(view, console)


def _critical(view: ReportView) -> Iterator[Renderable]:
    if critical := critical_line(view.summary):
        yield Text(f"  CRITICAL  {critical}", style="bold white on red")


def failed_gate_lines(gates: Sequence[GateResult]) -> Iterator[Renderable]:
    for gate in gates:
        words = one_line(gate_words(gate), 200)
        yield Text.assemble("  ", (" FAILED ", "bold white on red"), (f" {words}", "bold red"))


def _causes(lines: Sequence[str]) -> Iterator[Renderable]:
    return (_indented(one_line(line, 300), "bold") for line in lines)


def _indented(text: str, style: str = "dim") -> Renderable:
    return Indented(Text(text, style), 2)


def _section(title: str) -> Text:
    return Text.assemble("\n", (title, "bold"))


def _run_facts(view: ReportView) -> list[str]:
    info = view.info
    facts = [
        # A run without a name has its chatbot's.
        *dict.fromkeys((view.title, one_line(info.target, 40))),
        f"{one_line(info.question_set, 40)} ({count(view.summary.questions, 'question')})",
    ]
    if info.repeat > 1:
        facts.append(f"{'up to ' if info.is_log else ''}{info.repeat} trials each")
    return [*facts, one_line(local_time(info.created_at), 30), one_line(info.id, 24)]


def _headline(view: ReportView) -> Iterator[Renderable]:
    info, summary = view.info, view.summary
    letter = summary.grade or "–"
    colour = GRADE_COLOURS.get(letter, "white")
    head = Text("  ")
    head.append(f" {letter} ", style=f"bold reverse {colour}")
    head.append(f"  {score_text(summary.score)}", style=f"bold {colour}")
    if summary.interval is not None:
        head.append(f"   {summary.interval.level:.0%} interval {range_text(summary.interval)}")
    words = grade_words(summary)
    if not summary.is_weak_key:
        head.append(f"   {words}", style="bold yellow" if words.startswith("but ") else colour)
    yield head
    if summary.is_weak_key:
        # On a line of its own, so that it is not wrapped.
        yield Text(f"       {letter} — {words}", style="bold yellow")
    if not view.failed_gates:
        yield from _critical(view)
    for passed in passed_texts(summary):
        yield Text(f"       {passed}")
    line = Text("       ")
    for grade_letter, number in summary.grades.items():
        line.append(f"{grade_letter} ", style=GRADE_COLOURS[grade_letter] if number else "dim")
        line.append(f"{number:,}  ", style="" if number else "dim")
    yield line
    for key_line in key_lines(summary):
        yield Indented(Text(key_line, style="dim"), 7)
    if summary.coverage < 1 or info.status != "complete":
        missing = "not complete" if info.status != "complete" else "missing scores"
        yield Text(
            f"       coverage {score_percent(summary.coverage)}: this run is {missing}", style="bold yellow"
        )


def bar(share: float | None, width: int, *, plain: bool = False) -> str:
    """A bar of `width` cells; `plain` for terminals without block characters."""
    share = min(1.0, max(0.0, share or 0.0))
    if plain:
        filled = round(share * width)
        return "#" * filled + "." * (width - filled)
    eighths = round(share * width * 8)
    filled, rest = divmod(eighths, 8)
    drawn = "█" * filled + (_EIGHTHS[rest] if rest else "")
    return drawn + " " * (width - len(drawn))


def _bar(share: float | None, width: int, console: Console) -> Renderable:
    plain = not encodes(console.encoding, "█▏")
    colour = GRADE_COLOURS[letter_grade(share)] if share is not None else "dim"
    drawn = bar(share, width, plain=plain)
    if plain:
        return Text(drawn, style=colour)
    filled = drawn.rstrip(" ")
    line = Text(filled, style=colour)
    # The rest of the track, so that lengths can be compared.
    line.append("·" * (width - len(filled)), style="dim")
    return line


def print_sheet(sheet: "Sheet") -> None:
    """Print a sheet; a row of sentences is an entry: two cells on its first line, each further one after its head."""
    console = make_console()
    emit(console, "", Text(sheet.title, style="bold"))
    emit(console, *(Text(f"  {one_line(line, 400)}") for line in sheet.lines))
    emit(console, *(Text(f"! {one_line(line, 400)}", style="yellow") for line in sheet.warnings))
    for table in sheet.tables:
        shown = table.rows[:_SHEET_ROWS]
        emit(console, "", Text(table.title, style="bold"))
        if table.wordy:
            for first, second, *more in shown:
                emit(console, Text.assemble((f"  {first}  ", "bold"), second))
                named = (f"{head}: {cell}" for head, cell in zip(table.heads[2:], more, strict=True) if cell)
                emit(console, *(Indented(Text(line, style="dim"), 6) for line in named))
        else:
            grid = plain_table(f"  {table.heads[0]}", *table.heads[1:])
            for row in shown:
                add_row(grid, f"  {row[0]}", *row[1:])
            # The last cell of a row may be a sentence.
            grid.columns[-1].settings |= {"no_wrap": False, "overflow": "fold"}
            emit(console, grid)
        if len(table.rows) > len(shown):
            rest = len(table.rows) - len(shown)
            emit(console, Text(f"  … and {rest:,} more; --json lists all", style="dim"))
    emit(console, "")


def plain_table(*heads: str, right: Sequence[str] = ()) -> Table:
    """A table without lines, its rows added by `add_row`; `right` names the right-aligned columns."""
    table = Table()
    for column, head in enumerate(heads):
        justify: Justify = "right" if head in right else "left"
        # On a narrow terminal rich narrows the columns that may wrap, and only then the others.
        table.add_column(
            head,
            no_wrap=column > 0,
            overflow="ellipsis",
            justify=justify,
            min_width=10 if column == 0 else None,
        )
    return table


def add_row(table: Table, name: str, *cells: Renderable) -> None:
    """Add a row whose name may be cut on a narrow terminal; its figures never are."""
    table.add_row(Text(name, no_wrap=True, overflow="ellipsis"), *cells)


def _grid(columns: str) -> Table:
    """Indented columns without heads: `<` left-aligned, `>` right-aligned, `~` may be cut."""
    table = Table(has_head=False)
    table.add_column(width=0)
    for sign in columns:
        table.add_column(
            justify="right" if sign == ">" else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if sign == "~" else 1,
        )
    return table


def _signed_grid(*widths: int) -> Table:
    """Narrow columns of these widths, then one of wrapped text."""
    table = Table(gap=1, has_head=False)
    for width in widths:
        table.add_column(width=width)
    table.add_column(overflow="fold")
    return table


def _bar_width(console: Console) -> int:
    return max(10, min(24, console.width - 60))


def _components(view: ReportView, console: Console) -> Table:
    table = _grid("<><><")
    for part in view.components:
        if not part.measured:
            table.add_row("", name_words(part.name), percent(part.weight, 0), Text("not measured", "yellow"))
            continue
        table.add_row(
            "",
            name_words(part.name),
            percent(part.weight, 0),
            _bar(part.score, _bar_width(console), console),
            score_text(part.score),
            Text(range_text(part.interval), "dim"),
        )
    return table


def _slices(parts: Sequence[Slice], most: int, console: Console) -> Renderable:
    wide = console.width >= 100
    table = _grid("~<<><>>" if wide else "~<<><>")
    name_width = max(12, console.width - _bar_width(console) - (47 if wide else 36))
    for part in parts[:most]:
        cells: list[Renderable] = [
            "",
            one_line(part.name, name_width),
            Text(part.grade or "–", f"bold {GRADE_COLOURS.get(part.grade or '', 'dim')}"),
            _bar(part.score, _bar_width(console), console),
            score_text(part.score),
            Text(range_text(part.interval), "dim"),
            f"{part.passed:,}/{part.questions:,}",
        ]
        if wide:
            latency = part.latency_ms
            cells.append(Text("" if latency is None else f"p95 {milliseconds(latency.p95)}", "dim"))
        table.add_row(*cells)
    if len(parts) <= most:
        return table
    return Group(table, Text(f"  … and {len(parts) - most} more", "dim"))


def _latency(view: ReportView, console: Console) -> Iterator[Renderable]:
    summary = view.summary
    if not view.latencies:
        return
    yield _section("Latency")
    # Names of tools are not cut for figures that few need.
    figures = [name for name in Latency.FIGURES[1:] if console.width >= 100 or name not in ("p90", "p99")]
    table = _grid("~><" + ">" * len(figures))
    table.add_row("", "", *(Text(head, "dim") for head in ("mean", "95%", *figures)))
    width = max(14, console.width - 26 - 8 * len(figures))
    for number, (name, taken) in enumerate(view.latencies[: _TOOLS_SHOWN + 1]):
        mean, *rest = (milliseconds(getattr(taken, figure)) for figure in ("mean", *figures))
        shown = f"  {one_line(name, width)}" if number else name
        table.add_row("", shown, mean, Text(time_range_text(taken.mean_interval), "dim"), *rest)
    yield table
    phases = summary.phases_ms
    # Without tools, "the rest" would be everything.
    parts = (("tools", "in tools"), ("rest", "the rest")) if phases.get("tools") else ()
    named = (("first_byte", "to first byte"), *parts)
    inside = [f"{words} {milliseconds(phases[key])}" for key, words in named if phases.get(key, 0) >= 0.05]
    waits = (("queue", "queue"), ("retry", "retries"))
    outside = [f"{words} {milliseconds(phases[key])}" for key, words in waits if phases.get(key, 0) >= 0.05]
    if len(inside) > 1 or outside:
        notes = [f"mean: {', '.join(inside)}"] if inside else []
        notes += [f"not counted: {', '.join(outside)}"] if outside else []
        yield _indented("; ".join(notes))
    if view.slowest:
        slow = [f"{one_line(entry.id, 24)} {milliseconds(entry.latency_ms)}" for entry in view.slowest[:3]]
        yield _indented(f"slowest: {', '.join(slow)}")


def _metrics(view: ReportView) -> Iterator[Renderable]:
    summary, table = view.summary, _grid("~><")
    for name, value in summary.metrics.items():
        interval = metric_range_text(summary.metric_intervals.get(name)).strip()
        table.add_row("", name_words(one_line(name, 40)), metric_text(value), Text(interval, "dim"))
    for name in ("input_tokens", "output_tokens", "cost"):
        if summary.usage.get(name):
            table.add_row("", name_words(name), used_text(summary.usage[name], name))
    if line := cost_line(summary.cost):
        table.add_row("", "cost", "", line)
    if table:
        yield _section("Other metrics")
        yield table
    if view.info.judge:
        yield _indented(judge_line(view.info.judge))


def _gates(view: ReportView) -> Renderable:
    rows = []
    for gate in view.gates:
        sign, colour = ("✓", "green") if gate.passed else ("✗", "bold red")
        value = gate_value(gate.value)
        outcome = f"{'passed' if gate.passed else 'FAILED'}: {value}{gate.because}"
        rows.append((sign, colour, f"{one_line(gate.gate, 100)}   {outcome}"))
    return _marked(rows)


def _marked(rows: Sequence[tuple[str, str, str]]) -> Renderable:
    table = _signed_grid(1, 1)
    for sign, style, words in rows:
        table.add_row("", Text(sign, style=style), Text(words))
    return table


def _worst(view: ReportView, console: Console) -> Iterator[Renderable]:
    if not view.worst:
        return
    shown = len(view.worst)
    noun = "replies" if view.lists_replies else "questions"
    if view.imperfect > shown:
        yield _section(f"Worst {noun} ({shown} of the {view.imperfect:,} that lost points)")
    else:
        yield _section(f"{noun.capitalize()} that lost points")
    for question in view.worst:
        yield question_lines(question, console, with_reply=view.lists_replies)


# Characters of a reply in a list of them.
_REPLY_WIDTH = 160


def question_lines(question: QuestionView, console: Console, *, with_reply: bool = False) -> Renderable:
    """A question's grade, score and wording, and below the reply, where several are listed, and why it lost points."""
    table = _signed_grid(1, 1, 5)
    colour = GRADE_COLOURS.get(question.grade or "", "white")
    head = Text()
    if question.critical:
        head.append("CRITICAL ", style="bold red")
    head.append(one_line(question.id, 40), style="bold")
    if question.trials > 1:
        head.append(f"  {question.trials_passed}/{question.trials} trials passed", style="dim")
    if question.line is not None:
        head.append(f"  line {question.line}", style="dim")
    head.append(f"  {one_line(question.question, max(30, console.width - 14 - len(head)))}")
    table.add_row("", Text(question.grade or "–", style=f"bold {colour}"), score_text(question.score), head)
    if with_reply and question.reply:
        table.add_row("", "", "", Text(f"“{one_line(question.reply, _REPLY_WIDTH)}”", style="dim"))
    for loss in question.losses:
        line = Text(one_line(loss.words, 300))
        if loss.points is not None:
            line.append(f" {loss.cost}", style=colour)
        table.add_row("", "", "", line)
    return table


_MARK_STYLES = {
    "keyword": "bold green",
    "forbidden": "bold red strike",
    "linked": "underline",
    "unlinked": "italic",
}
# Links listed for one reply.
_MOST_LINKS = 30
# One question may be longer than each of the many in a report.
_LIMITS = Limits(reply=50_000, tool_text=5_000, source_text=1_000, calls=100, sources=50, turns=200)


def print_failures(info: RunInfo, failures: Iterable[QuestionView], console: Console) -> None:
    """Print every failed question with its reasons, while they are read."""
    number = 0
    for question in failures:
        number += 1
        emit(console, question_lines(question, console))
    if not number:
        console.print(f"every question passed in {info.id}")
    else:
        console.print(
            f"{number:,} failed; `answerkey show {info.id} --question ID` shows one in full", style="dim"
        )


def print_question(run: Run, console: Console) -> None:
    """Print all trials of a run that has one question."""
    for result in run.results:
        print_trial(result, console)


def print_trial(result: Trial, console: Console, limits: Limits = _LIMITS) -> None:
    """Print one trial: its score and losses, then each turn in full."""
    detail = trial_detail(result, limits)
    emit(console, _head(result.question.id, result.question.category, detail))
    for loss in detail.losses:
        console.print(f"  {loss.words} {loss.cost}".rstrip(), style="red", markup=False)
    for number, turn in enumerate(detail.turns, start=1):
        console.print()
        prefix = f"turn {number}: " if len(detail.turns) > 1 else ""
        for line in _turn(turn, prefix):
            emit(console, Indented(line, 2))
    if detail.turns_cut:
        console.print(f"  … and {detail.turns_cut} more turns", style="dim")
    console.print()


def _head(identity: str, category: str, detail: TrialDetail) -> Text:
    colour = GRADE_COLOURS.get(detail.grade or "", "white")
    origin = f" · {detail.origin}" if detail.origin else ""
    return Text.assemble(
        (f" {detail.grade or '–'} ", f"bold reverse {colour}"),
        (f" {score_text(detail.score)}", f"bold {colour}"),
        (f"  {one_line(identity, 80)}", "bold"),
        (
            f"  {one_line(category, 60)} · trial {detail.trial} · {milliseconds(detail.latency_ms)}{origin}",
            "dim",
        ),
    )


def _turn(turn: TurnDetail, prefix: str) -> Iterator[Text]:
    yield Text.assemble((f"{prefix}question  ", "dim"), (turn.question, ""))
    yield _reply(turn)
    if turn.cut:
        yield Text.assemble((f"… {turn.cut:,} more characters", "dim"))
    if turn.error:
        yield Text.assemble(("error  ", "dim"), (turn.error, "red"))
    if turn.traceback:
        yield Text(turn.traceback, style="dim")
    if turn.found or turn.missing:
        words = Text.assemble(("keywords  ", "dim"))
        for word in turn.found:
            words.append(f"✓ {word}", style="green")
            words.append("  ")
        for word in turn.missing:
            words.append(f"✗ {word}  ", style="red")
        yield words
    yield from _tools(turn)
    for source in turn.sources:
        facts = [word for word, holds in (("relevant", source.relevant), ("cited", source.cited)) if holds]
        yield Text.assemble(("source  ", "dim"), (source.name, ""), (f"  {', '.join(facts)}", "dim"))
    for found in turn.claims:
        counts = f"  {found.supported} supported, {found.unsupported} not supported"
        yield Text.assemble(
            (f"claims {found.who}  ", "dim"),
            (score_text(found.value), "bold"),
            (f"  {found.note}" if found.note else counts, ""),
        )
        if found.reliability:
            yield Text.assemble(("      reliability  ", "dim"), (found.reliability, ""))
        for claim in found.listed:
            yield Text.assemble(("      not supported  ", "dim"), (claim, "red"))
    yield from _links(turn)
    for who, what in turn.remarks:
        yield Text.assemble((f"{who}  ", "dim"), (what, ""))
    for part in turn.components:
        share = "" if part.weight is None else f" × {part.weight:g}"
        yield Text.assemble(
            (f"{name_words(part.name)}  ", "dim"),
            (f"{score_text(part.value)}{share}", "bold"),
            (f"  {part.reason}", ""),
        )
    if turn.reference_answer:
        yield Text.assemble(("reference  ", "dim"), (turn.reference_answer, ""))
    if turn.usage:
        yield Text.assemble(("used  ", "dim"), (turn.usage, ""))


def _links(turn: TurnDetail) -> Iterator[Text]:
    """Where the evidence contains what the reply mentions; each place once."""
    links = turn.links
    if links is None:
        return
    counts = links.note or f"{links.linked} of {len(links.items)} figures, dates, names, ids and quotes"
    new = "" if links.novelty is None else f"; {links.novelty:.0%} of its words are new"
    yield Text.assemble(("links  ", "dim"), (f"{counts}{new}", ""))
    shown = {(item.text, link_note(item)): item for item in links.items if item.where}
    for text, note in list(shown)[:_MOST_LINKS]:
        yield Text.assemble(("      ", ""), (one_line(text, 60), "underline"), (f"  {note}", "dim"))
    if links.unlinked:
        yield Text.assemble(("      not found  ", "dim"), (" · ".join(links.unlinked), "italic"))


def _reply(turn: TurnDetail) -> Text:
    line = Text.assemble(("reply  ", "dim"))
    if turn.reply is None:
        line.append("no reply (null)", style="italic")
        return line
    if not turn.reply:
        line.append("empty reply", style="italic")
    for segment in turn.reply:
        line.append(
            segment.text, style=" ".join(_MARK_STYLES[mark] for mark in segment.marks if mark in _MARK_STYLES)
        )
    return line


def _tools(turn: TurnDetail) -> Iterator[Text]:
    for name in turn.missing_tools:
        yield Text.assemble(("tool  ", "dim"), (f"✗ {name} was not called", "red"))
    if not turn.tools and not turn.tools_observed:
        yield Text.assemble(("tool  ", "dim"), ("calls were not observed", "yellow"))
    for call in turn.tools:
        took = "" if call.duration_ms is None else f"  {milliseconds(call.duration_ms)}"
        yield Text.assemble(
            ("tool  ", "dim"), (call.name, "bold green" if call.expected else "bold"), (took, "dim")
        )
        if call.arguments:
            yield Text.assemble(("      arguments  ", "dim"), (call.arguments, ""))
        if call.result:
            yield Text.assemble(("      result  ", "dim"), (call.result, ""))
        if call.error:
            yield Text.assemble(("      error  ", "dim"), (call.error, "red"))
    if turn.calls_cut:
        yield Text.assemble((f"… and {turn.calls_cut} more calls", "dim"))


_HEADS = ("id", "when", "name", "target", "questions", "score", "grade", "status")
_NAME, _TARGET, _GRADE = _HEADS.index("name"), _HEADS.index("target"), _HEADS.index("grade")


def print_runs(listed: Sequence[tuple[RunInfo, Summary | None]], total: int) -> None:
    """Print a list of runs, and how many more there are."""
    console = make_console()
    if not listed:
        console.print("no runs yet; start one with: answerkey run")
        return
    wide = console.width >= 110
    gap = 2 if wide else 1
    table = Table(gap=gap)
    rows = [_cells(info, summary, wide=wide) for info, summary in listed]
    widths = [max(len(row[column]) for row in (_HEADS, *rows)) for column in range(len(_HEADS))]
    # Only name and target are shortened on a narrow terminal.
    room = console.width - sum(widths) - gap * len(_HEADS) + widths[_NAME] + widths[_TARGET]
    widths[_NAME] = min(widths[_NAME], max(4, room - widths[_TARGET], room // 2))
    widths[_TARGET] = min(widths[_TARGET], max(4, room - widths[_NAME]))
    for head, width in zip(_HEADS, widths, strict=True):
        table.add_column(
            head, no_wrap=True, width=width, justify="right" if head in ("questions", "score") else "left"
        )
    for row in rows:
        cells: list[str | Text] = [one_line(cell, width) for cell, width in zip(row, widths, strict=True)]
        cells[_GRADE] = Text(row[_GRADE], style=f"bold {GRADE_COLOURS.get(row[_GRADE], 'dim')}")
        table.add_row(*cells)
    emit(console, table)
    if total > len(listed):
        console.print(f"… and {total - len(listed):,} older; --limit {total} lists all", style="dim")


def _cells(info: RunInfo, summary: Summary | None, *, wide: bool) -> tuple[str, ...]:
    when = local_time(info.created_at)
    return (
        one_line(info.id, 40),
        one_line(when if wide else when[:10], 30),
        one_line(" ".join([info.name, *(f"[{tag}]" for tag in info.tags)]), 60),
        one_line(" · ".join(part for part in (info.target, info.target_version.words) if part), 100),
        "–" if summary is None else f"{summary.questions:,}",
        _score(summary),
        (summary.grade if summary is not None else None) or "–",
        _status(info, summary),
    )


def _score(summary: Summary | None) -> str:
    if summary is None or summary.score is None:
        return "–"
    if summary.interval is None:
        return score_text(summary.score)
    return f"{score_text(summary.score)} ({range_text(summary.interval)})"


def _status(info: RunInfo, summary: Summary | None) -> str:
    if summary is not None and summary.coverage < 1:
        return f"{info.status} {percent(summary.coverage, 0)}"
    return info.status
