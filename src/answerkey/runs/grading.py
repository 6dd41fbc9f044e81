"""Grading off the asking loop: in a thread while it is cheap, in processes of their own once it is not.

The loop only hands trials over. A run whose scoring costs less than a process takes to start never starts one. A reply that
costs more than its budget is unscored, and whatever was working on it is given up and replaced.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

import msgspec

from answerkey.model.scorecard import Score, Scorecard, Trial
from answerkey.scorers.grader import Grader
from answerkey.scorers.grading_process import SLEEPING, ToGrade, read_frame, write_frame
from answerkey.text.normalise import one_line

Judged = Sequence[Sequence[Score]]
_Item = tuple[Trial, Judged]

# Trials are handed over together: so many, or those of so many seconds.
_BATCH = 32
_BATCH_S = 0.02
# When more than these wait, the asking waits too.
_MOST_WAITING = 1000
# Work that is worth starting processes for: they take about so long to start.
_WORTH_PROCESSES_S = 0.5
_MOST_PROCESSES = 4
# A reply of so many characters may hold the interpreter for long in one step, so a process has it from the start.
_LONG_TEXT = 100_000
# How often it is looked whether a reply has used up its budget.
_LOOK_S = 0.25
# The interpreter changes threads so often while a thread grades, so that the loop is not kept waiting.
_SWITCH_S = 0.001


class Grading:
    """Trials in, scorecards out, in any order."""

    def __init__(
        self,
        grader: Grader,
        deliver: Callable[[Trial, Scorecard], None],
        *,
        budget: float,
        most_waiting: int | None = None,
    ) -> None:
        self._grader = grader
        # Called on the loop for everything that has been graded.
        self._deliver = deliver
        self._budget = budget
        self._most_waiting = most_waiting or _MOST_WAITING
        self._changed = threading.Condition()
        self._waiting: deque[_Item] = deque()
        self._graded: deque[tuple[Trial, Scorecard]] = deque()
        # Handed over and not delivered yet.
        self._outstanding = 0
        self._handed: list[_Item] = []
        self._lanes: list[_Lane] = []
        self._processes = False
        self._closed = False
        # Seconds of CPU that the trials graded in the thread took, and their number; not the first, which also loads.
        self._spent, self._counted, self._begun = 0.0, 0, False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moved = asyncio.Event()
        self._handing: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._switch_interval = 0.0

    def open(self) -> None:
        """Begin; what grading takes is loaded now, since a thread that loads keeps the loop from stamping replies."""
        self._grader.prepare()
        self._loop = asyncio.get_running_loop()
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(_SWITCH_S, self._switch_interval))
        self._lanes = [_Lane(self)]
        self._look()

    async def put(self, trial: Trial, judged: Judged = ()) -> None:
        """Hand a trial over; waits while too many wait already."""
        self._handed.append((trial, judged))
        self._outstanding += 1
        if len(self._handed) >= _BATCH or self._outstanding >= self._most_waiting:
            self._hand_over()
        elif len(self._handed) == 1 and self._loop is not None:
            self._handing = self._loop.call_later(_BATCH_S, self._hand_over)
        while self._outstanding >= self._most_waiting:
            self._moved.clear()
            await self._moved.wait()

    async def finish(self) -> None:
        """Wait until everything has been delivered."""
        self._hand_over()
        while self._outstanding:
            self._moved.clear()
            await self._moved.wait()

    def close(self, patience: float = 2.0) -> list[Trial]:
        """End it from wherever it stands; gives the trials that were not graded within `patience` seconds."""
        self._hand_over()
        until = time.monotonic() + patience
        with self._changed:
            while self._outstanding > len(self._graded) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._closed = True
            left_over = [item[0] for item in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        left_over += [trial for lane in self._lanes for trial in lane.give_up()]
        self._collect()
        for timer in (self._handing, self._looking):
            if timer is not None:
                timer.cancel()
        if self._switch_interval:
            sys.setswitchinterval(self._switch_interval)
        return left_over

    def _hand_over(self) -> None:
        handed, self._handed = self._handed, []
        if self._handing is not None:
            self._handing.cancel()
        if handed:
            with self._changed:
                self._waiting.extend(handed)
                self._start_processes(at_once=any(_is_long(trial) for trial, _ in handed))
                self._changed.notify_all()

    def _collect(self) -> None:
        """On the loop: deliver what has been graded."""
        while self._graded:
            trial, card = self._graded.popleft()
            self._outstanding -= 1
            self._deliver(trial, card)
        self._moved.set()

    def take(self, lane: "_Lane") -> _Item | None:
        """In a lane: the next trial; None when there is nothing more for it."""
        with self._changed:
            while not self._waiting and not self._closed and not lane.retired:
                self._changed.wait()
            if self._closed or lane.retired:
                return None
            lane.begin(self._waiting.popleft())
            return lane.item

    def done(self, lane: "_Lane", trial: Trial, card: Scorecard, spent: float) -> None:
        """In a lane: a trial has been graded."""
        with self._changed:
            if lane.item is None or lane.item[0] is not trial:
                # It took too long and was given up.
                return
            lane.item = None
            self._graded.append((trial, card))
            if not lane.apart and self._begun:
                self._spent += spent
                self._counted += 1
                self._start_processes()
            self._begun = True
            tell = len(self._graded) == 1 or not self._waiting
            self._changed.notify_all()
        if tell and self._loop is not None and not self._closed:
            self._loop.call_soon_threadsafe(self._collect)

    def _start_processes(self, *, at_once: bool = False) -> None:
        """Once grading in the thread costs more than processes do, they take its place."""
        if self._processes or self._grader.recipe is None:
            return
        expected = self._spent / max(1, self._counted) * len(self._waiting)
        if expected < _WORTH_PROCESSES_S and not at_once:
            return
        self._processes = True
        for lane in self._lanes:
            lane.retired = True
        count = min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._lanes += [_Lane(self, apart=True) for _ in range(count)]

    def _look(self) -> None:
        """On the loop, now and then: what has used up its budget is given up, with the lane that was working on it."""
        for lane in list(self._lanes):
            if not lane.apart and lane.over(self._budget, SLEEPING * self._budget):
                with self._changed:
                    lane.retired = True
                    (trial,) = lane.give_up()
                    self._lanes[self._lanes.index(lane)] = _Lane(self)
                    self._graded.append((trial, self.too_costly(trial)))
                self._collect()
        if self._loop is not None:
            self._looking = self._loop.call_later(_LOOK_S, self._look)

    def too_costly(self, trial: Trial) -> Scorecard:
        """The scorecard of a trial that could not be graded within its budget."""
        return self._grader.too_costly(trial.question, trial.number, self._budget)

    def failed(self, error: BaseException) -> Scorecard:
        """The scorecard of a trial whose grading broke down."""
        return self._grader.unscored(
            one_line(f"scoring failed: {type(error).__name__}: {error}", 200), "scorer"
        )

    def process_ended(self, item: _Item, code: int, *, ready: bool) -> Scorecard:
        """The scorecard of a trial whose process ended instead of answering."""
        if -code in (signal.SIGPROF, signal.SIGALRM):
            return self.too_costly(item[0])
        if not ready:
            # It never got as far as to grade, as where a module is found here only.
            return self.grade_here(item)
        return self._grader.unscored(f"scoring failed: its process ended with {code}", "scorer")

    def grade_here(self, item: _Item) -> Scorecard:
        """In the thread."""
        trial, judged = item
        return self._grader.grade(trial.question, trial.replies, judged)

    def start_process(self) -> "subprocess.Popen[bytes]":
        """A process that grades, with its recipe given."""
        command = [sys.executable, "-m", "answerkey.scorers.grading_process"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own module
        recipe = msgspec.structs.replace(
            cast("msgspec.Struct", self._grader.recipe),
            cpu_seconds=self._budget,
            wall_seconds=SLEEPING * self._budget,
            sys_path=sys.path,
        )
        write_frame(cast("BinaryIO", process.stdin), recipe)
        return process


class _Lane:
    """A thread that grades one trial after the other: itself, or by a process that it feeds."""

    def __init__(self, grading: Grading, *, apart: bool = False) -> None:
        self._grading = grading
        self.apart = apart
        # It takes nothing more.
        self.retired = False
        # What it is working on.
        self.item: _Item | None = None
        self._begun = 0.0
        self._cpu_begun = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        # Whether its process got as far as to make the grader.
        self._ready = False
        name = "answerkey-grading-process" if apart else "answerkey-grading"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def begin(self, item: _Item) -> None:
        self.item = item
        self._begun = time.monotonic()
        self._cpu_begun = time.thread_time()

    def give_up(self) -> list[Trial]:
        """Leave what it is working on; gives that."""
        item, self.item = self.item, None
        if self._process is not None:
            self._process.kill()
        elif item is not None and self._thread.ident is not None:
            from ctypes import c_ulong, py_object, pythonapi  # few runs have such a scorer

            # Ends a loop in Python; a step that is not Python ends when it does, and nobody waits for it.
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(self._thread.ident), py_object(SystemExit))
        return [] if item is None else [item[0]]

    def over(self, cpu_seconds: float, wall_seconds: float) -> bool:
        """Whether what it is working on has taken more than this."""
        if self.item is None:
            return False
        taken = time.monotonic() - self._begun
        if taken < cpu_seconds or self._thread.ident is None:
            return False
        if taken >= wall_seconds or not hasattr(time, "pthread_getcpuclockid"):
            return True
        clock = time.pthread_getcpuclockid(self._thread.ident)
        return time.clock_gettime(clock) - self._cpu_begun >= cpu_seconds

    def _work(self) -> None:
        grade = self._grade_apart if self.apart else self._grading.grade_here
        try:
            while (item := self._grading.take(self)) is not None:
                begun = time.thread_time()
                try:
                    card = grade(item)
                except BaseException as error:  # noqa: BLE001  # whatever a scorer does, the run goes on
                    card = self._grading.failed(error)
                self._grading.done(self, item[0], card, time.thread_time() - begun)
        finally:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _grade_apart(self, item: _Item) -> Scorecard:
        trial, judged = item
        if self._process is None:
            self._process = self._grading.start_process()
            self._ready = read_frame(cast("BinaryIO", self._process.stdout)) is not None
        process = self._process
        try:
            write_frame(
                cast("BinaryIO", process.stdin),
                ToGrade(trial.question, trial.replies, [list(turn) for turn in judged]),
            )
            content = read_frame(cast("BinaryIO", process.stdout))
        except OSError:
            content = None
        if content is not None:
            return msgspec.msgpack.decode(content, type=Scorecard)
        self._process = None
        return self._grading.process_ended(item, process.wait(), ready=self._ready)


def _is_long(trial: Trial) -> bool:
    return any(len(reply.text or "") > _LONG_TEXT for reply in trial.replies)
