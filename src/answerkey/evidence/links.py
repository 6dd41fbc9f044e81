"""Links: where each figure, date, name, id and quote of a reply stands in its evidence, and what was found nowhere.

A link says where to look, never that the statement is right; what has none is listed, never called wrong. The evidence is
read once into an index by what is measured and its worth, and by word, in which each mention of the reply is looked up.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, compress, count, groupby, pairwise, permutations
from math import fsum
from operator import add, attrgetter, itemgetter, sub, truediv
from typing import Any

from answerkey.entailment import CrossEncoder
from answerkey.evidence.facts import (
    MOST_EVIDENCE,
    UNITS,
    Earlier,
    Evidence,
    Mark,
    Path,
    Reading,
    Spot,
    Words,
    find_marks,
    find_names,
    gather_evidence,
    meaning,
    novelty_of,
    sentence_edges,
)
from answerkey.model.question import Question
from answerkey.model.reply import Link, Reply

MOST_REPLY = 50_000  # a longer one is not searched
# Places that are compared by their surroundings, over all mentions of a reply, and of one of them.
_MOST_COMPARED, _MOST_PLACES = 20_000, 100
# Characters that tell what a place is about: in a passage the block that it lies in and those beside it, in a record the first.
_BLOCK, _MOST_NEAR = 60, 1_000

Links = tuple[Link, ...]
Span = tuple[int, int]
# A span of the evidence, its worth, how it was read, and whether a figure like it would often be found by chance.
Place = tuple[int, int, float, str, bool]


class TooLargeError(ValueError):
    """A reply or its evidence is larger than what is searched."""


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
    return tuple(items), novelty_of(linking.said, linking.known)


def _index(evidence: Evidence, known: Words) -> dict[object, list[tuple[float, Span]]]:
    """Where everything of the evidence stands, by what it is and its worth, under all by which it may be mentioned."""
    found: dict[object, list[tuple[float, Span]]] = defaultdict(list)
    for spot in evidence.spots:
        if spot.number is not None:
            at, worth = (spot.start, spot.start), abs(spot.number)
            found[""].append((worth, at))
            if measured := UNITS.get(str(spot.key).rpartition("_")[2].lower()):  # delay_min is in minutes
                found[measured[0]].append((worth * measured[1], at))
    for mark in find_marks(evidence.text, known):
        at = mark.start, mark.end
        for sort, worth, _, how in mark.readings:
            if how in ("", "converted"):
                found[sort].append((worth, at))
            if mark.kind == "date":
                year, month, day = sort
                parts = {(None, month, day), (year, month, None), (None, month, None), ("part", year)}
                for part in parts - {sort}:
                    found[part].append((0.0, at))
    return found


@lru_cache(maxsize=4096)
def _name_words(names: Path) -> frozenset[str]:
    return frozenset(Words(" ".join(map(str, names))).keys)


class _Linking:
    """The search for one reply's links."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        self._text = text
        self._evidence = evidence
        self.said, self.known = Words(text), Words(evidence.text)
        self._edges = sentence_edges(text)
        self._mentions = find_marks(text, self.said, reply=True)
        self._mentions += find_names(text, self.said, self._mentions)
        self._most = max(4, min(_MOST_PLACES, _MOST_COMPARED // max(1, len(self._mentions))))
        self._index = _index(evidence, self.known)
        self._worths: dict[object, Worths] = {}
        # By word that is looked for: its places in the evidence.
        self._indices: dict[str, list[int]] = defaultdict(list)
        wanted = {self.said.keys[index] for mark in self._mentions for index in mark.words}
        for index in compress(count(), map(wanted.__contains__, self.known.keys)) if wanted else ():
            self._indices[self.known.keys[index]].append(index)
        # By sentence, from 1: its words, and what it was linked to.
        sentences = [self.said.indices(*edges) for edges in pairwise(self._edges)]
        self._words = [set(), *(meaning(self.said.keys[one.start : one.stop]) for one in sentences)]
        self._stated: dict[int, list[Cell]] = defaultdict(list)

    def links(self) -> Iterator[Link]:
        """Direct ones first: what a sentence states tells what its other figures may be made of."""
        left: list[Mark] = []
        for mark in self._mentions:
            if mark.words:
                yield from self._worded(mark)
            elif mark.kind != "part":
                best = self._best(mark.start, self._places(mark))
                if best is None and mark.kind == "figure":
                    left.append(mark)
                else:
                    yield self._link(mark.start, mark.end, mark.kind, best)
        derived = Derived(self._evidence) if left else None
        for mark in left:
            number = bisect_right(self._edges, mark.start)
            how, spot = (derived and derived.find(mark, number, self._stated[number])) or ("", None)
            at = (spot.start, spot.start + len(spot.text), 0.0, how, False) if spot else None
            yield self._link(mark.start, mark.end, "figure", at)

    def _places(self, mark: Mark) -> list[Place]:
        """As it is, then rounded, then in another unit, then as a part of a date or id."""
        found: dict[int, Place] = {}
        for reading in mark.readings:
            sort, value, step, how = reading
            near, chance = self._index.get(sort, [])[: self._most], float(how == "part" and value < 1000)
            if near and step:
                worths = self._worths.get(sort) or self._worths.setdefault(sort, Worths(self._index[sort]))
                near, chance = worths.near(reading, self._most)
            for worth, (start, end) in near:
                exact = abs(worth - value) <= 1e-9 * value or how == "part"
                if start in found:
                    # The same number of the same thing is there by no chance.
                    if exact and how == "converted" and not found[start][3]:
                        found[start] = start, end, worth, "", False
                elif exact or value >= 10 * step or mark.scaled:
                    read = "" if how == "part" else how if exact or how == "converted" else "rounded"
                    found[start] = start, end, worth, read, chance > CHANCE
        return list(found.values())[: self._most]

    def _best(self, start: int, places: Sequence[Place]) -> Place | None:
        """The place whose surroundings speak most of what the sentence does; one that may be chance needs a word in common."""
        number = bisect_right(self._edges, start)
        best, most = (places[0], 0.0) if len(places) == 1 and not places[0][4] else (None, -1.0)
        for place in places if best is None else ():
            shared = self._shared(self._words[number], place[0]) - (0.5 if place[3] else 0.0)
            if shared > most and (shared > 0 or not place[4]):
                best, most = place, shared
        if best is not None:
            self._stated[number].append((best[2], self._evidence.spot_at(best[0])))
        return best

    def _shared(self, words: set[str], start: int) -> int:
        """How many of some words stand near a place in its passage or record, or in its name."""
        spot = self._evidence.spot_at(start)
        record, following = self._evidence.records[spot.record : spot.record + 2]
        first, last, block = record.start, following.start, start - start % _BLOCK
        if record.path is None or len(spot.text) > 3 * _BLOCK:
            first, last = max(first, block - _BLOCK), min(last, block + 2 * _BLOCK)
        near = self.known.indices(first, min(last, first + _MOST_NEAR))
        names = _name_words((*(record.path or ()), spot.key))
        return len(words.intersection(chain(self.known.keys[near.start : near.stop], names)))

    def _worded(self, name: Mark) -> Iterator[Link]:
        """A name or quote; of a name that stands nowhere as a whole, its words, if any of them is known."""
        starts = self.said.starts
        found = [(name.words, self._runs(name.words))]
        if not found[0][1] and name.kind == "name":
            words = [range(index, index + 1) for index in name.words if self._text[starts[index]].isupper()]
            parts = [(one, self._runs(one)) for one in words]
            found = parts if any(places for _, places in parts) else found
        for part, places in found:
            if name.doubtful and part == name.words[:1]:
                # A word that begins a sentence is a name if the evidence writes it as one.
                places = [place for place in places if self._evidence.text[place[0]].isupper()]
                if not places:
                    continue
            best = self._best(starts[part.start], places)
            yield self._link(starts[part.start], self.said.ends[part.stop - 1], name.kind, best)

    def _runs(self, words: range) -> list[Place]:
        """Where words stand one after the other in one value of the evidence."""
        keys, known, spot_at = self.said.keys[words.start : words.stop], self.known, self._evidence.spot_at
        last = len(keys) - 1
        found = [
            (known.starts[index], known.ends[index + last], 0.0, "", False)
            for index in self._indices[keys[0]][: 10 * self._most]
            if known.keys[index : index + last + 1] == keys
            and (not last or spot_at(known.starts[index]) is spot_at(known.starts[index + last]))
        ]
        if not found and not last and keys[0][0] == "#":
            # A month that the evidence has in a date.
            return self._places(Mark("name", 0, 0, (((None, int(keys[0][1:]), None), 0.0, 0.0, ""),)))
        return found[: self._most]

    def _link(self, start: int, end: int, kind: str, at: Place | None) -> Link:
        text = self._text[start:end]
        if at is None:
            return Link(text, start, end, kind)
        spot = self._evidence.spot_at(at[0])
        span = (at[0] - spot.start, at[1] - spot.start) if spot.number is None else (0, len(spot.text))
        where, row = self._evidence.where(spot), self._evidence.row_label(spot)
        return Link(text, start, end, kind, where, spot.text[slice(*span)], span, row, at[3])


# Values by worth, and the figures that follow from a table: counts, sums, averages, differences, shares of a column or record.
#
# With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
# candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.


# So many hits by chance may be expected before a hit counts: of all that is tried, and of what the sentence or its record states.
CHANCE, _CHANCE_NEAR = 0.1, 0.25
_MOST_COUNTS = 2  # with more different lengths of lists one of them says nothing
_MOST_PAIRED = 12  # of more cells no two are set against each other,
_MOST_PAIRS = 4_000  # and of all together no more pairs than this

Cell = tuple[float, Spot]
Group = tuple[str, list[Cell]]  # with what they are called together
# A worth, how to say it, of what, and where to look.
Result = tuple[float, tuple[str, float | str, float | str, Spot]]

# How it is said, whether only figures that the sentence itself states are taken, whether only for a percentage, and the worth.
_OPERATIONS: tuple[tuple[str, bool, bool, Callable[[float, float], float]], ...] = (
    ("{:g} − {:g}", False, False, sub),
    ("{:g} + {:g}", True, False, add),
    ("{:g} ÷ {:g}", True, False, truediv),
    ("{:g} ÷ {:g}", False, True, lambda x, y: 100 * x / y),
    ("change to {:g} from {:g}", False, True, lambda x, y: 100 * abs(x / y - 1)),
)


class Worths:
    """Things by what they are worth."""

    def __init__(self, items: Iterable[tuple[float, Any]]) -> None:
        self._items = sorted(items, key=itemgetter(0))
        self._values = [worth for worth, _ in self._items]
        self._distinct = list(dict.fromkeys(self._values))

    def near(self, reading: Reading, most: int) -> tuple[list[tuple[float, Any]], float]:
        """What rounds to a reading, and how many hits a random figure of its size and precision would have."""
        _, value, step, _ = reading
        half = 0.5001 * step + 1e-9 * value
        first, last = bisect_left(self._values, value - half), bisect_right(self._values, value + half)
        alike = bisect_right(self._distinct, 2 * value) - bisect_left(self._distinct, value / 2)
        return self._items[first : min(last, first + most)], alike * step / (1.5 * value) if value else 1.0


def _pairs(groups: Iterable[Group], percent: bool, stated: bool = False) -> Iterator[Result]:
    operations = [one for one in _OPERATIONS if one[1] <= stated and one[2] <= percent]
    room = _MOST_PAIRS
    for _, cells in groups:
        if len(cells) <= _MOST_PAIRED and room > 0:
            room -= len(cells) ** 2 // 2
            for (x, spot), (y, _) in permutations(cells, 2):
                if x and y and x != y:
                    yield from [(worth(x, y), (how, x, y, spot)) for how, _, _, worth in operations]


def _wholes(groups: Iterable[Group], percent: bool) -> Iterator[Result]:
    for name, cells in groups:
        if len(cells) > 1:
            whole, spot = fsum(value for value, _ in cells), cells[0][1]
            yield abs(whole), ("sum of {}", name, "", spot)
            yield abs(whole) / len(cells), ("average of {}", name, "", spot)
            for value, at in cells if whole and percent else ():
                yield 100 * abs(value / whole), ("{:g} ÷ sum of {}", value, name, at)


def _called(path: Path) -> str:
    return "the result" if not path else path[-1] if isinstance(path[-1], str) else "the row"


class Derived:
    """What a result's cells add up to."""

    def __init__(self, evidence: Evidence) -> None:
        self._groups: dict[object, Group] = {}  # by column and by record
        for spot in evidence.spots:
            if spot.cell and spot.number is not None:
                path = evidence.records[spot.record].path or ()
                column = tuple("*" if isinstance(key, int) else key for key in path[:-1]), spot.key
                for key, name in ((column, str(spot.key)), (spot.record, _called(path))):
                    self._groups.setdefault(key, (name, []))[1].append((spot.number, spot))
        self._counts = {
            float(record.entries): (f"count of the entries of {_called(record.path or ())}", spot)
            for record in evidence.records
            for spot in evidence.spots[record.first : record.first + (record.entries > 1)]
        }
        self._worths: dict[object, Worths] = {}

    def find(self, figure: Mark, sentence: int, stated: Sequence[Cell]) -> tuple[str, Spot] | None:
        """How a figure follows, and where to look; `stated` is what its sentence takes from the evidence."""
        (_, value, step, _), percent = figure.readings[0], figure.readings[-1][0] == "%"
        if step == 1 and not percent and value in self._counts and len(self._counts) <= _MOST_COUNTS:
            return self._counts[value]
        said, everything = [("", [cell for cell in stated if cell[0]])], self._groups.values()
        beside = [self._groups[one] for one in {spot.record for _, spot in stated} if one in self._groups]
        tried, bare = 0.0, [one for one in figure.readings if not one[0] and one[3] != "rounded"]
        for family, bound, results in (
            (("said", sentence, percent), _CHANCE_NEAR, _pairs(said, percent, stated=True)),
            (("beside", sentence, percent), _CHANCE_NEAR, _pairs(beside, percent)),
            (("wholes", percent), CHANCE, _wholes(everything, percent)),
            (("pairs", percent), CHANCE, _pairs(everything, percent)),
        ):
            if tried > bound:
                break
            worths = self._worths.get(family) or self._worths.setdefault(family, Worths(results))
            found = [(worths.near(reading, _MOST_PAIRS), reading[1]) for reading in bare]
            tried += sum(chance for (_, chance), _ in found)
            for (hits, _), value in found if tried <= bound else ():
                if hits:
                    how, one, other, spot = min(hits, key=lambda hit: abs(hit[0] - value))[1]
                    return how.format(one, other), spot
        return None


# What a reply claims, sentence by sentence, each held by an entailment model against the nearest parts of the evidence.


_LEAST_WORDS = 2  # fewer content words claim nothing: "Sure!", "Warm regards"
_PREMISE = 800  # a passage is cut into premises of about this many characters;
_TRIED = 3  # so many of the nearest are tried


def claimed_sentences(text: str) -> list[str]:
    """The sentences that may claim something: no question, no heading of a word or two."""
    found = [text[start:end].strip() for start, end in pairwise(sentence_edges(text))]
    return [one for one in found if one[-1:] not in "?？:" and len(meaning(Words(one).keys)) >= _LEAST_WORDS]


def verify_sentences(
    model: CrossEncoder, question: Question, reply: Reply, earlier: Earlier = (), *, sentences: Sequence[str]
) -> list[tuple[str, float, str]]:
    """Every sentence, how probably the best of its nearest premises holds it, and where that stands; asked in batches."""
    premises = list(_premises(gather_evidence(question, reply, earlier)))
    words = [meaning(Words(text).keys) for _, text in premises]
    asked: list[tuple[int, int]] = []
    for number, sentence in enumerate(sentences):
        said = meaning(Words(sentence).keys)
        nearest = sorted(range(len(premises)), key=lambda index: -len(said & words[index]))[:_TRIED]
        asked += [(number, index) for index in nearest]
    held = model.probabilities([(premises[index][1], sentences[number]) for number, index in asked])
    found = []
    for number, tried in groupby(zip(asked, held, strict=True), key=lambda one: one[0][0]):
        (_, index), best = max(tried, key=lambda one: one[1])
        found.append((sentences[number], best, f"{best:.0%} by {premises[index][0]}"))
    return found


def _premises(evidence: Evidence) -> list[tuple[str, str]]:
    """(where, text): passages in pieces, and each record as "name: value" lines."""
    found: list[tuple[str, str]] = []
    for record, following in pairwise(evidence.records):
        spots, table = evidence.spots[record.first : following.first], record.path is not None
        text = "\n".join(
            f"{one.key}: {one.text}" if table else one.text for one in spots if one.cell or not table
        )
        if found and found[-1][0] == record.root and len(found[-1][1]) + len(text) < _PREMISE:
            found[-1] = (record.root, f"{found[-1][1]}\n{text}")
        else:
            found += [(record.root, text[at : at + _PREMISE]) for at in range(0, len(text), _PREMISE)]
    return found
