"""Values by worth, and the figures that follow from a table: counts, sums, averages, differences, shares of a column or record.

With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from math import fsum
from operator import add, itemgetter, sub, truediv
from typing import Any

from answerkey.grounded.evidence import Evidence, Path, Spot
from answerkey.grounded.marks import Mark, Reading

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
