"""What a text speaks of, in 32 languages: apology, error, another try, machinery, … as `data/concepts.txt` lists them.

A concept is no verdict. It is what lets a weight that was fitted to one language hold in the others.
"""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from answerkey.text.lazy import lazy

CONCEPTS = (
    "sorry", "error", "fail", "cannot", "retry", "later", "machine", "timeout", "limit", "busy", "down", "now", "request",
    "result", "support", "memory", "load", "but", "explain", "solved", "advise", "absent", "policy", "askback", "unknown",
)  # fmt: skip
# Thai, kana, Han, Hangul: there a term matches anywhere.
UNSPACED = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = lazy(r"[^\W_]+")
# A term this long also matches longer words that begin with it.
_PREFIX_LENGTH = 5

# A term and the bit of its concept.
_Entries = list[tuple[str, int]]


class _Terms(NamedTuple):
    # The first three letters → terms of one word in languages with spaces.
    words: dict[str, _Entries]
    # The first character → terms of the other languages.
    unspaced: dict[str, _Entries]
    # The first word → the first two letters of the next → terms of several words.
    phrases: dict[str, dict[str, _Entries]]
    # Words that call for another one.
    open: set[str]


@cache
def _read_terms() -> _Terms:
    terms = _Terms({}, {}, {}, set())
    bit = 0
    for line in (files("answerkey.detect") / "data" / "concepts.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            bit = 0 if line == "[open]" else mask_of(line.strip("[]"))
        elif line and not line.startswith("#"):
            for term in {term.strip().lower() for term in line.partition(" ")[2].split(";")}:
                if not bit:
                    terms.open.add(term)
                elif " " in term:
                    first, following, *_ = term.split()
                    _add(terms.phrases.setdefault(first, {}), following[:2], (term, bit))
                elif UNSPACED.search(term):
                    _add(terms.unspaced, term[:1], (term, bit))
                elif len(term) >= 3:
                    _add(terms.words, term[:3], (term, bit))
    return terms


def _add(table: dict[str, _Entries], key: str, entry: tuple[str, int]) -> None:
    entries = table.setdefault(key, [])
    if entry not in entries:
        entries.append(entry)


def mask_of(*concepts: str) -> int:
    """The concepts as bits of one number."""
    return sum(1 << CONCEPTS.index(concept) for concept in concepts)


@cache
def said_in(mask: int) -> tuple[int, ...]:
    """The numbers of the concepts in a mask."""
    return tuple(n for n in range(len(CONCEPTS)) if mask >> n & 1)


@cache
def said_together(mask: int) -> tuple[int, ...]:
    """Each pair of concepts in a mask, as one number."""
    said = said_in(mask)
    return tuple(one * len(CONCEPTS) + two for one in said for two in said if one < two)


def is_open(word: str) -> bool:
    """Whether a word calls for another one; without spaces, whether its end does."""
    words = _read_terms().open
    return word in words or (
        UNSPACED.search(word) is not None and any(word[-n:] in words for n in (1, 2, 3, 4))
    )


def find_concepts(word: str) -> tuple[int, dict[str, _Entries] | None]:
    """The concepts that a word in small letters speaks of, and by the next word's first letters the terms that begin with it."""
    terms = _read_terms()
    mask = 0
    phrases = None
    for part in _WORD.finditer(word):
        start = part.start()
        for term, bit in terms.words.get(word[start : start + 3], ()):
            end = start + len(term)
            if word.startswith(term, start) and (
                len(term) >= _PREFIX_LENGTH or not word[end : end + 1].isalnum()
            ):
                mask |= bit
        phrases = terms.phrases.get(word[start:], phrases)
    if UNSPACED.search(word):
        for start, character in enumerate(word):
            for term, bit in terms.unspaced.get(character, ()):
                if word.startswith(term, start):
                    mask |= bit
    return mask, phrases
