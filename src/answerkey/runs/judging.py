"""Measuring judges: calibration against people's labels, labelled sentences, and pairwise judging of two runs."""

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.evidence.links import load_cross_encoder, verify_sentences
from answerkey.evidence.records import Words, content_words
from answerkey.gates import GateSubject, evaluate_gates, flatten, parse_gate
from answerkey.judge.calibration import (
    Alignment,
    Calibration,
    JudgedReplies,
    Key,
    Labels,
    align,
    calibrate_judge,
    change_between,
    judged_replies,
    labels_from_feedback,
    labels_from_file,
    labels_from_mapping,
    verdicts_in,
)
from answerkey.judge.pairwise import Pair, PairSide, Pairwise, ask_pair_canaries, judge_pair, sum_up_pairs
from answerkey.judge.session import ClaimCheck, Judge, open_judging
from answerkey.model.judgement import (
    CalibrationRecord,
    RubricRecord,
    RubricVersion,
    SentenceCalibration,
    calibrate_sentences,
)
from answerkey.model.reply import Reply
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.log_rows import RowReader
from answerkey.runs.recorder import store_executor
from answerkey.stats.raters import Corrected
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, SqlJudgements
from answerkey.store.sql import SqlStore
from answerkey.transcripts.row_files import read_rows

# A file of labels, or a mapping: question id, or (question id, trial) → right or wrong, or a score from 0 to 1.
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
    """Compare a run's judge with people's labels, and correct its pass rate and mean; with a base run, also the change.

    `half_width` is the half-width of the corrected rate's interval that `labels_needed` aims at.
    """
    mark = run.info.pass_mark if pass_mark is None else pass_mark
    labelled = _labelled(run.results, labels, mark)
    if base is None:
        return calibrate_judge(*labelled, half_width=half_width)
    if base_labels is None:
        raise UsageError("a corrected difference needs labels of both runs; pass base_labels")
    return _with_base(labelled, _labelled(base.results, base_labels, mark), half_width)


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
    """Calibrate the judge of a stored run, and note the result in its record.

    Without files, the labels are the feedback and reviews in the store.
    """
    mark = info.pass_mark if pass_mark is None else pass_mark
    labelled = _labelled_in_store(store, info, labels, mark)
    calibration = calibrate_judge(*labelled, half_width=half_width)
    if base is not None:
        calibration = _with_base(labelled, _labelled_in_store(store, base, base_labels, mark), half_width)
    if info.judge is not None:
        record = CalibrationRecord(
            at=now(),
            source=calibration.source,
            labelled=calibration.labelled,
            agreement=calibration.agreement.value,
            kappa=None if calibration.kappa is None else calibration.kappa.value,
        )
        judge = msgspec.structs.replace(info.judge, calibration=record)
        store.update_run(msgspec.structs.replace(info, judge=judge))
    return calibration


def _with_base(
    candidate: tuple[JudgedReplies, Labels], base: tuple[JudgedReplies, Labels], half_width: float
) -> Calibration:
    change = change_between(base[0], candidate[0], (base[1], candidate[1]))
    return msgspec.structs.replace(calibrate_judge(*candidate, half_width=half_width), change=change)


def _labelled(results: Iterable[Trial], labels: LabelsLike, mark: float) -> tuple[JudgedReplies, Labels]:
    replies = judged_replies(results, pass_mark=mark)
    if isinstance(labels, Mapping):
        return replies, labels_from_mapping(labels, replies.values, pass_mark=mark)
    return replies, labels_from_file(Path(labels), replies)


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
    labelled = labels_from_feedback(FeedbackStore(store).verdicts(info.id), keys)
    if not labelled.right:
        raise UsageError(
            f"run {info.id} has no feedback or reviews yet; add some with `answerkey review` or `answerkey feedback`, "
            "or label a sample from `answerkey judge sample` and pass it with --labels"
        )
    return replies, labelled


def align_stored(
    store: SqlStore, info: RunInfo, labels: Path | None, judge: Judge | None = None
) -> tuple[Alignment, RubricVersion | None]:
    """Compare a stored run's judge with people; with a `judge`, whose rubric was edited, before and after the edit.

    The judge grades the labelled replies again, and the rubric is stored in the run's record. Without a file, the labels are
    the feedback and reviews in the store.
    """
    before, labelled = _labelled_in_store(store, info, labels, info.pass_mark)
    record = info.judge
    if judge is None or record is None:
        return align(before, labelled), None
    values, verdicts = asyncio.run(_grade_again(store, info, judge, set(labelled.right)))
    after = msgspec.structs.replace(before, values=values, verdicts=verdicts)
    alignment = align(before, labelled, after, record.rubric_versions)
    version = RubricVersion(
        at=now(),
        model=" + ".join(judge.settings.models),
        rubric=judge.rubric.record,
        labels=labelled.source,
        tuning=alignment.tuning,
        held_out=alignment.held_out,
    )
    record = msgspec.structs.replace(record, rubric_versions=(*record.rubric_versions, version))
    store.update_run(msgspec.structs.replace(info, judge=record))
    return alignment, version


async def _grade_again(
    store: SqlStore, info: RunInfo, judge: Judge, keys: set[Key]
) -> tuple[dict[Key, float | None], dict[Key, Sequence[Mapping[str, Any]]]]:
    """Return the judge's values of some replies of a run, and the verdicts behind them; answers are cached."""
    trials = [trial for trial in store.results(info) if (trial.question.id, trial.number) in keys]
    with store_executor() as executor:
        async with open_judging(
            judge, run_id=info.id, store=SqlJudgements(store), executor=executor, canaries=False
        ) as session:
            graded = await asyncio.gather(*(session.judge(trial.question, trial.replies) for trial in trials))
    values: dict[Key, float | None] = {}
    verdicts: dict[Key, Sequence[Mapping[str, Any]]] = {}
    for trial, turns in zip(trials, graded, strict=True):
        key, scores = (trial.question.id, trial.number), [turn[0] for turn in turns]
        values_of_turns = [score.value for score in scores if score.value is not None]
        values[key] = math.fsum(values_of_turns) / len(values_of_turns) if values_of_turns else None
        verdicts[key] = verdicts_in(scores[-1].details)
    if all(value is None for value in values.values()) and graded:
        raise UsageError(f"the judge graded none of the labelled replies: {graded[0][0][0].reason}")
    return values, verdicts


def stored_rubrics(store: SqlStore) -> Iterator[tuple[RunInfo, RubricRecord, RubricVersion | None]]:
    """Yield the rubrics of all judged runs, newest run first: the run's own, then those that were tried on its labels."""
    for info in store.list_infos():
        if info.judge is not None:
            yield info, info.judge.rubric, None
            for version in reversed(info.judge.rubric_versions):
                yield info, version.rubric, version


def calibration_gates(calibration: Calibration, gates: Sequence[str]) -> list[GateResult]:
    """Evaluate gates on corrected numbers: `corrected.low >= 0.8`, `corrected_mean.value >= 0.7`, `change.low >= -0.02`."""
    change = calibration.change
    numbers = {
        "corrected": _bounds(calibration.prediction_powered),
        "corrected_mean": _bounds(calibration.corrected_mean),
        "change": _bounds(None if change is None else change.rate),
        "change_mean": _bounds(None if change is None else change.mean),
        "kappa": None if calibration.kappa is None else calibration.kappa.value,
        "labelled": calibration.labelled,
    }
    return evaluate_gates([parse_gate(gate) for gate in gates], GateSubject(numbers=flatten(numbers)))


def _bounds(corrected: Corrected | None) -> dict[str, float | None]:
    if corrected is None:
        return dict.fromkeys(("value", "low", "high"))
    return {"value": corrected.value, "low": corrected.interval.low, "high": corrected.interval.high}


# Labelled sentences, for whatever scores groundedness: a judge or an entailment model.

# (sentence, whether it is supported)
SentenceLabels = list[tuple[str, bool]]


def _read_sentences(paths: Iterable[Path]) -> Iterator[tuple[Trial, SentenceLabels]]:
    """Recorded replies with evidence and `sentences`: {text, supported}; sentences with null are skipped."""
    for path in paths:
        reader = RowReader(None)
        for index, (line, row) in enumerate(read_rows(path)):
            try:
                trial = reader.trial(row, index)
            except ValueError as error:
                raise InputError(str(error), path=path, line=line) from None
            sentences: Any = row.get("sentences")
            if not isinstance(sentences, list) or not all(
                isinstance(one, dict) and "text" in one for one in sentences
            ):
                raise InputError("has no 'sentences': [{text, supported}]", path=path, line=line)
            yield (
                trial,
                [
                    (str(one["text"]), one["supported"])
                    for one in sentences
                    if isinstance(one.get("supported"), bool)
                ],
            )


def calibrate_entailment(paths: Iterable[Path], model: str, folder: Path = Path()) -> SentenceCalibration:
    """Accuracy of an entailment model on labelled sentences, at the best threshold."""
    encoder = load_cross_encoder(model, folder)
    verdicts: list[tuple[bool, float | None]] = []
    for trial, labels in _read_sentences(paths):
        sentences = [text for text, _ in labels]
        verified = verify_sentences(encoder, trial.question, trial.replies[-1], sentences=sentences)
        probabilities = {text: probability for text, probability, _ in verified}
        verdicts += [(supported, probabilities.get(text)) for text, supported in labels]
    return calibrate_sentences(model, verdicts)


async def calibrate_claims(paths: Iterable[Path], judge: Judge) -> SentenceCalibration:
    """Accuracy of a judge's claim check on labelled sentences; a claim belongs to the sentence that shares most words."""
    if not judge.settings.claims:
        raise UsageError("the judge does not check claims; set [judge] claims = true")
    rows = list(_read_sentences(paths))
    async with open_judging(judge, run_id="sentences", canaries=False) as session:
        check = ClaimCheck(session.panel)
        scored = await asyncio.gather(*(check.scores(row.question, row.replies[-1]) for row, _ in rows))
    verdicts: list[tuple[bool, float | None]] = []
    for (_, labels), scores in zip(rows, scored, strict=True):
        claims = scores[0].details["claims"] if scores else []
        verdicts += _by_sentence(labels, claims)
    return calibrate_sentences(judge.settings.models[0], verdicts, threshold=0.5)


def _by_sentence(
    labels: SentenceLabels, claims: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[bool, float | None]]:
    """A sentence is supported if all its claims are; without a claim it has no verdict."""
    words = [_content(text) for text, _ in labels]
    support: dict[int, bool] = {}
    for claim in claims if labels else ():
        claimed = _content(claim["claim"])
        shared = [len(claimed & one) / (len(one) or 1) for one in words]
        nearest = max(range(len(labels)), key=shared.__getitem__)
        if shared[nearest] > 0:
            support[nearest] = support.get(nearest, True) and claim["supported"]
    for index, (_, supported) in enumerate(labels):
        yield supported, float(support[index]) if index in support else None


def _content(text: str) -> set[str]:
    return content_words(Words(text).keys)


# Pairwise judging of two stored runs.


async def judge_runs(store: SqlStore, base: RunInfo, candidate: RunInfo, judge: Judge) -> Pairwise:
    """Have a judge compare the replies to every question that both runs answered; cached verdicts are reused."""
    pairs = list(_pairs(store, base, candidate))
    if not pairs:
        raise UsageError("the runs have no question in common that both answered")
    paid_by = f"{base.id}:{candidate.id}"
    cache = SqlJudgements(store)
    with store_executor() as executor:
        async with open_judging(
            judge, run_id=paid_by, store=cache, executor=executor, canaries=False
        ) as session:
            panel, rubric = session.panel, judge.pair_rubric
            canary_pairs = judge.canaries.pair if judge.settings.canaries else ()
            canaries = asyncio.create_task(
                ask_pair_canaries(panel, rubric, canary_pairs, f"canary/{paid_by}")
            )
            verdicts = await asyncio.gather(*(judge_pair(panel, pair, rubric) for pair in pairs))
            tested = await canaries
            record = session.record()
    targets: dict[PairSide, str] = {"base": base.target, "candidate": candidate.target}
    return sum_up_pairs(
        verdicts,
        model=record.model,
        calls=record.calls,
        cached=record.cached,
        cost=record.cost,
        canaries=tested,
        targets=targets,
    )


def _pairs(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Iterator[Pair]:
    replies: dict[tuple[str, int], tuple[tuple[Reply, ...], float | None]] = {
        (result.question.ask_hash, result.number): (result.replies, result.scorecard.total)
        for result in store.results(base)
    }
    for result in store.results(candidate):
        other = replies.get((result.question.ask_hash, result.number))
        if other is not None:
            before, score = other
            total = result.scorecard.total
            same = None if score is None or total is None else score == total
            yield Pair(result.question, result.number, before, result.replies, same)
