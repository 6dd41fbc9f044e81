"""Claims by a judge: a reply's factual claims, extracted and each verified against the evidence by a model."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from answerkey.judge.item import claims_item_of, evidence_length
from answerkey.judge.panel import Panel, UnjudgedError
from answerkey.judge.prompt import CLAIMS_HASH, claims_messages
from answerkey.judge.verdict import NoVerdictError, quoted, read_object
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.scorers.groundedness import has_evidence

__all__ = ["CLAIMS_SCHEMA", "JUDGE_GROUNDEDNESS", "Claim", "ClaimCheck", "parse_claims"]

# The metric's name; `groundedness` is the one without a model.
JUDGE_GROUNDEDNESS = "judge_groundedness"
# An answer with more is no list of a reply's claims, but a model that cannot stop.
_MOST_CLAIMS = 500
# Characters of a claim and of its evidence that are kept.
_MOST_TEXT = 500

# The evidence comes before the verdict on it, so that the verdict can follow from it.
CLAIMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "claim": {"type": "string"},
                    "evidence": {"type": "string"},
                    "supported": {"type": "boolean"},
                },
                "required": ["claim", "evidence", "supported"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["claims"],
    "additionalProperties": False,
}


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
        raise NoVerdictError("the judge's answer has no list of claims")
    if len(claims) > _MOST_CLAIMS:
        raise NoVerdictError(f"the judge listed {len(claims):,} claims, more than {_MOST_CLAIMS}")
    return tuple(_claim(part, number) for number, part in enumerate(claims, start=1))


def _claim(part: Any, number: int) -> Claim:
    if not isinstance(part, dict):
        raise NoVerdictError(f"the judge's claim {number} is not an object: {quoted(json.dumps(part))}")
    claim, supported, evidence = part.get("claim"), part.get("supported"), part.get("evidence")
    if not isinstance(claim, str) or not claim.strip():
        raise NoVerdictError(f"the judge's claim {number} has no text")
    if not isinstance(supported, bool):
        raise NoVerdictError(
            f"the judge's verdict on claim {number} is {quoted(json.dumps(supported))}, not true or false"
        )
    if not isinstance(evidence, str):
        raise NoVerdictError(f"the judge named no evidence for claim {number}")
    return Claim(_kept(claim), supported, _kept(evidence))


def _kept(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


class ClaimCheck:
    """Has the claims of replies checked, one call each; of a panel, by its first judge."""

    def __init__(self, settings: JudgeSettings, panel: Panel) -> None:
        self._settings = settings
        self._panel = panel
        self._model = settings.models[0]
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
        """`judge_groundedness` of a reply; nothing, and no call, without text or observed evidence."""
        if not self._settings.claims or not (reply.text or "").strip() or not has_evidence(reply):
            return ()
        most = self._settings.max_chars
        item = claims_item_of(question, reply, earlier=earlier, context=context, max_chars=most)
        try:
            claims = await self._panel.ask(
                self._model,
                lambda: claims_messages(item),
                CLAIMS_SCHEMA,
                key=self._panel.key(self._model, item.hash, 0, rubric=CLAIMS_HASH),
                sample=0,
                read=parse_claims,
            )
        except UnjudgedError as error:
            self.unscored += 1
            self.reason = self.reason or str(error)
            return (self._unscored(str(error)),)
        self.checked += 1
        if not claims:
            return (self._unscored("the judge found no factual claim in the reply"),)
        cut = f"; the judge saw the first {most:,} characters of the evidence"
        return (_score(claims, self._model, cut if evidence_length(reply) > most else ""),)

    def _unscored(self, reason: str) -> Score:
        details: dict[str, Any] = {
            "score": None,
            "claims": [],
            "unsupported": [],
            "model": self._model,
            "reason": reason,
        }
        return Score(JUDGE_GROUNDEDNESS, None, reason, details=details)

    def document(self) -> dict[str, Any] | None:
        """What the run document's `judge` section says of it; None if it is switched off."""
        if not self._settings.claims:
            return None
        return {
            "model": self._model,
            "prompt_hash": CLAIMS_HASH,
            "checked": self.checked,
            "unscored": self.unscored,
            "unscored_because": self.reason or None,
        }


def _score(claims: Sequence[Claim], model: str, cut: str) -> Score:
    supported = sum(claim.supported for claim in claims)
    value = round_score(supported / len(claims))
    reason = f"{supported} of {len(claims)} claims supported{cut}"
    documents = [msgspec.to_builtins(claim) for claim in claims]
    details = {
        "score": value,
        "claims": documents,
        "unsupported": [document for document in documents if not document["supported"]],
        "model": model,
        "reason": reason,
    }
    return Score(JUDGE_GROUNDEDNESS, value, reason, details=details)
