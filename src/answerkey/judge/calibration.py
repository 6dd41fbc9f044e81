"""A judge compared with people's labels: its mean, rate and change corrected for its errors, and edits of its rubric.

Labels come from a file, from Python, or from the feedback in the store.
"""

import random
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from math import log1p
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.judge.panel import JUDGE
from answerkey.model.judgement import AgreementChange, Feedback, LabelAgreement, RubricVersion, read_value
from answerkey.model.question import group_of
from answerkey.model.scorecard import Trial, passes, round_score
from answerkey.stats.intervals import (
    Interval,
    mean_interval,
    wilson_interval,
)
from answerkey.stats.paired import (
    Confusion,
    Corrected,
    JudgedSample,
    Kappa,
    Verdict,
    cohen_kappa,
    correlate,
    labels_needed,
    paired_difference,
    prediction_powered_difference,
    prediction_powered_mean,
    rogan_gladen_rate,
    verdict_of,
)
from answerkey.text.normalise import count, count_of
from answerkey.transcripts.row_files import read_rows

# Fields of a row that may hold the label.
_FIELDS = ("correct", "verdict", "score", "label", "human", "value")

# Question id and trial.
Key = tuple[str, int]


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """People's labels of replies."""

    # Reply → whether people call it right.
    right: dict[Key, bool]
    # Reply → people's mean score; right is 1, wrong is 0.
    scores: dict[Key, float] = {}
    # Replies on which people are evenly split; they are excluded.
    split: int = 0
    source: str = ""
    # Whether people chose the replies themselves, so that the labels are not a random sample.
    self_selected: bool = False
    # Labelled replies whose text is not in the file, so that they may be of another run.
    without_text: int = 0


def labels_from_file(path: Path, replies: "JudgedReplies") -> Labels:
    """Read rows of {id, trial, reply, correct | verdict | score}; of several labels of a reply, the majority counts.

    A row with another text than the run's reply is a label of another reply: the file is refused.
    """
    trials: dict[str, set[int]] = defaultdict(set)
    for identity, trial in replies.values:
        trials[identity].add(trial)
    labels: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    # Labels with the text of the run's reply, with another text, and without one.
    of_this_run: set[Key] = set()
    of_others: list[Key] = []
    for line, row in read_rows(path):
        try:
            key, label = _key(row, trials), _label(row, replies.pass_mark)
        except (ValueError, UsageError) as error:
            raise InputError(str(error), path=path, line=line) from None
        if label is None:
            continue
        labels[key].append(label)
        if "reply" in row and not _same_text(row["reply"], replies.texts.get(key)):
            of_others.append(key)
        elif "reply" in row:
            of_this_run.add(key)
    if not labels:
        raise InputError("contains no labels", path=path)
    if of_others:
        total = sum(map(len, labels.values()))
        identity, trial = of_others[0]
        raise InputError(
            f"{count_of(len(of_others), total, 'label', 'is', 'are')} of other replies than this run's "
            f"(first: {identity}, trial {trial}); "
            "label this run's replies: answerkey judge sample RUN -o to_label.jsonl",
            path=path,
        )
    found = _majority(labels, str(path))
    return msgspec.structs.replace(found, without_text=len(labels) - len(of_this_run))


def _same_text(labelled: object, reply: str | None) -> bool:
    """Whether a label's text is the reply's; white space may differ, since spreadsheets change it."""
    return str(labelled or "").split() == (reply or "").split()


def labels_from_mapping(
    mapping: Mapping[Any, bool | float], known: Iterable[Key], *, pass_mark: float
) -> Labels:
    """Read a mapping of question id, or (id, trial), to right or wrong, or to a score."""
    keys = set(known)
    labels: dict[Key, list[tuple[bool, float]]] = {}
    for name, value in mapping.items():
        key = name if isinstance(name, tuple) else (str(name), 1)
        if key not in keys:
            raise UsageError(f"labels: the run has no reply {name!r}")
        right = value if isinstance(value, bool) else passes(value, pass_mark)
        labels[key] = [(right, float(value))]
    return _majority(labels, "labels")


def labels_from_feedback(verdicts: Iterable[Feedback], replies: Mapping[tuple[str, int], Key]) -> Labels:
    """Read feedback from the store; `replies` maps (ask hash, trial) to the reply."""
    labels: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    sources = set()
    for verdict in verdicts:
        if verdict.reply is None:
            continue
        key = replies.get((verdict.reply.ask_hash, verdict.reply.trial))
        if key is not None:
            labels[key].append((verdict.positive, float(verdict.positive)))
            sources.add(verdict.source)
    return _majority(labels, "feedback", self_selected="user" in sources)


def _majority(
    labels: Mapping[Key, list[tuple[bool, float]]], source: str, *, self_selected: bool = False
) -> Labels:
    shares = {key: sum(right for right, _ in votes) / len(votes) for key, votes in labels.items()}
    right = {key: share > 0.5 for key, share in shares.items() if share != 0.5}
    scores = {key: sum(score for _, score in labels[key]) / len(labels[key]) for key in right}
    split = len(labels) - len(right)
    return Labels(right=right, scores=scores, split=split, source=source, self_selected=self_selected)


def _key(row: Mapping[str, Any], trials: Mapping[str, set[int]]) -> Key:
    identity = row.get("id", row.get("question_id"))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise ValueError("has no 'id' of a question")
    identity = str(identity)
    if identity not in trials:
        raise ValueError(f"the run has no reply to a question with id {identity!r}")
    trial = row.get("trial")
    if trial is None:
        if len(trials[identity]) > 1:
            raise ValueError(f"the run asked {identity!r} several times; add 'trial'")
        return identity, next(iter(trials[identity]))
    try:
        number = msgspec.convert(trial, int, strict=False)
    except msgspec.ValidationError:
        raise ValueError("'trial' must be a whole number") from None
    if number not in trials[identity]:
        raise ValueError(f"the run has no trial {number} of {identity!r}")
    return identity, number


def _label(row: Mapping[str, Any], pass_mark: float) -> tuple[bool, float] | None:
    """Return whether a row calls its reply right, and its score; None if it is not labelled yet."""
    for name in _FIELDS:
        value = row.get(name)
        if value is None:
            continue
        try:
            number = read_value(value)
        except UsageError:
            raise ValueError(
                f"{name!r} is {str(value)[:40]!r}; write true or false, pass or fail, or a score from 0 to 1"
            ) from None
        return passes(number, pass_mark if name == "score" else 0.5), number
    if any(name in row for name in _FIELDS):
        return None
    raise ValueError("has no label; add one as 'correct', 'verdict' or 'score'")


# Calibration.


# With fewer labels, or fewer of either kind, the figures are too uncertain.
_MIN_LABELS, _MIN_OF_A_KIND = 30, 5
# Of each reply in the list of disagreements.
_SHOWN_CHARACTERS = 300


class JudgedReplies(msgspec.Struct, frozen=True):
    """A judge's values of a run's replies."""

    # Reply → the judge's value; None: no verdict.
    values: dict[Key, float | None]
    # Question id → its unit: its group, or the question.
    units: dict[str, Hashable]
    # The judge passes a reply at this value.
    pass_mark: float
    # Reply → its length in characters, of all turns, and its text, of the last turn.
    lengths: dict[Key, int] = {}
    texts: dict[Key, str | None] = {}
    # Reply → the verdicts of each judge, of the last turn.
    verdicts: dict[Key, Sequence[Mapping[str, Any]]] = {}

    def verbosity(self, labels: Labels) -> "Rate | None":
        """Return the correlation of the judge's excess over people's score with the reply's length."""
        known = [key for key in labels.scores if self.values.get(key) is not None and key in self.lengths]
        excess = [(self.values[key] or 0.0) - labels.scores[key] for key in known]
        correlation = correlate([log1p(self.lengths[key]) for key in known], excess)
        if correlation is None:
            return None
        # With r = ±1 Fisher's interval is a point, even for few replies.
        exact = abs(correlation.r) == 1.0
        interval = None if exact else Interval(correlation.low, correlation.high, 0.95)
        return Rate(correlation.r, correlation.pairs, interval)

    def disagreements(self, labels: Labels) -> list["Disagreement"]:
        """Return the replies on which the judge and people disagree, the largest differences first."""
        found = [
            Disagreement(
                id=key[0],
                trial=key[1],
                right=right,
                judge=value,
                reply=(self.texts.get(key) or "")[:_SHOWN_CHARACTERS],
                because=_lowest_reason(self.verdicts.get(key, ())),
            )
            for key, right in labels.right.items()
            if (value := self.values.get(key)) is not None and passes(value, self.pass_mark) != right
        ]
        return sorted(found, key=lambda one: (-abs(one.judge - one.right), one.id, one.trial))

    def sample(self, labels: Labels, *, as_passes: bool) -> JudgedSample:
        """Return labelled and unlabelled replies, as passes (0 or 1) or as values and scores."""
        judged: dict[Key, float] = {
            key: float(passes(value, self.pass_mark)) if as_passes else value
            for key, value in self.values.items()
            if value is not None
        }
        people = {key: float(right) for key, right in labels.right.items()} if as_passes else labels.scores
        known = [key for key in judged if key in people]
        rest = [key for key in judged if key not in people]
        return JudgedSample(
            [people[key] for key in known],
            [judged[key] for key in known],
            [self.units.get(key[0], key[0]) for key in known],
            [judged[key] for key in rest],
            [self.units.get(key[0], key[0]) for key in rest],
        )


class Rate(msgspec.Struct, frozen=True):
    """A share with its interval."""

    value: float
    n: int
    interval: Interval | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two judged runs, candidate minus base, corrected for the judge's errors."""

    # By the judge alone; biased if the judge errs more on one of the runs.
    judge_rate: float
    judge_mean: float
    # None if a run lacks labelled or unlabelled replies.
    rate: Corrected | None
    mean: Corrected | None


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A reply on which the judge and people disagree."""

    id: str
    trial: int
    # Whether people call it right, and the judge's value.
    right: bool
    judge: float
    # The beginning of its text.
    reply: str
    # The first judge's reason for its lowest grade, after the criterion's name.
    because: str = ""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge compared with people, as `judge calibrate --json` prints it."""

    # Replies with a label and a verdict; with a verdict only; without a verdict.
    labelled: int
    unlabelled: int
    unjudged: int
    # Where the labels come from, and replies excluded because people are evenly split.
    source: str
    split: int
    # The judge passes a reply at this value.
    pass_mark: float
    confusion: Confusion
    agreement: Rate
    kappa: Kappa | None
    # Share of right replies that the judge passes; share of wrong replies that it fails.
    sensitivity: Rate | None
    specificity: Rate | None
    # The judge's pass rate minus people's, on the same replies: above 0, it is lenient.
    bias: float
    bias_interval: Interval
    # Sign-flip test: are errors in both directions equally frequent?
    bias_p_value: float | None
    human_rate: Rate
    judge_rate: Rate
    # The corrected pass rate of all replies; None: it cannot be computed.
    prediction_powered: Corrected | None
    rogan_gladen: Corrected | None
    # The judge's mean value over all replies, and corrected by people's scores (right 1, wrong 0).
    judge_mean: Rate
    corrected_mean: Corrected | None
    # Total labels for an interval of ± half_width of the corrected rate; None: more than there are replies.
    half_width: float
    labels_needed: int | None
    # Correlation of the judge's excess over people with the reply's length: above 0, it favours long replies.
    verbosity: Rate | None = None
    # Replies on which the judge and people disagree, the most certain verdicts of the judge first.
    disagreements: tuple[Disagreement, ...] = ()
    # Compared with a base run that has labels too.
    change: Change | None = None
    warnings: tuple[str, ...] = ()


def judged_replies(results: Iterable[Trial], *, pass_mark: float) -> JudgedReplies:
    """Return the judge's value of each reply of a run; raises UsageError if the run was not judged."""
    values: dict[Key, float | None] = {}
    units: dict[str, Hashable] = {}
    lengths: dict[Key, int] = {}
    texts: dict[Key, str | None] = {}
    # Reply → the verdicts of each judge, of the last turn.
    verdicts: dict[Key, Sequence[Mapping[str, Any]]] = {}
    judged = False
    for result in results:
        metrics = result.scorecard.metrics
        judged = judged or JUDGE in metrics
        key = result.question.id, result.number
        values[key] = metrics.get(JUDGE)
        units[result.question.id] = group_of(result.question) or result.question.id
        lengths[key] = sum(len(reply.text or "") for reply in result.replies)
        texts[key] = result.reply.text
        card = result.scorecard.turns[-1] if result.scorecard.turns else result.scorecard
        verdicts[key] = verdicts_in(card.findings.get(JUDGE))
    if not judged:
        raise UsageError("the run was not judged; judge it first: answerkey rescore RUN --judge MODEL")
    return JudgedReplies(values, units, pass_mark, lengths, texts, verdicts)


def verdicts_in(details: Any) -> Sequence[Mapping[str, Any]]:
    """Return the verdicts of each judge in the details of a judge's score; none if there are no details."""
    return details.get("judges", ()) if isinstance(details, Mapping) else ()


def _lowest_reason(verdicts: Sequence[Mapping[str, Any]]) -> str:
    for judge in verdicts:
        for sample in judge["samples"]:
            name, graded = min(sample.items(), key=lambda one: one[1]["score"])
            return f"{name}: {graded['reason']}"[:_SHOWN_CHARACTERS]
    return ""


def draw_to_label(replies: JudgedReplies, count: int, *, seed: int = 0) -> list[Key]:
    """Return a random sample of judged replies; for the same seed, a larger sample begins with a smaller one."""
    keys = sorted(key for key, value in replies.values.items() if value is not None)
    random.Random(seed).shuffle(keys)
    return keys[:count]


def change_between(base: JudgedReplies, candidate: JudgedReplies, labels: tuple[Labels, Labels]) -> Change:
    """Return the difference of two runs, corrected by the labels of both."""
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


def calibrate_judge(replies: JudgedReplies, labels: Labels, *, half_width: float = 0.05) -> Calibration:
    """Compare a judge with people's labels, which should be of a random sample of the replies."""
    sample = replies.sample(labels, as_passes=True)
    table = confusion_of(replies, labels)
    differences = [judge - human for judge, human in zip(sample.judged, sample.human, strict=True)]
    bias = paired_difference(differences, units=sample.units)
    if bias is None:
        raise no_labels(labels)
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    passed, judged = int(sum(sample.judged) + sum(sample.rest)), table.n + len(sample.rest)
    units = [*sample.units, *sample.rest_units]
    scores = replies.sample(labels, as_passes=False)
    values = [*scores.judged, *scores.rest]
    needed = labels_needed(sample, half_width)
    return Calibration(
        labelled=table.n,
        unlabelled=len(sample.rest),
        unjudged=len(replies.values) - judged,
        source=labels.source,
        split=labels.split,
        pass_mark=replies.pass_mark,
        confusion=table,
        agreement=_rate(table.true_positive + table.true_negative, table.n),
        kappa=cohen_kappa(table),
        sensitivity=_rate(table.true_positive, right) if right else None,
        specificity=_rate(table.true_negative, wrong) if wrong else None,
        bias=bias.mean,
        bias_interval=Interval(bias.low, bias.high),
        bias_p_value=bias.p_value,
        human_rate=_rate(right, table.n),
        judge_rate=Rate(passed / judged, judged, mean_interval([*sample.judged, *sample.rest], units)),
        prediction_powered=prediction_powered_mean(sample),
        rogan_gladen=rogan_gladen_rate(
            passed,
            judged,
            sensitive=table.true_positive,
            positives=right,
            specific=table.true_negative,
            negatives=wrong,
        ),
        judge_mean=Rate(_judge_mean(scores), judged, mean_interval(values, units)),
        corrected_mean=prediction_powered_mean(scores),
        half_width=half_width,
        labels_needed=needed,
        verbosity=replies.verbosity(labels),
        disagreements=tuple(replies.disagreements(labels)),
        warnings=_warnings(table, labels, grouped=len(set(sample.units)) < len(sample.units)),
    )


def no_labels(labels: Labels) -> UsageError:
    """Return the error for labels none of which can be compared with a verdict."""
    if labels.split and not labels.right:
        return UsageError(f"{labels.source}: people are evenly split on all {labels.split} labelled replies")
    return UsageError("no reply has both a label and a verdict of the judge; label some replies")


def confusion_of(replies: JudgedReplies, labels: Labels) -> Confusion:
    """Return how often judge and people agree, and how they disagree."""
    pairs = [
        (right, passes(value, replies.pass_mark))
        for key, right in labels.right.items()
        if (value := replies.values.get(key)) is not None
    ]
    # (people say right, the judge passes), in the order of Confusion's fields.
    cells = ((True, True), (False, True), (True, False), (False, False))
    return Confusion(*(pairs.count(cell) for cell in cells))


def _rate(count: int, n: int) -> Rate:
    return Rate(count / n, n, wilson_interval(count, n))


def _warnings(table: Confusion, labels: Labels, *, grouped: bool) -> tuple[str, ...]:
    lines = []
    right, wrong = table.true_positive + table.false_negative, table.false_positive + table.true_negative
    if table.n < _MIN_LABELS:
        lines.append(
            f"{count(table.n, 'label is', 'labels are')} too few; label at least {_MIN_LABELS} randomly chosen replies"
        )
    elif min(right, wrong) < _MIN_OF_A_KIND:
        rare = "wrong" if wrong < right else "right"
        lines.append(
            f"only {min(right, wrong)} replies are labelled {rare}: too few to measure the judge on those"
        )
    if right and wrong and table.true_positive / right + table.true_negative / wrong <= 1:
        lines.append("the judge agrees with these labels only by chance; do not use its scores")
    if labels.self_selected:
        lines.append(
            "users chose which replies to rate, so the corrected rates may be biased; review a random sample"
        )
    if labels.without_text:
        lines.append(
            f"{count(labels.without_text, 'label has', 'labels have')} no reply text and may be of another run's replies; "
            "add the field 'reply', as `answerkey judge sample` does"
        )
    if labels.split:
        lines.append(f"people are evenly split on {labels.split} replies, which are excluded")
    if grouped:
        lines.append(
            "several labelled replies belong to one question or group; only the bias and the PPI++ rates allow for that, "
            "the other intervals are too narrow"
        )
    return tuple(lines)


# The alignment loop: does a judge agree better with people under an edited rubric?
#
# People's labels are split in two by the reply's unit. The disagreements on one half are shown, so that the rubric can be
# edited; the agreement on the other half, which was not shown, says whether the edit helped. A reply stays in its half
# when more labels are added.

# With fewer held-out labels, only a large change can be seen.
_FEWEST_HELD_OUT = 20
# After more rubrics than this, the best one looks too good on the same held-out labels.
_MOST_VERSIONS = 5


class PanelDisagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that some judges of a panel pass and others fail."""

    id: str
    trial: int
    # Judge → its value.
    judges: dict[str, float]


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's agreement with people under one rubric, or under two."""

    # Replies on which people are evenly split.
    split: int
    # On the labels whose disagreements are shown, and on those that are held out.
    tuning: AgreementChange
    held_out: AgreementChange
    # Is the agreement on held-out labels better under the edited rubric? None: there is no edited one.
    verdict: Verdict | None
    # On the labels shown only, under the edited rubric if there is one.
    disagreements: tuple[Disagreement, ...]
    # Replies, labelled or not but none held out, on which the judges of a panel differ.
    panel_disagreements: tuple[PanelDisagreement, ...] = ()
    warnings: tuple[str, ...] = ()


def is_held_out(replies: JudgedReplies, key: Key) -> bool:
    """Whether the label of a reply belongs to the held-out half; all replies of a unit do, or none."""
    unit = str(replies.units.get(key[0], key[0]))
    return bool(blake2b(unit.encode(), digest_size=1).digest()[0] & 1)


def align(
    before: JudgedReplies,
    labels: Labels,
    after: JudgedReplies | None = None,
    versions: tuple[RubricVersion, ...] = (),
) -> Alignment:
    """Compare a judge's values under the run's rubric, and under an edited one, with people's labels.

    `versions` are the rubrics tried on these labels before.
    """
    known = {
        key
        for key in labels.right
        if before.values.get(key) is not None and (after is None or after.values.get(key) is not None)
    }
    if not known:
        raise no_labels(labels)
    held_out = {key for key in known if is_held_out(before, key)}
    if not held_out or held_out == known:
        raise UsageError(
            f"{count(len(known), 'label is', 'labels are')} too few to hold some out: "
            f"label at least {2 * _FEWEST_HELD_OUT} replies with "
            "`answerkey judge sample`"
        )
    tuning = _only(labels, known - held_out)
    held = _change(before, after, _only(labels, held_out))
    latest = before if after is None else after
    warnings = []
    if len(held_out) < _FEWEST_HELD_OUT:
        warnings.append(
            f"only {count(len(held_out), 'label is', 'labels are')} held out: label more replies to see smaller changes"
        )
    if len(versions) >= _MOST_VERSIONS:
        warnings.append(
            f"{len(versions)} rubrics were tried on these labels before: the best of them looks better than it is; "
            "label a new sample"
        )
    if len(known) < len(labels.right):
        warnings.append(
            f"{count(len(labels.right) - len(known), 'labelled reply has', 'labelled replies have')} no verdict of the judge"
        )
    return Alignment(
        split=labels.split,
        tuning=_change(before, after, tuning),
        held_out=held,
        verdict=None if after is None else verdict_of(held.difference),
        disagreements=tuple(latest.disagreements(tuning)),
        panel_disagreements=tuple(_panel_disagreements(latest, held_out)),
        warnings=tuple(warnings),
    )


def _only(labels: Labels, keys: set[Key]) -> Labels:
    return msgspec.structs.replace(
        labels, right={key: right for key, right in labels.right.items() if key in keys}
    )


def _change(before: JudgedReplies, after: JudgedReplies | None, labels: Labels) -> AgreementChange:
    if after is None:
        return AgreementChange(_agreement(before, labels))
    first, second = (_agreements(replies, labels) for replies in (before, after))
    difference = paired_difference(
        [float(now) - was for was, now in zip(first, second, strict=True)],
        units=[before.units.get(key[0], key[0]) for key in labels.right],
    )
    return AgreementChange(_agreement(before, labels), _agreement(after, labels), difference)


def _agreements(replies: JudgedReplies, labels: Labels) -> list[bool]:
    """Return whether the judge agrees with people, label by label."""
    return [
        passes(replies.values.get(key), replies.pass_mark) == right for key, right in labels.right.items()
    ]


def _agreement(replies: JudgedReplies, labels: Labels) -> LabelAgreement:
    agreed = [float(agrees) for agrees in _agreements(replies, labels)]
    interval = mean_interval(agreed, [replies.units.get(key[0], key[0]) for key in labels.right])
    kappa = cohen_kappa(confusion_of(replies, labels))
    low, high = (0.0, 1.0) if interval is None else (interval.low, interval.high)
    return LabelAgreement(
        labelled=len(agreed),
        share=round_score(sum(agreed) / len(agreed)),
        low=round_score(low),
        high=round_score(high),
        kappa=None if kappa is None else round_score(kappa.value),
    )


def _panel_disagreements(replies: JudgedReplies, held_out: set[Key]) -> list[PanelDisagreement]:
    """Return the replies on which judges differ, the largest differences first."""
    found = []
    for key, verdicts in replies.verdicts.items():
        values = {judge["model"]: judge["value"] for judge in verdicts if "value" in judge}
        if key not in held_out and len({passes(value, replies.pass_mark) for value in values.values()}) > 1:
            found.append(PanelDisagreement(id=key[0], trial=key[1], judges=values))
    return sorted(
        found, key=lambda one: (min(one.judges.values()) - max(one.judges.values()), one.id, one.trial)
    )
