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

from answerkey.grounded.evidence import Evidence, Path, Spot
from answerkey.grounded.lookup import Cell
from answerkey.grounded.marks import Figure, readings

__all__ = ["Derived", "Formula"]

# So many hits by chance may be expected of what is tried before a hit counts.
_CHANCE = 0.1
# Of small counts, which are stated more often than anything else that a table gives.
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
        firsts, seconds, room = [_NONE], [_NONE], _MOST_PAIRS
        for group in groups:
            if 1 < len(group) <= _MOST_PAIRED and room > 0:
                one, other = _pairs_of(len(group))
                room -= len(one)
                firsts.append(one + len(self._cells))
                seconds.append(other + len(self._cells))
                self._cells += group
        values: Values = np.array([value for value, _ in self._cells])
        first, second = np.concatenate(firsts), np.concatenate(seconds)
        if len(values):
            apart = (values[first] != values[second]) & (values[first] != 0) & (values[second] != 0)
            first, second = first[apart], second[apart]
        self._first, self._second, self._stated = first, second, stated
        x, y = (values[first], values[second]) if len(values) else (values, values)
        ratio, inverse = np.abs(x / y), np.abs(y / x)
        sorts = [np.abs(x - y), np.abs(x / y - 1), np.abs(y / x - 1), ratio, inverse]
        true = np.ones(len(x), dtype=bool)
        shares = [~true, true, true, true if not stated else ratio < 1, true if not stated else inverse < 1]
        self.worths = np.concatenate([*sorts, x + y] if stated else sorts)
        self.shares = np.concatenate([*shares, ~true] if stated else shares)

    def formula(self, index: int) -> Formula:
        sort, at = divmod(index, len(self._first))
        (x, spot), (y, _) = self._cells[self._first[at]], self._cells[self._second[at]]
        how = (
            f"{max(x, y):g} − {min(x, y):g}",
            f"change from {y:g} to {x:g}",
            f"change from {x:g} to {y:g}",
            f"{x:g} ÷ {y:g}",
            f"{y:g} ÷ {x:g}",
            f"{x:g} + {y:g}",
        )[sort]
        return Formula(float(self.worths[index]), how, spot, bool(self.shares[index]))


_NONE: Numbers = np.array([], dtype=np.int64)


@lru_cache(maxsize=_MOST_PAIRED)
def _pairs_of(many: int) -> tuple[Numbers, Numbers]:
    first, second = np.triu_indices(many, 1)
    return first, second


def _nearest(family: _Aggregates | _Pairs, figure: Figure) -> tuple[Formula | None, float]:
    """The formula that comes nearest, and the hits to be expected by chance."""
    expected, worths = 0.0, family.worths
    for value, step, how in readings(figure) if len(worths) else ():
        expected += np.count_nonzero((worths > value / 2) & (worths < 2 * value)) * step / (1.5 * value or 1)
        off = np.abs(worths - value)
        fits = off <= 0.5001 * step
        if how != "as a share":
            fits &= ~family.shares
        if fits.any():
            off[~fits] = np.inf
            return family.formula(int(off.argmin())), expected
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
        self._near: dict[int, list[_Pairs]] = {}

    @cached_property
    def _aggregates(self) -> _Aggregates:
        return _Aggregates(self._groups)

    @cached_property
    def _pairs(self) -> _Pairs:
        return _Pairs(self._groups)

    @cached_property
    def _counts(self) -> tuple[dict[float, Formula], dict[float, list[Formula]]]:
        return _counts(self._evidence)

    def find(
        self, figure: Figure, sentence: int, stated: Sequence[Cell], around: Sequence[Cell]
    ) -> Formula | None:
        """How a figure follows; `stated` is what its sentence takes from the evidence, `around` also those beside it."""
        if figure.step == 1 and not figure.percent and figure.value < 1000:
            entries, kinds = self._counts
            named = {spot.start for _, spot in stated}
            counted = next((one for one in kinds.get(figure.value, ()) if one.spot.start in named), None)
            if counted or (figure.value in entries and len(entries) / 9 <= _CHANCE_OF_COUNT):
                return counted or entries[figure.value]
        tried = 0.0
        for family in self._families(sentence, stated, around):
            hit, expected = _nearest(family, figure)
            tried += expected
            if tried > _CHANCE:
                return None
            if hit is not None:
                return hit
        return None

    def _families(
        self, sentence: int, stated: Sequence[Cell], around: Sequence[Cell]
    ) -> Iterator[_Aggregates | _Pairs]:
        """What is nearest to the sentence first, and no more than is asked for."""
        if sentence not in self._near:
            records = [self._records[number] for number in {spot.record for _, spot in stated} if number >= 0]
            self._near[sentence] = [
                _Pairs([[cell for cell in stated if cell[0]]], stated=True),
                _Pairs(records),
                _Pairs([[cell for cell in around if cell[0]]], stated=True),
            ]
        near = self._near[sentence]
        yield from near[:2]
        yield self._aggregates
        yield near[2]
        yield self._pairs


def _counts(evidence: Evidence) -> tuple[dict[float, Formula], dict[float, list[Formula]]]:
    """How many entries the lists have, and how many of them are of a kind."""
    first: dict[tuple[str, Path], Spot] = {}
    lists = {(root, path): many for root, path, many in evidence.lists if many > 1}
    same: dict[tuple[object, str], list[Spot]] = defaultdict(list)
    for spot in evidence.spots if lists else ():
        if spot.cell:
            for depth in range(len(spot.path)):
                first.setdefault((spot.root, spot.path[:depth]), spot)
            if spot.end - spot.start <= 40:
                same[spot.column, evidence.value(spot)].append(spot)
    entries: dict[float, Formula] = {}
    kinds: dict[float, list[Formula]] = defaultdict(list)
    for at, many in lists.items():
        if at in first:
            how = f"count of the entries of {'.'.join(map(str, at[1])) or 'the result'}"
            entries[float(many)] = Formula(many, how, first[at])
    for (_, value), found in same.items():
        if len(found) > 1:
            how = f"count of {found[0].path[-1]} = {value}"
            kinds[float(len(found))] += [Formula(len(found), how, spot) for spot in found]
    return entries, kinds


def _aggregates(cells: list[Cell]) -> Iterator[Formula]:
    spot = cells[0][1]
    path = spot.column[1] if cells[1][1].record != spot.record else spot.path[:-1]
    name = str(path[-1]) if path else "the result"
    whole = fsum(value for value, _ in cells)
    yield Formula(abs(whole), f"sum of {name}", spot)
    yield Formula(abs(whole) / len(cells), f"average of {name}", spot)
    for value, at in cells if whole else ():
        yield Formula(abs(value / whole), f"{value:g} ÷ sum of {name}", at, share=True)
