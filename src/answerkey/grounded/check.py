"""Checks every claim of a reply against the evidence, and says where each is supported or why it is not."""

import re
from itertools import combinations

from answerkey.grounded.arithmetic.clause import CLEAR_SUM, DIFFERENCE, YEAR, Clause
from answerkey.grounded.arithmetic.derive import Arithmetic
from answerkey.grounded.calendar import find_date, find_time, find_year
from answerkey.grounded.checked import CheckedClaim, contradicted, derived, unsupported
from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.claims.extract import find_claims
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.conversions import (
    converts,
    in_other_units,
    in_unit,
    is_larger_part,
    whole_of_parts,
)
from answerkey.grounded.direct import (
    Contradiction,
    find_figures,
    other_label,
    other_unit,
    other_value,
)
from answerkey.grounded.equations import CALENDAR, Equations
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.flatten import key_words
from answerkey.grounded.following import follow
from answerkey.grounded.hours import find_hour
from answerkey.grounded.listed import counts_items_below, counts_other_items
from answerkey.grounded.pairing import of_another_sentence
from answerkey.grounded.precision import fits
from answerkey.grounded.reading import measure_after
from answerkey.grounded.records import (
    MixUp,
    Records,
    find_mix_up,
    find_records,
    not_the_whole,
    row_of,
)
from answerkey.grounded.sentences import Sentences
from answerkey.grounded.spans import find_span_of_time
from answerkey.grounded.wording import (
    Found,
    find_identifier,
    find_in_arguments,
    find_name,
    find_quote,
    support_places,
)
from answerkey.text.normalise import folded_text

__all__ = ["check_claims"]

_AGE = re.compile(r"\b(?:born|aged?|years? old|turn(?:s|ed|ing)?|birthday)\b", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:end|beginning|start|middle) of\s+$", re.IGNORECASE)
# A round figure that an example begins with: "For example, a $1,000 balance costs $15 a month".
_EXAMPLE = re.compile(
    r"\b(?:for example|for instance|e\.g\.|say,|suppose|imagine|zum beispiel|z\.\s?b\.|par exemple|por ejemplo)",
    re.IGNORECASE,
)
# "On a salary of $60,000", "on a $400 tablet".
_SUPPOSED = re.compile(r"\b(?:on|assuming) an? (?:[a-z]+ ){0,2}(?:of )?$", re.IGNORECASE)
# "Split three ways".
_SPLIT = re.compile(r"\b(?:split|divided|shared) (?:\w+ )?$", re.IGNORECASE)
_MOST_CLAIMS = 400
_MOST_ACROSS = 6


def check_claims(text: str, evidence: Evidence) -> list[CheckedClaim]:
    """Every claim of a text, checked."""
    claims = find_claims(text)[:_MOST_CLAIMS]
    return _Checker(text, claims, evidence).check() if claims else []


class _Checker:
    def __init__(self, text: str, claims: list[Claim], evidence: Evidence) -> None:
        self._text = text
        self._claims = claims
        self._evidence = evidence
        self._arithmetic = Arithmetic(evidence)
        self._sentences = Sentences(text, claims, evidence)
        self._equations = Equations(text, claims)
        self._records = find_records(evidence)
        # Names and dates, by their place, that stand beside a figure of another record.
        self._wrong_things: dict[int, Contradiction] = {}

    def check(self) -> list[CheckedClaim]:
        checked = [self._check(claim) for claim in self._claims]
        checked = [
            contradicted(one.claim, self._wrong_things[one.claim.start])
            if one.supported and one.claim.start in self._wrong_things
            else one
            for one in checked
        ]
        return follow(checked, self._sentences, self._evidence, self._arithmetic, self._equations)

    def _check(self, claim: Claim) -> CheckedClaim:
        match claim.kind:
            case "name":
                return self._told(claim, find_name(claim, self._evidence), "has this name")
            case "quote":
                return self._told(claim, find_quote(claim, self._evidence), "has these words")
            case "identifier":
                return self._told(claim, find_identifier(claim, self._evidence), "has this identifier")
            case "time":
                return self._told(claim, find_time(claim, self._evidence), "has this time")
            case "date":
                found = find_date(
                    claim, self._evidence, self._sentences.around(claim), self._sentences.dates_beside(claim)
                )
                if found is None and claim.quantity is not None:
                    return self._figure(claim, claim.quantity)
                return self._told(claim, found, "has this date")
            case _ if claim.quantity is not None:
                return self._figure(claim, claim.quantity)
            case _:
                return unsupported(claim, "not a figure")

    def _told(self, claim: Claim, found: Found | None, what: str) -> CheckedClaim:
        if found is None:
            return unsupported(claim, f"no source or tool result {what}")
        instead = self._of_another_record(claim) or (
            self._of_another_field(claim, found.where) if claim.kind == "name" else None
        )
        if instead is not None:
            return contradicted(claim, instead)
        return CheckedClaim(claim=claim, supported=True, where=found.where, text=found.text)

    def _of_another_field(self, claim: Claim, where: str) -> Contradiction | None:
        """What the field has that the words before a name speak of: "approved by" the one who requested it."""
        record, _, field = where.rpartition(".")
        if not record or not field:
            return None
        before = folded_text(self._text[max(0, claim.start - 40) : claim.start])
        spoken = {
            key
            for key in self._evidence.names_of_values
            if len(words := key_words(key)) > 1 and before.endswith(f" {' '.join(words)} ")
        }
        named = folded_text(claim.text).strip()
        other = None
        for leaf in self._evidence.leaves if spoken and field not in spoken else ():
            if leaf.key not in spoken or not isinstance(leaf.value, str):
                continue
            if named in folded_text(leaf.value):
                return None
            if leaf.where.rpartition(".")[0] == record:
                other = Contradiction(leaf.where, f"{leaf.key}: {leaf.value}")
        return other

    def _of_another_record(self, claim: Claim) -> Contradiction | None:
        """What the record that the sentence speaks of has, if a date or name in it is only another record's."""
        if not self._records or not (places := support_places(claim, self._evidence)):
            return None
        if claim.date is not None and _LIMIT.search(self._text[max(0, claim.start - 20) : claim.start]):
            # "By the end of 2026": a limit is not the time of one record.
            return None
        sentence = self._sentences.without(claim)
        start, _ = self._sentences.span(claim)
        first, last = self._sentences.part_span(claim, with_brackets=True)
        # A part that names something itself is not about what the sentence names elsewhere.
        own = any(
            other is not claim
            and other.kind == "name"
            and first <= other.start < last
            and find_name(other, self._evidence) is None
            for other in self._claims
        )
        for records in self._records:
            texts = [(sentence[first - start : last - start], True), (sentence, False)]
            for text, close in texts[: 1 if own else 2]:
                about, field = records.subject(self._sentences.folded(text), text)
                if len(about) == 1 and (instead := _instead(places, records, min(about), field, close)):
                    return instead
        return None

    def _figure(self, claim: Claim, quantity: Quantity) -> CheckedClaim:
        clause = self._sentences.clause(claim)
        found = find_figures(claim, self._text, self._evidence)
        if found and not any(fact.where in ("question", "context") for fact in found):
            contradiction = self._contradiction(claim, clause, found)
            if contradiction is not None:
                formula = self._arithmetic.derive(quantity, clause, strict=True)
                return derived(claim, formula.formula) if formula else contradicted(claim, contradiction)
        if found:
            return CheckedClaim(claim=claim, supported=True, where=found[0].where, text=found[0].text)
        if YEAR.fullmatch(claim.text) and (year := find_year(int(claim.text), self._evidence)) is not None:
            return CheckedClaim(claim=claim, supported=True, where=year.where, text=year.text)
        if (hour := find_hour(self._text, claim, self._evidence)) is not None:
            return CheckedClaim(claim=claim, supported=True, where=hour.where, text=hour.text)
        whole = whole_of_parts(self._text, claim, quantity)
        if whole is not None and (fact := self._converted(*whole)) is not None:
            return CheckedClaim(claim=claim, supported=True, where=fact.where, text=fact.text)
        if (other := other_unit(claim, self._text, self._evidence)) is not None:
            return contradicted(claim, other)
        if quantity.ordinal and clause.next_word.lower() == "percentile":
            key = f"p{quantity.value:g}"
            if key in self._evidence.vocabulary:
                return CheckedClaim(claim=claim, supported=True, where="names of values", text=key)
        asked_for = find_in_arguments(self._text, claim, self._evidence) if claim.kind == "number" else None
        if asked_for is not None:
            return CheckedClaim(claim=claim, supported=True, where=asked_for.where, text=asked_for.text)
        formula_text = self._formula(claim, quantity, clause)
        if formula_text is not None:
            return derived(claim, formula_text)
        if _SPLIT.search(clause.before) and clause.next_word.lower() == "ways":
            return derived(claim, "a premise of the example")
        telling = len(quantity.digits.strip("0."))
        if (telling <= 1 and clause.says(_EXAMPLE)) or (telling <= 2 and _SUPPOSED.search(clause.before)):
            return derived(claim, "a premise of the example")
        what = {"money": "amount", "percentage": "percentage"}.get(claim.kind, "number")
        return unsupported(claim, f"no source or tool result has this {what}, and it follows from none")

    def _converted(self, quantity: Quantity, measure: str) -> NumberFact | None:
        """The fact that gives a figure in this or another unit."""
        return next(
            (
                fact
                for fact in self._evidence.numbers
                if fact.measure
                and (
                    fits(quantity, fact.value)
                    if fact.measure == measure
                    else converts(quantity, measure, fact)
                )
            ),
            None,
        )

    def _contradiction(self, claim: Claim, clause: Clause, found: list[NumberFact]) -> Contradiction | None:
        """What the evidence has instead, if it has a figure for something else only."""
        sentences = self._sentences
        mixed = find_mix_up(
            sentences.part(claim), clause, found, self._records, sentences.words, sentences.question
        )
        if mixed is None:
            return (
                other_value(claim, self._text, clause, found, self._evidence)
                or other_label(claim, self._text, clause, found, self._evidence)
                or not_the_whole(clause, found, self._records, sentences.question)
                or self._of_another_sentence(claim, clause, found)
            )
        return None if mixed.thing_is_wrong and self._blame_thing(claim, mixed) else mixed.instead

    def _of_another_sentence(
        self, claim: Claim, clause: Clause, found: list[NumberFact]
    ) -> Contradiction | None:
        sentence = self._sentences.index(claim)
        things = [
            other
            for other in self._claims
            if other.kind in ("name", "identifier") and self._sentences.index(other) == sentence
        ]
        if len(things) != 1:
            return None
        words = f"{clause.words} {clause.question_words}"
        return of_another_sentence(claim, things[0], found, words, self._evidence)

    def _blame_thing(self, figure: Claim, mixed: MixUp) -> bool:
        """Note the name or date beside a figure that belongs to another record; False if none stands there."""
        sentence = self._sentences.index(figure)
        for claim in self._claims:
            if claim.kind not in ("date", "name") or self._sentences.index(claim) != sentence:
                continue
            words = folded_text(claim.text)
            rows = mixed.records.named(words, claim.text) or mixed.records.subjects(words, claim.text)
            if rows and rows <= mixed.named_rows:
                leaf = next(iter(mixed.records.table.rows[min(mixed.figure_rows)].values()))
                self._wrong_things[claim.start] = Contradiction(leaf.where, f"{figure.text}: {leaf.value}")
                return True
        return False

    def _formula(self, claim: Claim, quantity: Quantity, clause: Clause) -> str | None:
        """How a figure follows from the evidence."""
        if (
            not quantity.value
            and quantity.kind != "number"
            and len(set(clause.numbers)) < len(clause.numbers)
        ):
            return "the difference of equal figures"
        unit = (
            "age" if clause.says(_AGE) and clause.next_word != "days" else (clause.next_word or clause.header)
        )
        time = find_span_of_time(
            *(whole_of_parts(self._text, claim, quantity) or (quantity, unit)), self._evidence
        )
        if time is not None:
            return time.text
        found = self._arithmetic.derive(quantity, clause)
        if found is not None and not counts_other_items(self._text, claim, found.formula):
            return f"{found.formula} ({found.where})"
        whole, measure = whole_of_parts(self._text, claim, quantity) or (
            quantity,
            measure_after(self._text, claim.end),
        )
        for other in in_other_units(whole, measure, self._evidence.measures) if measure else ():
            if (found := self._arithmetic.derive(other, clause)) is not None:
                return f"{found.formula} ({found.where}), in {measure}s"
        if whole is not quantity and is_larger_part(self._text, claim, self._evidence.numbers):
            return "the larger part of a figure in another unit"
        if measure and (joined := self._across_units(whole, measure, clause)):
            return joined
        if whole is not quantity and (found := self._arithmetic.derive(whole, clause)) is not None:
            return f"{found.formula} ({found.where})"
        if quantity.value in CALENDAR and self._equations.is_factor(claim):
            return "the calendar"
        return "count of the items listed" if counts_items_below(self._text, claim) else None

    def _across_units(self, quantity: Quantity, measure: str, clause: Clause) -> str | None:
        """What is left of two hours after 108 minutes, and what such figures add up to."""
        values = in_unit((fact for fact in self._evidence.numbers if not fact.names_something), measure)
        if not 2 <= len(values) <= _MOST_ACROSS or len(self._evidence.measures) < 2:
            return None
        for one, other in combinations(values, 2):
            if clause.says(DIFFERENCE) and fits(quantity, one - other):
                return f"{max(one, other):g} − {min(one, other):g} {measure}s"
            if clause.says(CLEAR_SUM) and fits(quantity, one + other):
                return f"{one:g} + {other:g} {measure}s"
        return None


def _instead(
    places: list[str], records: Records, about: int, told_by: str, close: bool
) -> Contradiction | None:
    """What one row has in the field in which all that supports a claim stands in other rows."""
    rows = {row_of(where, records.table) for where in places}
    fields = {where.rpartition("].")[2] for where in places}
    if None in rows or about in rows or len(fields) != 1:
        return None
    field = fields.pop()
    # What tells rows apart is what a sentence speaks of; further off, a comparison may name another row by it.
    if field == told_by or records.is_key(field) or (not close and records.tells_apart(field)):
        return None
    leaf = records.table.rows[about].get(field)
    if leaf is None or leaf.value is None:
        return None
    return Contradiction(leaf.where, f"{leaf.key}: {leaf.value}")
