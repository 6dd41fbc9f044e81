"""Claim: one checkable part of a text."""

from typing import Literal

import msgspec

from answerkey.grounded.claims.quantity import Quantity
from answerkey.text.dates import Date

__all__ = ["Claim", "ClaimKind"]

ClaimKind = Literal["number", "money", "percentage", "date", "time", "name", "quote", "identifier"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A number, amount, date, name, quotation or identifier as it stands in a text."""

    kind: ClaimKind
    text: str
    start: int
    end: int
    # For number, money and percentage.
    quantity: Quantity | None = None
    # For a date.
    date: Date | None = None
    # For a time of day: minutes since midnight, one for each way to read it.
    minutes: tuple[int, ...] = ()
    # For a name: it begins a sentence, so that its first word may be an ordinary one.
    opens_sentence: bool = False
