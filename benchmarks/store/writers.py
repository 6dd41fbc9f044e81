"""Processes that store runs at the same time; and COPY of the same rows, which is as fast as PostgreSQL takes them."""

import multiprocessing
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import psycopg
from made_runs import batches_of, made_info, made_questions, made_trials

from answerkey.store import open_store
from answerkey.store.database import TABLES


def together(url: str, writers: int, questions: int) -> float:
    """Replies a second of all writers, from the first one's start to the last one's end."""
    with open_store(url):
        # The tables are there.
        pass
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(writers), context.Queue()
    first = time.time_ns() // 1_000_000 % 100_000_000
    processes = [
        context.Process(target=_write, args=(url, first + number, questions, ready, done))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    times = [done.get() for _ in processes]
    for process in processes:
        process.join()
    wall = max(end for _, end in times) - min(start for start, _ in times)
    return writers * questions / wall


def _write(url: str, number: int, questions: int, ready: Barrier, done: "Queue[tuple[float, float]]") -> None:
    asked = made_questions(questions)
    trials = list(made_trials(asked, seed=number))
    info = made_info(number, asked)
    with open_store(url) as store:
        store.create_run(info, asked)
        ready.wait()
        begun = time.monotonic()
        for part in batches_of(trials):
            store.add(info, part)
        done.put((begun, time.monotonic()))


def copied_rows(url: str, questions: int) -> float:
    """Replies a second of COPY alone: the rows of a run are read out, forgotten, and copied back in one transaction each."""
    tables = ("replies", "scorecards", "scorecard_details")
    with psycopg.connect(url) as connection:
        key = connection.execute(
            "SELECT run FROM scorecards GROUP BY run HAVING COUNT(*) = %s", (questions,)
        ).fetchone()
        assert key is not None
        rows = {}
        for table in tables:
            rows[table] = connection.execute(f"SELECT * FROM {table} WHERE run = %s", key).fetchall()
            connection.execute(f"DELETE FROM {table} WHERE run = %s", key)
        connection.commit()
        begun = time.monotonic()
        for table in tables:
            with connection.cursor().copy(
                f"COPY {table} ({', '.join(TABLES[table].columns)}) FROM STDIN"
            ) as copy:
                for row in rows[table]:
                    copy.write_row(row)
            connection.commit()
        return questions / (time.monotonic() - begun)
