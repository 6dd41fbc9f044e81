"""JUnit XML: one test case per question and one per gate, for any CI that reads test results."""

import shutil
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import fsum
from tempfile import SpooledTemporaryFile
from typing import BinaryIO
from xml.sax.saxutils import escape, quoteattr

from answerkey.model.reply import SYSTEM_ERRORS
from answerkey.model.run import GateResult, Run
from answerkey.model.scorecard import round_score
from answerkey.model.trial import Trial
from answerkey.report.losses import losses_of
from answerkey.report.value_wording import gate_words, score_text
from answerkey.text.sanitise import for_xml

# CI pages show these inline: a reply of a megabyte helps nobody there.
_LONGEST_TEXT = 4000
_IN_MEMORY = 8_000_000


def write_junit(run: Run, file: BinaryIO) -> None:
    """Write a run's results; questions are streamed, so that a large run stays small in memory."""
    tally = _Tally()
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
        for case in _cases(run, tally):
            body.write(case.encode("utf-8"))
        file.write(_head(run, tally).encode("utf-8"))
        body.seek(0)
        shutil.copyfileobj(body, file)
    file.write(b"</testsuite>\n</testsuites>\n")


class _Tally:
    def __init__(self) -> None:
        self.tests = self.failures = self.errors = self.skipped = 0
        self.seconds = 0.0
        # Names so far, with how often: a JUnit reader takes equal names for one case.
        self.names: dict[str, int] = {}

    def unique(self, name: str) -> str:
        seen = self.names[name] = self.names.get(name, 0) + 1
        # A suffix may itself be some question's id.
        return name if seen == 1 else self.unique(f"{name} ({seen})")


def _attribute(text: str) -> str:
    """A quoted attribute: line breaks and tabs would be lost in one, so they become spaces."""
    return quoteattr(" ".join(for_xml(text).split()))


def _content(text: str) -> str:
    return escape(for_xml(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"))


def _head(run: Run, tally: _Tally) -> str:
    info, summary = run.info, run.summary
    counts = (
        f'tests="{tally.tests}" failures="{tally.failures}" errors="{tally.errors}" '
        f'skipped="{tally.skipped}" time="{tally.seconds:.3f}"'
    )
    properties = {
        "answerkey.model.run": info.id,
        "answerkey.target": info.target,
        "answerkey.score": score_text(summary.score),
        "answerkey.grade": summary.grade or "",
        "answerkey.coverage": f"{summary.coverage:g}",
        **{
            f"answerkey.{name}": f"{value:g}"
            for name, value in {**summary.metrics, **summary.components}.items()
            if value is not None
        },
    }
    listed = "".join(
        f"<property name={_attribute(name)} value={_attribute(value)}/>\n"
        for name, value in properties.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="answerkey" {counts}>\n'
        f"<testsuite name={_attribute(info.name)} {counts} timestamp={_attribute(info.created_at[:19])}>\n"
        f"<properties>\n{listed}</properties>\n"
    )


def _cases(run: Run, tally: _Tally) -> Iterator[str]:
    for gate in run.gates:
        yield _gate(gate, tally)
    for _, group in groupby(run.results, key=lambda result: result.question.id):
        yield _question(list(group), run, tally)


def _gate(gate: GateResult, tally: _Tally) -> str:
    tally.tests += 1
    name = _attribute(tally.unique(gate.gate))
    if gate.passed:
        return f'<testcase classname="answerkey.gates" name={name} time="0"/>\n'
    tally.failures += 1
    message = gate_words(gate)
    return (
        f'<testcase classname="answerkey.gates" name={name} time="0">'
        f'<failure type="gate" message={_attribute(message)}/></testcase>\n'
    )


def _question(trials: list[Trial], run: Run, tally: _Tally) -> str:
    question = trials[0].question
    tally.tests += 1
    taken = [result.latency_ms for result in trials if result.latency_ms is not None]
    seconds = fsum(taken) / 1000
    tally.seconds += seconds
    # A dot would start another package in the trees that CI pages draw.
    category = question.category.replace(".", "_")
    head = (
        f"<testcase classname={_attribute(f'answerkey.{category}')} "
        f'name={_attribute(tally.unique(question.id))} time="{seconds:.3f}">'
    )
    scores = [result.scorecard.total for result in trials if result.scorecard.total is not None]
    if not scores:
        tally.skipped += 1
        unscored = [str(loss) for loss in losses_of(trials[0].scorecard) if loss.points is None]
        message = _attribute(": ".join(["not scored", *unscored])[:1000])
        return f"{head}<skipped message={message}/></testcase>\n"
    score = round_score(fsum(scores) / len(scores))
    output = f"<system-out>{_content(_transcript(trials))}</system-out>"
    if score >= run.info.pass_mark:
        return f"{head}{output}</testcase>\n"
    worst = min(trials, key=lambda result: result.scorecard.total or 0.0)
    failure = worst.scorecard.error
    element = "error" if failure is not None and failure.kind in SYSTEM_ERRORS else "failure"
    if element == "error":
        tally.errors += 1
    else:
        tally.failures += 1
    reasons = [str(loss) for loss in losses_of(worst.scorecard)]
    kind = failure.kind if failure is not None else "score"
    message = f"score {score_text(score)} is below {run.info.pass_mark:g}: {'; '.join(reasons)}"
    return (
        f"{head}<{element} type={_attribute(kind)} message={_attribute(message[:1000])}>"
        f"{_content(chr(10).join(reasons))}</{element}>{output}</testcase>\n"
    )


def _transcript(trials: Iterable[Trial]) -> str:
    lines: list[str] = []
    for result in trials:
        for turn, reply in zip(result.question.asks, result.replies, strict=False):
            called = ", ".join(reply.tools_used) or "none"
            lines += [f"Question: {turn.question}", f"Tools: {called}", f"Reply: {reply.text}"]
    return "\n".join(lines)
