"""Resuming: a run goes on where it stopped. What it was asked with must be as it was; else a new run is made of it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import UsageError
from answerkey.evaluation.assembly import Assembly, select_questions
from answerkey.evaluation.bookkeeping import changes_since, new_id, new_run
from answerkey.evaluation.keeping import replay_journal
from answerkey.evaluation.live import ask_again
from answerkey.evaluation.progress import Progress
from answerkey.evaluation.stored import load_stored_run
from answerkey.evaluation.waiting import wait_for
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.protocols import Target
from answerkey.store.ownership import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike

__all__ = ["resume_run"]


def resume_run(
    assembly: Assembly,
    info: RunInfo,
    store: SqlStore,
    progress: Progress,
    conclude: Callable[[Run, Target], Awaitable[Run]],
    *,
    target: TargetLike | None,
    wait: bool,
    accept_changes: bool,
) -> Run:
    """Ask what a run still lacks, as its only owner; `conclude` adds its verdicts while the target is still open."""
    given = target if target is not None else _target_of(info)
    with claim_run(store.database, info.id, wait=wait) as lease:
        # As its last owner left it.
        info = store.find_run(info.id)
        replay_journal(store, info)
        questions = _current_questions(info, assembly.options, store)

        async def ask() -> Run:
            async with assembly.target(given) as opened:
                run = await _go_on(assembly, info, questions, opened, store, progress, lease, accept_changes)
                return await conclude(run, opened)

        return wait_for(ask())


async def _go_on(
    assembly: Assembly,
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    store: SqlStore,
    progress: Progress,
    lease: Lease,
    accept_changes: bool,
) -> Run:
    changed = changes_since(info, assembly, target, questions)
    if changed and not accept_changes:
        verb = "has" if len(changed) == 1 else "have"
        raise UsageError(
            f"run {info.id}: {' and '.join(changed)} {verb} changed since; put that back, or make a new run that "
            f"begins with the replies that still hold: answerkey resume {info.id} --accept-changes"
        )
    if changed:
        new = _made_from(info, assembly, target, questions)
        with claim_run(store.database, new.id) as lease:
            store.create_run(new, questions)
            store.copy_replies(info, new)
            return await ask_again(assembly, new, questions, target, store, progress, lease)
    if info.status == "complete" and assembly.judge is None:
        # Evidence, with nothing left to ask.
        return load_stored_run(store, info.id)
    return await ask_again(assembly, info, questions, target, store, progress, lease)


def _made_from(old: RunInfo, assembly: Assembly, target: Target, questions: QuestionSet) -> RunInfo:
    """What a run is that goes on from another."""
    begun = new_run(assembly, target, questions, run_id=new_id(), target_spec=old.target_spec, name=old.name)
    return msgspec.structs.replace(begun, made_from=old.id)


def _current_questions(info: RunInfo, options: Options, store: SqlStore) -> QuestionSet:
    """The golden set as its file is now, or as it was stored if there is no file any more."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(info.question_path, name=info.question_set, fields=info.options.map)
        return select_questions(questions, options)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def _target_of(info: RunInfo) -> str:
    """What the target of a stored run is made from again."""
    if info.target_spec is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    return info.target_spec
