"""Lookup: the figures, dates, ids and words of the evidence, so that each mention of a reply finds its places."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import msgspec
import numpy as np

from answerkey.grounded.derived import Cell, chance
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.figures import UNITS, Figure, readings
from answerkey.grounded.mentions import Mention, find_marks
from answerkey.grounded.words import WORD, Words, word_key
from answerkey.text.dates import Date

__all__ = ["Lookup", "Stretch"]

# A figure that so many would hit by chance needs a word in common with its place.
_CHANCE = 0.1
# Places of a reply that are compared by their surroundings, over all its mentions; and of one mention.
_MOST_COMPARED = 20_000
_MOST_PLACES = 100
# Characters on each side of a place in a passage that speak of it.
_REACH = 90
_INSIDE = re.compile(r"(?<![0-9])[0-9]{1,4}(?![0-9])")
# What only joins a name's words is no part of it to be missed.
_JOINING_LIST = "of de la le du des del di da dos van von der den and y und et the for s"
_JOINING = frozenset(_JOINING_LIST.split())


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """A stretch of the evidence that a mention may be linked to."""

    start: int
    end: int
    # Empty: as it is; otherwise "rounded", "converted", …
    how: str = ""
    # Whether a figure like it would often be found by chance.
    by_chance: bool = False


class Lookup:
    """What the mentions of one reply are looked up in."""

    def __init__(self, evidence: Evidence, text: str, mentions: list[Mention]) -> None:
        self._evidence = evidence
        self._text = text
        self._most = max(4, min(_MOST_PLACES, _MOST_COMPARED // max(1, len(mentions))))
        self._words = Words(evidence.text)
        self._marks = find_marks(evidence.text, self._words)
        named = [one for one in mentions if one.kind in ("name", "quote")]
        wanted = {word_key(word) for one in named for word in WORD.findall(text[one.start : one.end])}
        # By key: the places of each wanted word among the words.
        self._places: dict[str, list[int]] = defaultdict(list)
        for index, key in enumerate(self._words.keys):
            if key in wanted:
                self._places[key].append(index)
        # By what a date, time, id or part of an id says.
        self._known: dict[object, list[Stretch]] = defaultdict(list)
        for date in self._marks.dates:
            for parts in _date_keys(date):
                self._known[parts].append(Stretch(date.start, date.end))
        for minutes, start, end in self._marks.times:
            self._known["time", minutes].append(Stretch(start, end))
        for id_key, start, end in self._marks.ids:
            self._known[id_key].append(Stretch(start, end))
            for part in WORD.finditer(evidence.text, start, end):
                self._known[part[0].casefold()].append(Stretch(*part.span()))
            for part in _INSIDE.finditer(evidence.text, start, end):
                self._known["part", int(part[0])].append(Stretch(*part.span(), by_chance=len(part[0]) < 4))

    def find(self, mention: Mention) -> list[Stretch]:
        """The places of a figure, date, time or id, at most so many that all can be compared."""
        said = mention.said
        if isinstance(said, Figure):
            return list(self._figure(said))[: self._most]
        if isinstance(said, Date):
            return self._given((said.year, said.month, said.day))
        if isinstance(said, int):
            return self._given(("time", said)) or self._given(("time", (said + 720) % 1440))
        return self._given(said)

    def _given(self, key: object) -> list[Stretch]:
        return self._known.get(key, [])[: self._most]

    def speaks_of(self, stretch: Stretch) -> set[str]:
        """The words around a place: the names and texts of its record, or those near it in its passage."""
        spot = self._evidence.spot_at(stretch.start)
        if spot.end - spot.start > 2 * _REACH or spot.record < 0:
            first, last = max(spot.start, stretch.start - _REACH), min(spot.end, stretch.end + _REACH)
            return self._words.between(first, stretch.start) | self._words.between(stretch.end, last)
        found = {word_key(word) for key in spot.path if isinstance(key, str) for word in WORD.findall(key)}
        for other in self._evidence.records[spot.record][:24]:
            if other.start != spot.start and other.cell:
                found |= self._words.between(other.start, min(other.end, other.start + _REACH))
        return (
            found
            | self._words.between(spot.start, stretch.start)
            | self._words.between(stretch.end, spot.end)
        )

    @cached_property
    def _figures(self) -> list[tuple[float, Figure]]:
        both = [
            (value, one) for one in self._marks.figures for value in (one.value, one.other) if value < 1e18
        ]
        return sorted(both, key=lambda pair: pair[0])

    @cached_property
    def _values(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.array([value for value, _ in self._figures], dtype=np.float64)

    @cached_property
    def _distinct(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.unique(self._values)

    @cached_property
    def _worths(self) -> dict[int, float]:
        return {figure.start: figure.value for figure in self._marks.figures}

    def stated(self, start: int) -> Cell:
        """What the evidence states at a place: a figure's worth, or 0 for anything else."""
        return self._worths.get(start, 0.0), self._evidence.spot_at(start)

    def cells(self) -> Iterator[Cell]:
        """The figures that are the whole value of a cell."""
        for figure in self._marks.figures:
            spot = self._evidence.spot_at(figure.start)
            if spot.cell and figure.end - figure.start >= spot.end - spot.start - 2:
                negative = self._evidence.text[spot.start] in "-−"
                yield -figure.value if negative else figure.value, spot

    def _figure(self, figure: Figure) -> Iterator[Stretch]:
        """As it is, then rounded, then in another unit, then as a part of a date or id."""
        telling = figure.value >= 10 * figure.step or figure.hedged or figure.scale > 1
        for value, step, how in readings(figure):
            often = chance(self._distinct, value, step) > _CHANCE
            for one in self._between(value - 0.5001 * step, value + 0.5001 * step):
                if abs(one.value - value) <= 1e-9 * value or abs(one.other - value) <= 1e-9 * value:
                    yield Stretch(one.start, one.end, how, often and not _same_unit(figure, one))
                elif telling and (one.step < step or figure.hedged):
                    yield Stretch(one.start, one.end, "rounded", often)
        yield from self._converted(figure)
        if figure.step == 1 and figure.value < 10_000:
            number = int(figure.value)
            yield from self._given(("part", number))
            yield from self._given((number, None, None))
            if figure.unit in ("st", "nd", "rd", "th"):
                yield from self._given((None, None, number))

    def _between(self, low: float, high: float) -> list[Figure]:
        first, last = np.searchsorted(self._values, (low, high))
        return [one for _, one in self._figures[first : min(last, first + self._most)]]

    def _converted(self, figure: Figure) -> Iterator[Stretch]:
        """The same in another unit of its family: 312 minutes are 5.2 hours."""
        family, stated = UNITS.get(figure.unit, ("", 1.0))
        for worth in {worth for other, worth in UNITS.values() if other == family and worth != stated}:
            ratio = stated / worth
            low, high = (figure.value - figure.step / 2) * ratio, (figure.value + figure.step / 2) * ratio
            for one in self._between(low, high):
                if self._unit(one) == (family, worth):
                    yield Stretch(one.start, one.end, "converted", by_chance=figure.value < 10 * figure.step)

    def _unit(self, figure: Figure) -> tuple[str, float] | None:
        """The unit behind a figure, or that the name of its value ends with: delay_min."""
        path = self._evidence.spot_at(figure.start).path
        named = WORD.findall(str(path[-1]).lower()) if path else []
        return UNITS.get(figure.unit) or next(
            (UNITS[word] for word in reversed(named) if word in UNITS), None
        )

    def worded(self, mention: Mention) -> Iterator[tuple[int, int, list[Stretch]]]:
        """(start, end, places) of a name or quote; of a name that stands nowhere as a whole, of its longest parts."""
        quote = mention.kind == "quote"
        words = [
            one
            for one in WORD.finditer(self._text, mention.start, mention.end)
            if quote or one[0] not in _JOINING
        ]
        keys = [word_key(one[0]) for one in words]
        at, missing = 0, 0
        while at < len(keys):
            last, places = self._longest(keys, at)
            if quote and (at or last < len(keys)):
                yield mention.start, mention.end, []
                return
            if places:
                yield from _unfound(words[missing:at])
                yield words[at].start(), words[last - 1].end(), places
                missing = last
            at = last
        yield from _unfound(words[missing:])

    def _longest(self, keys: list[str], at: int) -> tuple[int, list[Stretch]]:
        """The end of the longest run of words from here that stands in the evidence, and its places."""
        ends = {index: index for index in self._places.get(keys[at], [])[: 10 * self._most]}
        if not ends and keys[at][0] == "#":
            return at + 1, self._given((None, int(keys[at][1:]), None))
        last = at + 1
        while last < len(keys) and ends:
            # "Bank of England" may stand for "Bank England" and the other way round.
            further = {
                first: end + gap
                for first, end in ends.items()
                for gap in (2, 1)
                if self._words.keys[end + gap : end + gap + 1] == [keys[last]]
            }
            if not further:
                break
            ends, last = further, last + 1
        starts, text = self._words.starts, self._evidence.text
        return (
            last,
            [
                Stretch(starts[first], WORD.match(text, starts[end]).end())  # type: ignore[union-attr]  # a word is there
                for first, end in list(ends.items())[: self._most]
            ],
        )


def _same_unit(one: Figure, other: Figure) -> bool:
    """Whether both have the same sign or word behind them: %, days, years and yrs."""
    stated = UNITS.get(one.unit)
    return (one.percent and other.percent) or (stated is not None and stated == UNITS.get(other.unit))


def _unfound(words: list[re.Match[str]]) -> Iterator[tuple[int, int, list[Stretch]]]:
    if any(word[0] != word[0].lower() for word in words):
        yield words[0].start(), words[-1].end(), []


def _date_keys(date: Date) -> set[tuple[int | None, int | None, int | None]]:
    """Every way in which a date may be stated with parts left out, days and months swapped where that is possible."""
    year, month, day = date.year, date.month, date.day
    keys = {
        (year, month, day),
        (None, month, day),
        (year, month, None),
        (year, None, None),
        (None, month, None),
    }
    keys |= {(None, None, day), *({(year, day, month), (None, day, month)} if date.ambiguous else ())}
    return keys - {(None, None, None)}
