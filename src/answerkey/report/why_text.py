"""The results of `why` and `draft` as sheets, which the terminal, HTML and Markdown show."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from answerkey.model.comparison import (
    Case,
    Causes,
    Group,
    PlainFact,
    Stage,
    StagePoints,
    Why,
    WorseSlice,
)
from answerkey.model.question import QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.report.sheets import Sheet, SheetTable
from answerkey.report.wording import ScoreWords, count, first_names, p_text, percent, points_text, score_text
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.runs.draft import Drafts

_NAMED = 5
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


def why_sheet(why: Why, score: ScoreWords = score_text) -> Sheet:
    """Where the difference between two runs comes from."""
    difference = why.difference
    title = (
        f"{points_text(difference['mean'])} points ({difference['level']:.0%} interval "
        f"{points_text(difference['low'])} to {points_text(difference['high'])}, {p_text(difference['p_value'])})"
    )
    lines = list(_fact_lines(why.facts))
    if not why.cases:
        lines.append("No score changed, so there is nothing to explain.")
    tables = (
        *_group_tables(why.groups, why.lost),
        SheetTable(
            "Stages", ("stage", "questions", "points", "95% interval"), tuple(_stage_rows(why.stages))
        ),
        _slice_table(why.slices, "got worse"),
        SheetTable(
            "Questions whose score changed",
            ("score", "question", "because"),
            tuple(_case_row(case, score) for case in why.cases),
            wordy=True,
        ),
    )
    return Sheet(
        title, tuple(lines), why.notes, tuple(table for table in tables if table.rows), subject="Why"
    )


def causes_sheet(causes: Causes, _score: ScoreWords = score_text) -> Sheet:
    """Why one run lost points. It has points, no scores."""
    tables = (*_group_tables(causes.groups, causes.lost), _slice_table(causes.slices, "score lower"))
    lost = "No points were lost"
    if causes.questions:
        lost = f"{causes.lost:.1f} points lost in {count(causes.questions, 'question')}"
    return Sheet(lost, (), (), tuple(table for table in tables if table.rows), subject="Why")


def _fact_lines(facts: Sequence[PlainFact]) -> Iterator[str]:
    """What differs; what is the same in one line."""
    for fact in facts:
        if fact.differs:
            yield f"{fact.name}: {one_line(fact.base, 80)} → {one_line(fact.candidate, 80)}"
    same = [fact.name for fact in facts if not fact.differs and fact.base != "unknown"]
    unknown = [fact.name for fact in facts if not fact.differs and fact.base == "unknown"]
    for names, words in ((same, "the same"), (unknown, "not reported")):
        if names:
            yield f"{words}: {', '.join(names)}"


def _stage_rows(stages: Iterable[StagePoints]) -> Iterator[tuple[str, ...]]:
    for one in stages:
        interval = f"{one.low:+.1f} to {one.high:+.1f}"
        yield STAGE_WORDS[one.stage], f"{one.questions:,}", f"{one.points:+.1f}", interval


def _group_tables(groups: Sequence[Group], lost: float) -> Iterator[SheetTable]:
    for title, gained in (("Causes of lost points", False), ("Causes of gained points", True)):
        chosen = [group for group in groups if (group.points > 0) == gained]
        rows = []
        for group in chosen:
            points = f"{group.points:+.1f}" if gained else f"{-group.points:.1f} of {lost:.1f}"
            in_base = (
                "in the base, " if gained and group.signature.stage not in ("noise", "unobserved") else ""
            )
            names = first_names([one_line(identity, 60) for identity in group.ids], _NAMED)
            questions = f"{len(group.ids):,} ({names})"
            says_more = group.because != group.signature.words_about("")
            example = f"{one_line(group.example, 60)}: {group.because}" if says_more else ""
            rows.append((points, f"{in_base}{one_line(group.words, 200)}", questions, one_line(example, 200)))
        yield SheetTable(title, ("points", "cause", "questions", "example"), tuple(rows), wordy=True)


def _slice_table(slices: Sequence[WorseSlice], verb: str) -> SheetTable:
    rows = tuple(
        (
            " and ".join(f"{field} {one_line(value, 60)}" for field, value in one.where.items()),
            f"{one.questions:,}",
            points_text(one.difference),
            p_text(one.p_value),
        )
        for one in slices
    )
    heads = ("slice", "questions", "points against the rest", "corrected")
    return SheetTable(f"Questions that {verb} more than the rest", heads, rows)


def _case_row(case: Case, score: ScoreWords) -> tuple[str, ...]:
    scores = f"{score(case.base.score)} → {score(case.candidate.score)}"
    return scores, one_line(case.id, 60), one_line(case.because, 200)


def draft_sheet(drafts: "Drafts", golden: QuestionSet) -> Sheet:
    """The coverage, the holes with most traffic and failures, and what was drafted."""
    covered = drafts.coverage
    title = (
        f"“{one_line(golden.name, 60)}” covers {percent(covered.value)} of the questions asked "
        f"(95% interval {percent(covered.low)}–{percent(covered.high)})"
    )
    lines = [f"{count(covered.questions, 'question')} asked, {covered.distinct:,} different"]
    if drafts.drafts:
        expecting = sum(_expects_text(draft) for draft in drafts.drafts)
        lines.append(
            f"{count(len(drafts.drafts), 'draft')}, {expecting} with expectations of the text. "
            "Accept them one by one: answerkey review --drafts FILE"
        )
    holes = tuple(
        (f"{hole.count:,}", f"{hole.failures:,}", one_line(hole.examples[0], 80)) for hole in drafts.holes
    )
    table = SheetTable("Not covered", ("asked", "signs of failure", "question"), holes)
    return Sheet(title, tuple(lines), (), (table,) if holes else (), subject="Drafts")


def _expects_text(draft: JsonObject) -> bool:
    turns = draft.get("turns")
    asked = turns if isinstance(turns, list) else [draft]
    return any(isinstance(turn, dict) and turn.get("expected_keywords") for turn in asked)
