"""Claims that follow from others that the reply states and that are supported themselves."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from answerkey.grounded.arithmetic.clause import YEAR, Clause
from answerkey.grounded.arithmetic.derive import Arithmetic
from answerkey.grounded.arithmetic.fractions import fractions, is_fraction
from answerkey.grounded.arithmetic.stated import (
    derive_from_stated,
    derive_with_evidence,
    share_of_named,
)
from answerkey.grounded.calendar import may_be_reckoned
from answerkey.grounded.checked import CheckedClaim, derived
from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.equations import Equations
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.listed import counts_items_beside, total_before_parts, total_of_items
from answerkey.grounded.precision import fits, fits_exactly
from answerkey.grounded.reading import measure_after
from answerkey.grounded.sentences import Sentences
from answerkey.grounded.spans import find_date_after
from answerkey.text.normalise import stem

__all__ = ["follow"]

_PARTS_OF = re.compile(r"\s(?:\w+\s){1,3}(?:of|at|à|von|zu|de)\s(?:\w+\s)?", re.IGNORECASE)
_LACKING = re.compile(
    r"\b(?:(?:do|does|did|could|can)(?: not|n[’']t)|cannot|can[’']t|haven[’']t|hasn[’']t|have not|has not)(?: yet)?"
    r" (?:have|see|find|found|show|contain|include|cover|received|got|access|been filed|been uploaded)\b[^.;!?]{0,60}$"
    r"|\b(?:no|without any) (?:\w+ )?(?:data|records?|forms?|documents?|figures?|entries|files?|information|statements?|numbers?)"
    r"(?: \w+){0,3} (?:for|from|of|in|on)\b[^.;!?]{0,30}$",
    re.IGNORECASE,
)
# "Three will sit the retake", "the other two are out": who is left of those that the reply has just divided.
_OTHERS = re.compile(r"(?:^|[,;:(]|\b(?:and|so|while|but|leaving|other|remaining))[\s*_]*$", re.IGNORECASE)
_OF_ALL = re.compile(r"[\s*_]+(?:out )?of[\s*_]+(?:the |our |your |its |all )?[*_]*", re.IGNORECASE)
_FOR = re.compile(r"[\s*_]+(?:\w+ )?for (?:all |the )?[*_]*", re.IGNORECASE)
_THINGS = re.compile(r"[\s*_]+([^\W\d_]{3,})")
_EACH = re.compile(r"[\s*_]*(?:\w+ )?(?:an?|per|each|every|/) ?([^\W\d_]{3,})", re.IGNORECASE)
_YEARS = re.compile(r"[\s-]years?\b", re.IGNORECASE)


def follow(
    checked: list[CheckedClaim],
    sentences: Sentences,
    evidence: Evidence,
    arithmetic: Arithmetic,
    equations: Equations,
) -> list[CheckedClaim]:
    """The claims again, those supported that follow from others."""
    # Several times, as a figure that follows from others may be what a third one follows from.
    for _ in range(3):
        if all(one.supported or one.contradicted for one in checked):
            break
        following = _Following(checked, sentences, evidence, arithmetic, equations)
        checked = [one if one.supported or one.contradicted else following.check(one) for one in checked]
    following = _Following(checked, sentences, evidence, arithmetic, equations)
    return [one for one in checked if one.supported or one.contradicted or not following.is_vague(one.claim)]


class _Following:
    def __init__(
        self,
        checked: Sequence[CheckedClaim],
        sentences: Sentences,
        evidence: Evidence,
        arithmetic: Arithmetic,
        equations: Equations,
    ) -> None:
        self._checked = checked
        self._starts = [other.claim.start for other in checked]
        self._supported = [other.claim for other in checked if other.supported]
        self._sentences = sentences
        self._evidence = evidence
        self._arithmetic = arithmetic
        self._equations = equations

    def check(self, one: CheckedClaim) -> CheckedClaim:
        """One claim that nothing else supports."""
        claim, quantity = one.claim, one.claim.quantity
        if claim.kind == "date" and claim.date is not None and claim.date.month is not None:
            formula = self._date(claim)
        elif quantity is None:
            return one
        else:
            formula = self._years_on(claim)
            if formula is None and claim.kind != "date":
                formula = self._figure(claim, quantity)
        return one if formula is None else derived(claim, formula)

    def is_vague(self, claim: Claim) -> bool:
        """Whether there is nothing to check a claim by: "half" of something that has no figure, a year without data."""
        quantity = claim.quantity
        if (claim.kind == "date" and (claim.date is None or claim.date.day is None)) or YEAR.fullmatch(
            claim.text
        ):
            # "I don't have the 2024 form yet": what is said to be missing stands nowhere.
            return _LACKING.search(self._sentences.clause(claim).before) is not None
        return (
            quantity is not None
            and is_fraction(quantity)
            and claim.text.lower().endswith("half")
            and not self._fractions(claim)
        )

    def _fractions(self, claim: Claim) -> list[tuple[float, str]]:
        clause = self._sentences.clause(claim)
        return fractions(self._arithmetic.figures, clause, self._near(claim), self._says(claim))

    def _figure(self, claim: Claim, quantity: Quantity) -> str | None:
        if is_fraction(quantity):
            return next((formula for value, formula in self._fractions(claim) if fits(quantity, value)), None)
        clause = self._sentences.clause(claim)
        operands = self._operands(claim)
        return (
            self._written_out(claim, quantity)
            or derive_from_stated(quantity, operands, clause)
            or derive_with_evidence(quantity, operands, self._arithmetic.scalars, clause)
            or share_of_named(quantity, operands, clause, self._arithmetic.named)
            or total_of_items(self._sentences.text, claim, self._supported)
            or total_before_parts(self._sentences.text, claim, self._supported)
            or counts_items_beside(self._sentences.text, claim, self._supported)
            or self._count_of_summands(claim, quantity, clause)
            or self._rest_of_all(claim, quantity, clause)
            or self._for_so_many(claim, quantity)
            or self._in_parts(claim, quantity)
            or self._arithmetic.search.find(quantity, clause, self._near(claim), self._says(claim))
        )

    def _in_parts(self, claim: Claim, quantity: Quantity) -> str | None:
        """ "In four installments of $315": so many times so much is a figure that the reply states and that is supported."""
        at = bisect_left(self._starts, claim.start)
        for other in (*self._checked[max(0, at - 1) : at], *self._checked[at + 1 : at + 2]):
            pair = sorted((claim, other.claim), key=lambda one: one.start)
            if other.claim.quantity is None or {pair[0].kind, pair[1].kind} != {"number", "money"}:
                continue
            if pair[0].kind == "number" and _PARTS_OF.fullmatch(
                self._sentences.text, pair[0].end, pair[1].start
            ):
                product = quantity.value * other.claim.quantity.value
                at = self._sentences.index(claim)
                for whole in self._supported:
                    if (
                        whole.kind == "money"
                        and whole.quantity is not None
                        and fits_exactly(whole.quantity, product)
                        and 0 <= at - self._sentences.index(whole) <= 1
                    ):
                        return f"{whole.text} in parts"
        return None

    def _near(self, claim: Claim) -> list[Quantity]:
        """The supported figures of the reply, the nearest first: those of the sentence, then before it, then after it."""
        at = self._sentences.index(claim)
        near = []
        for other in self._supported:
            if other.quantity is None or other.kind == "date" or other is claim:
                continue
            off = at - self._sentences.index(other)
            near.append((abs(off) * 2 + (off < 0), abs(other.start - claim.start), other.quantity))
        return [operand for _, _, operand in sorted(near, key=lambda item: item[:2])]

    def _says(self, claim: Claim) -> Callable[[re.Pattern[str]], bool]:
        """Whether a claim's sentence or the one before it has words of a kind."""
        clause = self._sentences.clause(claim)
        return lambda words: clause.says(words) or self._sentences.said_before(claim, words)

    def _operands(self, claim: Claim) -> list[Quantity]:
        """Supported figures of the claim's sentence and of the last before it, the nearest first."""
        at = self._sentences.index(claim)
        near = []
        for other in self._supported:
            if other.quantity is None or other.kind == "date":
                continue
            off = at - self._sentences.index(other)
            if 0 <= off <= (2 if self._sentences.same_line(other, claim) else 1):
                near.append((off, abs(other.start - claim.start), other.quantity))
        return [operand for _, _, operand in sorted(near, key=lambda item: item[:2])]

    def _written_out(self, claim: Claim, quantity: Quantity) -> str | None:
        """The equation that gives a figure, where the reply writes it out."""
        found = self._equations.result(claim, {other.start for other in self._supported})
        if found is None:
            return None
        return found[1] if fits(quantity, found[0] * (100 if claim.kind == "percentage" else 1)) else None

    def _count_of_summands(self, claim: Claim, quantity: Quantity, clause: Clause) -> str | None:
        """ "From two payments": how many rows give a sum that the reply states beside it."""
        if claim.kind != "number" or quantity.unit != 1 or not clause.next_word:
            return None
        at = self._sentences.index(claim)
        for other in self._checked:
            figure = other.claim.quantity
            if (
                figure is None
                or other.where != "arithmetic"
                or abs(self._sentences.index(other.claim) - at) > 1
            ):
                continue
            if quantity.value in self._arithmetic.summands(figure):
                return f"count of the rows that give {other.claim.text}"
        return None

    def _rest_of_all(self, claim: Claim, quantity: Quantity, clause: Clause) -> str | None:
        """ "27 of the 30 passed. Three will sit the retake": the rest, in the same sentence or the next."""
        if claim.kind != "number" or quantity.unit != 1 or not _OTHERS.search(clause.before):
            return None
        at = self._sentences.index(claim)
        figures = [one for one in self._supported if one.kind == "number" and one.start < claim.start]
        for part, whole in pairwise(figures):
            if (
                part.quantity is not None
                and whole.quantity is not None
                and 0 <= at - self._sentences.index(part) <= 1
                and _OF_ALL.fullmatch(self._sentences.text, part.end, whole.start)
                and quantity.value == whole.quantity.value - part.quantity.value
            ):
                return f"{whole.quantity.value:g} − {part.quantity.value:g}"
        return None

    def _for_so_many(self, claim: Claim, quantity: Quantity) -> str | None:
        """ "$179 a night, so $537 for three nights", "7 litres per coat and 14 for two coats"."""
        at = bisect_left(self._starts, claim.start)
        text = self._sentences.text
        for first, second in ((at, at + 1), (at - 1, at)):
            if first < 0 or second >= len(self._checked):
                continue
            product, many = self._checked[first], self._checked[second]
            figure, count = product.claim.quantity, many.claim.quantity
            thing = _THINGS.match(text, many.claim.end)
            if (
                figure is None
                or count is None
                or thing is None
                or many.claim.kind != "number"
                or not _FOR.fullmatch(text, product.claim.end, many.claim.start)
                # The evidence says itself how many there are.
                or (not many.supported and self._arithmetic.named(thing[1]))
            ):
                continue
            for rate in self._supported:
                each = _EACH.match(text, rate.end)
                if (
                    rate.quantity is not None
                    and rate.kind == product.claim.kind
                    and each is not None
                    and stem(each[1].lower()) == stem(thing[1].lower())
                    and fits_exactly(figure, rate.quantity.value * count.value)
                ):
                    return f"{rate.quantity.value:g} × {count.value:g}"
        return None

    def _date(self, claim: Claim) -> str | None:
        """A date that lies some time before or after another that the reply states."""
        if claim.date is None or not may_be_reckoned(claim.date, self._sentences.around(claim)):
            return None
        years = [fact.date.year for fact in self._evidence.dates if fact.date.year is not None]
        stated = [
            other.date if other.date.year or not years else msgspec.structs.replace(other.date, year=years[0])
            for other in self._supported
            if other.date is not None
        ]
        found = find_date_after(
            claim.date, self._evidence, stated, self._spans_told(claim), self._sentences.dates_beside(claim)
        )
        return found.text if found else None

    def _spans_told(self, claim: Claim) -> list[NumberFact]:
        """Spans of time that the claim's sentence or the last one states: "for eight years as of May 2025"."""
        at = self._sentences.index(claim)
        return [
            NumberFact(
                value=other.quantity.value,
                kind="number",
                unit=1.0,
                where="arithmetic",
                key="",
                names_something=False,
                text=other.text,
                measure=measure_after(self._sentences.text, other.end),
            )
            for other in self._supported
            if other.quantity is not None and 0 <= at - self._sentences.index(other) <= 1
        ]

    def _years_on(self, claim: Claim) -> str | None:
        """ "In 2026 she'll hit ten years": a year and a number of years that lead to it from a date of the evidence."""
        text = self._sentences.text
        is_span = claim.quantity is not None and _YEARS.match(text, claim.end) is not None
        if claim.kind != "date" and not is_span:
            return None
        at = self._sentences.index(claim)
        near = [other.claim for other in self._checked if self._sentences.index(other.claim) == at]
        own = [claim] if is_span else near
        spans = [int(one.quantity.value) for one in own if one.quantity and _YEARS.match(text, one.end)]
        dated = near if is_span else [claim]
        years = [one.date.year for one in dated if one.date is not None and one.date.year is not None]
        known: set[float | None] = {fact.date.year for fact in self._evidence.dates}
        known |= {fact.value for fact in self._evidence.numbers if fact.kind == "number" and fact.unit == 1}
        return next(
            (
                f"{year - span} + {span} years"
                for year in years
                for span in spans
                if span > 0 and year - span in known
            ),
            None,
        )
