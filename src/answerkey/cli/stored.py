"""A stored run as commands show it: with the warnings that belong beside its score."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from answerkey.model.run import Run
    from answerkey.store.sql import SqlStore

__all__ = ["load_stored"]


def load_stored(store: "SqlStore", reference: str) -> "Run":
    """The run that a reference names: an id, a unique prefix, a name, `latest`, `latest~1`."""
    from answerkey.evaluation.warnings import run_warnings

    run = store.load_run(store.find_run(reference))
    return msgspec.structs.replace(run, warnings=run.warnings or run_warnings(run.info, run.summary))
