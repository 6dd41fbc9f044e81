"""Tally: what judging a run came to: how many were judged and why others were not, agreement, canaries and cost."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from answerkey.judge.canaries import CanaryResult
from answerkey.judge.judgement import Judgement
from answerkey.judge.ledger import Ledger
from answerkey.model.options import JudgeSettings
from answerkey.stats.agreement import krippendorff_alpha

__all__ = ["Tally", "canary_documents", "reliability"]


class Tally:
    """Adds up judgements."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._models = settings.models
        self.judged = 0
        # Kind of reason → how many were not judged for it, and its first wording.
        self.unscored: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self._consistent: Counter[bool] = Counter()
        # Of a panel: each judge's grades, item by item; None where it gave none.
        self._ratings: dict[str, dict[str, list[float | None]]] = {}

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        if judgement.value is None:
            kind = judgement.kind or "unreadable"
            self.unscored[kind] += 1
            self.reasons.setdefault(kind, judgement.reason)
            return
        self.judged += 1
        if judgement.consistent is not None:
            self._consistent[judgement.consistent] += 1
        if len(self._models) > 1 and judgement.by_judge:
            for name in ("judge", *judgement.criteria):
                ratings = self._ratings.setdefault(name, {model: [] for model in self._models})
                for model in self._models:
                    given = judgement.criteria_by_judge.get(model, {})
                    value = judgement.by_judge.get(model) if name == "judge" else given.get(name)
                    ratings[model].append(value)

    def agreement(self) -> dict[str, float | None]:
        """Krippendorff's α of the panel, for the whole score and each criterion; empty for a single judge."""
        found = {
            name: krippendorff_alpha([ratings[model] for model in self._models])
            for name, ratings in self._ratings.items()
        }
        return {name: None if alpha is None else round(alpha, 6) for name, alpha in found.items()}

    def document(self, ledger: Ledger, cached: int) -> dict[str, Any]:
        """The numbers of the run document's `judge` section."""
        repeated = self._consistent.total()
        return {
            "judged": self.judged,
            "unscored": self.unscored.total(),
            "unscored_because": {
                kind: {"count": count, "reason": self.reasons[kind]} for kind, count in self.unscored.items()
            },
            "calls": ledger.calls,
            "cached": cached,
            "tokens": {"input": ledger.input_tokens, "output": ledger.output_tokens},
            "cost": round(ledger.cost, 6) if ledger.cost_known else None,
            "budget_stopped": ledger.refused > 0,
            "self_consistency": round(self._consistent[True] / repeated, 9) if repeated else None,
            "agreement": self.agreement() or None,
        }


def reliability(canaries: Sequence[CanaryResult]) -> tuple[bool | None, tuple[str, ...]]:
    """Whether the canaries came out right (None: not known), and what was wrong in words."""
    wrong = [
        f"{canary.model} gave the {canary.kind!r} canary {canary.score:.2f}"
        for canary in canaries
        if canary.passed is False and canary.score is not None
    ]
    if wrong:
        return False, tuple(wrong)
    silent = [canary for canary in canaries if canary.passed is None]
    if silent or not canaries:
        return None, tuple(
            f"{canary.model} gave no verdict on the {canary.kind!r} canary: {canary.reason}"
            for canary in silent
        )
    return True, ()


def canary_documents(canaries: Sequence[CanaryResult]) -> list[dict[str, Any]]:
    """The canaries as the run document lists them."""
    return [msgspec.to_builtins(canary) for canary in canaries]
