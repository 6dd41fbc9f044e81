"""Planning: how many questions and repeats a difference needs, from earlier runs or from a guess."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from answerkey.comparison.run_comparison import Columns, columns_from_run, joint_units, pair
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet, group_of
from answerkey.model.run import Run
from answerkey.model.scorecard import round_score
from answerkey.stats.paired import unit_sums
from answerkey.stats.power import Pilot, VarianceSplit, split_variance

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
    # What another pilot of this size would have said, nineteen times in twenty; None: there was no pilot.
    low: int | None = None
    high: int | None = None


class Flaky(msgspec.Struct, frozen=True):
    """A question whose repeats differ, and by how much."""

    id: str
    deviation: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment of some size can show, and what size another result needs; as `plan --json` has it."""

    source: Literal["two runs", "one run", "guess"]
    # Questions that there are, the units they belong to, and how often each was asked.
    questions: int
    units: int
    repeat: int
    # The size of one unit's difference between two versions: the root of its mean square.
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


def plan(
    base: Run | QuestionSet,
    candidate: Run | None = None,
    *,
    difference: float = 0.05,
    power: float = 0.8,
    deviation: float = GUESSED_DEVIATION,
    correlation: float = GUESSED_CORRELATION,
) -> Plan:
    """How many questions and repeats a difference needs: from two runs, from one, or from a golden set and a guess."""
    if isinstance(base, QuestionSet):
        units = len({group_of(question) or question.id for question in base})
        return plan_from_guess(
            len(base), units, wanted=difference, power=power, deviation=deviation, correlation=correlation
        )
    first = columns_from_run(base)
    if candidate is None:
        return plan_from_run(first, wanted=difference, power=power, correlation=correlation)
    return plan_from_pair(first, columns_from_run(candidate), wanted=difference, power=power)


def plan_from_pair(base: Columns, candidate: Columns, *, wanted: float, power: float) -> Plan:
    """From two runs over the same questions: their differences are what the next ones will be like."""
    pairing = pair(base, candidate)
    if len(pairing.base) < 2:
        raise UsageError("a plan from two runs needs at least two scored questions in common")
    differences = np.round(candidate.scores[pairing.candidate] - base.scores[pairing.base], 9)
    units = joint_units((base, pairing.base), (candidate, pairing.candidate))
    splits = [split for run in (base, candidate) if (split := split_variance(dict(run.trials()))) is not None]
    repeated = bool(splits) and _repeated(base) and _repeated(candidate)
    assumptions = ["two further versions differ on as many questions and by as much as these two did"]
    if not repeated:
        assumptions.append(
            "without repeats, how much of that is noise is not known: run with --repeat 3 to learn it"
        )
    return _plan(
        "two runs",
        len(pairing.base),
        Wanted(wanted, power),
        assumptions,
        pilot=Pilot(*unit_sums(differences, units)),
        between=splits[0].between if splits else None,
        within=math.fsum(split.within for split in splits) / len(splits) if repeated else None,
        repeat=min(base.info.repeat, candidate.info.repeat),
        splits=splits,
    )


def plan_from_run(
    run: Columns, *, wanted: float, power: float, correlation: float = GUESSED_CORRELATION
) -> Plan:
    """From one run: another version is taken to answer a share of the questions as if it were another one's turn."""
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
    known = np.flatnonzero(~np.isnan(run.scores))
    sums, sizes = unit_sums(run.scores[known], joint_units((run, known)))
    source = np.random.default_rng(0)
    means = sums / sizes
    other = source.permutation(means) if len(means) > 1 else means
    changed = source.random(len(means)) < 1.0 - correlation
    # Two draws of one question's score: as far apart as two questions' scores are.
    return _plan(
        "one run",
        split.questions,
        Wanted(wanted, power),
        assumptions,
        pilot=Pilot(np.where(changed, means - other, 0.0) * sizes, sizes),
        between=split.between,
        within=within,
        repeat=run.info.repeat,
        splits=[split],
    )


def plan_from_guess(
    questions: int,
    units: int | None = None,
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
    size = questions / (units or questions)
    # A share of the units differs by as much as two scores of this spread do, either way, and the others are tied.
    number = np.arange(1000)
    changes = np.where(number % 2, 1.0, -1.0) * deviation * math.sqrt(2.0)
    pilot = Pilot(np.where(number < 1000 * (1.0 - correlation), changes, 0.0) * size, np.full(1000, size))
    return _plan("guess", questions, Wanted(wanted, power), [assumption], pilot=pilot)


def _plan(
    source: Literal["two runs", "one run", "guess"],
    questions: int,
    wanted: Wanted,
    assumptions: Sequence[str],
    *,
    pilot: Pilot,
    between: float | None = None,
    within: float | None = None,
    repeat: int = 1,
    splits: Sequence[VarianceSplit] = (),
) -> Plan:
    """A plan from pilot units with so many repeats; `within` is the part of the variance that a trial has by itself."""
    variance = float((pilot.sums**2).mean()) / pilot.questions**2
    # Repeats shrink only their own part of the variance.
    noise = 2.0 * (within or 0.0) / pilot.questions
    stable = max(0.0, variance - noise / repeat)
    often = sorted({repeat, *(_REPEATS if within is not None else ())})
    ratios = {count: (stable + noise / count) / variance if variance > 0.0 else 1.0 for count in often}
    units = max(2, round(questions / pilot.questions))

    def needed(difference: float, named: float | None = None) -> list[Needed]:
        found = pilot.units_needed(difference, wanted.power)
        low, high = (None, None) if source == "guess" else pilot.spread(difference)
        rows = []
        for count, ratio in ratios.items():
            at = [
                None
                if found is None or factor is None
                else math.ceil(found * pilot.questions * ratio * factor)
                for factor in (1.0, low, high)
            ]
            rows.append(Needed(difference=named, repeat=count, questions=at[0], low=at[1], high=at[2]))
        return rows

    detectable = pilot.detectable(units, wanted.power)
    return Plan(
        source=source,
        questions=questions,
        units=units,
        repeat=repeat,
        deviation=round_score(math.sqrt(variance)),
        variance=Variance(between, within),
        wanted=wanted,
        needed=tuple(needed(wanted.difference)),
        detectable=None if detectable is None else round_score(detectable),
        power=round_score(pilot.power(units, wanted.difference)),
        table=tuple(row for difference in _DIFFERENCES for row in needed(difference, difference)),
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
