"""Words: a text's words in the form in which equal ones are equal, and where they stand; novelty, which needs no more."""

import re
from bisect import bisect_left
from itertools import accumulate, filterfalse

from answerkey.text.dates import month_number
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, fold_accents, stem

WORD = re.compile(r"[^\W_]+")
_PARTED = re.compile(r"([^\W_]+)")
_PARTED_ASCII = re.compile(r"([A-Za-z0-9]+)")
_BREAK = re.compile(r"[.!?;\n。！？](?:(?<=[\n。！？])\n*|\s+)")


def _key(word: str) -> str:
    """Folded and stemmed; the names of a month are one."""
    folded = fold_accents(word)
    month = month_number(folded)
    return stem(folded) if month is None else f"#{month}"


word_key = Remembered(_key).__getitem__
_EMPTY = frozenset(map(word_key, FUNCTION_WORDS))


def words_of(text: str) -> list[str]:
    """The keys of a text's words, in order."""
    return list(map(word_key, WORD.findall(text)))


class Words:
    """The words of a text, in order."""

    def __init__(self, text: str) -> None:
        # What parts the words and the words in turn: all of this runs in C.
        pieces = (_PARTED_ASCII if text.isascii() else _PARTED).split(text)
        self.starts = list(accumulate(map(len, pieces)))[:-1:2]
        self.keys = list(map(word_key, pieces[1::2]))

    def end(self, text: str, index: int) -> int:
        """Where a word ends."""
        return WORD.match(text, self.starts[index]).end()  # type: ignore[union-attr]  # it begins there

    def between(self, start: int, end: int) -> set[str]:
        """The words of a stretch that carry meaning; digits do not."""
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        return meaning(self.keys[first:last])


class Sentences:
    """Where the sentences of a text begin."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text)), len(text) + 1]

    def number(self, at: int) -> int:
        """The number of the sentence that a character belongs to, from 1."""
        return bisect_left(self._starts, at + 1)

    def bounds(self, number: int) -> tuple[int, int]:
        """From where to where a sentence goes."""
        return self._starts[number - 1], self._starts[number]


def meaning(keys: list[str]) -> set[str]:
    """Those that carry meaning."""
    return set(filterfalse(str.isdigit, set(keys) - _EMPTY))


def novelty_of(said: Words, evidence: Words) -> float | None:
    """The share of a text's content words that occur nowhere in its evidence, each counted once; None without one."""
    words = meaning(said.keys)
    return len(words.difference(evidence.keys)) / len(words) if words else None
