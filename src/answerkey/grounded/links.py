"""Links: where each figure, date, name, id and quote of a reply stands in its evidence, and what was found nowhere.

A link says where to look, never that the statement is right; what has none is listed, never called wrong. The evidence is
read once into tables by worth, date, id and word, in which each mention of the reply is looked up.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import compress, count
from operator import attrgetter

import msgspec

from answerkey.grounded.derived import Cell, Derived, chance
from answerkey.grounded.evidence import MOST_EVIDENCE, Evidence, gather_evidence
from answerkey.grounded.marks import Mark, find_marks, find_names, readings, stated_figure, unit_of
from answerkey.grounded.words import WORD, Sentences, Words, meaning, novelty_of, word_key, words_of
from answerkey.model.link import Link
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.units import DIMENSIONS

# A longer reply is not searched.
MOST_REPLY = 50_000
# A figure that so many would hit by chance needs a word in common with its place.
_CHANCE = 0.1
# Places of a reply that are compared by their surroundings, over all its mentions; and of one mention.
_MOST_COMPARED = 20_000
_MOST_PLACES = 100
# In a passage, the block of so many characters that a place lies in and the two beside it speak of it; so do the
# beginnings of a record's values.
_BLOCK = 60
_LONGEST_VALUE = 3 * _BLOCK
# Of a longer id the parts are not looked up.
_LONGEST_ID = 80
_WORDED = frozenset({"name", "quote"})
_INSIDE = re.compile(r"[0-9](?<![0-9][0-9])[0-9]{0,3}(?![0-9])")

# From where to where in the evidence, how it was read, and whether a figure like it would often be found by chance.
Place = tuple[int, int, str, bool]
Earlier = Sequence[tuple[Question, Reply]]


class TooLargeError(ValueError):
    """A reply or its evidence is larger than what is searched."""


class Links(msgspec.Struct, frozen=True):
    """The links of one reply."""

    items: tuple[Link, ...]

    @property
    def linked(self) -> float | None:
        """The share of the items that have a link; None without an item."""
        return sum(bool(item.where) for item in self.items) / len(self.items) if self.items else None


def describe(question: Question, reply: Reply, earlier: Earlier = ()) -> tuple[Links, float | None]:
    """The links of a reply into its tool results, sources, arguments and question, and its novelty; raises TooLargeError."""
    text = reply.text or ""
    if len(text) > MOST_REPLY:
        raise TooLargeError(f"the reply has {len(text):,} characters, more than {MOST_REPLY:,}")
    evidence = gather_evidence(question, reply, earlier)
    if evidence.length > MOST_EVIDENCE:
        raise TooLargeError(f"the evidence has more than {MOST_EVIDENCE:,} characters")
    linking = _Linking(text, evidence)
    items = sorted(linking.links(), key=attrgetter("start")) if evidence.spots else ()
    return Links(tuple(items)), novelty_of(linking.said, linking.known)


class _Linking:
    """The search for one reply's links."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        self._text = text
        self._evidence = evidence
        self.said, self.known = Words(text), Words(evidence.text)
        self._sentences = Sentences(text)
        self._mentions = find_marks(text, self.said)
        self._mentions += find_names(text, self.said, self._mentions)
        self._most = max(4, min(_MOST_PLACES, _MOST_COMPARED // max(1, len(self._mentions))))
        # The figures of the evidence by worth, and everything else by what it says.
        figures = [
            Mark("figure", spot.start, spot.start, value=abs(spot.value))
            for spot in evidence.spots
            if not isinstance(spot.value, str)
        ]
        self._places: dict[object, list[Place]] = defaultdict(list)
        for mark in find_marks(evidence.text, self.known):
            if mark.kind != "figure":
                self._note(mark)
                continue
            figures.append(mark)
            if mark.other:
                figures.append(msgspec.structs.replace(mark, value=mark.other))
        figures.sort(key=attrgetter("value"))
        self._figures, self._values = figures, [figure.value for figure in figures]
        self._distinct = list(dict.fromkeys(self._values))
        # By sentence: its words, and the places that it was linked to; by stretch of the evidence: its words.
        self._words: dict[int, set[str]] = {}
        self._stated: dict[int, list[int]] = defaultdict(list)
        self._context: dict[object, set[str]] = {}

    def _note(self, mark: Mark) -> None:
        """Keep a date, time or id of the evidence under everything by which it may be mentioned."""
        places, at = self._places, (mark.start, mark.end, "", False)
        if mark.kind == "date":
            year, month, day = mark.key
            for key in ((year, month, day), (None, month, day), ("part", year), ("month", month)):
                places[key].append(at)
            if day:
                places[year, month, None].append(at)
            if mark.doubtful:
                places[year, day, month].append(at)
                places[None, day, month].append(at)
            return
        places[mark.key].append(at)
        if mark.kind == "id" and mark.end - mark.start <= _LONGEST_ID:
            for part in WORD.finditer(self._evidence.text, mark.start, mark.end):
                places["id", part[0].casefold()].append((*part.span(), "", False))
            for part in _INSIDE.finditer(self._evidence.text, mark.start, mark.end):
                places["part", int(part[0])].append((*part.span(), "", len(part[0]) < 4))

    def links(self) -> Iterator[Link]:
        """Direct ones first: what a sentence states tells what its other figures may be made of."""
        left: list[Mark] = []
        indices: dict[str, list[int]] = defaultdict(list)
        wanted = {word_key(one[0]) for mark in self._mentions if mark.kind in _WORDED for one in mark.key}
        for index in compress(count(), map(wanted.__contains__, self.known.keys)) if wanted else ():
            indices[self.known.keys[index]].append(index)
        for mark in self._mentions:
            if mark.kind == "figure":
                figure = stated_figure(self._text, mark)
                if figure is not None:
                    best = self._best(mark.start, self._figure(figure)[: self._most])
                    if best is None:
                        left.append(figure)
                    else:
                        yield self._link(mark.start, mark.end, "figure", best)
            elif mark.kind in _WORDED:
                yield from self._worded(mark, indices)
            else:
                places = self._given(mark.key)
                if not places and mark.kind == "time":
                    places = self._given(("time", (mark.key[1] + 720) % 1440))
                yield self._link(mark.start, mark.end, mark.kind, self._best(mark.start, places))
        yield from self._derived(left) if left else ()

    def _derived(self, left: list[Mark]) -> Iterator[Link]:
        worths = {figure.start: figure.value for figure in self._figures}
        derived = Derived(self._evidence, self._cells())
        for figure in left:
            number = self._sentences.number(figure.start)
            stated = [(worths.get(at, 0.0), self._evidence.spot_at(at)) for at in self._stated[number]]
            found = derived.find(figure, number, stated)
            at = (
                None
                if found is None
                else (found[1].start, found[1].start + len(found[1].text), found[0], False)
            )
            yield self._link(figure.start, figure.end, "figure", at)

    def _cells(self) -> Iterator[Cell]:
        """The figures that are the whole value of a cell."""
        for spot in self._evidence.spots:
            if spot.cell and not isinstance(spot.value, str):
                yield spot.value, spot
        for figure in self._figures:
            # A number that came as one takes no room in the text.
            if figure.end > figure.start:
                spot = self._evidence.spot_at(figure.start)
                if spot.cell and figure.end - figure.start >= len(spot.text) - 2:
                    yield -figure.value if spot.text[0] in "-−" else figure.value, spot

    def _given(self, key: object) -> list[Place]:
        return self._places[key][: self._most] if key in self._places else []

    def _figure(self, figure: Mark) -> list[Place]:
        """As it is, then rounded, then in another unit, then as a part of a date or id."""
        found: list[Place] = []
        for value, step, how in readings(figure):
            near = self._between(value - 0.5001 * step, value + 0.5001 * step)
            often = bool(near) and chance(self._distinct, value, step) > _CHANCE
            for one in near:
                if abs(one.value - value) <= 1e-9 * value:
                    found.append((one.start, one.end, how, often and not _same_unit(figure, one)))
                elif figure.value >= 10 * figure.step or figure.hedged or figure.scale > 1:
                    found.append((one.start, one.end, "rounded", often))
        measured, stated = unit_of(figure.unit) or ("", 1.0)
        for worth in _FACTORS.get(measured, ()):
            ratio, half = stated / worth, figure.step / 2
            for one in self._between((figure.value - half) * ratio, (figure.value + half) * ratio):
                # 312 minutes are 5.2 hours.
                if ratio != 1 and self._unit(one) == (measured, worth):
                    found.append((one.start, one.end, "converted", figure.value < 10 * figure.step))
        if figure.step == 1 and figure.value < 10_000:
            found += self._given(("part", int(figure.value)))
        return found

    def _between(self, low: float, high: float) -> list[Mark]:
        first = bisect_left(self._values, low)
        return self._figures[first : min(bisect_right(self._values, high), first + self._most)]

    def _unit(self, figure: Mark) -> object:
        """The unit behind a figure, or that the name of its value ends with: delay_min."""
        named = WORD.findall(str(self._evidence.spot_at(figure.start).key).lower())
        units = (unit_of(word) for word in (figure.unit, *reversed(named)))
        return next((unit for unit in units if unit is not None), None)

    def _best(self, start: int, places: Sequence[Place]) -> Place | None:
        """Of several places the one whose surroundings speak most of what the sentence does.

        A figure that may be there by chance needs a word in common with its place.
        """
        if not places:
            return None
        sentence = self._sentences.number(start)
        best, most = places[0], -1.0
        if len(places) > 1 or best[3]:
            words = self._words.get(sentence)
            if words is None:
                words = self._words[sentence] = self.said.between(*self._sentences.bounds(sentence))
            for place in places:
                shared = len(words & self._speaks_of(place[0])) - (0.5 if place[2] else 0.0)
                if shared > most and (shared > 0 or not place[3]):
                    best, most = place, shared
            if most < 0 and best[3]:
                return None
        self._stated[sentence].append(best[0])
        return best

    def _speaks_of(self, start: int) -> set[str]:
        """The words around a place: its name and the texts of its record, or those near it in its passage."""
        spot = self._evidence.spot_at(start)
        path = self._evidence.records[spot.record].path
        text = spot.value if isinstance(spot.value, str) else ""
        if path is None or len(text) > _LONGEST_VALUE:
            key: object = spot.start, start // _BLOCK
            if key not in self._context:
                first, last = start - start % _BLOCK - _BLOCK, start - start % _BLOCK + 2 * _BLOCK
                words = self.known.between(max(spot.start, first), min(spot.start + len(text), last))
                self._context[key] = words
        else:
            key = spot.record, spot.key, ""
            if key not in self._context:
                self._context[key] = self._record_words(spot.record) | set(words_of(f"{spot.key} {text}"))
        return self._context[key]

    def _record_words(self, number: int) -> set[str]:
        if number not in self._context:
            path = self._evidence.records[number].path or ()
            values = [spot.value for spot in self._evidence.spots_of(number) if spot.cell]
            texts = [value[: 2 * _BLOCK] for value in values if isinstance(value, str)]
            texts += [name for name in path if isinstance(name, str)]
            self._context[number] = meaning(words_of("\n".join(texts)))
        return self._context[number]

    def _worded(self, name: Mark, indices: dict[str, list[int]]) -> Iterator[Link]:
        """A name or quote; of a name that stands nowhere as a whole, its longest parts."""
        words = name.key
        keys = [word_key(one[0]) for one in words]
        at = missing = 0
        while at < len(keys):
            last, places = self._longest(keys, at, indices)
            if name.kind == "quote" and last < len(keys):
                yield self._link(name.start, name.end, "quote", None)
                return
            if at == 0 and name.doubtful:
                # A word that begins a sentence is a name if the evidence writes it as one, or has it in a table.
                places = [one for one in places if self._is_name(one[0])]
            if places:
                yield from self._missing(words[missing:at], doubtful=name.doubtful and not missing)
                start = words[at].start()
                yield self._link(start, words[last - 1].end(), name.kind, self._best(start, places))
                missing = last
            at = last
        yield from self._missing(words[missing:], doubtful=name.doubtful and not missing)

    def _missing(self, words: list[re.Match[str]], *, doubtful: bool) -> Iterator[Link]:
        if len(words) > doubtful:
            yield self._link(words[0].start(), words[-1].end(), "name", None)

    def _is_name(self, start: int) -> bool:
        evidence = self._evidence
        return (
            evidence.text[start].isupper()
            or evidence.records[evidence.spot_at(start).record].path is not None
        )

    def _longest(self, keys: list[str], at: int, indices: dict[str, list[int]]) -> tuple[int, list[Place]]:
        """The end of the longest run of words from here that stands in the evidence, and its places."""
        known, starts, spot_at = self.known.keys, self.known.starts, self._evidence.spot_at
        ends = {index: index for index in indices.get(keys[at], [])[: 10 * self._most]}
        if not ends and keys[at][0] == "#":
            return at + 1, self._given(("month", int(keys[at][1:])))
        last = at + 1
        while last < len(keys) and ends:
            # "Bank of England" may stand for "Bank England" and the other way round, but in one value.
            further = {
                first: end + gap
                for first, end in ends.items()
                for gap in (2, 1)
                if known[end + gap : end + gap + 1] == [keys[last]]
                and spot_at(starts[first]) is spot_at(starts[end + gap])
            }
            if not further:
                break
            ends, last = further, last + 1
        spans = list(ends.items())[: self._most]
        return last, [
            (starts[first], self.known.end(self._evidence.text, end), "", False) for first, end in spans
        ]

    def _link(self, start: int, end: int, kind: str, at: Place | None) -> Link:
        text = self._text[start:end]
        if at is None:
            return Link(text, start, end, kind)
        evidence = self._evidence
        spot = evidence.spot_at(at[0])
        span = (
            (at[0] - spot.start, at[1] - spot.start) if isinstance(spot.value, str) else (0, len(spot.text))
        )
        found = spot.text[slice(*span)]
        return Link(
            text, start, end, kind, evidence.where(spot), found, span, evidence.row_label(spot), at[2]
        )


# By what is measured: how much of it each of its units is.
_FACTORS: dict[str, set[float]] = defaultdict(set)
for _measured, _factor in DIMENSIONS.values():
    _FACTORS[_measured].add(_factor)


def _same_unit(one: Mark, other: Mark) -> bool:
    """Whether both have the same sign or word behind them: %, days, years and yrs."""
    if one.percent or not one.unit:
        return one.percent and other.percent
    return one.unit == other.unit or unit_of(one.unit) == (unit_of(other.unit) or ())
