"""Finds how a stated figure can be derived from the evidence."""

from collections.abc import Iterator

import msgspec

from answerkey.scorers.groundedness.arithmetic.clause import CLEAR_DIFFERENCE, DIFFERENCE, SUPERLATIVE, Clause
from answerkey.scorers.groundedness.arithmetic.counts import counts
from answerkey.scorers.groundedness.arithmetic.differences import differences, points
from answerkey.scorers.groundedness.arithmetic.percentages import percentages
from answerkey.scorers.groundedness.arithmetic.products import products
from answerkey.scorers.groundedness.arithmetic.sums import sums
from answerkey.scorers.groundedness.evidence import Evidence
from answerkey.scorers.groundedness.figures import Figures
from answerkey.scorers.groundedness.precision import fits
from answerkey.text.claims.quantity import Quantity

__all__ = ["Arithmetic", "Derivation"]


class Derivation(msgspec.Struct, frozen=True):
    """How a figure follows from the evidence."""

    formula: str
    where: str


class Arithmetic:
    """Finds how a figure can be derived; what it costs is bounded by the number of figures."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._figures = Figures(evidence)

    def derive(self, quantity: Quantity, clause: Clause, *, strict: bool = False) -> Derivation | None:
        """The first derivation that gives the figure at its precision; strict: only one that the clause speaks of."""
        for value, formula, where in self._candidates(quantity, clause, strict):
            if fits(quantity, value):
                return Derivation(formula, where)
        return None

    def _candidates(
        self, quantity: Quantity, clause: Clause, strict: bool
    ) -> Iterator[tuple[float, str, str]]:
        figures = self._figures
        if quantity.ordinal or SUPERLATIVE.search(clause.before):
            return
        differing = DIFFERENCE.search(clause.text) is not None
        if quantity.kind == "percentage" or clause.next_word.startswith(("point", "percentage")):
            if differing:
                yield from points(self._evidence)
            yield from percentages(figures, clause)
            return
        if quantity.kind == "number" and quantity.unit == 1:
            yield from counts(figures, clause)
        # A small whole number is near some result of almost any arithmetic: there the clause must speak of it.
        large = abs(quantity.value) >= 100 or len(quantity.digits.replace(".", "").lstrip("0")) >= 4
        large = large and not strict
        large = large and not strict
        yield from sums(figures, clause, large)
        if large or CLEAR_DIFFERENCE.search(clause.text):
            yield from differences(figures, clause, large)
        yield from products(figures, self._evidence, quantity, clause, large)
