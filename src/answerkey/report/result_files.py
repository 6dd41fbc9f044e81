"""A run's results in files, written atomically; the ending selects the format.

Here are CSV with a row per reply, JUnit XML, and bodies of other tools' own requests; all are streamed.
The bodies are OpenTelemetry evaluation events, Langfuse scores and an MLflow run: `curl --data @file` sends them; answerkey sends
nothing itself.

Tables of the dashboard, typed columns and rows, are shown on pages and written as CSV, JSON Lines or Parquet.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from math import fsum
from os.path import samestat
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Json
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.run_document import encode, result_document, suspected_words
from answerkey.model.scorecard import (
    UNNUMBERED,
    RowOrigin,
    Trial,
    fails_once,
    mean_score,
    passes,
    round_score,
)
from answerkey.plugins import reports
from answerkey.report.detail import losses_of
from answerkey.report.wording import (
    change_text,
    gate_words,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    points_change,
    score_percent,
    score_text,
)
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_csv, for_terminal, for_xml, one_line, without_surrogates
from answerkey.text.patterns import lazy

Kind = Literal[
    "text",
    "reply",
    "names",
    "grade",
    "why",
    "score",
    "change",
    "metric",
    "metric_change",
    "ms",
    "ms_change",
    "money",
    "count",
    "flag",
    "time",
    "status",
]
_NUMBERS = ("score", "change", "metric", "metric_change", "ms", "ms_change", "money", "count")
# Characters of a cell.
_WIDTH = 240
_ROWS = 2_000
# Bytes of a file that are sent at once.
_PIECE = 1_000_000

# Marks of Markdown at the beginning of lines, the lines of tables, and pairs of marks around words.
_LINE_MARKS = lazy(r"^\s*(?:#{1,6}|[-*+])\s+|^[\s|:-]*-{3}[\s|:-]*$", re.MULTILINE)
_TABLE_LINE = lazy(r"^\s*\|.*\|\s*$", re.MULTILINE)
_WORD_MARKS = lazy(r"(?<![\w*])(\*{1,2}|__|`+)(\S(?:[^*`\n]*?\S)?)\1(?![\w*])")


def _without_markdown(text: str) -> str:
    # Twice what is shown, since marks and line ends go.
    text = _LINE_MARKS.sub(" ", text[: 2 * _WIDTH])
    text = _TABLE_LINE.sub(lambda line: line[0].replace("|", " "), text)
    return one_line(_WORD_MARKS.sub(r"\2", text), _WIDTH)


_SHOWN: dict[str, Callable[[Any], str]] = {
    "reply": _without_markdown,
    "names": lambda names: one_line(", ".join(names), _WIDTH),
    "score": score_percent,
    "change": points_change,
    "metric": metric_text,
    "metric_change": change_text,
    "ms": milliseconds,
    "ms_change": milliseconds_change,
    "money": money,
    "count": "{:,}".format,
    "flag": lambda flag: "yes" if flag else "no",
    # The head names the time zone.
    "time": lambda moment: local_time(moment, zone=False),
}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table."""

    name: str
    title: str
    kind: Kind = "text"
    # Tooltip of its head.
    note: str = ""
    # Whether it holds long texts.
    wide: bool = False
    # Sort key when its head is clicked, again to reverse; None: not sortable.
    sort: str | None = None

    @property
    def number(self) -> bool:
        """Whether it holds numbers, which are right-aligned."""
        return self.kind in _NUMBERS


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    # The page with all details.
    address: str
    # A value for each column.
    cells: tuple[Any, ...]
    # Id for links to its page or element.
    id: str = ""
    # Value of its checkbox, if rows can be selected.
    pick: str = ""
    # Name for screen readers.
    label: str = ""
    # better or worse: the row is highlighted.
    tone: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with the selected columns."""

    columns: tuple[Column, ...]
    # All columns that can be selected.
    offered: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    # Sort key; with a minus, largest first.
    sort: str

    @property
    def menu(self) -> tuple[Column, ...]:
        """All columns to choose from; those that are shown come first if the reader put them in another order."""
        usual = [column for column in self.offered if column in self.columns]
        if usual == list(self.columns):
            return self.offered
        return (*self.columns, *(column for column in self.offered if column not in self.columns))


def cell_text(value: Any, kind: str) -> str:
    """A value as shown on a page."""
    if value is None:
        return "–" if kind in _NUMBERS else ""
    return _SHOWN[kind](value) if kind in _SHOWN else one_line(str(value), _WIDTH)


def write_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], ending: str) -> Iterator[bytes]:
    """The content of a file with these columns and rows; `ending` is csv, jsonl or parquet."""
    return ENDINGS[ending](columns, rows)


def _csv(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    text = io.StringIO()
    write = csv.writer(text).writerow
    # With a byte order mark, Excel reads UTF-8.
    yield "\ufeff".encode()
    write([column.name for column in columns])
    for row in rows:
        write([_csv_cell(value) for value in row])
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        value = ", ".join(value)
    return for_csv(for_terminal(value)) if isinstance(value, str) else value


def _jsonl(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    names = [column.name for column in columns]
    for row in rows:
        yield msgspec.json.encode(without_surrogates(dict(zip(names, row, strict=True)))) + b"\n"


def _parquet(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    from tempfile import TemporaryFile  # slow to load

    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'answerkey[parquet]'") from None
    text = pyarrow.string()
    types = {"names": pyarrow.list_(text), "count": pyarrow.int64(), "flag": pyarrow.bool_()}
    fields = [
        (column.name, types.get(column.kind, pyarrow.float64() if column.number else text))
        for column in columns
    ]
    schema = pyarrow.schema(fields)
    # pyarrow's own pool keeps the memory of the largest batch and more.
    pool = pyarrow.system_memory_pool()
    remaining = iter(rows)
    with TemporaryFile() as file:
        with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", memory_pool=pool) as writer:
            while batch := list(islice(remaining, _ROWS)):
                values = without_surrogates([list(column) for column in zip(*batch, strict=True)])
                arrays = [
                    pyarrow.array(one, kind, memory_pool=pool)
                    for one, (_, kind) in zip(values, fields, strict=True)
                ]
                writer.write_table(pyarrow.table(arrays, schema=schema))
        file.seek(0)
        yield from iter(partial(file.read, _PIECE), b"")


ENDINGS: dict[str, Callable[[Sequence[Column], Iterable[Sequence[Any]]], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}


def write_report(run: Run, path: Path | str) -> None:
    """Write a run's report in the format that the path's ending selects."""
    path = Path(path)
    write = reports.get(_ending(path))
    with atomic_file(path) as file:
        write(run, file)


def write_reports(run: Run, paths: Iterable[Path | str]) -> None:
    """Write several reports; all paths are checked before the first is written."""
    listed = [Path(path) for path in paths]
    for path in listed:
        check_output(path)
    for path in listed:
        write_report(run, path)


def report_endings() -> list[str]:
    """The endings of all report formats, the built-in ones first."""
    return [*reports.built_in(), *reports.added()]


def check_output(path: Path | str, read: Iterable[Path] = ()) -> None:
    """Raise UsageError, before any question is asked, if a report cannot be written there or would overwrite an input."""
    path = Path(path)
    # Load the format now, so that a missing extra is reported before the run.
    reports.get(_ending(path))
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file")
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist; create it first")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK) or (_is_regular(path) and not os.access(folder, os.W_OK)):
        raise UsageError(f"{path}: cannot be written (no permission)")
    refuse_to_overwrite(path, read)


def refuse_to_overwrite(path: Path, read: Iterable[Path]) -> None:
    """Raise UsageError if the path is one of the input files, also through another name or link."""
    if not path.is_file():
        # A new file or a device.
        return
    written = path.stat()
    for given in read:
        if any(samestat(written, found) for found in _stats(given)):
            raise UsageError(f"-o {path}: would overwrite the input {given}; name another file")


def _stats(path_given: Path) -> Iterator[os.stat_result]:
    """The stats of a file, of each file of a folder, or of standard input."""
    if str(path_given) == "-":
        with suppress(OSError):
            yield os.fstat(0)
    elif path_given.is_dir():
        yield from (path.stat() for path in path_given.rglob("*") if path.is_file())
    elif path_given.exists():
        yield path_given.stat()


def _ending(path: Path) -> str:
    name = path.name.lower()
    # Longest first: x.junit.xml is not another kind of .xml.
    for ending in sorted(reports.names(), key=len, reverse=True):
        if name.endswith(ending) and name != ending:
            return ending
    raise UsageError(f"{path}: unknown report format; use one of {' '.join(report_endings())}")


def _is_regular(path: Path) -> bool:
    return path.is_file() or not path.exists()


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name only when it is completely written."""
    if not _is_regular(path):
        # A device or a pipe (/dev/stdout) cannot be replaced by a rename.
        with _clear_errors(path), path.open("wb") as device:
            yield device
        return
    # Write through a link to its file.
    path = path.resolve()
    unfinished = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}.part")
    with _clear_errors(path):
        file = unfinished.open("xb")
    try:
        with _clear_errors(path):
            with file:
                yield file
            if path.exists():
                unfinished.chmod(path.stat().st_mode & 0o7777)
            unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Append a row to a golden set, which is replaced as a whole; the rows before it stay as they are written."""
    from answerkey.transcripts.yaml_documents import EditableRows  # few commands edit a golden set

    rows = EditableRows.read(path) if path.exists() else EditableRows("", path)
    with atomic_file(path) as file:
        file.write(rows.append(rows.encode(row)).text.encode())


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None


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
_LONGEST_MESSAGE = 1000
_IN_MEMORY = 8_000_000


class JUnitSuite:
    """A suite of test cases; they are collected on disk, since its head has their counts."""

    def __init__(self) -> None:
        from tempfile import SpooledTemporaryFile  # slow to load

        self._body = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed with the suite
        self._counts = dict.fromkeys(("tests", "failure", "error", "skipped"), 0)
        self._seconds = 0.0
        # Name → number of uses: JUnit readers treat equal names as one case.
        self._names: dict[str, int] = {}

    def add(
        self,
        group: str,
        name: str,
        outcome: Literal["passed", "failure", "error", "skipped"] = "passed",
        *,
        kind: str = "",
        message: str = "",
        text: str = "",
        output: str = "",
        seconds: float = 0.0,
    ) -> None:
        """Add a test case; `output` is what the chatbot did."""
        from xml.etree.ElementTree import Element, SubElement, tostring  # slow to load, and only for JUnit

        self._counts["tests"] += 1
        self._seconds += seconds
        # CI pages treat a dot as a package separator.
        attributes = {"classname": f"answerkey.{group.replace('.', '_')}", "name": self._unique(name)}
        case = Element("testcase", _attributes_of(attributes | {"time": f"{seconds:.3f}"}))
        if outcome != "passed":
            self._counts[outcome] += 1
            said = {"type": kind, "message": message[:_LONGEST_MESSAGE]}
            SubElement(case, outcome, _attributes_of(said)).text = _content(text)
        if output:
            SubElement(case, "system-out").text = _content(output)
        self._body.write(tostring(case, "utf-8", xml_declaration=False) + b"\n")

    def add_gate(self, gate: GateResult) -> None:
        if gate.passed:
            self.add("gates", gate.gate)
        else:
            self.add("gates", gate.gate, "failure", kind="gate", message=gate_words(gate))

    def write(self, info: RunInfo, properties: dict[str, str], file: BinaryIO) -> None:
        from shutil import copyfileobj  # slow to load
        from xml.etree.ElementTree import Element, SubElement, tostring

        counts = {
            "tests": str(self._counts["tests"]),
            "failures": str(self._counts["failure"]),
            "errors": str(self._counts["error"]),
            "skipped": str(self._counts["skipped"]),
            "time": f"{self._seconds:.3f}",
        }
        root = Element("testsuites", {"name": "answerkey", **counts})
        name = _attributes_of({"name": info.name, "timestamp": info.created_at[:19]})
        suite = SubElement(root, "testsuite", {**name, **counts})
        listed = SubElement(suite, "properties")
        for one, value in {"run": info.id, "target": info.target, **properties}.items():
            SubElement(listed, "property", _attributes_of({"name": f"answerkey.{one}", "value": value}))
        head, end, rest = tostring(root, "utf-8", xml_declaration=True).partition(b"</testsuite>")
        file.write(head + b"\n")
        self._body.seek(0)
        copyfileobj(self._body, file)
        file.write(end + rest + b"\n")

    def _unique(self, name: str) -> str:
        seen = self._names[name] = self._names.get(name, 0) + 1
        # The name with a suffix may itself be a question's id.
        return name if seen == 1 else self._unique(f"{name} ({seen})")


def _attributes_of(values: dict[str, str]) -> dict[str, str]:
    """Attributes without empty ones; line breaks and tabs become spaces."""
    return {name: " ".join(for_xml(value).split()) for name, value in values.items() if value}


def _content(text: str) -> str:
    return for_xml(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …")


def write_junit(run: Run, file: BinaryIO) -> None:
    """Write a run's results as JUnit XML; questions are streamed."""
    suite, summary = JUnitSuite(), run.summary
    for gate in run.gates:
        suite.add_gate(gate)
    # CI pages list failures in the order of the file: the critical ones come first, read in a pass of their own.
    passes_over = (True, False) if summary.critical_failures else (False,)
    for critical in passes_over:
        for trials in run.by_question():
            if critical == (summary.critical_failures > 0 and _is_critical_failure(trials, run)):
                _add_question(suite, trials, run)
    figures = {**summary.metrics, **summary.components}
    properties = {
        "score": score_text(summary.score),
        "grade": summary.grade or "",
        "coverage": f"{summary.coverage:g}",
        **{name: f"{value:g}" for name, value in figures.items() if value is not None},
    }
    suite.write(run.info, properties, file)


def _is_critical_failure(trials: list[Trial], run: Run) -> bool:
    is_critical = trials[0].question.severity == "critical"
    return is_critical and fails_once((trial.scorecard.total for trial in trials), run.info.pass_mark)


def _add_question(suite: JUnitSuite, trials: list[Trial], run: Run) -> None:
    question = trials[0].question
    seconds = fsum(result.latency_ms or 0.0 for result in trials) / 1000
    add = partial(suite.add, question.category, question.id, seconds=seconds)
    score = mean_score(result.scorecard.total for result in trials)
    if score is None:
        unscored = [str(loss) for loss in losses_of(trials[0].scorecard) if loss.points is None]
        add("skipped", message=": ".join(["not scored", *unscored]))
        return
    output = _transcript(trials)
    if passes(score, run.info.pass_mark):
        add(output=output)
        return
    worst = min(trials, key=lambda result: result.scorecard.total or 0.0)
    failure = worst.scorecard.error
    reasons = [str(loss) for loss in losses_of(worst.scorecard)]
    critical = "CRITICAL: " if question.severity == "critical" else ""
    add(
        # As the run counts: a reply that is itself an error is one too.
        "failure" if failure is None else "error",
        kind="score" if failure is None else failure.kind,
        message=f"{critical}score {score_text(score)} is below {run.info.pass_mark:g}: {'; '.join(reasons)}",
        text="\n".join(reasons),
        output=output,
    )


def _transcript(trials: Iterable[Trial]) -> str:
    lines: list[str] = []
    for result in trials:
        for turn, reply in zip(result.question.asks, result.replies, strict=False):
            called = ", ".join(reply.tools_used) or "none"
            lines += [f"Question: {turn.question}", f"Tools: {called}", f"Reply: {reply.text}"]
    return "\n".join(lines)


_LONGEST_EXPLANATION = 2_000
# MLflow refuses more characters in one tag.
_LONGEST_TAG = 5_000


def write_otlp(run: Run, file: BinaryIO) -> None:
    """Write OTLP/JSON log records, one `gen_ai.evaluation.result` event for each score: POST them to /v1/logs.

    An event belongs to the trace of its reply, or names its response id.
    """
    resource = _attributes(
        {"service.name": "answerkey", "answerkey.run": run.id, "answerkey.target": run.info.target}
    )
    head = {"resource": {"attributes": resource}, "scopeLogs": []}
    file.write(b'{"resourceLogs":[' + encode(head)[:-2])
    file.write(b'{"scope":{"name":"answerkey"},"logRecords":[')
    nanoseconds = str(int(_time(run).timestamp() * 1000) * 1_000_000)
    _write_list(file, (event for trial in run.results for event in _events(trial, nanoseconds)))
    file.write(b"]}]}]}\n")


def _events(trial: Trial, nanoseconds: str) -> Iterator[Json]:
    for name, score, reason in _scores(trial):
        values: dict[str, Any] = {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": float(score),
            "gen_ai.evaluation.explanation": reason,
            "gen_ai.response.id": trial.reply.response_id,
            "answerkey.question": trial.id,
            "answerkey.trial": _number(trial),
        }
        if name == "score":
            values["gen_ai.evaluation.score.label"] = "pass" if trial.passed else "fail"
        if trial.error is not None:
            values["error.type"] = trial.error.kind
        event: dict[str, Json] = {
            "timeUnixNano": nanoseconds,
            "eventName": "gen_ai.evaluation.result",
            "attributes": _attributes(values),
        }
        if _is_trace_id(trial.reply.trace_id):
            event["traceId"] = trial.reply.trace_id
        yield event


def _attributes(values: dict[str, Any]) -> list[Json]:
    """OTLP's form of attributes; None and empty ones are left out."""
    listed: list[Json] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        kind: dict[str, Json] = {"stringValue": str(value)}
        if isinstance(value, float):
            kind = {"doubleValue": value}
        elif isinstance(value, int):
            kind = {"intValue": str(value)}
        listed.append({"key": name, "value": kind})
    return listed


def _is_trace_id(text: str | None) -> bool:
    return text is not None and len(text) == 32 and all(one in "0123456789abcdef" for one in text)


def write_langfuse(run: Run, file: BinaryIO) -> None:
    """Write a Langfuse ingestion batch of scores: POST it to /api/public/ingestion.

    A score belongs to the trace of its reply; scores of replies without a trace id are left out, since Langfuse needs one.
    """
    file.write(b'{"batch":[')
    timestamp = _time(run).isoformat()
    _write_list(
        file, (score for trial in run.results for score in _langfuse_scores(trial, run.id, timestamp))
    )
    file.write(b"]}\n")


def _langfuse_scores(trial: Trial, run_id: str, timestamp: str) -> Iterator[Json]:
    if trial.reply.trace_id is None:
        return
    for name, score, reason in _scores(trial):
        # The same for the same score, so that sending a file twice changes nothing.
        identity = f"{run_id}-{trial.id}-{_number(trial)}-{name}"
        yield {
            "id": identity,
            "timestamp": timestamp,
            "type": "score-create",
            "body": {
                "id": identity,
                "traceId": trial.reply.trace_id,
                "name": name,
                "value": score,
                "dataType": "NUMERIC",
                "comment": reason,
                "metadata": {"run": run_id, "question": trial.id, "trial": _number(trial)},
            },
        }


def write_mlflow(run: Run, file: BinaryIO) -> None:
    """Write an MLflow run: `create` is the body of runs/create, `log_batch` that of runs/log-batch without its run_id."""
    info, summary = run.info, run.summary
    milliseconds = int(_time(run).timestamp() * 1000)
    figures: dict[str, float | int | None] = {
        "score": summary.score,
        **summary.components,
        **summary.metrics,
        "pass_rate": summary.pass_rate,
        "error_rate": summary.error_rate,
        "coverage": summary.coverage,
    }
    if summary.latency_ms is not None:
        figures |= {"latency_ms_p50": summary.latency_ms.p50, "latency_ms_p95": summary.latency_ms.p95}
    params = {
        "target": info.target,
        "target_version": info.target_version.words,
        "question_set": info.question_set,
        "question_set_hash": info.question_set_hash,
        "repeat": str(info.repeat),
        "match": info.match,
    }
    tags = {
        "answerkey.run": info.id,
        "answerkey.grade": summary.grade or "",
        "answerkey.tags": ", ".join(info.tags),
    }
    document: Json = {
        "create": {
            "experiment_id": "0",
            "run_name": info.name or info.id,
            "start_time": milliseconds,
            "tags": [_pair("mlflow.runName", info.name or info.id)],
        },
        "log_batch": {
            "metrics": [
                {"key": name, "value": float(value), "timestamp": milliseconds, "step": 0}
                for name, value in figures.items()
                if value is not None
            ],
            "params": [_pair(name, value) for name, value in params.items() if value],
            "tags": [_pair(name, value) for name, value in tags.items() if value],
        },
    }
    file.write(encode(document) + b"\n")


def _pair(key: str, value: str) -> Json:
    return {"key": key, "value": value[:_LONGEST_TAG]}


class _ExportedScore(NamedTuple):
    """One score of a reply."""

    name: str
    value: float
    reason: str = ""


def _scores(trial: Trial) -> Iterator[_ExportedScore]:
    """The score, its components and metrics, those that have a value."""
    if trial.score is not None:
        yield _ExportedScore("score", trial.score)
    for name, score in trial.components.items():
        if score.value is not None:
            yield _ExportedScore(name, round_score(score.value), score.reason[:_LONGEST_EXPLANATION])
    for name, value in trial.metrics.items():
        if value is not None:
            yield _ExportedScore(name, round_score(float(value)))


def _number(trial: Trial) -> int:
    return 1 if trial.number == UNNUMBERED else trial.number


def _time(run: Run) -> datetime:
    return datetime.fromisoformat(run.info.finished_at or run.info.created_at)


def _write_list(file: BinaryIO, items: Iterator[Json]) -> None:
    before = b"\n"
    for item in items:
        file.write(before + encode(item))
        before = b",\n"
