"""Runs that are killed, stopped, cut off from their database or short of room: what was answered is not asked again.

The chatbot is a real one on loopback, the run a process of its own. `make crash` kills a hundred on each database, and stops
PostgreSQL for half a minute.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from answerkey.store import open_store
from run_documents import stripped

from .postgres_server import PostgresServer

KILLS = int(os.environ.get("ANSWERKEY_KILLS", "4"))
# Seconds that the database stays away at least, if all has been asked before.
OUTAGE = float(os.environ.get("ANSWERKEY_OUTAGE", "0"))
AT_ONCE = 4
ROWS = [
    {"id": f"q{n}", "question": f"Q{n}?", "expected_keywords": ["yes", f"Q{n - n % 2}"]} for n in range(150)
]


class Asker:
    """A golden set, a chatbot and a store, and answerkey as processes of their own upon them."""

    def __init__(self, bot: Any, golden: Path, store: str) -> None:
        self.bot, self.golden, self.store = bot, golden, store
        # The chatbot keeps silent on what it is asked after so many questions.
        self.silent_after = len(ROWS) * 1000
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, **how: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "answerkey", *map(str, arguments), "--store", self.store]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.golden.parent, **how
        )
        self._started.append(process)
        return process

    def run(self, *more: object, **how: Any) -> "subprocess.Popen[str]":
        return self.start(
            "run",
            self.golden,
            "--target",
            self.bot.url,
            "--concurrency",
            AT_ONCE,
            "--name",
            "it",
            *more,
            **how,
        )

    def document(self, *arguments: object) -> dict[str, Any]:
        import json

        out, err = self.start(*arguments, "--json").communicate(timeout=600)
        assert out, err
        document: dict[str, Any] = json.loads(out)
        return document

    def wait_for_questions(self, number: int, process: "subprocess.Popen[str]") -> None:
        while len(self.bot.asked) < number and process.poll() is None:
            time.sleep(0.002)

    def asked_twice(self) -> int:
        return sum(Counter(body["question"] for body in self.bot.asked).values()) - len(
            {body["question"] for body in self.bot.asked}
        )

    def status(self) -> str:
        with open_store(self.store) as opened:
            return opened.find_run("it").status

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def asker(chatbot: Callable[..., Any], write_rows: Any, store_url: str) -> Iterator[Asker]:
    yield from _asker(chatbot, write_rows, store_url)


def _asker(chatbot: Callable[..., Any], write_rows: Any, store_url: str) -> Iterator[Asker]:
    async def answer(body: dict[str, Any]) -> dict[str, Any]:
        number = len(made.bot.asked)
        await asyncio.sleep(0.005)
        while number > made.silent_after:  # noqa: ASYNC110  # another thread says when
            await asyncio.sleep(0.01)
        return {"answer": f"{body['question']} yes", "tools_used": []}

    made = Asker(chatbot(answer), write_rows("golden.jsonl", *ROWS), store_url)
    yield made
    made.end()


def test_killed_at_any_moment_only_what_was_under_way_is_asked_again(asker: Asker) -> None:
    """In rounds: a run that is killed, resumed, killed again …, and ends like one that nobody disturbed."""
    undisturbed = stripped(asker.document("run", asker.golden, "--target", asker.bot.url))
    killed = 0
    while killed < KILLS:
        asker.bot.asked.clear()
        process = asker.run()
        killed_now = 0
        while killed < KILLS and len(asker.bot.asked) < len(ROWS):
            asker.wait_for_questions(len(asker.bot.asked) + random.randint(1, 50), process)
            if process.poll() is None:
                process.kill()
                killed, killed_now = killed + 1, killed_now + 1
            process.wait()
            assert asker.status() in ("interrupted", "complete")
            assert asker.asked_twice() <= AT_ONCE * killed_now
            if killed < KILLS:
                process = asker.start("resume", "it")
        process.wait()
        was_complete = asker.status() == "complete"
        document = asker.document("resume", "it")
        assert document["run"]["status"] == "complete"
        if was_complete:
            (said,) = document["warnings"]
            assert "nothing is missing" in said
            document["warnings"] = []
        assert stripped(document) == undisturbed
        assert asker.asked_twice() <= AT_ONCE * killed_now
    assert not list(asker.golden.parent.rglob("*.journal"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_other_signals_stop_a_run_like_ctrl_c(asker: Asker, number: int) -> None:
    asker.silent_after = 40
    # The process that started the tests may ignore the signal, as nohup does, and processes inherit that.
    process = asker.run(preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    asker.wait_for_questions(40 + AT_ONCE, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert err.splitlines()[-1].startswith("answerkey: interrupted; continue with: answerkey resume ")
    assert asker.status() == "interrupted"
    with open_store(asker.store) as opened:
        assert len(opened.reply_keys(opened.find_run("it"))) == 40
    asker.silent_after = 10**6
    assert asker.document("resume", "it")["summary"]["coverage"] == 1.0
    assert asker.asked_twice() <= AT_ONCE


def test_in_a_shells_background_a_run_can_be_stopped_too(asker: Asker) -> None:
    asker.silent_after = 20
    process = asker.run(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    asker.wait_for_questions(20 + AT_ONCE, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert asker.status() == "interrupted"


def test_two_resumes_at_once_ask_nothing_twice(asker: Asker) -> None:
    asker.silent_after = 20
    process = asker.run()
    asker.wait_for_questions(20 + AT_ONCE, process)
    process.kill()
    process.wait()
    again = [asker.start("resume", "it"), asker.start("resume", "it")]
    while all(one.poll() is None for one in again):
        time.sleep(0.002)
    (refused,) = [one for one in again if one.poll() is not None]
    (owner,) = [one for one in again if one is not refused]
    _, err = refused.communicate()
    assert refused.returncode == 2
    assert f"is being asked by process {owner.pid} on " in err
    assert err.count("\n") == 1
    assert asker.status() == "running"
    # A third one is told to wait, and shows what the first has asked.
    waiting = asker.start("resume", "it", "--wait", "--json")
    asker.silent_after = 10**6
    out, err = waiting.communicate(timeout=600)
    assert '"complete"' in out, err
    assert owner.wait() == 0
    assert asker.asked_twice() <= 2 * AT_ONCE
    assert stripped(asker.document("show", "it")) == stripped(
        asker.document("run", asker.golden, "--target", asker.bot.url)
    )


@pytest.fixture
def server_asker(
    chatbot: Callable[..., Any], write_rows: Any, own_postgres_server: PostgresServer
) -> Iterator[Asker]:
    yield from _asker(chatbot, write_rows, own_postgres_server.new_database())


@pytest.mark.postgres
def test_a_database_that_is_away_is_waited_for_and_nothing_is_lost(
    server_asker: Asker, own_postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asker = server_asker
    process = asker.run("--json")
    asker.wait_for_questions(30, process)
    own_postgres_server.stop()
    stopped = time.monotonic()
    # Asking goes on meanwhile, all of it if need be.
    asker.wait_for_questions(len(ROWS), process)
    time.sleep(max(0.0, stopped + OUTAGE - time.monotonic()))
    assert process.poll() is None
    own_postgres_server.start()
    with capsys.disabled():
        print(f"PostgreSQL was away for {time.monotonic() - stopped:.1f} s")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert '"status": "complete"' in out or '"status":"complete"' in out
    assert asker.asked_twice() == 0
    shown = asker.document("show", "it")
    assert shown["summary"]["coverage"] == 1.0
    assert stripped(shown) == stripped(asker.document("run", asker.golden, "--target", asker.bot.url))


@pytest.mark.postgres
def test_a_database_that_stays_away_interrupts_the_run_which_then_goes_on(
    server_asker: Asker, own_postgres_server: PostgresServer
) -> None:
    asker = server_asker
    (asker.golden.parent / "answerkey.toml").write_text("[run]\nstore_patience = 0.5\n")
    process = asker.run()
    asker.wait_for_questions(30, process)
    own_postgres_server.stop()
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "; then continue with: answerkey resume " in err.splitlines()[-1], err
    (journal,) = asker.golden.parent.rglob("*.journal")
    assert f" replies are saved in {journal}" in err
    asked = len(asker.bot.asked)
    own_postgres_server.start()
    assert asker.status() == "interrupted"
    document = asker.document("resume", "it")
    assert document["summary"]["coverage"] == 1.0
    assert len(asker.bot.asked) <= len(ROWS) + AT_ONCE
    assert len(asker.bot.asked) >= asked
    assert not journal.exists()


def _limit_files(size: int) -> Callable[[], None]:
    import resource

    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    chatbot: Callable[..., Any], write_rows: Any, tmp_path: Path
) -> None:
    for asker in _asker(chatbot, write_rows, str(tmp_path / "store.db")):
        open_store(asker.store).close()
        room = (tmp_path / "store.db").stat().st_size
        process = asker.run(preexec_fn=_limit_files(room))
        _, err = process.communicate(timeout=600)
        assert process.returncode == 130, err
        assert err.count("\n") == 1
        assert "make room on its disk" in err
        assert "; then continue with: answerkey resume " in err
        assert asker.status() == "interrupted"
        assert asker.document("resume", "it")["summary"]["coverage"] == 1.0
        # At most those that were under way, and the one that found no room.
        assert len(asker.bot.asked) <= len(ROWS) + 2 * AT_ONCE
