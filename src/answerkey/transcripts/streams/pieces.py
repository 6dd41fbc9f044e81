"""Text that arrives in pieces: joined by the part that it belongs to, or under the usual names where there is no protocol."""

from collections.abc import Hashable
from itertools import pairwise

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["Growing", "Pieces", "assemble_pieces"]

_NAMES = ("answer", "response", "text", "output", "message", "content", "reply", "delta", "token", "chunk")


class Pieces:
    """The pieces of each part's text so far."""

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[str]] = {}

    def add(self, part: Hashable, piece: object) -> None:
        """Add to a part's text; what is not text is no piece of it."""
        if isinstance(piece, str):
            self._pieces.setdefault(part, []).append(piece)

    def text(self, part: Hashable) -> str | None:
        """A part's text: its pieces joined, None if there is none."""
        return "".join(self._pieces[part]) if part in self._pieces else None

    def grown_text(self, part: Hashable) -> str | None:
        """The same for streams where each piece may repeat what came before: then the last one is the text."""
        pieces = self._pieces.get(part, [])
        grows = len(pieces) > 1 and all(
            len(later) > len(earlier) and later.startswith(earlier) for earlier, later in pairwise(pieces)
        )
        return pieces[-1] if grows else self.text(part)


class Growing:
    """Objects in the order in which a stream began them, found by a key; some of their fields grow by pieces."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, JsonObject] = {}
        self._pieces = Pieces()
        self._grown: dict[tuple[Hashable, str], None] = {}

    def part(self, key: Hashable, /, **begun: Json) -> JsonObject:
        """The object of a key; begun with these fields if it is new."""
        if key not in self._parts:
            self._parts[key] = begun
        return self._parts[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._parts

    def grow(self, key: Hashable, field: str, piece: object) -> None:
        """Add a piece to a field."""
        if isinstance(piece, str):
            self._grown[key, field] = None
            self._pieces.add((key, field), piece)

    def forget(self, key: Hashable, field: str) -> None:
        """Let go of the pieces of a field that has come whole."""
        self._grown.pop((key, field), None)

    def finished(self) -> list[JsonObject]:
        """All of them, grown."""
        for key, field in self._grown:
            if key in self._parts:
                begun = self._parts[key].get(field)
                said = self._pieces.text((key, field)) or ""
                self._parts[key][field] = begun + said if isinstance(begun, str) else said
        self._grown.clear()
        return list(self._parts.values())


def assemble_pieces(events: list[Json]) -> JsonObject:
    """Pieces of text under the usual names as an answer; of other fields the last word counts."""
    document: JsonObject = {}
    pieces = Pieces()
    for event in events:
        named = {"text": event} if isinstance(event, str) else as_dict(event)
        for name, value in named.items():
            if name in _NAMES and isinstance(value, str):
                pieces.add(name, value)
            elif value is not None or name not in document:
                document[name] = value
    answer = next((said for name in _NAMES if (said := pieces.grown_text(name)) is not None), None)
    return document if answer is None else {**document, "answer": answer}
