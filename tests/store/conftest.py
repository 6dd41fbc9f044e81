"""A real SQLite file and a real PostgreSQL server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .postgres_server import PostgresServer


def _started() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer("fsync=off")
    except FileNotFoundError as missing:
        pytest.skip(reason=str(missing))
    server.start()
    yield server
    server.stop()
    server.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for all tests."""
    yield from _started()


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A server for one test, which may stop it and must start it again."""
    yield from _started()


def _empty_store(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    if kind == "sqlite":
        return str(folder / f"store_{os.urandom(6).hex()}.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals of PostgreSQL runs stay in the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store on each kind of database."""
    return _empty_store(request, request.param, tmp_path)


@pytest.fixture
def new_store_url(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> str:
    """Another one of the same kind."""
    return _empty_store(request, "postgres" if "://" in store_url else "sqlite", tmp_path)
