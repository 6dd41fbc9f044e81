"""A reply's claims as they are shown: what was found without a model, and beside it what a judge found."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from answerkey.model.scorecard import Scorecard
from answerkey.text.sanitise import one_line

__all__ = ["ClaimsDetail", "claim_note", "claims_details", "claims_of"]

_WITHOUT_MODEL = "groundedness"
_BY_JUDGE = "judge_groundedness"
# Unsupported claims that are listed of one reply.
_LISTED = 20


class ClaimsDetail(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a reply's claims somebody found supported, and which not."""

    # "without a model", or "by" the judge's name.
    who: str
    # Supported ÷ all; None: there is no figure, and the note says why.
    value: float | None
    supported: int
    unsupported: int
    # The unsupported claims, each with why; the first of them.
    listed: tuple[str, ...] = ()
    note: str = ""


def claims_details(card: Scorecard) -> tuple[ClaimsDetail, ...]:
    """The claims without a model and those by the judge, as far as there are any."""
    by_judge = tuple(_by_judge(card))
    return (*_without_model(card, beside=bool(by_judge)), *by_judge)


def claims_of(card: Scorecard, name: str = _WITHOUT_MODEL, text: str = "text") -> list[dict[str, Any]]:
    """The claims in a finding that have a text."""
    finding = card.findings.get(name)
    claims = finding.get("claims") if isinstance(finding, Mapping) else None
    found = claims if isinstance(claims, list) else []
    return [claim for claim in found if isinstance(claim, dict) and isinstance(claim.get(text), str)]


def claim_note(claim: Mapping[str, Any]) -> str:
    """Where a claim is supported, or why it is not."""
    evidence = claim.get("evidence")
    if isinstance(evidence, Mapping):
        evidence = ": ".join(str(evidence[key]) for key in ("where", "formula", "text") if evidence.get(key))
    shown = one_line(str(evidence), 200) if evidence else ""
    if claim.get("supported"):
        return f"supported by {shown}" if shown else "supported by a source"
    why = one_line(str(claim.get("why") or "no source or tool result supports this"), 200)
    return f"{why} ({shown})" if shown else why


def _without_model(card: Scorecard, *, beside: bool) -> Iterator[ClaimsDetail]:
    claims = claims_of(card)
    # Nothing to check is worth a line only where the judge has one.
    if claims or (beside and _WITHOUT_MODEL in card.metrics):
        note = "" if claims else "the reply states nothing that can be checked"
        value = card.metrics.get(_WITHOUT_MODEL)
        yield _detail("without a model", value, claims, "text", claim_note, note)


def _by_judge(card: Scorecard) -> Iterator[ClaimsDetail]:
    finding = card.findings.get(_BY_JUDGE)
    if isinstance(finding, Mapping):
        value, reason = card.metrics.get(_BY_JUDGE), finding.get("reason")
        who = f"by {one_line(str(finding.get('model') or 'the judge'), 60)}"
        note = one_line(str(reason), 400) if value is None and reason else ""
        yield _detail(who, value, claims_of(card, _BY_JUDGE, "claim"), "claim", _judge_note, note)


def _judge_note(claim: Mapping[str, Any]) -> str:
    return one_line(str(claim.get("evidence") or ""), 300) or "the evidence does not say so"


def _detail(
    who: str,
    value: float | None,
    claims: list[dict[str, Any]],
    text: str,
    why: Callable[[Mapping[str, Any]], str],
    note: str,
) -> ClaimsDetail:
    unsupported = [claim for claim in claims if claim.get("supported") is False]
    return ClaimsDetail(
        who=who,
        value=value,
        supported=sum(claim.get("supported") is True for claim in claims),
        unsupported=len(unsupported),
        listed=tuple(f"{one_line(claim[text], 300)}: {why(claim)}" for claim in unsupported[:_LISTED]),
        note=note,
    )
