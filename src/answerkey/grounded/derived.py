"""Figures that follow from a result's table: counts, sums, averages, differences and shares of one column or record.

With enough numbers almost any figure is the difference or ratio of two of them. So a figure is linked only if few enough
candidates of its size were tried for its precision: the number of hits to be expected by chance is bounded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

import numpy as np

from answerkey.grounded.evidence import Evidence, Spot
from answerkey.grounded.figures import Figure

__all__ = ["Derived", "chance", "readings"]

# So many hits by chance may be expected of what is tried before a hit counts.
_CHANCE = 0.06
# Of small counts, which are stated more often than anything else that a table gives.
_CHANCE_OF_COUNT = 0.3
# A longer column's cells are not paired.
_MOST_PAIRED = 40
_MOST_PAIRS = 4_000
_NOTHING = np.empty(0)

Cell = tuple[float, Spot]
Formula = tuple[str, Spot]


def chance(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", value: float, step: float) -> float:
    """Hits to be expected if a figure of this size and precision were drawn at random; `values` are sorted."""
    low, high = np.searchsorted(values, (value / 2, value * 2))
    return float(high - low) * step / (1.5 * value) if value else 1.0


def readings(figure: Figure) -> Iterator[tuple[float, float, str]]:
    """(worth, one in its last place, how it was read) of everything that a figure may stand for, plainest first."""
    yield figure.value, figure.step, ""
    if figure.percent:
        yield figure.value / 100, figure.step / 100, "as a share"
    if figure.other:
        yield figure.other, 10.0 ** (3 if figure.other > figure.value else 0) * figure.step / 1000, ""
    if figure.scale >= 1e3:
        yield figure.value / 1e3, figure.step / 1e3, "in thousands"
    if figure.scale >= 1e6:
        yield figure.value / 1e6, figure.step / 1e6, "in millions"


class Derived:
    """What a result's cells add up to, made when the first figure is looked for in it."""

    def __init__(self, evidence: Evidence, cells: Iterable[Cell]) -> None:
        self._evidence = evidence
        self._cells = [cell for cell in cells if cell[1].cell]
        self._columns: dict[tuple[str, tuple[str | int, ...]], list[Cell]] = defaultdict(list)
        for cell in self._cells:
            self._columns[cell[1].column].append(cell)
        self._families: list[_Family] | None = None
        self._counts = list(_counts(evidence))

    def find(self, figure: Figure, near: Callable[[Spot], bool], linked: set[int]) -> Formula | None:
        """How a figure follows; `near` tells whether the sentence speaks of a cell, `linked` are cells that it states."""
        if figure.unit and not figure.percent and figure.value == int(figure.value) and figure.value < 1000:
            counted = self._count(figure, near)
            if counted:
                return counted
        elif not figure.percent and figure.step == 1 and figure.value < 1000:
            counted = self._count(figure, near)
            if counted:
                return counted
        if self._families is None:
            self._families = [_aggregates(self._columns), *_pairs(self._groups())]
        tried = 0.0
        stated = _Family([formula for group in self._stated(linked) for formula in _paired(group, True)])
        for family in (self._families[0], stated, *self._families[1:]):
            hit, expected = family.find(figure)
            tried += expected
            if hit is not None and tried <= _CHANCE:
                return hit
        return None

    def _groups(self) -> Iterator[list[Cell]]:
        """Cells that may be set against each other: of one column, of one record."""
        records: dict[int, list[Cell]] = defaultdict(list)
        for cell in self._cells:
            records[cell[1].record].append(cell)
        yield from self._columns.values()
        yield from records.values()

    def _stated(self, linked: set[int]) -> Iterator[list[Cell]]:
        stated = [cell for cell in self._cells if cell[1].start in linked]
        if 1 < len(stated) <= _MOST_PAIRED:
            yield stated

    def _count(self, figure: Figure, near: Callable[[Spot], bool]) -> Formula | None:
        """How many rows there are, or how many of a kind that the sentence names."""
        plain = [one for one in self._counts if one[0] == figure.value and not one[3]]
        if plain and len({one[0] for one in self._counts if not one[3] and one[0] > 1}) * 1.0 / 9 <= _CHANCE_OF_COUNT:
            return plain[0][1], plain[0][2]
        kind = next((one for one in self._counts if one[0] == figure.value and one[3] and near(one[2])), None)
        return None if kind is None else (kind[1], kind[2])


class _Family:
    """Candidates of one sort, sorted by worth."""

    def __init__(self, formulas: list[tuple[float, str, Spot, bool]]) -> None:
        known = [one for one in formulas if 1e-9 < one[0] < 1e15]
        known.sort(key=lambda one: one[0])
        self._formulas = known
        self._worths = np.array([one[0] for one in known]) if known else _NOTHING

    def find(self, figure: Figure) -> tuple[Formula | None, float]:
        """The formula that comes nearest, and the hits to be expected by chance."""
        expected = 0.0
        for value, step, how in readings(figure):
            if not value or not len(self._worths):
                continue
            expected += chance(self._worths, value, step)
            low, high = np.searchsorted(self._worths, (value - 0.5001 * step, value + 0.5001 * step))
            fitting = [one for one in self._formulas[low:high] if one[3] == (figure.percent and how == "as a share") or not one[3]]
            if figure.percent:
                fitting = [one for one in fitting if one[3]] or fitting
            if fitting:
                best = min(fitting, key=lambda one: abs(one[0] - value))
                return (f"{best[1]}{f', {how}' if how and not best[3] else ''}", best[2]), expected
        return None, expected


def _counts(evidence: Evidence) -> Iterator[tuple[float, str, Spot, bool]]:
    """(how many, in words, an entry, whether it is of a kind only) of the entries of each list."""
    spots: dict[tuple[str, tuple[str | int, ...]], Spot] = {}
    kinds: dict[tuple[object, str], list[Spot]] = defaultdict(list)
    for spot in evidence.spots:
        for depth in range(len(spot.path)):
            spots.setdefault((spot.root, spot.path[:depth]), spot)
        if spot.cell and "*" in spot.column[1] and spot.end - spot.start <= 40:
            kinds[spot.column, evidence.value(spot)].append(spot)
    for root, path, many in evidence.lists:
        if many and (root, path) in spots:
            name = ".".join(str(key) for key in path) or "the result"
            yield float(many), f"count of the entries of {name}", spots[root, path], False
    for (_, value), same in kinds.items():
        if len(same) > 1:
            yield float(len(same)), f"count of {same[0].path[-1]} = {value}", same[0], True


def _aggregates(columns: dict[tuple[str, tuple[str | int, ...]], list[Cell]]) -> _Family:
    formulas = []
    for (_, path), cells in columns.items():
        if len(cells) > 1:
            name, spot, values = str(path[-1]), cells[0][1], [value for value, _ in cells]
            whole = sum(values)
            formulas.append((abs(whole), f"sum of {name}", spot, False))
            formulas.append((abs(whole) / len(values), f"average of {name}", spot, False))
            if whole and len(cells) <= _MOST_PAIRS:
                formulas += [(abs(value / whole), f"{value:g} ÷ sum of {name}", at, True) for value, at in cells]
    return _Family(formulas)


def _pairs(groups: Iterable[list[Cell]]) -> Iterator[_Family]:
    room = _MOST_PAIRS
    formulas: list[tuple[float, str, Spot, bool]] = []
    for group in groups:
        many = len(group) * (len(group) - 1) // 2
        if many <= room and len(group) <= _MOST_PAIRED:
            room -= many
            formulas += _paired(group, False)
    yield _Family(formulas)


def _paired(group: list[Cell], stated: bool) -> Iterator[tuple[float, str, Spot, bool]]:
    """Differences, changes and shares of two cells; of cells that the sentence states, sums and ratios too."""
    for (one, at), (other, _) in combinations(group, 2):
        if one == other:
            continue
        yield abs(one - other), f"{max(one, other):g} − {min(one, other):g}", at, False
        if stated:
            yield abs(one + other), f"{one:g} + {other:g}", at, False
        for part, whole in ((one, other), (other, one)):
            if whole:
                yield abs(part / whole - 1), f"change from {whole:g} to {part:g}", at, True
                if abs(part) < abs(whole) or stated:
                    yield abs(part / whole), f"{part:g} ÷ {whole:g}", at, stated is False or abs(part) < abs(whole)
