"""One row per reply: the document that row files (.jsonl, .csv, .parquet, .xlsx) hold of each result."""

from typing import Any

import msgspec

from answerkey.model.run_document import result_document
from answerkey.model.trial import Trial
from answerkey.text.sanitise import without_surrogates

__all__ = ["RowLine", "encode", "numbered_line", "row_document", "row_line"]

# A row on its line, and where in it the trial's number stands that only the whole log gives it; 0: it has its own.
RowLine = tuple[int, bytes]
_encoder = msgspec.json.Encoder(enc_hook=repr)


def row_document(result: Trial) -> dict[str, Any]:
    """An entry of the run document's `results`, with the reply's error beside it."""
    document = result_document(result)
    document["error"] = document["reply"]["error"]
    return document


def encode(document: object) -> bytes:
    """JSON in UTF-8 on one line, whatever the chatbot's texts hold."""
    try:
        return _encoder.encode(document)
    except UnicodeEncodeError:
        return _encoder.encode(without_surrogates(document))


def row_line(result: Trial) -> RowLine:
    """A result's row, made where it was scored; one without a number is taken for its question's first."""
    if result.number:
        return 0, encode(row_document(result)) + b"\n"
    document = row_document(result)
    document["trial"] = 1
    # It stands behind the id, which is the first field.
    return len(b'{"id":,"trial":') + len(encode(document["id"])), encode(document) + b"\n"


def numbered_line(at: int, line: bytes, number: int) -> bytes:
    """A row's line with the number that the whole log gives it."""
    return line if not at or number == 1 else b"%b%d%b" % (line[:at], number, line[at + 1 :])
