"""Numbered migrations: each brings a store one version on, and none is ever changed once released.

A migration is a module `mNNNN_what.py` with `STATEMENTS`, SQL that both SQLite and PostgreSQL take.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from answerkey.errors import StoreError

__all__ = ["MIGRATIONS", "migrate"]

MIGRATIONS = (
    "m0001_runs",
    "m0002_feedback",
    "m0003_judgements",
    "m0004_score_columns",
    "m0005_production",
    "m0006_question_index",
)


def migrate(run: Callable[[str], Any]) -> None:
    """Bring the store to the newest version; a store from a newer answerkey is refused untouched.

    `run` executes a statement within a transaction and returns what has `fetchone`.
    """
    run("CREATE TABLE IF NOT EXISTS answerkey_schema (version INTEGER NOT NULL)")
    version = int(run("SELECT MAX(version) FROM answerkey_schema").fetchone()[0] or 0)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the store was made by a newer answerkey (schema {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade answerkey or use another --store"
        )
    for number, name in enumerate(MIGRATIONS[version:], start=version + 1):
        for statement in import_module(f"answerkey.store.migrations.{name}").STATEMENTS:
            run(statement)
        run(f"INSERT INTO answerkey_schema (version) VALUES ({number:d})")  # noqa: S608  # a number of ours
