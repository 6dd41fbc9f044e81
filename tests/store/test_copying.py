"""Stores checked, backed up, copied between databases, and rescued from a damaged file."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import UsageError
from answerkey.model.judgement import Feedback
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackStore
from answerkey.store.maintenance import back_up, check_store, copy_store
from answerkey.store.sql import SqlStore

from .filling import add_run, golden, good_reply
from .postgres_server import PostgresServer


def documents(store: SqlStore) -> dict[str, Any]:
    return {info.id: store.load_run(info).to_dict() for info in store.list_infos()}


@pytest.fixture
def filled(store_url: str) -> Iterator[SqlStore]:
    with open_store(store_url) as store:
        add_run(store, "r1", repeat=2)
        add_run(store, "r2", good_reply, questions=golden(200), day=1)
        store.set_baseline("production", "r1")
        FeedbackStore(store).add(
            Feedback(id="f", created_at="2026-11-01", value=1.0, response_id="resp-q0-1")
        )
        yield store


def test_a_sound_store_is_said_to_be_so(filled: SqlStore) -> None:
    found = check_store(filled)
    assert found.sound
    assert (found.rows["runs"], found.rows["replies"], found.damaged) == (2, 212, {})


@pytest.mark.parametrize(
    ("table", "change", "says"),
    [
        ("replies", "text = 'It is fact9 in Denver.'", "was changed since it was written"),
        ("replies", "payload = '[{]'", "cannot be decoded"),
        ("questions", "payload = replace(payload, 'Montrose', 'Denver')", "was changed since it was written"),
        ("runs", "info = '{}'", "cannot be decoded"),
        ("scorecard_details", "payload = 'x'", "cannot be decoded"),
    ],
)
def test_a_changed_row_is_found(filled: SqlStore, table: str, change: str, says: str) -> None:
    if filled.database.dialect == "postgresql":
        change = change.replace("'x'", "'x'::bytea")
    with filled.database.transaction() as connection:
        connection.run(f"UPDATE {table} SET {change}")
    found = check_store(filled)
    assert not found.sound
    assert found.damaged[table] == found.rows[table]
    assert says in found.findings[0]
    assert found.findings[0].startswith(f"{table}: ")


def test_a_backup_is_whole_while_the_store_is_in_use(filled: SqlStore, tmp_path: Path) -> None:
    add_run(filled, "r3", day=2, finish=False, asked=3)
    copied = back_up(filled, tmp_path / "backup.db")
    assert copied.rows["replies"] == 215
    with open_store(str(tmp_path / "backup.db"), create=False) as opened:
        assert documents(opened) == documents(filled) | {"r3": documents(opened)["r3"]}
        # Nobody is asking the copy.
        assert (filled.find_run("r3").status, opened.find_run("r3").status) == ("running", "interrupted")
        assert opened.baselines() == {"production": "r1"}
        assert opened.find_run("production").id == "r1"
    assert sorted(path.name for path in tmp_path.glob("backup*")) == ["backup.db"]
    with pytest.raises(UsageError, match="the file exists"):
        back_up(filled, tmp_path / "backup.db")


@pytest.mark.postgres
@pytest.mark.parametrize("path", ["there", "there and back"])
def test_a_copy_in_another_kind_of_database_has_the_same_documents(
    tmp_path: Path, postgres_server: PostgresServer, path: str
) -> None:
    with open_store(str(tmp_path / "one.db")) as store:
        add_run(store, "r1", repeat=2)
        add_run(store, "r2", good_reply, day=1)
        with open_store(postgres_server.new_database()) as copy:
            copy_store(store, copy)
            assert documents(copy) == documents(store)
            assert check_store(copy).sound
            # Numbers that the database gives go on after those that were copied.
            add_run(copy, "r3", day=2)
            with pytest.raises(UsageError, match="it is not empty; copy to a new store"):
                copy_store(store, copy)
            if path == "there and back":
                with open_store(str(tmp_path / "two.db")) as back:
                    copy_store(copy, back)
                    assert documents(back) == documents(copy)
                    assert check_store(back).sound


def damaged(path: Path, pages: list[int]) -> None:
    """Overwrite pages of an SQLite file, as a failing disk would."""
    content = bytearray(path.read_bytes())
    for page in pages:
        content[page * 4096 : (page + 1) * 4096] = random.Random(page).randbytes(4096)
    path.write_bytes(bytes(content))


def test_what_is_readable_of_a_damaged_file_is_rescued(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        add_run(store, "r1", good_reply, questions=golden(2000))
        before = documents(store)["r1"]
    with sqlite3.connect(path) as connection:
        pages = (
            [
                row[0] - 1
                for row in connection.execute(
                    "SELECT pageno FROM dbstat WHERE name = 'replies' AND pagetype = 'leaf' ORDER BY pageno"
                )
            ]
            if "ENABLE_DBSTAT_VTAB" in str(connection.execute("PRAGMA compile_options").fetchall())
            else []
        )
    connection.close()
    if not pages:
        pytest.skip(reason="this SQLite cannot tell which page belongs to which table")
    damaged(path, pages[10:200:40])
    done = command("store", "check", path)
    assert done.code == 1
    assert f"copy --salvage NEW --store {path}" in done.out
    refused = command("store", "copy", tmp_path / "no.db", "--store", path)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    rescued = command("store", "copy", "--salvage", tmp_path / "new.db", "--store", path)
    assert rescued.code == 0
    with open_store(str(tmp_path / "new.db")) as store:
        assert check_store(store).sound
        left = {result["id"]: result for result in documents(store)["r1"]["results"]}
        # Five pages hold a few dozen replies; all others are there, word for word.
        assert 1900 < len(left) < 2000
        assert all(result == left[result["id"]] for result in before["results"] if result["id"] in left)


def test_the_commands_tell_what_they_did(tmp_path: Path, command: Any) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        add_run(store, "r1")
    assert command("store", "check", "store.db").out == "store.db: sound; runs: 1, replies: 6\n"
    assert command("store", "check", "store.db", "--json").document["sound"] is True
    assert command("store", "backup", "b.db", "--store", "store.db").out == "b.db: runs: 1, replies: 6\n"
    copied = command("store", "copy", "c.db", "--store", "store.db", "--json").document
    assert copied["rows"]["replies"] == 6
    assert command("show", "r1", "--store", "c.db", "--json").document == (
        command("show", "r1", "--store", "b.db", "--json").document
    )


def test_a_journal_whose_run_is_lost_is_named(tmp_path: Path, command: Any) -> None:
    with open_store(str(tmp_path / "s.db")):
        lost = tmp_path / "s.db.abc123.journal"
        lost.write_text("its replies\n")
    outcome = command("store", "check", str(tmp_path / "s.db"))
    assert str(lost) in outcome.out
    assert "a run that is missing from the store" in outcome.out
