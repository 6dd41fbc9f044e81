"""What a reply's own lists and tables say: how many items they have, and what their figures add up to."""

import re
from collections import Counter
from collections.abc import Sequence
from math import fsum

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.precision import fits

__all__ = [
    "counts_items_below",
    "counts_items_beside",
    "counts_other_items",
    "total_before_parts",
    "total_of_items",
]

_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*•]|\d+[.)])\s+\S")
_TOTAL = re.compile(
    r"\b(?:total|totals|sum|overall|altogether|together|combined|grand|all|net|year"
    r"|(?:these|those|the) (?:two|three|four|five|six|\d)|(?:these|those|they)(?: alone)? (?:make|made|account|add|come|came))\b",
    re.IGNORECASE,
)
_RULE = re.compile(r"[\s|:-]+")
_MOST_ITEMS = 200


def counts_items_below(text: str, claim: Claim) -> bool:
    """ "Here are three steps:" with three items below it."""
    quantity = claim.quantity
    return quantity is not None and quantity.kind == "number" and quantity.value == _items_below(text, claim)


def counts_items_beside(text: str, claim: Claim, supported: Sequence[Claim]) -> str | None:
    """ "Two payments ($1,875 and $1,620)": all that is listed must be supported."""
    quantity = claim.quantity
    if (
        quantity is None
        or quantity.kind != "number"
        or quantity.value != _items_beside(text, claim, supported)
    ):
        return None
    return "count of the items listed"


def counts_other_items(text: str, claim: Claim, formula: str) -> bool:
    """A count of rows that introduces a list with another number of items."""
    if not formula.startswith("count of rows") or claim.quantity is None:
        return False
    if _PART_OF.search(text[max(0, claim.start - 16) : claim.start]) or _OF_THEM.match(text, claim.end):
        return False
    items = _items_below(text, claim)
    return items > 0 and items != claim.quantity.value


def _items_below(text: str, claim: Claim) -> int:
    """How many items the list has that the claim's line introduces; 0 if it introduces none."""
    line_end = text.find("\n", claim.end)
    if line_end < 0 or not text[claim.end : line_end].rstrip(" *_").endswith(":"):
        return 0
    count = 0
    for line in text[line_end + 1 :].split("\n")[:_MOST_ITEMS]:
        if line.lstrip().startswith("|"):
            # The heading and the line under it are no items.
            count += 1 if not _RULE.fullmatch(line) else -1
        elif _ITEM.match(line):
            # Items of items are not counted.
            count += not line.startswith(("  ", "\t")) or count == 0
        elif line.strip() and not line.startswith((" ", "\t")):
            break
    return count


def _items_beside(text: str, claim: Claim, claims: Sequence[Claim]) -> int:
    """How many claims of one kind stand in the brackets, after the colon or after the comma behind a count."""
    opened = _OPENED.match(text, claim.end)
    if opened is None:
        return 0
    end = _SENTENCE_END.search(text, opened.end())
    inside = [other for other in claims if opened.end() <= other.start < (end.start() if end else len(text))]
    counts = Counter(other.kind for other in inside if other.quantity is None or other.kind != "number")
    wanted = claim.quantity.value if claim.quantity is not None else 0
    return next((count for count in counts.values() if count == wanted and count > 1), 0)


_PART_OF = re.compile(r"\bof\s+(?:the |our |your |its )?$", re.IGNORECASE)
_OF_THEM = re.compile(r"\s+of\s+(?:them|these|those|which)\b", re.IGNORECASE)
_OPENED = re.compile(r"[^.;:()\n]{0,60}?(?:\(|:\s|,\s|\s[–—-]\s)")
_SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z]|\s*$)|\n")


_PARTS_FOLLOW = re.compile(r"[^.;:()\n,]{0,40}(?::|\(|,|\s[–—-])\s*")


def total_before_parts(text: str, claim: Claim, supported: Sequence[Claim]) -> str | None:
    """ "14 issues: 2 critical, 5 major and 7 minor": all figures of its kind in the rest of the sentence add up to it."""
    quantity = claim.quantity
    opened = _PARTS_FOLLOW.match(text, claim.end)
    if quantity is None or opened is None:
        return None
    found = _SENTENCE_END.search(text, opened.end())
    end = found.start() if found else len(text)
    parts = [
        other.quantity.value
        for other in supported
        if other.quantity is not None and opened.end() <= other.start < end and other.kind == claim.kind
    ]
    if len(parts) < 2 or not fits(quantity, fsum(parts)):
        return None
    return " + ".join(f"{value:g}" for value in parts)


def total_of_items(text: str, claim: Claim, supported: Sequence[Claim]) -> str | None:
    """The last line of a list or table whose figures add up to it."""
    quantity = claim.quantity
    if quantity is None:
        return None
    start = text.rfind("\n", 0, claim.start) + 1
    end = text.find("\n", claim.end)
    line = text[start : end if end >= 0 else len(text)]
    if not _TOTAL.search(line):
        return None
    column = text[start : claim.start].count("|")
    values: list[float] = []
    at = start
    while at > 0 and len(values) < _MOST_ITEMS:
        above_start = text.rfind("\n", 0, at - 1) + 1
        above = text[above_start : at - 1]
        if not above.strip() and not values:
            # A blank line may stand between a list and its total.
            at = above_start
            continue
        if not above.strip() or (column and "|" not in above):
            break
        inside = [
            other.quantity.value
            for other in supported
            if above_start <= other.start < at - 1
            and other.kind == claim.kind
            and other.quantity is not None
            and (not column or text[above_start : other.start].count("|") == column)
        ]
        if not inside and not _RULE.fullmatch(above):
            break
        values.extend(inside[-1:])
        at = above_start
    if len(values) < 2 or not fits(quantity, fsum(values)):
        return None
    return " + ".join(f"{value:g}" for value in reversed(values))
