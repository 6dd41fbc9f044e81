"""Passages: a Markdown document cut into its sections, long ones into pieces of whole sentences."""

import re

import msgspec

__all__ = ["Passage", "sentences", "split_document"]

_MAX_WORDS = 120
# A full stop ends a sentence unless it belongs to an abbreviation or an initial.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\bInc\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\bp\.m\.)(?<!\ba\.m\.)(?<!\b[A-Z]\.)\s+(?=[A-Z0-9“\"(])"
)


class Passage(msgspec.Struct, frozen=True):
    """A piece of a document that is found and quoted as one."""

    # id of the document
    document: str
    title: str
    # heading of the section that it comes from
    heading: str
    text: str


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [s.strip() for s in _SENTENCE_END.split(text) if s.strip()]


def split_document(document: str, title: str, markdown: str) -> list[Passage]:
    """The passages of a Markdown document, in order."""
    passages: list[Passage] = []
    heading, lines = "", list[str]()

    def close() -> None:
        text = " ".join(" ".join(lines).split())
        lines.clear()
        piece: list[str] = []
        for sentence in sentences(text):
            if piece and len(" ".join([*piece, sentence]).split()) > _MAX_WORDS:
                passages.append(Passage(document, title, heading, " ".join(piece)))
                piece = []
            piece.append(sentence)
        if piece:
            passages.append(Passage(document, title, heading, " ".join(piece)))

    for line in markdown.splitlines():
        if line.startswith("#"):
            close()
            level = len(line) - len(line.lstrip("#"))
            heading = "" if level == 1 else re.sub(r"^\d+\.\s*", "", line.lstrip("#").strip())
        else:
            lines.append(line.strip())
    close()
    return passages
