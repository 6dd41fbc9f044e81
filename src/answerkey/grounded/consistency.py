"""Consistency: figures that contradict the tools, totals that do not add up, answers where the tools found nothing."""

import re
from collections.abc import Sequence
from typing import Any

from answerkey.grounded.checked import CheckedClaim
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.precision import fits
from answerkey.model.reply import Reply

__all__ = ["find_inconsistencies"]

_TOTAL = re.compile(
    r"\b(?:total|totals|totaling|totalling|sum|altogether|combined|in all|grand total)\b", re.IGNORECASE
)
# A total and its figure: "for a total of", "Total:", "Total outstanding:".
_TOTAL_OF = re.compile(
    r"\b(?:total|totals|totaling|totalling|sum|altogether|combined|in all|grand total)\b[^.;,\d]{0,40}$",
    re.IGNORECASE,
)
# A number before a name is part of it: "412 Cascade Ave".
_NAMED_AFTER = re.compile(r"\s+[A-Z]")
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)]|\|)")
# What a good reply says when the tools found nothing.
_NOTHING = re.compile(
    r"\b(?:no|not|none|nothing|never|n't|cannot|can't|couldn't|don't|doesn't|didn't|isn't|aren't|wasn't|weren't|unable|unavailable|"
    r"missing|empty|without|lack|lacks|zero|0|unknown|sorry|apologi[sz]e)\b|n't\b",
    re.IGNORECASE,
)


def find_inconsistencies(
    text: str, checked: Sequence[CheckedClaim], evidence: Evidence, reply: Reply
) -> list[dict[str, Any]]:
    """What a reply says against its own evidence or against itself, with the spans."""
    findings = [
        {
            "kind": "contradiction",
            "start": one.claim.start,
            "end": one.claim.end,
            "text": one.claim.text,
            "where": one.where,
            "evidence": one.text,
            "message": f"{one.claim.text} contradicts the evidence: {one.text}",
        }
        for one in checked
        if one.contradicted
    ]
    findings.extend(_totals(text, checked))
    if _found_nothing(evidence, reply) and text.strip() and not _NOTHING.search(text):
        findings.append(
            {
                "kind": "answer_without_evidence",
                "start": 0,
                "end": len(text),
                "message": "the tools returned nothing, yet the reply gives an answer",
            }
        )
    return findings


def _found_nothing(evidence: Evidence, reply: Reply) -> bool:
    if any(source.text for source in reply.sources):
        return False
    meaningful = [
        leaf
        for leaf in evidence.leaves
        if leaf.value not in (None, "", 0, False)
        and not (
            isinstance(leaf.value, str)
            and (_NOTHING.search(leaf.value) or leaf.value.lower() in ("ok", "success"))
        )
        and leaf.key.lower() not in ("status", "ok", "success", "query", "elapsed_ms", "took", "sql")
        and leaf.value is not True
    ]
    return not meaningful


def _totals(text: str, checked: Sequence[CheckedClaim]) -> list[dict[str, Any]]:
    """A total that neither the evidence gives nor the items above or below it add up to."""
    lines = _lines(text)
    findings = []
    for one in checked:
        quantity = one.claim.quantity
        if quantity is None or one.claim.kind == "percentage" or (one.supported and one.where != "question"):
            continue
        at = next(number for number, (start, end) in enumerate(lines) if start <= one.claim.start < end)
        before = text[lines[at][0] : one.claim.start]
        if not _TOTAL_OF.search(before) or (
            one.claim.kind == "number" and _NAMED_AFTER.match(text, one.claim.end)
        ):
            continue
        alike = [
            other.claim
            for other in checked
            if other is not one and other.claim.quantity is not None and other.claim.kind == one.claim.kind
        ]
        listed = [claim for claim in alike if _is_item(text, lines, claim.start)]
        # Without a list, the items are what the sentence names before its total.
        inline = [claim for claim in alike if lines[at][0] <= claim.start < one.claim.start]
        items = listed if len(listed) >= 2 else inline
        values = [abs(claim.quantity.value) for claim in items if claim.quantity is not None]
        if len(values) >= 2 and not fits(quantity, sum(values)):
            findings.append(
                {
                    "kind": "total_does_not_add_up",
                    "start": one.claim.start,
                    "end": one.claim.end,
                    "text": one.claim.text,
                    "stated": quantity.value,
                    "computed": round(sum(values), 6),
                    "message": f"{one.claim.text} is given as a total, but the items add up to {sum(values):,.10g}",
                }
            )
    return findings


def _lines(text: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for line in text.split("\n"):
        spans.append((start, start + len(line) + 1))
        start += len(line) + 1
    return spans


def _is_item(text: str, lines: list[tuple[int, int]], start: int) -> bool:
    """Whether a figure is an item of a list, which the total itself is not."""
    line = next(text[first:end] for first, end in lines if first <= start < end)
    return _ITEM.match(line) is not None and _TOTAL.search(line) is None
