"""Figures that follow from a result's table: counts, sums, averages, differences and shares of one column or record.

With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import fsum
from typing import NamedTuple

import numpy as np

from answerkey.grounded.evidence import Evidence, Path, Spot
from answerkey.grounded.figures import Figure, readings

__all__ = ["Cell", "Derived", "Formula", "chance"]

# So many hits by chance may be expected of what is tried before a hit counts.
_CHANCE = 0.1
# Of small counts, which are stated more often than anything else that a table gives.
_CHANCE_OF_COUNT = 0.3
# Of more cells than this no two are set against each other, and of all together no more pairs than this.
_MOST_PAIRED = 40
_MOST_PAIRS = 4_000

Cell = tuple[float, Spot]
Values = np.ndarray[tuple[int], np.dtype[np.float64]]


class Formula(NamedTuple):
    """A worth and how it comes about."""

    worth: float
    how: str
    # Where to look: the first of the cells.
    spot: Spot
    # Of one, to be stated as a percentage.
    share: bool = False


def chance(values: Values, value: float, step: float) -> float:
    """Hits to be expected if a figure of this size and precision were drawn at random; `values` are sorted."""
    low, high = np.searchsorted(values, (value / 2, value * 2))
    return float(high - low) * step / (1.5 * value) if value else 1.0


class _Family:
    """Candidates of one sort, sorted by worth."""

    def __init__(self, formulas: Iterable[Formula]) -> None:
        self._formulas = sorted(
            (one for one in formulas if 1e-9 < one.worth < 1e15), key=lambda one: one.worth
        )
        self._worths: Values = np.array([one.worth for one in self._formulas], dtype=np.float64)

    def find(self, figure: Figure) -> tuple[Formula | None, float]:
        """The formula that comes nearest, and the hits to be expected by chance."""
        expected = 0.0
        for value, step, how in readings(figure):
            expected += chance(self._worths, value, step) if len(self._worths) else 0.0
            low, high = np.searchsorted(self._worths, (value - 0.5001 * step, value + 0.5001 * step))
            fitting = [one for one in self._formulas[low:high] if not one.share or how == "as a share"]
            if fitting:
                return min(fitting, key=lambda one: (not one.share, abs(one.worth - value))), expected
        return None, expected


class Derived:
    """What a result's cells add up to, made when the first figure is looked for in it."""

    def __init__(self, evidence: Evidence, cells: Iterable[Cell]) -> None:
        self._columns: dict[tuple[str, Path], list[Cell]] = defaultdict(list)
        self._records: dict[int, list[Cell]] = defaultdict(list)
        for cell in cells:
            self._columns[cell[1].column].append(cell)
            self._records[cell[1].record].append(cell)
        self._counts, self._kinds = _counts(evidence)
        self._aggregates = _Family(_aggregates([*self._columns.values(), *self._records.values()]))
        self._pairs: _Family | None = None
        self._near: dict[int, list[_Family]] = {}

    def find(
        self, figure: Figure, sentence: int, stated: Sequence[Cell], around: Sequence[Cell]
    ) -> Formula | None:
        """How a figure follows; `stated` is what its sentence takes from the evidence, `around` also those beside it."""
        tried = 0.0
        if figure.step == 1 and not figure.percent and figure.value < 1000:
            named = {spot.start for _, spot in stated}
            counted = next(
                (one for one in self._kinds.get(figure.value, ()) if one.spot.start in named), None
            )
            if counted or (figure.value in self._counts and len(self._counts) / 9 <= _CHANCE_OF_COUNT):
                return counted or self._counts[figure.value]
        if sentence not in self._near:
            records = [
                self._records[number] for number in {spot.record for _, spot in stated if spot.record >= 0}
            ]
            self._near[sentence] = [
                _Family(_paired([cell for cell in stated if cell[0]], stated=True)),
                _Family(formula for record in records for formula in _paired(record)),
                _Family(_paired([cell for cell in around if cell[0]], stated=True)),
            ]
        if self._pairs is None:
            self._pairs = _Family(_all_pairs([*self._columns.values(), *self._records.values()]))
        for family in (*self._near[sentence][:2], self._aggregates, self._near[sentence][2], self._pairs):
            hit, expected = family.find(figure)
            tried += expected
            if hit is not None and tried <= _CHANCE:
                return hit
        return None


def _counts(evidence: Evidence) -> tuple[dict[float, Formula], dict[float, list[Formula]]]:
    """How many entries the lists have, and how many of them are of a kind."""
    spots: dict[tuple[str, Path], Spot] = {}
    same: dict[tuple[object, str], list[Spot]] = defaultdict(list)
    for spot in evidence.spots:
        if spot.cell:
            for depth in range(len(spot.path)):
                spots.setdefault((spot.root, spot.path[:depth]), spot)
            if spot.end - spot.start <= 40 and "*" in spot.column[1]:
                same[spot.column, evidence.value(spot)].append(spot)
    entries: dict[float, Formula] = {}
    kinds: dict[float, list[Formula]] = defaultdict(list)
    for root, path, many in evidence.lists:
        if many > 1 and (root, path) in spots:
            how = f"count of the entries of {'.'.join(map(str, path)) or 'the result'}"
            entries[float(many)] = Formula(many, how, spots[root, path])
    for (_, value), found in same.items():
        if len(found) > 1:
            how = f"count of {found[0].path[-1]} = {value}"
            kinds[float(len(found))] += [Formula(len(found), how, spot) for spot in found]
    return entries, kinds


def _aggregates(groups: Iterable[list[Cell]]) -> Iterator[Formula]:
    for cells in groups:
        spot, values = cells[0][1], [value for value, _ in cells]
        path = spot.column[1] if len({cell[1].record for cell in cells}) > 1 else spot.path[:-1]
        name = str(path[-1]) if path else "the result"
        if len(cells) > 1:
            whole = fsum(values)
            yield Formula(abs(whole), f"sum of {name}", spot)
            yield Formula(abs(whole) / len(values), f"average of {name}", spot)
            for value, at in cells if whole else ():
                yield Formula(abs(value / whole), f"{value:g} ÷ sum of {name}", at, share=True)


def _all_pairs(groups: Iterable[list[Cell]]) -> Iterator[Formula]:
    room = _MOST_PAIRS
    for group in groups:
        room -= len(group) ** 2 // 2 if len(group) <= _MOST_PAIRED else 0
        if room >= 0:
            yield from _paired(group)


def _paired(group: Sequence[Cell], *, stated: bool = False) -> Iterator[Formula]:
    """Differences, changes and shares of two cells; of figures that the reply states, sums and ratios too."""
    for (one, at), (other, _) in combinations(group, 2) if len(group) <= _MOST_PAIRED else ():
        if one == other:
            continue
        yield Formula(abs(one - other), f"{max(one, other):g} − {min(one, other):g}", at)
        if stated:
            yield Formula(abs(one + other), f"{one:g} + {other:g}", at)
        for part, whole in ((one, other), (other, one)):
            if whole:
                yield Formula(abs(part / whole - 1), f"change from {whole:g} to {part:g}", at, share=True)
                yield Formula(
                    abs(part / whole), f"{part:g} ÷ {whole:g}", at, share=not stated or abs(part) < abs(whole)
                )
