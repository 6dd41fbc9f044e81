"""Calibration: how far a run's judge agrees with people, and what its pass rate is once its errors are taken out."""

from collections.abc import Iterable

import msgspec

from answerkey.errors import UsageError
from answerkey.judge.judgement_of_reply import JUDGE
from answerkey.judge.labels import Key, Labels
from answerkey.model.trial import Trial
from answerkey.stats.agreement import Confusion, Kappa, cohen_kappa
from answerkey.stats.corrected_rates import CorrectedRate, prediction_powered_rate, rogan_gladen_rate
from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval

__all__ = ["Calibration", "Rate", "calibrate", "judge_values"]

# Below this many labels, or with fewer than this of each kind, the numbers say little.
_FEW, _FEW_OF_A_KIND = 30, 5


class Rate(msgspec.Struct, frozen=True):
    """A share with its interval."""

    value: float
    n: int
    interval: Interval | None


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge against people, as `judge calibrate --json` prints it."""

    # Replies that people labelled and the judge judged; replies that only the judge judged; and those it did not.
    labelled: int
    unlabelled: int
    unjudged: int
    # Where the labels come from, and replies left out because people were evenly split.
    source: str
    split: int
    # The judge passes a reply from this value on.
    pass_mark: float
    confusion: Confusion
    agreement: Rate
    kappa: Kappa | None
    # Of what people call right, how much the judge passes; of what they call wrong, how much it fails.
    sensitivity: Rate | None
    specificity: Rate | None
    # The judge's pass rate minus people's, on the same replies: above 0, it is lenient.
    bias: float
    bias_interval: Interval | None
    # McNemar's: are its errors as often in either direction?
    bias_p_value: float | None
    human_rate: Rate
    judge_rate: Rate
    # The corrected pass rate of all replies; None where it cannot be had.
    prediction_powered: CorrectedRate | None
    rogan_gladen: CorrectedRate | None
    warnings: tuple[str, ...] = ()


def judge_values(results: Iterable[Trial]) -> dict[Key, float | None]:
    """The judge's value of each reply of a run, None where it has none; refuses a run that was not judged."""
    found: dict[Key, float | None] = {}
    judged = False
    for result in results:
        metrics = result.scorecard.metrics
        judged = judged or JUDGE in metrics
        found[(result.question.id, result.number)] = metrics.get(JUDGE)
    if not judged:
        raise UsageError("the run was not judged; judge it first: answerkey rescore RUN --judge MODEL")
    return found


def calibrate(
    values: dict[Key, float | None], labels: Labels, *, pass_mark: float, level: float = 0.95
) -> Calibration:
    """Compare a judge's values with people's verdicts; the verdicts should be on a random sample of the replies."""
    passes = {key: value >= pass_mark - 1e-9 for key, value in values.items() if value is not None}
    pairs = [(right, passes[key]) for key, right in labels.right.items() if key in passes]
    if not pairs:
        raise UsageError("no reply has both a verdict of people and one of the judge; label some replies")
    rest = [float(passed) for key, passed in passes.items() if key not in labels.right]
    table = Confusion(*(pairs.count(kind) for kind in _CELLS))
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    human, judged = ([float(pair[k]) for pair in pairs] for k in (0, 1))
    return Calibration(
        labelled=len(pairs),
        unlabelled=len(rest),
        unjudged=len(values) - len(passes),
        source=labels.source,
        split=labels.split,
        pass_mark=pass_mark,
        confusion=table,
        agreement=_rate(table.true_positive + table.true_negative, len(pairs), level),
        kappa=cohen_kappa(table, level=level),
        sensitivity=_rate(table.true_positive, right, level) if right else None,
        specificity=_rate(table.true_negative, wrong, level) if wrong else None,
        bias=(table.false_positive - table.false_negative) / len(pairs),
        bias_interval=newcombe_interval(
            both=table.true_positive,
            fixed=table.false_positive,
            broken=table.false_negative,
            neither=table.true_negative,
            level=level,
        ),
        bias_p_value=mcnemar_p_value(table.false_positive, table.false_negative),
        human_rate=_rate(right, len(pairs), level),
        judge_rate=_rate(sum(passes.values()), len(passes), level),
        prediction_powered=prediction_powered_rate(human, judged, rest, level=level),
        rogan_gladen=rogan_gladen_rate(
            sum(passes.values()),
            len(passes),
            sensitive=table.true_positive,
            positives=right,
            specific=table.true_negative,
            negatives=wrong,
            level=level,
        ),
        warnings=_warnings(table, labels, repeated=len({key[0] for key in values}) < len(values)),
    )


# (people say right, the judge passes), in the order of Confusion's fields.
_CELLS = ((True, True), (False, True), (True, False), (False, False))


def _rate(count: int, n: int, level: float) -> Rate:
    return Rate(count / n, n, wilson_interval(count, n, level=level))


def _warnings(table: Confusion, labels: Labels, *, repeated: bool) -> tuple[str, ...]:
    lines = []
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    if table.n < _FEW:
        lines.append(f"{table.n} labels say little; label at least {_FEW} replies drawn at random")
    elif min(right, wrong) < _FEW_OF_A_KIND:
        few = "wrong" if wrong < right else "right"
        lines.append(
            f"people call only {min(right, wrong)} replies {few}, too few to know how the judge sees those"
        )
    if right and wrong and table.true_positive / right + table.true_negative / wrong <= 1:
        lines.append("the judge is no better than chance on these labels; do not use its scores")
    if labels.self_selected:
        lines.append(
            "users chose themselves which replies to rate, so the corrected rates may be biased; "
            "have a random sample reviewed"
        )
    if labels.split:
        lines.append(f"people are evenly split on {labels.split} replies, which are left out")
    if repeated:
        lines.append(
            "trials of one question are counted as if they were independent, so intervals are too narrow"
        )
    return tuple(lines)
