"""Keys from a real PostgreSQL server: values, one snapshot, and everything that is refused."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from answerkey.errors import TruthError
from answerkey.golden.truth_sources import TruthSource, open_source
from answerkey.model.question import TruthSettings
from store.postgres_server import PostgresServer

psycopg = pytest.importorskip("psycopg", reason="connects to PostgreSQL")
pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    try:
        server = PostgresServer("fsync=off")
    except FileNotFoundError as missing:
        pytest.skip(reason=str(missing))
    server.start()
    address = server.new_database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE bookings (month text, gross numeric(10, 2), paid_on date, note bytea)"
        )
        connection.execute(
            "INSERT INTO bookings VALUES ('2025-07', 3000.50, '2025-07-04', NULL), "
            "('2025-07', 959.50, '2025-07-30', 'x'), ('2025-08', 10, NULL, NULL)"
        )
    yield address
    server.stop()
    server.remove()


@pytest.fixture
def bookings(url: str, tmp_path: Path) -> Iterator[TruthSource]:
    source = open_source("books", TruthSettings(url=url, timeout=1.0, max_rows=50), tmp_path)
    yield source
    source.close()


def test_values_carry_their_types(bookings: TruthSource) -> None:
    total = "SELECT SUM(gross) FROM bookings WHERE month = :month AND month LIKE '2025%'"
    assert bookings.values(total, {"month": "2025-07", "unused": 1}) == [3960.0]
    days = "SELECT paid_on::date FROM bookings WHERE paid_on IS NOT NULL ORDER BY 1"
    assert bookings.values(days, {}) == [datetime.date(2025, 7, 4), datetime.date(2025, 7, 30)]
    assert bookings.values("SELECT month FROM bookings WHERE gross < 100", {}) == ["2025-08"]
    assert bookings.values("SELECT paid_on FROM bookings WHERE month = '2025-08'", {}) == [None]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nothing FROM nowhere", 'relation "nowhere" does not exist'),
        ("DELETE FROM bookings", "the query writes"),
        ("SELECT pg_sleep(20)", "took longer than 1 s"),
        ("SELECT month, gross FROM bookings", "returns 2 columns"),
        ("SELECT note FROM bookings", "binary"),
        ("SELECT 'NaN'::float8", "nan, which is not a number"),
        ("SELECT generate_series(1, 1000000)", "more than 50 rows"),
        ("SELECT :year", "no value for :year"),
    ],
)
def test_a_bad_query_is_refused_and_the_next_one_works(
    bookings: TruthSource, query: str, message: str
) -> None:
    with pytest.raises(TruthError, match=message):
        bookings.values(query, {})
    assert bookings.values("SELECT COUNT(*) FROM bookings", {}) == [3]


def test_all_keys_see_one_snapshot(bookings: TruthSource, url: str) -> None:
    assert bookings.values("SELECT COUNT(*) FROM bookings WHERE gross > 5", {}) == [3]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("INSERT INTO bookings VALUES ('2025-09', 1000, NULL, NULL)")
        try:
            assert bookings.values("SELECT COUNT(*) FROM bookings WHERE gross > 5", {}) == [3]
        finally:
            other.execute("DELETE FROM bookings WHERE month = '2025-09'")


def test_a_server_that_is_away(tmp_path: Path) -> None:
    with pytest.raises(TruthError, match=r"\[truth.books\] url: .*(refused|failed)"):
        open_source("books", TruthSettings(url="postgresql://127.0.0.1:9/books"), tmp_path)
