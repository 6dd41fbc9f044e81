"""The run document of `run --json`, `show --json` and `report -o x.json`, its JSON Schema, and its entries as rows.

A row is an entry of `results` as a line of JSON, one for each reply: row files hold them, and the document is put together from
them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Failure, Json, JsonObject, Reply, ToolCall
from answerkey.model.run import LoggedResults
from answerkey.model.scorecard import (
    UNNUMBERED,
    Scorecard,
    Trial,
    details,
    reason,
    shown_score,
    total_latency,
)
from answerkey.text.normalise import without_surrogates

if TYPE_CHECKING:
    from answerkey.model.run import Run


# Applied to the structs in a document.
Convert = Callable[[Any], Any]
# Version of the document's layout.
SCHEMA = 1
# Fields of RunInfo in the document.
_RUN_FIELDS = (
    *("id", "name", "status", "created_at", "finished_at", "target", "target_hash"),
    *("question_set", "question_set_hash", "repeat", "match", "weights", "pass_mark"),
)


def run_document(run: "Run") -> dict[str, Any]:
    """The whole document, in memory."""
    return {**run_header(run), "results": [result_document(result) for result in run.results]}


def run_header(run: "Run") -> dict[str, Any]:
    """The run document without its results, which writers stream."""
    info = run.info
    plain: dict[str, Any] = msgspec.to_builtins(run.summary)
    del plain["name"]
    plain["truth"] = None if info.truth is None else msgspec.to_builtins(info.truth)
    return {
        "schema": SCHEMA,
        "run": {
            **{name: getattr(info, name) for name in _RUN_FIELDS},
            "status": info.status,
            "target_version": msgspec.to_builtins(info.target_version) or None,
            "tags": list(info.tags),
            **({"directions": info.directions} if info.directions else {}),
            **({"rescored": msgspec.to_builtins(info.rescored)} if info.rescored else {}),
        },
        "summary": plain,
        "categories": [{"category": part.pop("name"), **part} for part in plain.pop("categories")],
        "slices": plain.pop("slices"),
        **({} if info.judge is None else {"judge": msgspec.to_builtins(info.judge)}),
        "gates": [msgspec.to_builtins(gate) for gate in run.gates],
        "warnings": list(run.warnings),
        **({} if run.comparison is None else {"comparison": run.comparison.to_dict()}),
    }


def result_document(result: Trial, convert: Convert = msgspec.to_builtins) -> dict[str, Any]:
    """One entry of `results`; that of a conversation also has its turns.

    `convert` is applied to the structs in it; a JSON writer needs no conversion.
    """
    question, card = result.question, result.scorecard
    reply = reply_document(result.replies, card, convert)
    document = {
        "id": question.id,
        "trial": 1 if result.number == UNNUMBERED else result.number,
        "question": question.question,
        "category": question.category,
        **scorecard_document(card, convert),
        "reply": reply,
        "metrics": card.metrics,
        # At the top level too, as in row files.
        "error": reply["error"],
    }
    if result.origin is not None:
        if result.origin.line is not None:
            document["line"] = result.origin.line
        document |= {"columns": result.origin.columns} if result.origin.columns else {}
    if card.findings:
        document["findings"] = card.findings
    if question.turns:
        document["turns"] = [
            {
                "question": turn.question,
                **scorecard_document(turn_card, convert),
                "reply": reply_document((reply,), turn_card, convert),
                "metrics": turn_card.metrics,
                **({"findings": turn_card.findings} if turn_card.findings else {}),
            }
            for turn, reply, turn_card in zip(question.turns, result.replies, card.turns, strict=False)
        ]
    return document


def scorecard_document(card: Scorecard, convert: Convert = msgspec.to_builtins) -> dict[str, Any]:
    """A score with its components and reasons."""
    return {
        "score": card.total,
        "grade": card.grade,
        "passed": card.passed,
        "components": {
            name: {
                "score": score.value,
                "weight": score.weight,
                "reason": reason(score),
                **details(score, convert),
            }
            for name, score in card.components.items()
        },
    }


def reply_document(
    replies: Sequence[Reply], card: Scorecard | None = None, convert: Convert = msgspec.to_builtins
) -> dict[str, Any]:
    """The reply; of a conversation the last one, with the tools, sources and total time of all turns."""
    if not replies:
        return {
            "text": None,
            "tools_used": [],
            "tool_calls": [],
            "sources": [],
            "error": None,
            "latency_ms": None,
        }
    last = replies[-1]
    calls, sources, failures = last.tool_calls, last.sources, [last.failure]
    if len(replies) > 1:
        calls = tuple(call for reply in replies for call in reply.tool_calls)
        sources = tuple(source for reply in replies for source in reply.sources)
        failures = [reply.failure for reply in replies]
    # Errors that are not charged to the chatbot are shown too.
    charged = None if card is None else card.error
    error = charged or next(filter(None, failures), None)
    latency = total_latency(replies)
    return {
        "text": last.text,
        "tools_used": [call.name for call in calls],
        "tool_calls": [convert(call) for call in calls],
        "sources": [convert(source) for source in sources],
        "error": None if error is None else _error_document(error, failures),
        "latency_ms": None if latency is None else round(latency, 3),
        "timings": convert(last.timings),
        "usage": convert(last.usage),
        "evidence": convert(last.evidence),
        "finish": last.finish,
        "reasoning": last.reasoning,
        "conversation_id": last.conversation_id,
        "response_id": last.response_id,
        "trace_id": last.trace_id,
    }


def _error_document(error: Failure, failures: Iterable[Failure | None]) -> dict[str, str]:
    document = {"kind": error.kind, "message": error.message}
    traces = (failure.traceback for failure in failures if failure is not None)
    if trace := next(filter(None, traces), ""):
        document["traceback"] = trace
    return document


# The JSON Schema: what every version with this schema number has.


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": ["number", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_GRADE: Json = {"enum": ["A", "B", "C", "D", "F", None]}


def _object(fields: JsonObject, *optional: str) -> JsonObject:
    """An object with these fields; a later version may have more."""
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


def _list_of(items: Json) -> JsonObject:
    return {"type": "array", "items": items}


def run_schema() -> JsonObject:
    """The schema of `run --json`, `show --json` and `report -o x.json`."""
    document: JsonObject = {
        "schema": {"const": SCHEMA},
        "run": _RUN,
        "summary": _object(
            {"score": _NUMBER, "grade": _GRADE, "questions": _COUNT, "replies": _COUNT, "coverage": _NUMBER}
        ),
        "categories": _list_of(_object({"category": _TEXT, "score": _NUMBER})),
        "gates": _list_of(_object({"gate": _TEXT, "passed": {"type": "boolean"}, "value": True})),
        "warnings": _list_of(_TEXT),
        "results": _list_of(_result()),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of answerkey",
        **_object(document),
    }


def _result() -> JsonObject:
    component = _object({"score": _NUMBER, "weight": _NUMBER, "reason": _TEXT})
    graded: JsonObject = {
        "score": _NUMBER,
        "grade": _GRADE,
        "passed": {"type": ["boolean", "null"]},
        "components": {"type": "object", "additionalProperties": component},
    }
    return _object(
        {
            "id": _TEXT,
            "trial": _COUNT,
            "question": _TEXT,
            "category": _TEXT,
            **graded,
            "reply": _REPLY,
            "metrics": {"type": "object"},
            "error": _ERROR,
            "turns": _list_of(_object({"question": _TEXT, **graded, "reply": _REPLY})),
        },
        "error",
        "turns",
    )


_ERROR: Json = {"anyOf": [{"type": "null"}, _object({"kind": _TEXT, "message": _TEXT})]}
_REPLY = _object(
    {
        "text": {"type": ["string", "null"]},
        "tools_used": _list_of(_TEXT),
        "tool_calls": _list_of({"type": "object"}),
        "sources": _list_of({"type": "object"}),
        "error": _ERROR,
        "latency_ms": _NUMBER,
    }
)
_RUN = _object(
    {
        "id": _TEXT,
        "name": _TEXT,
        "status": {"enum": ["running", "interrupted", "partial", "complete"]},
        "created_at": _TEXT,
        "target": _TEXT,
        "question_set": _TEXT,
        "question_set_hash": _TEXT,
        "repeat": _COUNT,
        "match": _TEXT,
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
    }
)


# What a table has no columns for.
_NOT_IN_TABLES = (
    *("timings", "usage", "evidence", "finish", "reasoning"),
    *("conversation_id", "response_id", "trace_id"),
)
# What a tool was given and gave back may have any shape, and fills a column as JSON; lines with one of these marks are looked at.
_ANY_SHAPE = ("arguments", "result")
_MARKS = (b'"arguments":', b'"result":', b'"checks":', b'"columns":')
_encoder = msgspec.json.Encoder(enc_hook=repr)
_decode = msgspec.json.Decoder().decode


def encode(document: object) -> bytes:
    """JSON in UTF-8 on one line, whatever the chatbot's texts hold."""
    try:
        return _encoder.encode(document)
    except UnicodeEncodeError:
        return _encoder.encode(without_surrogates(document))


def result_lines(results: Iterable[Trial]) -> Iterable[bytes]:
    """All results as rows, some lines at a time; those of a log may be on their lines already."""
    if isinstance(results, LoggedResults) and results.lines is not None:
        return results.lines()
    return map(row_line, results)


def write_json(run: "Run", file: BinaryIO) -> None:
    """Write the run document; memory does not grow with the number of results."""
    # Drop the header's closing brace to append the results.
    file.write(encode(run_header(run))[:-1])
    file.write(b',"results":[')
    before = b"\n"
    for lines in result_lines(run.results):
        # A line of JSON contains no line break.
        file.write(before + lines[:-1].replace(b"\n", b",\n"))
        before = b",\n"
    file.write(b"\n]}\n")


def write_jsonl(run: "Run", file: BinaryIO) -> None:
    """Write one object per result."""
    file.writelines(result_lines(run.results))


def for_table(document: dict[str, Any]) -> dict[str, Any]:
    """A result's document with what a table has columns for, which makes it half as long."""
    reply = {name: value for name, value in document["reply"].items() if name not in _NOT_IN_TABLES}
    reply["tool_calls"] = [
        {**call, **{name: encode(call[name]).decode() for name in _ANY_SHAPE if call.get(name) is not None}}
        for call in reply["tool_calls"]
    ]
    document["reply"] = reply
    for component in document["components"].values():
        component.pop("matches", None)
    if "columns" in document:
        columns = document["columns"].items()
        document["columns"] = {
            name: value if isinstance(value, str) else encode(value).decode() for name, value in columns
        }
    checked = document["components"].get("checks") or document.get("findings", {}).get("checks")
    if checked:
        document["checks"] = checked.get("checks")
    return document


def table_lines(results: Iterable[Trial]) -> Iterable[bytes]:
    """All results as rows for a table, some lines at a time; those of a log may be on their lines already."""
    if isinstance(results, LoggedResults) and results.table_lines is not None:
        return results.table_lines()
    if isinstance(results, LoggedResults) and results.lines is not None:
        return map(_lines_for_table, results.lines())
    return map(table_line, results)


def _lines_for_table(lines: bytes) -> bytes:
    # A table ignores fields that it has no column for; only these must be rewritten.
    if not any(mark in lines for mark in _MARKS):
        return lines
    return b"".join([_line_for_table(line) for line in lines.splitlines(keepends=True)])


def _line_for_table(line: bytes) -> bytes:
    if not any(mark in line for mark in _MARKS):
        return line
    return encode(for_table(_decode(line))) + b"\n"


def table_line(result: Trial) -> bytes:
    """A result's row for a table as a line of JSON; the trial number of a row without one is written as 1."""
    try:
        return _encoder.encode(for_table(result_document(result, _plain_call))) + b"\n"
    except UnicodeEncodeError:
        return encode(for_table(result_document(result))) + b"\n"


def _plain_call(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, ToolCall) else value


def row_line(result: Trial) -> bytes:
    """A result's row as a line of JSON; the trial number of a row without one is written as 1."""
    try:
        return _encoder.encode(result_document(result, _as_it_is)) + b"\n"
    except UnicodeEncodeError:
        return encode(result_document(result)) + b"\n"


def _as_it_is(value: Any) -> Any:
    return value


# A run as people look at it in Python: a row for each result, a DataFrame, and a page's worth of HTML in a notebook.


# Rows that a notebook shows; all of them are in `rows()`.
_MOST_ROWS = 20
_STYLE = "text-align:left;padding:2px 8px"


def result_row(trial: "Trial") -> dict[str, Any]:
    """A result as one flat row, under the names of the run document; components and metrics are columns."""
    document = result_document(trial)
    reply, error = document["reply"], document["reply"]["error"] or {}
    return {
        **{
            name: document[name]
            for name in ("id", "trial", "category", "question", "score", "grade", "passed")
        },
        **{name: part["score"] for name, part in document["components"].items()},
        "answer": reply["text"],
        "tools_used": reply["tools_used"],
        "error": error.get("kind"),
        "error_message": error.get("message"),
        "suspected": suspected_words(document),
        "latency_ms": reply["latency_ms"],
        **{name: value for name, value in document["metrics"].items() if name not in document["components"]},
    }


def suspected_words(document: dict[str, Any]) -> str | None:
    """The words by which a result's reply is suspected to be an error; None: it is not."""
    suspected = document["components"].get("error_handling", {}).get("suspected")
    return None if suspected is None else suspected["words"]


def data_frame(run: "Run") -> Any:
    """The rows as a pandas DataFrame."""
    try:
        import pandas  # an optional dependency, and heavy
    except ImportError:
        raise UsageError(
            "to_pandas needs pandas: pip install pandas; rows() gives plain dictionaries"
        ) from None
    return pandas.DataFrame(run.rows())


def run_html(run: "Run") -> str:
    """The grade, the components, the gates, and the results that lost most."""
    return "".join(_parts(run))


def _parts(run: "Run") -> Iterator[str]:
    from html import escape  # for notebooks only

    summary = run.summary
    interval = summary.interval
    spread = (
        ""
        if interval is None
        else f", {interval.level:.0%} interval {shown_score(interval.low)}–{shown_score(interval.high)}"
    )
    yield f"<b>{escape(run.info.name)}</b> ({escape(run.info.target)}): "
    yield f"{shown_score(summary.score)} {summary.grade or ''}{spread}; "
    yield f"{summary.passed} of {summary.questions} questions passed"
    yield from _table(
        [(name, shown_score(value)) for name, value in summary.components.items()], ("component", "score")
    )
    if run.gates:
        checked = [(gate.gate, "passed" if gate.passed else f"failed{gate.because}") for gate in run.gates]
        yield from _table(checked, ("gate", ""))
    worst = sorted(run.results, key=lambda trial: -1.0 if trial.score is None else trial.score)[:_MOST_ROWS]
    rows = [
        (
            trial.id,
            shown_score(trial.score),
            trial.question.question,
            trial.reply.text or str(trial.error or ""),
        )
        for trial in worst
    ]
    yield from _table(rows, ("id", "score", "question", "reply"))


def _table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> Iterator[str]:
    from html import escape

    yield "<table><tr>" + "".join(f'<th style="{_STYLE}">{escape(name)}</th>' for name in head) + "</tr>"
    for row in rows:
        cells = (escape(cell if len(cell) <= 200 else f"{cell[:199]}…") for cell in row)
        yield "<tr>" + "".join(f'<td style="{_STYLE}">{cell}</td>' for cell in cells) + "</tr>"
    yield "</table>"
