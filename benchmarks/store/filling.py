"""A large store, quickly: two runs are written as a run writes them, and their rows are copied within the database."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from made_runs import BATCH, TEXT, TOOLS, made_info, made_trials, store_run

from answerkey.model.judgement import ProductionReply
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Reply, Timings
from answerkey.store.database import TABLES, sql
from answerkey.store.postgresql import PostgresqlDatabase
from answerkey.store.production import ProductionReplies, add_up, counts_of, production_row
from answerkey.store.sql import SqlStore

# Different production replies; further ones are these with other ids and times.
PATTERNS = 1000
START = datetime(2026, 1, 1, tzinfo=UTC)


def fill(store: SqlStore, questions: QuestionSet, runs: int) -> None:
    """Fill a store up to a number of runs of these questions, and as many production replies."""
    there = store.count_runs()
    for number in range(there, min(runs, 2)):
        store_run(store, made_info(number, questions), questions, list(made_trials(questions, seed=number)))
    for number in range(max(there, 2), runs):
        _copy_run(store, number, questions)
    _fill_production(store, runs * len(questions))
    if isinstance(store.database, PostgresqlDatabase):
        # As `serve` does.
        store.database.index_texts()


def _copy_run(store: SqlStore, number: int, questions: QuestionSet) -> None:
    info = made_info(number, questions)
    first = f"run{number % 2}"
    store.create_run(info, questions)
    with store.database.transaction() as connection:
        keys = [connection.value("SELECT key FROM runs WHERE id = ?", (one,)) for one in (info.id, first)]
        for table in ("replies", "scorecards", "scorecard_details"):
            others = ", ".join(list(TABLES[table].columns)[1:])
            copied = f"SELECT CAST(? AS INTEGER), {others} FROM {table} WHERE run = ?"
            connection.run(f"INSERT INTO {table} (run, {others}) {copied}", keys)
    store.database.update_statistics()
    summary = store.summary_of(first)
    assert summary is not None
    store.finish_run(made_info(number, questions, status="complete"), summary)


def _fill_production(store: SqlStore, count: int) -> None:
    patterns = [production_row(_production_reply(number)) for number in range(PATTERNS)]
    there = ProductionReplies(store).facets().replies
    for start in range(there, count, 20 * BATCH):
        rows = [
            (f"p{number}", (START + timedelta(seconds=number)).isoformat(), *patterns[number % PATTERNS][2:])
            for number in range(start, min(start + 20 * BATCH, count))
        ]
        with store.database.transaction() as connection:
            connection.insert("production_replies", rows)
            new = sql("p.created_at >= ? AND p.created_at <= ?", rows[0][1], rows[-1][1])
            add_up(connection, Counter(), counts_of(connection, new))


def _production_reply(number: int) -> ProductionReply:
    return ProductionReply(
        id="",
        created_at="",
        question=f"What is the rent of unit {number}?",
        reply=Reply(text=TEXT, tool_calls=TOOLS, timings=Timings(latency_ms=100.0 + number)),
        category=f"c{number % 12}",
        score=number % 11 / 10,
        model="made",
        version=str(number % 3),
        graded_by="s",
    )
