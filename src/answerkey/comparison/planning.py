"""Planning: how many questions and repeats a difference needs, from earlier runs or from a guess."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns
from answerkey.comparison.pairing import pair
from answerkey.errors import UsageError
from answerkey.model.scorecard import round_score
from answerkey.stats.power import (
    VarianceSplit,
    detectable_difference,
    power_of,
    questions_needed,
    split_variance,
)

__all__ = ["Plan", "plan_from_guess", "plan_from_pair", "plan_from_run"]

# Standard deviation of question scores where there is no run to learn it from: that of a fair chatbot.
GUESSED_DEVIATION = 0.3
# How alike two versions do on the same question, where no second run says so.
GUESSED_CORRELATION = 0.5
_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.10)
_REPEATS = (1, 2, 3, 5)
_FLAKY_LISTED = 20


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment of some size can show, and what size another result needs."""

    source: Literal["two runs", "one run", "guess"]
    # Questions and repeats that there are.
    questions: int
    repeat: int
    # Standard deviation of the difference of one question's mean score between two versions.
    deviation: float
    # Variance of question scores between questions, and between repeats of one; None: not known.
    between: float | None
    within: float | None
    wanted: float
    power: float
    # Questions needed for the wanted difference, by number of repeats; None: no feasible number.
    needed: dict[int, int | None]
    # What the questions at hand can detect, and the chance that they show the wanted difference.
    detectable: float | None
    power_at_hand: float
    table: tuple[dict[str, Any], ...]
    # Questions whose repeats differ, most unstable first: (id, standard deviation).
    flaky: tuple[tuple[str, float], ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `plan --json` has it."""
        return {
            "source": self.source,
            "questions": self.questions,
            "repeat": self.repeat,
            "deviation": round_score(self.deviation),
            "variance": {"between_questions": self.between, "between_repeats": self.within},
            "wanted": {"difference": self.wanted, "power": self.power},
            "needed": [{"repeat": repeat, "questions": n} for repeat, n in self.needed.items()],
            "detectable": self.detectable,
            "power": round_score(self.power_at_hand),
            "table": list(self.table),
            "flaky": [{"id": identity, "deviation": round_score(sd)} for identity, sd in self.flaky],
            "assumptions": list(self.assumptions),
        }


def plan_from_pair(base: Columns, candidate: Columns, *, wanted: float, power: float) -> Plan:
    """From two runs over the same questions: their differences are what the next ones will be like."""
    pairing = pair(base, candidate)
    n = len(pairing.base)
    if n < 2:
        raise UsageError("a plan from two runs needs at least two scored questions in common")
    variance = float(np.var(candidate.scores[pairing.candidate] - base.scores[pairing.base], ddof=1))
    repeat = min(base.info.repeat, candidate.info.repeat)
    splits = [split for split in (_split(base), _split(candidate)) if split is not None]
    within = (
        math.fsum(s.within for s in splits) / len(splits) if splits and _repeated(base, candidate) else None
    )
    # Repeats shrink only their own part of the variance.
    noise = 0.0 if within is None else 2.0 * within / repeat
    stable = max(0.0, variance - noise)
    assumptions = [
        f"two further versions differ as these two did (standard deviation {math.sqrt(variance):.3f})"
    ]
    if within is None:
        assumptions.append(
            "without repeats, how much of that is noise is not known: run with --repeat 3 to learn it"
        )
    flaky = _merge_flaky(splits)
    between = splits[0].between if splits else None
    return _plan("two runs", n, repeat, stable, within, between, wanted, power, flaky, assumptions, variance)


def plan_from_run(
    run: Columns, *, wanted: float, power: float, correlation: float = GUESSED_CORRELATION
) -> Plan:
    """From one run: the spread of its scores, and a guess how alike another version does on each question."""
    split = _split(run)
    if split is None:
        raise UsageError(
            f"run {run.info.id} has fewer than two scored questions: nothing can be planned from it"
        )
    repeated = _repeated(run)
    within = split.within if repeated else None
    stable = 2.0 * split.between * (1.0 - correlation)
    assumptions = [
        f"two versions correlate by {correlation:g} over questions (--correlation); two runs would tell"
    ]
    if not repeated:
        assumptions.append(
            "without repeats, noise and difficulty cannot be told apart: run with --repeat 3 to learn it"
        )
    variance = stable + (2.0 * within / run.info.repeat if within is not None else 0.0)
    return _plan(
        "one run",
        split.questions,
        run.info.repeat,
        stable,
        within,
        split.between,
        wanted,
        power,
        split.flaky,
        assumptions,
        variance,
    )


def plan_from_guess(
    questions: int,
    *,
    wanted: float,
    power: float,
    deviation: float = GUESSED_DEVIATION,
    correlation: float = GUESSED_CORRELATION,
) -> Plan:
    """Before any run: from a guess of the spread of scores."""
    stable = 2.0 * deviation**2 * (1.0 - correlation)
    assumptions = [
        f"no run yet: scores spread by {deviation:g} (--deviation) and versions correlate by {correlation:g} "
        "(--correlation); a first run would tell"
    ]
    return _plan("guess", questions, 1, stable, None, None, wanted, power, (), assumptions, stable)


def _plan(
    source: Literal["two runs", "one run", "guess"],
    questions: int,
    repeat: int,
    stable: float,
    within: float | None,
    between: float | None,
    wanted: float,
    power: float,
    flaky: tuple[tuple[str, float], ...],
    assumptions: list[str],
    variance: float,
) -> Plan:
    def deviation(repeats: int) -> float:
        return math.sqrt(stable + (2.0 * within / repeats if within is not None else 0.0))

    repeats = sorted({repeat, *(_REPEATS if within is not None else (repeat,))})
    at_hand = math.sqrt(variance)
    detectable = detectable_difference(at_hand / math.sqrt(questions), questions - 1, power=power)
    return Plan(
        source=source,
        questions=questions,
        repeat=repeat,
        deviation=at_hand,
        between=between,
        within=within,
        wanted=wanted,
        power=power,
        needed={k: questions_needed(deviation(k), wanted, power=power) for k in repeats},
        detectable=None if detectable is None else round_score(min(detectable, 1.0)),
        power_at_hand=power_of(questions, at_hand, wanted),
        table=tuple(_table(repeats, deviation, power)),
        flaky=flaky[:_FLAKY_LISTED],
        assumptions=tuple(assumptions),
    )


def _table(repeats: list[int], deviation: Any, power: float) -> Iterator[dict[str, Any]]:
    for difference in _DIFFERENCES:
        for repeat in repeats:
            needed = questions_needed(deviation(repeat), difference, power=power)
            yield {"difference": difference, "repeat": repeat, "questions": needed}


def _split(run: Columns) -> VarianceSplit | None:
    return split_variance(dict(run.trials()))


def _repeated(*runs: Columns) -> bool:
    return all(
        run.trial_starts is not None and len(run.trial_starts) < run.replies and run.info.repeat > 1
        for run in runs
    )


def _merge_flaky(splits: list[VarianceSplit]) -> tuple[tuple[str, float], ...]:
    worst: dict[str, float] = {}
    for split in splits:
        for identity, sd in split.flaky:
            worst[identity] = max(sd, worst.get(identity, 0.0))
    return tuple(sorted(worst.items(), key=lambda item: (-item[1], item[0])))
