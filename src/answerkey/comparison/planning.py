"""Planning: how many questions and repeats a difference needs, from earlier runs or from a guess."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns
from answerkey.comparison.run_pairing import pair
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


class Variance(msgspec.Struct, frozen=True):
    """Where the variance of question scores comes from; None: not known."""

    between_questions: float | None
    between_repeats: float | None


class Wanted(msgspec.Struct, frozen=True):
    """The difference to be shown, and the chance to show it."""

    difference: float
    power: float


class Needed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Questions that a difference needs if each is asked so often; None: no feasible number."""

    # None: the wanted one.
    difference: float | None = None
    repeat: int
    questions: int | None


class Flaky(msgspec.Struct, frozen=True):
    """A question whose repeats differ, and by how much."""

    id: str
    deviation: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment of some size can show, and what size another result needs; as `plan --json` has it."""

    source: Literal["two runs", "one run", "guess"]
    # Questions and repeats that there are.
    questions: int
    repeat: int
    # Standard deviation of the difference of one question's mean score between two versions.
    deviation: float
    variance: Variance
    wanted: Wanted
    needed: tuple[Needed, ...]
    # What the questions at hand can detect, and the chance that they show the wanted difference.
    detectable: float | None
    power: float
    # The same as `needed` for usual differences.
    table: tuple[Needed, ...]
    # Most unstable first.
    flaky: tuple[Flaky, ...]
    assumptions: tuple[str, ...]


def plan_from_pair(base: Columns, candidate: Columns, *, wanted: float, power: float) -> Plan:
    """From two runs over the same questions: their differences are what the next ones will be like."""
    pairing = pair(base, candidate)
    if len(pairing.base) < 2:
        raise UsageError("a plan from two runs needs at least two scored questions in common")
    variance = float(np.var(candidate.scores[pairing.candidate] - base.scores[pairing.base], ddof=1))
    splits = [split for run in (base, candidate) if (split := split_variance(dict(run.trials()))) is not None]
    repeated = bool(splits) and _repeated(base) and _repeated(candidate)
    assumptions = [
        f"two further versions differ as these two did (standard deviation {math.sqrt(variance):.3f})"
    ]
    if not repeated:
        assumptions.append(
            "without repeats, how much of that is noise is not known: run with --repeat 3 to learn it"
        )
    return _plan(
        "two runs",
        len(pairing.base),
        Wanted(wanted, power),
        assumptions,
        variance=variance,
        between=splits[0].between if splits else None,
        within=math.fsum(split.within for split in splits) / len(splits) if repeated else None,
        repeat=min(base.info.repeat, candidate.info.repeat),
        splits=splits,
    )


def plan_from_run(
    run: Columns, *, wanted: float, power: float, correlation: float = GUESSED_CORRELATION
) -> Plan:
    """From one run: the spread of its scores, and a guess how alike another version does on each question."""
    split = split_variance(dict(run.trials()))
    if split is None:
        raise UsageError(
            f"run {run.info.id} has fewer than two scored questions: nothing can be planned from it"
        )
    within = split.within if _repeated(run) else None
    assumptions = [
        f"two versions correlate by {correlation:g} over questions (--correlation); two runs would tell"
    ]
    if within is None:
        assumptions.append(
            "without repeats, noise and difficulty cannot be told apart: run with --repeat 3 to learn it"
        )
    return _plan(
        "one run",
        split.questions,
        Wanted(wanted, power),
        assumptions,
        variance=2.0 * split.between * (1.0 - correlation) + 2.0 * (within or 0.0) / run.info.repeat,
        between=split.between,
        within=within,
        repeat=run.info.repeat,
        splits=[split],
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
    assumption = (
        f"no run yet: scores spread by {deviation:g} (--deviation) and versions correlate by {correlation:g} "
        "(--correlation); a first run would tell"
    )
    variance = 2.0 * deviation**2 * (1.0 - correlation)
    return _plan("guess", questions, Wanted(wanted, power), [assumption], variance=variance)


def _plan(
    source: Literal["two runs", "one run", "guess"],
    questions: int,
    wanted: Wanted,
    assumptions: Sequence[str],
    *,
    variance: float,
    between: float | None = None,
    within: float | None = None,
    repeat: int = 1,
    splits: Sequence[VarianceSplit] = (),
) -> Plan:
    """A plan for differences of this variance with so many repeats, of which `within` is a trial's own part."""
    power = wanted.power
    deviation = math.sqrt(variance)
    detectable = detectable_difference(deviation / math.sqrt(questions), questions - 1, power=power)
    # Repeats shrink only their own part of the variance.
    noise = 2.0 * (within or 0.0)
    stable = max(0.0, variance - noise / repeat)
    repeats = sorted({repeat, *(_REPEATS if within is not None else ())})
    deviations = {often: math.sqrt(stable + noise / often) for often in repeats}
    return Plan(
        source=source,
        questions=questions,
        repeat=repeat,
        deviation=round_score(deviation),
        variance=Variance(between, within),
        wanted=wanted,
        needed=tuple(
            Needed(repeat=often, questions=questions_needed(spread, wanted.difference, power=power))
            for often, spread in deviations.items()
        ),
        detectable=None if detectable is None else round_score(min(detectable, 1.0)),
        power=round_score(power_of(questions, deviation, wanted.difference)),
        table=tuple(
            Needed(
                difference=difference,
                repeat=often,
                questions=questions_needed(spread, difference, power=power),
            )
            for difference in _DIFFERENCES
            for often, spread in deviations.items()
        ),
        flaky=_flaky(splits),
        assumptions=tuple(assumptions),
    )


def _repeated(run: Columns) -> bool:
    return run.trial_starts is not None and len(run.trial_starts) < run.replies


def _flaky(splits: Sequence[VarianceSplit]) -> tuple[Flaky, ...]:
    worst: dict[str, float] = {}
    for split in splits:
        for identity, deviation in split.flaky:
            worst[identity] = max(deviation, worst.get(identity, 0.0))
    ordered = sorted(worst.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Flaky(identity, round_score(deviation)) for identity, deviation in ordered[:_FLAKY_LISTED])
