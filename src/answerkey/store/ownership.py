"""Ownership of a running run.

One process at a time asks a run's questions: it holds a lease in the store and renews it with a heartbeat. Taking a run
over does not depend on wall clocks: a process on this machine is looked up directly; for one on another machine the
heartbeat is watched, by this process's monotonic clock, for longer than it may pause.
"""

import os
import threading
import time
from functools import cache
from pathlib import Path

import msgspec

from answerkey.errors import RunOwnedError, StoreError
from answerkey.model.run import RunInfo
from answerkey.store.database import Connection, Database, insert, now

# Between two heartbeats.
BEAT_SECONDS = 3.0
# An owner on another machine without a heartbeat for this long is dead.
WATCH_SECONDS = 12.0
# Between two checks of a watched owner.
_CHECK_SECONDS = 0.25

_COLUMNS = "run_id, owner, host, pid, process, since, beats, beat_at"


class Owner(msgspec.Struct, frozen=True):
    """The process that asks a run's questions."""

    run_id: str
    # A random id of the lease.
    owner: str
    host: str
    pid: int
    # Machine, process id and start time of the process: unique.
    process: str
    since: str
    beats: int
    beat_at: float

    @property
    def alive(self) -> bool | None:
        """Whether the process exists; None if it is on another machine or in another container."""
        machine, pid, began = self.process.rsplit("/", 2)
        return None if machine != _machine() else _began(pid) == began


class Lease:
    """This process's lease of a run: renewed while the context is open, released when it is left."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._owner = owner
        # Set when another process has taken the run over, e.g. after a long sleep of this machine.
        self.lost = threading.Event()
        self._released = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="answerkey-lease", daemon=True)

    def __enter__(self) -> "Lease":
        self._heart.start()
        return self

    def _beat(self) -> None:
        sql = (
            f"UPDATE leases SET beats = beats + 1, beat_at = {self._database.clock} "
            "WHERE run_id = ? AND owner = ?"
        )
        while not self._released.wait(BEAT_SECONDS):
            try:
                with self._database.transaction() as connection:
                    kept = connection.run(sql, (self._owner.run_id, self._owner.owner)).rowcount
            except StoreError:
                # While the database is unreachable, other processes cannot take the run over either.
                continue
            if not kept:
                self.lost.set()
                return

    def __exit__(self, *exc: object) -> None:
        self._released.set()
        self._heart.join()
        try:
            with self._database.transaction() as connection:
                connection.run(
                    "DELETE FROM leases WHERE run_id = ? AND owner = ?",
                    (self._owner.run_id, self._owner.owner),
                )
        except StoreError:
            # The lease ends with this process anyway.
            return


def claim_run(
    database: Database, run_id: str, *, wait: bool = False, watch_seconds: float = WATCH_SECONDS
) -> Lease:
    """Become a run's owner; if another process is, raise RunOwnedError, or with `wait` wait until it ends."""
    seen: Owner | None = None
    seen_at = 0.0
    while True:
        with database.transaction() as connection:
            found = owner_of(connection, run_id)
            alive = False if found is None else found.alive
            if found is not None and alive is None:
                if seen is None or (seen.owner, seen.beats) != (found.owner, found.beats):
                    alive = None if seen is None else True
                    seen, seen_at = found, time.monotonic()
                elif time.monotonic() - seen_at > watch_seconds:
                    alive = False
            lease = _take(database, connection, run_id, found) if alive is False else None
        if lease is not None:
            return Lease(database, lease)
        if alive and found is not None and not wait:
            raise RunOwnedError(
                f"run {run_id} is being asked by process {found.pid} on {found.host} since {found.since[:19]}; "
                f"stop it first, or wait for it: answerkey resume {run_id} --wait"
            )
        time.sleep(_CHECK_SECONDS)


def owner_of(connection: Connection, run_id: str) -> Owner | None:
    """The owner of a run, alive or not."""
    row = connection.run(f"SELECT {_COLUMNS} FROM leases WHERE run_id = ?", (run_id,)).fetchone()
    return None if row is None else Owner(*row)


def with_true_status(database: Database, connection: Connection, info: RunInfo) -> RunInfo:
    """A run with its actual status: a running run whose owner is dead has been interrupted."""
    if info.status != "running":
        return info
    owner = owner_of(connection, info.id)
    alive = False if owner is None else owner.alive
    if owner is not None and alive is None:
        # Only for display, so the database's clock is good enough.
        alive = float(connection.value(f"SELECT {database.clock}")) - owner.beat_at < WATCH_SECONDS
    return info if alive else msgspec.structs.replace(info, status="interrupted")


def _take(database: Database, connection: Connection, run_id: str, dead: Owner | None) -> Owner | None:
    """Write this process's lease, unless another process was faster."""
    pid = os.getpid()
    process = f"{_machine()}/{pid}/{_began(str(pid))}"
    clock = float(connection.value(f"SELECT {database.clock}"))
    mine = Owner(run_id, os.urandom(8).hex(), _host(), pid, process, now(), 0, clock)
    values = msgspec.structs.astuple(mine)
    if dead is None:
        return mine if connection.run(insert("leases"), values).rowcount else None
    changes = ", ".join(f"{column} = ?" for column in _COLUMNS.split(", "))
    sql = f"UPDATE leases SET {changes} WHERE run_id = ? AND owner = ? AND beats = ?"
    return mine if connection.run(sql, (*values, run_id, dead.owner, dead.beats)).rowcount else None


@cache
def _machine() -> str:
    """This boot of this machine and its container: the scope of process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return _host()


def _host() -> str:
    # Commands that only read start without it.
    import socket

    return socket.gethostname()


def _began(pid: str) -> str | None:
    """The start time of a process in the system's units; None if there is no such process."""
    try:
        # After the program's name, which may contain anything: the state first, the start time 20th.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else fields[18]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists() or os.name != "posix":
            return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "?"
