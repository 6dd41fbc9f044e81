"""One row per reply: the run document's entries as lines of JSON, which row files hold and the document is put together from."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from answerkey.errors import UsageError
from answerkey.model.run import LoggedResults
from answerkey.model.run_document import result_document, run_header
from answerkey.model.scorecard import Trial, shown_score
from answerkey.text.normalise import without_surrogates

if TYPE_CHECKING:
    from answerkey.model.run import Run


# What a table has no columns for.
_NOT_IN_TABLES = (
    *("timings", "usage", "evidence", "finish", "reasoning"),
    *("conversation_id", "response_id", "trace_id"),
)
# What a tool was given and gave back may have any shape, and fills a column as JSON; lines with one of these marks are looked at.
_ANY_SHAPE = ("arguments", "result")
_MARKS = (b'"arguments":', b'"result":', b'"checks":')
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
    checked = document["components"].get("checks") or document.get("findings", {}).get("checks")
    if checked:
        document["checks"] = checked.get("checks")
    return document


def table_lines(results: Iterable[Trial]) -> Iterable[bytes]:
    """All results as rows for a table, some lines at a time."""
    if isinstance(results, LoggedResults) and results.lines is not None:
        return map(_lines_for_table, results.lines())
    return (encode(for_table(result_document(result))) + b"\n" for result in results)


def _lines_for_table(lines: bytes) -> bytes:
    # A table ignores fields that it has no column for; only these must be rewritten.
    if not any(mark in lines for mark in _MARKS):
        return lines
    return b"".join([_line_for_table(line) for line in lines.splitlines(keepends=True)])


def _line_for_table(line: bytes) -> bytes:
    if not any(mark in line for mark in _MARKS):
        return line
    return encode(for_table(_decode(line))) + b"\n"


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
