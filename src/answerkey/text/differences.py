"""Differences of two texts, word by word."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

__all__ = ["Piece", "word_diff"]

# A word goes with the space after it, so that a changed phrase stays one piece.
_TOKEN = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


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

    for operation in Indel.opcodes(first, second):
        if operation.tag == "equal":
            flush()
            _append(pieces, "same", first[operation.src_start : operation.src_end])
        else:
            removed += first[operation.src_start : operation.src_end]
            added += second[operation.dest_start : operation.dest_end]
    flush()
    return pieces


def _append(pieces: list[Piece], kind: Literal["same", "removed", "added"], tokens: Sequence[str]) -> None:
    text = "".join(tokens)
    if not text:
        return
    if pieces and pieces[-1].kind == kind:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    else:
        pieces.append(Piece(kind, text))
