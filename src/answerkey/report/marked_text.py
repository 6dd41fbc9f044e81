"""A text cut where something was seen in it, and what was seen."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from answerkey.text.sanitise import for_terminal

__all__ = ["Segment", "Span", "cut_at_marks"]

# Start, end, what it is, and what a reader who points at it is told.
Span = tuple[int, int, str, str]


class Segment(msgspec.Struct, frozen=True):
    """A stretch of the reply, and what was seen in it."""

    text: str
    # Any of: keyword, forbidden, linked, unlinked.
    marks: tuple[str, ...] = ()
    # What a reader who points at it is told.
    note: str = ""


def cut_at_marks(text: str, spans: Iterable[Span], most: int) -> Iterator[Segment]:
    """The text cut wherever one of the first `most` spans begins or ends; they may overlap (a keyword inside a claim)."""
    known = [
        (start, min(end, len(text)), mark, note) for start, end, mark, note in spans if start < len(text)
    ][:most]
    edges = sorted({0, len(text), *(edge for start, end, _, _ in known for edge in (start, end))})
    for start, end in pairwise(edges):
        over = [(mark, note) for first, last, mark, note in known if first <= start and last >= end]
        marks = tuple(dict.fromkeys(mark for mark, _ in over))
        yield Segment(
            for_terminal(text[start:end]), marks, "; ".join(dict.fromkeys(note for _, note in over))
        )
