"""One reply to one question, read once for all keywords: its words with their places, and the cues of its sentences."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Generic, TypeVar

from answerkey.match.vocabulary import CUE_BITS, CUES
from answerkey.match.wanted import Asked
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, folded_chunk, stem
from answerkey.text.quantities import Quantity, find_quantities

_EDGES = '.,;:!?"()[]{}*“”‘’…–—|'
_CHUNK = re.compile(r"\S+")
# The end of a sentence or line; a stop after a title or an initial is none.
_END = re.compile(
    r"[.!?…。！？\n](?:(?<=\n)|(?<!\b[A-Za-z]\.)(?<!\b[DMS][rst]\.)(?<!\b(?:Mrs|etc)\.)(?<!\b(?:vs|No)\.)"
    r"[\"”’')*\]]*(?!\S))"
)
_NUMBERED = re.compile(r" no (?=[a-z]*[0-9])")
# Further places of a word are not looked at.
_MOST_PLACES = 4
_NOT_FOUND = CUES["denies"] | CUES["unknowns"]


_Value = TypeVar("_Value")


class _Once(Generic[_Value]):
    """A property worked out when first asked for: `cached_property` without the lock that it takes in Python 3.11."""

    def __init__(self, make: Callable[["Reply"], _Value]) -> None:
        self._make, self._name = make, make.__name__

    def __get__(self, reply: "Reply", owner: object) -> _Value:
        value = reply.__dict__[self._name] = self._make(reply)
        return value


def _mark(chunk: str) -> str:
    """What stands between spaces folded, with a NUL behind it if it ends a sentence, and "?" before that if it asks."""
    end = _END.search(chunk)
    return folded_chunk(chunk) + ("" if end is None else "?\0" if end[0][0] in "?？" else "\0")


_marked = Remembered(_mark).__getitem__


class Reply:
    """Places are numbers of words. What not every keyword needs is worked out when first asked for, and kept."""

    def __init__(self, text: str, asked: Asked) -> None:
        self.text, self.asked = text, asked
        folded = "\0".join(["".join(map(_marked, line.split())) for line in text.split("\n")])
        self._sentences = folded.split("\0")
        # The first word of each sentence, and behind the last one the number of all words.
        self._starts = list(accumulate([sentence.count(" ") for sentence in self._sentences], initial=0))
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        joined = " " + folded.replace("\0", "").replace("?", "")
        # "No. 5" is no denial.
        self.joined = _NUMBERED.sub(" number ", joined) if " no " in joined else joined
        self.words = self.joined.split()
        self.stems = list(map(stem, self.words))
        self._stemmed = f" {' '.join(self.stems)} "
        self.length = round(math.log1p(len(self.words)), 1)
        self._around: dict[int, tuple[bool, tuple[float, ...]]] = {}

    @_Once
    def _bounds(self) -> list[int]:
        """Where each sentence begins in the text, and behind the last one its end."""
        return [0, *[end.end() for end in _END.finditer(self.text)], len(self.text)]

    def phrase(self, phrase: str) -> list[int]:
        """The first places of words in a row, with a space before and mostly one behind them."""
        return _places(phrase, self.joined)

    def stem_places(self, stem: str) -> list[int]:
        """The first places of a stem."""
        return _places(f" {stem} ", self._stemmed)

    def sentence_at(self, place: int) -> int:
        """The number of the sentence that a word stands in."""
        return min(bisect_right(self._starts, place), len(self._sentences)) - 1

    def before(self, place: int, most: int) -> list[str]:
        """The last words of its sentence before a word."""
        return self.words[max(self._starts[self.sentence_at(place)], place - most) : place]

    def word_at(self, offset: int) -> int:
        """The number of the word that is written at an offset of the text."""
        sentence = min(bisect_right(self._bounds, offset), len(self._sentences)) - 1
        before = self.text[self._bounds[sentence] : offset].split()
        return min(
            self._starts[sentence] + "".join(map(folded_chunk, before)).count(" "), len(self.words) - 1
        )

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The span in the text of the words from `first` to `last` as they are written."""
        begin = self._chunk(first)
        end = begin if last == first else self._chunk(last)
        return begin.end() - len(begin[0].lstrip(_EDGES)), end.start() + len(end[0].rstrip(_EDGES))

    def _chunk(self, place: int) -> re.Match[str]:
        """What stands between spaces and has a word."""
        sentence = self.sentence_at(place)
        passed = self._starts[sentence]
        chunks = _CHUNK.finditer(self.text, self._bounds[sentence], self._bounds[sentence + 1])
        for chunk in chunks:
            passed += folded_chunk(chunk[0]).count(" ")
            if passed > place:
                return chunk
        raise IndexError(place)

    @_Once
    def told(self) -> int:
        """How many words tell something that the question does not."""
        return len(self.words) - sum(map(self.asked.plain.__contains__, self.stems)) or 1

    @_Once
    def quantities(self) -> list[Quantity]:
        return find_quantities(self.text)

    @_Once
    def dates(self) -> list[Date]:
        return list(find_dates(self.text))

    @_Once
    def initials(self) -> str:
        """The first letters of all words, and of those that are no function words."""
        telling = [word[0] for word in self.words if word not in FUNCTION_WORDS]
        return f"{''.join([word[0] for word in self.words])} {''.join(telling)}"

    @_Once
    def squeezed(self) -> str:
        """Without spaces: what stands in the reply as two words stands here as one."""
        return self.joined.replace(" ", "")

    @_Once
    def _cues(self) -> list[int]:
        """The cues of each sentence, as bits."""
        found = [0] * len(self._sentences)
        if not CUE_BITS.keys().isdisjoint(self.words):
            for place in [place for place, word in enumerate(self.words) if word in CUE_BITS]:
                found[self.sentence_at(place)] |= CUE_BITS[self.words[place]]
        return found

    @_Once
    def _overlaps(self) -> tuple[list[float], float]:
        """How much of the question each sentence repeats, and the most that one does."""
        weights = self.asked.weights
        found = [0.0] * len(self._sentences)
        for one in weights:
            for sentence in set(map(self.sentence_at, self.stem_places(one))):
                found[sentence] += weights[one] / self.asked.total
        return found, max(found)

    @_Once
    def _not_found(self) -> float:
        """Sentences at the beginning where something is not found, given or known, up to two."""
        return float(min(2, [bits & _NOT_FOUND for bits in self._cues[:20]].count(_NOT_FOUND)))

    def around(self, sentence: int) -> tuple[bool, tuple[float, ...]]:
        """Whether a sentence denies; and what it tells of any hit in it, from `doubts` to `not_found`."""
        if sentence not in self._around:
            bits, (overlaps, most) = self._cues[sentence], self._overlaps
            self._around[sentence] = (
                bits & CUES["denies"] > 0,
                (
                    float(bits & CUES["doubts"] > 0),
                    float(bits & CUES["contrasts"] > 0),
                    float(self._sentences[sentence][-1:] == "?"),
                    round(overlaps[sentence], 1),
                    round(most - overlaps[sentence], 1),
                    self._not_found,
                ),
            )
        return self._around[sentence]


def _places(phrase: str, joined: str) -> list[int]:
    found: list[int] = []
    at = joined.find(phrase)
    while at >= 0 and len(found) < _MOST_PLACES:
        found.append(joined.count(" ", 0, at))
        at = joined.find(phrase, at + 1)
    return found
