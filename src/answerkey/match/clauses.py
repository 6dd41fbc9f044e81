"""What the clause of a hit says of the question, beside the clauses of the other values of its kind.

"Order 61 was placed on 14 February and delivered on 19 February": asked when it was delivered, a reader takes the date in whose
clause "delivered" is. A clause ends at a comma, a closing bracket, "and", "but" or the end of a sentence. A stretch is one clause
with a value of a kind and those before it without one: "in May, we sold 12". The trees of `smart` read these features;
`features.toml` names each.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise
from operator import or_
from typing import NamedTuple

from answerkey.match.phrasing import WORDS, Phrasing
from answerkey.match.reading import Reply
from answerkey.text.normalise import FUNCTION_WORDS, folded_chunk, stem

__all__ = ["MARKS", "SPECIFIC", "Clauses"]

# Kinds of values: other figures are counts, words with a letter and a digit are codes.
_MONEY, _PERCENT, _CLOCK, _DATE, _YEAR, _CODE, _COUNT, _NAME, _WORD = range(9)
_CURRENCY_SIGNS = frozenset("$€£¥")
_IS_YEAR = re.compile(r"(?:19|20)[0-9]{2}").fullmatch
_HAS_CLOCK = re.compile(r"[0-9]:[0-9]").search
_HAS_DIGIT = re.compile(r"[0-9]").search
# What ends a clause, and what may be behind that.
_CLOSES, _QUOTES = frozenset(",;)]"), "*_\"'”’"
# What is before a word with a capital.
MARKS = '"(*[“‘|-'
# What a name or figure of the question weighs beside its other words.
SPECIFIC = 3.0
# Stretches further away are not looked at.
_MOST_STRETCHES = 12
# Words behind a comparison, and the longest clause that is counted.
_COMPARED, _LONGEST = 3, 10.0
_NOWHERE_BEFORE, _NOWHERE_AFTER = (0.0,) * 15, (0.0,) * 4


class _Stretches(NamedTuple):
    """The first words of the stretches of one kind of value, and the question's words in each."""

    firsts: list[int]
    question_words: list[frozenset[str]]
    # The question's words up to the end of each.
    so_far: list[frozenset[str]]


class Clauses:
    """The clauses of one reply; `capitals` says of each of its words whether it begins with one."""

    def __init__(self, reply: Reply, capitals: list[bool]) -> None:
        self._reply, self._question, self._capitals = reply, reply.question_words, capitals
        self._lowered = reply.source.lowered
        specific = frozenset(map(stem, self._question.specific))
        telling = self._question.telling
        self._weights = {one: SPECIFIC if one in specific else 1.0 for one in telling | specific}
        self._asked = frozenset(self._weights)
        self._total = max(1.0, sum(self._weights.values()))
        self._coverage = self._share(frozenset(reply.stems) & self._asked)
        asked = list(map(stem, self._question.folded.split()))
        self._pairs = [(one, two) for one, two in pairwise(asked) if one in telling and two in telling]
        self._topics = [one for one in asked if one in telling]
        first = reply.words[0]
        self._first_tone = float(first in WORDS["yes"]) or -float(first in WORDS["no"])
        self._stretches: dict[int, _Stretches] = {}
        self._read_clauses()

    def _read_clauses(self) -> None:
        """The first word of each clause, and the kind of each word."""
        words = self._reply.words
        cuts, at = set(self._reply.starts), 0
        signs: dict[int, int] = {}
        for chunk in self._reply.text.split():
            if chunk in WORDS["links"]:
                cuts.add(at)
            if _HAS_DIGIT(chunk):
                signs[at] = _kind_by_signs(chunk)
            at += folded_chunk(chunk).count(" ")
            if chunk.rstrip(_QUOTES)[-1:] in _CLOSES:
                cuts.add(at)
        parting = WORDS["contrasts"] | WORDS["parts"]
        self._cuts = sorted(cuts | {at for at, word in enumerate(words) if word in parting})
        self._kinds = [
            signs.get(at, _COUNT) if word[0].isdigit() else _NAME if self._is_name(at) else _WORD
            for at, word in enumerate(words)
        ]
        for at, kind in enumerate(self._kinds):
            if kind == _COUNT:
                self._kinds[at] = _kind_by_words(words, at)

    def _is_name(self, at: int) -> bool:
        word = self._reply.words[at]
        return self._capitals[at] and word not in self._question.named and word not in FUNCTION_WORDS

    def _weigh(self, stems: Iterable[str]) -> float:
        return sum([self._weights[one] for one in stems])

    def _share(self, stems: Iterable[str]) -> float:
        return round(self._weigh(stems) / self._total, 1)

    def _stretches_of(self, kind: int) -> _Stretches:
        known = self._stretches.get(kind)
        if known is None:
            known = self._stretches[kind] = self._find_stretches(kind)
        return known

    def _find_stretches(self, kind: int) -> _Stretches:
        stems, starts = self._reply.stems, frozenset(self._reply.starts)
        firsts: list[int] = []
        begin = 0
        for first, end in pairwise(self._cuts):
            begin = first if first in starts else begin
            if kind == _WORD or kind in self._kinds[first:end]:
                firsts.append(begin)
                begin = end
        firsts = firsts or [0]
        said = [frozenset(stems[one:other]) & self._asked for one, other in pairwise([*firsts, len(stems)])]
        heading = frozenset(stems[: firsts[0]]) & self._asked
        return _Stretches(firsts, said, list(accumulate(said, or_, initial=heading))[1:])

    def features(self, phrasing: Phrasing, position: int | None, size: int) -> tuple[float, ...]:
        """From `value_kind` to `topic`, of a hit of `size` words, or of what is nowhere."""
        if position is None:
            return (*_NOWHERE_BEFORE, self._coverage, self._first_tone, *_NOWHERE_AFTER)
        end = min(len(self._reply.words), position + max(1, size))
        sentence = self._reply.sentence_of(position)
        bounds = (self._reply.starts[sentence], self._reply.starts[sentence + 1])
        return (
            *self._beside_stretches(phrasing, position, end),
            *self._in_clause(position, end, bounds),
            self._coverage,
            self._first_tone,
            self._small_letter(phrasing, position, end),
            float(phrasing.lowered in self._lowered),
            *self._in_sentence(bounds),
        )

    def _small_letter(self, phrasing: Phrasing, position: int, end: int) -> float:
        """1 if the keyword has a capital and the hit has none."""
        is_figure = self._reply.words[position][0].isdigit()
        return float(phrasing.text[:1].isupper() and not is_figure and not any(self._capitals[position:end]))

    def _beside_stretches(self, phrasing: Phrasing, position: int, end: int) -> tuple[float, ...]:
        """From `value_kind` to `stretch_on_topic`."""
        kind = min(self._kinds[position:end])
        firsts, said, so_far = self._stretches_of(kind)
        at = max(0, bisect_right(firsts, position) - 1)
        keyword = phrasing.stems
        own = said[at] - keyword
        before, behind = said[max(0, at - _MOST_STRETCHES) : at], said[at + 1 : at + 1 + _MOST_STRETCHES]
        later = max([self._weigh(one - so_far[at] - keyword) for one in behind], default=0.0)
        earlier = max([self._weigh(one - own - keyword) for one in before], default=0.0)
        best = max([self._weigh(one - keyword) for one in (*before, *behind)], default=0.0)
        return (
            float(kind),
            float(min(6, len(firsts) - 1)),
            float(at),
            self._share(own),
            round(later / self._total, 1),
            round(earlier / self._total, 1),
            round((self._weigh(own) - best) / self._total, 1),
            float(bool(own) or not self._asked),
        )

    def _in_clause(self, position: int, end: int, sentence: tuple[int, int]) -> tuple[float, ...]:
        """From `clause_length` to `unit_asked`."""
        words, stems = self._reply.words, self._reply.stems
        beside_ranges = self._reply.words_beside_ranges
        at = bisect_right(self._cuts, position) - 1
        first, stop = self._cuts[at], self._cuts[at + 1] if at + 1 < len(self._cuts) else len(words)
        foreign = sum(
            word not in FUNCTION_WORDS and one not in self._asked and not word[0].isdigit()
            for word, one in zip(
                words[first:position] + words[end:stop], stems[first:position] + stems[end:stop], strict=True
            )
        )
        # "| below £75 | £4.90 |": the limit is that of the other cell.
        parted_at = bisect_right(self._reply.breaks, position)
        broken = self._reply.breaks[parted_at - 1] if parted_at else 0
        compared_from = max(sentence[0], broken, position - _COMPARED)
        denies = WORDS["denies"]
        denied = 0.0 if denies.isdisjoint(words[end:stop]) else 1.0
        unit = 0.0
        if end < sentence[1]:
            unit = (
                1.0
                if stems[end] in self._weights
                else -float(words[end] not in FUNCTION_WORDS and end < stop)
            )
        return (
            min(_LONGEST, float(stop - first)),
            float(min(5, foreign)),
            denied if denies.isdisjoint(words[first:position]) else 2.0,
            float(not WORDS["past"].isdisjoint(beside_ranges[first:stop])),
            float(not WORDS["conditions"].isdisjoint(beside_ranges[slice(*sentence)])),
            float(not WORDS["compares"].isdisjoint(words[compared_from:position])),
            unit,
        )

    def _in_sentence(self, sentence: tuple[int, int]) -> tuple[float, float]:
        """`pair_parted` and `topic`."""
        stems = frozenset(self._reply.stems[slice(*sentence)])
        parted = any((one in stems) != (two in stems) for one, two in self._pairs)
        together = any(one in stems and two in stems for one, two in self._pairs)
        topics = self._topics
        return (
            float(parted) - float(together) if self._pairs else -2.0,
            float(topics[0] in stems) + 2.0 * float(topics[-1] in stems) if topics else -1.0,
        )


def _kind_by_signs(chunk: str) -> int:
    if not _CURRENCY_SIGNS.isdisjoint(chunk):
        return _MONEY
    return _PERCENT if "%" in chunk else _CLOCK if _HAS_CLOCK(chunk) else _COUNT


def _kind_by_words(words: list[str], at: int) -> int:
    """The kind of a figure without a sign, by the words beside it."""
    before = words[at - 1] if at else ""
    behind = words[at + 1] if at + 1 < len(words) else ""
    if behind in WORDS["currencies"] or before in WORDS["currencies"]:
        return _MONEY
    if behind in WORDS["percents"]:
        return _PERCENT
    if behind in WORDS["clocks"]:
        return _CLOCK
    if before in WORDS["months"] or behind in WORDS["months"]:
        return _DATE
    if _IS_YEAR(words[at]):
        return _YEAR
    return _COUNT if words[at].replace(".", "").isdigit() else _CODE
