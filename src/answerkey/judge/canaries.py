"""Canaries: items whose right grade is known, put to every judge of a run; one that gets them wrong is named."""

import asyncio
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from answerkey.errors import ConfigError
from answerkey.judge.item import item_of
from answerkey.judge.panel import Panel
from answerkey.judge.rubric import Rubric
from answerkey.model.question import Question
from answerkey.model.reply import Reply


class Canary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply that is plainly bad (or, one of them, plainly good)."""

    kind: str
    question: str
    reference_answer: str
    reply: str
    # It must score less than this,
    below: float | None = None
    # or at least this.
    least: float | None = None

    def holds(self, score: float) -> bool:
        """Whether a judge's score is one that the canary allows."""
        return (self.below is None or score < self.below) and (self.least is None or score >= self.least)


class PairCanary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two replies of which one is plainly better."""

    kind: str
    question: str
    reference_answer: str
    better: str
    worse: str


class Canaries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of canaries."""

    canary: tuple[Canary, ...] = ()
    pair: tuple[PairCanary, ...] = ()


class CanaryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge made of a canary."""

    kind: str
    model: str
    # None: the judge gave no verdict.
    score: float | None
    # None: not known, for want of a verdict.
    passed: bool | None
    reason: str = ""
    # What kept it from a verdict: "refused", "unreadable", "unreachable", "budget".
    unjudged: str | None = None


@cache
def load_canaries(own: Path | None = None) -> Canaries:
    """The canaries, and those of a file beside them."""
    text = (resources.files("answerkey.judge") / "canaries.toml").read_text(encoding="utf-8")
    found = msgspec.toml.decode(text, type=Canaries)
    if own is None:
        return found
    try:
        more = msgspec.toml.decode(own.read_text(encoding="utf-8-sig"), type=Canaries)
    except OSError as error:
        raise ConfigError(f"canaries {own}: cannot be read: {error.strerror or error}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"canaries {own}: {str(error).replace('`$.', '`')}") from None
    return Canaries(canary=found.canary + more.canary, pair=found.pair + more.pair)


async def ask_canaries(
    panel: Panel, rubric: Rubric, canaries: Sequence[Canary], run_id: str
) -> list[CanaryResult]:
    """Put every canary to every judge. Their answers are cached for this run only: the next run tests its judge anew."""
    asked = [(model, canary) for model in panel.settings.models for canary in canaries]
    return await asyncio.gather(*(_ask(panel, rubric, model, canary, run_id) for model, canary in asked))


async def _ask(panel: Panel, rubric: Rubric, model: str, canary: Canary, run_id: str) -> CanaryResult:
    question = Question(id="canary", question=canary.question, reference_answer=canary.reference_answer)
    item = item_of(question, Reply(text=canary.reply))
    judged = await panel.judge(item, rubric, salt=f"canary/{run_id}", model=model)
    return CanaryResult(
        kind=canary.kind,
        model=model,
        score=judged.value,
        passed=None if judged.value is None else canary.holds(judged.value),
        reason=judged.reason,
        unjudged=judged.kind,
    )


def reliability(canaries: Sequence[CanaryResult]) -> tuple[bool | None, list[str]]:
    """Whether the canaries came out right (None: not known), and what was wrong in words."""
    wrong = [
        f"{canary.model} gave the {canary.kind!r} canary {canary.score:.2f}"
        for canary in canaries
        if canary.passed is False
    ]
    if wrong:
        return False, wrong
    silent = [
        f"{canary.model} gave no verdict on the {canary.kind!r} canary: {canary.reason}"
        for canary in canaries
        if canary.passed is None
    ]
    return (True if canaries and not silent else None), silent
