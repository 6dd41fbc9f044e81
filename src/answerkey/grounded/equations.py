"""Equations that a reply writes out: "12 months × $1,875 = $22,500"."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from answerkey.grounded.claims.claim import Claim

__all__ = ["CALENDAR", "Equations"]

# How many of one unit of time make another, and percent: factors that need no source.
CALENDAR = frozenset([4.0, 7.0, 12.0, 24.0, 52.0, 60.0, 100.0, 365.0])
_SIGN = re.compile(
    r"[*_]{0,2}(?:\s*\(?[A-Za-z][A-Za-z-]*\.?\)?){0,3}[*_]{0,2}\s*"
    r"(?:([×*·x]|\btimes\b)|([+]|\bplus\b)|([−–-]|\bminus\b|\bless\b)|([÷/])|([=≈]))\s*(?:[A-Za-z][\w&]*\s+){0,2}[*_(]{0,3}",
    re.IGNORECASE,
)
_SIGNS = "×+−÷="
_LONGEST_GAP = 50


class Equations:
    """The equations of a text, by the places of their results and factors."""

    def __init__(self, text: str, claims: Sequence[Claim]) -> None:
        # Place of a result → its terms: signs and claims in turn.
        self._results: dict[int, list[tuple[str, Claim]]] = {}
        # Places of figures beside × or ÷.
        self._factors: set[int] = set()
        figures = [claim for claim in claims if claim.quantity is not None and claim.kind != "date"]
        terms: list[tuple[str, Claim]] = []
        for one, other in pairwise(figures):
            sign = _sign_between(text, one, other)
            if not sign:
                terms = []
                continue
            if sign in "×÷":
                self._factors.update((one.start, other.start))
            terms = terms or [("+", one)]
            if sign == "=":
                if len(terms) > 1:
                    self._results[other.start] = terms
                terms = [("+", other)]
            else:
                terms = [*terms, (sign, other)]

    def is_factor(self, claim: Claim) -> bool:
        """Whether a figure is multiplied or divided by."""
        return claim.start in self._factors

    def result(self, claim: Claim, supported: Collection[int]) -> tuple[float, str] | None:
        """What the equation that ends in a claim gives, with its formula, if all its terms are supported."""
        terms = self._results.get(claim.start)
        if terms is None or not all(term.start in supported for _, term in terms):
            return None
        total, product = 0.0, 0.0
        for sign, term in terms:
            value = term.quantity.value if term.quantity is not None else 0.0
            if term.kind == "percentage":
                value /= 100
            if sign == "×":
                product *= value
            elif sign == "÷":
                if not value:
                    return None
                product /= value
            else:
                total += product
                product = value if sign == "+" else -value
        formula = " ".join(f"{sign} {term.text}" for sign, term in terms).removeprefix("+ ")
        return total + product, formula


def _sign_between(text: str, one: Claim, other: Claim) -> str:
    if other.start - one.end > _LONGEST_GAP:
        return ""
    found = _SIGN.fullmatch(text, one.end, other.start)
    if found is None:
        return ""
    return next(sign for sign, group in zip(_SIGNS, found.groups(), strict=True) if group)
