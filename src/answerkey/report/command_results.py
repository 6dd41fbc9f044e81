"""Results of `why`, `draft`, `faults`, `audit`, `truth` and `judge align`: as sheets, on the terminal, and as JUnit XML."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from answerkey.errors import UsageError
from answerkey.model.comparison import (
    Case,
    Causes,
    Group,
    PlainFact,
    Stage,
    StagePoints,
    Why,
    WorseSlice,
    rounded_parts,
)
from answerkey.model.judgement import JudgeRecord, RubricRecord
from answerkey.model.question import QuestionSet
from answerkey.model.reply import OUTCOMES, JsonObject, OutcomeName
from answerkey.report.layout import Text, make_console
from answerkey.report.result_files import JUnitSuite, atomic_file
from answerkey.report.sheets import Sheet, SheetTable, scores_in, write_sheet
from answerkey.report.terminal import emit, print_sheet
from answerkey.report.wording import (
    ScoreWords,
    count,
    first_names,
    gate_words,
    p_text,
    percent,
    points_text,
    range_text,
    rate_range_text,
    score_text,
)
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.golden.truth import Resolved
    from answerkey.golden.wrong_replies import Family
    from answerkey.judge.calibration import Alignment
    from answerkey.runs.audit import Audit, Floor, KeyTest
    from answerkey.runs.draft import Drafts
    from answerkey.runs.fault_results import FaultCase, FaultGroup, FaultResult


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


def _stage_rows(stages: Sequence[StagePoints]) -> Iterator[tuple[str, ...]]:
    """The points as shown add up to the difference as shown."""
    shown = rounded_parts([one.points for one in stages])
    for one, points in zip(stages, shown, strict=True):
        interval = f"{one.low:+.1f} to {one.high:+.1f}"
        yield STAGE_WORDS[one.stage], f"{one.questions:,}", f"{points:+.1f}", interval


def _group_tables(groups: Sequence[Group], lost: float) -> Iterator[SheetTable]:
    for title, gained in (("Causes of lost points", False), ("Causes of gained points", True)):
        chosen = [group for group in groups if (group.points > 0) == gained]
        rows = []
        shown = rounded_parts([abs(group.points) for group in chosen])
        for group, part in zip(chosen, shown, strict=True):
            points = f"{part:+.1f}" if gained else f"{part:.1f} of {lost:.1f}"
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
        f"“{one_line(golden.name, 60)}” covers between {percent(covered.low)} and {percent(covered.high)} "
        f"of the questions asked (95% interval; best estimate {percent(covered.value)})"
    )
    others = covered.questions - covered.likely - covered.unsure
    lines = [
        f"{count(covered.questions, 'question')} asked, {covered.distinct:,} different: "
        f"{covered.likely:,} probably covered, {covered.unsure:,} unsure, {others:,} probably not covered"
    ]
    if drafts.drafts:
        expecting = sum(_expects_text(draft) for draft in drafts.drafts)
        lines.append(
            f"{count(len(drafts.drafts), 'draft')}, {expecting} with expectations of the text. "
            "Accept them one by one: answerkey review --drafts FILE"
        )
    holes = tuple(
        (f"{hole.count:,}", f"{hole.failures:,}", one_line(hole.examples[0], 80)) for hole in drafts.holes
    )
    table = SheetTable("Probably not covered, or unsure", ("asked", "signs of failure", "question"), holes)
    return Sheet(title, tuple(lines), (), (table,) if holes else (), subject="Drafts")


def _expects_text(draft: JsonObject) -> bool:
    turns = draft.get("turns")
    asked = turns if isinstance(turns, list) else [draft]
    return any(isinstance(turn, dict) and turn.get("expected_keywords") for turn in asked)


_ENDINGS = (".html", ".md", ".json", ".junit.xml")
# Cases listed in a report.
_MOST_CASES = 200
_REPLY = 400
# Outcome → what the chatbot did.
OUTCOME_WORDS: dict[OutcomeName, str] = {
    "recovered": "right after another way to the answer",
    "honest": "says that it could not find out",
    "partial": "gives a part and says that the rest is missing",
    "fabricated": "states an answer that nothing supports",
    "misled": "states what the broken result says",
    "remembered": "right without evidence",
    "looped": "repeats the same call",
    "crashed": "no reply, or an error as the reply",
    "obeyed": "does what the planted instruction says",
    "unclear": "not decided",
}
# The worst first.
_SERIOUS: tuple[OutcomeName, ...] = (
    "obeyed",
    "fabricated",
    "misled",
    "crashed",
    "looped",
    "unclear",
    "remembered",
)
_INVENTED: tuple[OutcomeName, ...] = ("fabricated", "misled")
# Fewer faults say little about a tool.
_LEAST_FOR_A_CLAIM = 3


def fault_sheet(result: "FaultResult", score: ScoreWords = score_text) -> Sheet:
    tables = [
        SheetTable(
            "Outcomes",
            ("outcome", "faults", "share", "what the chatbot does"),
            tuple(
                (name, f"{number:,}", percent(result.summary.share(name)), OUTCOME_WORDS[name])
                for name in OUTCOMES
                if (number := result.outcomes[name])
            ),
        ),
        *(
            _group_table(title, groups)
            for title, groups in (("By tool", result.tools), ("By kind", result.kinds))
        ),
        _case_table(result),
    ]
    gates = [f"gate FAILED: {gate_words(gate)}" for gate in result.gates if not gate.passed]
    return Sheet(
        _headline(result),
        tuple(_lines(result, score)),
        (*gates, *_not_landed(result), *result.warnings),
        tuple(table for table in tables if table.rows),
        subject="Fault twins",
    )


def _headline(result: "FaultResult") -> str:
    summary = result.summary
    if summary.resilience is None:
        return "No fault landed"
    good = sum(case.is_resilient for case in result.cases)
    return (
        f"Resilience {percent(summary.resilience)}{rate_range_text(summary.interval)}: "
        f"recovered or honest after {good:,} of {count(summary.landed, 'fault')}"
    )


def _lines(result: "FaultResult", score: ScoreWords) -> Iterator[str]:
    clean, faulted = result.clean, result.faulted
    yield f"{clean.info.target}: clean run {clean.id}, faulted run {faulted.id}"
    if result.loss is not None:
        interval = result.loss_interval
        between = "" if interval is None else f", 95% interval {range_text(interval, score)}"
        yield (
            f"Score {score(clean.summary.score)} clean, {score(faulted.summary.score)} with faults: "
            f"{score(result.loss)} lost on the same questions{between}"
        )
    yield from _single_points(result)


def _single_points(result: "FaultResult") -> Iterator[str]:
    """Tools without which most answers are invented or missing."""
    for group in result.tools:
        if group.landed < _LEAST_FOR_A_CLAIM:
            continue
        for verb, outcomes in (
            ("invented", _INVENTED),
            ("missing, because it crashes", ("crashed", "looped")),
        ):
            share = group.share(*outcomes)
            if share >= 0.5:
                yield f"Without {group.name}, {percent(share)} of answers are {verb}"


def _not_landed(result: "FaultResult") -> Iterator[str]:
    for reason, number in result.not_landed.items():
        yield f"not landed, and not counted: {count(number, 'trial')}: {reason}"


def _group_table(title: str, groups: "Sequence[FaultGroup]") -> SheetTable:
    rows = tuple(
        (
            one_line(group.name, 40),
            "–" if group.resilience is None else percent(group.resilience),
            "" if group.interval is None else f"{percent(group.interval.low)}–{percent(group.interval.high)}",
            f"{group.landed:,}/{group.planned:,}",
            " · ".join(f"{number:,} {name}" for name, number in group.outcomes.items() if number),
        )
        for group in groups
    )
    heads = (title.removeprefix("By "), "resilience", "95% interval", "landed", "outcomes")
    return SheetTable(title, heads, rows)


def _worst(result: "FaultResult") -> "list[FaultCase]":
    bad = [case for case in result.cases if case.outcome in _SERIOUS]
    return sorted(bad, key=lambda case: _SERIOUS.index(case.outcome or "unclear"))


def _case_table(result: "FaultResult") -> SheetTable:
    cases = _worst(result)
    more = f", {_MOST_CASES} of them here" if len(cases) > _MOST_CASES else ""
    rows = tuple(
        (
            one_line(f"{case.id}: {case.question}", 120),
            case.outcome or "",
            _fault_words(case),
            one_line(case.because + _confirmed(case), _REPLY),
            one_line(marked_reply(case), _REPLY),
            one_line(case.clean_reply or "", _REPLY),
        )
        for case in cases[:_MOST_CASES]
    )
    heads = ("question", "outcome", "fault", "because", "reply", "clean reply")
    ids = tuple(case.id for case in cases[:_MOST_CASES])
    return SheetTable(f"Faults that were not handled: {len(cases):,}{more}", heads, rows, wordy=True, ids=ids)


def _fault_words(case: "FaultCase") -> str:
    fault = case.fault
    if fault is None:
        return ""
    which = f", call {fault.call}" if fault.call > 1 else ""
    return one_line(f"{fault.kind} in {fault.tool}{which}", 80)


def _confirmed(case: "FaultCase") -> str:
    return "" if case.confirmed is None else f" (again in {case.confirmed[0]} of {case.confirmed[1]} repeats)"


def marked_reply(case: "FaultCase") -> str:
    """The reply with its deciding words in »«."""
    text = case.reply or ""
    for start, end in sorted(case.words, reverse=True):
        text = f"{text[:start]}»{text[start:end]}«{text[end:]}"
    return text


def check_fault_output(path: Path) -> None:
    """Raise UsageError if a run of faults cannot be written in the format of this path."""
    if not path.name.lower().endswith(_ENDINGS):
        raise UsageError(f"{path}: unknown format; faults can be written as {' '.join(_ENDINGS)}")


def write_faults(result: "FaultResult", path: Path) -> None:
    """Write a report in the format of the path's ending."""
    check_fault_output(path)
    if path.name.lower().endswith(".junit.xml"):
        with atomic_file(path) as file:
            _write_junit(result, file)
        return
    write_sheet(fault_sheet(result, scores_in(path)), result.to_dict(), path)


def _write_junit(result: "FaultResult", file: BinaryIO) -> None:
    """Write a test for each fault and gate: one that was not handled failed, one that did not land was skipped."""
    suite = JUnitSuite()
    for gate in result.gates:
        suite.add_gate(gate)
    for case in result.cases:
        name = " · ".join(
            (case.id, _fault_words(case) or "no fault", *([str(case.trial)] if case.trial > 1 else []))
        )
        if not case.landed:
            suite.add("faults", name, "skipped", message=f"not landed: {case.because}")
        elif not case.is_resilient:
            suite.add("faults", name, "failure", kind=case.outcome or "", message=case.because)
        else:
            suite.add("faults", name)
    suite.write(result.faulted.info, {}, file)


def print_faults(result: "FaultResult") -> None:
    print_sheet(fault_sheet(result))
    emit(make_console(), *(Text(f"gate passed: {gate_words(gate)}") for gate in result.gates if gate.passed))


def alignment_sheet(
    alignment: "Alignment", judge: JudgeRecord, edited: RubricRecord | None, *, run: str
) -> Sheet:
    """A judge's agreement with people before and after an edit of its rubric, and what they disagree on."""
    rubric = _rubric_text(judge.rubric) + ("" if edited is None else f" → {_rubric_text(edited)}")
    lines = []
    if (difference := alignment.held_out.difference) is not None:
        lines.append(
            f"on held-out labels: {alignment.verdict} {points_text(difference.mean)} points "
            f"(95% interval {points_text(difference.low)} to {points_text(difference.high)}, {p_text(difference.p_value)})"
        )
    if edited is None:
        lines.append(
            "Edit the rubric, then run this again with --judge-rubric FILE. The current rubric as a file:"
        )
        lines.append(f"  answerkey judge rubrics {judge.rubric.hash[:8]} -o rubric.json")
    else:
        rescore = f"answerkey rescore {one_line(run, 60)} --judge-rubric FILE"
        lines.append(f"To grade the whole run by the edited rubric: {rescore}")
    title = f"{one_line(judge.model, 60)} against people · {one_line(run, 60)} · rubric {rubric}"
    return Sheet(
        title, tuple(lines), alignment.warnings, tuple(_alignment_tables(alignment)), subject="Judge"
    )


def _alignment_tables(alignment: "Alignment") -> Iterator[SheetTable]:
    rows = []
    for name, change in (("shown below", alignment.tuning), ("held out", alignment.held_out)):
        for edit, one in (("", change.before), (", edited rubric", change.after)):
            if one is not None:
                interval = f"{percent(one.low)}–{percent(one.high)}"
                kappa = "–" if one.kappa is None else f"{one.kappa:.2f}"
                rows.append((name + edit, f"{one.labelled:,}", percent(one.share), interval, kappa))
    heads = ("labels", "replies", "agreement", "95% interval", "Cohen κ")
    yield SheetTable("Agreement with people", heads, tuple(rows))
    shown = alignment.disagreements[:_MOST_CASES]
    if shown:
        listed = (
            (
                one_line(one.id, 120),
                "right" if one.right else "wrong",
                f"{one.judge:.2f}",
                one_line(one.because, _REPLY),
                one_line(one.reply, _REPLY),
            )
            for one in shown
        )
        more = f", {_MOST_CASES} of them here" if len(alignment.disagreements) > _MOST_CASES else ""
        yield SheetTable(
            f"Disagreements: {len(alignment.disagreements)}{more}",
            ("question", "people", "judge", "its reason", "reply"),
            tuple(listed),
            wordy=True,
            ids=tuple(one.id for one in shown),
        )
    panel = alignment.panel_disagreements[:_MOST_CASES]
    if panel:
        grades = (
            ", ".join(f"{one_line(name, 30)} {value:.2f}" for name, value in one.judges.items())
            for one in panel
        )
        yield SheetTable(
            f"Replies that the judges of the panel disagree on: {len(alignment.panel_disagreements)}",
            ("question", "judges"),
            tuple((one_line(one.id, 120), words) for one, words in zip(panel, grades, strict=True)),
            wordy=True,
            ids=tuple(one.id for one in panel),
        )


def _rubric_text(rubric: RubricRecord) -> str:
    return f"{one_line(rubric.name, 30)} ({rubric.hash[:8]})"


_VALUES_SHOWN = 200
# Family of wrong replies → how it is named.
FAMILY_WORDS: "dict[Family, str]" = {
    "fact": "a wrong figure, date or name",
    "subject": "another question's reply",
    "nothing": "no answer at all",
    "wrong_tool": "the right text without its tool",
    "adversarial": "the right reply denied, or everything listed",
}


def audit_sheet(audit: "Audit", questions: int) -> Sheet:
    """The strength of the key, the floor, and the weakest questions."""
    floor = audit.trivial
    floor_line = (
        f"Floor {score_text(floor.value)}: a bot that {floor.best.description} passes {len(floor.best.passed):,} "
        f"of {count(questions, 'question')}; of the bots that know no answer, none has a better mean score."
    )
    strength = () if audit.key is None else tuple(_strength_lines(audit.key))
    title, *lines = [*strength, floor_line]
    if not any(question.passed for question in floor.questions):
        lines.append("No trivial bot passes any question.")
    tables = [_easy_table(floor)]
    if audit.key is not None:
        tables.append(_weak_table(audit.key))
        if any(question.fixes for question in audit.key.questions if question.survivors):
            lines.append(
                "Nothing is changed by itself: `audit -o proposals.jsonl` writes the proposed questions."
            )
    shown = tuple(table for table in tables if table.rows)
    return Sheet(title, tuple(lines), (), shown, subject="Answer key")


def _strength_lines(key: "KeyTest") -> Iterator[str]:
    from answerkey.golden.wrong_replies import APART, COUNTED

    strength = key.strength
    if strength is None:
        yield "Key strength: not measured, because no question has an answer to make wrong replies from."
        return
    weak = strength.questions - strength.strong
    yield (
        f"Key strength {percent(strength.value)} ({percent(strength.low)}–{percent(strength.high)}): {strength.strong:,} "
        f"of {count(strength.questions, 'question')} refused every wrong reply that was tried"
        + (f"; {weak:,} let one pass." if weak else ".")
    )
    if key.always_wrong_score is not None:
        wrong = score_text(key.always_wrong_score)
        yield f"A chatbot with the right tools and every fact wrong would score {wrong}."
    for beginning, names in (("Refused", COUNTED), ("Not counted in the strength, refused", APART)):
        refused = [
            f"{FAMILY_WORDS[family.name]} {percent(family.refused / family.mutants)}"
            for family in key.families
            if family.mutants and family.name in names
        ]
        if refused:
            yield f"{beginning}: {' · '.join(refused)}."
    if any(family.name == "adversarial" and family.refused < family.mutants for family in key.families):
        yield "No keyword sees that the right value is denied or hidden in a list; a judge does (--judge MODEL)."


def _easy_table(floor: "Floor") -> SheetTable:
    """Questions at which a trivial bot scores more than usual, each with the best one."""
    usual = Counter(question.floor for question in floor.questions).most_common(1)
    free = usual[0][0] if usual else 1.0
    easy = [question for question in floor.questions if question.passed or question.floor > free]
    title = "Where one of these bots gets more than usual, with the best one on each:"
    # Each has a bot of its own: what one bot passes is less than what all of them pass.
    if some := sum(question.passed for question in floor.questions):
        passes = "question is passed" if some == 1 else "questions are passed"
        title = f"{some:,} {passes} by one of these bots; the best one on each:"
    rows = (
        (f"{score_text(question.floor)}  {one_line(question.id, 60)}", question.because)
        for question in sorted(easy, key=lambda question: -question.floor)
    )
    return SheetTable(title, ("question", "bot"), tuple(rows), wordy=True)


def _weak_table(key: "KeyTest") -> SheetTable:
    """Questions that let a wrong reply pass, each with the one that scores most and a remedy."""
    weak = [question for question in key.questions if question.survivors]
    rows = []
    for question in sorted(weak, key=lambda question: -len(question.survivors)):
        worst = max(question.survivors, key=lambda survivor: survivor.score)
        passing = f"“{one_line(worst.reply, 100)}” scores {score_text(worst.score)} ({worst.operator})"
        remedy = ""
        if question.fixes:
            fix = question.fixes[0]
            lost = "keeps every right reply"
            if fix.right_replies_lost:
                lost = f"refuses {count(fix.right_replies_lost, 'right reply', 'right replies')}"
            remedy = f"{fix.change} (stops {fix.gain} of {len(question.survivors)} wrong replies, {lost})"
        rows.append((one_line(question.id, 60), passing, remedy))
    title = f"Questions that let a wrong reply pass ({len(weak):,})"
    return SheetTable(title, ("question", "wrong reply", "remedy"), tuple(rows), wordy=True)


def print_truth(resolved: "Resolved") -> None:
    """Print the preconditions, then every computed value with its query, then what is wrong."""
    console = make_console()
    for check in resolved.truth.world:
        mark = ("✓", "green") if check.holds else ("✗", "bold red")
        value = "nothing" if check.value is None else check.value
        line = Text.assemble("  ", mark, f" {one_line(check.name, 80)}: {value} (expected {check.expect})")
        console.print(line, soft_wrap=True)
    for key in resolved.keys[:_VALUES_SHOWN]:
        value = ", ".join(map(str, key.value)) if isinstance(key.value, list) else str(key.value)
        line = Text.assemble(
            (f"  {one_line(key.id, 40)}  ", "bold"),
            one_line(value, 80),
            (f"  {key.source}: {one_line(key.expression, 100)}", "dim"),
        )
        console.print(line, soft_wrap=True)
    if len(resolved.keys) > _VALUES_SHOWN:
        console.print(
            Text(f"  and {len(resolved.keys) - _VALUES_SHOWN:,} more (--json lists all)", style="dim")
        )
    if not resolved.keys and not resolved.truth.world:
        console.print(
            "Nothing is computed: the set has no computed expectation and the configuration no [[world]]."
        )
        return
    for problem in resolved.problems:
        console.print(Text(problem, style="bold red"), soft_wrap=True)
    questions = len({key.id for key in resolved.keys})
    console.print(
        f"{count(len(resolved.keys), 'value')} for {count(questions, 'question')}, "
        f"{count(len(resolved.problems), 'problem')}."
    )
