"""Who owns a run: one process at a time, whatever clocks say; a dead one's is taken over, and the status says which."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from answerkey.errors import RunOwnedError
from answerkey.store import database, open_store
from answerkey.store.database import Lease, claim_run, owner_of
from answerkey.store.sql import SqlStore

from .filling import add_run


@pytest.fixture
def store(store_url: str) -> Iterator[SqlStore]:
    with open_store(store_url) as opened:
        add_run(opened, "r1", finish=False, asked=3)
        yield opened


def change_lease(store: SqlStore, **values: Any) -> None:
    with store.database.transaction() as connection:
        for column, value in values.items():
            connection.run(f"UPDATE leases SET {column} = ?", (value,))


def beats(store: SqlStore) -> int:
    with store.database.reading() as connection:
        found = owner_of(connection, "r1")
        assert found is not None
        return found.beats


def status(store: SqlStore) -> str:
    return store.find_run("r1").status


def test_a_live_run_is_refused_with_who_asks_it_since_when(store: SqlStore) -> None:
    with pytest.raises(
        RunOwnedError, match=r"^run r1 is being asked by process \d+ on \S+ since 20\S+; .* --wait$"
    ):
        claim_run(store.database, "r1")
    assert status(store) == "running"


CLAIM = """
import sys
from answerkey.store import open_store
from answerkey.store.database import claim_run
with open_store(sys.argv[1]) as store:
    claim_run(store.database, sys.argv[2]).__enter__()
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_owns_nothing_any_more(store: SqlStore, store_url: str) -> None:
    change_lease(store, run_id="another")
    owner = subprocess.Popen(
        [sys.executable, "-c", CLAIM, store_url, "r1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"mine\n"
    assert status(store) == "running"
    with pytest.raises(RunOwnedError, match=f"process {owner.pid} "):
        claim_run(store.database, "r1")
    owner.kill()
    # Not waited for: a process that is dead is dead before anybody has taken note of it.
    while status(store) == "running":
        time.sleep(0.002)
    assert status(store) == "interrupted"
    with claim_run(store.database, "r1"):
        assert status(store) == "running"
    assert status(store) == "interrupted"
    owner.communicate()


def test_a_process_id_that_was_given_to_another_process_is_not_the_owner(store: SqlStore) -> None:
    with store.database.reading() as connection:
        found = owner_of(connection, "r1")
    assert found is not None
    change_lease(store, process=found.process.rpartition("/")[0] + "/1")
    assert status(store) == "interrupted"
    claim_run(store.database, "r1")


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_jumps_steals_no_lease(store: SqlStore, jump: float) -> None:
    change_lease(store, process="elsewhere/1/1", beat_at=jump)
    stop = threading.Event()

    def heart() -> None:
        beat = 0
        while not stop.is_set():
            beat += 1
            change_lease(store, beats=beat)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(heart)
        try:
            with pytest.raises(RunOwnedError):
                claim_run(store.database, "r1")
        finally:
            stop.set()


def test_an_owner_elsewhere_whose_heart_stands_still_is_dead(store: SqlStore) -> None:
    change_lease(store, process="elsewhere/1/1")
    assert status(store) == "running"
    change_lease(store, beat_at=0.0)
    assert status(store) == "interrupted"
    claim_run(store.database, "r1", watch_seconds=0.0)
    assert status(store) == "running"


def test_who_was_taken_over_is_told(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BEAT_SECONDS", 0.01)
    change_lease(store, run_id="another")
    with claim_run(store.database, "r1") as lease:
        while beats(store) < 2:
            time.sleep(0.002)
        assert not lease.lost.is_set()
        change_lease(store, owner="somebody else")
        assert lease.lost.wait(60)
    # And takes nothing away from the new owner.
    assert beats(store) >= 2


def test_of_many_that_want_a_dead_owners_run_one_gets_it(store: SqlStore) -> None:
    change_lease(store, process="elsewhere/1/1", beat_at=0.0)
    begun = threading.Barrier(4, timeout=60)

    def claim() -> Lease | None:
        begun.wait()
        try:
            return claim_run(store.database, "r1", watch_seconds=0.0)
        except RunOwnedError:
            return None

    with ThreadPoolExecutor(4) as pool:
        claimed = [future.result() for future in [pool.submit(claim) for _ in range(4)]]
    assert sum(lease is not None for lease in claimed) == 1


def test_waiting_ends_with_the_owner(store: SqlStore) -> None:
    change_lease(store, run_id="another")
    with ThreadPoolExecutor(1) as pool:
        with claim_run(store.database, "r1"):
            waiting = pool.submit(claim_run, store.database, "r1", wait=True)
            assert not waiting.done()
        assert isinstance(waiting.result(60), Lease)


def test_deleting_a_run_forgets_its_owner_and_the_ids_of_its_replies(store: SqlStore) -> None:
    add_run(store, "r2", day=1)
    store.delete_run("r1")
    with store.database.reading() as connection:
        assert connection.value("SELECT COUNT(*) FROM leases") == 0
        assert connection.value("SELECT COUNT(*) FROM reply_ids") == 8
    store.delete_run("r2")
    with store.database.reading() as connection:
        for table in ("reply_ids", "replies", "scorecards", "scorecard_details", "runs"):
            assert connection.value(f"SELECT COUNT(*) FROM {table}") == 0
