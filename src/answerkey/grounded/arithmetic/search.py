"""Looks for a figure among combinations of those that the reply and the evidence give, as long as chance has no room.

A figure with five telling digits is hardly ever some combination by chance, one with a single digit almost always. So each
figure has room for so many tries as its digits allow, and more of those that the sentence speaks of; the likeliest come first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice
from math import fsum

from answerkey.grounded.arithmetic.clause import (
    CHANGE,
    CLEAR_DIFFERENCE,
    CLEAR_SUM,
    MEAN,
    RATE,
    SUPERLATIVE,
    TOGETHER,
    YEAR,
    Clause,
)
from answerkey.grounded.arithmetic.periods import EVERY, PERIODS, by_period, per_year
from answerkey.grounded.arithmetic.prices import price_columns
from answerkey.grounded.arithmetic.subsets import mentioned_rows
from answerkey.grounded.arithmetic.tries import (
    Try,
    changes_between,
    differences,
    multiples,
    parts,
    product_and_more,
    products,
    quotients,
    shares,
    shares_together,
    sums,
)
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.figures import Figures
from answerkey.grounded.flatten import key_words
from answerkey.grounded.precision import fits
from answerkey.text.normalise import stem

__all__ = ["Search"]

# How many tries a figure has by the number of its telling digits; with a word for the operation, four times as many.
_ROOM = (0, 1, 4, 25, 200, 1000)
_CUED = 4
_MOST_NEAR = 8
_MOST_BASES = 24
_MOST_RATES = 3
_MOST_ROWS = 40
_FEW_ROWS = 4
# Shipping, tax and fees that are added to what the items cost.
_MOST_EXTRAS = 4
_LARGE = 50

_BY = re.compile(
    r"\bby\s+(?:about |around |roughly |only |just |nearly |almost |over |some )?$", re.IGNORECASE
)
_TIMES = re.compile(
    r"\b(?:each|per|at|times|for|every|makes?|comes? to|came to|amount(?:s|ed)? to|works? out|worth"
    r"|costs?|takings|revenue|bring\w*|earn\w*|pays?|value|i\.e|that(?:['’]s| is)"
    r"|also|d\.h|das sind|macht|cela fait|soit|ça fait|son|es decir|à|zu je)\b|[×@]",
    re.IGNORECASE,
)
_PER = re.compile(
    r"\b(?:an?|every) (?:month|week|day|night|year|person|head|hour)\b"
    r"|\b(?:monthly|weekly|daily|nightly|yearly|annually|split|divided|spread)\b"
    r"|\b(?:pro|durchschnittlich|im schnitt|en moyenne|par|en promedio|cada)\b",
    re.IGNORECASE,
)
_NET_SCORE = re.compile(r"\b(?:NPS|net promoter|spread|lead|gap)\b", re.IGNORECASE)
_SPEED = re.compile(r"\s?(?:km/h|kmh|kph|mph|(?:km|kilomet\w+|miles) per hour)\b", re.IGNORECASE)
_OF_WHOLE = re.compile(r"\s+of\b")
_PER_THING = re.compile(r"\s?(?:per|each|a|pro|par|por) ([^\W\d_]{3,})", re.IGNORECASE)
_PER_HUNDRED = re.compile(r"\b(?:per|(?:of|in) every|of each) [$€£]?(100|1,?000|10,?000|100,?000)\b")
_FACTOR_WORDS = """
zwei deux dos due dois twee|drei trois tres tre três drie|vier quatre cuatro quattro quatro|fünf cinq cinco cinque vijf
|sechs seis sei zes
|sieben sept siete sette sete zeven|acht huit ocho otto oito|neun neuf nueve nove negen
|zehn dix diez dieci dez tien|elf onze once undici
|zwölf douze doce dodici twaalf
"""
# Number words of other languages, from two on; in English they are claims themselves.
_FACTORS = {
    word: float(number) for number, words in enumerate(_FACTOR_WORDS.split("|"), 2) for word in words.split()
}
del _FACTORS["once"]


class Search:
    """The combinations that a figure may be one of."""

    def __init__(self, figures: Figures, evidence: Evidence) -> None:
        self._figures = figures
        self._evidence = evidence

    def find(
        self,
        quantity: Quantity,
        clause: Clause,
        near: Sequence[Quantity],
        says: "Callable[[re.Pattern[str]], bool]",
    ) -> str | None:
        """The formula that gives a figure; `near` are the supported figures of the reply, the nearest first."""
        if quantity.ordinal or YEAR.fullmatch(clause.written):
            return None
        by = _BY.search(clause.before) is not None
        if SUPERLATIVE.search(clause.before) and not by:
            return None
        room = _room(quantity)
        if room <= _ROOM[1]:
            # A single digit: what the sentence before it speaks of is too far off.
            says = clause.says
        kinds = self._percentages if quantity.kind == "percentage" else self._amounts
        for cued, tries in kinds(quantity, clause, near[:_MOST_NEAR], says):
            for value, formula in islice(tries, room * (_CUED if cued else 1)):
                if fits(quantity, value):
                    return formula
        return None

    def _percentages(
        self,
        quantity: Quantity,
        clause: Clause,
        near: Sequence[Quantity],
        says: "Callable[[re.Pattern[str]], bool]",
    ) -> Iterator[tuple[bool, Iterator[Try]]]:
        amounts = _amounts(near)
        changed = says(CHANGE)
        if changed:
            yield True, changes_between(amounts, clause.direction)
            # "From 4.4% to 6.0%, a lift of 36%".
            rates = [one.value for one in near if one.kind == "percentage" and one.digits and one.value]
            yield True, changes_between(rates[:3], clause.direction)
        after = clause.text[len(clause.before) + len(clause.written) :]
        if not clause.says(CHANGE) or _OF_WHOLE.match(after):
            if says(TOGETHER):
                yield True, shares_together(amounts, self._totals)
            yield True, shares(amounts, self._totals)

    def _amounts(
        self,
        quantity: Quantity,
        clause: Clause,
        near: Sequence[Quantity],
        says: "Callable[[re.Pattern[str]], bool]",
    ) -> Iterator[tuple[bool, Iterator[Try]]]:
        amounts = _amounts(near)
        money = [one.value for one in near if one.kind == "money"] or amounts
        rates = [one.value for one in near if one.kind == "percentage"]
        if quantity.kind == "money" or quantity.value >= 100:
            given = [value for value in self._rates if value not in rates]
            if rates and says(RATE):
                yield True, parts(rates[:_MOST_RATES], [*money, *self._bases])
                together = [one + other for one, other in combinations(money[:4], 2)]
                yield True, parts(rates[:1], together)
            elif says(RATE):
                yield True, parts(given[:_MOST_RATES], [*money, *self._bases])
            yield self._prices_spoken(clause), self._row_products(clause)
            if clause.says(_TIMES):
                yield True, products(amounts, self._bases)
            if says(_TIMES):
                yield True, product_and_more(amounts[:4])
            for factor, formula in per_year(clause.text):
                yield True, ((one * factor, f"{one:g} × {formula}") for one in money[:3])
            if factors := [_FACTORS[word] for word in clause.words.split() if word in _FACTORS]:
                yield True, multiples(factors[:3], [*amounts[:4], *self._bases[:6]])
        if periods := [
            factors for words, factors in PERIODS if words.search(clause.text, len(clause.before))
        ]:
            yield True, by_period(periods[0], [*amounts[:3], *self._bases[:6]])
        rows = mentioned_rows_by_column(self._figures, clause)
        if says(CLEAR_DIFFERENCE) or _BY.search(clause.before):
            yield True, differences([values for values in rows if len(values) == 2])
            yield True, differences([amounts[:4]])
            yield True, differences([values for values in rows if 2 < len(values) <= 4])
        if clause.says(CLEAR_DIFFERENCE) and quantity.kind == "money":
            yield True, self._difference_for_all(near)
        if says(CLEAR_SUM):
            yield True, sums(amounts)
        if says(EVERY):
            yield True, iter(per_year(f"{clause.text} {clause.question_words}"))
        if _NET_SCORE.search(clause.text):
            yield True, differences([rates[:4] or given_rates(self._rates)])
        if clause.next_word == "times":
            yield True, self._ratios()
            yield (
                True,
                ((one / other, f"{one:g} ÷ {other:g}") for other in self._bases[:4] for one in (12, 52, 365)),
            )
        if _SPEED.match(clause.text, len(clause.before) + len(clause.written)):
            yield True, quotients(amounts, 60.0)
            yield True, quotients(amounts, 1.0)
        if (found := _PER_HUNDRED.search(clause.text)) is not None:
            yield True, quotients(amounts, float(found[1].replace(",", "")))
            scale = float(found[1].replace(",", ""))
            yield (
                True,
                (
                    (one * other / scale, f"{one:g} × {other:g} ÷ {scale:g}")
                    for one, other in combinations(amounts[:5], 2)
                ),
            )
        if (thing := _PER_THING.match(clause.text, len(clause.before) + len(clause.written))) is not None:
            things = self._number_of(thing[1])
            yield (
                True,
                (
                    (one / count, f"{one:g} ÷ {count:g}")
                    for count in things
                    for one in [*amounts[:3], *self._bases[:6]]
                ),
            )
        if clause.says(MEAN) or clause.says(_PER):
            yield True, quotients(amounts, 1.0)
            yield True, quotients([*amounts[:2], *self._totals[:2]], 1.0)

    @cached_property
    def _totals(self) -> list[float]:
        asked = [
            fact.value
            for fact in self._evidence.numbers
            if fact.where == "question" and fact.kind != "percentage" and fact.value >= _LARGE
        ]
        return asked[:2] + [
            total
            for column in self._figures.columns
            if len(column.cells) > 1 and (total := fsum(column.values))
        ]

    def _number_of(self, thing: str) -> list[float]:
        """How many of a thing there are, by the word after a figure or its name."""
        root = stem(thing.lower())
        return [
            fact.value
            for fact in self._evidence.numbers
            if fact.value > 1 and (stem(fact.noun) == root or root in map(stem, key_words(fact.key)))
        ][:_MOST_RATES]

    @cached_property
    def _bases(self) -> list[float]:
        found = [
            fact.value
            for fact in self._evidence.numbers
            if not fact.names_something and fact.kind != "percentage" and fact.value not in (0, 1)
        ]
        return list(dict.fromkeys([*self._totals[:4], *found]))[:_MOST_BASES]

    @cached_property
    def _rates(self) -> list[float]:
        found = [fact.value for fact in self._evidence.numbers if fact.kind == "percentage"]
        found += [
            fact.value * 100 if abs(fact.value) < 1 else fact.value
            for fact in self._evidence.numbers
            if fact.kind == "number" and not _RATE_KEYS.isdisjoint(key_words(fact.key))
        ]
        return list(dict.fromkeys(found))

    def _difference_for_all(self, near: Sequence[Quantity]) -> Iterator[Try]:
        """ "On 20 bags you'd save $31": what one price is above the other, so many times as are stated or asked for."""
        counts = [one.value for one in near if one.kind == "number" and one.unit == 1]
        counts += [
            fact.value
            for fact in self._evidence.numbers
            if fact.where == "question" and fact.kind == "number" and fact.unit == 1
        ]
        prices = [one.value for one in near if one.kind == "money"][:3]
        for one, other in combinations(prices, 2):
            for count in list(dict.fromkeys(counts))[:2]:
                if one != other and count > 1:
                    yield (one - other) * count, f"({max(one, other):g} − {min(one, other):g}) × {count:g}"

    def _ratios(self) -> Iterator[Try]:
        """ "1.5 times as many": one row's figure over another's, where there are few rows."""
        for column in self._figures.columns:
            for one, other in combinations(column.values if len(column.cells) <= _FEW_ROWS else (), 2):
                large, small = sorted((one, other), key=abs, reverse=True)
                if small:
                    yield large / small, f"{large:g} ÷ {small:g}"

    def _prices_spoken(self, clause: Clause) -> bool:
        return any(
            mentioned_rows(self._figures, price.table, clause)
            for price, _ in islice(price_columns(self._figures), 4)
        )

    def _row_products(self, clause: Clause) -> Iterator[Try]:
        """What each named row comes to, price times number, then what all come to."""
        for price, count in price_columns(self._figures):
            by = dict(count.cells)
            products = {row: value * by[row] for row, value in price.cells if row in by}
            formula = f"{price.name} × {count.name}"
            spoken = mentioned_rows(self._figures, price.table, clause)
            for row, value in islice(products.items(), _MOST_ROWS):
                if row in spoken:
                    yield value, formula
            if 1 < len(spoken) < len(products):
                yield fsum(value for row, value in products.items() if row in spoken), f"sum of {formula}"
            if len(products) > 1:
                total = fsum(products.values())
                yield total, f"sum of {formula}"
                extras = [value for value in self._figures.scalars.values() if 0 < value < total][
                    :_MOST_EXTRAS
                ]
                for extra in extras:
                    yield total + extra, f"sum of {formula} + {extra:g}"
                if len(extras) > 1:
                    yield total + fsum(extras), f"sum of {formula} and what comes on top"


_RATE_KEYS = frozenset(["rate", "percent", "pct", "percentage", "vat", "tax"])


def mentioned_rows_by_column(figures: Figures, clause: Clause) -> list[list[float]]:
    """For each column the values of the rows that a clause names."""
    found = []
    for column in figures.columns:
        rows = mentioned_rows(figures, column.table, clause)
        values = [value for row, value in column.cells if row in rows]
        if len(values) > 1:
            found.append(values)
    return found


def _room(quantity: Quantity) -> int:
    telling = len(quantity.digits.replace(".", "").strip("0"))
    if "." in quantity.digits or quantity.kind == "money":
        # "$300" and "4.0" are stated to the last digit, noughts included.
        telling = max(telling, min(len(quantity.digits.replace(".", "").lstrip("0")), 2))
    if quantity.kind == "percentage":
        telling = max(telling, 2 if quantity.value >= 10 else 1)
    return _ROOM[min(telling, len(_ROOM) - 1)]


def _amounts(near: Sequence[Quantity]) -> list[float]:
    return list(
        dict.fromkeys(one.value for one in near if one.kind != "percentage" and not one.ordinal and one.value)
    )


def given_rates(rates: Sequence[float]) -> Sequence[float]:
    """The rates of the evidence, where there are a few."""
    return rates if len(rates) <= _MOST_RATES else ()
