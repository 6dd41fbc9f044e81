"""`answerkey review` in a real pseudo-terminal: a person at the keys, and what is kept of it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
from pathlib import Path

import pytest

from answerkey.model.reply import Evidence, Reply
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackStore
from store.filling import add_run, golden

KEYS = "t trust · d don't trust · c comment · s skip · b back · q quit"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shaky(question, trial):
    return Reply(text=f"It is fact{question.id[1:]}.\x1b[2J", evidence=Evidence(tools_observed=True))


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "s.db"
    with open_store(str(path)) as store:
        add_run(store, "today", shaky, questions=golden(3))
    return path


class Terminal:
    """The command in a terminal of 100 columns."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
            os.execve(sys.executable, [sys.executable, "-m", "answerkey", *arguments], env)
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.raw = ""
        self._read_to = 0

    @property
    def text(self) -> str:
        return _ESCAPE.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, words: str) -> str:
        """What came until these words did."""
        while words not in self.text[self._read_to :]:
            ready, _, _ = select.select([self.screen], [], [], 60)
            assert ready, f"no {words!r} in {self.text[self._read_to :]!r}"
            try:
                self.raw += os.read(self.screen, 65536).decode()
            except OSError:
                pytest.fail(f"it ended without {words!r}: {self.text[self._read_to :]!r}")
        begin = self._read_to
        self._read_to = self.text.index(words, begin) + len(words)
        return self.text[begin : self._read_to]

    def press(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def end(self) -> int:
        """Its exit code."""
        while select.select([self.screen], [], [], 60)[0]:
            try:
                self.raw += os.read(self.screen, 65536).decode()
            except OSError:
                # The other side is closed: it has ended.
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def verdicts(path):
    with open_store(str(path)) as store:
        given = FeedbackStore(store).verdicts("today", source="review")
        return [(item.question, item.value, item.comment, item.author) for item in reversed(given)]


def test_a_reviewer_walks_through_the_queue_by_single_keys(path):
    terminal = Terminal("review", "today", "--store", str(path), "--author", "ann")
    first = terminal.wait_for(KEYS)
    assert "1 of 3 · borderline" in first
    assert "What is fact 0 of the property file?" in first
    assert "✓ fact0" in first
    assert "✗ Montrose" in first
    assert "query_database was not called" in first
    # Neither a key without a meaning nor an arrow, which ends in D, is taken for a verdict.
    terminal.press("x\x1b[D\x1bOD")
    terminal.press("c")
    terminal.wait_for("comment: ")
    terminal.press("says nothing of Montrose\n")
    terminal.wait_for(KEYS)
    terminal.press("d")
    assert "2 of 3" in terminal.wait_for(KEYS)
    terminal.press("s")
    assert "3 of 3" in terminal.wait_for(KEYS)
    terminal.press("b")
    assert "2 of 3" in terminal.wait_for(KEYS)
    terminal.press("t")
    assert "3 of 3" in terminal.wait_for(KEYS)
    terminal.press("q")
    assert terminal.end() == 0
    assert "2 reviewed, 1 pending" in terminal.text
    assert verdicts(path) == [
        ("What is fact 0 of the property file?", 0.0, "says nothing of Montrose", "ann"),
        ("What is fact 1 of the tax file?", 1.0, "", "ann"),
    ]
    # What a chatbot wrote cannot move the reviewer's cursor.
    assert "\x1b[2J" not in terminal.raw
    assert "␛[2J" in terminal.text


def test_changing_ones_mind_replaces_the_verdict(path):
    terminal = Terminal("review", "today", "--store", str(path))
    for key in ("t", "b", "d", "q"):
        terminal.wait_for(KEYS)
        terminal.press(key)
    assert terminal.end() == 0
    assert [verdict[1] for verdict in verdicts(path)] == [0.0]


def test_keys_typed_ahead_are_not_lost(path):
    terminal = Terminal("review", "today", "--store", str(path))
    terminal.press("tsdq")
    assert terminal.end() == 0
    assert [verdict[1] for verdict in verdicts(path)] == [1.0, 0.0]


def test_an_interrupt_keeps_what_was_judged(path):
    terminal = Terminal("review", "today", "--store", str(path))
    terminal.wait_for(KEYS)
    terminal.press("t")
    terminal.wait_for(KEYS)
    terminal.press("\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert len(verdicts(path)) == 1


def test_the_end_of_input_ends_it(path):
    terminal = Terminal("review", "today", "--store", str(path))
    terminal.wait_for(KEYS)
    terminal.press("\x04")
    assert terminal.end() == 130
    assert verdicts(path) == []


def test_an_empty_queue_says_so(tmp_path):
    with open_store(str(tmp_path / "s.db")) as store:
        add_run(store, "today", lambda question, trial: Reply(text="no"), questions=golden(2))
    terminal = Terminal("review", "today", "--store", str(tmp_path / "s.db"))
    assert terminal.end() == 0
    assert "nothing to review" in terminal.text
