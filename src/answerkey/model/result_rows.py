"""One row per reply: the document that row files (.jsonl, .csv, .parquet, .xlsx) hold of each result."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from answerkey.model.run_document import result_document
from answerkey.model.trial import Trial
from answerkey.text.sanitise import without_surrogates

# In the place of a trial's number that only the whole log gives it; no JSON has a zero byte.
OPEN = b"\0"
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


def row_line(result: Trial) -> bytes:
    """A result's row, made where it was scored."""
    document = row_document(result)
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
