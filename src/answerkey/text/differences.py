"""Differences of two texts, word by word."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

# A number with its separators is one word: half a number changed says nothing.
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)+|\w+|[^\w\s]|\s+")


class Piece(NamedTuple):
    """A stretch of text that both have, or only one."""

    kind: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str, *, most: int = 4_000) -> list[Piece]:
    """What of `before` went and what of `after` came, over the first `most` characters of each."""
    from rapidfuzz.distance import Indel

    first, second = _TOKEN.findall(before[:most]), _TOKEN.findall(after[:most])
    pieces: list[Piece] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        # What went comes before what came in its place.
        _append(pieces, "removed", removed)
        _append(pieces, "added", added)
        removed.clear()
        added.clear()

    operations = list(Indel.opcodes(first, second))
    for place, operation in enumerate(operations):
        same = first[operation.src_start : operation.src_end] if operation.tag == "equal" else []
        # A space between two changed words is part of the changed phrase.
        between = 0 < place < len(operations) - 1 and all(token.isspace() for token in same)
        if operation.tag == "equal" and not between:
            flush()
            _append(pieces, "same", same)
        else:
            removed += first[operation.src_start : operation.src_end]
            added += second[operation.dest_start : operation.dest_end]
    flush()
    return pieces


def alike(pieces: Sequence[Piece]) -> float:
    """The share of the longer text that both have."""
    lengths = {"same": 0, "removed": 0, "added": 0}
    for piece in pieces:
        lengths[piece.kind] += len(piece.text)
    longer = lengths["same"] + max(lengths["removed"], lengths["added"])
    return lengths["same"] / longer if longer else 1.0


def _append(pieces: list[Piece], kind: Literal["same", "removed", "added"], tokens: Sequence[str]) -> None:
    text = "".join(tokens)
    if not text:
        return
    if pieces and pieces[-1].kind == kind:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    else:
        pieces.append(Piece(kind, text))
