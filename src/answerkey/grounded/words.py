"""Words: a text's words in the form in which equal ones are equal, and where they stand; novelty, which needs no more."""

import re
from bisect import bisect_left
from itertools import accumulate, filterfalse

from answerkey.text.dates import month_number
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, fold_accents, stem

_WORD = re.compile(r"([^\W_]+)")
_ASCII_WORD = re.compile(r"([A-Za-z0-9]+)")
_BREAK = re.compile(r"[.!?;\n。！？](?:(?<=[\n。！？])\n*|\s+)")

# Folded and stemmed; the names of a month are one.
word_key = Remembered(
    lambda word: f"#{month}" if (month := month_number(fold_accents(word))) else stem(fold_accents(word))
).__getitem__
_EMPTY = frozenset(map(word_key, FUNCTION_WORDS))


class Words:
    """The words of a text, in order."""

    def __init__(self, text: str) -> None:
        # What parts the words and the words in turn: all of this runs in C.
        pieces = (_ASCII_WORD if text.isascii() else _WORD).split(text)
        edges = list(accumulate(map(len, pieces)))
        self.starts, self.ends = edges[:-1:2], edges[1::2]
        self.keys = list(map(word_key, pieces[1::2]))

    def indices(self, start: int, end: int) -> range:
        """The numbers of the words of a stretch."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, end))


def meaning(keys: list[str]) -> set[str]:
    """Those words that carry meaning; digits do not."""
    return set(filterfalse(str.isdigit, set(keys) - _EMPTY))


def sentence_edges(text: str) -> list[int]:
    """Where the sentences of a text begin, and where the last one ends."""
    return [0, *(found.end() for found in _BREAK.finditer(text)), len(text) + 1]


def novelty_of(said: Words, evidence: Words) -> float | None:
    """The share of a text's content words that occur nowhere in its evidence, each counted once; None without one."""
    words = meaning(said.keys)
    return len(words.difference(evidence.keys)) / len(words) if words else None
