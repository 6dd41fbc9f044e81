"""What a reply's sentence and a place in the evidence speak of: the words by which two places are told apart."""

import re
from bisect import bisect_right

from answerkey.grounded.evidence import Evidence
from answerkey.grounded.mentions import WORD
from answerkey.text.normalise import FUNCTION_WORDS, fold_accents, stem

__all__ = ["Sentences", "content_stems", "words_at"]

_BREAK = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+|;\s")
# Characters on each side of a place in a passage, or of a mention in a sentence, that speak of it.
_AROUND = 90


def content_stems(text: str) -> frozenset[str]:
    """The stems of a text's words that carry meaning; digits are no words."""
    words = map(fold_accents, WORD.findall(text))
    return frozenset(stem(word) for word in words if word not in FUNCTION_WORDS and not word.isdigit())


class Sentences:
    """Where the sentences of a reply begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]

    def number(self, at: int) -> int:
        """Which sentence a character belongs to."""
        return bisect_right(self._starts, at) - 1

    def words_around(self, start: int, end: int) -> frozenset[str]:
        """What the sentence says around a mention, itself left out."""
        number = self.number(start)
        first = max(self._starts[number], start - _AROUND)
        last = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return content_stems(f"{self._text[first:start]} {self._text[end : min(last, end + _AROUND)]}")


def words_at(evidence: Evidence, start: int, end: int, *, alone: bool = False) -> frozenset[str]:
    """What stands around a place: the names and texts of its record, or the words of its passage; `alone`: itself only."""
    spot = evidence.spot_at(start)
    if alone:
        return content_stems(evidence.text[start:end])
    parts = [" ".join(key for key in spot.path if isinstance(key, str))]
    if spot.end - spot.start > 2 * _AROUND:
        first, last = max(spot.start, start - _AROUND), min(spot.end, end + _AROUND)
        parts += [evidence.text[first:start], evidence.text[end:last]]
    else:
        parts += [evidence.text[spot.start : start], evidence.text[end : spot.end]]
        for number in evidence.records[spot.record][:24] if spot.record >= 0 else ():
            other = evidence.spots[number]
            if other.start != spot.start and other.cell:
                parts.append(evidence.text[other.start : min(other.end, other.start + _AROUND)])
    return content_stems(" ".join(parts))
