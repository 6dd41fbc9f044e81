"""One question in full, lists of failures, and runs, on the terminal."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from answerkey.model.run import Run, RunInfo
from answerkey.model.summary import Summary
from answerkey.model.trial import Trial
from answerkey.report.claims_detail import link_note
from answerkey.report.detail import Limits, TrialDetail, TurnDetail, trial_detail
from answerkey.report.terminal import GRADE_COLOURS, emit, make_console, question_lines
from answerkey.report.value_wording import milliseconds, name_words, percent, points, score_text
from answerkey.report.view import QuestionView
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

_MARK_STYLES = {
    "keyword": "bold green",
    "forbidden": "bold red strike",
    "linked": "underline",
    "unlinked": "italic",
}
# Links that are listed of one reply.
_MOST_LINKS = 30
# One question may be shown longer than the many of a report.
_LIMITS = Limits(reply=50_000, tool_text=5_000, source_text=1_000, calls=100, sources=50, turns=200)


def print_failures(info: RunInfo, failures: Iterable[QuestionView], console: Console) -> None:
    """Print every failed question with its reasons, as they are read."""
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
    """Print all trials of the run's (one) question."""
    for result in run.results:
        print_trial(result, console)


def print_trial(result: Trial, console: Console, limits: Limits = _LIMITS) -> None:
    """Print one trial: its score and why, then what was said and done turn by turn."""
    detail = trial_detail(result, limits)
    emit(console, _head(result.question.id, result.question.category, detail))
    for loss in detail.losses:
        console.print(f"  {loss.words} {points(loss.points)}".rstrip(), style="red", markup=False)
    for number, turn in enumerate(detail.turns, start=1):
        console.print()
        prefix = f"turn {number}: " if len(detail.turns) > 1 else ""
        for line in _turn(turn, prefix):
            emit(console, Padding(line, (0, 0, 0, 2), expand=False))
    if detail.turns_cut:
        console.print(f"  … and {detail.turns_cut} more turns", style="dim")
    console.print()


def _head(identity: str, category: str, detail: TrialDetail) -> Text:
    colour = GRADE_COLOURS.get(detail.grade or "", "white")
    return Text.assemble(
        (f" {detail.grade or '–'} ", f"bold reverse {colour}"),
        (f" {score_text(detail.score)}", f"bold {colour}"),
        (f"  {one_line(identity, 80)}", "bold"),
        (f"  {one_line(category, 60)} · trial {detail.trial} · {milliseconds(detail.latency_ms)}", "dim"),
    )


def _turn(turn: TurnDetail, prefix: str) -> Iterator[Text]:
    yield Text.assemble((f"{prefix}question  ", "dim"), (turn.question, ""))
    yield _reply(turn)
    if turn.cut:
        yield Text.assemble((f"… {turn.cut:,} more characters", "dim"))
    if turn.error:
        yield Text.assemble(("error  ", "dim"), (turn.error, "red"))
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
    """Where what the reply mentions stands; each place once."""
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
        yield Text.assemble(("      found nowhere  ", "dim"), (" · ".join(links.unlinked), "italic"))


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
    """Print runs, with what is left out said."""
    console = make_console()
    if not listed:
        console.print("no runs yet; `answerkey run` makes one")
        return
    wide = console.width >= 110
    gap = 2 if wide else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    rows = [_cells(info, summary, wide=wide) for info, summary in listed]
    widths = [max(len(row[column]) for row in (_HEADS, *rows)) for column in range(len(_HEADS))]
    # Only the name and the target give way where the terminal is narrow.
    room = console.width - sum(widths) - gap * len(_HEADS) + widths[_NAME] + widths[_TARGET]
    widths[_NAME] = min(widths[_NAME], max(6, room - widths[_TARGET], room // 2))
    widths[_TARGET] = min(widths[_TARGET], max(6, room - widths[_NAME]))
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
    # An interval need not be even on both sides: half its width says how sure the score is.
    return f"{score_text(summary.score)} ± {(summary.interval.high - summary.interval.low) / 2:.3f}"


def _status(info: RunInfo, summary: Summary | None) -> str:
    if summary is not None and summary.coverage < 1:
        return f"{info.status} {percent(summary.coverage, 0)}"
    return info.status
