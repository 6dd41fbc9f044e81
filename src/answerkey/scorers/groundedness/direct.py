"""Whether a stated figure stands in the evidence itself, under the name and for the thing that the reply says."""

import re
from collections.abc import Sequence

import msgspec

from answerkey.scorers.groundedness.arithmetic.clause import Clause
from answerkey.scorers.groundedness.evidence import Evidence, NumberFact, measure_after
from answerkey.scorers.groundedness.figures import as_number
from answerkey.scorers.groundedness.flatten import Table, key_words
from answerkey.scorers.groundedness.precision import fits, fits_exactly
from answerkey.text.claims.claim import Claim
from answerkey.text.dates import find_dates
from answerkey.text.normalise import folded_text, stem

__all__ = ["Contradiction", "find_figures", "other_record", "other_value"]

_MONEY_KEYS_TEXT = (
    "amount price cost rent total balance fee income expense revenue salary payment deposit value usd"
)
_MONEY_KEYS = frozenset(_MONEY_KEYS_TEXT.split())
# Key word → (what its values are divided by, the units that the result may have).
_CONVERSIONS = {
    "cents": 100.0, "ms": 1000.0, "milliseconds": 1000.0, "seconds": 60.0, "secs": 60.0, "minutes": 60.0, "mins": 60.0,
    "grams": 1000.0, "meters": 1000.0, "metres": 1000.0, "kb": 1024.0, "mb": 1024.0,
}  # fmt: skip
# What may stand between a label and its value.
_LABEL = re.compile(
    r"([A-Za-z][A-Za-z ]{2,40}?)[*_]*\s*(?::|\bis\b|\bwas\b|\bare\b|\bof\b|=)[*_\s]*(?:currently|now|about|around)?\s*$"
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
            # 200 ml of cream are no 200 °C.
            continue
        if fact.names_something:
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
    return any(
        fits(quantity, fact.value / _CONVERSIONS[word])
        for word in key_words(fact.key)
        if word in _CONVERSIONS
    )


def other_value(
    claim: Claim, text: str, clause: Clause, found: Sequence[NumberFact], evidence: Evidence
) -> Contradiction | None:
    """A figure that stands in the evidence, but under another name than the reply gives it ("3 bedrooms" for 3 baths)."""
    names = _labels_of(claim, text, clause)
    if not names or claim.quantity is None:
        return None
    if any(not _names_of(fact.key).isdisjoint(names) for fact in found):
        return None
    labelled = [
        fact
        for fact in evidence.numbers
        if fact.key and not fact.names_something and _same_name(fact.key, names)
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


def _labels_of(claim: Claim, text: str, clause: Clause) -> list[str]:
    """The noun after a count, or the label before a value."""
    names = []
    if claim.kind == "number" and clause.next_word and len(clause.next_word) > 3:
        names.append(clause.next_word)
    before = _LABEL.search(text[max(0, claim.start - 60) : claim.start].split("\n")[-1])
    if before:
        names.append(before[1].split()[-1])
    return [stem(folded_text(name).strip()) for name in names if name.lower().rstrip("s") not in _SAYS_LITTLE]


def _names_of(key: str) -> set[str]:
    return {stem(word) for word in key_words(key)}


def _same_name(key: str, names: Sequence[str]) -> bool:
    words = key_words(key)
    return len(words) <= 2 and bool(words) and stem(words[-1]) in names


def other_record(
    part: str, clause: Clause, found: Sequence[NumberFact], evidence: Evidence, reply_words: str
) -> Contradiction | None:
    """A figure of one record that the reply states of another: the sentence names a record, and the figure is not its."""
    for table in evidence.tables:
        if len(table.rows) < 2 or not found:
            continue
        places = [_row_of(fact.where, table) for fact in found]
        if any(place is None for place in places):
            continue
        spoken = _named_rows(table, folded_text(part), part)
        if not spoken and _named_rows(table, clause.words, clause.text):
            continue
        if not spoken:
            asked = _named_rows(table, clause.question_words, clause.question_words)
            if len(asked) != 1 or len(_named_rows(table, reply_words, reply_words)) > 1:
                continue
            spoken = asked
        if len(spoken) == len(table.rows) or not spoken.isdisjoint(
            {place for place in places if place is not None}
        ):
            continue
        row = min(spoken)
        column = found[0].where.rpartition("].")[2]
        leaf = table.rows[row].get(column)
        if leaf is None or leaf.value is None:
            continue
        return Contradiction(leaf.where, f"{leaf.key}: {leaf.value}")
    return None


def _row_of(where: str, table: Table) -> int | None:
    at = re.match(re.escape(table.where) + r"\[(\d+)\]", where)
    return int(at[1]) if at else None


def _named_rows(table: Table, words: str, text: str) -> frozenset[int]:
    """Rows that a text speaks of: by a value that no other row has in that field, or by the month of their date."""
    rows: set[int] = set()
    months = {(date.year, date.month) for date in find_dates(_with_years(text)) if date.month is not None}
    for name in dict.fromkeys(name for row in table.rows for name in row):
        values: dict[str, list[int]] = {}
        for number, row in enumerate(table.rows):
            leaf = row.get(name)
            if leaf is None or not isinstance(leaf.value, str) or not 3 <= len(leaf.value) <= 80:
                continue
            dates = list(find_dates(leaf.value))
            if dates and dates[0].month is not None:
                key = next(
                    (f"{m}" for y, m in months if m == dates[0].month and y in (None, 2000, dates[0].year)),
                    "",
                )
                if key:
                    values.setdefault("month " + key, []).append(number)
                continue
            folded = folded_text(leaf.value).strip()
            if len(folded) >= 3 and f" {folded} " in words:
                values.setdefault(folded, []).append(number)
        for numbers in values.values():
            if len(numbers) == 1:
                rows.update(numbers)
    return frozenset(rows)


_MONTH = re.compile(
    r"\b(January|February|March|April|June|July|August|September|October|November|December)\b(?!\s*\d)",
    re.IGNORECASE,
)


def _with_years(text: str) -> str:
    """Months that stand alone get a year, which stands for any."""
    return _MONTH.sub(r"\1 2000", text)
