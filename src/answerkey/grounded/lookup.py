"""Lookup: the figures, dates, ids and words of the evidence, so that each mention of a reply finds its places."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec
import numpy as np

from answerkey.grounded.derived import Cell, chance
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.figures import FACTORS, Figure, readings, unit_of
from answerkey.grounded.mentions import WORD, Mention, find_marks
from answerkey.text.dates import Date, month_number
from answerkey.text.normalise import fold_accents, stem

__all__ = ["Lookup", "Stretch"]

# A figure that so many would hit by chance needs a word in common with its place.
_CHANCE = 0.1
# Places of a reply that are compared by their surroundings, over all its mentions; and of one mention.
_MOST_COMPARED = 20_000
_MOST_PLACES = 100


_INSIDE = re.compile(r"(?<![0-9])[0-9]{1,4}(?![0-9])")
_JOINING = frozenset("of de la le du des del di da dos van von der den and y und et the for s".split())


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

    def __init__(self, evidence: Evidence, mentions: list[Mention]) -> None:
        self._evidence = evidence
        self._most = max(4, min(_MOST_PLACES, _MOST_COMPARED // max(1, len(mentions))))
        self._marks = find_marks(evidence.text)
        wanted = {_key(word) for one in mentions if isinstance(one.said, tuple) for word in one.said}
        self._words = _positions(evidence.text, wanted)
        self._dates: dict[tuple[int | None, int | None, int | None], list[Stretch]] = defaultdict(list)
        for date in self._marks.dates:
            for key in _date_keys(date):
                self._dates[key].append(Stretch(date.start, date.end))
        self._ids: dict[str, list[Stretch]] = defaultdict(list)
        # Numbers that are a part of an id: the week of 2024-W19, the year of mwh_2024.
        self._inside: dict[int, list[Stretch]] = defaultdict(list)
        for key, start, end in self._marks.ids:
            self._ids[key].append(Stretch(start, end))
            for part in WORD.finditer(evidence.text, start, end):
                self._ids[part[0].casefold()].append(Stretch(*part.span()))
            for part in _INSIDE.finditer(evidence.text, start, end):
                self._inside[int(part[0])].append(Stretch(*part.span(), by_chance=len(part[0]) < 4))
        self._times: dict[int, list[Stretch]] = defaultdict(list)
        for minutes, start, end in self._marks.times:
            self._times[minutes].append(Stretch(start, end))

    def find(self, mention: Mention) -> list[Stretch]:
        """The places of a figure, date, time or id, at most so many that all can be compared."""
        said = mention.said
        if isinstance(said, Figure):
            return list(self._figure(said))[: self._most]
        if isinstance(said, Date):
            return self._dates.get((said.year, said.month, said.day), [])[: self._most] or [
                Stretch(one.start, one.end, "the year is the reply's own")
                for one in self._dates.get((None, said.month, said.day), [])[: self._most]
                if said.year is not None and said.day is not None and self._yearless(one)
            ]
        if isinstance(said, int):
            return (self._times.get(said) or self._times.get((said + 720) % 1440, []))[: self._most]
        assert isinstance(said, str)  # noqa: S101  # an id's key
        return self._ids.get(said, [])[: self._most]

    def _yearless(self, stretch: Stretch) -> bool:
        return any(date.start == stretch.start and date.year is None for date in self._marks.dates)

    @cached_property
    def _figures(self) -> list[tuple[float, Figure]]:
        both = [(one.value, one) for one in self._marks.figures] + [(one.other, one) for one in self._marks.figures if one.other]
        return sorted((pair for pair in both if pair[0] < 1e18), key=lambda pair: (pair[0], pair[1].start))

    @cached_property
    def _values(self) -> list[float]:
        return [value for value, _ in self._figures]

    @cached_property
    def _distinct(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.unique(np.array(self._values, dtype=np.float64))

    def cells(self) -> Iterator[Cell]:
        """The figures that are the whole value of a cell."""
        for figure in self._marks.figures:
            spot = self._evidence.spot_at(figure.start)
            if spot.cell and figure.end - figure.start >= spot.end - spot.start - 2 and (spot.path or spot.end - spot.start < 20):
                negative = self._evidence.text[spot.start : spot.start + 1] in "-−"
                yield -figure.value if negative else figure.value, spot

    def stated(self, start: int) -> Cell:
        """What the evidence states at a place: a figure's worth, or 0 for anything else."""
        return self._worths.get(start, 0.0), self._evidence.spot_at(start)

    @cached_property
    def _worths(self) -> dict[int, float]:
        return {figure.start: figure.value for figure in self._marks.figures}

    def _figure(self, figure: Figure) -> Iterator[Stretch]:
        """As it is, then rounded, then in another unit."""
        step = figure.step
        if not self._values:
            yield from self._year(figure)
            return
        for value, unit, how in readings(figure):
            rare = chance(self._distinct, value, unit) <= _CHANCE if value else False
            for one in self._between(value * (1 - 1e-9), value * (1 + 1e-9)):
                yield Stretch(one.start, one.end, how, by_chance=not rare and not _same_unit(figure, one))
            telling = figure.value >= 10 * step or figure.hedged or figure.scale > 1
            for one in self._between(value - 0.5001 * unit, value + 0.5001 * unit) if telling else ():
                if abs(one.value - value) > 1e-9 * value and (one.step < unit or figure.hedged):
                    yield Stretch(one.start, one.end, "rounded", by_chance=not rare)
        yield from self._converted(figure)
        yield from self._year(figure)

    def _between(self, low: float, high: float) -> Iterable[Figure]:
        first, last = bisect_left(self._values, low), bisect_right(self._values, high)
        return [one for _, one in self._figures[first : min(last, first + self._most)]]

    def _converted(self, figure: Figure) -> Iterator[Stretch]:
        """The same in another unit of its family: 312 minutes are 5.2 hours."""
        stated = FACTORS.get(figure.unit)
        if stated is None:
            return
        for worth in {worth for family, worth in FACTORS.values() if family == stated[0] and worth != stated[1]}:
            ratio = stated[1] / worth
            for one in self._between((figure.value - figure.step / 2) * ratio, (figure.value + figure.step / 2) * ratio):
                if self._unit(one) == (stated[0], worth):
                    yield Stretch(one.start, one.end, "converted", by_chance=figure.value < 10)

    def _unit(self, figure: Figure) -> tuple[str, float] | None:
        spot = self._evidence.spot_at(figure.start)
        named = " ".join(WORD.findall(str(spot.path[-1]).lower().replace("_", " "))) if spot.path else ""
        return unit_of(figure.unit) or unit_of(named)

    def _year(self, figure: Figure) -> Iterator[Stretch]:
        """The year of a date, or a number that is a part of an id."""
        if figure.step == 1 and figure.value < 10_000:
            yield from self._inside.get(int(figure.value), [])[: self._most]
        if figure.unit in ("st", "nd", "rd", "th") and figure.value <= 31:
            yield from self._dates.get((None, None, int(figure.value)), [])[: self._most]
        if 1900 <= figure.value <= 2100 and figure.step == 1:
            yield from self._dates.get((int(figure.value), None, None), [])[: self._most]

    def worded(self, mention: Mention, text: str) -> Iterator[tuple[int, int, list[Stretch]]]:
        """The places of a name or quote; of a name that stands nowhere as a whole, those of its longest parts."""
        words = [found for found in WORD.finditer(text, mention.start, mention.end)]
        # What only joins a name's words is no part of it to be missed.
        words = [found for found in words if mention.kind == "quote" or found[0] not in _JOINING]
        stems = [_key(fold_accents(found[0])) for found in words]
        at = 0
        missing: list[int] = []
        while at < len(stems):
            last, places = self._longest(stems, at, whole=mention.kind == "quote")
            if not places:
                missing.append(at)
                at += 1
                continue
            yield from _missing(words, missing)
            missing = []
            yield words[at].start(), words[last - 1].end(), places
            at = last
        yield from _missing(words, missing)

    def _longest(self, stems: list[str], at: int, *, whole: bool) -> tuple[int, list[Stretch]]:
        """The end of the longest run of words from here that stands in the evidence, and its places."""
        reached = list(self._words.get(stems[at], ()))
        if not reached and stems[at][0] == "#":
            return at + 1, self._dates.get((None, int(stems[at][1:]), None), [])[: self._most]
        last = at + 1
        while last < len(stems) and reached:
            following = {index: end for _, end, index in self._words.get(stems[last], ())}
            further = [
                (start, following[index + gap], index + gap)
                for start, _, index in reached
                for gap in (1, 2)
                if index + gap in following
            ]
            if not further:
                break
            reached = further
            last += 1
        if whole and (at or last < len(stems)):
            return at + 1, []
        return last, [Stretch(start, end) for start, end, _ in reached[: self._most]]


def _same_unit(one: Figure, other: Figure) -> bool:
    """Whether both have the same sign or word behind them: %, days, years and yrs."""
    stated = FACTORS.get(one.unit)
    return (one.percent and other.percent) or (stated is not None and stated == FACTORS.get(other.unit))


def _missing(words: list[re.Match[str]], missing: list[int]) -> Iterator[tuple[int, int, list[Stretch]]]:
    if any(words[index][0] != words[index][0].lower() for index in missing):
        yield words[missing[0]].start(), words[missing[-1]].end(), []


def _key(word: str) -> str:
    """Equal for words that differ by their ending only, and for a month's names."""
    month = month_number(word)
    return stem(word) if month is None else f"#{month}"


def _positions(text: str, wanted: set[str]) -> dict[str, list[tuple[int, int, int]]]:
    """(start, end, number among the words) of the first places of each wanted stem."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    if not wanted:
        return found
    for index, word in enumerate(WORD.finditer(text)):
        stemmed = _key(fold_accents(word[0]))
        if stemmed in wanted:
            places = found.setdefault(stemmed, [])
            if len(places) < 10 * _MOST_PLACES:
                places.append((*word.span(), index))
    return found


def _date_keys(date: Date) -> Iterator[tuple[int | None, int | None, int | None]]:
    """Every way in which a date may be stated with parts left out."""
    yield date.year, date.month, date.day
    if date.year is not None:
        yield None, date.month, date.day
        if date.day is not None:
            yield date.year, date.month, None
        yield date.year, None, None
    if date.day is not None:
        yield None, date.month, None
        yield None, None, date.day
    if date.ambiguous:
        yield date.year, date.day, date.month
        yield None, date.day, date.month
