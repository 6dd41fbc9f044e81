"""RunWriter: how a run is written, row by row and through the driver alone, whichever way the database was opened.

Everything here is plain SQL with plain values, so that nothing need be compiled or converted, and a run on SQLite can be
written before (and mostly without) SQLAlchemy being loaded.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

import msgspec

from answerkey.model.question import QuestionSet
from answerkey.model.run import RunInfo
from answerkey.model.summary import Summary
from answerkey.model.trial import Trial
from answerkey.store.lookup import id_rows, text_rows
from answerkey.store.rows import reply_row, run_row, scorecard_row

__all__ = ["RunWriter", "Statements", "write_rows"]

# The columns by which a row is told from others; a test keeps them and the tables alike.
KEYS = {
    "questions": ("content_hash",),
    "set_items": ("set_hash", "position"),
    "runs": ("id",),
    "replies": ("run_id", "ask_hash", "trial"),
    "reply_texts": ("run_id", "ask_hash", "trial"),
    "reply_ids": ("external_id", "kind", "run_id", "ask_hash", "trial"),
    "judgements": ("key",),
    "score_columns": ("run_id", "scoring_hash"),
    "baselines": ("name",),
    "feedback": ("id",),
    "production_replies": ("id",),
    "production_texts": ("id",),
    "scorecards": ("run_id", "scoring_hash", "position", "trial"),
}
# Rows written at a time when a question set is kept.
_BATCH = 1000

_encode = msgspec.json.Encoder().encode


class Statements(Protocol):
    """A transaction of a driver. `?` stands for a value, whatever the driver's own sign is."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Execute one statement; returns what has `fetchone`."""
        ...

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for every row."""
        ...


class RunWriter(ABC):
    """Writes runs, their questions, replies and scorecards."""

    @abstractmethod
    def statements(self) -> AbstractContextManager[Statements]:
        """A transaction whose database errors come out as one clear line."""

    def create_run(self, info: RunInfo, questions: QuestionSet) -> None:
        """Begin a run: what it is, and the questions it will ask."""
        with self.statements() as statements:
            _keep_questions(statements, questions)
            write_rows(statements, "runs", [run_row(info)])

    def update_run(self, info: RunInfo, questions: QuestionSet | None = None) -> None:
        """Change what a run is; with `questions`, also which set it asks."""
        with self.statements() as statements:
            if questions is not None:
                _keep_questions(statements, questions)
            _update_run(statements, run_row(info))

    def finish_run(self, info: RunInfo, summary: Summary) -> None:
        """Keep the run's summary and status."""
        with self.statements() as statements:
            _update_run(statements, {**run_row(info), "summary": _encode(summary).decode()})

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Keep replies and scorecards in one durable transaction; rescoring leaves the replies as they are."""
        if not trials:
            return
        with self.statements() as statements:
            if with_replies:
                _keep_replies(statements, info, trials)
            write_rows(statements, "scorecards", [scorecard_row(info, item) for item in trials])

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Keep replies that are scored later, in one durable transaction."""
        if trials:
            with self.statements() as statements:
                _keep_replies(statements, info, trials)

    def clear_scorecards(self, info: RunInfo) -> None:
        """Forget the scorecards under the run's scoring, before they are written anew."""
        with self.statements() as statements:
            statements.run(
                "DELETE FROM scorecards WHERE run_id = ? AND scoring_hash = ?", (info.id, info.scoring_hash)
            )


def _update_run(statements: Statements, row: dict[str, Any]) -> None:
    changed = [name for name in row if name != "id"]
    assignments = ", ".join(f"{name} = ?" for name in changed)
    # Names are the store's own; values go beside the text.
    statements.run(
        f"UPDATE runs SET {assignments} WHERE id = ?",  # noqa: S608
        (*(row[name] for name in changed), row["id"]),
    )


def _keep_replies(statements: Statements, info: RunInfo, trials: Sequence[Trial]) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    write_rows(statements, "replies", [reply_row(info, trial, now) for trial in trials])
    write_rows(statements, "reply_texts", text_rows(info.id, trials))
    write_rows(statements, "reply_ids", id_rows(info.id, trials), replace=False)


def _keep_questions(statements: Statements, questions: QuestionSet) -> None:
    set_hash = questions.hash
    known = statements.run("SELECT position FROM set_items WHERE set_hash = ? LIMIT 1", (set_hash,))
    if known.fetchone() is not None:
        return
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for position, question in enumerate(questions):
        content = question.content_hash
        rows.append({"content_hash": content, "payload": _encode(question).decode()})
        items.append({"set_hash": set_hash, "position": position, "content_hash": content})
        if len(rows) >= _BATCH:
            _write_questions(statements, rows, items)
    _write_questions(statements, rows, items)


def _write_questions(statements: Statements, rows: list[dict[str, Any]], items: list[dict[str, Any]]) -> None:
    write_rows(statements, "questions", rows, replace=False)
    write_rows(statements, "set_items", items, replace=False)
    rows.clear()
    items.clear()


def write_rows(
    statements: Statements, table: str, rows: Sequence[dict[str, Any]], *, replace: bool = True
) -> None:
    """Write rows; one with the same key is replaced (or kept), so that writing twice is harmless."""
    if rows:
        sql = _upsert(table, tuple(rows[0]), replace)
        statements.run_many(sql, [tuple(row.values()) for row in rows])


@cache
def _upsert(table: str, names: tuple[str, ...], replace: bool) -> str:
    keys = KEYS[table]
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    conflict = f"DO UPDATE SET {changed}" if replace else "DO NOTHING"
    signs = ", ".join("?" for _ in names)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({signs}) "  # noqa: S608  # names are the store's own
        f"ON CONFLICT ({', '.join(keys)}) {conflict}"
    )
