"""Comparison: two runs paired by question — difference, interval, verdict, and what changed."""

from typing import Any, Literal

import msgspec

from answerkey.model.judgement import JudgeRecord
from answerkey.stats.paired import Difference, Verdict


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs, over the questions that both have."""

    id: str
    name: str
    target: str
    score: float
    # Questions of this run, paired or not.
    questions: int
    repeat: int
    pass_rate: float
    error_rate: float
    errors: dict[str, int]
    latency_ms: dict[str, float] | None = None
    cost: float | None = None
    # None: the run has no judge.
    judge: JudgeRecord | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the side as `compare --json` prints it."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document | {"judge": document["judge"] or {}}


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A score, component, metric, category or cost in both runs."""

    name: str
    base: float
    candidate: float
    # Whether it has a letter grade: the score, a component or a category.
    graded: bool
    # A count, duration or cost, whose difference is not in points.
    counted: bool = False
    # Whether a difference was tested. Latencies of runs made at different times are not: they also measure the load.
    tested: bool = True
    # None: not tested, or a single pair of an unbounded measure.
    difference: Difference | None
    # With Holm's correction within its family; the score's is not corrected.
    p_adjusted: float | None
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `compare --json` prints."""
        document: dict[str, Any] = {"base": self.base, "candidate": self.candidate}
        document |= _difference_document(self.difference)
        if not self.tested:
            document |= {
                "mean": round(self.candidate - self.base, 9),
                "method": "not tested: different times",
            }
        document |= {"p_adjusted": self.p_adjusted, "verdict": self.verdict, "counted": self.counted}
        return document


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A question that passes in one run and fails in the other."""

    id: str
    category: str
    kind: Literal["fixed", "broken"]
    score_from: float
    score_to: float
    # The question, the beginning of both replies, and why the failing one fails; empty if not looked up.
    question: str = ""
    reply_from: str = ""
    reply_to: str = ""
    because: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `compare --json` prints."""
        before, after = ("fail", "pass") if self.kind == "fixed" else ("pass", "fail")
        return msgspec.structs.asdict(self) | {"from": before, "to": after}


class AskedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A flipped question that was asked again."""

    id: str
    kind: Literal["fixed", "broken"]
    # Passed trials of those asked again; None: not asked, or not scored.
    candidate_passed: int | None
    base_passed: int | None
    # Whether it is confirmed broken.
    confirmed: bool


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """Results of asking the flipped questions again."""

    # How often each was asked again.
    times: int
    # Whether every question had the same outcome each time.
    deterministic: bool
    questions: tuple[AskedAgain, ...]


class Unpaired(msgspec.Struct, frozen=True):
    """A question that is not compared, and why."""

    id: str
    reason: Literal["only in base", "only in candidate", "not scored"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Is the candidate better than the base?"""

    base: Side
    candidate: Side
    # Questions in both runs, and their units of analysis.
    paired: int
    units: int
    unpaired: tuple[Unpaired, ...]
    # Paired by id although the question was edited between the runs.
    edited: tuple[str, ...]
    score: Measure
    verdict: Verdict
    # Differences within ± this are equivalent; None: no margin.
    margin: float | None = None
    # The smallest true difference found with 80% power; None: unknown.
    detectable: float | None
    # The share of units that a problem may affect which none of these showed.
    unseen: float
    # Reasons for the verdict.
    reasons: tuple[str, ...]
    components: tuple[Measure, ...]
    metrics: tuple[Measure, ...]
    categories: tuple[Measure, ...]
    flips: tuple[Flip, ...]
    # Pass rate in both runs, by the same test.
    pass_rate: dict[str, Any]
    latency: Measure | None
    cost: Measure | None
    # Share of a question's trials.
    error_rate: Measure | None
    # Kinds of error that the base does not have → replies.
    new_errors: dict[str, int]
    # Caveats: different scoring, missing questions, …
    notes: tuple[str, ...] = ()
    # None: the flipped questions were not asked again.
    confirmation: Confirmation | None = None

    @property
    def fixed(self) -> int:
        """Questions that failed and pass now."""
        return sum(flip.kind == "fixed" for flip in self.flips)

    @property
    def broken(self) -> int:
        """Questions that passed and fail now; after asking again, those that are confirmed."""
        if self.confirmation is not None:
            return sum(again.confirmed for again in self.confirmation.questions)
        return sum(flip.kind == "broken" for flip in self.flips)

    @property
    def regression(self) -> bool:
        """Whether the score is worse, or a question is confirmed broken, whatever the mean."""
        return self.verdict == "worse" or (self.confirmation is not None and self.broken > 0)

    @property
    def difference(self) -> Difference:
        """The difference of the score."""
        # A bounded score always has one.
        assert self.score.difference is not None
        return self.score.difference

    def to_dict(self) -> dict[str, Any]:
        """The document of `compare --json`."""
        difference = _difference_document(self.difference)
        return {
            "base": self.base.to_dict(),
            "candidate": self.candidate.to_dict(),
            "paired": self.paired,
            "units": self.units,
            "unpaired": msgspec.to_builtins(list(self.unpaired)),
            "edited": list(self.edited),
            "difference": difference,
            "verdict": self.verdict,
            "margin": self.margin,
            "regression": self.regression,
            "detectable": self.detectable,
            "unseen": self.unseen,
            "reasons": list(self.reasons),
            "components": {measure.name: measure.to_dict() for measure in self.components},
            "metrics": {measure.name: measure.to_dict() for measure in self.metrics},
            "categories": [{"category": measure.name, **measure.to_dict()} for measure in self.categories],
            "flips": [flip.to_dict() for flip in self.flips],
            "fixed": self.fixed,
            "broken": self.broken,
            "pass_rate": self.pass_rate,
            "latency_ms": None if self.latency is None else self.latency.to_dict(),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "error_rate": None if self.error_rate is None else self.error_rate.to_dict(),
            "new_errors": self.new_errors,
            "notes": list(self.notes),
            "confirmation": msgspec.to_builtins(self.confirmation),
        }


_ROUNDED = ("mean", "low", "high")
_SHOWN = ("level", "p_value", "method", "effect_size", "pairs", "changed", "units")


def _difference_document(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return dict.fromkeys((*_ROUNDED, "level", "p_value")) | {"method": "a single pair"}
    document: dict[str, Any] = {name: round(getattr(difference, name), 9) for name in _ROUNDED}
    return document | {name: getattr(difference, name) for name in _SHOWN}
