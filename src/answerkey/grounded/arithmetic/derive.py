"""Finds how a stated figure can be derived from the evidence."""

from collections.abc import Iterator
from functools import cached_property
from math import fsum

import msgspec

from answerkey.grounded.arithmetic.clause import (
    CLEAR_DIFFERENCE,
    DIFFERENCE,
    FREE,
    SUPERLATIVE,
    YEAR,
    Clause,
)
from answerkey.grounded.arithmetic.counts import counts
from answerkey.grounded.arithmetic.differences import differences, points, still_free
from answerkey.grounded.arithmetic.fractions import is_fraction
from answerkey.grounded.arithmetic.percentages import percentages
from answerkey.grounded.arithmetic.products import products
from answerkey.grounded.arithmetic.search import Search
from answerkey.grounded.arithmetic.sums import runs_in_texts, sums
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.figures import Figures
from answerkey.grounded.flatten import key_words
from answerkey.grounded.precision import fits, widest
from answerkey.text.normalise import stem

__all__ = ["Arithmetic", "Derivation"]


_MOST_SCALARS = 24
_LARGE = 100
# "Three of ten places are free": so many figures may be how many are taken.
_MOST_TAKEN = 8


class Derivation(msgspec.Struct, frozen=True):
    """How a figure follows from the evidence."""

    formula: str
    where: str


class Arithmetic:
    """Finds how a figure can be derived; what it costs is bounded by the number of figures."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._figures = Figures(evidence)
        self.search = Search(self._figures, evidence)

    @property
    def figures(self) -> Figures:
        """The figures of the evidence."""
        return self._figures

    def derive(self, quantity: Quantity, clause: Clause, *, strict: bool = False) -> Derivation | None:
        """The first derivation that gives the figure at its precision; strict: only one that the clause speaks of."""
        low, high = widest(quantity)
        for value, formula, where in self._candidates(quantity, clause, strict):
            if low <= abs(value) <= high and fits(quantity, value):
                return Derivation(formula, where)
        return None

    @cached_property
    def scalars(self) -> list[float]:
        """Amounts and measures of the evidence that a figure of the reply may be joined with."""
        found = [
            fact.value
            for fact in self._evidence.numbers
            if not fact.names_something
            and fact.kind != "percentage"
            and (fact.kind == "money" or fact.measure or fact.key or abs(fact.value) >= _LARGE)
        ]
        return list(dict.fromkeys(found))[:_MOST_SCALARS]

    def named(self, word: str) -> list[float]:
        """The figures that the evidence gives under a name or after a word."""
        root = stem(word.lower())
        return [
            fact.value
            for fact in self._evidence.numbers
            if fact.kind != "percentage"
            # `litres_per_coat` does not say how many coats there are.
            and "per" not in key_words(fact.key)
            and root in (stem(fact.label), *(stem(part) for part in key_words(fact.key)[-1:]))
        ]

    def summands(self, quantity: Quantity) -> set[int]:
        """How many rows there are in each set of rows that shares a value and gives this sum."""
        found = {len(column.cells) for column in self._figures.columns if fits(quantity, fsum(column.values))}
        for group, column in self._figures.group_columns:
            kept = [value for row, value in column.cells if row in group.rows]
            if len(kept) > 1 and fits(quantity, fsum(kept)):
                found.add(len(kept))
        return found | {count for value, count, _ in runs_in_texts(self._figures) if fits(quantity, value)}

    def _candidates(
        self, quantity: Quantity, clause: Clause, strict: bool
    ) -> Iterator[tuple[float, str, str]]:
        figures = self._figures
        if quantity.ordinal or is_fraction(quantity) or SUPERLATIVE.search(clause.before):
            return
        differing = clause.says(DIFFERENCE)
        if quantity.kind == "percentage" or clause.next_word.startswith(("point", "percentage")):
            if differing:
                yield from points(self._evidence)
            yield from percentages(figures, clause)
            if quantity.kind == "percentage":
                return
        if quantity.kind == "number" and quantity.unit == 1:
            yield from counts(figures, clause)
            if YEAR.fullmatch(clause.written):
                return
        # A small whole number is near some result of almost any arithmetic: there the clause must speak of it.
        telling = len(quantity.digits.replace(".", "").strip("0"))
        large = telling >= 4 or (abs(quantity.value) >= 100 and telling >= 3) or abs(quantity.value) >= 1000
        large = large and not strict
        yield from sums(figures, clause, large, of_columns=not strict and abs(quantity.value) >= _LARGE)
        if not large and clause.says(FREE):
            yield from still_free(figures)
            if clause.part_of:
                taken = [
                    fact
                    for fact in self._evidence.numbers
                    if not fact.names_something and fact.kind == "number"
                ]
                for fact in taken[:_MOST_TAKEN]:
                    if 0 < fact.value < clause.part_of:
                        yield clause.part_of - fact.value, f"{clause.part_of:g} − {fact.value:g}", fact.where
        if large or clause.says(CLEAR_DIFFERENCE):
            yield from differences(figures, clause, large)
        yield from products(figures, self._evidence, quantity, clause, large)
