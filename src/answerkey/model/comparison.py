"""Comparison: two runs paired by question — difference, interval, verdict, and what changed."""

from typing import Any, Literal

import msgspec

from answerkey.model.judgement import JudgeRecord
from answerkey.model.why import Group
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


# fixed: failed in the base, passes now. broken: passed in the base, fails now. worse: its score fell, but it passes, or fails,
# in both runs. flaky: its score fell, and asking again did not confirm that.
ChangeKind = Literal["fixed", "broken", "worse", "flaky"]


class QuestionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A question that flipped (it passes in one run and fails in the other) or whose score fell."""

    id: str
    category: str
    kind: ChangeKind
    score_from: float
    score_to: float
    passed_from: bool
    passed_to: bool
    # The question, the beginning of both replies, and why the worse one lost points; empty if not looked up.
    question: str = ""
    reply_from: str = ""
    reply_to: str = ""
    because: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `compare --json` prints."""
        names = {True: "pass", False: "fail"}
        document = msgspec.structs.asdict(self) | {
            "from": names[self.passed_from],
            "to": names[self.passed_to],
        }
        del document["passed_from"], document["passed_to"]
        return document


class AskedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was asked again because it flipped or its score fell."""

    id: str
    kind: ChangeKind
    # Trials of those asked again that passed or, if the question is worse, reached the base's score; None: not asked, or not
    # scored.
    candidate_passed: int | None
    base_passed: int | None
    # Whether it is confirmed broken or worse.
    confirmed: bool


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """Results of asking the changed questions again."""

    # How often each was asked again.
    times: int
    # Whether every question had the same outcome each time.
    deterministic: bool
    questions: tuple[AskedAgain, ...]
    # Questions that failed in both runs and were asked again too, to see whether hard questions pass now and then.
    controls: int = 0


class Unpaired(msgspec.Struct, frozen=True):
    """A question that is not compared, and why."""

    id: str
    reason: Literal["only in base", "only in candidate", "not scored"]


class TruthChange(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """A question whose computed expectations differ between two runs."""

    id: str
    before: str
    after: str


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
    # Questions whose computed value is another one in each run; each is compared with its own.
    truth_changed: tuple[TruthChange, ...] = ()
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
    # Questions that pass in one run and fail in the other.
    flips: tuple[QuestionChange, ...]
    # Questions whose score fell without a flip.
    losses: tuple[QuestionChange, ...] = ()
    # Pass rate in both runs, by the same test.
    pass_rate: dict[str, Any]
    latency: Measure | None
    cost: Measure | None
    # Share of a question's trials.
    error_rate: Measure | None
    # Kinds of error that the base does not have → replies.
    new_errors: dict[str, int]
    # Why questions that got worse lost points, the largest group first; empty if not looked up.
    causes: tuple[Group, ...] = ()
    # Caveats: different scoring, missing questions, …
    notes: tuple[str, ...] = ()
    # None: the changed questions were not asked again.
    confirmation: Confirmation | None = None

    @property
    def fixed(self) -> int:
        """Questions that failed and pass now."""
        return sum(flip.kind == "fixed" for flip in self.flips)

    @property
    def broken(self) -> int:
        """Questions that passed and fail now; if they were asked again, those that are confirmed."""
        return sum(flip.kind == "broken" for flip in self.flips)

    @property
    def worse(self) -> int:
        """Questions whose score fell, the broken ones included; if they were asked again, those that are confirmed."""
        return self.broken + sum(loss.kind == "worse" for loss in self.losses)

    @property
    def flaky(self) -> int:
        """Questions whose score fell, and which asking again did not confirm."""
        return sum(change.kind == "flaky" for change in (*self.flips, *self.losses))

    @property
    def fallen(self) -> tuple[QuestionChange, ...]:
        """Every question whose score fell: broken, then worse, then flaky; the largest loss first."""
        order = {"broken": 0, "worse": 1, "flaky": 2}
        fallen = (change for change in (*self.flips, *self.losses) if change.kind in order)
        return tuple(
            sorted(fallen, key=lambda change: (order[change.kind], change.score_to - change.score_from))
        )

    @property
    def lost(self) -> float:
        """Points of the score that all questions which got worse lost together."""
        return 100.0 * sum(change.score_from - change.score_to for change in self.fallen) / self.paired

    def with_confirmation(self, confirmation: Confirmation | None) -> "Comparison":
        """Return the comparison in which what asking again did not confirm is flaky instead of broken or worse."""
        if confirmation is None:
            return self
        flaky = {again.id for again in confirmation.questions if not again.confirmed}

        def settled(changes: tuple[QuestionChange, ...]) -> tuple[QuestionChange, ...]:
            return tuple(
                msgspec.structs.replace(change, kind="flaky")
                if change.kind in ("broken", "worse") and change.id in flaky
                else change
                for change in changes
            )

        settled_flips = settled(self.flips)
        broken = sum(flip.kind == "broken" for flip in settled_flips)
        return msgspec.structs.replace(
            self,
            flips=settled_flips,
            losses=settled(self.losses),
            pass_rate={**self.pass_rate, "broken": broken},
            confirmation=confirmation,
        )

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
            "truth_changed": [msgspec.to_builtins(change) for change in self.truth_changed],
            "difference": difference,
            "verdict": self.verdict,
            "causes": [group.to_dict() for group in self.causes],
            "margin": self.margin,
            "regression": self.regression,
            "detectable": self.detectable,
            "unseen": self.unseen,
            "reasons": list(self.reasons),
            "components": {measure.name: measure.to_dict() for measure in self.components},
            "metrics": {measure.name: measure.to_dict() for measure in self.metrics},
            "categories": [{"category": measure.name, **measure.to_dict()} for measure in self.categories],
            "flips": [flip.to_dict() for flip in self.flips],
            "losses": [loss.to_dict() for loss in self.losses],
            "fixed": self.fixed,
            "broken": self.broken,
            "worse": self.worse,
            "flaky": self.flaky,
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
