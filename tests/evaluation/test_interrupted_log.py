"""The scoring of a log that is interrupted, disturbed by another one, or has nowhere to keep its journal."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from answerkey.evaluation.shard import Block, ShardPlan
from answerkey.evaluation.shard_processes import OtherProcesses, _Copy
from answerkey.scorers.plan import make_grader

# Says that it is at work, in the process that scores, and then waits to be ended, unless it may go on.
SLOW_SCORER = """
import os
import time

def slow(question, reply):
    if reply.text == "slow" and not os.path.exists("go on"):
        with open("at work", "w"):
            pass
        while True:
            time.sleep(0.01)
    return True
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ANSWERKEY_DEBUG", raising=False)
    return tmp_path


def write_log(rows: int = 240, slow: int | None = None) -> Path:
    """Several blocks; the scoring of one row waits."""
    with Path("log.jsonl").open("w") as file:
        for n in range(rows):
            row = {"id": f"q{n}", "question": f"Who is {n}?", "expected_keywords": ["Ann"], "answer": "Ann"}
            row |= {"context": "x" * 40_000, **({"answer": "slow"} if n == slow else {})}
            file.write(json.dumps(row) + "\n")
    return Path("log.jsonl")


def journals() -> list[Path]:
    return sorted(Path("cache", "answerkey", "scoring").glob("*"))


def wait_until(found: Any) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if found():
            return
        waiting.wait(0.01)
    pytest.fail("it did not happen within a minute")


def alive(group: int) -> bool:
    """Whether any process of a group, or session, still runs."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group, session = place.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if state != "Z" and group in (int(its_group), int(session)):
            return True
    return False


def slow_scoring() -> list[str]:
    Path("checks.py").write_text(SLOW_SCORER)
    Path("answerkey.toml").write_text(
        '[run]\nscoring_seconds = 600\n[scorers.slow]\npython = "checks.py:slow"\n'
    )
    write_log(slow=130)
    return [sys.executable, "-m", "answerkey", "score", "log.jsonl", "--processes", "2"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("how", ["group", "alone", "SIGTERM", "terminal"])
def test_however_it_is_interrupted_it_says_so_and_goes_on(how: str) -> None:
    command = slow_scoring()
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        # The first terminal that the leader of a session opens is its own, from which Ctrl-C comes.
        ["sh", "-c", 'exec <"$0" && exec "$@"', os.ttyname(terminal), *command],
        stdout=subprocess.DEVNULL,
        stderr=Path("told").open("w"),  # noqa: SIM115  # closed with the test
        start_new_session=True,
    )
    # All blocks but the one that waits have been scored: there is nothing more to come.
    wait_until(lambda: Path("at work").exists() and journals() and journals()[0].stat().st_size > 0)
    if how == "terminal":
        os.write(controller, b"\x03")
    elif how == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
    assert process.wait(60) == 130, Path("told").read_text()
    assert "the same command goes on where it stopped" in Path("told").read_text()
    wait_until(lambda: not alive(process.pid))
    assert len(journals()) == 1
    Path("go on").touch()
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert (again.returncode, json.loads(again.stdout)["summary"]["replies"]) == (0, 240)
    os.close(controller)
    os.close(terminal)


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux")
def test_a_process_may_be_waited_for_by_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    grader = make_grader()
    process = _Copy(ShardPlan(recipe=grader.recipe, pass_mark=0.7), grader)
    both, wait_for_it = threading.Barrier(2), os.waitpid

    def together(number: int, options: int) -> tuple[int, int]:
        # The other thread gets as far as this, if nothing keeps it from it.
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return wait_for_it(number, options)

    monkeypatch.setattr(os, "waitpid", together)
    process.kill()
    ended = list[int]()
    threads = [threading.Thread(target=lambda: ended.append(process.wait())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [-signal.SIGKILL] * 2


def test_no_process_is_started_once_it_is_closed() -> None:
    grader = make_grader()
    others = OtherProcesses(ShardPlan(recipe=grader.recipe, pass_mark=0.7), 1, grader)

    def blocks() -> Iterator[Block]:
        others.close()
        yield Block(number=0, first=0, path="log", lines=b'{"id": "a", "answer": "b"}\n')

    with pytest.raises(Exception, match="ended"):
        list(others.score(blocks()))
    assert len({id(process) for process in others._processes}) == 1
