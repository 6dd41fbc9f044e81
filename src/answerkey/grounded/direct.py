"""Whether a stated figure stands in the evidence itself, under the name and for the thing that the reply says."""

import re
from collections.abc import Sequence

import msgspec

from answerkey.grounded.arithmetic.clause import Clause
from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.conversions import converts
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.figures import as_number
from answerkey.grounded.flatten import key_words
from answerkey.grounded.precision import fits, fits_exactly
from answerkey.grounded.reading import PHYSICAL, label_before, measure_after
from answerkey.text.normalise import folded_text, stem

__all__ = ["Contradiction", "find_figures", "other_label", "other_unit", "other_value"]

_MONEY_KEYS_TEXT = (
    "amount price cost rent total balance fee income expense revenue salary payment deposit value usd"
)
_MONEY_KEYS = frozenset(_MONEY_KEYS_TEXT.split())
# What may stand between a label and its value; in "4 nights: €596" the nights have their number already.
_LABEL = re.compile(
    r"(?<!\d )\b([A-Za-z]{3,})[*_]*\s*(?::|\bis\b|\bwas\b|\bare\b|\bof\b|=)[*_\s]*(?:currently|now|about|around)?\s*$"
)
_NAMED_BEFORE = re.compile(
    r"(?:#|\b(?:id|no\.?|number|code|unit|suite|apt\.?|room|account|zip|ending in|ends in|form|section|page|line|item|case|"
    r"order|lot|article|chapter|clause|policy|extension|ext\.?|(?-i:[A-Z]{2})))\s*[:#]?\s*$",
    re.IGNORECASE,
)


# Nouns that many values share.
_SAYS_LITTLE = frozenset(
    ["day", "hour", "minute", "month", "year", "week", "unit", "item", "amount", "total", "number", "value"]
)


# A figure with so many digits is hardly the same by chance.
_TELLING_DIGITS = 3


class Contradiction(msgspec.Struct, frozen=True):
    """What the evidence says instead."""

    where: str
    text: str


def find_figures(claim: Claim, text: str, evidence: Evidence) -> list[NumberFact]:
    """The facts that give a stated figure."""
    quantity = claim.quantity
    if quantity is None:
        return []
    naming = (
        quantity.ordinal
        or len(quantity.digits) >= 4
        or bool(_NAMED_BEFORE.search(text[max(0, claim.start - 16) : claim.start]))
    )
    followed = re.match(r"\s*[A-Z]", text[claim.end : claim.end + 3]) is not None
    measure = measure_after(text, claim.end)
    found = []
    for fact in evidence.numbers:
        if measure and fact.measure and measure != fact.measure:
            # 200 ml of cream are no 200 °C; but 754 seconds are 12.6 minutes.
            if converts(quantity, measure, fact):
                found.append(fact)
            continue
        if (
            claim.kind == "number" and measure and not measure.startswith("per ") and fact.kind == "money"
        ) or (claim.kind == "percentage" and fact.measure and not fact.measure.startswith("per ")):
            # "After 25 minutes" does not follow from $25, nor 10% from 10 kW.
            continue
        if measure in PHYSICAL and fact.noun and not fact.measure:
            # "A maximum of 2 g" does not follow from "two divided doses".
            continue
        if quantity.currency and fact.currency and quantity.currency != fact.currency:
            continue
        if fact.names_something:
            if fact.measure and fact.measure == measure and fits_exactly(quantity, fact.value):
                # "After six hours" from "from the sixth hour on".
                found.append(fact)
                continue
            # House numbers stand before a name ("900 S 9th St"); a count or an amount never comes from a code.
            if (
                claim.kind in ("number", "date")
                and (naming or followed)
                and fits_exactly(quantity, fact.value)
            ):
                found.append(fact)
        elif _compatible(claim, fact):
            found.append(fact)
    return found


def _compatible(claim: Claim, fact: NumberFact) -> bool:
    quantity = claim.quantity
    if quantity is None:
        return False
    if claim.kind == "percentage":
        if fact.kind == "percentage":
            return fits(quantity, fact.value)
        if fact.kind == "money":
            return False
        if abs(fact.value) <= 1.5 and fact.unit < 1 and fits(quantity, fact.value * 100):
            return True
        return fits(quantity, fact.value) and _MONEY_KEYS.isdisjoint(key_words(fact.key))
    if fact.kind == "percentage":
        return False
    if quantity.ordinal or (claim.kind == "number" and fact.kind == "money"):
        return fits_exactly(quantity, fact.value)
    if fits(quantity, fact.value):
        return True
    return "cents" in key_words(fact.key) and fits(quantity, fact.value / 100)


def other_unit(claim: Claim, text: str, evidence: Evidence) -> Contradiction | None:
    """A figure that the evidence has in another unit only: 1,450 square metres for 1,450 square feet, $129 for €129."""
    quantity = claim.quantity
    measure = measure_after(text, claim.end)
    if quantity is None or len(quantity.digits) < _TELLING_DIGITS:
        return None
    for fact in evidence.numbers:
        other = (measure and fact.measure and fact.measure != measure) or (
            quantity.currency and fact.currency and fact.currency != quantity.currency
        )
        if other and fits_exactly(quantity, fact.value):
            return Contradiction(fact.where, fact.text)
    return None


def other_value(
    claim: Claim, text: str, clause: Clause, found: Sequence[NumberFact], evidence: Evidence
) -> Contradiction | None:
    """A figure that stands in the evidence, but under another name than the reply gives it ("3 bedrooms" for 3 baths)."""
    names = _labels_of(claim, text, clause)
    if not names or claim.quantity is None or _YEAR.fullmatch(claim.text):
        # "The 2023 Form 1065": the noun after a year is not what it is a number of.
        return None
    if any(not _names_of(fact.key).isdisjoint(names) for fact in found):
        return None
    labelled = [
        fact
        for fact in evidence.numbers
        if fact.key and not fact.names_something and _same_name(fact.key, names, clause.words)
    ]
    if not labelled or any(fact in labelled for fact in found):
        return None
    numeric = {leaf.where for leaf in evidence.leaves if as_number(leaf) is not None}
    # A text may say the figure in words of its own; only the value of another field is a mix-up.
    if (
        not found
        or any(fact.where not in numeric for fact in found)
        or any(fact.where not in numeric for fact in labelled)
    ):
        return None
    return Contradiction(labelled[0].where, f"{labelled[0].key}: {labelled[0].value:g}")


def other_label(
    claim: Claim, text: str, clause: Clause, found: Sequence[NumberFact], evidence: Evidence
) -> Contradiction | None:
    """An amount that a text gives for something else: "the deposit is $1,875" where that is the rent."""
    if claim.kind not in ("money", "percentage") or claim.quantity is None:
        return None
    label = label_before(text, claim.start)
    if len(label) < _SHORTEST_LABEL or label.rstrip("s") in _SAYS_LITTLE or _names_nothing(label):
        return None
    root = stem(label)
    spoken = set(clause.words.split())
    places = {fact.where for fact in found}
    if any(root in map(stem, folded_text(f"{fact.text} {fact.key}").split()) for fact in found):
        return None
    if any(len(fact.label) >= _SHORTEST_LABEL and fact.label in spoken for fact in found):
        # "For water damage the deductible is $1,000" from "Deductible: $500, except water damage: $1,000".
        return None
    if any(fact.label in _JOINED for fact in found):
        # "The allowance is 28 EUR for a day and 14 EUR for half of one": the label is that of the first.
        return None
    for fact in evidence.numbers:
        if (
            fact.where in places
            and fact.label
            and fact.kind == claim.kind
            and stem(fact.label) == root
            and not fits(claim.quantity, fact.value)
        ):
            return Contradiction(fact.where, fact.text)
    return None


_SHORTEST_LABEL = 4
_WITH_FIGURE = re.compile(r"\s+\w+\s+[$€£]?\d")
_PER = re.compile(r"[\s-]+\w+ (?:per|an|a) \w", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_JOINED = frozenset(["and", "or", "then"])
_VERBS_TEXT = """
with from than that over about around paid pays cost costs costing spent spend earn earned receive received collect collected
total totals totaling plus minus only just another additional remaining approximately roughly under above below
until into onto also including includes nearly almost exactly each least most comes come came added saves save saved
"""
_VERBS = frozenset(_VERBS_TEXT.split())


def _names_nothing(word: str) -> bool:
    """Whether a word before an amount names nothing that the amount could be the value of."""
    return word in _VERBS


def _labels_of(claim: Claim, text: str, clause: Clause) -> list[str]:
    """The noun after a count, or the label before a value."""
    names = []
    if (
        claim.kind == "number"
        and clause.next_word
        and len(clause.next_word) > 3
        # "Zone 4 costs $14.20": a verb that has its own figure.
        and _WITH_FIGURE.match(text, claim.end) is None
        # "8 miles per gallon" are not the miles of the trip.
        and _PER.match(text, claim.end) is None
    ):
        names.append(clause.next_word)
    before = _LABEL.search(text[max(0, claim.start - 60) : claim.start].split("\n")[-1])
    if before:
        names.append(before[1])
    return [stem(folded_text(name).strip()) for name in names if name.lower().rstrip("s") not in _SAYS_LITTLE]


def _names_of(key: str) -> set[str]:
    return {stem(word) for word in key_words(key)}


def _same_name(key: str, names: Sequence[str], spoken: str) -> bool:
    """Whether a name of values is what a figure is said to be of; "20 customers" need not be the `start_customers`."""
    words = key_words(key)
    if len(words) > 2 or not words or stem(words[-1]) not in names:
        return False
    return len(words) == 1 or words[0] in _COUNTING or f" {words[0][:5]}" in spoken


_COUNTING = frozenset(["num", "number", "no", "n", "count", "total", "qty", "monthly", "annual", "current"])
