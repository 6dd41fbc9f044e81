"""The scoring of a log that is interrupted, runs beside another one, or cannot write its journal."""

import errno
import io
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import AnswerkeyError, InputError, InterruptedRunError, StoreAwayError
from answerkey.model.run import Run, Summary
from answerkey.model.run_document import write_jsonl
from answerkey.protocols import Progress, RunningScore
from answerkey.runs.api import score_replies
from answerkey.runs.log_files import Block
from answerkey.runs.log_rows import LogPlan
from answerkey.runs.log_table import LogTable
from answerkey.runs.logs import LogScoring
from answerkey.runs.workers import ProcessPool
from answerkey.scorers.grader import make_grader

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
    return sorted(Path("cache", "answerkey", "scoring").glob("*.journal"))


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
    wait_until(lambda: Path("at work").exists() and journals())
    if how == "terminal":
        os.write(controller, b"\x03")
    elif how == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
    assert process.wait(60) == 130, Path("told").read_text()
    assert "run the same command again to continue" in Path("told").read_text()
    wait_until(lambda: not alive(process.pid))
    assert len(journals()) == 1
    Path("go on").touch()
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert (again.returncode, json.loads(again.stdout)["summary"]["replies"]) == (0, 240)
    os.close(controller)
    os.close(terminal)


def test_no_process_is_started_once_the_pool_is_closed() -> None:
    pool = ProcessPool(LogPlan(recipe=make_grader().recipe, pass_mark=0.7), 1)

    def blocks() -> Iterator[Block]:
        pool.close()
        yield Block(number=0, first=0, path="log", lines=b'{"id": "a", "answer": "b"}\n')

    with pytest.raises(AnswerkeyError, match="ended"):
        list(pool.score(blocks()))
    assert pool._workers == [None]


class Interrupts(Progress):
    """Presses Ctrl-C after the first part, once it has done something else."""

    def __init__(self, first: Callable[[], object] = lambda: None) -> None:
        self._first, self.found = first, list[object]()

    def advance(self, running: RunningScore) -> None:
        self.found.append(self._first())
        raise KeyboardInterrupt


RESUMABLE = LogScoring(processes=1, resumable=True)


def score(progress: Progress | None = None, how: LogScoring = RESUMABLE) -> Summary:
    return score_replies(Path("log.jsonl"), how=how, progress=progress or Progress()).summary


def test_a_second_command_for_the_same_log_works_beside_the_first() -> None:
    write_log()
    alone = score(how=LogScoring(processes=1))

    def second() -> tuple[Summary, str]:
        found = score()
        with pytest.raises(InterruptedRunError) as told:
            score(Interrupts())
        return found, str(told.value)

    first = Interrupts(second)
    with pytest.raises(InterruptedRunError, match="run the same command again to continue"):
        score(first)
    ((found, told),) = first.found  # type: ignore[misc]
    assert found == alone
    assert "starts from the beginning, since another command is scoring the same log" in told
    assert len(journals()) == 1
    assert score() == alone
    assert not journals()


@pytest.mark.parametrize("at", [0, 20, 5000, -30], ids=["magic", "header", "in a page", "at its end"])
def test_a_damaged_journal_changes_no_number(at: int) -> None:
    write_log()
    alone = score(how=LogScoring(processes=1))
    with pytest.raises(InterruptedRunError):
        score(Interrupts())
    (journal,) = journals()
    content = bytearray(journal.read_bytes())
    content[at] ^= 0x55
    journal.write_bytes(content)
    assert score() == alone
    assert not journals()


@pytest.mark.parametrize("damage", ["missing", "cut", "other bytes"])
def test_damaged_rows_beside_a_journal_are_written_again(damage: str) -> None:
    log, how = write_log(), LogScoring(processes=1, results="lines", resumable=True)
    alone = rows_of(score_replies(log, how=how))
    with pytest.raises(InterruptedRunError):
        score_replies(log, how=how, progress=Interrupts())
    [journal] = journals()
    lines = journal.with_name(f"{journal.name}-lines")
    content = lines.read_bytes()
    assert content.startswith(b"{")
    assert lines.stat().st_mode & 0o077 == 0
    if damage == "missing":
        lines.unlink()
    else:
        lines.write_bytes(content[:-100] if damage == "cut" else content.replace(b"grade", b"wrong"))
    assert rows_of(score_replies(log, how=how)) == alone
    assert not [*journal.parent.iterdir()]


def rows_of(run: Run) -> bytes:
    with io.BytesIO() as file:
        write_jsonl(run, file)
        return file.getvalue()


@pytest.mark.parametrize("packed", [b"canswerkey.nowhere\nNothing\n.", b"no pickle"])
def test_a_block_of_other_code_is_scored_again(packed: bytes) -> None:
    write_log()
    alone = score(how=LogScoring(processes=1))
    with pytest.raises(InterruptedRunError):
        score(Interrupts())
    (journal,) = journals()
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("UPDATE blocks SET summary = ?, checksum = ?", (packed, zlib.crc32(packed)))
    assert score() == alone


@pytest.mark.parametrize("place", ["/proc/nope", "file/cache"])
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_a_cache_that_cannot_be_made_is_done_without(
    monkeypatch: pytest.MonkeyPatch, place: str, variable: str
) -> None:
    write_log()
    Path("file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, place)
    assert score().replies == 240
    with pytest.raises(InterruptedRunError, match=r"starts from the beginning, since .* cannot be written"):
        score(Interrupts())


def test_journals_that_nobody_came_back_for_are_deleted() -> None:
    write_log()
    folder = Path("cache", "answerkey", "scoring")
    folder.mkdir(parents=True)
    names = ["old", "older and in use", "new"]
    paths = [folder / f"{name}.journal" for name in names]
    in_use = LogTable(paths[1])
    for path, days in zip(paths, [8, 30, 6], strict=True):
        path.touch()
        then = time.time() - days * 24 * 3600
        os.utime(path, (then, then))
    assert score().replies == 240
    assert journals() == sorted(paths[1:])
    in_use.close()


class Fails(Progress):
    """Something goes wrong after the first part."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def advance(self, running: RunningScore) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (InputError("no log"), 0),
        (ZeroDivisionError(), 0),
        (OSError(errno.ENOSPC, "full"), 0),
        (OSError(errno.EIO, "away"), 1),
        (AnswerkeyError("a process ended twice"), 1),
        (StoreAwayError("away"), 1),
        (SystemExit(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_a_scoring_that_may_get_further_next_time_keeps_its_journal(
    error: BaseException, kept: int
) -> None:
    write_log()
    with pytest.raises(type(error)):
        score(Fails(error))
    assert len(journals()) == kept
