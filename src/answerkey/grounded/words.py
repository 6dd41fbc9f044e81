"""Words: a text's words in the form in which equal ones are equal, and where they stand; novelty, which needs no more."""

import re
from bisect import bisect_left
from collections.abc import Iterable

from answerkey.text.dates import month_number
from answerkey.text.normalise import FUNCTION_WORDS, fold_accents, stem

__all__ = ["WORD", "Words", "novelty_of", "word_key"]

WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+|;\s")
_LONGEST_KEPT = 40
_MOST_KEPT = 200_000


class _Keys(dict[str, str]):
    """Each distinct word is folded and stemmed once; the names of a month are one."""

    def __missing__(self, word: str) -> str:
        folded = fold_accents(word)
        month = month_number(folded)
        key = stem(folded) if month is None else f"#{month}"
        if len(word) <= _LONGEST_KEPT:
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[word] = key
        return key


word_key = _Keys().__getitem__
_EMPTY = frozenset(map(word_key, FUNCTION_WORDS))


class Words:
    """The words of a text, in order."""

    def __init__(self, text: str) -> None:
        self.starts = [found.start() for found in WORD.finditer(text)]
        self.keys = list(map(word_key, WORD.findall(text)))
        self._sentences = [0, *(found.end() for found in _BREAK.finditer(text)), len(text) + 1]

    def between(self, start: int, end: int) -> set[str]:
        """The words of a stretch that carry meaning; digits do not."""
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        return {key for key in self.keys[first:last] if key not in _EMPTY and not key.isdigit()}

    def sentence(self, at: int) -> int:
        """The number of the sentence that a character belongs to, from 1."""
        return bisect_left(self._sentences, at + 1)

    def around(self, start: int, end: int, reach: int) -> set[str]:
        """What a sentence says near a stretch of it, the stretch left out."""
        number = self.sentence(start)
        first, last = self._sentences[number - 1], self._sentences[number]
        return self.between(max(first, start - reach), start) | self.between(end, min(last, end + reach))


def novelty_of(text: str, evidence: Iterable[str]) -> float | None:
    """The share of a text's content words that occur nowhere in its evidence, each counted once; None without one."""
    said = Words(text).between(0, len(text))
    known = {key for part in evidence for key in map(word_key, WORD.findall(part))}
    return len(said - known) / len(said) if said else None
