"""Text that arrives in pieces: joined by the part that it belongs to, or under the usual names where there is no protocol."""

from collections.abc import Hashable
from itertools import pairwise

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict

_NAMES = ("answer", "response", "text", "output", "message", "content", "reply", "delta", "token", "chunk")


class Growing:
    """Objects in the order in which a stream began them, found by a key; some of their fields grow by pieces."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, JsonObject] = {}
        self._pieces: dict[tuple[Hashable, str], list[str]] = {}

    def part(self, key: Hashable, /, **begun: Json) -> JsonObject:
        """The object of a key; begun with these fields if it is new."""
        return self._parts.setdefault(key, begun)

    def grow(self, key: Hashable, field: str, piece: object) -> None:
        """Add a piece to a field; what is not text is no piece of it."""
        if isinstance(piece, str):
            self._pieces.setdefault((key, field), []).append(piece)

    def forget(self, key: Hashable, field: str) -> None:
        """Let go of the pieces of a field that has come whole."""
        self._pieces.pop((key, field), None)

    def finished(self) -> list[JsonObject]:
        """All of them, grown."""
        for (key, field), pieces in self._pieces.items():
            if key in self._parts:
                begun = self._parts[key].get(field)
                self._parts[key][field] = "".join([begun, *pieces] if isinstance(begun, str) else pieces)
        self._pieces.clear()
        return list(self._parts.values())


def assemble_pieces(events: list[Json]) -> JsonObject:
    """Pieces of text under the usual names as an answer; of other fields the last word counts."""
    document: JsonObject = {}
    said: dict[str, list[str]] = {}
    for event in events:
        named = {"text": event} if isinstance(event, str) else as_dict(event)
        for name, value in named.items():
            if name in _NAMES and isinstance(value, str):
                said.setdefault(name, []).append(value)
            elif value is not None or name not in document:
                document[name] = value
    answer = next((_joined(said[name]) for name in _NAMES if name in said), None)
    return document if answer is None else {**document, "answer": answer}


def _joined(pieces: list[str]) -> str:
    """The text of pieces; where each repeats what came before, the last one is it."""
    grows = len(pieces) > 1 and all(
        len(later) > len(earlier) and later.startswith(earlier) for earlier, later in pairwise(pieces)
    )
    return pieces[-1] if grows else "".join(pieces)
