"""Figures that follow from a result's table: counts, sums, averages, differences and shares of one column or record.

With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import fsum
from typing import NamedTuple

import numpy as np

from answerkey.grounded.evidence import Evidence, Spot
from answerkey.grounded.lookup import Cell
from answerkey.grounded.marks import Figure, readings

__all__ = ["Derived", "Formula"]

# So many hits by chance may be expected of what is tried before a hit counts;
_CHANCE = 0.1
# of what the sentence itself or its record states;
_CHANCE_NEAR = 0.3
# of small counts, which are stated more often than anything else that a table gives.
_CHANCE_OF_COUNT = 0.3
# Of more cells than this no two are set against each other, and of all together no more pairs than this.
_MOST_PAIRED = 40
_MOST_PAIRS = 4_000

Values = np.ndarray[tuple[int], np.dtype[np.float64]]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Formula(NamedTuple):
    """A worth and how it comes about."""

    worth: float
    how: str
    # Where to look: the first of the cells.
    spot: Spot
    # Of one, to be stated as a percentage.
    share: bool = False


class _Aggregates:
    """Sums, averages and shares of a sum."""

    def __init__(self, groups: Iterable[list[Cell]]) -> None:
        self._formulas = [one for cells in groups if len(cells) > 1 for one in _aggregates(cells)]
        self.worths: Values = np.array([one.worth for one in self._formulas])
        self.shares = np.array([one.share for one in self._formulas], dtype=bool)

    def formula(self, index: int) -> Formula:
        return self._formulas[index]


class _Pairs:
    """Differences, changes and shares of two cells; of figures that the reply states, sums and ratios too."""

    def __init__(self, groups: Iterable[Sequence[Cell]], *, stated: bool = False) -> None:
        self._cells: list[Cell] = []
        pairs, room = list[Numbers](), _MOST_PAIRS
        for group in groups:
            if 1 < len(group) <= _MOST_PAIRED and room > 0:
                room -= len(group) ** 2 // 2
                pairs.append(_pairs_of(len(group)) + len(self._cells))
                self._cells += group
        self.worths: Values = np.array([])
        self.shares = np.array([], dtype=bool)
        if not self._cells:
            return
        values: Values = np.array([value for value, _ in self._cells])
        both = np.concatenate(pairs, axis=1)
        x, y = values[both]
        apart = (x != y) & (x * y != 0)
        self._both, x, y = both[:, apart], x[apart], y[apart]
        ratio = np.abs(x / y)
        true = np.ones(len(x), dtype=bool)
        worths = [np.abs(x - y), np.abs(x / y - 1), np.abs(y / x - 1), ratio, 1 / ratio]
        shares = [~true, true, true, *((ratio < 1, ratio > 1) if stated else (true, true))]
        self.worths = np.concatenate([*worths, np.abs(x + y)] if stated else worths)
        self.shares = np.concatenate([*shares, ~true] if stated else shares)

    def formula(self, index: int) -> Formula:
        sort, at = divmod(index, self._both.shape[1])
        (x, spot), (y, _) = (self._cells[cell] for cell in self._both[:, at])
        how = (
            f"{max(x, y):g} − {min(x, y):g}",
            f"change from {y:g} to {x:g}",
            f"change from {x:g} to {y:g}",
            f"{x:g} ÷ {y:g}",
            f"{y:g} ÷ {x:g}",
            f"{x:g} + {y:g}",
        )[sort]
        return Formula(float(self.worths[index]), how, spot, bool(self.shares[index]))


@lru_cache(maxsize=_MOST_PAIRED + 1)
def _pairs_of(many: int) -> Numbers:
    return np.array(np.triu_indices(many, 1))


def _nearest(family: _Aggregates | _Pairs, figure: Figure) -> tuple[Formula | None, float]:
    """The formula that comes nearest, and the hits to be expected by chance."""
    expected, worths = 0.0, family.worths
    for value, step, how in readings(figure) if len(worths) else ():
        expected += np.count_nonzero((worths > value / 2) & (worths < 2 * value)) * step / (1.5 * value or 1)
        fits = np.abs(worths - value) <= 0.5001 * step
        if how != "as a share":
            fits &= ~family.shares
        if fits.any():
            return family.formula(int(np.where(fits, np.abs(worths - value), np.inf).argmin())), expected
    return None, expected


class Derived:
    """What a result's cells add up to, made when the first figure is looked for in it."""

    def __init__(self, evidence: Evidence, cells: Iterable[Cell]) -> None:
        self._evidence = evidence
        columns: dict[object, list[Cell]] = defaultdict(list)
        self._records: dict[int, list[Cell]] = defaultdict(list)
        for cell in cells:
            columns[cell[1].column].append(cell)
            self._records[cell[1].record].append(cell)
        self._groups = [*columns.values(), *self._records.values()]
        # By sentence: pairs of what it states, and of the records that it names.
        self._near: dict[int, tuple[_Pairs, _Pairs]] = {}

    @cached_property
    def _far(self) -> tuple[_Aggregates, _Pairs]:
        return _Aggregates(self._groups), _Pairs(self._groups)

    @cached_property
    def _counts(self) -> tuple[dict[float, Formula], dict[float, list[Formula]]]:
        return _counts(self._evidence)

    def find(self, figure: Figure, sentence: int, stated: Sequence[Cell]) -> Formula | None:
        """How a figure follows; `stated` is what its sentence takes from the evidence."""
        if figure.step == 1 and not figure.percent and figure.value < 1000:
            entries, kinds = self._counts
            named = {spot.start for _, spot in stated}
            counted = next((one for one in kinds.get(figure.value, ()) if one.spot.start in named), None)
            if counted or (figure.value in entries and len(entries) / 9 <= _CHANCE_OF_COUNT):
                return counted or entries[figure.value]
        if sentence not in self._near:
            records = [self._records[number] for number in {spot.record for _, spot in stated} if number >= 0]
            numbers = [cell for cell in stated if cell[0]]
            self._near[sentence] = _Pairs([numbers], stated=True), _Pairs(records)
        tried = 0.0
        for bound, families in ((_CHANCE_NEAR, self._near[sentence]), (_CHANCE, self._far)):
            for family in families:
                hit, expected = _nearest(family, figure)
                tried += expected
                if hit is not None and tried <= bound:
                    return hit
            if tried > _CHANCE:
                break
        return None


def _counts(evidence: Evidence) -> tuple[dict[float, Formula], dict[float, list[Formula]]]:
    """How many entries the lists have, and how many of them are of a kind."""
    same: dict[tuple[object, str], list[Spot]] = defaultdict(list)
    for spot in evidence.spots if evidence.lists else ():
        if spot.cell and spot.end - spot.start <= 40:
            same[spot.column, evidence.value(spot)].append(spot)
    entries: dict[float, Formula] = {}
    kinds: dict[float, list[Formula]] = defaultdict(list)
    for path, many, first in evidence.lists:
        if first < len(evidence.spots):
            how = f"count of the entries of {'.'.join(map(str, path)) or 'the result'}"
            entries[float(many)] = Formula(many, how, evidence.spots[first])
    for (_, value), found in same.items():
        if len(found) > 1:
            how = f"count of {found[0].path[-1]} = {value}"
            kinds[float(len(found))] += [Formula(len(found), how, spot) for spot in found]
    return entries, kinds


def _aggregates(cells: list[Cell]) -> Iterator[Formula]:
    spot = cells[0][1]
    path = spot.column[1] if cells[1][1].record != spot.record else spot.path[:-1]
    name = "the row" if path and isinstance(path[-1], int) else str(path[-1]) if path else "the result"
    whole = fsum(value for value, _ in cells)
    yield Formula(abs(whole), f"sum of {name}", spot)
    yield Formula(abs(whole) / len(cells), f"average of {name}", spot)
    for value, at in cells if whole else ():
        yield Formula(abs(value / whole), f"{value:g} ÷ sum of {name}", at, share=True)
