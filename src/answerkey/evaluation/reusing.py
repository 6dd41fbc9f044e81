"""Reusing: a new run begins with an earlier one's replies where question and chatbot are unchanged, and asks the rest."""

from collections.abc import Iterable, Iterator

import msgspec

from answerkey.evaluation.assembly import Assembly
from answerkey.evaluation.bookkeeping import new_id, new_run
from answerkey.evaluation.live import ask_again, ask_run
from answerkey.evaluation.progress import Progress
from answerkey.evaluation.stored import stored_trials
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Timings
from answerkey.model.run import Run, RunInfo
from answerkey.model.trial import Trial
from answerkey.protocols import Target
from answerkey.store.ownership import claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.version import target_labels

__all__ = ["ask_reusing"]

# Runs in which a reply of the same chatbot is looked for.
_MOST_RUNS = 200
_BATCH = 200


async def ask_reusing(
    assembly: Assembly,
    questions: QuestionSet,
    target: Target,
    store: SqlStore,
    progress: Progress,
    *,
    target_spec: str | None,
) -> Run:
    """Ask what the newest run of the same chatbot has no good reply to; without such a run, everything."""
    version = target_labels(target_spec, assembly.settings.targets).version
    known = (
        info
        for info in store.list_infos(limit=_MOST_RUNS)
        # Another version by its name is another chatbot, whatever is known of it.
        if info.target_hash == target.fingerprint and info.target_version.version == version
    )
    old = next((info for info in known if info.status != "running"), None)
    if old is None:
        return await ask_run(assembly, questions, target, store, progress, target_spec=target_spec)
    begun = new_run(assembly, target, questions, run_id=new_id(), target_spec=target_spec)
    new = msgspec.structs.replace(begun, made_from=old.id)
    with claim_run(store.database, new.id) as lease:
        store.create_run(new, questions)
        for batch in _batches(_good_trials(store, old, new, questions)):
            store.add_replies(new, batch)
        return await ask_again(assembly, new, questions, target, store, progress, lease)


def _good_trials(store: SqlStore, old: RunInfo, new: RunInfo, questions: QuestionSet) -> Iterator[Trial]:
    """Replies that hold: no failure among them, which may have been the day's, and not timed, which was another day's."""
    for trial in stored_trials(store, old, questions):
        if trial.number <= new.repeat and all(reply.failure is None for reply in trial.replies):
            timeless = (msgspec.structs.replace(reply, timings=Timings()) for reply in trial.replies)
            yield trial.answered(tuple(timeless))


def _batches(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    batch: list[Trial] = []
    for trial in trials:
        batch.append(trial)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
