"""Differences between figures that it makes sense to compare, and between percentages."""

import re
from collections.abc import Iterator
from itertools import combinations
from math import fsum

from answerkey.grounded.arithmetic.clause import DIFFERENCE, Clause
from answerkey.grounded.arithmetic.subsets import mentioned_rows
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.figures import Column, Figures
from answerkey.text.units import UNIT_SPELLINGS

__all__ = ["FEW", "comparable", "differences", "halves", "points", "still_free"]

# Among so few figures a difference or ratio is hardly ever there by chance.
FEW = 4
_MOST_COMPARED = 60
# What is left of a whole after several parts is looked for among so many figures.
_MOST_LESSENED = 5


_LEFT = re.compile(r"\b(?:left|remain\w*|available|balance)\b", re.IGNORECASE)


def differences(figures: Figures, clause: Clause, large: bool) -> Iterator[tuple[float, str, str]]:
    """Every difference of two comparable figures; of many only where the clause speaks of one."""
    cue = clause.says(DIFFERENCE)
    for where, values in figures.measured if cue else ():
        for one, other in combinations(values, 2):
            yield one - other, f"{max(one, other):g} − {min(one, other):g}", where
    if " half " in clause.words:
        for column in figures.columns:
            first, second = halves(column)
            yield second - first, f"second half of {column.name} − first half", column.where
    if cue:
        yield from _from_a_mark(figures, clause)
    # "Two months' notice" does not follow from hours and days: small figures with a unit only from those in the same unit.
    in_unit = not large and clause.next_word.lower() in UNIT_SPELLINGS
    for where, values in comparable(figures, texts=not in_unit):
        if len(values) <= FEW or (cue and (large or len(values) <= 8)):
            for one, other in combinations(values[:_MOST_COMPARED], 2):
                yield one - other, f"{max(one, other):g} − {min(one, other):g}", where
        if 3 <= len(values) <= FEW and "[*]" not in where and clause.says(_LEFT):
            # "20 days, 3 carried over, 12 taken, 11 left".
            for one, other in combinations(values, 2):
                for third in values:
                    if third not in (one, other):
                        yield one + other - third, f"{one:g} + {other:g} − {third:g}", where
        if cue and 3 <= len(values) <= _MOST_LESSENED:
            # "25 days, 9 taken, 4 booked, 12 left": the largest, lessened by others.
            whole = max(values, key=abs)
            rest = list(values)
            rest.remove(whole)
            for size in range(2, len(rest) + 1):
                for some in combinations(rest, size):
                    parts = " − ".join(f"{abs(part):g}" for part in some)
                    yield abs(whole) - fsum(map(abs, some)), f"{abs(whole):g} − {parts}", where


def still_free(figures: Figures) -> Iterator[tuple[float, str, str]]:
    """ "88 GB are free": how much there is less how much is used, of one record with few figures."""
    for where, values in figures.of_records:
        if len(values) <= FEW:
            whole = max(values)
            for value in values:
                if value < whole:
                    yield whole - value, f"{whole:g} − {value:g}", where


def _from_a_mark(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    """ "February was $310 over": a named row's figure against one that holds for all rows, such as a budget."""
    marks = list(figures.scalars.values())
    for column in figures.columns if 0 < len(marks) <= FEW else ():
        rows = mentioned_rows(figures, column.table, clause) if len(column.cells) > 1 else frozenset()
        for row, value in column.cells:
            if row in rows:
                for mark in marks:
                    yield value - mark, f"{max(value, mark):g} − {min(value, mark):g}", column.where


def halves(column: Column) -> tuple[float, float]:
    """What each half of a column adds up to; rows in order of time are halves of a year."""
    values = column.values
    if len(values) % 2 or len(values) < FEW:
        return 0.0, 0.0
    return fsum(values[: len(values) // 2]), fsum(values[len(values) // 2 :])


def points(evidence: Evidence) -> Iterator[tuple[float, str, str]]:
    """Differences of percentages."""
    rates = [fact for fact in evidence.numbers if fact.kind == "percentage"][:6]
    for one, other in combinations(rates, 2):
        yield one.value - other.value, f"{one.value:g}% − {other.value:g}%", one.where


def comparable(figures: Figures, *, texts: bool = True) -> Iterator[tuple[str, list[float]]]:
    """Lists of figures that it makes sense to compare with each other; those of texts only where they are wanted."""
    for column in figures.columns:
        if len(column.cells) > 1:
            yield column.where, list(dict.fromkeys(column.values))
    for table in figures.tables:
        columns = [column for column in figures.columns if column.table is table]
        if not 2 <= len(columns) <= 8:
            continue
        cells = [dict(column.cells) for column in columns]
        for number in range(min(len(table.rows), 200)):
            row = [values[number] for values in cells if number in values]
            if len(row) > 1:
                yield f"{table.where}[{number}]", row
        if len(table.rows) > 1:
            yield table.where, [fsum(column.values) for column in columns]
    by_column: dict[tuple[int, str, str], list[float]] = {}
    for group, column in figures.group_columns:
        total = fsum(value for row, value in column.cells if row in group.rows)
        by_column.setdefault((id(column.table), group.column, column.where), []).append(total)
    for (_, _, where), totals in by_column.items():
        if 2 <= len(totals) <= 8:
            yield where, totals
    yield from figures.alike if texts else figures.of_records
    totals = [fsum(column.values) for column in figures.columns if len(column.cells) > 1]
    if totals and len(totals) + len(figures.scalars) <= 8:
        yield "results", [*totals, *figures.scalars.values()]
