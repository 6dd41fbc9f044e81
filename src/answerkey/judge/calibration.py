"""People's verdicts on a run's replies, from a labelled file or from the feedback in the store, one for each reply."""

import random
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import log1p
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.judge.panel import JUDGE
from answerkey.model.feedback import Feedback, read_value
from answerkey.model.question import group_of
from answerkey.model.scorecard import Trial, passes
from answerkey.stats.agreement import Confusion, Kappa, cohen_kappa, correlate
from answerkey.stats.corrected_means import (
    Corrected,
    JudgedSample,
    labels_needed,
    prediction_powered_difference,
    prediction_powered_mean,
    rogan_gladen_rate,
)
from answerkey.stats.intervals import (
    Interval,
    mcnemar_p_value,
    mean_interval,
    newcombe_interval,
    wilson_interval,
)
from answerkey.transcripts.row_files import read_rows

if TYPE_CHECKING:
    from answerkey.judge.pairwise import PairVerdict


_FIELDS = ("correct", "verdict", "score", "label", "human", "value")
_RIGHT = frozenset(("pass", "passed", "correct", "right", "ok", "accept", "accepted"))
_WRONG = frozenset(("fail", "failed", "incorrect", "wrong", "reject", "rejected"))

# Question id and trial.
Key = tuple[str, int]


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts by reply."""

    # Reply → whether people call it right.
    right: dict[Key, bool]
    # Reply → people's mean score, where right is 1 and wrong 0.
    scores: dict[Key, float] = {}
    # Replies on which people are evenly split; they are left out.
    split: int = 0
    source: str = ""
    # Whether people chose themselves what to judge, so that the labels are hardly a random sample.
    self_selected: bool = False


def labels_from_file(path: Path, known: Iterable[Key], *, pass_mark: float) -> Labels:
    """Rows of {id, trial, correct | verdict | score}; several verdicts on a reply are decided by the majority."""
    keys = set(known)
    trials: dict[str, set[int]] = defaultdict(set)
    for identity, trial in keys:
        trials[identity].add(trial)
    given: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    for line, row in read_rows(path):
        try:
            key, found = _key(row, trials), _verdict(row, pass_mark)
            if found is not None:
                given[key].append(found)
        except (ValueError, UsageError) as error:
            raise InputError(str(error), path=path, line=line) from None
    if not given:
        raise InputError("holds no verdict", path=path)
    return _majority(given, str(path))


def labels_from_mapping(
    given: Mapping[Any, bool | float], known: Iterable[Key], *, pass_mark: float
) -> Labels:
    """Question id, or (id, trial), → right or wrong, or a score."""
    keys = set(known)
    found: dict[Key, list[tuple[bool, float]]] = {}
    for named, value in given.items():
        key = named if isinstance(named, tuple) else (str(named), 1)
        if key not in keys:
            raise UsageError(f"labels: the run has no reply {named!r}")
        right = value if isinstance(value, bool) else passes(value, pass_mark)
        found[key] = [(right, float(value))]
    return _majority(found, "labels")


def labels_from_feedback(verdicts: Iterable[Feedback], replies: Mapping[tuple[str, int], Key]) -> Labels:
    """Verdicts that people left in the store; `replies` finds the question of an (ask hash, trial)."""
    given: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    sources = set()
    for verdict in verdicts:
        if verdict.reply is None:
            continue
        key = replies.get((verdict.reply.ask_hash, verdict.reply.trial))
        if key is not None:
            given[key].append((verdict.positive, float(verdict.positive)))
            sources.add(verdict.source)
    return _majority(given, "feedback", self_selected="user" in sources)


def _majority(
    given: Mapping[Key, list[tuple[bool, float]]], source: str, *, self_selected: bool = False
) -> Labels:
    shares = {key: sum(right for right, _ in found) / len(found) for key, found in given.items()}
    right = {key: share > 0.5 for key, share in shares.items() if share != 0.5}
    scores = {key: sum(score for _, score in given[key]) / len(given[key]) for key in right}
    split = len(given) - len(right)
    return Labels(right=right, scores=scores, split=split, source=source, self_selected=self_selected)


def _key(row: Mapping[str, Any], trials: Mapping[str, set[int]]) -> Key:
    identity = row.get("id", row.get("question_id"))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise ValueError("has no 'id', so it cannot be told which question it is about")
    identity = str(identity)
    if identity not in trials:
        raise ValueError(f"the run has no reply to a question with id {identity!r}")
    trial = row.get("trial")
    if trial is None:
        if len(trials[identity]) > 1:
            raise ValueError(f"the run asked {identity!r} several times; say which with 'trial'")
        return identity, next(iter(trials[identity]))
    try:
        number = msgspec.convert(trial, int, strict=False)
    except msgspec.ValidationError:
        raise ValueError("'trial' must be a whole number") from None
    if number not in trials[identity]:
        raise ValueError(f"the run has no trial {number} of {identity!r}")
    return identity, number


def _verdict(row: Mapping[str, Any], pass_mark: float) -> tuple[bool, float] | None:
    """Whether a row calls its reply right, and its score; None if it was drawn to be labelled and is not yet."""
    for name in _FIELDS:
        value = row.get(name)
        if value is None:
            continue
        word = value.strip().lower() if isinstance(value, str) else None
        if word in _RIGHT or word in _WRONG:
            return word in _RIGHT, float(word in _RIGHT)
        try:
            number = read_value(value)
        except UsageError:
            raise ValueError(
                f"{name!r} is {str(value)[:40]!r}; write true or false, pass or fail, or a score from 0 to 1"
            ) from None
        return passes(number, pass_mark if name == "score" else 0.5), number
    if any(name in row for name in _FIELDS):
        return None
    raise ValueError("has no verdict; give one as 'correct', 'verdict' or 'score'")


# What a judge of pairs leans to beside their quality: the place where a reply stands, its length, its own kind of model.


Place = Literal["first", "second"]
Side = Literal["base", "candidate"]
# Families of models, by what their names hold.
_FAMILIES = {
    "gpt": r"gpt|\bo[134]\b|o[134]-",
    "claude": "claude",
    "gemini": "gemini|gemma",
    "llama": "llama",
    "mistral": "mistral|mixtral|ministral",
    "qwen": "qwen|qwq",
    "deepseek": "deepseek",
    "grok": "grok",
}


class Lean(msgspec.Struct, frozen=True):
    """How often something was preferred; a half if the judge does not care."""

    share: float
    n: int
    interval: Interval | None
    # Sign test: is it a half?
    p_value: float | None

    @property
    def clear(self) -> bool:
        """Whether it is no chance."""
        return self.p_value is not None and self.p_value < 0.05


class OwnKind(msgspec.Struct, frozen=True):
    """A judge, and which of the two chatbots is of its own family."""

    judge: str
    own: Side
    # How often it preferred that one, and how often the panel's other judges did, in the same pairs.
    lean: Lean
    others: Lean | None


class PairBias(msgspec.Struct, frozen=True, kw_only=True):
    """The `bias` of a comparison by a judge."""

    # Of the verdicts that went by the order alone, how many named the first.
    position: Lean | None
    # The place that it prefers, where that is clear.
    prefers: Place | None
    # Of the pairs of the same score that it decided, in how many the longer reply won.
    length: Lean | None
    # Of the same pairs, where one chatbot is of the judge's own family.
    self_preference: tuple[OwnKind, ...] = ()


def bias_of(verdicts: Sequence["PairVerdict"], targets: Mapping[Side, str]) -> PairBias:
    """What the verdicts show; `targets` names both chatbots, or their models."""
    places = [place for verdict in verdicts for place in verdict.places.values()]
    position = _lean(place == "first" for place in places)
    prefers: Place | None = None
    if position is not None and position.clear:
        prefers = "first" if position.share > 0.5 else "second"
    # Replies that the score tells apart are rightly preferred.
    equal = [verdict for verdict in verdicts if verdict.same_score]
    return PairBias(
        position=position,
        prefers=prefers,
        length=_lean(v.outcome == v.longer for v in equal if v.longer and v.outcome in ("base", "candidate")),
        self_preference=tuple(_own_kinds(equal, targets)),
    )


def bias_warnings(bias: PairBias) -> Iterable[str]:
    """What of it a reader must know."""
    if bias.prefers is not None and bias.position is not None:
        yield (
            f"the judge prefers the reply that stands {bias.prefers}: of {bias.position.n} verdicts that went by the "
            f"order alone, {bias.position.share:.0%} named the first"
        )
    if bias.length is not None and bias.length.clear:
        which = "longer" if bias.length.share > 0.5 else "shorter"
        share = max(bias.length.share, 1 - bias.length.share)
        yield f"the judge prefers {which} replies: they won {share:.0%} of {bias.length.n} pairs of the same score"
    for own in bias.self_preference:
        if (
            own.lean.clear
            and own.lean.share > 0.5
            and (own.others is None or own.others.share < own.lean.share)
        ):
            yield (
                f"{own.judge} prefers the {own.own}, a model of its own family: it won {own.lean.share:.0%} of "
                f"{own.lean.n} pairs of the same score"
            )


def _own_kinds(equal: Sequence["PairVerdict"], targets: Mapping[Side, str]) -> Iterable[OwnKind]:
    families = {side: _family(target) for side, target in targets.items()}
    for judge in dict.fromkeys(judge for verdict in equal for judge in verdict.by_judge):
        kind = _family(judge)
        sides = [side for side, family in families.items() if kind is not None and family == kind]
        if len(sides) != 1:
            continue
        own = sides[0]
        decided = [v for v in equal if v.by_judge.get(judge) in ("base", "candidate")]
        lean = _lean(v.by_judge[judge] == own for v in decided)
        rest = [said for v in decided for name, said in v.by_judge.items() if name != judge and said != "tie"]
        if lean is not None:
            yield OwnKind(judge, own, lean, _lean(said == own for said in rest))


def _family(name: str) -> str | None:
    return next((family for family, words in _FAMILIES.items() if re.search(words, name.lower())), None)


def _lean(preferred: Iterable[bool]) -> Lean | None:
    found = list(preferred)
    if not found:
        return None
    times = sum(found)
    share = times / len(found)
    return Lean(
        share, len(found), wilson_interval(times, len(found)), mcnemar_p_value(times, len(found) - times)
    )


# Calibration: how far a run's judge agrees with people, and its mean, rate and change once its errors are taken out.


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

    def sample(self, labels: Labels, *, as_passes: bool) -> JudgedSample:
        """The labelled replies and the others, as passes or as values; people's label is 0 or 1, or their score."""
        found: dict[Key, float] = {
            key: float(passes(value, self.pass_mark)) if as_passes else value
            for key, value in self.values.items()
            if value is not None
        }
        people = {key: float(right) for key, right in labels.right.items()} if as_passes else labels.scores
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
        [run.sample(given, as_passes=as_passes) for run, given in zip((base, candidate), labels, strict=True)]
        for as_passes in (True, False)
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
    sample = replies.sample(labels, as_passes=True)
    pairs = list(zip(map(bool, sample.human), map(bool, sample.judged), strict=True))
    if not pairs:
        raise UsageError("no reply has both a verdict of people and one of the judge; label some replies")
    table = Confusion(*(pairs.count(kind) for kind in _CELLS))
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    passed, judged = int(sum(sample.judged) + sum(sample.rest)), len(pairs) + len(sample.rest)
    units = [*sample.units, *sample.rest_units]
    scores = replies.sample(labels, as_passes=False)
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
