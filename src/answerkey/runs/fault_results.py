"""What a run of faults showed: a case for each faulted trial, outcomes, resilience by tool and kind, gates."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.gates import Gate, GateSubject, evaluate_gates, parse_gate
from answerkey.model.fault import OUTCOMES, RESILIENCE, RESILIENT, Fault, FaultSettings, Outcome, OutcomeName
from answerkey.model.run import GateResult, Run
from answerkey.model.scorecard import Scorecard, Trial, round_score
from answerkey.stats.intervals import Interval, mean_interval

NOT_LANDED = "not_landed"


class FaultCase(msgspec.Struct, frozen=True, kw_only=True):
    """One faulted trial beside its clean twin."""

    id: str
    trial: int
    question: str
    # None: no fault was planned.
    fault: Fault | None
    landed: bool
    # Why the outcome is called that, or why the fault did not land.
    because: str
    outcome: OutcomeName | None = None
    # The deciding words of the reply.
    words: tuple[tuple[int, int], ...] = ()
    reply: str | None = None
    clean_reply: str | None = None
    score: float | None = None
    clean_score: float | None = None
    # What the chatbot got instead of the tool's result.
    planted: Any = None
    # Times that the same outcome came again, of how many times it was asked again.
    confirmed: tuple[int, int] | None = None

    @property
    def is_resilient(self) -> bool:
        """Whether the chatbot recovered or was honest."""
        return self.outcome in RESILIENT

    def to_dict(self) -> dict[str, Any]:
        """The case in the document."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        del document["fault"]
        fault = {} if self.fault is None else msgspec.structs.asdict(self.fault)
        return {
            **document,
            **{name: fault.get(name) for name in ("tool", "kind", "call", "turn")},
            "outcome": self.outcome or NOT_LANDED,
        }


class FaultGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of all faults, of one tool or of one kind."""

    name: str
    planned: int
    landed: int
    outcomes: dict[str, int]
    # None: nothing landed.
    resilience: float | None
    interval: Interval | None

    def share(self, *outcomes: OutcomeName) -> float:
        """The share of landed faults with one of these outcomes."""
        return sum(self.outcomes[name] for name in outcomes) / self.landed if self.landed else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The group in the document."""
        low, high = (None, None) if self.interval is None else (self.interval.low, self.interval.high)
        return {
            "planned": self.planned,
            "landed": self.landed,
            "outcomes": self.outcomes,
            "resilience": {"value": self.resilience, "low": low, "high": high},
        }


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run of faults."""

    clean: Run
    faulted: Run
    settings: FaultSettings
    cases: tuple[FaultCase, ...]
    summary: FaultGroup
    tools: tuple[FaultGroup, ...]
    kinds: tuple[FaultGroup, ...]
    # Clean minus faulted score of the questions whose fault landed.
    loss: float | None
    loss_interval: Interval | None
    gates: tuple[GateResult, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome → number of cases."""
        return self.summary.outcomes

    @property
    def resilience(self) -> float | None:
        """The share of landed faults after which the chatbot recovered or was honest."""
        return self.summary.resilience

    @property
    def not_landed(self) -> dict[str, int]:
        """Why faults did not land → how many."""
        return dict(Counter(case.because for case in self.cases if not case.landed).most_common())

    def to_dict(self) -> dict[str, Any]:
        """The document of `faults --json`."""
        low, high = (
            (None, None) if self.loss_interval is None else (self.loss_interval.low, self.loss_interval.high)
        )
        return {
            "clean": {"run": self.clean.id, "score": self.clean.summary.score},
            "faulted": {"run": self.faulted.id, "score": self.faulted.summary.score},
            "summary": self.summary.to_dict()
            | {"loss": {"value": self.loss, "low": low, "high": high}, "not_landed": self.not_landed},
            "tools": [{"tool": group.name, **group.to_dict()} for group in self.tools],
            "kinds": [{"kind": group.name, **group.to_dict()} for group in self.kinds],
            "gates": [msgspec.to_builtins(gate) for gate in self.gates],
            "warnings": list(self.warnings),
            "cases": [case.to_dict() for case in self.cases],
        }


def fault_result(
    clean: Run,
    faulted: Run,
    *,
    warnings: Iterable[str] = (),
    confirmed: Mapping[tuple[str, int], tuple[int, int]] | None = None,
) -> FaultResult:
    """What both runs of a pass with faults showed."""
    link = faulted.info.experiment
    settings = (link and link.faults) or FaultSettings()
    twins = {trial.question.id: trial for trial in clean.results}
    cases = tuple(_case(trial, twins.get(trial.question.id)) for trial in faulted.results)
    again = confirmed or {}
    cases = tuple(msgspec.structs.replace(case, confirmed=again.get((case.id, case.trial))) for case in cases)
    pairs = [
        (case.id, case.clean_score - case.score)
        for case in cases
        if case.landed and case.score is not None and case.clean_score is not None
    ]
    losses = [loss for _, loss in pairs]
    return FaultResult(
        clean=clean,
        faulted=faulted,
        settings=settings,
        cases=cases,
        summary=_group("", cases),
        tools=tuple(_groups(cases, lambda fault: fault.tool)),
        kinds=tuple(_groups(cases, lambda fault: fault.kind)),
        loss=round_score(fsum(losses) / len(losses)) if losses else None,
        loss_interval=mean_interval(losses, [name for name, _ in pairs], bounded=False) if losses else None,
        warnings=tuple(dict.fromkeys(warnings)),
    )


# Numbers that a gate may name beside the outcomes.
_NUMBERS: dict[str, Callable[[FaultResult], float | None]] = {
    "resilience": lambda result: result.resilience,
    "resilience.low": lambda result: None if (one := result.summary.interval) is None else one.low,
    "resilience.high": lambda result: None if (one := result.summary.interval) is None else one.high,
    "planned": lambda result: result.summary.planned,
    "landed": lambda result: result.summary.landed,
    "loss": lambda result: result.loss,
    "clean_score": lambda result: result.clean.summary.score,
    "faulted_score": lambda result: result.faulted.summary.score,
}


def with_fault_gates(result: FaultResult, gates: Sequence[str]) -> FaultResult:
    """The result with gates such as `resilience >= 0.8`, `fabricated == 0` and `landed >= 20` evaluated."""
    numbers = {name: number(result) for name, number in _NUMBERS.items()} | result.outcomes
    subject = GateSubject(numbers=dict(numbers))
    return msgspec.structs.replace(result, gates=tuple(evaluate_gates(check_fault_gates(gates), subject)))


def check_fault_gates(gates: Sequence[str]) -> list[Gate]:
    """Parse gates before anything is asked, and refuse names that a run of faults does not have."""
    known = (*_NUMBERS, *OUTCOMES)
    parsed = [parse_gate(gate) for gate in gates]
    for gate in parsed:
        if gate.name not in known:
            raise UnknownNameError(
                f"gate {gate.text!r}: {gate.name!r} is unknown for faults; there are {', '.join(known)}"
            )
    return parsed


def _case(trial: Trial, twin: Trial | None) -> FaultCase:
    number, reply = next(
        ((number, reply) for number, reply in enumerate(trial.replies) if reply.fault is not None),
        (0, trial.replies[0]),
    )
    record = reply.fault
    clean = None if twin is None or number >= len(twin.replies) else twin.replies[number]
    outcome = outcome_of(trial.scorecard)
    landed = record is not None and record.landed
    because = "" if record is None else record.reason
    return FaultCase(
        id=trial.question.id,
        trial=trial.number,
        question=trial.question.asks[number].question,
        fault=None if record is None else record.fault,
        landed=landed,
        outcome=None if outcome is None else outcome.name,
        because=because if outcome is None else outcome.because,
        words=() if outcome is None else outcome.words,
        reply=reply.text,
        clean_reply=None if clean is None else clean.text,
        score=trial.score,
        clean_score=None if twin is None else twin.score,
        planted=None if record is None else record.error or record.result,
    )


def outcome_of(card: Scorecard) -> Outcome | None:
    """The outcome in a scorecard; of a conversation, in that of the broken turn."""
    for one in card.turns or (card,):
        found: Mapping[str, Any] | None = one.findings.get(RESILIENCE)
        if found is not None and "name" in found:
            return msgspec.convert(
                {key: found[key] for key in Outcome.__struct_fields__ if key in found}, Outcome
            )
    return None


def _groups(cases: Sequence[FaultCase], name: Callable[[Fault], str]) -> Iterator[FaultGroup]:
    """A group for each tool or kind, the least resilient first."""
    groups: dict[str, list[FaultCase]] = {}
    for case in cases:
        if case.fault is not None:
            groups.setdefault(name(case.fault), []).append(case)
    made = [_group(name, chosen) for name, chosen in groups.items()]
    yield from sorted(made, key=lambda group: (group.resilience is None, group.resilience, group.name))


def _group(name: str, cases: Sequence[FaultCase]) -> FaultGroup:
    landed = [case for case in cases if case.outcome is not None]
    values = [float(case.is_resilient) for case in landed]
    outcomes = Counter(case.outcome for case in landed)
    return FaultGroup(
        name=name,
        planned=sum(case.fault is not None for case in cases),
        landed=len(landed),
        outcomes={outcome: outcomes[outcome] for outcome in OUTCOMES},
        resilience=round_score(fsum(values) / len(values)) if values else None,
        # A question asked with several faults is one unit.
        interval=mean_interval(values, [case.id for case in landed]) if values else None,
    )
