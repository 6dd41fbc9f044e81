"""Products and quotients: yearly from monthly, a rate of an amount, quantity times price, one figure in another."""

import re
from collections.abc import Iterator
from itertools import combinations, permutations
from math import fsum

from answerkey.grounded.arithmetic.clause import (
    MEAN,
    RATE,
    TIMES,
    UNIT_OF_TIMES,
    YEARLY,
    Clause,
    multiples,
)
from answerkey.grounded.arithmetic.differences import FEW
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.figures import Figures
from answerkey.grounded.flatten import key_words

__all__ = ["products"]


_MOST_MULTIPLIED = 12


def products(
    figures: Figures, evidence: Evidence, quantity: Quantity, clause: Clause, large: bool
) -> Iterator[tuple[float, str, str]]:
    """Every product and quotient that the clause speaks of."""
    facts = [fact for fact in evidence.numbers if not fact.names_something]
    if quantity.kind == "number" and UNIT_OF_TIMES.match(clause.next_word):
        for where, values in figures.several:
            for one, other in combinations(values[:8], 2):
                if one and other:
                    yield (
                        max(one, other) / min(one, other),
                        f"{max(one, other):g} ÷ {min(one, other):g}",
                        where,
                    )
    asked = multiples(clause.question_words)
    if large or quantity.kind == "money" or asked:
        for factor in {*multiples(clause.text), *asked}:
            for fact in [fact for fact in facts if fact.kind != "percentage"][:_MOST_MULTIPLIED]:
                yield fact.value * factor, f"{fact.value:g} × {factor:g}", fact.where
    if large and YEARLY.search(f"{clause.text} {clause.question_words}"):
        yield from _by_twelve(figures, facts)
    rates = sum(fact.kind == "percentage" for fact in facts)
    if large and (
        RATE.search(f"{clause.text} {clause.question_words}") or (0 < rates <= 2 and len(facts) <= 2 * FEW)
    ):
        totals = [fsum(column.values) for column in figures.columns if len(column.cells) > 1]
        yield from _parts(facts, totals, net=clause.says(_NET))
    if clause.numbers:
        yield from _scaled(facts, clause)
    if large or quantity.kind == "money":
        yield from figures.written_products
    if (large or quantity.kind == "money") and clause.says(TIMES):
        yield from _times(figures)
    elif quantity.kind == "money":
        yield from _times(figures, named=True)
    if clause.says(MEAN):
        # "€130 per night": the total of one column over that of another.
        for one_column, other_column in permutations(figures.columns[:8], 2):
            total = fsum(other_column.values)
            if one_column.table is other_column.table and total:
                formula = f"sum of {one_column.name} ÷ sum of {other_column.name}"
                yield fsum(one_column.values) / total, formula, one_column.where
    if (" per " in clause.words or (clause.labelled and clause.says(MEAN))) and quantity.kind == "money":
        yield from _per_unit(figures)
        yield from _per_area(facts, clause)
    if clause.says(MEAN) and (large or quantity.kind == "money"):
        for where, values in figures.several:
            if len(values) <= FEW:
                for one, other in combinations(values, 2):
                    if one and other:
                        yield one / other, f"{one:g} ÷ {other:g}", where
                        yield other / one, f"{other:g} ÷ {one:g}", where


def _scaled(facts: list[NumberFact], clause: Clause) -> Iterator[tuple[float, str, str]]:
    """ "For 12 people 900 g": figures of a recipe that is for so many, for as many as are asked for."""
    served = [
        fact
        for fact in facts
        if fact.value > 0 and (fact.label in _SERVES or not _SERVES.isdisjoint(key_words(fact.key)))
    ][:1]
    for whole in served:
        for fact in facts[:_MOST_MULTIPLIED] if whole.where not in ("question", "context") else ():
            for number in clause.numbers:
                if fact is not whole and number not in (0, whole.value):
                    formula = f"{fact.value:g} × {number:g} ÷ {whole.value:g}"
                    yield fact.value * number / whole.value, formula, fact.where


_SERVES = frozenset(["serves", "serving", "servings", "portions", "yields", "makes"])


def _per_unit(figures: Figures) -> Iterator[tuple[float, str, str]]:
    """ "$266 per square foot": one figure of a row over another."""
    for table in figures.tables:
        columns = [column for column in figures.columns if column.table is table]
        if len(columns) > _MOST_DIVIDED or len(table.rows) > 2 * _MOST_DIVIDED:
            continue
        for left, right in permutations(columns, 2):
            by = dict(right.cells)
            for row, value in left.cells:
                if by.get(row):
                    yield value / by[row], f"{left.name} ÷ {right.name}", f"{table.where}[{row}]"


def _per_area(facts: list[NumberFact], clause: Clause) -> Iterator[tuple[float, str, str]]:
    """ "$18 per square foot per year": an amount, by the year where it is one of a month, over an area of the same place."""
    areas = [fact for fact in facts if fact.measure.startswith("square ")][:_MOST_DIVIDED]
    for area in areas if clause.says(_AREA) else ():
        for fact in facts:
            if fact.where == area.where and fact.kind == "money" and area.value:
                yield fact.value / area.value, f"{fact.value:g} ÷ {area.value:g}", fact.where
                if clause.says(YEARLY):
                    yield 12 * fact.value / area.value, f"12 × {fact.value:g} ÷ {area.value:g}", fact.where


_AREA = re.compile(r"\b(?:square|sq|sqft|sf|psf|sqm|m2)\b|m²", re.IGNORECASE)
_MOST_DIVIDED = 6


def _by_twelve(figures: Figures, facts: list[NumberFact]) -> Iterator[tuple[float, str, str]]:
    for fact in facts[:200]:
        if fact.kind != "percentage":
            yield fact.value * 12, f"{fact.value:g} × 12", fact.where
            yield fact.value / 12, f"{fact.value:g} ÷ 12", fact.where
    for column in figures.columns:
        total = fsum(column.values)
        yield total * 12, f"sum of {column.name} × 12", column.where
        yield total / 12, f"sum of {column.name} ÷ 12", column.where


_NET = re.compile(r"\b(?:net|before|without|excl\w*|less)\b", re.IGNORECASE)


def _parts(facts: list[NumberFact], totals: list[float], *, net: bool) -> Iterator[tuple[float, str, str]]:
    """ "10% of $1,200 is $120", and the amount with or without that part."""
    rates = [(fact.value, fact.where) for fact in facts if fact.kind == "percentage"]
    rates += [
        (fact.value * 100 if abs(fact.value) < 1 else fact.value, fact.where)
        for fact in facts
        if fact.kind == "number" and {"rate", "percent", "pct", "percentage"} & set(key_words(fact.key))
    ]
    bases = totals[:8] + [fact.value for fact in facts if fact.kind != "percentage"][:40]
    for rate, where in rates[:6]:
        for base in bases:
            part = base * rate / 100
            yield part, f"{rate:g}% of {base:g}", where
            yield base + part, f"{base:g} + {rate:g}%", where
            yield base - part, f"{base:g} − {rate:g}%", where
            if net:
                yield base / (1 + rate / 100), f"{base:g} without {rate:g}% on top", where


_MOST_TOTALS = 8
_MANY = frozenset(
    ["qty", "quantity", "hours", "units", "count", "nights", "days", "shares", "seats", "pieces", "items"]
)
_EACH = frozenset(["price", "rate", "cost", "wage", "fee"])


def _times(figures: Figures, *, named: bool = False) -> Iterator[tuple[float, str, str]]:
    """Products of a row's figures and of few figures; named: only of columns such as `hours` and `rate`."""
    for table in figures.tables:
        columns = [column for column in figures.columns if column.table is table]
        if not 2 <= len(columns) <= 6:
            continue
        for left, right in combinations(columns, 2):
            words = {*key_words(left.name), *key_words(right.name)}
            if named and (words.isdisjoint(_MANY) or words.isdisjoint(_EACH)):
                continue
            first, second = dict(left.cells), dict(right.cells)
            found = [first[row] * second[row] for row in first if row in second]
            for product in found[:200]:
                yield product, f"{left.name} × {right.name}", table.where
            if len(found) > 1:
                yield fsum(found), f"sum of {left.name} × {right.name}", table.where
    totals = [(fsum(column.values), column) for column in figures.columns if len(column.cells) > 1]
    if not named and len(totals) * len(figures.scalars) <= _MOST_TOTALS:
        # "186.5 hours at $95": the hours of a list and a rate from elsewhere.
        for total, column in totals:
            for value in figures.scalars.values():
                yield total * value, f"sum of {column.name} × {value:g}", column.where
    for where, values in figures.several if not named else ():
        if len(values) <= FEW:
            for one, other in combinations(values, 2):
                yield one * other, f"{one:g} × {other:g}", where
