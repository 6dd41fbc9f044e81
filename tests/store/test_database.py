"""How a store is opened, shared by threads and programs, and read where it cannot be written."""

import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from answerkey import plugins
from answerkey.errors import StoreAwayError, StoreError, UsageError
from answerkey.model.options import Scoring
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from answerkey.store.sql import SqlStore
from answerkey.store.sqlite import SqliteDatabase

from .filling import add_run, golden
from .postgres_server import PostgresServer


@pytest.mark.parametrize("url", ["runs.db", "sqlite:///runs.db", ":memory:", "sqlite://"])
def test_what_a_url_means(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(url) as store:
        assert store.count_runs() == 0
    assert (tmp_path / "runs.db").exists() == ("runs" in url)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("just some notes, and quite a few of them" * 50)
    with pytest.raises(StoreError, match=r"notes\.db: file is not a database; it is not an answerkey store"):
        open_store(str(tmp_path / "notes.db"))


def test_an_unknown_scheme_is_refused_with_those_there_are() -> None:
    with pytest.raises(StoreError, match=r"mongodb://…: unknown kind of database; use postgresql, sqlite"):
        open_store("mongodb://user:secret@host/db")


def test_a_package_can_bring_another_scheme(tmp_path: Path) -> None:
    def open_elsewhere(url: str, *, folder: Path | None, create: bool) -> SqlStore:
        return SqlStore(SqliteDatabase(url.partition("://")[2], folder=folder, create=create))

    if "elsewhere" not in plugins.stores.names():
        plugins.stores.add("elsewhere", open_elsewhere)
    with open_store(f"elsewhere://{tmp_path}/x.db") as store:
        assert store.count_runs() == 0
    with pytest.raises(UsageError, match="there is already a store 'sqlite'"):
        plugins.stores.add("sqlite", open_elsewhere)


def test_many_threads_read_while_one_writes(store_url: str) -> None:
    with open_store(store_url) as store:
        info = add_run(store, "r1", finish=False, asked=0)
        begun = threading.Barrier(5, timeout=30)

        def read() -> int:
            begun.wait()
            return max(len(list(store.results(info))) for _ in range(20))

        def write() -> None:
            begun.wait()
            for position, question in enumerate(golden()):
                replies = (Reply(text="x"),)
                card = make_grader(Scoring()).grade(question, replies)
                store.add(info, [Trial(question, 1, position, replies, card)])

        with ThreadPoolExecutor(5) as pool:
            readers = [pool.submit(read) for _ in range(4)]
            pool.submit(write).result()
            assert all(reader.result() <= 6 for reader in readers)
        assert len(list(store.results(info))) == 6


def test_a_stream_that_is_given_up_blocks_nobody(store_url: str) -> None:
    with open_store(store_url) as store:
        info = add_run(store, "r1")
        results = store.results(info)
        assert next(results).question.id == "q0"
        # Another connection writes meanwhile.
        add_run(store, "r2", day=1)
        results.close()
        store.delete_run("r1")
        assert [each.id for each in store.list_infos()] == ["r2"]


def test_what_fails_within_a_transaction_leaves_nothing_behind(store_url: str) -> None:
    with open_store(store_url) as store:

        def write_half(then: str) -> None:
            with store.database.transaction() as connection:
                connection.run("INSERT INTO names (name) VALUES (?)", ("half",))
                connection.run(then) if then else math.sqrt(-1)

        with pytest.raises(ValueError, match="math domain"):
            write_half("")
        with pytest.raises(StoreError) as caught:
            write_half("SELECT nonsense FROM nowhere")
        assert "\n" not in str(caught.value)
        with store.database.reading() as connection:
            assert connection.value("SELECT COUNT(*) FROM names") == 0


READ_ONLY = """
import os, sys
# All that the store imports while it is used: the other user may not read Python's own files.
import shutil, tempfile
from answerkey.errors import StoreError
from answerkey.store import open_store
from answerkey.store import sqlite
if os.geteuid() == 0:
    # Root may write everywhere.
    os.setuid(65534)
with open_store(sys.argv[1], create=False) as store:
    print([len(list(store.results(info))) for info in store.list_infos()])
    try:
        store.set_baseline("production", store.find_run("latest").id)
    except StoreError as error:
        print(error)
"""
# Leaves its log beside the file, as a killed process does.
KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from answerkey.store import open_store
from store.filling import add_run
store = open_store(sys.argv[1])
add_run(store, "r1")
os._exit(0)
"""


def _written(path: Path) -> None:
    with open_store(str(path)) as store:
        add_run(store, "r1")


def _killed(path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", KILLED, str(path), tests], check=True)
    # As a copy of the folder may lack it.
    Path(f"{path}-shm").unlink()
    assert Path(f"{path}-wal").stat().st_size


@pytest.mark.parametrize(("write", "results"), [(_written, "[6]"), (_killed, "[6]")])
def test_a_file_that_cannot_be_written_is_read_all_the_same(
    write: Callable[[Path], None], results: str
) -> None:
    # Not pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "store.db"
        write(path)
        for file in Path(name).iterdir():
            file.chmod(0o444)
        Path(name).chmod(0o555)
        before = path.read_bytes()
        done = subprocess.run([sys.executable, "-c", READ_ONLY, str(path)], capture_output=True, text=True)
        assert path.read_bytes() == before
        Path(name).chmod(0o755)
    counted, said = done.stdout.splitlines()
    assert counted == results
    assert "it cannot be written; make it writable or use another --store" in said, done.stderr


def test_many_rows_of_which_some_are_there_already(store_url: str) -> None:
    """They come as a stream to PostgreSQL, which takes all of it or nothing."""
    questions = golden(40)
    grader = make_grader(Scoring())

    def trials(said: str, places: range) -> list[Trial]:
        asked = [(place, questions.questions[place], (Reply(text=f"{said} {place}"),)) for place in places]
        return [
            Trial(question, 1, place, found, grader.grade(question, found))
            for place, question, found in asked
        ]

    with open_store(store_url) as store:
        info = add_run(store, "r1", questions=questions, finish=False, asked=0)
        store.add(info, trials("first", range(20)))
        store.add(info, trials("second", range(10, 40)))
        found = [trial.replies[0].text for trial in store.results(info)]
    assert found == [f"first {place}" if place < 20 else f"second {place}" for place in range(40)]


def test_a_first_large_run_is_planned_for_by_its_size(store_url: str) -> None:
    """Without statistics PostgreSQL would expect a single row and compare each reply with each other one."""
    with open_store(store_url) as store:
        info = add_run(store, "r1", questions=golden(600), finish=False)
        if store.database.dialect == "postgresql":
            with store.database.reading() as connection:
                known = connection.value("SELECT reltuples FROM pg_class WHERE oid = 'scorecards'::regclass")
            assert known == 600
        assert sum(1 for _ in store.results(info)) == 600


@pytest.mark.postgres
def test_a_server_that_turned_read_only_is_waited_for(own_postgres_server: PostgresServer) -> None:
    import psycopg

    url = own_postgres_server.new_database()
    with open_store(url) as store:
        add_run(store, "first")
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with open_store(url) as store, pytest.raises(StoreAwayError, match="the server is read-only"):
        add_run(store, "second")
