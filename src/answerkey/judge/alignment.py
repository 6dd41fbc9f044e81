"""The alignment loop: does a judge agree better with people under an edited rubric?

People's labels are split in two by the reply's unit. The disagreements on one half are shown, so that the rubric can be
edited; the agreement on the other half, which was not shown, says whether the edit helped. A reply stays in its half
when more labels are added.
"""

from hashlib import blake2b

import msgspec

from answerkey.errors import UsageError
from answerkey.judge.calibration import Disagreement, JudgedReplies, Key, Labels, confusion_of, no_labels
from answerkey.model.judgement import AgreementChange, LabelAgreement, RubricVersion
from answerkey.model.scorecard import passes, round_score
from answerkey.stats.agreement import cohen_kappa
from answerkey.stats.intervals import mean_interval
from answerkey.stats.paired import Verdict, paired_difference, verdict_of

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
            f"{len(known)} labels are too few to hold some out: label at least {2 * _FEWEST_HELD_OUT} replies with "
            "`answerkey judge sample`"
        )
    tuning = _only(labels, known - held_out)
    held = _change(before, after, _only(labels, held_out))
    latest = before if after is None else after
    warnings = []
    if len(held_out) < _FEWEST_HELD_OUT:
        warnings.append(
            f"only {len(held_out)} labels are held out: label more replies to see smaller changes"
        )
    if len(versions) >= _MOST_VERSIONS:
        warnings.append(
            f"{len(versions)} rubrics were tried on these labels before: the best of them looks better than it is; "
            "label a new sample"
        )
    if len(known) < len(labels.right):
        warnings.append(f"{len(labels.right) - len(known)} labelled replies have no verdict of the judge")
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
