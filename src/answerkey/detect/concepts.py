"""What a text speaks of, in 32 languages: apology, error, another try, machinery, … as `data/concepts.txt` lists them.

A concept is no verdict. It is what lets a weight that was fitted to one language hold in the others.
"""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from answerkey.text.lazy import lazy

__all__ = ["CONCEPTS", "UNSPACED", "Mention", "find_mentions"]

CONCEPTS = (
    "sorry", "error", "fail", "cannot", "retry", "later", "machine", "timeout", "limit", "busy", "down", "now", "request",
    "result", "support", "memory", "load", "but", "explain", "solved", "advise", "absent", "policy", "askback",
)  # fmt: skip
# Thai, kana, Han, Hangul: there a term matches anywhere.
UNSPACED = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = lazy(r"[^\W_]{2,}")
# A term this long also matches longer words that begin with it.
_PREFIX_LENGTH = 5


class Mention(NamedTuple):
    """One place where a concept is spoken of."""

    start: int
    end: int
    # Its number in CONCEPTS.
    concept: int


class _Terms(NamedTuple):
    # The first three letters → terms of languages with spaces, each with its concepts.
    spaced: dict[str, list[tuple[str, int]]]
    # The first character → terms of the other languages.
    unspaced: dict[str, list[tuple[str, int]]]


@cache
def _read_terms() -> _Terms:
    terms = _Terms({}, {})
    concept = -1
    for line in (files("answerkey.detect") / "data" / "concepts.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            concept = CONCEPTS.index(line.strip("[]"))
        elif line and not line.startswith("#"):
            for term in {term.strip().lower() for term in line.partition(" ")[2].split(";")}:
                if UNSPACED.search(term):
                    _add(terms.unspaced, term[:1], (term, concept))
                elif len(term) >= 3:
                    _add(terms.spaced, term[:3], (term, concept))
    return terms


def _add(table: dict[str, list[tuple[str, int]]], key: str, entry: tuple[str, int]) -> None:
    entries = table.setdefault(key, [])
    if entry not in entries:
        entries.append(entry)


def find_mentions(lowered: str) -> list[Mention]:
    """Every mention of a concept in a text in small letters, in the order of the text within each kind of script."""
    spaced, unspaced = _read_terms()
    mentions = []
    length = len(lowered)
    for word in _WORD.finditer(lowered):
        start = word.start()
        for term, concept in spaced.get(lowered[start : start + 3], ()):
            if lowered.startswith(term, start):
                end = start + len(term)
                if len(term) >= _PREFIX_LENGTH or end == length or not lowered[end].isalnum():
                    mentions.append(Mention(start, end, concept))
    if UNSPACED.search(lowered):
        for start, character in enumerate(lowered):
            for term, concept in unspaced.get(character, ()):
                if lowered.startswith(term, start):
                    mentions.append(Mention(start, start + len(term), concept))
    return mentions
