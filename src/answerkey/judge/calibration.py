"""Calibration: how far a run's judge agrees with people, and its mean, rate and change once its errors are taken out."""

import random
from collections.abc import Hashable, Iterable
from math import log1p

import msgspec

from answerkey.errors import UsageError
from answerkey.judge.judgement_of_reply import JUDGE
from answerkey.judge.labels import Key, Labels
from answerkey.model.question import group_of
from answerkey.model.trial import Trial
from answerkey.stats.agreement import Confusion, Kappa, cohen_kappa
from answerkey.stats.corrected_means import (
    Corrected,
    JudgedSample,
    labels_needed,
    prediction_powered_difference,
    prediction_powered_mean,
    rogan_gladen_rate,
)
from answerkey.stats.correlation import correlate
from answerkey.stats.intervals import Interval, mean_interval, wilson_interval
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval

# Below this many labels, or with fewer than this of each kind, the numbers say little.
_FEW, _FEW_OF_A_KIND = 30, 5


class JudgedReplies(msgspec.Struct, frozen=True):
    """What a judge made of a run's replies."""

    # Reply → the judge's value; None where it gave none.
    values: dict[Key, float | None]
    # Question id → the unit that it belongs to: its group, or itself.
    units: dict[str, Hashable]
    # The judge passes a reply from this value on.
    pass_mark: float
    # Reply → its length in characters.
    lengths: dict[Key, int] = {}

    def verbosity(self, labels: Labels) -> "Rate | None":
        """Correlation of what the judge gives beyond people's score with a reply's length: above 0, length pays."""
        known = [key for key in labels.scores if self.values.get(key) is not None and key in self.lengths]
        beyond = [(self.values[key] or 0.0) - labels.scores[key] for key in known]
        found = correlate([log1p(self.lengths[key]) for key in known], beyond)
        if found is None:
            return None
        # Of replies that lie on one line Fisher's interval is a point, however few they are.
        interval = None if abs(found.r) == 1.0 else Interval(found.low, found.high, 0.95)
        return Rate(found.r, found.pairs, interval)

    def sample(self, labels: Labels, *, passes: bool) -> JudgedSample:
        """The labelled replies and the others, as passes or as values; people's label is 0 or 1, or their score."""
        found: dict[Key, float] = {
            key: float(value >= self.pass_mark - 1e-9) if passes else value
            for key, value in self.values.items()
            if value is not None
        }
        people = {key: float(right) for key, right in labels.right.items()} if passes else labels.scores
        known = [key for key in found if key in people]
        rest = [key for key in found if key not in people]
        return JudgedSample(
            [people[key] for key in known],
            [found[key] for key in known],
            [self.units.get(key[0], key[0]) for key in known],
            [found[key] for key in rest],
            [self.units.get(key[0], key[0]) for key in rest],
        )


class Rate(msgspec.Struct, frozen=True):
    """A share with its interval."""

    value: float
    n: int
    interval: Interval | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two judged runs, candidate minus base, once the judge's errors are taken out."""

    # By the judge alone, which is wrong by as much as it errs more on one of them.
    judge_rate: float
    judge_mean: float
    # None where one of the runs lacks labelled or other replies.
    rate: Corrected | None
    mean: Corrected | None


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
    prediction_powered: Corrected | None
    rogan_gladen: Corrected | None
    # The judge's mean value over all replies, and corrected by people's scores (right 1, wrong 0).
    judge_mean: Rate
    corrected_mean: Corrected | None
    # Labels in all that make the corrected rate's interval ± this; None: not even all replies' would.
    half_width: float
    labels_needed: int | None
    # Correlation of the judge's excess over people with the reply's length; None: it does not vary, or there are too few.
    verbosity: Rate | None = None
    # Against a base run that has labels too.
    change: Change | None = None
    warnings: tuple[str, ...] = ()


def judged_replies(results: Iterable[Trial], *, pass_mark: float) -> JudgedReplies:
    """The judge's value of each reply of a run; refuses a run that was not judged."""
    values: dict[Key, float | None] = {}
    units: dict[str, Hashable] = {}
    lengths: dict[Key, int] = {}
    judged = False
    for result in results:
        metrics = result.scorecard.metrics
        judged = judged or JUDGE in metrics
        values[(result.question.id, result.number)] = metrics.get(JUDGE)
        units[result.question.id] = group_of(result.question) or result.question.id
        lengths[(result.question.id, result.number)] = sum(len(reply.text or "") for reply in result.replies)
    if not judged:
        raise UsageError("the run was not judged; judge it first: answerkey rescore RUN --judge MODEL")
    return JudgedReplies(values, units, pass_mark, lengths)


def draw_to_label(replies: JudgedReplies, count: int, *, seed: int = 0) -> list[Key]:
    """A random sample of the judged replies, always the same for a seed; a larger one begins with a smaller one."""
    keys = sorted(key for key, value in replies.values.items() if value is not None)
    random.Random(seed).shuffle(keys)
    return keys[:count]


def change_between(base: JudgedReplies, candidate: JudgedReplies, labels: tuple[Labels, Labels]) -> Change:
    """What the labels of both runs make of their difference."""
    rates, means = (
        [run.sample(given, passes=passes) for run, given in zip((base, candidate), labels, strict=True)]
        for passes in (True, False)
    )
    return Change(
        judge_rate=_judge_mean(rates[1]) - _judge_mean(rates[0]),
        judge_mean=_judge_mean(means[1]) - _judge_mean(means[0]),
        rate=prediction_powered_difference(*rates),
        mean=prediction_powered_difference(*means),
    )


def _judge_mean(sample: JudgedSample) -> float:
    values = [*sample.judged, *sample.rest]
    return sum(values) / len(values) if values else 0.0


def calibrate_judge(
    replies: JudgedReplies, labels: Labels, *, half_width: float = 0.05, level: float = 0.95
) -> Calibration:
    """Compare a judge's values with people's verdicts; the verdicts should be on a random sample of the replies."""
    sample = replies.sample(labels, passes=True)
    pairs = list(zip(map(bool, sample.human), map(bool, sample.judged), strict=True))
    if not pairs:
        raise UsageError("no reply has both a verdict of people and one of the judge; label some replies")
    table = Confusion(*(pairs.count(kind) for kind in _CELLS))
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    passed, judged = int(sum(sample.judged) + sum(sample.rest)), len(pairs) + len(sample.rest)
    units = [*sample.units, *sample.rest_units]
    scores = replies.sample(labels, passes=False)
    values = [*scores.judged, *scores.rest]
    needed = labels_needed(sample, half_width, level=level)
    return Calibration(
        labelled=len(pairs),
        unlabelled=len(sample.rest),
        unjudged=len(replies.values) - judged,
        source=labels.source,
        split=labels.split,
        pass_mark=replies.pass_mark,
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
        judge_rate=Rate(
            passed / judged, judged, mean_interval([*sample.judged, *sample.rest], units, level=level)
        ),
        prediction_powered=prediction_powered_mean(sample, level=level),
        rogan_gladen=rogan_gladen_rate(
            passed,
            judged,
            sensitive=table.true_positive,
            positives=right,
            specific=table.true_negative,
            negatives=wrong,
            level=level,
        ),
        judge_mean=Rate(_judge_mean(scores), judged, mean_interval(values, units, level=level)),
        corrected_mean=prediction_powered_mean(scores, level=level),
        half_width=half_width,
        labels_needed=needed,
        verbosity=replies.verbosity(labels),
        warnings=_warnings(table, labels, grouped=len(set(sample.units)) < len(sample.units)),
    )


# (people say right, the judge passes), in the order of Confusion's fields.
_CELLS = ((True, True), (False, True), (True, False), (False, False))


def _rate(count: int, n: int, level: float) -> Rate:
    return Rate(count / n, n, wilson_interval(count, n, level=level))


def _warnings(table: Confusion, labels: Labels, *, grouped: bool) -> tuple[str, ...]:
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
    if grouped:
        lines.append(
            "labelled replies of one question or group are counted as if they were independent, except in the rates and "
            "means corrected by PPI++; the other intervals are too narrow"
        )
    return tuple(lines)
