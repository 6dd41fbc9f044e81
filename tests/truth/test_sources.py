"""Values of databases, files, documents and functions; and everything that is refused."""

import datetime
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import ConfigError, TruthError
from answerkey.golden.truth_sources import TruthSource, open_source
from answerkey.model.question import TruthSettings


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "books.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE reservations (month TEXT, gross REAL, guest TEXT, photo BLOB)")
        rows = [
            ("2025-07", 3000.5, "Ann", b"\x00"),
            ("2025-07", 959.5, "Ben", None),
            ("2025-08", 10.0, "Cy", None),
        ]
        connection.executemany("INSERT INTO reservations VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return path


@pytest.fixture
def books(database: Path, tmp_path: Path) -> Iterator[TruthSource]:
    source = open_source("books", TruthSettings(url="sqlite:///books.db", timeout=1.0, max_rows=50), tmp_path)
    yield source
    source.close()


def test_a_query_gives_its_column(books: TruthSource) -> None:
    total = "SELECT SUM(gross) FROM reservations WHERE month = :month"
    assert books.values(total, {"month": "2025-07"}) == [3960.0]
    assert books.values("SELECT guest FROM reservations ORDER BY 1", {}) == ["Ann", "Ben", "Cy"]
    assert books.values("SELECT SUM(gross) FROM reservations WHERE month = :month", {"month": "1999-01"}) == [
        None
    ]
    assert books.values("SELECT gross FROM reservations WHERE month = 'x'", {}) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM reservations", "read-only"),
        ("PRAGMA user_version = 3", "read-only"),
        ("ATTACH 'other.db' AS other", "read-only"),
        ("SELECT 1; DROP TABLE reservations", "one"),
        ("SELECT month, gross FROM reservations", "2 columns (month, gross); select one"),
        ("SELECT photo FROM reservations WHERE guest = 'Ann'", "binary"),
        ("SELECT * FROM missing", "no such table: missing"),
        ("SELECT gross FROM reservations WHERE month = :month", "no value for :month"),
        ("SELECT 9e999", "not a number"),
        (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
            "more than 50 rows",
        ),
        (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n",
            "longer than 1 s",
        ),
        ("nonsense", "syntax error"),
    ],
)
def test_a_bad_query_is_refused_with_the_reason(books: TruthSource, query: str, message: str) -> None:
    with pytest.raises(TruthError) as caught:
        books.values(query, {})
    assert message in str(caught.value)
    # It can still be used, and nothing was changed.
    assert books.values("SELECT COUNT(*) FROM reservations", {}) == [3]


def test_all_queries_see_one_snapshot(database: Path, tmp_path: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    source = open_source("books", TruthSettings(url="sqlite:///books.db"), tmp_path)
    try:
        assert source.values("SELECT COUNT(*) FROM reservations", {}) == [3]
        with sqlite3.connect(database) as writer:
            writer.execute("DELETE FROM reservations")
        writer.close()
        assert source.values("SELECT COUNT(*) FROM reservations", {}) == [3]
    finally:
        source.close()


def test_a_locked_database_is_said(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("answerkey.transcripts.files._LOCK_SECONDS", 0.05)
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(TruthError, match="locked"):
            open_source("books", TruthSettings(url="sqlite:///books.db"), tmp_path)
    finally:
        writer.close()


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(TruthError, match="no such file"):
        open_source("books", TruthSettings(url="sqlite:///none.db"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_absolute_path(database: Path) -> None:
    source = open_source("books", TruthSettings(url=f"sqlite:///{database}"), Path("/"))
    assert source.values("SELECT COUNT(*) FROM reservations", {}) == [3]
    source.close()


@pytest.mark.parametrize("settings", [TruthSettings(), TruthSettings(url="sqlite:///a.db", python="b.py")])
def test_a_source_is_exactly_one_thing(settings: TruthSettings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exactly one of url, files, document, python"):
        open_source("books", settings, tmp_path)


# Files.


@pytest.fixture
def exports(tmp_path: Path) -> Iterator[TruthSource]:
    (tmp_path / "airbnb_07.csv").write_text(
        "guest,amount,checkout\nAnn,3000.50,2025-07-04\nBen,959.50,2025-07-30\n"
    )
    (tmp_path / "airbnb_08.csv").write_text("guest,amount,checkout\nCy,10,2025-08-01\n")
    (tmp_path / "rates.json").write_text('[{"name": "base", "rate": 5}]')
    files = {"reservations": "airbnb_*.csv", "rates": "rates.json"}
    source = open_source("airbnb", TruthSettings(files=files, timeout=2.0, max_rows=50), tmp_path)
    yield source
    source.close()


def test_files_are_tables(exports: TruthSource) -> None:
    july = "SELECT SUM(amount) FROM reservations WHERE strftime(checkout, '%Y-%m') = :month"
    assert exports.values(july, {"month": "2025-07"}) == [3960.0]
    assert exports.values("SELECT MAX(checkout) FROM reservations", {}) == [datetime.date(2025, 8, 1)]
    assert exports.values("SELECT rate FROM rates", {}) == [5]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM reservations", "read-only"),
        ("COPY reservations TO 'stolen.csv'", "read-only"),
        ("SELECT * FROM read_csv('airbnb_07.csv')", "disabled"),
        ("SELECT 1; SELECT 2", "several statements"),
        ("SELECT guest, amount FROM reservations", "2 columns"),
        ("SELECT * FROM missing", "missing"),
        ("SELECT range FROM range(1000)", "more than 50 rows"),
        ("SELECT 'nan'::DOUBLE", "not a number"),
    ],
)
def test_a_bad_query_of_files_is_refused(exports: TruthSource, query: str, message: str) -> None:
    with pytest.raises(TruthError) as caught:
        exports.values(query, {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_query_of_files_that_never_ends_is_stopped(exports: TruthSource) -> None:
    endless = "SELECT COUNT(*) FROM range(10000000) a, range(10000000) b, range(100000) c"
    with pytest.raises(TruthError, match="longer than 2 s"):
        exports.values(endless, {})
    assert exports.values("SELECT COUNT(*) FROM rates", {}) == [1]


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(TruthError, match="no such file"):
        open_source("airbnb", TruthSettings(files={"reservations": "none_*.csv"}), tmp_path)


# Documents.


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "facts.json",
            '{"entity": {"name": "Poolula LLC", "formed": "2022-09-14", "members": ["Dana", "Teo"]}}',
        ),
        ("facts.toml", '[entity]\nname = "Poolula LLC"\nformed = "2022-09-14"\nmembers = ["Dana", "Teo"]\n'),
        ("facts.yml", 'entity:\n  name: Poolula LLC\n  formed: "2022-09-14"\n  members: [Dana, Teo]\n'),
    ],
)
def test_facts_are_found_by_their_path(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    source = open_source("facts", TruthSettings(document=name), tmp_path)
    assert source.values("entity.name", {}) == ["Poolula LLC"]
    assert source.values("entity.formed", {}) == ["2022-09-14"]
    assert source.values("entity.members", {}) == ["Dana", "Teo"]
    with pytest.raises(TruthError, match="entity has name, formed, members"):
        source.values("entity.formation", {})
    with pytest.raises(TruthError, match="is an object with name, formed, members"):
        source.values("entity", {})


def test_a_bad_document_is_said(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text("{")
    for name in ("facts.json", "none.json"):
        with pytest.raises(TruthError, match=name):
            open_source("facts", TruthSettings(document=name), tmp_path)


# Functions.


def test_functions_return_values_lists_and_dates(tmp_path: Path) -> None:
    (tmp_path / "rules_a.py").write_text(
        "import datetime\n"
        "def income(month): return {'2025-07': 3960}.get(month)\n"
        "def guests(): return ['Ann', 'Ben']\n"
        "def due(): return datetime.date(2026, 3, 16)\n"
        "def broken(): raise ValueError('no export for May')\n"
        "def odd(): return object()\n"
    )
    source = open_source("rules", TruthSettings(python="rules_a.py"), tmp_path)
    assert source.values("income", {"month": "2025-07"}) == [3960]
    assert source.values("income", {"month": "1999-01"}) == [None]
    assert source.values("guests", {}) == ["Ann", "Ben"]
    assert source.values("due", {}) == [datetime.date(2026, 3, 16)]
    for expression, message in (
        ("broken", "raised ValueError: no export for May"),
        ("odd", "is a object"),
        ("missing", "has no function 'missing'; it has income, guests"),
    ):
        with pytest.raises(TruthError) as caught:
            source.values(expression, {})
        assert message in str(caught.value)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, b"x", object()])
def test_values_that_no_reply_can_say_are_refused(value: Any) -> None:
    from answerkey.golden.truth_sources import plain_value

    with pytest.raises(TruthError):
        plain_value(value)
