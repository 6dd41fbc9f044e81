"""Measuring judges: calibration against people's labels, labelled sentences, and pairwise judging of two runs.

The verdicts also show a judge's biases: towards a position, towards long replies, and towards its own model family.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from answerkey.judge.panel import JudgeTask, PairCanary, Panel, gather_outcomes, reliability
from answerkey.judge.prompt import (
    PAIR_SCHEMA,
    Item,
    PairRubric,
    UnjudgedError,
    pair_messages,
    pair_of,
    parse_pair,
)
from answerkey.judge.session import ClaimCheck, Judge, open_judging
from answerkey.model.judgement import (
    CalibrationRecord,
    CanaryResult,
    RubricRecord,
    RubricVersion,
    SentenceCalibration,
    calibrate_sentences,
)
from answerkey.model.question import Question, group_of
from answerkey.model.reply import Reply
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.log_rows import RowReader
from answerkey.runs.recorder import store_executor
from answerkey.stats.intervals import Interval, mean_interval, wilson_interval
from answerkey.stats.paired import Corrected, Verdict, paired_difference, verdict_of
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, SqlJudgements
from answerkey.store.sql import SqlStore
from answerkey.text.normalise import count_of
from answerkey.transcripts.row_files import read_rows

Outcome = Literal["base", "candidate", "tie"]
PairSide = Literal["base", "candidate"]
Position = Literal["first", "second"]
_EMPTY = (Reply(),)
# Outcome → points of the candidate.
_POINTS = {"candidate": 1.0, "tie": 0.5, "base": 0.0}
# Model family → pattern of its names.
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


class Pair(msgspec.Struct, frozen=True):
    """Two replies to the same question."""

    question: Question
    trial: int
    base: tuple[Reply, ...]
    candidate: tuple[Reply, ...]
    # Whether both have the same score without a judge; None: unknown.
    same_score: bool | None = None


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two replies is better."""

    id: str
    trial: int
    # None: no verdict.
    outcome: Outcome | None
    # Whether every judge gave the same answer in both orders; None: no judge was asked.
    consistent: bool | None
    reason: str = ""
    # Judge → its outcome.
    by_judge: dict[str, Outcome] = {}
    # Judge → the position that it preferred in both orders, whichever reply was there.
    positions: dict[str, Position] = msgspec.field(default_factory=dict, name="places")
    # Which reply is longer, by more than a tenth; None: neither.
    longer: PairSide | None = None
    same_score: bool | None = None
    # The unit of analysis: the question's group, or the question.
    unit: str = ""


class Preference(msgspec.Struct, frozen=True):
    """How often one kind of reply was preferred; 0.5 without a bias."""

    share: float
    n: int
    interval: Interval | None
    # Sign test: is the share 0.5?
    p_value: float | None

    @property
    def clear(self) -> bool:
        """Whether the bias is significant."""
        return self.p_value is not None and self.p_value < 0.05


class SelfPreference(msgspec.Struct, frozen=True):
    """A judge's preference for the chatbot of its own model family."""

    judge: str
    own: PairSide
    # How often it preferred that one, and how often the panel's other judges did, in the same pairs.
    lean: Preference
    others: Preference | None


class PairBias(msgspec.Struct, frozen=True, kw_only=True):
    """The `bias` of a comparison by a judge."""

    # Of the verdicts that depended on the order alone, how many named the first reply.
    position: Preference | None
    # The preferred position, if it is clear.
    prefers: Position | None
    # Of the decided pairs of the same score, in how many the longer reply won.
    length: Preference | None
    # Of the same pairs, if one chatbot is of the judge's own family.
    self_preference: tuple[SelfPreference, ...] = ()


class Pairwise(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's comparison of two runs: the `judge` section of `compare --json`."""

    model: str
    pairs: int
    wins: int
    losses: int
    ties: int
    unjudged: int
    # The candidate's wins and half its ties, as a share of the judged pairs.
    win_rate: float | None
    interval: Interval | None
    # Sign-flip test over units: are wins and losses equally likely? None: there are neither.
    p_value: float | None
    # Share of asked pairs on which every judge gave the same answer in both orders.
    self_consistency: float | None
    consistency_interval: Interval | None = None
    verdict: Verdict
    results: tuple[PairVerdict, ...] = ()
    calls: int = 0
    cached: int = 0
    cost: float | None = None
    # The judge's biases.
    bias: PairBias | None = None
    # Whether it chose right in all canary pairs; None: they were not asked, or not all judged.
    reliable: bool | None = None
    canaries: tuple[CanaryResult, ...] = ()
    warnings: tuple[str, ...] = ()


async def judge_pair(panel: Panel, pair: Pair, rubric: PairRubric) -> PairVerdict:
    """Ask every judge in both orders. Equal replies tie and an empty reply loses, without a call."""
    question, base, candidate = _as_single_turn(pair)
    texts = [(reply.text or "").strip() for reply in (base, candidate)]
    unasked = PairVerdict(
        id=pair.question.id,
        trial=pair.trial,
        outcome=None,
        consistent=None,
        longer=_longer(*map(len, texts)),
        same_score=pair.same_score,
        unit=group_of(pair.question) or pair.question.id,
    )
    if texts[0] == texts[1]:
        return msgspec.structs.replace(unasked, outcome="tie", reason="the replies are the same")
    if not all(texts):
        better: Outcome = "candidate" if texts[1] else "base"
        return msgspec.structs.replace(unasked, outcome=better, reason="the other reply is empty")
    limit, models = panel.settings.max_chars, panel.settings.models
    forward = pair_of(question, base, candidate, max_chars=limit)
    backward = pair_of(question, candidate, base, max_chars=limit)
    results = await gather_outcomes(
        _ask_both_orders(panel, rubric, model, forward, backward) for model in models
    )
    answers = {
        model: answer
        for model, answer in zip(models, results, strict=True)
        if not isinstance(answer, UnjudgedError)
    }
    if 2 * len(answers) <= len(results):
        reason = next(str(failure) for failure in results if isinstance(failure, UnjudgedError))
        return msgspec.structs.replace(unasked, reason=reason)
    by_judge = {model: answer.outcome for model, answer in answers.items()}
    return msgspec.structs.replace(
        unasked,
        outcome=_majority(list(by_judge.values())),
        consistent=all(answer.consistent for answer in answers.values()),
        reason=next(answer.reason for answer in answers.values()),
        by_judge=by_judge,
        positions={model: answer.position for model, answer in answers.items() if answer.position},
    )


class _PairAnswer(NamedTuple):
    """One judge's answer about a pair."""

    outcome: Outcome
    # Whether all its answers, in both orders, were the same.
    consistent: bool
    reason: str
    # The position that it preferred in both orders.
    position: Position | None


async def _ask_both_orders(
    panel: Panel, rubric: PairRubric, model: str, forward: Item, backward: Item, salt: str = ""
) -> _PairAnswer:
    task = JudgeTask(rubric.hash, PAIR_SCHEMA, lambda item: pair_messages(rubric, item), parse_pair)
    samples = panel.settings.samples
    answers = await asyncio.gather(
        *(
            panel.ask(model, task, item, sample=sample, salt=salt)
            for item in (forward, backward)
            for sample in range(samples)
        )
    )
    meanings: tuple[dict[str, Outcome], ...] = (
        {"1": "base", "2": "candidate", "tie": "tie"},
        {"1": "candidate", "2": "base", "tie": "tie"},
    )
    choices = [meanings[index >= samples][better] for index, (better, _) in enumerate(answers)]
    first, second = _majority(choices[:samples]), _majority(choices[samples:])
    position: Position | None = None
    if {first, second} == {"base", "candidate"}:
        position = "first" if first == "base" else "second"
    outcome = first if first == second else "tie"
    return _PairAnswer(outcome, len(set(choices)) == 1, answers[0][1], position)


async def ask_pair_canaries(
    panel: Panel, rubric: PairRubric, pairs: Sequence[PairCanary], salt: str
) -> list[CanaryResult]:
    """Ask every judge about pairs whose better reply is known."""
    asked = [(model, pair) for model in panel.settings.models for pair in pairs]
    answers = await gather_outcomes(_ask_canary(panel, rubric, model, pair, salt) for model, pair in asked)
    return [
        CanaryResult(
            kind=pair.kind, model=model, score=None, passed=None, reason=str(answer), unjudged=answer.kind
        )
        if isinstance(answer, UnjudgedError)
        else CanaryResult(
            kind=pair.kind,
            model=model,
            score=_POINTS[answer.outcome],
            passed=answer.outcome == "candidate",
            reason=answer.reason,
        )
        for (model, pair), answer in zip(asked, answers, strict=True)
    ]


async def _ask_canary(
    panel: Panel, rubric: PairRubric, model: str, pair: PairCanary, salt: str
) -> _PairAnswer:
    question = Question(id="canary", question=pair.question, reference_answer=pair.reference_answer)
    worse, better = Reply(text=pair.worse), Reply(text=pair.better)
    orders = pair_of(question, worse, better), pair_of(question, better, worse)
    return await _ask_both_orders(panel, rubric, model, *orders, salt=salt)


def _longer(base: int, candidate: int) -> PairSide | None:
    if max(base, candidate) <= 1.1 * min(base, candidate):
        return None
    return "base" if base > candidate else "candidate"


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    outcome, most = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * most > len(outcomes) else "tie"


def _as_single_turn(pair: Pair) -> tuple[Question, Reply, Reply]:
    """Return question and replies; the turns of a conversation are joined into one text."""
    question = pair.question
    if not question.turns:
        return question, (pair.base or _EMPTY)[0], (pair.candidate or _EMPTY)[0]
    joined = msgspec.structs.replace(
        question, question="\n".join(f"Turn {n}: {turn.question}" for n, turn in enumerate(question.turns, 1))
    )
    return joined, _transcript(pair.base), _transcript(pair.candidate)


def _transcript(replies: Iterable[Reply]) -> Reply:
    return Reply(text="\n".join(f"Turn {n}: {reply.text or ''}" for n, reply in enumerate(replies, 1)))


def sum_up_pairs(
    verdicts: Sequence[PairVerdict],
    *,
    model: str,
    calls: int = 0,
    cached: int = 0,
    cost: float | None = None,
    canaries: Sequence[CanaryResult] = (),
    targets: Mapping[PairSide, str] | None = None,
) -> Pairwise:
    """Sum up verdicts. The result is better or worse only if the sign-flip test shows it and the judge is reliable."""
    counts = Counter(one.outcome for one in verdicts)
    # The trials of a question are averaged first: they are not independent.
    points: dict[str, list[float]] = {}
    for one in verdicts:
        if one.outcome is not None:
            points.setdefault(one.id, []).append(_POINTS[one.outcome])
    means = [sum(trials) / len(trials) for trials in points.values()]
    unit_of = {one.id: one.unit or one.id for one in verdicts}
    units = [unit_of[identity] for identity in points]
    difference = paired_difference([2 * mean - 1 for mean in means], units=units)
    reliable, wrong = reliability(canaries)
    bias = pair_bias(verdicts, targets or {})
    asked = [one for one in verdicts if one.consistent is not None]
    consistent = [float(one.consistent is True) for one in asked]
    consistency = sum(consistent) / len(consistent) if consistent else None
    warnings = [*_verdict_warnings(verdicts, consistency), *_bias_warnings(bias)]
    if wrong:
        failed = "the judge failed pairs whose better reply is known, so its comparison does not count"
        warnings.append(f"{failed if reliable is False else 'judge reliability is unknown'}: {wrong[0]}")
    return Pairwise(
        model=model,
        pairs=len(verdicts),
        wins=counts["candidate"],
        losses=counts["base"],
        ties=counts["tie"],
        unjudged=counts[None],
        win_rate=sum(means) / len(means) if means else None,
        interval=mean_interval(means, units),
        p_value=None if difference is None else difference.p_value,
        self_consistency=consistency,
        consistency_interval=mean_interval(consistent, [unit_of[one.id] for one in asked]),
        verdict="no clear difference" if reliable is False else verdict_of(difference),
        results=tuple(verdicts),
        calls=calls,
        cached=cached,
        cost=cost,
        bias=bias,
        reliable=reliable,
        canaries=tuple(canaries),
        warnings=tuple(warnings),
    )


def _verdict_warnings(verdicts: Sequence[PairVerdict], consistency: float | None) -> Iterator[str]:
    unjudged = [verdict for verdict in verdicts if verdict.outcome is None]
    if unjudged:
        yield f"{count_of(len(unjudged), len(verdicts), 'pair', 'was', 'were')} not judged, for example: {unjudged[0].reason}"
    if consistency is not None and consistency < 0.8:
        yield (
            f"the judge gave the same verdict on only {consistency:.0%} of the pairs when their order was swapped; the "
            "others count as ties"
        )


# Bias.


def pair_bias(verdicts: Sequence[PairVerdict], targets: Mapping[PairSide, str]) -> PairBias:
    """Return the biases that the verdicts show; `targets` names both chatbots, or their models."""
    position = _preference(one == "first" for verdict in verdicts for one in verdict.positions.values())
    prefers: Position | None = None
    if position is not None and position.clear:
        prefers = "first" if position.share > 0.5 else "second"
    # Of replies with different scores, the better one is rightly preferred.
    equal = [verdict for verdict in verdicts if verdict.same_score]
    decided = [verdict for verdict in equal if verdict.longer and verdict.outcome in ("base", "candidate")]
    return PairBias(
        position=position,
        prefers=prefers,
        length=_preference(verdict.outcome == verdict.longer for verdict in decided),
        self_preference=tuple(_self_preferences(equal, targets)),
    )


def _bias_warnings(bias: PairBias) -> Iterator[str]:
    if bias.prefers is not None and bias.position is not None:
        yield (
            f"the judge prefers the {bias.prefers} reply: of {bias.position.n} verdicts that depended on the order "
            f"alone, {bias.position.share:.0%} named the first"
        )
    if bias.length is not None and bias.length.clear:
        which = "longer" if bias.length.share > 0.5 else "shorter"
        share = max(bias.length.share, 1 - bias.length.share)
        yield f"the judge prefers {which} replies: they won {share:.0%} of {bias.length.n} pairs of the same score"
    for own in bias.self_preference:
        others = 0.0 if own.others is None else own.others.share
        if own.lean.clear and own.lean.share > max(0.5, others):
            yield (
                f"{own.judge} prefers the {own.own}, a model of its own family: it won {own.lean.share:.0%} of "
                f"{own.lean.n} pairs of the same score"
            )


def _self_preferences(
    equal: Sequence[PairVerdict], targets: Mapping[PairSide, str]
) -> Iterator[SelfPreference]:
    """Yield the preference of each judge for the one chatbot of its own model family."""
    families = {side: _family(target) for side, target in targets.items()}
    for judge in dict.fromkeys(judge for verdict in equal for judge in verdict.by_judge):
        family = _family(judge)
        sides = [side for side, other in families.items() if family is not None and other == family]
        if len(sides) != 1:
            continue
        own = sides[0]
        decided = [one.by_judge for one in equal if one.by_judge.get(judge) in ("base", "candidate")]
        lean = _preference(outcomes[judge] == own for outcomes in decided)
        others = [
            outcome == own
            for outcomes in decided
            for name, outcome in outcomes.items()
            if name != judge and outcome != "tie"
        ]
        if lean is not None:
            yield SelfPreference(judge, own, lean, _preference(others))


def _family(name: str) -> str | None:
    return next((family for family, pattern in _FAMILIES.items() if re.search(pattern, name.lower())), None)


def _preference(choices: Iterable[bool]) -> Preference | None:
    values = list(choices)
    if not values:
        return None
    n, times = len(values), sum(values)
    difference = paired_difference([1.0 if chosen else -1.0 for chosen in values])
    p_value = None if difference is None else difference.p_value
    return Preference(times / n, n, wilson_interval(times, n), p_value)


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
