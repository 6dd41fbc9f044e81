"""One reply to one question, read once for all keywords: its words and stems with their places, and the cues of its sentences."""

import math
import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from itertools import accumulate

from answerkey.match.vocabulary import CUE_BITS, CUES, WORDS
from answerkey.match.wanted import Asked
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import folded_text, stem
from answerkey.text.quantities import Quantity, find_quantities

__all__ = ["Reply"]

_CLOSING = "\"”’')*]"
_EDGES = '.,;:!?"()[]{}*“”‘’…–—|'
# A stop after a title or an initial ends no sentence.
_TITLE = re.compile(r"(?:^|\W)(?:[A-Za-z]|[DMS][rst]|Mrs|etc|vs|No)\.$")
_NUMBERED = re.compile(r" no (?=[a-z]*[0-9])")
_ABSTAINS = re.compile(
    r"(?:could|can|did|do|was|am|is|has|have)(?:\s*not|n['’]t)(?: been)?(?: able to| aware| sure)?"
    r"(?: find| know| have| determine| provide| any| enough)* (?:any |enough |the |specific )*"
    r"(?:information|answer|record|data|evidence)"
    r"|not sure|unable to|no information|don['’]t know|not clear|unclear|can(?:no|['’])t (?:say|tell|find|determine)",
    re.IGNORECASE,
)
# Looked for in the beginning only, where there is a cue.
_BEGINNING = 400
_JOINS, _CLAUSE, _SENTENCE, _QUESTION = -1, 1, 2, 3
_LONGEST, _MOST_REMEMBERED, _MOST_PLACES = 48, 200_000, 8
_NOT_FOUND = CUES["denies"] | CUES["unknowns"]
_UNKNOWING = CUES["denies"] | CUES["hedges"]


class _Chunks(dict[str, tuple[str, int, int, int]]):
    """Each distinct chunk to its folded words, how many they are, what it ends (or begins), and its width with the space."""

    def __missing__(self, chunk: str) -> tuple[str, int, int, int]:
        folded = folded_text(chunk)[1:].lstrip()
        written = chunk.rstrip()
        core = written.rstrip(_CLOSING)
        mark = 0
        if core.endswith((".", "!", "?", "…", "。", "！", "？")) and not _TITLE.search(core):
            mark = _QUESTION if core[-1] in "?？" else _SENTENCE
        elif "\n" in chunk:
            mark = _SENTENCE
        elif written.endswith((",", ";", "–", "—", "(", ")", "|")):
            mark = _CLAUSE
        elif written in WORDS["joins"]:
            mark = _JOINS
        # A space that was put after the end of a line is not in the text.
        read = folded, folded.count(" "), mark, len(chunk) + (not chunk.endswith("\n"))
        if len(chunk) <= _LONGEST and len(self) < _MOST_REMEMBERED:
            self[chunk] = read
        return read


_CHUNKS = _Chunks()


@lru_cache(maxsize=1024)
def _beginning_with(letter: str) -> re.Pattern[str]:
    return re.compile(f"(?<= ){re.escape(letter)}[^ ]{{3,}}")


class Reply:
    """Places are numbers of words. What not every keyword needs is worked out when first asked for, and kept."""

    def __init__(self, text: str, asked: Asked) -> None:
        self.text, self.asked = text, asked
        self._chunks = (text.replace("\n", "\n ") if "\n" in text else text).split(" ")
        folded, counts, marks, self._widths = zip(*map(_CHUNKS.__getitem__, self._chunks), strict=False)
        # The number of each chunk's first word, and behind the last one that of all words.
        self._firsts: list[int] = list(accumulate(counts, initial=0))
        # The first word of each clause and sentence; whether a sentence ends in a question mark.
        self.clauses, self.sentences, self.asks = clauses, sentences, asks = [0], [0], [False]
        for index, mark in [pair for pair in enumerate(marks) if pair[1]]:
            at = self._firsts[index + (mark > 0)]
            if at > clauses[-1]:
                clauses.append(at)
            if mark > _CLAUSE and at > sentences[-1]:
                sentences.append(at)
                asks[-1] = mark == _QUESTION
                asks.append(False)
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        joined = " " + "".join(folded)
        # "No. 5" is no denial.
        self.joined = _NUMBERED.sub(" number ", joined) if " no " in joined else joined
        self.words = self.joined.split()
        self.stems = list(map(stem, self.words))
        self.stem_set = frozenset(self.stems)
        self.length = round(math.log1p(len(self.words)), 1)
        self._around: dict[int, tuple[float, ...]] = {}
        # How many words tell something that the question does not.
        self.told = len(self.words) - sum(map(asked.plain.__contains__, self.stems)) or 1

    def places(self, stem: str) -> list[int]:
        """The first places of a stem."""
        found: list[int] = []
        if stem in self.stem_set:
            for _ in range(min(_MOST_PLACES, self.stems.count(stem))):
                found.append(self.stems.index(stem, found[-1] + 1 if found else 0))
        return found

    def clause_at(self, place: int) -> int:
        """The number of the clause that a word stands in."""
        return bisect_right(self.clauses, place) - 1

    def sentence_at(self, place: int) -> int:
        """The number of the sentence that a word stands in."""
        return bisect_right(self.sentences, place) - 1

    def sentence_range(self, sentence: int) -> tuple[int, int]:
        """From its first word to behind its last."""
        ends = self.sentences
        return ends[sentence], ends[sentence + 1] if sentence + 1 < len(ends) else len(self.words)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each chunk begins in the text."""
        return list(accumulate(self._widths, initial=0))

    def word_at(self, offset: int) -> int:
        """The number of the word that is written at an offset of the text."""
        return min(self._firsts[bisect_right(self._starts, offset) - 1], len(self.words) - 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The span in the text of the words from `first` to `last` as they are written."""
        one, other = bisect_right(self._firsts, first) - 1, bisect_right(self._firsts, last) - 1
        begin, end = self._chunks[one], self._chunks[other].rstrip()
        margin = len(begin) - len(begin.lstrip(_EDGES))
        return self._starts[one] + margin, self._starts[other] + len(end.rstrip(_EDGES))

    @cached_property
    def quantities(self) -> list[tuple[Quantity, int]]:
        """The amounts, each with its word."""
        return [(quantity, self.word_at(quantity.start)) for quantity in find_quantities(self.text)]

    @cached_property
    def dates(self) -> list[Date]:
        return list(find_dates(self.text))

    @cached_property
    def squeezed(self) -> str:
        """Without spaces: what stands in the reply as two words stands here as one."""
        return self.joined.replace(" ", "")

    def beginning(self, letter: str) -> list[str]:
        """The distinct words of four letters and more that begin with a letter."""
        return list(dict.fromkeys(_beginning_with(letter).findall(self.joined)))

    @cached_property
    def cues(self) -> list[int]:
        """The cues of each sentence, as bits."""
        found = [0] * len(self.asks)
        if not CUE_BITS.keys().isdisjoint(self.words):
            for place in [place for place, word in enumerate(self.words) if word in CUE_BITS]:
                found[self.sentence_at(place)] |= CUE_BITS[self.words[place]]
        return found

    @cached_property
    def general(self) -> tuple[float, float, bool]:
        """Whether the reply begins by saying that it does not know; sentences where something is not found; tells of now."""
        first = self.cues[:20]
        abstains = (
            any(bits & _UNKNOWING for bits in first) and _ABSTAINS.search(self.text[:_BEGINNING]) is not None
        )
        not_found = min(2, sum(bits & _NOT_FOUND == _NOT_FOUND for bits in first))
        return float(abstains), float(not_found), any(bits & CUES["current"] for bits in first)

    @cached_property
    def overlaps(self) -> tuple[list[float], list[int]]:
        """How much of the question each clause repeats; how many of the question's names and figures each sentence."""
        weights, names = self.asked.weights, self.asked.names
        clauses, sentences = [0.0] * len(self.clauses), [0] * len(self.asks)
        for one in [known for known in weights if known in self.stem_set]:
            places = self.places(one)
            for clause in set(map(self.clause_at, places)):
                clauses[clause] += weights[one]
            if one in names:
                for sentence in set(map(self.sentence_at, places)):
                    sentences[sentence] += 1
        return clauses, sentences

    def around(self, clause: int, sentence: int) -> tuple[float, ...]:
        """What a clause tells of any hit in it, from `hedges` to `not_found`."""
        known = self._around.get(clause)
        if known is None:
            bits, total, names = self.cues[sentence], self.asked.total, self.asked.names
            abstains, not_found, tells_now = self.general
            clauses, sentences = self.overlaps
            own = clauses[clause]
            known = self._around[clause] = (
                float(bits & CUES["hedges"] > 0),
                float(bits & CUES["contrasts"] > 0),
                float(self.asks[sentence]),
                float(bits & CUES["outdated"] > 0 and tells_now),
                round(own / total, 1),
                round((max(clauses) - own) / total, 1),
                round((max(sentences) - sentences[sentence]) / len(names), 1) if names else 0.0,
                abstains,
                not_found,
            )
        return known
