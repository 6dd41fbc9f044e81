"""A PostgreSQL server of one's own, for tests and benchmarks."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from free_ports import free_port


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

    def __init__(self, *settings: str) -> None:
        programs = _postgres_programs()
        if programs is None:
            raise FileNotFoundError("no PostgreSQL server is installed (apt-get install postgresql)")
        initdb, self._pg_ctl = programs
        self._settings = "".join(f" -c {setting}" for setting in settings)
        self._port = free_port()
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
        flags = f"-c listen_addresses=127.0.0.1 -p {self._port} -k {self._folder}{self._settings}"
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
