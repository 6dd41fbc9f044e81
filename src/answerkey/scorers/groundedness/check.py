"""Checks every claim of a reply against the evidence, and says where each is supported or why it is not."""

import re
from typing import Any

import msgspec

from answerkey.scorers.groundedness.arithmetic.clause import Clause
from answerkey.scorers.groundedness.arithmetic.derive import Arithmetic
from answerkey.scorers.groundedness.arithmetic.stated import derive_from_stated, derive_with_evidence
from answerkey.scorers.groundedness.calendar import find_date, find_span_of_time, find_time
from answerkey.scorers.groundedness.direct import Contradiction, find_figures, other_unit, other_value
from answerkey.scorers.groundedness.equations import CALENDAR, Equations
from answerkey.scorers.groundedness.evidence import Evidence
from answerkey.scorers.groundedness.listed import (
    counts_items_below,
    counts_items_beside,
    counts_other_items,
    total_of_items,
)
from answerkey.scorers.groundedness.precision import fits
from answerkey.scorers.groundedness.records import MixUp, find_mix_up, rows_named
from answerkey.scorers.groundedness.wording import Found, find_identifier, find_name, find_quote
from answerkey.text.claims.claim import Claim
from answerkey.text.claims.extract import find_claims
from answerkey.text.normalise import folded_text

__all__ = ["CheckedClaim", "check_claims"]

# Where a sentence or a line of a list ends.
_BREAK = re.compile(
    r"(?<=[.!?])(?<!\bNo\.)(?<!\bSt\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bvs\.)(?<!\bpp\.)(?<!\bp\.)(?<!\bSec\.)(?<!\bapprox\.)(?<!\bInc\.)"
    r"\s+(?=[A-Z0-9$€£\"“*(\[])|\n+|;\s"
)
# Where one part of a sentence ends and speaks of something else from there on.
_PART = re.compile(r",(?!\d)|[()]|\b(?:and|but|while|whereas|or|plus|versus|vs|than|compared)\b|[–—]")
_OF = re.compile(r"\s+(?:out )?of\s+(?:the |our |your |its )?", re.IGNORECASE)
_MOST_CLAIMS = 400
_LONGEST_SENTENCE = 1_000


class CheckedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and what became of it."""

    claim: Claim
    supported: bool
    # Where the support stands ("tool_calls[0].result.rows[2].amount", "sources[1]", "question", "arithmetic").
    where: str = ""
    # The text or formula that supports it, or what the evidence says instead.
    text: str = ""
    # Why it is not supported.
    why: str = ""
    # The evidence has this very figure for something else.
    contradicted: bool = False

    def document(self) -> dict[str, Any]:
        """As it stands in a result's findings."""
        shown: dict[str, Any] = {
            "text": self.claim.text,
            "start": self.claim.start,
            "end": self.claim.end,
            "type": self.claim.kind,
            "supported": self.supported,
        }
        if self.supported:
            shown["evidence"] = {
                "where": self.where,
                ("formula" if self.where == "arithmetic" else "text"): self.text,
            }
        else:
            shown["why"] = self.why
            if self.where:
                shown["evidence"] = {"where": self.where, "text": self.text}
        return shown


def check_claims(text: str, evidence: Evidence) -> list[CheckedClaim]:
    """Every claim of a text, checked."""
    claims = find_claims(text)[:_MOST_CLAIMS]
    return _Checker(text, claims, evidence).check()


class _Checker:
    def __init__(self, text: str, claims: list[Claim], evidence: Evidence) -> None:
        self._text = text
        self._words = folded_text(text)
        self._claims = claims
        self._evidence = evidence
        self._arithmetic = Arithmetic(evidence)
        self._sentences = _sentences(text)
        self._question = " ".join(str(leaf.value) for leaf in evidence.own)
        self._question_words = folded_text(self._question)
        self._equations = Equations(text, claims)
        # Names and dates, by their place, that stand beside a figure of another record.
        self._wrong_things: dict[int, Contradiction] = {}

    def check(self) -> list[CheckedClaim]:
        checked = [self._check(claim) for claim in self._claims]
        checked = [self._blamed(one) for one in checked]
        # Twice, as a figure that follows from others may be what a third one follows from.
        for _ in range(2):
            checked = [self._follows(one, checked) for one in checked]
        return checked

    def _follows(self, one: CheckedClaim, checked: list[CheckedClaim]) -> CheckedClaim:
        """An unsupported figure that follows from supported ones of its own and the previous sentence."""
        quantity = one.claim.quantity
        if one.supported or one.contradicted or quantity is None or one.claim.kind == "date":
            return one
        at = self._sentence(one.claim)
        near = [
            (
                abs(self._sentence(other.claim) - at),
                abs(other.claim.start - one.claim.start),
                other.claim.quantity,
            )
            for other in checked
            if other.supported
            and other.claim.quantity is not None
            and other.claim.kind != "date"
            and 0 <= at - self._sentence(other.claim) <= (2 if self._same_line(other.claim, one.claim) else 1)
        ]
        operands = [operand for _, _, operand in sorted(near, key=lambda item: item[:2])]
        clause = self._clause(one.claim)
        supported = [other.claim for other in checked if other.supported]
        scalars = list(dict.fromkeys(self._arithmetic.scalars))
        formula = (
            self._written_out(one.claim, checked)
            or derive_from_stated(quantity, operands, clause)
            or derive_with_evidence(quantity, operands, scalars, clause)
            or total_of_items(self._text, one.claim, supported)
            or counts_items_beside(self._text, one.claim, supported)
            or self._count_of_summands(one, checked, clause)
        )
        if formula is None:
            return one
        return CheckedClaim(claim=one.claim, supported=True, where="arithmetic", text=formula)

    def _written_out(self, claim: Claim, checked: list[CheckedClaim]) -> str | None:
        """The equation that gives a figure, where the reply writes it out."""
        found = self._equations.result(claim, {other.claim.start: other.supported for other in checked})
        if found is None or claim.quantity is None:
            return None
        fitting = fits(claim.quantity, found[0] * (100 if claim.kind == "percentage" else 1))
        return found[1] if fitting else None

    def _count_of_summands(
        self, one: CheckedClaim, checked: list[CheckedClaim], clause: Clause
    ) -> str | None:
        """ "From two payments": how many rows give a sum that the reply states beside it."""
        quantity = one.claim.quantity
        if quantity is None or one.claim.kind != "number" or quantity.unit != 1 or not clause.next_word:
            return None
        at = self._sentence(one.claim)
        for other in checked:
            if other.claim.quantity is None or abs(self._sentence(other.claim) - at) > 1:
                continue
            if other.where == "arithmetic" and quantity.value in self._arithmetic.summands(
                other.claim.quantity
            ):
                return f"count of the rows that give {other.claim.text}"
        return None

    def _same_line(self, first: Claim, second: Claim) -> bool:
        return "\n" not in self._text[first.end : second.start]

    def _blame_thing(self, figure: Claim, mixed: MixUp) -> bool:
        """Note the name or date beside a figure that belongs to another record; False if none stands there."""
        sentence = self._sentence(figure)
        for claim in self._claims:
            if claim.kind not in ("date", "name") or self._sentence(claim) != sentence:
                continue
            rows = rows_named(mixed.table, folded_text(claim.text), claim.text)
            if rows and rows <= mixed.named_rows:
                leaf = next(iter(mixed.table.rows[min(mixed.figure_rows)].values()))
                self._wrong_things[claim.start] = Contradiction(leaf.where, f"{figure.text}: {leaf.value}")
                return True
        return False

    def _blamed(self, one: CheckedClaim) -> CheckedClaim:
        wrong = self._wrong_things.get(one.claim.start)
        if wrong is None or not one.supported:
            return one
        return CheckedClaim(
            claim=one.claim,
            supported=False,
            contradicted=True,
            where=wrong.where,
            text=wrong.text,
            why=f"contradicts the evidence, which has {wrong.text}",
        )

    def _sentence(self, claim: Claim) -> int:
        return next(
            number for number, (start, end) in enumerate(self._sentences) if start <= claim.start < end
        )

    def _check(self, claim: Claim) -> CheckedClaim:
        match claim.kind:
            case "name":
                return self._told(
                    claim, find_name(claim, self._evidence), "no source or tool result has this name"
                )
            case "quote":
                return self._told(
                    claim, find_quote(claim, self._evidence), "these words stand in no source or tool result"
                )
            case "identifier":
                found = find_identifier(claim, self._evidence)
                return self._told(claim, found, "no source or tool result has this identifier")
            case "time":
                return self._told(
                    claim, find_time(claim, self._evidence), "no source or tool result has this time"
                )
            case "date":
                found = find_date(claim, self._evidence)
                if found is None and claim.quantity is not None:
                    return self._figure(claim)
                return self._told(claim, found, "no source or tool result has this date")
            case _:
                return self._figure(claim)

    def _told(self, claim: Claim, found: Found | None, why: str) -> CheckedClaim:
        if found is None:
            return CheckedClaim(claim=claim, supported=False, why=why)
        return CheckedClaim(claim=claim, supported=True, where=found.where, text=found.text)

    def _figure(self, claim: Claim) -> CheckedClaim:
        quantity = claim.quantity
        if quantity is None:
            return CheckedClaim(claim=claim, supported=False, why="not a figure")
        clause = self._clause(claim)
        found = find_figures(claim, self._text, self._evidence)
        said = [fact for fact in found if fact.where in ("question", "context")]
        if found and not said:
            part = self._part(claim)
            mixed = find_mix_up(part, clause, found, self._evidence, self._words, self._question)
            contradiction = (
                mixed.instead if mixed else other_value(claim, self._text, clause, found, self._evidence)
            )
            if mixed is not None and mixed.thing_is_wrong and self._blame_thing(claim, mixed):
                contradiction = None
            if contradiction is not None:
                derived = self._arithmetic.derive(quantity, clause, strict=True)
                if derived is not None:
                    return CheckedClaim(claim=claim, supported=True, where="arithmetic", text=derived.formula)
                return CheckedClaim(
                    claim=claim,
                    supported=False,
                    contradicted=True,
                    where=contradiction.where,
                    text=contradiction.text,
                    why=f"contradicts the evidence, which has {contradiction.text}",
                )
        if found:
            return CheckedClaim(claim=claim, supported=True, where=found[0].where, text=found[0].text)
        if (other := other_unit(claim, self._text, self._evidence)) is not None:
            return CheckedClaim(
                claim=claim,
                supported=False,
                contradicted=True,
                where=other.where,
                text=other.text,
                why=f"contradicts the evidence, which has another unit: {other.text}",
            )
        time = find_span_of_time(quantity, clause.next_word, self._evidence)
        if time is not None:
            return CheckedClaim(claim=claim, supported=True, where="arithmetic", text=time.text)
        derived = self._arithmetic.derive(quantity, clause)
        if derived is not None and not counts_other_items(self._text, claim, derived.formula):
            return CheckedClaim(
                claim=claim, supported=True, where="arithmetic", text=f"{derived.formula} ({derived.where})"
            )
        if quantity.value in CALENDAR and self._equations.is_factor(claim):
            return CheckedClaim(claim=claim, supported=True, where="arithmetic", text="the calendar")
        if counts_items_below(self._text, claim):
            return CheckedClaim(
                claim=claim, supported=True, where="arithmetic", text="count of the items listed"
            )
        what = {"money": "amount", "percentage": "percentage"}.get(claim.kind, "number")
        return CheckedClaim(
            claim=claim,
            supported=False,
            why=f"no source or tool result has this {what}, and it follows from none",
        )

    def _clause(self, claim: Claim) -> Clause:
        start, end = next(span for span in self._sentences if span[0] <= claim.start < span[1])
        sentence = self._text[start:end]
        following = re.match(
            r"[\s*_-]*(?:(?:of|different|separate|total|distinct|more|other|new|the|your|our)\s+)?([A-Za-z]+)",
            self._text[claim.end : end],
        )
        others = [
            other.quantity.value
            for other in self._claims
            if other.quantity is not None and other is not claim and start <= other.start < end
        ]
        asked = [fact.value for fact in self._evidence.numbers if fact.where in ("question", "context")]
        return Clause(
            text=sentence,
            before=self._text[start : claim.start],
            words=folded_text(sentence),
            question_words=self._question_words,
            next_word=following[1] if following else "",
            labelled=re.search(r":[\s*_]*$", self._text[start : claim.start]) is not None,
            part_of=self._whole_of(claim),
            alone=not others,
            numbers=tuple((others + asked)[:6]),
        )

    def _whole_of(self, claim: Claim) -> float:
        for other in self._claims:
            if other.start > claim.end and other.quantity is not None:
                between = self._text[claim.end : other.start]
                return other.quantity.value if _OF.fullmatch(between) else 0.0
        return 0.0

    def _part(self, claim: Claim) -> str:
        """The part of the sentence around a claim, between commas, brackets and conjunctions."""
        start, end = next(span for span in self._sentences if span[0] <= claim.start < span[1])
        cuts = [start, *(found.end() for found in _PART.finditer(self._text, start, end)), end]
        first = max(cut for cut in cuts if cut <= claim.start)
        last = min((cut for cut in cuts if cut >= claim.end), default=end)
        return self._text[first:last]


def _sentences(text: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for end in (*(found.end() for found in _BREAK.finditer(text)), len(text) + 1):
        # What goes on for longer is no sentence: its words say nothing of a claim that far off.
        while end - start > _LONGEST_SENTENCE:
            spans.append((start, start + _LONGEST_SENTENCE))
            start += _LONGEST_SENTENCE
        spans.append((start, end))
        start = end
    return spans
