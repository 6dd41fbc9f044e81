"""RunWriter: the same rows whichever way the database was opened."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.errors import StoreError
from answerkey.protocols import Exchange, Graded, Task
from answerkey.store import open_run_store, open_store, schema
from answerkey.store.sql import SqlStore
from answerkey.store.sqlite_file import SqliteFile
from answerkey.store.writing import KEYS
from answerkey_demo import golden_set_path


def test_the_keys_are_those_of_the_tables() -> None:
    for table, keys in KEYS.items():
        assert tuple(column.name for column in schema.metadata.tables[table].primary_key) == keys


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with open_store(str(path)) as store, store.transaction() as connection:
        return {
            name: sorted(tuple(row) for row in connection.execute(schema.metadata.tables[name].select()))
            for name in KEYS
        }


def test_a_file_and_an_sql_store_write_the_same(tmp_path: Path) -> None:
    run = answerkey.evaluate(str(golden_set_path()), "demo:basic", store=str(tmp_path / "light.db"))
    with open_store(str(tmp_path / "light.db")) as light, open_store(str(tmp_path / "full.db")) as full:
        info = run.info
        questions = answerkey.QuestionSet(
            questions=tuple(light.questions(info.question_set_hash)), name=info.question_set
        )
        full.create_run(info, questions)
        graded = [
            Graded(
                Exchange(Task(result.question, result.trial, position), result.replies),
                result.scorecard,
            )
            for position, result in enumerate(run.results)
        ]
        full.add(info, graded)
        full.finish_run(info, run.summary)
    one, other = rows(tmp_path / "light.db"), rows(tmp_path / "full.db")
    # When a reply was stored is its own.
    moment = [column.name for column in schema.replies.columns].index("created_at")
    for table in (one, other):
        table["replies"] = [row[:moment] + row[moment + 1 :] for row in table["replies"]]
    assert one == other
    assert len(one["replies"]) == run.summary.trials > 50


def test_a_run_on_a_file_is_written_without_sqlalchemy(tmp_path: Path) -> None:
    code = (
        "import answerkey, sys\n"
        "run = answerkey.evaluate([{'question': 'Yes?', 'expected_keywords': ['yes']}], lambda q: 'yes')\n"
        "assert run.summary.score is not None and len(list(run.results)) == 1\n"
        "assert 'sqlalchemy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with open_store(str(tmp_path / ".answerkey" / "answerkey.db")) as store:
        assert store.find_run("latest").status == "complete"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("runs.db", SqliteFile),
        ("sqlite:///runs.db", SqliteFile),
        (":memory:", SqlStore),
        ("sqlite://", SqlStore),
    ],
)
def test_what_a_url_means(url: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_run_store(url) as store:
        assert type(store) is kind
        assert store.full.count_runs() == 0
    assert (tmp_path / "runs.db").exists() == (kind is SqliteFile)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("just some notes, and quite a few of them" * 50)
    with pytest.raises(StoreError, match=r"notes\.db: file is not a database; it is not an answerkey store"):
        open_run_store(str(tmp_path / "notes.db"))


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with open_run_store(str(path)) as store, store.statements() as statements:
        statements.run("INSERT INTO answerkey_schema (version) VALUES (99)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"store .*new\.db: the store was made by a newer answerkey"):
        open_run_store(str(path))
    assert path.read_bytes() == before
