"""Deleting: runs with all that hangs on them, and what real users said and were told, one by one or by age."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.run import RunInfo
from answerkey.store.database import BATCH, Connection, signs
from answerkey.store.production_sums import recounted
from answerkey.store.sql import SqlStore

# A run with this tag is never pruned.
KEEP = "keep"


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """How much is gone."""

    runs: int = 0
    # Replies to real users.
    production_replies: int = 0
    # Verdicts on what is gone.
    feedback: int = 0


def old_runs(store: SqlStore, *, older_than_days: float | None, keep: int | None) -> list[RunInfo]:
    """Runs older than so many days, if that is given, and not among the newest `keep`, if that is; never baselines, runs
    under way, or those that are tagged to be kept."""
    if older_than_days is None and keep is None:
        raise UsageError("say what is old: --older-than DAYS, --keep N, or both")
    baselines = set(store.baselines().values())
    before = None if older_than_days is None else _days_ago(older_than_days)
    return [
        info
        for info in store.list_infos()[keep or 0 :]
        if (before is None or info.created_at < before)
        and info.id not in baselines
        and info.status != "running"
        and KEEP not in info.tags
    ]


def delete_runs(store: SqlStore, infos: Sequence[RunInfo]) -> Deleted:
    """Delete runs with their replies, scores and verdicts, and the questions that no other run asks."""
    names = {run_id: name for name, run_id in store.baselines().items()}
    for info in infos:
        if info.id in names:
            remedy = f"answerkey baseline remove {names[info.id]}"
            raise UsageError(f"run {info.id} is the baseline {names[info.id]!r}; first: {remedy}")
        if info.status == "running":
            raise UsageError(f"run {info.id} is under way; stop it first")
    feedback = 0
    for info in infos:
        feedback += store.delete_run(info.id)
        journal = store.database.journal_path(info.id)
        if journal is not None:
            journal.unlink(missing_ok=True)
    if infos:
        _sweep_questions(store)
    return Deleted(runs=len(infos), feedback=feedback)


def delete_reply(store: SqlStore, identity: str) -> Deleted:
    """Delete a production reply and what people said of it."""
    gone = _delete_replies(store, [identity])
    if not gone.production_replies:
        raise UnknownNameError(f"no production reply {identity[:120]!r} in this store")
    return gone


def delete_production(store: SqlStore, *, older_than_days: float) -> Deleted:
    """Delete production replies that were given more than so many days ago, with what people said of them, and verdicts
    of that age whose reply never came."""
    before = _days_ago(older_than_days)
    old = "SELECT id FROM production_replies WHERE created_at < ? ORDER BY created_at LIMIT ?"
    unmatched = "source <> 'review' AND production_id IS NULL AND run_id IS NULL AND created_at < ?"
    with store.database.transaction() as connection:
        said = connection.run(f"DELETE FROM feedback WHERE {unmatched}", (before,)).rowcount
    replies = 0
    # Some at a time: new ones are not kept waiting.
    while ids := [row[0] for row in store.database.stream(old, (before, BATCH))]:
        gone = _delete_replies(store, ids)
        replies, said = replies + gone.production_replies, said + gone.feedback
    return Deleted(production_replies=replies, feedback=int(said))


def _delete_replies(store: SqlStore, ids: Sequence[str]) -> Deleted:
    with store.database.transaction() as connection, recounted(store.database, connection, ids):
        these = f"IN ({signs(ids)})"
        said = connection.run(f"DELETE FROM feedback WHERE production_id {these}", ids).rowcount
        gone = connection.run(f"DELETE FROM production_replies WHERE id {these}", ids).rowcount
    return Deleted(production_replies=int(gone), feedback=int(said))


def _sweep_questions(store: SqlStore) -> None:
    with store.database.transaction() as connection:
        if store.database.kind == "postgresql":
            # A run that begins now either is seen below, or finds its questions gone and writes them.
            connection.run("LOCK TABLE set_items IN ACCESS EXCLUSIVE MODE")
        for number in _unused_sets(connection):
            connection.run("DELETE FROM set_items WHERE question_set = ?", (number,))
        connection.run(
            "DELETE FROM questions WHERE key NOT IN (SELECT question FROM set_items) "
            "AND NOT EXISTS (SELECT 1 FROM scorecards c WHERE c.question = questions.key)"
        )


def _unused_sets(connection: Connection) -> list[int]:
    used = {
        msgspec.json.decode(info, type=_AskedSet).question_set_hash
        for (info,) in connection.run("SELECT info FROM runs")
    }
    query = "SELECT DISTINCT n.key, n.name FROM set_items i JOIN names n ON n.key = i.question_set"
    return [key for key, name in connection.run(query).fetchall() if name not in used]


class _AskedSet(msgspec.Struct):
    question_set_hash: str


def _days_ago(days: float) -> str:
    try:
        return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
    except OverflowError:
        raise UsageError(f"{days:g} days ago there was nothing") from None
