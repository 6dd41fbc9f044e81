"""Grading in a process of its own, which makes its grader by the recipe of its parent's.

The parent writes frames (four bytes of length, then MessagePack) to its standard input: the recipe first, then trials. For each
trial one frame comes back, in order, after a first one that says that the grader was made. A reply that costs more than its
budget ends the process by a signal of the kernel's, so that not even a pattern that never returns can hold up a run.
"""

import os
import signal
import struct
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from answerkey.config import Settings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, Scorecard
from answerkey.protocols import Direction
from answerkey.scorers.grader import Grader
from answerkey.scorers.plan import GraderRecipe, make_grader

_LENGTH = struct.Struct("<I")
# A budget is in seconds of CPU; one that mostly sleeps has so many times as long.
SLEEPING = 3.0


class ToGrade(msgspec.Struct, frozen=True, array_like=True):
    """One trial on its way to the process."""

    question: Question
    replies: tuple[Reply, ...]
    judged: list[list[Score]]


class _JudgeNames:
    """What a grader must know of a judge whose scores it is given."""

    version = ""

    def __init__(self, direction: dict[str, Direction]) -> None:
        self.direction = direction


def write_frame(stream: BinaryIO, value: object) -> None:
    """Write one value."""
    content = msgspec.msgpack.encode(value)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """One value's bytes; None when the stream has ended, in the middle of a value too."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    return content if len(content) == length else None


def grader_by(recipe: GraderRecipe) -> Grader:
    """The grader that a recipe is of."""
    settings = Settings(scoring=recipe.scoring, scorers=recipe.scorers, path=recipe.path)
    judge = None if recipe.judge is None else _JudgeNames(recipe.judge)
    return make_grader(recipe.scoring, settings, judge=judge)


def _serve() -> None:
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a scorer prints must not stand among the answers.
    os.dup2(2, 1)
    first = read_frame(given)
    if first is None:
        return
    recipe = msgspec.msgpack.decode(first, type=GraderRecipe)
    sys.path[:] = recipe.sys_path
    grader = grader_by(recipe)
    # What the first reply would load is not charged to it.
    grader.prepare()
    # Ctrl-C is for the parent, which closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ready: from here on, an end of this process is a scorer's doing.
    write_frame(answers, None)
    decoder = msgspec.msgpack.Decoder(ToGrade)
    while (content := read_frame(given)) is not None:
        trial = decoder.decode(content)
        signal.setitimer(signal.ITIMER_PROF, recipe.cpu_seconds)
        signal.setitimer(signal.ITIMER_REAL, recipe.wall_seconds)
        card: Scorecard = grader.grade(trial.question, trial.replies, trial.judged)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        write_frame(answers, card)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    _serve()
