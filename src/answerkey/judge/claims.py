"""Claims by a judge: a reply's factual claims, extracted and each verified against the evidence by a model."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from answerkey.judge.item import item_of
from answerkey.judge.panel import Inquiry, Panel
from answerkey.judge.prompt import CLAIMS_HASH, claims_messages
from answerkey.judge.verdict import UnjudgedError, object_schema, quoted, read_object
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.model.sentence_calibration import NOT_CALIBRATED
from answerkey.scorers.groundedness import has_evidence

# The metric's name, whoever gives it.
GROUNDEDNESS = "groundedness"
# An answer with more is no list of a reply's claims, but a model that cannot stop.
_MOST_CLAIMS = 500
# Characters of a claim and of its evidence that are kept.
_MOST_TEXT = 500

# The evidence comes before the verdict on it, so that the verdict can follow from it.
_CLAIM_SCHEMA = object_schema(
    claim={"type": "string"}, evidence={"type": "string"}, supported={"type": "boolean"}
)
CLAIMS_SCHEMA = object_schema(claims={"type": "array", "items": _CLAIM_SCHEMA})


class Claim(msgspec.Struct, frozen=True):
    """One claim of a reply, and what the judge makes of it."""

    claim: str
    supported: bool
    # The words of the evidence that support it, or why nothing does.
    evidence: str


def parse_claims(text: str) -> tuple[Claim, ...]:
    """Read the claims, strictly: one that has no clear verdict makes the whole answer unreadable."""
    claims = read_object(text).get("claims")
    if not isinstance(claims, list):
        raise UnjudgedError("the judge's answer has no list of claims")
    if len(claims) > _MOST_CLAIMS:
        raise UnjudgedError(f"the judge listed {len(claims):,} claims, more than {_MOST_CLAIMS}")
    return tuple(_claim(part, number) for number, part in enumerate(claims, start=1))


def _claim(part: Any, number: int) -> Claim:
    if not isinstance(part, dict):
        raise UnjudgedError(f"the judge's claim {number} is not an object: {quoted(json.dumps(part))}")
    claim, supported, evidence = part.get("claim"), part.get("supported"), part.get("evidence")
    if not isinstance(claim, str) or not claim.strip():
        raise UnjudgedError(f"the judge's claim {number} has no text")
    if not isinstance(supported, bool):
        raise UnjudgedError(
            f"the judge's verdict on claim {number} is {quoted(json.dumps(supported))}, not true or false"
        )
    if not isinstance(evidence, str):
        raise UnjudgedError(f"the judge named no evidence for claim {number}")
    return Claim(_kept(claim), supported, _kept(evidence))


def _kept(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


CLAIMS = Inquiry(CLAIMS_HASH, CLAIMS_SCHEMA, claims_messages, parse_claims)


class ClaimCheck:
    """Has the claims of replies checked, one call each; of a panel, by its first judge."""

    def __init__(self, panel: Panel, reliability: str = NOT_CALIBRATED) -> None:
        self._panel = panel
        # How well the judge did on labelled sentences, for wherever its verdicts are shown.
        self._reliability = reliability
        self._settings = panel.settings
        self._model = panel.settings.models[0]
        # Replies whose claims were checked, and those for which the judge gave no usable answer.
        self.checked = 0
        self.unscored = 0
        # Why, for the first of them.
        self.reason = ""

    async def scores(
        self,
        question: Question,
        reply: Reply,
        *,
        earlier: Sequence[tuple[str, str | None]] = (),
        context: str | None = None,
    ) -> tuple[Score, ...]:
        """`groundedness` of a reply; nothing, and no call, without text or observed evidence."""
        if not self._settings.claims or not (reply.text or "").strip() or not has_evidence(reply):
            return ()
        most = self._settings.max_chars
        item = item_of(question, reply, earlier=earlier, context=context, max_chars=most, for_claims=True)
        claims: tuple[Claim, ...] = ()
        value = None
        try:
            claims = await self._panel.ask(self._model, CLAIMS, item)
        except UnjudgedError as error:
            reason = str(error)
            self.unscored += 1
            self.reason = self.reason or reason
        else:
            self.checked += 1
            reason = "the judge found no factual claim in the reply"
        if claims:
            supported = sum(claim.supported for claim in claims)
            value = round_score(supported / len(claims))
            reason = f"{supported} of {len(claims)} claims supported"
            if item.evidence_cut:
                reason += f"; the judge saw the first {most:,} characters of the evidence"
        documents = msgspec.to_builtins([*claims])
        details = {
            "score": value,
            "claims": documents,
            "unsupported": [document for document in documents if not document["supported"]],
            "model": self._model,
            "reason": reason,
            "reliability": self._reliability,
        }
        return (Score(GROUNDEDNESS, value, reason, details=details),)

    def document(self) -> dict[str, Any] | None:
        """What the run document's `judge` section says of it; None if it is switched off."""
        if not self._settings.claims:
            return None
        return {
            "model": self._model,
            "prompt_hash": CLAIMS_HASH,
            "reliability": self._reliability,
            "checked": self.checked,
            "unscored": self.unscored,
            "unscored_because": self.reason or None,
        }
