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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a fresh PostgreSQL server on loopback."""
    programs = _postgres_programs()
    if programs is None:
        pytest.skip(reason="no PostgreSQL server is installed (apt-get install postgresql)")
    initdb, pg_ctl = programs
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="answerkey-pg-")
    # The server refuses to run as root; Debian's package makes a user for it.
    as_user: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    data = f"{folder}/data"
    subprocess.run([*as_user, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"], **quiet)
    flags = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
    subprocess.run([*as_user, pg_ctl, "-D", data, "-w", "-l", f"{folder}/log", "-o", flags, "start"], **quiet)
    yield f"postgresql://postgres@127.0.0.1:{port}"
    subprocess.run([*as_user, pg_ctl, "-D", data, "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder, ignore_errors=True)


def _empty_store(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    name = f"store_{os.urandom(6).hex()}"
    if kind == "sqlite":
        return str(folder / f"{name}.db")
    import psycopg

    server = request.getfixturevalue("postgres_server")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store on each kind of database."""
    return _empty_store(request, request.param, tmp_path)


@pytest.fixture
def new_store_url(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> str:
    """Another one of the same kind."""
    return _empty_store(request, "postgres" if "://" in store_url else "sqlite", tmp_path)
