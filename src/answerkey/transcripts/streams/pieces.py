"""Text that arrives in pieces: joined by the part that it belongs to, or under the usual names where there is no protocol."""

from itertools import pairwise

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["Pieces", "assemble_pieces"]

_NAMES = ("answer", "response", "text", "output", "message", "content", "reply", "delta", "token", "chunk")


class Pieces:
    """The pieces of each part's text so far."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}

    def add(self, part: str, piece: object) -> None:
        """Add to a part's text; what is not text is no piece of it."""
        if isinstance(piece, str):
            self._pieces.setdefault(part, []).append(piece)

    def text(self, part: str) -> str | None:
        """A part's text: its pieces joined, None if there is none."""
        return "".join(self._pieces[part]) if part in self._pieces else None

    def grown_text(self, part: str) -> str | None:
        """The same for streams where each piece may repeat what came before: then the last one is the text."""
        pieces = self._pieces.get(part, [])
        grows = len(pieces) > 1 and all(
            len(later) > len(earlier) and later.startswith(earlier) for earlier, later in pairwise(pieces)
        )
        return pieces[-1] if grows else self.text(part)


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
