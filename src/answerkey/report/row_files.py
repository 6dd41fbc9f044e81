"""CSV with a row per reply, and JUnit XML; both are streamed."""

import shutil
from collections.abc import Iterable, Iterator
from math import fsum
from tempfile import SpooledTemporaryFile
from typing import BinaryIO

from answerkey.model.result_rows import encode, suspected_words
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.run_document import result_document
from answerkey.model.scorecard import RowOrigin, Trial, mean_score, passes
from answerkey.report.detail import losses_of
from answerkey.report.tables import Column, write_table
from answerkey.report.wording import gate_words, score_text
from answerkey.text.normalise import for_xml

# A table that people open has flat columns first, then the nested fields as JSON.
_FIRST = ("id", "trial", "category", "question", "score", "grade", "passed")
_LAST = (
    "lost_points",
    "error_kind",
    "error_message",
    "suspected",
    "latency_ms",
    "tools_used",
    "reply",
    "components",
    "error",
    "metrics",
)


def write_csv(run: Run, file: BinaryIO) -> None:
    """Write one flat row per result."""
    columns = [Column(name=name, title=name) for name in flat_columns(run.info)]
    file.writelines(
        write_table(columns, (flat_row(result, run.info) for result in run.table_results()), "csv")
    )


def flat_columns(info: RunInfo) -> list[str]:
    """The names of the columns; a run's components are between the score and the reasons."""
    return [*_FIRST, *info.weights, *_LAST, *(["line", *info.kept_columns] if info.is_log else [])]


def flat_row(result: Trial, info: RunInfo) -> list[object]:
    """A value for each column."""
    row = result_document(result)
    reply, error = row["reply"], row["error"] or {}
    parts = row["components"]
    return [
        *(row[name] for name in _FIRST),
        *(parts[name]["score"] if name in parts else None for name in info.weights),
        "; ".join(str(loss) for loss in losses_of(result.scorecard)),
        error.get("kind"),
        error.get("message"),
        suspected_words(row),
        reply["latency_ms"],
        ", ".join(reply["tools_used"]),
        reply["text"],
        encode(parts).decode(),
        encode(row["error"]).decode(),
        encode(row["metrics"]).decode(),
        *(_origin(result, info) if info.is_log else ()),
    ]


def _origin(result: Trial, info: RunInfo) -> Iterator[object]:
    """Line and kept columns of a log's row."""
    origin = result.origin or RowOrigin()
    yield origin.line
    for name in info.kept_columns:
        value = origin.columns.get(name)
        yield value if isinstance(value, str | int | float | None) else encode(value).decode()


# JUnit XML has a test case per question and per gate. CI pages show their texts inline, so they are cut.
_LONGEST_TEXT = 4000
_IN_MEMORY = 8_000_000


def write_junit(run: Run, file: BinaryIO) -> None:
    """Write a run's results as JUnit XML; questions are streamed."""
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
        # Name → number of uses: JUnit readers treat equal names as one case.
        self.names: dict[str, int] = {}

    def unique(self, name: str) -> str:
        seen = self.names[name] = self.names.get(name, 0) + 1
        # The name with a suffix may itself be a question's id.
        return name if seen == 1 else self.unique(f"{name} ({seen})")


def _attribute(text: str) -> str:
    """A quoted attribute; line breaks and tabs become spaces."""
    from xml.sax.saxutils import quoteattr  # slow to load, and only for JUnit

    return quoteattr(" ".join(for_xml(text).split()))


def _content(text: str) -> str:
    from xml.sax.saxutils import escape  # slow to load, and only for JUnit

    return escape(for_xml(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"))


def _head(run: Run, tally: _Tally) -> str:
    info, summary = run.info, run.summary
    counts = (
        f'tests="{tally.tests}" failures="{tally.failures}" errors="{tally.errors}" '
        f'skipped="{tally.skipped}" time="{tally.seconds:.3f}"'
    )
    properties = {
        "answerkey.run": info.id,
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
    # CI pages list failures in the order of the file: the critical ones come first, read in a pass of their own.
    if run.summary.critical_failures:
        for trials in run.by_question():
            if _is_critical_failure(trials, run):
                yield _question(trials, run, tally)
    for trials in run.by_question():
        if not (run.summary.critical_failures and _is_critical_failure(trials, run)):
            yield _question(trials, run, tally)


def _is_critical_failure(trials: list[Trial], run: Run) -> bool:
    score = mean_score(result.scorecard.total for result in trials)
    is_critical = trials[0].question.severity == "critical"
    return is_critical and score is not None and not passes(score, run.info.pass_mark)


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
    # CI pages treat a dot as a package separator.
    category = question.category.replace(".", "_")
    head = (
        f"<testcase classname={_attribute(f'answerkey.{category}')} "
        f'name={_attribute(tally.unique(question.id))} time="{seconds:.3f}">'
    )
    score = mean_score(result.scorecard.total for result in trials)
    if score is None:
        tally.skipped += 1
        unscored = [str(loss) for loss in losses_of(trials[0].scorecard) if loss.points is None]
        message = _attribute(": ".join(["not scored", *unscored])[:1000])
        return f"{head}<skipped message={message}/></testcase>\n"
    output = f"<system-out>{_content(_transcript(trials))}</system-out>"
    if passes(score, run.info.pass_mark):
        return f"{head}{output}</testcase>\n"
    worst = min(trials, key=lambda result: result.scorecard.total or 0.0)
    failure = worst.scorecard.error
    # As the run counts: a reply that is itself an error is one too.
    element = "failure" if failure is None else "error"
    if element == "error":
        tally.errors += 1
    else:
        tally.failures += 1
    reasons = [str(loss) for loss in losses_of(worst.scorecard)]
    kind = failure.kind if failure is not None else "score"
    critical = "CRITICAL: " if question.severity == "critical" else ""
    message = f"{critical}score {score_text(score)} is below {run.info.pass_mark:g}: {'; '.join(reasons)}"
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
