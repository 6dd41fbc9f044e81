"""Hours without minutes or am and pm: "from 10 to 3", "open until 6"."""

import re

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.wording import Found

__all__ = ["find_hour"]

# "From 10" and "to 3", "between 8:30 and 5"; a figure with a noun of its own ("from 10 to 3 people") is no hour.
_FROM = re.compile(r"\b(?:from|between|hours|open|opens)\s*:?\s*$", re.IGNORECASE)
_TO = re.compile(
    r"\b(?:from|between|hours|open|opens)\s*:?\s*(?:\d{1,2}(?::\d\d)?(?:\s?[ap]\.?m\.?)?|noon)\s?(?:to|until|till|and|-|–)\s?$",
    re.IGNORECASE,
)
_RANGE_GOES_ON = re.compile(
    r"\s?(?:to|until|till|and|-|–)\s?(?:\d{1,2}\b(?!\s?%)|noon|midnight)", re.IGNORECASE
)
_UNTIL = re.compile(
    r"\b(?:until|till|(?:(?:clos|open|start|end|begin)\w*(?: again)?|morning|afternoon|evening|night|day) at)\s+$",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\s*(?:$|[.,;!?)\n]|(?:on|every|each|daily|weekdays|Mondays?|Tuesdays?|Wednesdays?|Thursdays?|Fridays?|Saturdays?|Sundays?"
    r"|apply|applies|and|but|in the|at|for|with)\b)",
    re.IGNORECASE,
)
# "Tickets fell from 10 to 3".
_CHANGED = re.compile(
    r"\b(?:f[ae]ll\w*|r[io]se\w*|gr[eo]w\w*|dropp\w+|went|increas\w+|decreas\w+|reduc\w+|declin\w+|climb\w+|improv\w+|shr[aiu]nk"
    r"|cut|down|up|chang\w+)\b",
    re.IGNORECASE,
)
_HALF_A_DAY = 720


def find_hour(text: str, claim: Claim, evidence: Evidence) -> Found | None:
    """The time of the evidence that an hour on a clock of 12 or 24 hours may be, where the words speak of hours."""
    quantity = claim.quantity
    if (
        quantity is None
        or claim.kind != "number"
        or quantity.unit != 1
        or not 1 <= quantity.value <= 24
        or not evidence.times
    ):
        return None
    before = text[max(0, claim.start - 40) : claim.start]
    if _CHANGED.search(before):
        return None
    on = _RANGE_GOES_ON.match(text, claim.end)
    opens = on and (_FROM.search(before) or on[0][-1:].isalpha())
    ends = (_TO.search(before) or _UNTIL.search(before)) and _ENDS.match(text, claim.end)
    if not opens and not ends:
        return None
    minutes = int(quantity.value) * 60 % 1440
    for reading in (minutes, (minutes + _HALF_A_DAY) % 1440) if quantity.value <= 12 else (minutes,):
        if reading in evidence.times:
            return Found(evidence.times[reading], f"{reading // 60:02}:00")
    return None
