"""Whether a fraction in words is right: "gas makes up more than half", "that is a fifth of the fleet", "one quarter more"."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import fsum

from answerkey.grounded.arithmetic.clause import TOGETHER, Clause
from answerkey.grounded.arithmetic.prices import price_columns
from answerkey.grounded.arithmetic.subsets import mentioned_rows
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.figures import Figures

__all__ = ["fractions", "is_fraction"]

_MORE = re.compile(
    r"\s*(?:more|less|fewer|higher|lower|larger|smaller|cheaper|longer|shorter|as (?:much|many) again)\b",
    re.IGNORECASE,
)
_INCREASE = re.compile(
    r"\b(?:increase|rise|growth|drop|decrease|decline|gain|reduction|fall|cut|rose|grew|fell|dropped"
    r"|increased|decreased|(?:up|down)(?= by))"
    r"(?: of| by)? (?:about |around |roughly |nearly |almost |over |more than |less than |just (?:over|under) )?$",
    re.IGNORECASE,
)
_MOST_NEAR = 4

Try = tuple[float, str]


def is_fraction(quantity: Quantity) -> bool:
    """Whether a figure is a fraction in words."""
    return quantity.spelled and quantity.kind == "percentage" and not quantity.digits


def fractions(
    figures: Figures, clause: Clause, near: Sequence[Quantity], says: "Callable[[re.Pattern[str]], bool]"
) -> list[Try]:
    """The percentages that a fraction may stand for, of the surest kind that there is; none if nothing is to be compared."""
    after = clause.text[len(clause.before) + len(clause.written) :]
    amounts = list(dict.fromkeys(one.value for one in near if one.kind != "percentage" and one.value))[
        :_MOST_NEAR
    ]
    rates = [one.value for one in near if one.kind == "percentage" and one.digits][:_MOST_NEAR]
    if _MORE.match(after) or _INCREASE.search(clause.before):
        return [
            *_changes(amounts),
            *(pair for values in _values_of_named_rows(figures, clause) for pair in _changes(values)),
            *(
                pair
                for column in figures.columns
                if len(column.cells) == 2
                for pair in _changes(column.values)
            ),
        ]
    return list(_of_named_rows(figures, clause)) or [
        *_of_stated(amounts, together=says(TOGETHER)),
        *((rate, f"{rate:g}%") for rate in rates),
        *((one + other, f"{one:g}% + {other:g}%") for one, other in combinations(rates, 2)),
        *(
            (100 * value / total, f"{value:g} ÷ sum of {column.name}")
            for column in figures.columns
            if 1 < len(column.cells) <= _MOST_NEAR and (total := fsum(column.values))
            for value in column.values
        ),
    ]


def _values_of_named_rows(figures: Figures, clause: Clause) -> Iterator[list[float]]:
    for table in figures.tables:
        columns = [dict(column.cells) for column in figures.columns if column.table is table]
        for row in sorted(mentioned_rows(figures, table, clause))[:_MOST_NEAR]:
            yield [cells[row] for cells in columns if row in cells][:_MOST_NEAR]


def _of_named_rows(figures: Figures, clause: Clause) -> Iterator[Try]:
    for table in figures.tables:
        rows = mentioned_rows(figures, table, clause)
        if not 0 < len(rows) < len(table.rows):
            continue
        for column in figures.columns:
            total = fsum(column.values)
            if column.table is table and total:
                part = fsum(value for row, value in column.cells if row in rows)
                yield 100 * part / total, f"part of the sum of {column.name}"
        for price, count in price_columns(figures):
            by = dict(count.cells)
            worths = {row: value * by[row] for row, value in price.cells if row in by}
            if price.table is table and (total := fsum(worths.values())):
                part = fsum(value for row, value in worths.items() if row in rows)
                yield 100 * part / total, f"part of the sum of {price.name} × {count.name}"
        if len(rows) == 1:
            for values in _values_of_named_rows(figures, clause):
                yield from _of_stated(values, together=False)
        else:
            for column in figures.columns:
                if column.table is table and len(rows) == 2:
                    # "About a fifth of payroll": one named row against the other.
                    yield from _of_stated(
                        [value for row, value in column.cells if row in rows], together=False
                    )
            yield 100 * len(rows) / len(table.rows), "share of the rows"


def _of_stated(amounts: Sequence[float], *, together: bool) -> Iterator[Try]:
    for part in amounts:
        for whole in amounts:
            if abs(part) < abs(whole):
                yield 100 * part / whole, f"{part:g} ÷ {whole:g}"
    if together and len(amounts) > 2:
        one, other, *rest = amounts
        for whole in rest:
            if abs(whole) > abs(one):
                yield 100 * (one + other) / whole, f"({one:g} + {other:g}) ÷ {whole:g}"


def _changes(amounts: Sequence[float]) -> Iterator[Try]:
    for one in amounts:
        for other in amounts:
            if one != other and other:
                yield 100 * (one - other) / other, f"({one:g} − {other:g}) ÷ {other:g}"
