"""Calibrating a run's judge: its replies and people's labels put together, and gates on what comes out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import UsageError
from answerkey.gates import GateSubject, evaluate_gates, flatten, parse_gate
from answerkey.judge.calibration import (
    Calibration,
    JudgedReplies,
    Labels,
    calibrate_judge,
    change_between,
    judged_replies,
    labels_from_feedback,
    labels_from_file,
    labels_from_mapping,
)
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.stats.corrected_means import Corrected
from answerkey.store.feedback import FeedbackBook
from answerkey.store.sql import SqlStore

# A file of labels, or question id (with its trial, if asked several times) → right or wrong, or a score from 0 to 1.
LabelsLike = str | Path | Mapping[Any, bool | float]


def calibrate(
    run: Run,
    labels: LabelsLike,
    *,
    base: Run | None = None,
    base_labels: LabelsLike | None = None,
    pass_mark: float | None = None,
    half_width: float = 0.05,
) -> Calibration:
    """Compare a run's judge with people, and correct its rate and mean; with a labelled base run, the change too.

    `half_width`: how narrow the corrected rate's interval shall be, for `labels_needed`.
    """
    mark = run.info.pass_mark if pass_mark is None else pass_mark
    found = _labelled(run.results, labels, mark)
    if base is None:
        return calibrate_judge(*found, half_width=half_width)
    if base_labels is None:
        raise UsageError("a corrected difference needs labels of both runs; give the base's with base_labels")
    return _with_base(found, _labelled(base.results, base_labels, mark), half_width)


def calibrate_stored(
    store: SqlStore,
    info: RunInfo,
    labels: Path | None,
    *,
    base: RunInfo | None = None,
    base_labels: Path | None = None,
    pass_mark: float | None = None,
    half_width: float = 0.05,
) -> Calibration:
    """The same of stored runs; without files, the labels are the feedback and reviews in the store."""
    mark = info.pass_mark if pass_mark is None else pass_mark
    found = _labelled_in_store(store, info, labels, mark)
    if base is None:
        return calibrate_judge(*found, half_width=half_width)
    return _with_base(found, _labelled_in_store(store, base, base_labels, mark), half_width)


def _with_base(
    found: tuple[JudgedReplies, Labels], base: tuple[JudgedReplies, Labels], half_width: float
) -> Calibration:
    change = change_between(base[0], found[0], (base[1], found[1]))
    return msgspec.structs.replace(calibrate_judge(*found, half_width=half_width), change=change)


def _labelled(results: Iterable[Trial], labels: LabelsLike, mark: float) -> tuple[JudgedReplies, Labels]:
    replies = judged_replies(results, pass_mark=mark)
    if isinstance(labels, Mapping):
        return replies, labels_from_mapping(labels, replies.values, pass_mark=mark)
    return replies, labels_from_file(Path(labels), replies.values, pass_mark=mark)


def _labelled_in_store(
    store: SqlStore, info: RunInfo, labels: Path | None, mark: float
) -> tuple[JudgedReplies, Labels]:
    if labels is not None:
        return _labelled(store.results(info), labels, mark)
    replies = judged_replies(store.results(info), pass_mark=mark)
    keys = {
        (result.question.ask_hash, result.number): (result.question.id, result.number)
        for result in store.results(info)
    }
    given = labels_from_feedback(FeedbackBook(store).verdicts(info.id), keys)
    if not given.right:
        raise UsageError(
            f"nobody has given a verdict on run {info.id} yet; give some with `answerkey review` or "
            "`answerkey feedback`, or draw replies with `answerkey judge sample` and name the file with --labels"
        )
    return replies, given


def calibration_gates(found: Calibration, gates: Sequence[str]) -> list[GateResult]:
    """Gates on corrected numbers: `corrected.low >= 0.8`, `corrected_mean.value >= 0.7`, `change.low >= -0.02`."""
    change = found.change
    numbers = {
        "corrected": _ends(found.prediction_powered),
        "corrected_mean": _ends(found.corrected_mean),
        "change": _ends(None if change is None else change.rate),
        "change_mean": _ends(None if change is None else change.mean),
        "kappa": None if found.kappa is None else found.kappa.value,
        "labelled": found.labelled,
    }
    return evaluate_gates([parse_gate(gate) for gate in gates], GateSubject(numbers=flatten(numbers)))


def _ends(corrected: Corrected | None) -> dict[str, float | None]:
    if corrected is None:
        return dict.fromkeys(("value", "low", "high"))
    return {"value": corrected.value, "low": corrected.interval.low, "high": corrected.interval.high}
