"""One reply to one question, read once for all keywords: its words with their places, and the cues of its sentences."""

import math
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import accumulate, repeat

from answerkey.match.context import BESIDE, NEAR, Surroundings, read_tokens, shipped_around
from answerkey.match.keywords import ReplyText
from answerkey.match.model import WORDS
from answerkey.match.wanted import Asked
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, folded_chunk, stem

_EDGES = '.,;:!?"()[]{}*$€£“”‘’…–—|'
_CHUNK = re.compile(r"\S+|\n")
# What ends a sentence (a line ends with NUL), and what may stand behind that.
_ASKS, _ENDS, _CLOSING = frozenset("?？"), frozenset(".!…。！\0"), "\"”’')*]"
# What parts a sentence, before a word and behind it.
_OPENS, _PARTS = frozenset('(["“–—'), frozenset(',;:)]"”–—')
# Further places of a word are not looked at.
_MOST_PLACES = 4


def _mark(chunk: str) -> str:
    """What stands between spaces folded, with a NUL behind it if it ends a sentence, and "?" before that if it asks; with ","
    on the side where it is parted from the rest of its sentence.
    """
    last = chunk.rstrip(_CLOSING)[-1:]
    ends = "?\0" if last in _ASKS else "\0" if last in _ENDS else ""
    parted = chunk[-1] in _PARTS or chunk == "-"
    return "," * (chunk[0] in _OPENS) + folded_chunk(chunk) + (ends or "," * parted)


_marked = Remembered(_mark).__getitem__


class Reply:
    """Places are numbers of words. What not every keyword needs is worked out when first asked for, and kept."""

    def __init__(self, said: ReplyText, asked: Asked) -> None:
        self.said, self.text, self.asked = said, said.text, asked
        self._folded = list(map(_marked, self.text.replace("\n", " \0 ").split()))
        folded = "".join(self._folded)
        # The first word of each sentence, and behind the last one the number of all words.
        self._sentences = folded.split("\0")
        self._starts = list(accumulate([one.count(" ") for one in self._sentences], initial=0))
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self._parted = folded.replace("\0", "").replace("?", "")
        self.joined = " " + self._parted.replace(",", "")
        self.words = self.joined.split()
        self._stemmed = f" {' '.join(map(stem, self.words))} "
        self.length = round(math.log1p(len(self.words)), 1)

    def places(self, phrase: str, stemmed: bool = False) -> list[int]:
        """The first places of words or stems in a row, with a space before and mostly one behind them."""
        found: list[int] = []
        joined = self._stemmed if stemmed else self.joined
        at = joined.find(phrase)
        while at >= 0 and len(found) < _MOST_PLACES:
            found.append(joined.count(" ", 0, at))
            at = joined.find(phrase, at + 1)
        return found

    def sentence_of(self, place: int) -> int:
        """The number of the sentence that a word stands in."""
        return bisect_right(self._starts, place) - 1

    @cached_property
    def _chunks(self) -> tuple[list[re.Match[str]], list[int]]:
        """What stands between spaces, and how many words there are up to the end of each."""
        passed = accumulate(map(str.count, self._folded, repeat(" ")))
        return list(_CHUNK.finditer(self.text)), list(passed)

    def word_at(self, offset: int) -> int:
        """The number of the word, or the first one of its chunk, that is written at an offset of the text."""
        chunks, passed = self._chunks
        chunk = bisect_right(chunks, offset, key=re.Match.start) - 1
        return min(passed[chunk - 1] if chunk else 0, len(self.words) - 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The span in the text of the words from `first` to `last` as they are written."""
        chunks, passed = self._chunks
        begin, end = chunks[bisect_right(passed, first)], chunks[bisect_right(passed, last)]
        return begin.end() - len(begin[0].lstrip(_EDGES)), end.start() + len(end[0].rstrip(_EDGES))

    @cached_property
    def initials(self) -> str:
        """The first letters of all words, and of those that are no function words."""
        telling = [word[0] for word in self.words if word not in FUNCTION_WORDS]
        return f"{''.join([word[0] for word in self.words])} {''.join(telling)}"

    @cached_property
    def _breaks(self) -> list[int]:
        """The words before which a sentence is parted."""
        return list(accumulate(map(str.count, self._parted.split(","), repeat(" "))))[:-1]

    def surroundings(self, place: int, size: int, sentence: int) -> Surroundings:
        """Where a hit of so many words in the sentence of that number stands."""
        words, breaks = self.words, self._breaks
        first, end = self._starts[sentence : sentence + 2]
        stop = min(place + size, end)
        last, following = bisect_right(breaks, place), bisect_left(breaks, stop)
        before = place - breaks[last - 1] if last and breaks[last - 1] > first else NEAR
        behind = breaks[following] - stop if following < len(breaks) and breaks[following] < end else NEAR
        near = words[max(first, place - NEAR) : place], words[stop : min(end, stop + NEAR)]
        return Surroundings(
            read_tokens(*near, self.asked.named),
            min(NEAR, before),
            min(NEAR, behind),
            self._sentences[sentence][-1:] == "?",
            words[max(0, first - BESIDE) : first],
            words[end : end + BESIDE],
        )

    def around(self, place: int, size: int) -> tuple[float, ...]:
        """What stands around a hit of so many words, from `said` to `not_found`."""
        number = self.sentence_of(place)
        said = shipped_around().log_odds(self.surroundings(place, size, number))
        return said, self._better_elsewhere[number], self._not_found

    def _has(self, cue: str, sentence: int) -> float:
        first, last = self._starts[sentence : sentence + 2]
        return float(not WORDS[cue].isdisjoint(self.words[first:last]))

    @cached_property
    def _better_elsewhere(self) -> list[float]:
        """How much less of the question each sentence repeats than the best one does."""
        repeated = [0.0] * (len(self._starts) - 1)
        for one in self.asked.telling:
            for sentence in set(map(self.sentence_of, self.places(f" {one} ", stemmed=True))):
                repeated[sentence] += 1 / len(self.asked.telling)
        most = max(repeated)
        return [round(most - one, 1) for one in repeated]

    @cached_property
    def _not_found(self) -> float:
        """How many sentences say that something is not found, given or known, up to two."""
        numbers = range(0 if WORDS["denies"].isdisjoint(self.words) else len(self._starts) - 1)
        return min(2.0, sum([self._has("denies", one) * self._has("unknowns", one) for one in numbers]))
