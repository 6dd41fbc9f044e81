"""The terminal report: grade, components, categories with bars, latency, and why the worst questions lost points."""

import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.columns import Columns
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from answerkey.model.run import Run
from answerkey.model.scorecard import grade
from answerkey.model.summary import Latency, Slice
from answerkey.report.story import loss_shares
from answerkey.report.value_wording import (
    GRADE_MEANINGS,
    cost_line,
    count,
    gate_value,
    judge_line,
    list_words,
    metric_range_text,
    metric_text,
    milliseconds,
    money,
    name_words,
    percent,
    points,
    range_text,
    rate_range_text,
    score_percent,
    score_text,
    time_range_text,
)
from answerkey.report.view import QuestionView, ReportView, build_view
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

GRADE_COLOURS = {"A": "green", "B": "green", "C": "yellow", "D": "dark_orange", "F": "red"}
_CATEGORIES_SHOWN = 20
_SLICES_SHOWN = 8
_TOOLS_SHOWN = 12
# Shares of a cell, for bars that are finer than the terminal's grid.
_EIGHTHS = " ▏▎▍▌▋▊▉"


def print_report(run: Run, *, file: TextIO | None = None, width: int | None = None, worst: int = 10) -> None:
    """Print the report of a run; colour only where the output is a terminal."""
    console = make_console(file, width=width)
    emit(console, "", *_parts(build_view(run, worst=worst), console), "")


def make_console(file: TextIO | None = None, *, width: int | None = None) -> Console:
    """A console on a stream (default: standard output), 80 columns wide where the stream is no terminal."""
    stream = file or sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and not _encodes(stream.encoding or "utf-8", "█─✓"):
        # A terminal that cannot show a sign gets a question mark, never a traceback.
        reconfigure(errors="replace")
    if width is None and not stream.isatty():
        width = 80
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def _encodes(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def emit(console: Console, *parts: RenderableType) -> None:
    """Print; a file or a pipe gets no padding at the ends of lines."""
    if console.is_terminal:
        for part in parts:
            console.print(part)
        return
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def _parts(view: ReportView, console: Console) -> Iterator[RenderableType]:
    yield from _headline(view)
    if view.warnings:
        yield _section("Warnings")
        yield _marked([("!", "yellow", warning) for warning in view.warnings])
    if view.gates:
        yield _section("Gates")
        yield _gates(view)
    yield _section("Components")
    yield _components(view, console)
    if view.lost:
        yield _indented(f"of the lost points, {loss_shares(view.lost)}")
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
    yield from _metrics(view)
    yield from _worst(view, console)


def _indented(text: str, style: str = "dim") -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2), expand=False)


def _section(title: str) -> Text:
    return Text.assemble("\n", (title, "bold"))


def _headline(view: ReportView) -> Iterator[RenderableType]:
    info, summary = view.info, view.summary
    facts = [
        # A run without a name has its chatbot's.
        *dict.fromkeys((view.title, one_line(info.target, 40))),
        f"{one_line(info.question_set, 40)} ({count(summary.questions, 'question')})",
    ]
    if info.repeat > 1:
        facts.append(f"{'up to ' if info.is_log else ''}{info.repeat} trials each")
    facts += [one_line(local_time(info.created_at), 30), one_line(info.id, 24)]
    yield Text(" · ".join(facts), style="dim")
    yield Text("")
    letter = summary.grade or "–"
    colour = GRADE_COLOURS.get(letter, "white")
    head = Text("  ")
    head.append(f" {letter} ", style=f"bold reverse {colour}")
    head.append(f"  {score_text(summary.score)}", style=f"bold {colour}")
    if summary.interval is not None:
        head.append(f"   {summary.interval.level:.0%} interval {range_text(summary.interval)}")
    if letter in GRADE_MEANINGS:
        head.append(f"   {GRADE_MEANINGS[letter]}", style=colour)
    yield head
    passes = (
        f"{summary.passed:,} of {count(summary.questions, 'question')} passed "
        f"({percent(summary.pass_rate)}{rate_range_text(summary.pass_interval)})"
    )
    yield Text(f"       {passes}")
    line = Text("       ")
    for grade_letter, number in summary.grades.items():
        line.append(f"{grade_letter} ", style=GRADE_COLOURS[grade_letter] if number else "dim")
        line.append(f"{number:,}  ", style="" if number else "dim")
    yield line
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


def _bar(share: float | None, width: int, console: Console) -> RenderableType:
    plain = not _encodes(console.encoding, "█▏")
    colour = GRADE_COLOURS[grade(share)] if share is not None else "dim"
    drawn = bar(share, width, plain=plain)
    if plain:
        return Text(drawn, style=colour)
    filled = drawn.rstrip(" ")
    line = Text(filled, style=colour)
    # The rest of the track, so that a bar's length can be judged.
    line.append("·" * (width - len(filled)), style="dim")
    return line


def plain_table(*heads: str, right: Sequence[str] = ()) -> Table:
    """A table without lines; the columns that `right` names are aligned there."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        justify: JustifyMethod = "right" if head in right else "left"
        table.add_column(head, no_wrap=True, overflow="ellipsis", justify=justify)
    return table


def _grid(columns: str) -> Table:
    """Indented columns without heads, each `<` or `>` for its alignment; only the first `~` may be cut."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
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
    """Narrow columns of these widths, for signs, before one of text that is folded."""
    table = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    for width in widths:
        table.add_column(width=width)
    table.add_column(overflow="fold")
    return table


def _bar_width(console: Console) -> int:
    return max(10, min(40, console.width - 60))


def _components(view: ReportView, console: Console) -> Table:
    table = _grid("<><><")
    for part in view.components:
        table.add_row(
            "",
            name_words(part.name),
            percent(part.weight, 0),
            _bar(part.score, _bar_width(console), console),
            score_text(part.score),
            Text(range_text(part.interval), "dim"),
        )
    return table


def _slices(parts: Sequence[Slice], most: int, console: Console) -> RenderableType:
    wide = console.width >= 100
    table = _grid("~<<><>>" if wide else "~<<><>")
    name_width = max(12, console.width - _bar_width(console) - (47 if wide else 36))
    for part in parts[:most]:
        cells: list[RenderableType] = [
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


def _latency(view: ReportView, console: Console) -> Iterator[RenderableType]:
    summary = view.summary
    latency = summary.latency_ms
    if latency is None:
        return
    yield _section("Latency")
    table = _grid("~><>>>>>")
    heads = ("mean", "95%", *Latency.FIGURES[1:])
    table.add_row("", "", *(Text(head, "dim") for head in heads))
    width = max(14, console.width - 66)
    tools = list(summary.tool_latency_ms.items())[:_TOOLS_SHOWN]
    for name, taken in [
        ("all replies", latency),
        *((f"  {one_line(tool, width)}", of) for tool, of in tools),
    ]:
        mean, *rest = (milliseconds(getattr(taken, figure)) for figure in Latency.FIGURES)
        table.add_row("", name, mean, Text(time_range_text(taken.mean_interval), "dim"), *rest)
    yield table
    phases = summary.phases_ms
    # Without tools, the rest is the whole.
    parts = (("tools", "in tools"), ("rest", "the rest")) if phases.get("tools") else ()
    named = (("first_byte", "to first byte"), *parts)
    inside = [f"{words} {milliseconds(phases[key])}" for key, words in named if phases.get(key, 0) >= 0.05]
    waits = (("queue", "queue"), ("retry", "retries"))
    outside = [f"{words} {milliseconds(phases[key])}" for key, words in waits if phases.get(key, 0) >= 0.05]
    if len(inside) > 1 or outside:
        said = [f"mean: {', '.join(inside)}"] if inside else []
        said += [f"not counted: {', '.join(outside)}"] if outside else []
        yield _indented("; ".join(said))
    if view.slowest:
        slow = [f"{one_line(entry.id, 24)} {milliseconds(entry.latency_ms)}" for entry in view.slowest[:3]]
        yield _indented(f"slowest: {', '.join(slow)}")


def _metrics(view: ReportView) -> Iterator[RenderableType]:
    parts = [
        f"{name_words(one_line(name, 40))} {metric_text(value)}"
        f"{metric_range_text(view.summary.metric_intervals.get(name))}"
        for name, value in view.summary.metrics.items()
    ]
    usage = view.summary.usage
    for name in ("input_tokens", "output_tokens"):
        if usage.get(name):
            parts.append(f"{name_words(name)} {usage[name]:,.0f}")
    if usage.get("cost"):
        parts.append(f"cost {money(usage['cost'])}")
    if line := cost_line(view.summary.cost):
        parts.append(line)
    if parts:
        yield _section("Beside the score")
        yield Columns([Text(f"  {part}") for part in parts], padding=(0, 2))
    if view.info.judge:
        yield _indented(judge_line(view.info.judge))


def _gates(view: ReportView) -> RenderableType:
    rows = []
    for gate in view.gates:
        sign, colour = ("✓", "green") if gate.passed else ("✗", "bold red")
        value = gate_value(gate.value)
        outcome = f"{'passed' if gate.passed else 'FAILED'} with {value}{gate.because}"
        rows.append((sign, colour, f"{one_line(gate.gate, 100)}   {outcome}"))
    return _marked(rows)


def _marked(rows: Sequence[tuple[str, str, str]]) -> RenderableType:
    table = _signed_grid(1, 1)
    for sign, style, words in rows:
        table.add_row("", Text(sign, style=style), Text(words))
    return table


def _worst(view: ReportView, console: Console) -> Iterator[RenderableType]:
    if not view.worst:
        return
    shown = len(view.worst)
    noun = "replies" if view.worst_are_replies else "questions"
    title = (
        f"Worst {noun} ({shown} of the {view.imperfect:,} that lost points)"
        if view.imperfect > shown
        else f"{noun.capitalize()} that lost points"
    )
    yield _section(title)
    for question in view.worst:
        yield question_lines(question, console)


def question_lines(question: QuestionView, console: Console) -> RenderableType:
    """A question's grade, score and wording, and below why it lost points."""
    table = _signed_grid(1, 1, 5)
    colour = GRADE_COLOURS.get(question.grade or "", "white")
    head = Text()
    head.append(one_line(question.id, 40), style="bold")
    if question.trials > 1:
        head.append(f"  {question.trials_passed}/{question.trials} trials passed", style="dim")
    head.append(f"  {one_line(question.question, max(30, console.width - 14 - len(head)))}")
    table.add_row("", Text(question.grade or "–", style=f"bold {colour}"), score_text(question.score), head)
    for loss in question.losses:
        line = Text(one_line(loss.words, 300))
        if loss.points is not None:
            line.append(f" {points(loss.points)}", style=colour)
        table.add_row("", "", "", line)
    return table
