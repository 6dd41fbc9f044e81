"""The result of `why` on the terminal and as a sheet: plain facts, stages, groups, slices, cases."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from answerkey.model.why import (
    Case,
    Causes,
    Group,
    PlainFact,
    Stage,
    StagePoints,
    Why,
    WorseSlice,
    cause_lines,
)
from answerkey.report.sheets import Sheet, SheetTable
from answerkey.report.terminal import emit, make_console, plain_table
from answerkey.report.wording import count, first_names, p_text, points_text, score_text
from answerkey.text.normalise import one_line

_GROUPS_SHOWN = 10
_CASES_SHOWN = 10
_NAMED = 5
_STYLES = {"noise": "dim", "unobserved": "yellow"}
STAGE_WORDS: dict[Stage, str] = {
    "key": "key (expectations were edited)",
    "truth": "truth (expected values changed)",
    "error": "error instead of a reply",
    "tools": "choice of tools",
    "arguments": "arguments of tools",
    "tool_results": "results of tools",
    "text": "text (same results)",
    "judge": "judge (same reply)",
    "noise": "noise (repeats differ as much)",
    "unobserved": "not observed",
}


def print_why(why: Why) -> None:
    """Print where the difference between two runs comes from."""
    console = make_console()
    difference = why.difference
    head = (
        f"{points_text(difference['mean'])} points ({difference['level']:.0%} interval "
        f"{points_text(difference['low'])} to {points_text(difference['high'])}, {p_text(difference['p_value'])})"
    )
    emit(console, "", Text(head, style="bold"))
    _print_facts(why.facts, console)
    if not why.cases:
        emit(console, "", Text("No score changed, so there is nothing to explain."))
    _print_stages(why.stages, console)
    _print_groups(why.groups, why.lost, console)
    _print_slices(why.slices, "got worse", console)
    _print_cases(why.cases, console)
    for note in why.notes:
        emit(console, Text(f"! {one_line(note, 300)}", style="yellow"))
    emit(console, "")


def print_causes(causes: Causes) -> None:
    """Print why one run lost points."""
    console = make_console()
    lost = f"{causes.lost:.1f} points lost in {count(causes.questions, 'question')}"
    emit(console, "", Text(lost, style="bold"))
    _print_groups(causes.groups, causes.lost, console)
    _print_slices(causes.slices, "score lower", console)
    emit(console, "")


def _print_facts(facts: Iterable[PlainFact], console: Console) -> None:
    """What differs; what is the same in one line."""
    for fact in facts:
        if fact.differs:
            words = f"  {fact.name}: {one_line(fact.base, 80)} → {one_line(fact.candidate, 80)}"
            emit(console, Text(words, style="cyan"))
    same = [fact.name for fact in facts if not fact.differs and fact.base != "unknown"]
    unknown = [fact.name for fact in facts if not fact.differs and fact.base == "unknown"]
    for names, words in ((same, "the same"), (unknown, "not reported")):
        if names:
            emit(console, Text(f"  {words}: {', '.join(names)}", style="dim"))


def _print_stages(stages: Sequence[StagePoints], console: Console) -> None:
    if not stages:
        return
    table = plain_table("Stage", "questions", "points", "95% interval")
    for row in _stage_rows(stages):
        table.add_row(*row)
    emit(console, "", table)


def _stage_rows(stages: Iterable[StagePoints]) -> Iterator[tuple[str, str, str, str]]:
    for one in stages:
        interval = f"{one.low:+.1f} to {one.high:+.1f}"
        yield STAGE_WORDS[one.stage], f"{one.questions:,}", f"{one.points:+.1f}", interval


def _print_groups(groups: Sequence[Group], lost: float, console: Console) -> None:
    for title, gained in (("Causes of lost points", False), ("Causes of gained points", True)):
        chosen = [group for group in groups if (group.points > 0) == gained]
        if not chosen:
            continue
        emit(console, "", Text(title, style="bold"))
        for group in chosen[:_GROUPS_SHOWN]:
            points = f"{group.points:+.1f}" if gained else f"{-group.points:.1f} of {lost:.1f}"
            in_base = (
                " in the base" if gained and group.signature.stage not in ("noise", "unobserved") else ""
            )
            line = Text.assemble(
                (f"  {points}  ", "green" if gained else "red"),
                (f"{one_line(group.words, 200)}{in_base}", _STYLES.get(group.signature.stage, "")),
            )
            emit(console, line)
            names = first_names([one_line(identity, 60) for identity in group.ids], _NAMED)
            emit(console, Text(f"      {count(len(group.ids), 'question')}: {names}", style="dim"))
        if len(chosen) > _GROUPS_SHOWN:
            emit(
                console, Text(f"  … and {len(chosen) - _GROUPS_SHOWN:,} more; --json lists all", style="dim")
            )


def _print_slices(slices: Sequence[WorseSlice], verb: str, console: Console) -> None:
    if slices:
        emit(console, "", Text(f"Questions that {verb} more than the rest", style="bold"))
    for one in slices:
        emit(console, Text(f"  {slice_words(one)}"))


def slice_words(one: WorseSlice) -> str:
    """A slice in words: `category payouts and tool query_database: 30 questions, −20.1 points (p = 0.001)`."""
    where = " and ".join(f"{field} {one_line(value, 60)}" for field, value in one.where.items())
    return (
        f"{where}: {count(one.questions, 'question')}, {points_text(one.difference)} points against the rest "
        f"({p_text(one.p_value)}, corrected)"
    )


def _print_cases(cases: Sequence[Case], console: Console) -> None:
    if not cases:
        return
    emit(console, "", Text("Questions whose score changed", style="bold"))
    for case in cases[:_CASES_SHOWN]:
        scores = f"{score_text(case.base.score)} → {score_text(case.candidate.score)}"
        line = Text.assemble(
            (f"  {scores}  ", "red" if case.difference < 0 else "green"),
            (f"{one_line(case.id, 60)}  ", "bold"),
            (f"{case.stage}: {one_line(case.because, 200)}", _STYLES.get(case.stage, "")),
        )
        emit(console, line)
    if len(cases) > _CASES_SHOWN:
        emit(console, Text(f"  … and {len(cases) - _CASES_SHOWN:,} more; --json lists all", style="dim"))


def why_sheet(why: Why) -> Sheet:
    """The result as a page."""
    difference = why.difference
    tables = [
        SheetTable(
            "What differs",
            ("", "base", "candidate"),
            tuple(
                (fact.name, fact.base, fact.candidate)
                for fact in why.facts
                if fact.base != "unknown" or fact.differs
            ),
            wordy=True,
        ),
        SheetTable(
            "Stages", ("stage", "questions", "points", "95% interval"), tuple(_stage_rows(why.stages))
        ),
        SheetTable(
            "Causes",
            ("cause", "points", "questions", "example"),
            tuple(
                (
                    group.words,
                    f"{group.points:+.1f}",
                    f"{len(group.ids):,}",
                    f"{group.example}: {group.because}",
                )
                for group in why.groups
            ),
            wordy=True,
        ),
        SheetTable(
            "Questions whose score changed",
            ("question", "score", "stage", "because"),
            tuple(
                (
                    case.id,
                    f"{score_text(case.base.score)} → {score_text(case.candidate.score)}",
                    case.stage,
                    case.because,
                )
                for case in why.cases
            ),
            wordy=True,
        ),
    ]
    title = (
        f"{points_text(difference['mean'])} points ({points_text(difference['low'])} to "
        f"{points_text(difference['high'])})"
    )
    lines = (*cause_lines(why.losses, why.lost), *(slice_words(one) for one in why.slices))
    return Sheet(title, lines, why.notes, tuple(table for table in tables if table.rows))
