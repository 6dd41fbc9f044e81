"""Arithmetic within a reply: figures that follow from others that it states nearby and that are supported themselves."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations

from answerkey.grounded.arithmetic.clause import (
    CHANGE,
    CLEAR_DIFFERENCE,
    CLEAR_SUM,
    COMPLEMENT,
    MEAN,
    RATE,
    SUM,
    TIMES,
    UNIT_OF_TIMES,
    YEAR,
    YEARLY,
    Clause,
)
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.precision import fits
from answerkey.grounded.reading import PHYSICAL, UNIT_NAMES

__all__ = ["derive_from_stated", "derive_with_evidence", "share_of_named"]

# With more operands than this, chance has too much room.
_MOST_OPERANDS = 6
_FEW = 3


def derive_from_stated(quantity: Quantity, operands: Sequence[Quantity], clause: Clause) -> str | None:
    """The formula that gives a figure from supported figures beside it."""
    if quantity.ordinal or YEAR.fullmatch(clause.written):
        return None
    near = [operand for operand in operands if not operand.ordinal][:_MOST_OPERANDS]
    for value, formula in _candidates(quantity, near, clause):
        if fits(quantity, value):
            return formula
    return None


def share_of_named(
    quantity: Quantity, operands: Sequence[Quantity], clause: Clause, named: Callable[[str], list[float]]
) -> str | None:
    """ "$2,260, about 29% of the total": a stated amount as a share of what the evidence gives under that name."""
    whole = _OF_THE.search(clause.text)
    if quantity.kind != "percentage" or whole is None:
        return None
    for base in named(whole[1]):
        for operand in [operand for operand in operands if operand.kind != "percentage"][:_MOST_OPERANDS]:
            if base and fits(quantity, 100 * operand.value / base):
                return f"{operand.value:g} ÷ {base:g}"
    return None


_OF_THE = re.compile(
    r"(?:%|percent|pct)\s+of\s+(?:the |our |your |its |their )?(?:\w+ )?([a-z]{4,})\b", re.IGNORECASE
)


def derive_with_evidence(
    quantity: Quantity, operands: Sequence[Quantity], scalars: Sequence[float], clause: Clause
) -> str | None:
    """A figure that the reply states and one of the evidence, put together: "interest $14,400, with principal $78,400"."""
    if (
        quantity.ordinal
        or quantity.kind == "percentage"
        or (quantity.kind != "money" and abs(quantity.value) < _LARGE)
    ):
        return None
    if " per " in clause.words or " each " in clause.words or clause.says(_COMES_TO):
        for operand in [operand for operand in operands if operand.kind != "percentage"][:_MOST_JOINED]:
            for scalar in scalars:
                telling = len(quantity.digits.replace(".", "").strip("0")) >= 3 or "." in quantity.digits
                if telling and fits(quantity, operand.value * scalar):
                    return f"{operand.value:g} × {scalar:g}"
                if telling and scalar and fits(quantity, operand.value / scalar):
                    return f"{operand.value:g} ÷ {scalar:g}"
    if not clause.says(_JOINING):
        return None
    for operand in [operand for operand in operands if operand.kind == "money"][:_MOST_JOINED]:
        for scalar in scalars:
            summed = fits(quantity, operand.value + scalar) and not fits(quantity, scalar)
            if summed and clause.says(CLEAR_SUM):
                return f"{operand.value:g} + {scalar:g}"
            if fits(quantity, abs(operand.value - scalar)) and clause.says(CLEAR_DIFFERENCE):
                return f"{operand.value:g} − {scalar:g}"
    return None


_AFTER = re.compile(r"\b(?:after|remaining|left|book value)\b", re.IGNORECASE)
_MIDDLE = re.compile(r"\b(?:midpoint|average|mean|middle)\b", re.IGNORECASE)
_IN_ALL = re.compile(r"\b(?:in all|in total|altogether|insgesamt|en tout|au total|en total)\b", re.IGNORECASE)
_MOST_JOINED = 2
_LARGE = 100
_COMES_TO = re.compile(
    r"\b(?:comes?|came|adds?|works?|amounts?) (?:out )?(?:up )?to\b|\bcosts?\b|="
    r"|\bi\.e\.|\bthat(?:['’]s| is)\b|\bwhich is\b",
    re.IGNORECASE,
)
_DIVIDED = re.compile(
    r"\b(?:an?|every) (?:month|week|day|night|year|person|head|hour)\b|\b(?:monthly|weekly|daily|nightly|yearly|annually)\b|"
    r"\b(?:split|divided|spread)\b|\b(?:instal+ments?|payments|parts|portions|shares"
    r"|rates|halves|thirds|quarters|tranches) of\b",
    re.IGNORECASE,
)
_JOINING = re.compile(
    CLEAR_DIFFERENCE.pattern
    + r"|\b(?:with|including|incl|plus|total|totals|altogether|combined|together|after)\b",
    re.IGNORECASE,
)


def _candidates(quantity: Quantity, near: Sequence[Quantity], clause: Clause) -> Iterator[tuple[float, str]]:
    amounts = [operand.value for operand in near if operand.kind != "percentage"]
    rates = [operand.value for operand in near if operand.kind == "percentage"]
    if quantity.kind == "percentage":
        changed = clause.says(CHANGE)
        for one, other in permutations(amounts, 2):
            if other and (abs(one) < abs(other) or not changed):
                yield 100 * one / other, f"{one:g} ÷ {other:g}"
            right_way = not clause.direction or (abs(one) < abs(other)) == (clause.direction < 0)
            if other and changed and right_way:
                yield 100 * (one - other) / other, f"({one:g} − {other:g}) ÷ {other:g}"
        for one, other in permutations(rates, 2):
            yield one - other, f"{one:g}% − {other:g}%"
        for rate in rates:
            yield 100 - rate, f"100% − {rate:g}%"
            if clause.says(YEARLY):
                yield rate * 12, f"{rate:g}% × 12"
        return
    if clause.next_word.startswith(("point", "percentage")):
        for one, other in combinations(rates, 2):
            yield abs(one - other), f"{max(one, other):g}% − {min(one, other):g}%"
    small = abs(quantity.value) < 100 and len(quantity.digits.replace(".", "").lstrip("0")) < 4
    # "$7.4M" may be some difference by chance.
    vague = len(quantity.digits.replace(".", "").lstrip("0")) < 3
    few = quantity.kind == "money" and len(amounts) <= _FEW and " so " in clause.words
    if clause.says(CLEAR_DIFFERENCE) or not (small or vague) or few or clause.says(COMPLEMENT):
        for one, other in combinations(amounts, 2):
            yield abs(one - other), f"{max(one, other):g} − {min(one, other):g}"
        if len(amounts) >= 3:
            whole, *rest = sorted(map(abs, amounts), reverse=True)
            for size in range(2, len(rest) + 1):
                for some in combinations(rest, size):
                    yield whole - sum(some), f"{whole:g} − " + " − ".join(f"{part:g}" for part in some)
    if clause.says(CLEAR_SUM) or (not small and clause.says(SUM)):
        for size in range(2, len(amounts) + 1):
            for some in combinations(amounts, size):
                yield sum(some), " + ".join(f"{value:g}" for value in some)
    measured = UNIT_NAMES.get(clause.next_word.lower()) in PHYSICAL
    measured = measured or (quantity.kind == "number" and clause.says(_IN_ALL))
    if clause.says(TIMES) and (quantity.kind == "money" or measured or not small):
        for one, other in combinations(amounts, 2):
            yield one * other, f"{one:g} × {other:g}"
    if clause.says(YEARLY):
        for amount in amounts:
            yield amount * 12, f"{amount:g} × 12"
            yield amount / 12, f"{amount:g} ÷ 12"
    if quantity.kind == "money" and clause.says(_AFTER):
        counts = [operand.value for operand in near if operand.kind == "number" and operand.unit == 1]
        sums = [operand.value for operand in near if operand.kind == "money"]
        for one, other in permutations(sums, 2):
            for count in counts:
                yield one - count * other, f"{one:g} − {count:g} × {other:g}"
    if clause.says(_MIDDLE):
        for one, other in combinations(amounts, 2):
            yield (one + other) / 2, f"({one:g} + {other:g}) ÷ 2"
    money = {operand.value for operand in near if operand.kind == "money"}
    dividing = clause.says(MEAN) or clause.says(_DIVIDED)
    for one, other in permutations(amounts, 2):
        # "40 mg, two tablets of 20 mg": only whole ratios of figures that the sentence itself states.
        whole = quantity.kind == "number" and one % other == 0 and one / other >= 2 if other else False
        if other and (
            dividing
            or (
                whole
                # "Five years" are not ten years by two people, but three months may be $204k at $68k.
                and ({one, other} <= money if UNIT_OF_TIMES.match(clause.next_word) else len(amounts) <= _FEW)
                and UNIT_NAMES.get(clause.next_word.lower()) not in PHYSICAL
            )
        ):
            yield one / other, f"{one:g} ÷ {other:g}"
    for rate in rates:
        for amount in amounts:
            yield amount * rate / 100, f"{rate:g}% of {amount:g}"
        for one, other in combinations(amounts, 2) if quantity.kind == "money" and clause.says(RATE) else ():
            yield (one + other) * rate / 100, f"{rate:g}% of ({one:g} + {other:g})"
