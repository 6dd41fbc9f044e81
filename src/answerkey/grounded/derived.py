"""Figures that follow from a result's table: counts, sums, averages, differences and shares of one column or record.

With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations
from math import fsum
from operator import itemgetter

from answerkey.grounded.evidence import Evidence, Spot
from answerkey.grounded.marks import Mark, Reading, readings

# So many hits by chance may be expected of what is tried before a hit counts;
_CHANCE = 0.1
# of what the sentence itself or its record states, and of small counts, which are stated more often than anything else.
_CHANCE_NEAR = 0.3
# Of more cells than this no two are set against each other, and of all together no more pairs than this.
_MOST_PAIRED = 12
_MOST_PAIRS = 4_000

# A number of the evidence (0 where it is none), and where it stands.
Cell = tuple[float, Spot]
# How a worth comes about, of which numbers, and where to look: the first of the cells.
Formula = tuple[str, float | str, float | str, Spot]


def chance(values: Sequence[float], value: float, step: float) -> float:
    """Hits to be expected if a figure of this size and precision were drawn at random; `values` are sorted."""
    if not value:
        return 1.0
    return (bisect_right(values, 2 * value) - bisect_left(values, value / 2)) * step / (1.5 * value)


class _Worths:
    """What some cells give, by worth: amounts, and (for a percentage) shares of one."""

    def __init__(self) -> None:
        self.amounts: dict[float, Formula] = {}
        self.shares: dict[float, Formula] = {}
        self._sorted: tuple[list[float], list[float]] | None = None

    def nearest(self, read: Sequence[Reading]) -> tuple[Formula | None, float]:
        """The formula that comes nearest to what a figure is read as, and the hits to be expected by chance."""
        if not self.amounts:
            return None, 0.0
        if self._sorted is None:
            self._sorted = sorted(self.amounts), sorted(self.shares)
        expected = 0.0
        for value, step, how in read:
            hits: list[tuple[float, Formula]] = []
            low, high = value - 0.5001 * step, value + 0.5001 * step
            for values, formulas in zip(self._sorted, (self.amounts, self.shares), strict=True):
                if values and (how == "as a share" or formulas is self.amounts):
                    expected += chance(values, value, step)
                    worths = values[bisect_left(values, low) : bisect_right(values, high)]
                    hits += [(abs(worth - value), formulas[worth]) for worth in worths]
            if hits:
                return min(hits, key=itemgetter(0))[1], expected
        return None, expected


def _pairs(groups: Iterable[Sequence[Cell]], *, percent: bool, stated: bool = False) -> _Worths:
    """Differences, changes and shares of two cells; of figures that the reply states, sums and ratios too."""
    found, room = _Worths(), _MOST_PAIRS
    amounts, shares = found.amounts, found.shares
    for group in groups:
        if not 1 < len(group) <= _MOST_PAIRED or room <= 0:
            continue
        room -= len(group) ** 2 // 2
        for (x, spot), (y, _) in combinations(group, 2):
            if x == y or not x or not y:
                continue
            amounts[abs(x - y)] = ("{} − {}", x, y, spot) if x > y else ("{} − {}", y, x, spot)
            if stated:
                amounts[abs(x + y)] = "{} + {}", x, y, spot
                amounts[abs(x / y)] = "{} ÷ {}", x, y, spot
                amounts[abs(y / x)] = "{1} ÷ {0}", x, y, spot
            if percent:
                shares[abs(x / y - 1)] = "change from {1} to {0}", x, y, spot
                shares[abs(y / x - 1)] = "change from {} to {}", x, y, spot
                shares[abs(x / y)] = "{} ÷ {}", x, y, spot
                shares[abs(y / x)] = "{1} ÷ {0}", x, y, spot
    return found


def _wholes(evidence: Evidence, groups: Iterable[list[Cell]], *, percent: bool) -> _Worths:
    """Sums, averages and shares of a sum."""
    found = _Worths()
    for cells in groups:
        if len(cells) > 1:
            whole, spot = fsum(value for value, _ in cells), cells[0][1]
            path = evidence.records[spot.record].path or ()
            last = spot.key if cells[1][1].record != spot.record else path[-1] if path else "the result"
            name = "the row" if isinstance(last, int) else last
            found.amounts[abs(whole)] = "sum of {}", name, "", spot
            found.amounts[abs(whole) / len(cells)] = "average of {}", name, "", spot
            for value, at in cells if whole and percent else ():
                found.shares[abs(value / whole)] = "{} ÷ sum of {}", value, name, at
    return found


class Derived:
    """What a result's cells add up to, made when the first figure is looked for in it."""

    def __init__(self, evidence: Evidence, cells: Iterable[Cell]) -> None:
        self._evidence = evidence
        columns: dict[object, list[Cell]] = defaultdict(list)
        self._records: dict[int, list[Cell]] = defaultdict(list)
        for cell in cells:
            columns[self._column(cell[1])].append(cell)
            self._records[cell[1].record].append(cell)
        self._groups = [*columns.values(), *self._records.values()]
        # By sentence (0: all) and whether percentages are asked for: what is tried one after the other.
        self._tried: dict[tuple[int, bool], tuple[_Worths, _Worths]] = {}

    def _column(self, spot: Spot) -> object:
        """The same for the cells that stand under each other."""
        column = self._evidence.records[spot.record].column
        return spot.record if isinstance(spot.key, int) else (column, spot.key)

    def _worths(self, sentence: int, stated: Sequence[Cell], percent: bool) -> tuple[_Worths, _Worths]:
        """Pairs of what a sentence states, and of the records that it names; or wholes and pairs of everything."""
        if (sentence, percent) not in self._tried:
            records = [self._records[number] for number in {spot.record for _, spot in stated}]
            numbers = [cell for cell in stated if cell[0]]
            self._tried[sentence, percent] = (
                (_pairs([numbers], percent=percent, stated=True), _pairs(records, percent=percent))
                if sentence
                else (
                    _wholes(self._evidence, self._groups, percent=percent),
                    _pairs(self._groups, percent=percent),
                )
            )
        return self._tried[sentence, percent]

    def find(self, figure: Mark, sentence: int, stated: Sequence[Cell]) -> tuple[str, Spot] | None:
        """How a figure follows, and where to look; `stated` is what its sentence takes from the evidence."""
        plain = figure.step == 1 and not figure.percent and figure.value < 1000
        if plain and figure.value in self._entries and len(self._entries) / 9 <= _CHANCE_NEAR:
            return self._entries[figure.value]
        tried, read = 0.0, readings(figure)
        near = ((sentence, _CHANCE_NEAR),) if stated else ()
        for number, bound in (*near, (0, _CHANCE)):
            for family in self._worths(number, stated, figure.percent):
                hit, expected = family.nearest(read)
                tried += expected
                if hit is not None and tried <= bound:
                    how, one, other, spot = hit
                    return how.format(*(n if isinstance(n, str) else f"{n:g}" for n in (one, other))), spot
            if tried > _CHANCE:
                break
        return None

    @cached_property
    def _entries(self) -> dict[float, tuple[str, Spot]]:
        """How many entries the lists have."""
        spots = self._evidence.spots
        return {
            float(many): (f"count of the entries of {'.'.join(map(str, path)) or 'the result'}", spots[first])
            for path, many, first in self._evidence.lists
            if first < len(spots)
        }
