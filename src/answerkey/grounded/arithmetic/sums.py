"""Sums and averages: of columns, of named rows, of records and of the few figures of a text."""

import re
from collections.abc import Iterator
from itertools import combinations
from math import fsum

from answerkey.grounded.arithmetic.clause import CLEAR_SUM, MEAN, SUM, Clause
from answerkey.grounded.arithmetic.subsets import mentioned_rows, named_subsets, speaks_of
from answerkey.grounded.figures import Figures
from answerkey.grounded.flatten import key_words
from answerkey.grounded.reading import measure_named

__all__ = ["runs_in_texts", "sums"]


def sums(
    figures: Figures, clause: Clause, large: bool, *, of_columns: bool
) -> Iterator[tuple[float, str, str]]:
    """Every sum and average; small figures only where the clause speaks of one, but for sums of whole columns."""
    # "How many joined?" asks for the sum of the one column that there is.
    asked = len(figures.columns) == 1 and " how " in clause.question_words
    summing = large or asked or clause.says(SUM) or SUM.search(clause.question_words) is not None
    meaning = large or clause.says(MEAN)
    # "Headcount stands at 93:", "14 out of 43": what the one or two columns that there are add up to.
    alone = len(figures.columns) <= _FEW_COLUMNS and (
        bool(_INTRODUCES.search(clause.text)) or bool(_OUT_OF.search(clause.before)) or clause.part_of > 0
    )
    yield from _of_columns(figures, clause, summing or of_columns or alone, meaning)
    if summing or meaning or of_columns:
        yield from _of_named_rows(figures, clause, summing or of_columns, meaning)
    if clause.says(_TOTAL):
        yield from _of_several_columns(figures)
    elif large:
        yield from _of_named_row(figures, clause)
    if large:
        for group, column in figures.group_columns:
            kept = [value for row, value in column.cells if row in group.rows]
            if len(kept) > 1:
                yield fsum(kept), f"sum of {column.name} where {group.label}", column.where
    if summing:
        yield from _of_few(figures, clause, large)
        for value, count, where in runs_in_texts(figures):
            yield value, f"sum of {count} amounts in a row", where


_FEW_COLUMNS = 2
# A figure that is so small beside another is hardly of the same kind: 142,000 and a rate of 5.75.
TOO_SMALL = 0.01
_INTRODUCES = re.compile(r":[\s*_]*$")
_OUT_OF = re.compile(r"\b(?:out )?of(?: the| our| your| its)?\s+$", re.IGNORECASE)
_TOTAL = re.compile(
    r"\b(?:totals?|totall?ed|totall?ing|altogether|combined|together|in all|sum)\b", re.IGNORECASE
)
_MOST_COLUMNS = 4


def _of_several_columns(figures: Figures) -> Iterator[tuple[float, str, str]]:
    """ "Total payments": what all columns of figures add up to, or two of them, over all rows and in each row."""
    for table in figures.tables:
        columns = [column for column in figures.columns if column.table is table]
        if not 2 <= len(columns) <= _MOST_COLUMNS:
            continue
        for size in {2, len(columns)}:
            for some in combinations(columns, size):
                formula = "sum of " + " and ".join(column.name for column in some)
                yield fsum(value for column in some for value in column.values), formula, table.where
                cells = [dict(column.cells) for column in some]
                for row in range(min(len(table.rows), _MOST_ROWS)):
                    if all(row in values for values in cells):
                        yield fsum(values[row] for values in cells), formula, f"{table.where}[{row}]"


_MOST_ROWS = 50


def _of_named_row(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    """ "Marketing cost $18,200 in Q1": what all figures of a row that is named add up to."""
    for table in figures.tables:
        columns = [column for column in figures.columns if column.table is table]
        rows = mentioned_rows(figures, table, clause) if 2 <= len(columns) <= _MOST_COLUMNS else ()
        cells = [dict(column.cells) for column in columns] if rows else []
        for row in sorted(rows)[:_MOST_ROWS]:
            if all(row in values for values in cells):
                formula = "sum of " + " and ".join(column.name for column in columns)
                yield fsum(values[row] for values in cells), formula, f"{table.where}[{row}]"


def _of_columns(
    figures: Figures, clause: Clause, summing: bool, meaning: bool
) -> Iterator[tuple[float, str, str]]:
    for column in figures.columns:
        values = column.values
        if len(values) < 2:
            continue
        unit = measure_named((clause.next_word.lower(),)) if clause.next_word else ""
        if (
            summing
            or (unit and unit == measure_named(key_words(column.name)))
            or any(speaks_of(column.name, word) for word in clause.words.split() if len(word) > 3)
        ):
            yield fsum(values), f"sum of {column.name}", column.where
            signs = [value for value in values if value > 0], [value for value in values if value < 0]
            if all(signs):
                yield fsum(signs[0]), f"sum of positive {column.name}", column.where
                yield fsum(signs[1]), f"sum of negative {column.name}", column.where
        if meaning:
            yield fsum(values) / len(values), f"average of {column.name}", column.where
        if "median" in clause.text.lower():
            ordered = sorted(values)
            half = len(ordered) // 2
            middle = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
            yield middle, f"median of {column.name}", column.where


def _of_named_rows(
    figures: Figures, clause: Clause, summing: bool, meaning: bool
) -> Iterator[tuple[float, str, str]]:
    for table, rows, label in named_subsets(figures, clause):
        for column in figures.columns:
            if column.table is not table:
                continue
            kept = [value for row, value in column.cells if row in rows]
            if len(kept) < 2:
                continue
            if summing:
                yield fsum(kept), f"sum of {column.name} where {label}", column.where
            if meaning:
                yield fsum(kept) / len(kept), f"average of {column.name} where {label}", column.where


def runs_in_texts(figures: Figures) -> Iterator[tuple[float, int, str]]:
    """Sums of three or more amounts that follow each other in a text, with their number."""
    for where, values in figures.alike:
        for first in range(len(values)):
            for last in range(first + 3, len(values) + 1):
                yield fsum(values[first:last]), last - first, where


def _of_few(figures: Figures, clause: Clause, large: bool) -> Iterator[tuple[float, str, str]]:
    for where, values in figures.alike:
        spoken = clause.says(CLEAR_SUM) or CLEAR_SUM.search(clause.question_words) is not None
        if (large and len(values) <= 6) or (spoken and len(values) <= 12):
            for one, other in combinations(values, 2):
                if min(abs(one), abs(other)) < TOO_SMALL * max(abs(one), abs(other)):
                    continue
                yield one + other, f"{one:g} + {other:g}", where
        if (large or spoken) and len(values) <= (8 if spoken else 5):
            for three in combinations(values, 3):
                yield fsum(three), " + ".join(f"{value:g}" for value in three), where
        if len(values) <= 12:
            yield fsum(values), "sum of " + " + ".join(f"{value:g}" for value in values), where
        if len(values) <= 8 and clause.says(MEAN):
            yield (
                fsum(values) / len(values),
                "average of " + ", ".join(f"{value:g}" for value in values),
                where,
            )
