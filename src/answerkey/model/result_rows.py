"""One row per reply: the run document's entries as lines of JSON, which row files hold and the document is put together from."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from answerkey.errors import UsageError
from answerkey.model.run import LoggedResults
from answerkey.model.run_document import result_document
from answerkey.model.scorecard import Trial, shown_score
from answerkey.text.normalise import without_surrogates

if TYPE_CHECKING:
    from answerkey.model.run import Run
    from answerkey.model.scorecard import Trial


# What is kept of a log's results one by one: trials, or rows to be written, whole ones or those that fill a table.
Kept = Literal["nothing", "trials", "lines", "table lines"]
# What a table has no columns for.
_NOT_IN_TABLES = (
    *("timings", "usage", "evidence", "finish", "reasoning"),
    *("conversation_id", "response_id", "trace_id"),
)
# What a tool was given and gave back may have any shape, and fills a column as JSON; lines with one of these marks are looked at.
_ANY_SHAPE = ("arguments", "result")
_MARKS = (b'"arguments":', b'"result":', b'"checks":')
# In the place of a trial's number that only the whole log gives it; no JSON has a zero byte.
OPEN = b"\0"
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
    return (encode(result_document(result)) + b"\n" for result in results)


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
    if not isinstance(results, LoggedResults) or results.lines is None:
        return (encode(for_table(result_document(result))) + b"\n" for result in results)
    return results.lines() if results.for_table else map(_lines_for_table, results.lines())


def _lines_for_table(lines: bytes) -> bytes:
    # What else they have, a table leaves out by itself.
    if not any(mark in lines for mark in _MARKS):
        return lines
    return b"".join([encode(for_table(_decode(line))) + b"\n" for line in lines.splitlines()])


def row_line(result: Trial, kept: Kept) -> bytes:
    """A result's row, made where it was scored."""
    document = result_document(result)
    if kept == "table lines":
        document = for_table(document)
    if not result.number:
        document["trial"] = msgspec.Raw(OPEN)
    return encode(document) + b"\n"


class RowLines(msgspec.Struct, array_like=True):
    """Rows of a log on their lines, one after the other."""

    # OPEN stands for each number that is.
    text: bytes
    # The places in the log of the rows that these are of.
    places: list[int]

    @classmethod
    def of(cls, lines: Sequence[tuple[int, bytes]]) -> "RowLines":
        """Lines put together, each with its row's place."""
        return cls(b"".join([line for _, line in lines]), [place for place, line in lines if OPEN in line])

    def numbered(self, numbers: Sequence[int]) -> bytes:
        """The text with the number that the whole log gives to the row at each place."""
        between = self.text.split(OPEN)
        given = [b"%d" % numbers[place] for place in self.places]
        return b"".join(chain.from_iterable(zip(between, (*given, b""), strict=True)))


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
        "latency_ms": reply["latency_ms"],
        **{name: value for name, value in document["metrics"].items() if name not in document["components"]},
    }


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
    yield "<table><tr>" + "".join(f'<th style="{_STYLE}">{escape(name)}</th>' for name in head) + "</tr>"
    for row in rows:
        cells = (escape(cell if len(cell) <= 200 else f"{cell[:199]}…") for cell in row)
        yield "<tr>" + "".join(f'<td style="{_STYLE}">{cell}</td>' for cell in cells) + "</tr>"
    yield "</table>"
