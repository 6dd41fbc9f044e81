"""Figures that a text gives for another thing than the one that the reply's sentence names."""

import re
from collections.abc import Sequence
from functools import lru_cache

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.direct import Contradiction
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.precision import fits
from answerkey.grounded.reading import read_text
from answerkey.text.normalise import folded_text, stem

__all__ = ["of_another_sentence"]

_BREAK = re.compile(r"(?<=[.;!?])\s+(?=[A-Z0-9])|\n+")
_LONGEST_TEXT = 20_000
_TELLING_DIGITS = 3
_SHORTEST_WORD = 4


def of_another_sentence(
    claim: Claim, thing: Claim, found: Sequence[NumberFact], words: str, evidence: Evidence
) -> Contradiction | None:
    """What the sentence about the thing has instead, if a figure stands only in sentences that speak of nothing alike.

    "Tarheel Valuation Group, $572" where "Appraisal fee $525 to Tarheel Valuation Group. Transfer tax $572."
    """
    quantity = claim.quantity
    places = {fact.where for fact in found}
    if quantity is None or len(places) != 1 or len(quantity.digits) < _TELLING_DIGITS:
        return None
    place = places.pop()
    text = next((passage.text for passage in evidence.passages if passage.where == place), "")
    if len(text) > _LONGEST_TEXT or thing.text not in text:
        return None
    about: list[str] = []
    others: list[str] = []
    for sentence in _sentences(text):
        (about if re.search(rf"(?<!\w){re.escape(thing.text)}(?!\w)", sentence) else others).append(sentence)
    own = [
        number
        for sentence in about
        for number in read_text(sentence).numbers
        if not number.in_code and len(number.quantity.digits) >= _TELLING_DIGITS
    ]
    if len(about) != 1 or not own or any(fits(quantity, number.quantity.value) for number in own):
        return None
    spoken = {stem(word) for word in words.split() if len(word) >= _SHORTEST_WORD}
    for sentence in others:
        if any(fits(quantity, number.quantity.value) for number in read_text(sentence).numbers) and not (
            spoken.isdisjoint(stem(word) for word in folded_text(sentence).split())
        ):
            return None
    return Contradiction(place, own[0].around)


@lru_cache(maxsize=64)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part for part in _BREAK.split(text) if part)
