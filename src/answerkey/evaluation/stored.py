"""Stored runs: the store that settings mean, and runs read from it as every reader shows them."""

import os
from collections.abc import Iterable, Iterator

import msgspec

from answerkey.config import Settings
from answerkey.evaluation.warnings import run_warnings
from answerkey.model.question import Question
from answerkey.model.run import Run, RunInfo
from answerkey.model.trial import Trial
from answerkey.store import open_store
from answerkey.store.sql import SqlStore

__all__ = ["find_baseline", "load_stored_run", "open_configured_store", "stored_trials"]


def open_configured_store(settings: Settings, url: str | None = None, *, create: bool = True) -> SqlStore:
    """The store at an address; without one that of the environment, the configuration, or the default."""
    named = url or os.environ.get("ANSWERKEY_STORE")
    if named:
        return open_store(named, create=create)
    # In the configuration a relative path starts from its file.
    return open_store(settings.store, folder=settings.folder, create=create)


def find_baseline(settings: Settings, store: str | None, reference: str | None) -> RunInfo | None:
    """The run to compare with, looked up before a run begins: after it, `latest` is another one."""
    if reference is None:
        return None
    with open_configured_store(settings, store, create=False) as opened:
        return opened.find_run(reference)


def load_stored_run(store: SqlStore, reference: str) -> Run:
    """The run that a reference names (an id, a unique prefix, a name, `latest`, `latest~1`), with its warnings."""
    run = store.load_run(store.find_run(reference))
    return msgspec.structs.replace(run, warnings=run.warnings or run_warnings(run.info, run.summary))


def stored_trials(store: SqlStore, info: RunInfo, questions: Iterable[Question]) -> Iterator[Trial]:
    """The stored replies to these questions, as far as the run's target gave them and its repeats count them."""
    for position, question in enumerate(questions):
        for number, replies in store.trials_of(info, question.ask_hash):
            if number <= info.repeat:
                yield Trial(question, number, position, replies)
