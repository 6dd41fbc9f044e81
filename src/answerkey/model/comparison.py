"""Comparison: two runs paired by question — difference, interval, verdict, and what changed and why.

Lost and gained points come from stages, groups of one signature, and slices that are worse than the rest.
"""

from collections.abc import Sequence
from math import floor
from typing import Any, Literal

import msgspec

from answerkey.model.judgement import JudgeRecord
from answerkey.stats.paired import Difference, Verdict

# In the order in which they are looked at: the first that differs is the cause.
Stage = Literal[
    "key",
    "truth",
    "error",
    "tools",
    "arguments",
    "tool_results",
    "text",
    "judge",
    "noise",
    "unobserved",
]
# What of a reply was missed.
FactKind = Literal["", "number", "date", "text", "pattern", "declining", "answer", "forbidden", "score"]

_MOST_FACTS = 4
# What to switch on where a stage could not be seen.
_OBSERVE = "return `tool_calls` with their results in the reply, or observe them with --proxy or --traces"


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one reply lost points, in itself or against a better reply to the same question."""

    stage: Stage
    # The tool that was not called, or whose arguments or result the reply rests on.
    tool: str = ""
    # Tools that were called instead.
    instead: tuple[str, ...] = ()
    # Whether the tool must not be called.
    unwanted: bool = False
    # Kind of the error, and whether a tool had been called before it.
    error: str = ""
    after_tools: bool = False
    # Of an HTTP error: its status.
    status: str = ""
    # Arguments that differ.
    arguments: tuple[str, ...] = ()
    # What the reply should say and does not, and of what kind that is.
    facts: tuple[str, ...] = ()
    kind: FactKind = ""
    # What was not observed.
    unseen: str = ""
    # Whether there was a better reply to compare with.
    compared: bool = False

    @property
    def signature(self) -> "Cause":
        """The cause without what differs from question to question: the same for all questions of a group."""
        return msgspec.structs.replace(
            self,
            # Which tool failed says more than what the chatbot made of it.
            error="" if self.tool else self._error_family,
            status="",
            kind=self.kind if self.stage in ("text", "judge", "key", "truth") else "",
            instead=(),
            after_tools=False,
            facts=(),
        )

    @property
    def words(self) -> str:
        """The cause in words, with what this reply misses.

        >>> Cause(stage="text", facts=("3960",), kind="number", tool="books").words
        'the reply does not say 3960, although books returned it'
        """
        listed = ", ".join(self.facts[:_MOST_FACTS]) + (" …" if len(self.facts) > _MOST_FACTS else "")
        if self.stage == "text" and listed:
            return f"the reply does not say {listed}" + (
                f", although {self.tool} returned it" if self.tool else ""
            )
        words = self.signature.words_about("")
        if self.stage == "error":
            kind = self.error.replace("_", " ")
            notes = ("" if self.status or kind in words else kind, "after tools had been called")
            noted = ", ".join(filter(None, notes if self.after_tools else notes[:1]))
            words += f" ({noted})" if noted else ""
        if self.stage == "tools" and self.instead:
            words += f"; {', '.join(self.instead)} was called"
        if listed and self.stage in ("arguments", "tool_results"):
            words += f" ({listed})"
        elif listed and self.stage in ("key", "truth"):
            words += f": {listed}"
        return words

    def words_about(self, category: str) -> str:
        """A signature in words; `category` is that of most questions of its group, if they have one in common."""
        tool = self.tool or "a tool"
        about = f" for questions about {category.replace('_', ' ')}" if category else ""
        if category == "unanswerable":
            about = " for unanswerable questions"
        if self.stage == "error":
            return (f"{self.tool} failed" if self.tool else self.error) + about
        if self.stage == "text":
            return f"{_TEXT_FAULTS[self.kind]}{about}{self._returned}"
        words = _CAUSES[self.stage]
        if self.stage == "tools" and self.unwanted:
            words = _CAUSES["unwanted tool"]
        elif self.stage == "tool_results" and self.compared:
            words = _CAUSES["other results"]
        named = f" ({', '.join(self.arguments)})" if self.arguments else ""
        return words.format(tool=tool, about=about, named=named, unseen=self.unseen)

    @property
    def _error_family(self) -> str:
        family = _ERROR_FAMILIES.get(self.error, self.error)
        return f"the chatbot answered with HTTP {self.status}" if self.status else family

    @property
    def _returned(self) -> str:
        if self.kind in ("declining", "answer", "forbidden", "score"):
            return ""
        return f", although {self.tool} returned it" if self.tool else ""


# Kind of an error → what errors of this family have in common.
_ERROR_FAMILIES = {
    "connection": "the chatbot could not be reached",
    "http": "the chatbot answered with an HTTP error",
    "rate_limit": "the chatbot refused more requests (rate limit)",
    **dict.fromkeys(("timeout", "memory", "exception"), "the chatbot crashed or timed out"),
    "tool": "a tool failed",
    **dict.fromkeys(("empty", "null"), "there was no reply"),
    **dict.fromkeys(("error_text", "trace"), "the reply was an error message"),
    "malformed": "the reply was malformed",
    "truncated": "the reply broke off",
}

# Stage, or what there is to say of one, in words.
_CAUSES = {
    "key": "the expectations of the question were edited{about}",
    "truth": "the value expected by the data changed{about}",
    "tools": "{tool} was not called{about}",
    "unwanted tool": "{tool} was called although it must not be{about}",
    "arguments": "{tool} was called with other arguments{named}{about}, and its result lacks what was asked",
    "tool_results": "the result of {tool} lacks what was asked{about}",
    "other results": "{tool} returned something else for the same arguments{about}, which lacks what was asked",
    "judge": "the judge or a scorer gave the same reply another score{about}",
    "noise": "no cause: repeats of the same version differ as much{about}",
    "unobserved": f"{{unseen}} not observed{{about}}: {_OBSERVE}",
}

_TEXT_FAULTS: dict[FactKind, str] = {
    "": "the reply does not say the answer",
    "number": "the reply does not say the expected number",
    "date": "the reply does not say the expected date",
    "text": "the reply does not say the expected words",
    "pattern": "the reply does not say the expected pattern",
    "declining": "the reply does not decline although there is no answer",
    "answer": "the reply does not say the reference answer",
    "forbidden": "the reply says something forbidden",
    "score": "the reply is another one, and another scorer took points off",
}


class PlainFact(msgspec.Struct, frozen=True):
    """Something that both runs report, and whether it differs."""

    name: str
    base: str
    candidate: str

    @property
    def differs(self) -> bool:
        """Whether it is another one in the candidate."""
        return self.base != self.candidate


class StagePoints(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage contributes to the difference of the score, in points of 100, with its interval over units."""

    stage: Stage
    questions: int
    points: float
    low: float
    high: float


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Questions that lost points for the same reason."""

    signature: Cause
    # What the questions have in common: their category, if most are of one.
    about: str
    ids: tuple[str, ...]
    # Points of the score that they cost (negative) or gained.
    points: float
    # One of them: its id, and the cause there.
    example: str
    because: str

    @property
    def words(self) -> str:
        """In words, e.g. `query_database was not called for questions about payouts`."""
        return self.signature.words_about(self.about)

    def to_dict(self) -> dict[str, Any]:
        """The group as `why --json` prints it."""
        return {
            "signature": self.words,
            "stage": self.signature.stage,
            "facts": msgspec.to_builtins(self.signature),
            "ids": list(self.ids),
            "points": self.points,
            "example": {"id": self.example, "because": self.because},
        }


class WorseSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Questions with a common field that are worse than the rest."""

    # Field → value; one or two fields.
    where: dict[str, str]
    questions: int
    # Mean of these minus mean of the rest, in score.
    difference: float
    # Corrected for all slices that were looked at.
    p_value: float


class CaseSide(msgspec.Struct, frozen=True, kw_only=True):
    """What a version did with a question: its typical trial."""

    score: float | None
    trials: int
    reply: str
    error: str
    # One for each call: name, arguments, and the digest of its result; null: not seen.
    tool_calls: tuple["CallFacts", ...]


class CallFacts(msgspec.Struct, frozen=True):
    """A tool call, with its result as a digest."""

    name: str
    arguments: Any
    result_digest: str | None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose score changed, and where the change comes from."""

    id: str
    category: str
    stage: Stage
    because: str
    # Candidate minus base.
    difference: float
    base: CaseSide
    candidate: CaseSide


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run lost points: groups with their costs, largest first, and slices worse than the rest."""

    # Points of 100 that the score is below 1.
    lost: float
    # Questions that lost points.
    questions: int
    groups: tuple[Group, ...]
    slices: tuple[WorseSlice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of `why RUN --json`."""
        return {
            "lost": self.lost,
            "questions": self.questions,
            "groups": [group.to_dict() for group in self.groups],
            "slices": msgspec.to_builtins(self.slices),
        }


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Where the difference of two runs comes from."""

    facts: tuple[PlainFact, ...]
    # As in `compare --json`.
    difference: dict[str, Any]
    stages: tuple[StagePoints, ...]
    # Losses by cause, the largest first, then gains.
    groups: tuple[Group, ...]
    slices: tuple[WorseSlice, ...]
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[Group, ...]:
        """The groups that cost points, noise left out."""
        return _losses(self.groups)

    @property
    def lost(self) -> float:
        """All lost points, as a positive number."""
        return -sum(group.points for group in self.groups if group.points < 0)

    def to_dict(self) -> dict[str, Any]:
        """The document of `why --json`."""
        return {
            "facts": [{**msgspec.structs.asdict(fact), "differs": fact.differs} for fact in self.facts],
            "difference": self.difference,
            "stages": msgspec.to_builtins(self.stages),
            "groups": [group.to_dict() for group in self.groups],
            "slices": msgspec.to_builtins(self.slices),
            "cases": msgspec.to_builtins(self.cases),
            "notes": list(self.notes),
        }


def _losses(groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(group for group in groups if group.points < 0 and _is_cause(group))


def _is_cause(group: Group) -> bool:
    return group.signature.stage != "noise"


def cause_lines(groups: Sequence[Group], lost: float, most: int = 3) -> list[str]:
    """The largest causes of lost points, e.g. `7.0 of 9.0 lost points: query_database was not called for questions about …`."""
    costly = [group for group in groups if group.points < 0]
    costs = rounded_parts([-group.points for group in costly])
    losses = [(cost, group.words) for cost, group in zip(costs, costly, strict=True) if _is_cause(group)]
    # One more cause takes no more room than saying that there is one.
    listed = losses if len(losses) <= most + 1 else losses[:most]
    if others := losses[len(listed) :]:
        listed = [*listed, (sum(cost for cost, _ in others), f"{len(others)} other causes")]
    return [f"{cost:.1f} of {lost:.1f} lost points: {cause}" for cost, cause in listed]


def rounded_parts(values: Sequence[float]) -> list[float]:
    """Values with one decimal whose sum is the rounded sum: those cut by most are rounded up.

    >>> rounded_parts([8.05, 8.05, 7.95])
    [8.1, 8.0, 7.9]
    """
    tenths = [floor(10 * value + 1e-6) for value in values]
    by_remainder = sorted(range(len(values)), key=lambda index: tenths[index] - 10 * values[index])
    for index in by_remainder[: round(10 * sum(values)) - sum(tenths)]:
        tenths[index] += 1
    return [count / 10 for count in tenths]


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
    # The score's verdict, or "worse" if asking again confirmed that a question is broken.
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
        """Return the comparison in which what asking again did not confirm is flaky instead of broken or worse.

        If a question is confirmed broken, the verdict is "worse", whatever the mean.
        """
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
            verdict="worse" if broken else self.verdict,
            flips=settled_flips,
            losses=settled(self.losses),
            pass_rate={**self.pass_rate, "broken": broken},
            confirmation=confirmation,
        )

    @property
    def regression(self) -> bool:
        """Whether the score is worse, or a question is confirmed broken, whatever the mean."""
        return self.verdict == "worse"

    @property
    def because(self) -> str:
        """The reason of a verdict that the mean does not give: `3 questions confirmed broken`; else empty."""
        if self.confirmation is None or self.score.verdict == "worse":
            return ""
        # Pages cut the list of flips.
        broken = self.pass_rate["broken"]
        return "" if not broken else f"{broken} question{'s' if broken > 1 else ''} confirmed broken"

    @property
    def difference(self) -> Difference:
        """The difference of the score."""
        # A bounded score always has one.
        assert self.score.difference is not None
        return self.score.difference

    def to_dict(self) -> dict[str, Any]:
        """The document of `compare --json`."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        del document["score"], document["latency"]
        for name in ("components", "metrics"):
            document[name] = {measure.name: measure.to_dict() for measure in getattr(self, name)}
        for name in ("causes", "flips", "losses"):
            document[name] = [one.to_dict() for one in getattr(self, name)]
        for name in ("fixed", "broken", "worse", "flaky", "regression"):
            document[name] = getattr(self, name)
        for name, measure in (
            ("latency_ms", self.latency),
            ("cost", self.cost),
            ("error_rate", self.error_rate),
        ):
            document[name] = None if measure is None else measure.to_dict()
        return document | {
            "base": self.base.to_dict(),
            "candidate": self.candidate.to_dict(),
            "difference": _difference_document(self.difference),
            "categories": [{"category": measure.name, **measure.to_dict()} for measure in self.categories],
        }


_ROUNDED = ("mean", "low", "high")
_SHOWN = ("level", "p_value", "method", "effect_size", "pairs", "changed", "units")


def _difference_document(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return dict.fromkeys((*_ROUNDED, "level", "p_value")) | {"method": "a single pair"}
    document: dict[str, Any] = {name: round(getattr(difference, name), 9) for name in _ROUNDED}
    return document | {name: getattr(difference, name) for name in _SHOWN}
