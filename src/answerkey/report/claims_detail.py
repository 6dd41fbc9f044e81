"""A reply's evidence as it is shown: what a judge or model says of its claims, links for the reader's own eye, and its text cut
where something was seen in it.

Links are made when a page is: that takes a few milliseconds, and keeping them would double what a log takes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from answerkey.model.link import Link
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Scorecard
from answerkey.text.sanitise import for_terminal, one_line

# Unsupported claims, and things without a link, that are listed of one reply.
_LISTED = 20


class ClaimsDetail(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a reply's claims a judge or model found supported, and which not."""

    # "by" the judge's or model's name.
    who: str
    # Supported ÷ all; None: there is no figure, and the note says why.
    value: float | None
    supported: int
    unsupported: int
    # The unsupported claims, each with why; the first of them.
    listed: tuple[str, ...] = ()
    note: str = ""
    # How well it did on labelled sentences.
    reliability: str = ""


class LinksDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Where what a reply mentions stands in the evidence; a description, no verdict."""

    items: tuple[Link, ...] = ()
    linked: int = 0
    novelty: float | None = None
    # What was found nowhere, the first of it.
    unlinked: tuple[str, ...] = ()
    # Why there are no links.
    note: str = ""


def claims_details(card: Scorecard) -> tuple[ClaimsDetail, ...]:
    """What was found of a reply's claims, as far as anybody looked."""
    return tuple(_claims(card))


def _claims(card: Scorecard) -> Iterator[ClaimsDetail]:
    finding = card.findings.get("groundedness")
    component = card.components.get("groundedness")
    if component is not None:
        finding = component.details
    if isinstance(finding, Mapping) and "claims" in finding:
        value = card.metrics.get("groundedness") if component is None else component.value
        claims = [claim for claim in finding["claims"] if isinstance(claim, dict) and "claim" in claim]
        unsupported = [claim for claim in claims if claim.get("supported") is False]
        yield ClaimsDetail(
            who=f"by {one_line(str(finding.get('model') or 'the judge'), 60)}",
            value=value,
            supported=len(claims) - len(unsupported),
            unsupported=len(unsupported),
            listed=tuple(f"{one_line(str(one['claim']), 300)}: {_why(one)}" for one in unsupported[:_LISTED]),
            note=one_line(str(finding.get("reason") or ""), 400) if value is None else "",
            reliability=one_line(str(finding.get("reliability") or ""), 300),
        )


def _why(claim: Mapping[str, Any]) -> str:
    return one_line(str(claim.get("evidence") or ""), 300) or "the evidence does not say so"


def links_detail(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]]
) -> LinksDetail | None:
    """The links of a reply; None where there is nothing to look in or nothing to look up."""
    given = [reply, *(before for _, before in earlier)]
    seen = [call.result for one in given for call in one.tool_calls if call.result is not None]
    texts = [source.text for one in given for source in one.sources if source.text]
    if not reply.text or not (seen or texts):
        return None
    from answerkey.grounded.links import TooLargeError, describe  # most replies have no evidence

    try:
        links, novelty = describe(question, reply, earlier)
    except TooLargeError as error:
        return LinksDetail(note=f"not shown: too large: {error}")
    if not links:
        return None
    unlinked = dict.fromkeys(one_line(item.text, 120) for item in links if not item.where)
    return LinksDetail(
        items=links,
        linked=sum(bool(item.where) for item in links),
        novelty=novelty,
        unlinked=tuple(unlinked)[:_LISTED],
    )


def link_note(item: Link) -> str:
    """Where a thing stands, for a reader who points at it."""
    if not item.where:
        return "found nowhere in the evidence"
    row = f", row {one_line(item.row, 60)}" if item.row else ""
    place = f"{one_line(item.where, 120)}{row}: {one_line(item.found, 80)}"
    return f"{one_line(item.how, 120)}: {place}" if item.how else place


# Start, end, what it is, and what a reader who points at it is told.
Span = tuple[int, int, str, str]


class Segment(msgspec.Struct, frozen=True):
    """A stretch of the reply, and what was seen in it."""

    text: str
    # Any of: keyword, forbidden, linked, unlinked.
    marks: tuple[str, ...] = ()
    # What a reader who points at it is told.
    note: str = ""


def cut_at_marks(text: str, spans: Iterable[Span], most: int) -> Iterator[Segment]:
    """The text cut wherever one of the first `most` spans begins or ends; they may overlap (a keyword inside a claim)."""
    known = [
        (start, min(end, len(text)), mark, note) for start, end, mark, note in spans if start < len(text)
    ][:most]
    edges = sorted({0, len(text), *(edge for start, end, _, _ in known for edge in (start, end))})
    for start, end in pairwise(edges):
        over = [(mark, note) for first, last, mark, note in known if first <= start and last >= end]
        marks = tuple(dict.fromkeys(mark for mark, _ in over))
        yield Segment(
            for_terminal(text[start:end]), marks, "; ".join(dict.fromkeys(note for _, note in over))
        )
