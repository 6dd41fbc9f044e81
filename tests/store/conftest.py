"""A real SQLite file and a real PostgreSQL server."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _postgres_programs() -> tuple[str, str] | None:
    found = [shutil.which(name) for name in ("initdb", "pg_ctl")]
    if all(found):
        return found[0], found[1]  # type: ignore[return-value]
    # Debian keeps the server's programs off the path.
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return str(folder / "initdb"), str(folder / "pg_ctl")
    return None


class PostgresServer:
    """A fresh PostgreSQL server on loopback, which can be stopped and started."""

    def __init__(self) -> None:
        programs = _postgres_programs()
        if programs is None:
            pytest.skip(reason="no PostgreSQL server is installed (apt-get install postgresql)")
        initdb, self._pg_ctl = programs
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}"
        self._folder = tempfile.mkdtemp(prefix="answerkey-pg-")
        # The server refuses to run as root; Debian's package makes a user for it.
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
            self._as_user = ["runuser", "-u", "postgres", "--"]
        self._call(initdb, "-A", "trust", "-U", "postgres", "--no-sync")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, program, "-D", f"{self._folder}/data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        flags = f"-c listen_addresses=127.0.0.1 -p {self._port} -k {self._folder} -c fsync=off"
        self._call(self._pg_ctl, "-w", "-l", f"{self._folder}/log", "-o", flags, "start")

    def stop(self) -> None:
        """Stop it at once, as if it had crashed."""
        self._call(self._pg_ctl, "-m", "immediate", "stop")

    def remove(self) -> None:
        """Remove its files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def new_database(self) -> str:
        """The address of an empty database."""
        import psycopg

        name = f"store_{os.urandom(6).hex()}"
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url}/{name}"


def _started() -> Iterator[PostgresServer]:
    server = PostgresServer()
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
