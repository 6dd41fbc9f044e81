"""One row per reply: the document that row files (.jsonl, .csv, .parquet) hold of each result."""

from typing import Any

import msgspec

from answerkey.model.run_document import result_document
from answerkey.model.trial import Trial
from answerkey.text.sanitise import without_surrogates

__all__ = ["encode", "row_document"]

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
