"""Starting from stored replies: resume a run, reuse replies of an earlier run, or score a run again."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import AnswerkeyError, UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Timings
from answerkey.model.run import Rescoring, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial
from answerkey.protocols import BaseTarget
from answerkey.runs.context import RunContext, has_computed, select_questions, wait_for
from answerkey.runs.recorder import Recorder, open_judge, replay_journal, store_executor
from answerkey.runs.run import (
    Arm,
    ask_arm,
    ask_run,
    changed_inputs,
    new_run,
    reopen_run,
    store_summary,
)
from answerkey.runs.stored import is_of_bisection, load_stored_run, resume_command, stored_trials
from answerkey.store.database import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike, target_labels

# Resuming


def resume_run(
    context: RunContext,
    info: RunInfo,
    store: SqlStore,
    conclude: Callable[[Run, BaseTarget], Awaitable[Run]],
    *,
    target: TargetLike | None,
    wait: bool,
    accept_changes: bool,
) -> Run:
    """Ask what a run lacks, as its only owner; `conclude` adds verdicts while the target is still open."""
    spec = target if target is not None else _target_spec(info)
    with claim_run(store.database, info.id, wait=wait) as lease:
        # As its last owner left it.
        info = store.find_run(info.id)
        replay_journal(store, info)
        questions = with_stored_truth(current_questions(info, context, store), info, store)
        context.grader.set_questions(questions)

        async def ask() -> Run:
            async with context.target(spec) as opened:
                run = await _continue(context, store, questions, opened, info, lease, accept_changes)
                return await conclude(run, opened)

        return wait_for(ask())


async def _continue(
    context: RunContext,
    store: SqlStore,
    questions: QuestionSet,
    target: BaseTarget,
    info: RunInfo,
    lease: Lease,
    accept_changes: bool,
) -> Run:
    changed = changed_inputs(info, context, target, questions)
    if changed and not accept_changes:
        verb = "has" if len(changed) == 1 else "have"
        raise UsageError(
            f"run {info.id}: {' and '.join(changed)} {verb} changed; undo that, or make a new run from the replies "
            f"that are still valid: answerkey resume {info.id} --accept-changes"
        )
    if changed:
        new = new_run(context, target, info.target_spec, questions, name=info.name, made_from=info.id)
        copy = partial(store.copy_replies, info)
        return await ask_run(context, store, questions, target, new, copy_replies=copy)
    if info.status == "complete" and context.judge is None:
        # Nothing is missing, and stored evidence is not rewritten.
        run = load_stored_run(store, info.id)
        note = "nothing is missing: this run is complete, and nothing was asked"
        return msgspec.structs.replace(run, warnings=(note, *run.warnings))
    arm = Arm(info=reopen_run(info, context), target=target, lease=lease, is_new=False)
    return await ask_arm(context, store, questions, arm)


def with_stored_truth(questions: QuestionSet, info: RunInfo, store: SqlStore) -> QuestionSet:
    """Questions with the values that were computed for a run, so that all of its replies meet the same key."""
    if info.truth is None:
        return questions
    stored = {question.definition_hash: question for question in store.questions(info.question_set_hash)}
    return questions.subset([stored.get(question.definition_hash, question) for question in questions])


def with_values_of_run(questions: QuestionSet, info: RunInfo, store: SqlStore) -> QuestionSet:
    """A golden set with the values that a run computed; UsageError if the run has none for an expectation."""
    resolved, missing = _with_values_of(questions, info.question_set_hash, store)
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UsageError(
            f"{missing[0]}{more}: run {info.id} has no value for it, because it is new or was changed; "
            "to compute all values from the data as it is now, add --recompute-truth"
        )
    return resolved


def _with_values_of(questions: QuestionSet, set_hash: str, store: SqlStore) -> tuple[QuestionSet, list[str]]:
    """The questions with the values of a stored set, and a description of each expectation that has none."""
    if not has_computed(questions):
        return questions, []
    from answerkey.truth.resolve import with_stored_values  # most golden sets have no computed expectations

    stored = {question.id: question for question in store.questions(set_hash)}
    resolved, missing = [], []
    for question in questions:
        # A question that is new has no stored values.
        before = stored.get(question.id, Question(id=question.id, question=""))
        found = with_stored_values(question, before)
        resolved.append(found.question)
        where = f"{questions.path}:{question.line}: " if questions.path and question.line else ""
        missing += [f"{where}{question.id}: {one.method} {one.described!r}" for one in found.missing]
    return questions.subset(resolved), missing


def golden_file_has_changed(info: RunInfo, context: RunContext, store: SqlStore) -> bool:
    """Whether the file of a run's golden set has other questions or expectations than the run was ever scored by."""
    # A log may have brought questions of its own; a bisection asks a part of the set.
    if info.is_log or is_of_bisection(info):
        return False
    if info.question_path is None or not Path(info.question_path).is_file():
        return False
    try:
        questions = current_questions(info, context, store)
    except AnswerkeyError:
        # The run could read it.
        return True
    hashes = {info.question_set_hash, *(before.question_set_hash for before in info.rescored)}
    return not any(
        _with_values_of(questions, set_hash, store)[0].hash == set_hash for set_hash in sorted(hashes)
    )


def current_questions(info: RunInfo, context: RunContext, store: SqlStore) -> QuestionSet:
    """The golden set from its file, or from the store if the file is gone."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(
            info.question_path,
            name=info.question_set,
            fields=info.options.map,
            registry=context.settings.scorer_registry,
            functions=context.settings.row_functions,
        )
        return select_questions(questions, context.options)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def _target_spec(info: RunInfo) -> str:
    """The spec that the target of a stored run is made from."""
    if info.is_log:
        raise UsageError(
            f"run {info.id} is a recorded log, which has no chatbot to ask; it cannot be resumed"
        )
    if is_of_bisection(info):
        raise UsageError(f"run {info.id} is part of a bisection; continue with {resume_command(info)}")
    if info.target_spec is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    return info.target_spec


# Reusing replies

# Number of runs in which a run of the same chatbot is searched.
_MOST_RUNS = 200
_BATCH = 200


async def ask_with_reuse(
    context: RunContext, store: SqlStore, questions: QuestionSet, target: BaseTarget, target_spec: str | None
) -> Run:
    """Ask a new run, with the good replies of the latest run of the same chatbot if there is one."""
    version = target_labels(target_spec, context.settings.targets).version
    same_target = (
        info
        for info in store.list_infos(limit=_MOST_RUNS)
        # Another version label means another chatbot, even with the same fingerprint.
        if info.target_hash == target.fingerprint and info.target_version.version == version
    )
    old = next((info for info in same_target if info.status != "running"), None)
    if old is None:
        new = new_run(context, target, target_spec, questions)
        return await ask_run(context, store, questions, target, new)

    def copy_good_replies(new: RunInfo) -> None:
        good = _good_trials(store, old, new, questions)
        while batch := list(islice(good, _BATCH)):
            store.add_replies(new, batch)

    new = new_run(context, target, target_spec, questions, made_from=old.id)
    return await ask_run(context, store, questions, target, new, copy_replies=copy_good_replies)


def _good_trials(store: SqlStore, old: RunInfo, new: RunInfo, questions: QuestionSet) -> Iterator[Trial]:
    """Trials without a failure, which may have been temporary, and without timings, which are of another day.

    A reply to a question whose computed value has changed since is not reused.
    """
    values_before = (
        {question.id: question.computed_values for question in store.questions(old.question_set_hash)}
        if new.truth is not None
        else {}
    )
    for trial in stored_trials(store, old, questions):
        values = values_before.get(trial.question.id)
        if values is not None and values != trial.question.computed_values:
            continue
        if trial.number <= new.repeat and all(reply.failure is None for reply in trial.replies):
            untimed = (msgspec.structs.replace(reply, timings=Timings()) for reply in trial.replies)
            yield trial.answered(tuple(untimed))


# Scoring again


def _scored_before(info: RunInfo, store: SqlStore) -> Rescoring:
    return Rescoring(
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        match=info.match,
        scoring_hash=info.scoring_hash,
        question_set_hash=info.question_set_hash,
        score=store.load_run(info).score,
    )


async def rescore_run(
    context: RunContext, info: RunInfo, store: SqlStore, *, questions: QuestionSet | None = None
) -> Run:
    """Score a run's stored replies again; with `questions`, against their expectations instead of the stored ones.

    A judge is asked only for what it has not judged yet.
    """
    new = msgspec.structs.replace(
        info,
        question_set_hash=info.question_set_hash if questions is None else questions.hash,
        options=context.options,
        judge=None,
        confirmation=None,
        truth=context.truth or info.truth,
        rescored=(*info.rescored, _scored_before(info, store)),
        **context.grader.run_fields,
    )
    context.grader.set_questions(store.questions(info.question_set_hash) if questions is None else questions)
    asked = store.questions(info.question_set_hash) if questions is None else iter(questions)
    count = store.count_questions(info.question_set_hash) if questions is None else len(questions)
    # A log has no planned number of replies.
    planned = None if info.is_log else count * info.repeat
    executor = store_executor()
    context.progress.begin(new, planned=planned, done=0)
    try:
        async with open_judge(store, context.judge, new.id, executor) as judging:
            recorder = Recorder(
                store, new, context.grader, context.progress, judging=judging, executor=executor
            )
            async with recorder.recording():
                await recorder.add_stored(store, asked)
            if judging is not None:
                new = msgspec.structs.replace(new, judge=judging.record(info.judge))
    finally:
        context.progress.end()
    # The run itself changes only when all new scorecards are stored.
    store.update_run(new, questions)
    if questions is None and not info.is_log:
        questions = QuestionSet(questions=tuple(store.questions(info.question_set_hash)))
    results = StreamedResults(partial(store.results, new))
    return store_summary(context, store, new, questions, results, planned=planned)
