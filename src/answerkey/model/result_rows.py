"""One row per reply: the run document's entries as lines of JSON, which row files hold and the document is put together from."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec

from answerkey.model.run import LoggedResults
from answerkey.model.run_document import result_document
from answerkey.model.trial import Trial
from answerkey.text.sanitise import without_surrogates

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
