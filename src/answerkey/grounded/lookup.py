"""Lookup: the figures, dates, ids and words of the evidence, so that each mention of a reply finds its places."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter

import msgspec

from answerkey.grounded.evidence import Evidence, Spot
from answerkey.grounded.marks import Figure, Unit, find_marks, readings, unit_of
from answerkey.grounded.names import Name
from answerkey.grounded.words import WORD, Words, word_key
from answerkey.text.dates import Date
from answerkey.text.units import DIMENSIONS

__all__ = ["Cell", "Lookup", "Stretch", "chance"]

# A figure that so many would hit by chance needs a word in common with its place.
_CHANCE = 0.1
# Places of a reply that are compared by their surroundings, over all its mentions; and of one mention.
_MOST_COMPARED = 20_000
_MOST_PLACES = 100
# Characters on each side of a place in a passage that speak of it; of a record, so many values do.
_REACH = 90
_MOST_VALUES = 24
# Of a longer id the parts are not looked up.
_LONGEST_ID = 80
_INSIDE = re.compile(r"(?<![0-9])[0-9]{1,4}(?![0-9])")
# What only joins a name's words is no part of it to be missed.
_JOINING_LIST = "of de la le du des del di da dos van von der den and y und et the for s"
_JOINING = frozenset(_JOINING_LIST.split())

# By what is measured: how much of it each of its units is.
_FACTORS: dict[str, set[float]] = defaultdict(set)
for _measured, _factor in DIMENSIONS.values():
    _FACTORS[_measured].add(_factor)
_first = itemgetter(0)

# A number of the evidence (0 where it is none), and where it stands.
Cell = tuple[float, Spot]


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """A stretch of the evidence that a mention may be linked to."""

    start: int
    end: int
    # Empty: as it is; otherwise "rounded", "converted", …
    how: str = ""
    # Whether a figure like it would often be found by chance.
    by_chance: bool = False


def chance(values: Sequence[float], value: float, step: float) -> float:
    """Hits to be expected if a figure of this size and precision were drawn at random; `values` are sorted."""
    if not value:
        return 1.0
    return (bisect_right(values, 2 * value) - bisect_left(values, value / 2)) * step / (1.5 * value)


class Lookup:
    """What the mentions of one reply are looked up in."""

    def __init__(self, evidence: Evidence, wanted: set[str], mentions: int) -> None:
        self._evidence = evidence
        self.most = max(4, min(_MOST_PLACES, _MOST_COMPARED // max(1, mentions)))
        self.words = Words(evidence.text)
        self.figures: list[Figure] = []
        # By what a date, time, id or part of an id says.
        self._known: dict[object, list[Stretch]] = defaultdict(list)
        for said, start, end in find_marks(evidence.text, self.words):
            if isinstance(said, Figure):
                self.figures.append(said)
            else:
                self._know(said, Stretch(start, end))
        # By key: the places of each wanted word among the words.
        self._places: dict[str, list[int]] = defaultdict(list)
        for index in [index for index, key in enumerate(self.words.keys) if key in wanted]:
            self._places[self.words.keys[index]].append(index)
        both = [(one.value, one) for one in self.figures] + [
            (one.other, one) for one in self.figures if one.other
        ]
        both.sort(key=_first)
        self._sorted = [one for _, one in both]
        self._values = [value for value, _ in both]
        self._distinct = list(dict.fromkeys(self._values))
        self._worths = {one.start: one.value for one in self.figures}
        self._said: dict[object, set[str]] = {}

    def _know(self, said: Date | int | str, at: Stretch) -> None:
        known = self._known
        if isinstance(said, Date):
            year, month, day = said.year, said.month, said.day
            for key in ((year, month, day), (None, month, day), ("y", year), ("m", month), ("d", day)):
                known[key].append(at)
            if day and year:
                known[year, month, None].append(at)
            if said.ambiguous:
                known[year, day, month].append(at)
                known[None, day, month].append(at)
            return
        known["time", said].append(at) if isinstance(said, int) else known[said].append(at)
        if isinstance(said, str) and len(said) <= _LONGEST_ID:
            for part in WORD.finditer(self._evidence.text, at.start, at.end):
                known[part[0].casefold()].append(Stretch(*part.span()))
            for part in _INSIDE.finditer(self._evidence.text, at.start, at.end):
                known["part", int(part[0])].append(Stretch(*part.span(), by_chance=len(part[0]) < 4))

    def find(self, said: Figure | Date | int | str) -> list[Stretch]:
        """The places of a figure, date, time or id, at most so many that all can be compared."""
        if isinstance(said, Figure):
            return list(self._figure(said))[: self.most]
        if isinstance(said, Date):
            return self._given((said.year, said.month, said.day))
        if isinstance(said, int):
            return self._given(("time", said)) or self._given(("time", (said + 720) % 1440))
        return self._given(said)

    def _given(self, key: object) -> list[Stretch]:
        return self._known.get(key, [])[: self.most]

    def speaks_of(self, at: Stretch) -> set[str]:
        """The words around a place: the names and texts of its record, or those near it in its passage."""
        spot = self._evidence.spot_at(at.start)
        if spot.record < 0 or spot.end - spot.start > 2 * _REACH:
            return self.words.between(max(spot.start, at.start - _REACH), at.start) | self.words.between(
                at.end, min(spot.end, at.end + _REACH)
            )
        key = (spot.record, spot.path[-1])
        if key not in self._said:
            said = {
                word_key(word) for name in spot.path if isinstance(name, str) for word in WORD.findall(name)
            }
            for other in self._evidence.records[spot.record][:_MOST_VALUES]:
                if other.cell or other is spot:
                    said |= self.words.between(other.start, min(other.end, other.start + _REACH))
            self._said[key] = said
        return self._said[key]

    def stated(self, start: int) -> Cell:
        """What the evidence states at a place: a figure's worth, or 0 for anything else."""
        return self._worths.get(start, 0.0), self._evidence.spot_at(start)

    def _figure(self, figure: Figure) -> Iterator[Stretch]:
        """As it is, then rounded, then in another unit, then as a part of a date or id."""
        telling = figure.value >= 10 * figure.step or figure.hedged or figure.scale > 1
        for value, step, how in readings(figure):
            often = chance(self._distinct, value, step) > _CHANCE
            for one in self._between(value - 0.5001 * step, value + 0.5001 * step):
                if abs(one.value - value) <= 1e-9 * value or abs(one.other - value) <= 1e-9 * value:
                    yield Stretch(one.start, one.end, how, often and not self._same_unit(figure, one))
                elif telling and (one.step < step or figure.hedged):
                    yield Stretch(one.start, one.end, "rounded", often)
        if figure.unit:
            yield from self._converted(figure)
        if figure.step == 1 and figure.value < 10_000:
            number = int(figure.value)
            yield from self._given(("part", number))
            yield from self._given(("y", number))
            if figure.unit in ("st", "nd", "rd", "th"):
                yield from self._given(("d", number))

    def _between(self, low: float, high: float) -> list[Figure]:
        first = bisect_left(self._values, low)
        return self._sorted[first : min(bisect_right(self._values, high), first + self.most)]

    def _same_unit(self, one: Figure, other: Figure) -> bool:
        """Whether both have the same sign or word behind them: %, days, years and yrs."""
        if one.percent or not one.unit:
            return one.percent and other.percent
        return one.unit == other.unit or unit_of(one.unit) == (unit_of(other.unit) or ())

    def _converted(self, figure: Figure) -> Iterator[Stretch]:
        """The same in another unit of its family: 312 minutes are 5.2 hours."""
        family, stated = unit_of(figure.unit) or ("", 1.0)
        for worth in _FACTORS.get(family, ()):
            ratio = stated / worth
            low, high = (figure.value - figure.step / 2) * ratio, (figure.value + figure.step / 2) * ratio
            for one in self._between(low, high) if ratio != 1 else ():
                if self._unit(one) == (family, worth):
                    yield Stretch(one.start, one.end, "converted", by_chance=figure.value < 10 * figure.step)

    def _unit(self, figure: Figure) -> Unit | None:
        """The unit behind a figure, or that the name of its value ends with: delay_min."""
        path = self._evidence.spot_at(figure.start).path
        named = WORD.findall(str(path[-1]).lower()) if path else []
        units = (unit_of(word) for word in (figure.unit, *reversed(named)))
        return next((unit for unit in units if unit is not None), None)

    def worded(self, text: str, name: Name) -> Iterator[tuple[int, int, list[Stretch]]]:
        """(start, end, places) of a name or quote; of a name that stands nowhere as a whole, of its longest parts."""
        quote = name.kind == "quote"
        words = [one for one in WORD.finditer(text, name.start, name.end) if quote or one[0] not in _JOINING]
        keys = [word_key(one[0]) for one in words]
        at, missing = 0, 0
        while at < len(keys):
            last, places = self._longest(keys, at)
            if quote and (at or last < len(keys)):
                yield name.start, name.end, []
                return
            if places:
                yield from _unfound(words[missing:at])
                yield words[at].start(), words[last - 1].end(), places
                missing = last
            at = last
        yield from _unfound(words[missing:])

    def _longest(self, keys: list[str], at: int) -> tuple[int, list[Stretch]]:
        """The end of the longest run of words from here that stands in the evidence, and its places."""
        known, starts = self.words.keys, self.words.starts
        ends = {index: index for index in self._places.get(keys[at], [])[: 10 * self.most]}
        if not ends and keys[at][0] == "#":
            return at + 1, self._given(("m", int(keys[at][1:])))
        last = at + 1
        while last < len(keys) and ends:
            # "Bank of England" may stand for "Bank England" and the other way round.
            further = {
                first: end + gap
                for first, end in ends.items()
                for gap in (2, 1)
                if known[end + gap : end + gap + 1] == [keys[last]]
            }
            if not further:
                break
            ends, last = further, last + 1
        last_words = ((first, WORD.match(self._evidence.text, starts[end])) for first, end in ends.items())
        places = [Stretch(starts[first], word.end()) for first, word in last_words if word]
        return last, places[: self.most]


def _unfound(words: list[re.Match[str]]) -> Iterator[tuple[int, int, list[Stretch]]]:
    if any(word[0] != word[0].lower() for word in words):
        yield words[0].start(), words[-1].end(), []
