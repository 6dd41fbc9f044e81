"""Beginning with replies that are there: a run goes on where it stopped, or a new one uses what still holds of another."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Timings
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.bookkeeping import changes_since
from answerkey.runs.context import RunContext, select_questions
from answerkey.runs.durable_writer import replay_journal
from answerkey.runs.live import Asking, ask_again, ask_from, ask_run
from answerkey.runs.progress import Progress, wait_for
from answerkey.runs.stored import load_stored_run, stored_trials
from answerkey.store.ownership import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike, target_labels


def resume_run(
    assembly: RunContext,
    info: RunInfo,
    store: SqlStore,
    progress: Progress,
    conclude: Callable[[Run, Asking], Awaitable[Run]],
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
        questions = _current_questions(info, assembly, store)

        async def ask() -> Run:
            async with assembly.target(given) as opened:
                asking = Asking(assembly, questions, opened, info.target_spec, store, progress)
                return await conclude(await _go_on(asking, info, lease, accept_changes), asking)

        return wait_for(ask())


async def _go_on(asking: Asking, info: RunInfo, lease: Lease, accept_changes: bool) -> Run:
    changed = changes_since(info, asking.assembly, asking.target, asking.questions)
    if changed and not accept_changes:
        verb = "has" if len(changed) == 1 else "have"
        raise UsageError(
            f"run {info.id}: {' and '.join(changed)} {verb} changed since; put that back, or make a new run that "
            f"begins with the replies that still hold: answerkey resume {info.id} --accept-changes"
        )
    if changed:
        new = asking.new_run(name=info.name, made_from=info.id)
        return await ask_from(asking, new, partial(asking.store.copy_replies, info))
    if info.status == "complete" and asking.assembly.judge is None:
        # Evidence, with nothing left to ask.
        return load_stored_run(asking.store, info.id)
    return await ask_again(asking, info, lease)


def _current_questions(info: RunInfo, assembly: RunContext, store: SqlStore) -> QuestionSet:
    """The golden set as its file is now, or as it was stored if there is no file any more."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(
            info.question_path,
            name=info.question_set,
            fields=info.options.map,
            registry=assembly.settings.scorer_registry,
        )
        return select_questions(questions, assembly.options)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def _target_of(info: RunInfo) -> str:
    """What the target of a stored run is made from again."""
    if info.is_log:
        raise UsageError(
            f"run {info.id} is a recorded log: nobody was asked, so there is nothing to go on with"
        )
    if info.target_spec is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    return info.target_spec


# Runs in which a reply of the same chatbot is looked for.
_MOST_RUNS = 200
_BATCH = 200


async def ask_reusing(asking: Asking) -> Run:
    """Ask what the newest run of the same chatbot has no good reply to; without such a run, everything."""
    store, target = asking.store, asking.target
    version = target_labels(asking.target_spec, asking.assembly.settings.targets).version
    known = (
        info
        for info in store.list_infos(limit=_MOST_RUNS)
        # Another version by its name is another chatbot, whatever is known of it.
        if info.target_hash == target.fingerprint and info.target_version.version == version
    )
    old = next((info for info in known if info.status != "running"), None)
    if old is None:
        return await ask_run(asking)

    def fill(new: RunInfo) -> None:
        good = _good_trials(store, old, new, asking.questions)
        while batch := list(islice(good, _BATCH)):
            store.add_replies(new, batch)

    return await ask_from(asking, asking.new_run(made_from=old.id), fill)


def _good_trials(store: SqlStore, old: RunInfo, new: RunInfo, questions: QuestionSet) -> Iterator[Trial]:
    """Replies that hold: no failure among them, which may have been the day's, and not timed, which was another day's."""
    for trial in stored_trials(store, old, questions):
        if trial.number <= new.repeat and all(reply.failure is None for reply in trial.replies):
            timeless = (msgspec.structs.replace(reply, timings=Timings()) for reply in trial.replies)
            yield trial.answered(tuple(timeless))
