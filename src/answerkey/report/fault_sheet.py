"""A run of faults as a sheet, on the terminal, and as JUnit XML."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from rich.text import Text

from answerkey.errors import UsageError
from answerkey.model.fault import OUTCOMES, OutcomeName
from answerkey.report.files import atomic_file
from answerkey.report.sheets import Sheet, SheetTable, scores_in, write_sheet
from answerkey.report.terminal import emit, make_console, print_sheet
from answerkey.report.wording import (
    ScoreWords,
    count,
    gate_words,
    percent,
    range_text,
    rate_range_text,
    score_text,
)
from answerkey.runs.fault_results import FaultCase, FaultGroup, FaultResult
from answerkey.text.normalise import for_xml, one_line

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


def fault_sheet(result: FaultResult, score: ScoreWords = score_text) -> Sheet:
    """The result as a page."""
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


def _headline(result: FaultResult) -> str:
    summary = result.summary
    if summary.resilience is None:
        return "No fault landed"
    good = sum(case.is_resilient for case in result.cases)
    return (
        f"Resilience {percent(summary.resilience)}{rate_range_text(summary.interval)}: "
        f"recovered or honest after {good:,} of {count(summary.landed, 'fault')}"
    )


def _lines(result: FaultResult, score: ScoreWords) -> Iterator[str]:
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


def _single_points(result: FaultResult) -> Iterator[str]:
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


def _not_landed(result: FaultResult) -> Iterator[str]:
    for reason, number in result.not_landed.items():
        yield f"not landed, and not counted: {count(number, 'trial')}: {reason}"


def _group_table(title: str, groups: Sequence[FaultGroup]) -> SheetTable:
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


def _worst(result: FaultResult) -> list[FaultCase]:
    bad = [case for case in result.cases if case.outcome in _SERIOUS]
    return sorted(bad, key=lambda case: _SERIOUS.index(case.outcome or "unclear"))


def _case_table(result: FaultResult) -> SheetTable:
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


def _fault_words(case: FaultCase) -> str:
    fault = case.fault
    if fault is None:
        return ""
    which = f", call {fault.call}" if fault.call > 1 else ""
    return one_line(f"{fault.kind} in {fault.tool}{which}", 80)


def _confirmed(case: FaultCase) -> str:
    return "" if case.confirmed is None else f" (again in {case.confirmed[0]} of {case.confirmed[1]} repeats)"


def marked_reply(case: FaultCase) -> str:
    """The reply with its deciding words in »«."""
    text = case.reply or ""
    for start, end in sorted(case.words, reverse=True):
        text = f"{text[:start]}»{text[start:end]}«{text[end:]}"
    return text


def check_fault_output(path: Path) -> None:
    """Raise UsageError if a run of faults cannot be written in the format of this path."""
    if not path.name.lower().endswith(_ENDINGS):
        raise UsageError(f"{path}: unknown format; faults can be written as {' '.join(_ENDINGS)}")


def write_faults(result: FaultResult, path: Path) -> None:
    """Write a report in the format of the path's ending."""
    check_fault_output(path)
    if path.name.lower().endswith(".junit.xml"):
        with atomic_file(path) as file:
            file.write(fault_junit(result).encode())
        return
    write_sheet(fault_sheet(result, scores_in(path)), result.to_dict(), path)


def fault_junit(result: FaultResult) -> str:
    """A test for each fault and gate: one that was not handled failed, one that did not land was skipped."""
    lines = []
    failures = skipped = 0
    for gate in result.gates:
        failures += not gate.passed
        failed = "" if gate.passed else f'<failure type="gate" message={_attribute(gate_words(gate))}/>'
        lines.append(
            f'<testcase classname="answerkey.gates" name={_attribute(gate.gate)} time="0">{failed}</testcase>'
        )
    for case in result.cases:
        inside = ""
        if not case.landed:
            skipped += 1
            inside = f"<skipped message={_attribute(f'not landed: {case.because}')}/>"
        elif not case.is_resilient:
            failures += 1
            inside = f"<failure type={_attribute(case.outcome or '')} message={_attribute(case.because)}/>"
        name = f"{case.id} · {_fault_words(case) or 'no fault'}" + (
            f" · {case.trial}" if case.trial > 1 else ""
        )
        lines.append(
            f'<testcase classname="answerkey.faults" name={_attribute(name)} time="0">{inside}</testcase>'
        )
    counts = f'tests="{len(lines)}" failures="{failures}" errors="0" skipped="{skipped}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="answerkey" {counts}>\n<testsuite name={_attribute(result.faulted.info.name)} {counts}>\n'
        + "\n".join(lines)
        + "\n</testsuite>\n</testsuites>\n"
    )


def _attribute(text: str) -> str:
    return quoteattr(" ".join(for_xml(text).split())[:1000])


def print_faults(result: FaultResult) -> None:
    """Print the result on the terminal."""
    console = make_console()
    print_sheet(fault_sheet(result), console)
    emit(console, *(Text(f"gate passed: {gate_words(gate)}") for gate in result.gates if gate.passed))
