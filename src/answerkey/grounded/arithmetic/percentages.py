"""Percentages: shares of a total, shares of rows, ratios and changes between two figures."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import fsum

from answerkey.grounded.arithmetic.clause import CHANGE, MEAN, Clause
from answerkey.grounded.arithmetic.differences import FEW, comparable
from answerkey.grounded.arithmetic.subsets import mentioned_rows, named_subsets, named_values
from answerkey.grounded.figures import Column, Figures

__all__ = ["percentages"]


_LARGE = 100
_TOGETHER = re.compile(r"\b(?:together|combined)\b", re.IGNORECASE)


def percentages(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    """Every percentage that a clause may speak of: of many figures only neighbours and named ones."""
    changed = clause.says(CHANGE)
    # "Sales were $128,430, up 4%": a change of the column that the sentence has a figure of, not of another.
    told = {number for number in clause.numbers if number >= _LARGE}
    meant = {
        column.where
        for column in figures.columns
        if changed and told and any(value in told for _, value in column.cells)
    }
    for column in figures.columns:
        if len(column.cells) > 1:
            yield from _shares_of_total(figures, column, clause)
            if changed and (not meant or column.where in meant):
                yield from _changes_within(column, clause.direction)
        if len(column.cells) > 1 and clause.says(MEAN):
            yield fsum(column.values) / len(column.cells), f"average of {column.name}", column.where
    for table, rows, label in named_subsets(figures, clause):
        yield 100 * len(rows) / len(table.rows), f"share of rows with {label}", table.where
        for column in figures.columns:
            total = fsum(column.values)
            if column.table is table and total:
                part = fsum(value for row, value in column.cells if row in rows)
                yield 100 * part / total, f"share of {column.name} where {label}", column.where
    for where, values in figures.amounts_in_texts.items() if changed else ():
        # A text that tells of a change names both figures one after the other.
        for one, other in pairwise(values):
            yield from _changes(one, other, where, clause.direction)
    # "Together they make up 75%" is the share of a sum, not that of one in another.
    together = _TOGETHER.search(clause.part) is not None
    named = named_values(figures, clause)
    for where, values in comparable(figures):
        if len(values) <= FEW and not (meant and "[*]" in where and where not in meant):
            of_named = bool(named.get(where))
            for one, other in combinations(values, 2):
                if of_named and one not in named[where] and other not in named[where]:
                    # "Travel was about 12%": not of two other rows.
                    continue
                if changed:
                    yield from _changes(one, other, where, clause.direction)
                if together:
                    continue
                if not changed or (len(values) <= 2 and CHANGE.search(clause.part) is None):
                    yield from _ratios(one, other, where)


def _shares_of_total(figures: Figures, column: Column, clause: Clause) -> Iterator[tuple[float, str, str]]:
    total = fsum(column.values)
    if not total:
        return
    spoken = mentioned_rows(figures, column.table, clause)
    for row, value in column.cells:
        if len(column.cells) <= FEW or row in spoken:
            yield 100 * value / total, f"{value:g} ÷ sum of {column.name}", column.where
    if len(spoken) > 1:
        part = fsum(value for row, value in column.cells if row in spoken)
        yield 100 * part / total, f"part of the sum of {column.name}", column.where


def _changes_within(column: Column, direction: int) -> Iterator[tuple[float, str, str]]:
    values = column.values
    pairs = (
        list(combinations(values, 2)) if len(values) <= FEW else [*pairwise(values), (values[0], values[-1])]
    )
    for one, other in pairs:
        yield from _changes(one, other, column.where, direction)


def _changes(one: float, other: float, where: str, direction: int) -> Iterator[tuple[float, str, str]]:
    # What goes down is measured by the larger figure, what goes up by the smaller.
    smaller, larger = sorted((one, other), key=abs)
    if direction and larger * smaller > 0:
        base, changed = (larger, smaller) if direction < 0 else (smaller, larger)
        yield 100 * (changed - base) / base, f"({changed:g} − {base:g}) ÷ {base:g}", where
        return
    if one:
        yield 100 * (other - one) / one, f"({other:g} − {one:g}) ÷ {one:g}", where
    if other:
        yield 100 * (one - other) / other, f"({one:g} − {other:g}) ÷ {other:g}", where


def _ratios(one: float, other: float, where: str) -> Iterator[tuple[float, str, str]]:
    if other:
        yield 100 * one / other, f"{one:g} ÷ {other:g}", where
    if one:
        yield 100 * other / one, f"{other:g} ÷ {one:g}", where
