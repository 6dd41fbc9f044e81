"""Workers that grade: threads while grading is cheap, processes of their own once it is not.

Live runs hand over trials one by one (`GradingPool`), logs hand over blocks (`ProcessPool`); both use the same worker process. A
worker that spends more than its time limit on one reply is ended by the kernel, so that not even a regular expression that never
returns can hold up a run: the reply is unscored, and another worker takes over.
"""

import mmap
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from answerkey.errors import AnswerkeyError, UsageError
from answerkey.model.scorecard import Score, Scorecard, Trial
from answerkey.scorers.grader import Grader, GraderRecipe, grader_by
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.runs.log_files import Block
    from answerkey.runs.log_rows import BlockScorer, LogPlan
    from answerkey.runs.log_table import BlockPart

Judged = Sequence[Sequence[Score]]
_Item = tuple[Trial, Judged]

# A worker's limit is in seconds of CPU; one that mostly sleeps has this many times as long.
_WALL_FACTOR = 3.0
# Trials are handed to a worker together: up to this many, or those of this many seconds.
_BATCH = 32
_BATCH_SECONDS = 0.02
# When more trials wait than this, the asking waits too.
_MOST_WAITING = 1000
# Expected seconds of work that are worth starting processes.
_WORTH_PROCESSES_SECONDS = 0.5
_MOST_PROCESSES = 4
# A reply with this many characters may hold the interpreter for long in one step, so a process grades it from the start.
_LONG_TEXT = 100_000
# How often threads are checked against the time limit.
_CHECK_SECONDS = 0.25
# Thread switch interval while a thread grades, so that the event loop is not kept waiting.
_SWITCH_SECONDS = 0.001
_INDEX = struct.Struct("<q")
_NO_INDEX = -1


class WorkerSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process is started with."""

    recipe: GraderRecipe
    sys_path: list[str]
    cpu_seconds: float
    # For the blocks of a log; None: it grades trials.
    log: "LogPlan | None" = None


class WorkerReady(msgspec.Struct, frozen=True):
    """The first answer of a worker: its grader was made."""


class LinesUnavailable(msgspec.Struct, frozen=True):
    """A worker cannot read a block's lines in their file; they must be sent."""


class WorkerProcess:
    """A process that grades what it is sent, one item at a time."""

    def __init__(self, setup: WorkerSetup) -> None:
        import tempfile  # most runs are graded without processes

        # Where it notes the row that it is working on.
        self._progress = tempfile.TemporaryFile(prefix="answerkey-")  # noqa: SIM115  # lives as long as the process
        self._progress.write(_INDEX.pack(_NO_INDEX))
        self._progress.flush()
        number = self._progress.fileno()
        # -P: a folder called answerkey in the current one must not be imported.
        command = [sys.executable, "-P", "-c", f"from answerkey.runs.workers import serve; serve({number})"]
        with _interrupts_blocked():
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(number,)
            )
        # Whether it got as far as making its grader.
        self.ready = False
        try:
            _write_frame(self._stdin, setup)
            self.ready = isinstance(_read_frame(self._stdout), WorkerReady)
        except (OSError, ValueError):
            pass  # It ended, which `ask` reports.

    @property
    def _stdin(self) -> BinaryIO:
        return cast("BinaryIO", self._process.stdin)

    @property
    def _stdout(self) -> BinaryIO:
        return cast("BinaryIO", self._process.stdout)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, item: object) -> object | None:
        """What it makes of an item; None: it ended."""
        try:
            _write_frame(self._stdin, item)
            return _read_frame(self._stdout)
        except (OSError, ValueError):
            # It ended, or was closed, while it was written to.
            return None

    @property
    def row_index(self) -> int | None:
        """The row that it was working on last."""
        self._progress.seek(0)
        (index,) = _INDEX.unpack(self._progress.read(_INDEX.size))
        return None if index == _NO_INDEX else index

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self) -> int:
        """Its exit code, negative for a signal."""
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._progress):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        return code

    def ended_by_limit(self) -> bool:
        """Whether it has ended because a reply exceeded its time limit."""
        return -self._process.wait() in (signal.SIGPROF, signal.SIGALRM)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """What is started here is never interrupted: Ctrl-C goes to the whole group, and only the parent handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write_frame(stream: BinaryIO, value: object) -> None:
    import pickle

    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(4, "little"))
    stream.write(content)
    stream.flush()


def _read_frame(stream: BinaryIO) -> object | None:
    """The next value; None when the stream has ended, in the middle of a value too."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    import pickle

    content = stream.read(length := int.from_bytes(head, "little"))
    return pickle.loads(content) if len(content) == length else None  # noqa: S301  # between parent and child


# In the worker.


def serve(progress: int) -> None:
    """Answer what the parent sends until it closes the pipe; `progress` is the file that notes the current row."""
    try:
        _serve(progress)
    except BrokenPipeError:
        # The parent ended: no one waits for the answer, and the pipe's buffer cannot be written when the process exits.
        os._exit(0)


def _serve(progress: int) -> None:
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a scorer prints must not be among the answers.
    os.dup2(2, 1)
    # Only the parent handles Ctrl-C; it closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup = _read_frame(given)
    if not isinstance(setup, WorkerSetup):
        return
    sys.path[:] = setup.sys_path
    grader = grader_by(setup.recipe)
    # What the first reply would load is not charged to it.
    grader.prepare()
    scorer = None
    if setup.log is not None:
        from answerkey.runs.log_rows import BlockScorer

        scorer = BlockScorer(setup.log, grader)
    progress_index = mmap.mmap(progress, _INDEX.size)

    def before_row(row: int) -> None:
        _INDEX.pack_into(progress_index, 0, row)
        _limit_time(setup.cpu_seconds)

    _write_frame(answers, WorkerReady())
    while (item := _read_frame(given)) is not None:
        try:
            answer = _answer(item, grader, scorer, before_row)
        except Exception as error:  # noqa: BLE001  # the parent raises it
            answer = error
        _limit_time(0)
        _write_frame(answers, answer)


def _answer(
    item: object, grader: Grader, scorer: "BlockScorer | None", before_row: Callable[[int], None]
) -> object:
    if scorer is not None:
        block = cast("Block", item).arrived()
        return LinesUnavailable() if block is None else scorer.score(block, before_row)
    trial, judged = cast("_Item", item)
    before_row(trial.position)
    return grader.grade(trial.question, trial.replies, judged)


def _limit_time(seconds: float) -> None:
    """Have the kernel end this process after `seconds` of CPU, or a few times as long altogether; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WALL_FACTOR * seconds)


# Blocks of a log.


class ProcessPool:
    """Scores blocks in several processes, each fed by a thread of this one."""

    def __init__(self, plan: "LogPlan", count: int) -> None:
        if plan.recipe is None:
            raise TypeError("processes need a recipe for the grader")
        self._setup = WorkerSetup(
            recipe=plan.recipe, sys_path=sys.path, cpu_seconds=plan.scoring_seconds, log=plan
        )
        # Whether a batch of rows exceeded the time limit of one, so that rows are scored one by one.
        self._one_by_one = False
        self._closed = threading.Event()
        # Held while a process is started, so that none is started behind the back of `close`.
        self._starting = threading.Lock()
        # Bounded, so that a slow reader holds up the workers instead of filling the memory.
        self._done: queue.Queue[BlockPart | BaseException | None] = queue.Queue(maxsize=2 * count)
        self._workers: list[WorkerProcess | None] = [None] * count

    def score(self, blocks: "Iterable[Block]") -> "Iterator[BlockPart]":
        """The parts, as they are done."""
        waiting, taking = iter(blocks), threading.Lock()

        def feed(slot: int) -> None:
            try:
                while not self._closed.is_set():
                    with taking:
                        block = next(waiting, None)
                    if block is None:
                        break
                    self._done.put(self._score(slot, block))
                self._done.put(None)
            except BaseException as error:  # noqa: BLE001  # raised again where the results are read
                self._done.put(error)

        threads = [
            threading.Thread(target=feed, args=(slot,), name="answerkey-worker", daemon=True)
            for slot in range(len(self._workers))
        ]
        for thread in threads:
            thread.start()
        ended = 0
        while ended < len(threads):
            part = self._done.get()
            if isinstance(part, BaseException):
                raise part
            if part is None:
                ended += 1
            else:
                yield part

    def _score(self, slot: int, block: "Block") -> "BlockPart":
        """What a worker makes of a block. One that crashed is replaced once; a row that exceeds its limit is left out."""
        from answerkey.runs.log_table import BlockPart

        crashed = 0
        while crashed < 2:
            worker = self._workers[slot] or self._start(slot)
            block = msgspec.structs.replace(block, one_by_one=self._one_by_one)
            answer = worker.ask(block.sent())
            if isinstance(answer, BaseException):
                raise answer
            if isinstance(answer, LinesUnavailable):
                block = msgspec.structs.replace(block, part=None)
                continue
            if isinstance(answer, BlockPart):
                return answer
            worker.kill()
            row = worker.row_index
            if worker.ended_by_limit() and row is not None and not block.one_by_one:
                # Which row of the batch it was is not known, and further batches may take as long.
                self._one_by_one = True
            elif worker.ended_by_limit() and row is not None:
                block = msgspec.structs.replace(block, too_costly=(*block.too_costly, row))
            else:
                crashed += 1
            worker.wait()
            self._workers[slot] = None
        raise AnswerkeyError(
            f"the worker scoring block {block.number} of {block.path} crashed twice (out of memory?)"
        )

    def _start(self, slot: int) -> WorkerProcess:
        with self._starting:
            if self._closed.is_set():
                raise AnswerkeyError("the scoring has ended")
            worker = self._workers[slot] = WorkerProcess(self._setup)
            return worker

    def close(self) -> None:
        """End the workers. Threads that wait for one find it dead, and end as well."""
        self._closed.set()
        with self._starting:
            workers = [worker for worker in self._workers if worker is not None]
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()
        # Each thread may still put two answers, for which there is room then.
        with suppress(queue.Empty):
            while True:
                self._done.get_nowait()


# Blocks in flight per processor: one that is scored, and one that has arrived.
_BLOCKS_AHEAD = 2
# A worker process of Ray lives longer than a log.
_scorers: "dict[str, BlockScorer]" = {}


class RayPool:
    """Scores blocks by tasks of a Ray cluster; Ray itself repeats what a lost worker or node was doing."""

    def __init__(self, plan: "LogPlan", address: str | None = None) -> None:
        if plan.recipe is None:
            raise UsageError(
                "the engine ray cannot score with scorers given as Python objects; name them in the configuration"
            )
        from answerkey.engine import connect  # few logs are scored on a cluster

        self._ray = connect(address)
        self._plan = self._ray.put(plan)
        # Workers cache their scorer under this name.
        self._name = self._plan.hex()
        self._ahead = _BLOCKS_AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def score(self, blocks: "Iterable[Block]") -> "Iterator[BlockPart]":
        """The parts as they are done; a node that has the log's files at the same path reads the lines there."""
        task = self._ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(_score_on_node)
        waiting = iter(blocks)
        in_flight: dict[Any, Block] = {}
        try:
            while True:
                while len(in_flight) < self._ahead and (block := next(waiting, None)) is not None:
                    in_flight[task.remote(self._name, self._plan, block.sent())] = block
                if not in_flight:
                    return
                [done], _ = self._ray.wait(list(in_flight), num_returns=1)
                block, part = in_flight.pop(done), self._ray.get(done)
                if part is None:
                    whole = msgspec.structs.replace(block, part=None)
                    in_flight[task.remote(self._name, self._plan, whole)] = block
                else:
                    yield part
        except self._ray.exceptions.RayError as error:
            from answerkey.engine import error_line

            cause = getattr(error, "cause", None)
            raise (
                cause if isinstance(cause, AnswerkeyError) else AnswerkeyError(error_line(error))
            ) from None
        finally:
            for unfinished in in_flight:
                self._ray.cancel(unfinished, force=False)

    def close(self) -> None:
        """Leave the cluster, which continues without us."""
        self._ray.shutdown()


def _score_on_node(name: str, plan: "LogPlan", block: "Block") -> "BlockPart | None":
    """What comes of a block; None: its lines cannot be read here."""
    arrived = block.arrived()
    if arrived is None:
        return None
    scorer = _scorers.get(name)
    if scorer is None:
        if plan.recipe is None:
            raise TypeError("a plan without a recipe")
        _scorers.clear()
        from answerkey.runs.log_rows import BlockScorer

        scorer = _scorers[name] = BlockScorer(plan, grader_by(plan.recipe))
    return scorer.score(arrived)


# Trials of a live run.


class GradingPool:
    """Grades trials off the event loop: trials in, scorecards out, in any order.

    The loop only hands trials over. A run whose grading costs less than starting a process never starts one.
    """

    def __init__(
        self,
        grader: Grader,
        deliver: Callable[[Trial, Scorecard], None],
        *,
        budget: float,
        most_waiting: int | None = None,
    ) -> None:
        import asyncio  # the workers of a log do without

        self._grader = grader
        # Called on the loop for each graded trial.
        self._deliver = deliver
        # CPU seconds that one trial may take.
        self._budget = budget
        self._most_waiting = most_waiting or _MOST_WAITING
        self._changed = threading.Condition()
        self._waiting: deque[_Item] = deque()
        self._graded: deque[tuple[Trial, Scorecard]] = deque()
        # Handed over and not delivered yet.
        self._outstanding = 0
        self._batch: list[_Item] = []
        # Whether the batch has a reply that a process must grade.
        self._has_long = False
        self._lanes: list[_Lane] = []
        self._has_processes = False
        self._closed = False
        # CPU seconds of the trials that threads graded, and their number; without the first, which also loads.
        self._spent, self._counted, self._started = 0.0, 0, False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._progressed = asyncio.Event()
        self._batch_timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._switch_interval = 0.0

    def open(self) -> None:
        """Start; what grading needs is loaded now, since a thread that loads keeps the loop from stamping replies."""
        self._grader.prepare()
        import asyncio  # the workers of a log do without

        self._loop = asyncio.get_running_loop()
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(_SWITCH_SECONDS, self._switch_interval))
        self._lanes = [_Lane(self)]
        self._check_limits()

    async def put(self, trial: Trial, judged: Judged = ()) -> None:
        """Hand a trial over; waits while too many are waiting."""
        self._batch.append((trial, judged))
        self._outstanding += 1
        for reply in trial.replies:
            if reply.text is not None and len(reply.text) > _LONG_TEXT:
                self._has_long = True
        if len(self._batch) >= _BATCH or self._outstanding >= self._most_waiting:
            self._hand_over()
        elif len(self._batch) == 1 and self._loop is not None:
            self._batch_timer = self._loop.call_later(_BATCH_SECONDS, self._hand_over)
        while self._outstanding >= self._most_waiting:
            self._progressed.clear()
            await self._progressed.wait()

    async def finish(self) -> None:
        """Wait until every trial has been delivered."""
        self._hand_over()
        while self._outstanding:
            self._progressed.clear()
            await self._progressed.wait()

    def close(self, seconds: float = 2.0) -> list[Trial]:
        """Stop; returns the trials that were not graded within `seconds`."""
        self._hand_over()
        until = time.monotonic() + seconds
        with self._changed:
            while self._outstanding > len(self._graded) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._closed = True
            ungraded = [item[0] for item in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        ungraded += [trial for lane in self._lanes for trial in lane.abandon()]
        self._collect()
        for timer in (self._batch_timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        if self._switch_interval:
            sys.setswitchinterval(self._switch_interval)
        return ungraded

    def _hand_over(self) -> None:
        batch, self._batch = self._batch, []
        if self._batch_timer is not None:
            self._batch_timer.cancel()
        if batch:
            with self._changed:
                self._waiting.extend(batch)
                if self._has_long:
                    self._start_processes()
                self._has_long = False
                self._changed.notify_all()

    def _collect(self) -> None:
        """On the loop: deliver what has been graded."""
        while self._graded:
            trial, card = self._graded.popleft()
            self._outstanding -= 1
            self._deliver(trial, card)
        self._progressed.set()

    def take(self, lane: "_Lane") -> _Item | None:
        """In a lane: the next trial; None when there are no more for it."""
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
                # It took too long and was abandoned.
                return
            lane.item = None
            self._graded.append((trial, card))
            if not lane.in_process and self._started:
                self._spent += spent
                self._counted += 1
                if self._is_worth_processes():
                    self._start_processes()
            self._started = True
            notify = len(self._graded) == 1 or not self._waiting
            self._changed.notify_all()
        if notify and self._loop is not None and not self._closed:
            self._loop.call_soon_threadsafe(self._collect)

    def _is_worth_processes(self) -> bool:
        """Whether grading what is waiting costs more than starting processes."""
        return self._spent * len(self._waiting) > _WORTH_PROCESSES_SECONDS * max(1, self._counted)

    def _start_processes(self) -> None:
        """Replace the thread by processes."""
        if self._has_processes or self._grader.recipe is None:
            return
        self._has_processes = True
        for lane in self._lanes:
            lane.retired = True
        count = min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._lanes += [_Lane(self, in_process=True) for _ in range(count)]

    def _check_limits(self) -> None:
        """On the loop, regularly: abandon a trial that exceeded its limit, with the thread that grades it."""
        for lane in list(self._lanes):
            if not lane.in_process and lane.exceeds(self._budget, _WALL_FACTOR * self._budget):
                with self._changed:
                    lane.retired = True
                    (trial,) = lane.abandon()
                    self._lanes[self._lanes.index(lane)] = _Lane(self)
                    self._graded.append((trial, self._too_costly(trial)))
                self._collect()
        if self._loop is not None:
            self._check_timer = self._loop.call_later(_CHECK_SECONDS, self._check_limits)

    def _too_costly(self, trial: Trial) -> Scorecard:
        return self._grader.too_costly(trial.question, trial.number, self._budget)

    def failed(self, error: BaseException) -> Scorecard:
        """The scorecard of a trial whose grading failed."""
        return self._grader.unscored(
            one_line(f"scoring failed: {type(error).__name__}: {error}", 200), "scorer"
        )

    def worker_ended(self, item: _Item, worker: WorkerProcess) -> Scorecard:
        """The scorecard of a trial whose worker ended instead of answering."""
        if worker.ended_by_limit():
            worker.wait()
            return self._too_costly(item[0])
        code = worker.wait()
        if not worker.ready:
            # It never made a grader, for example because a module can only be imported here.
            return self.grade_here(item)
        return self._grader.unscored(f"scoring failed: its process ended with {code}", "scorer")

    def grade_here(self, item: _Item) -> Scorecard:
        """In the thread."""
        trial, judged = item
        return self._grader.grade(trial.question, trial.replies, judged)

    def start_worker(self) -> WorkerProcess:
        """A process that grades trials."""
        recipe = cast("GraderRecipe", self._grader.recipe)
        return WorkerProcess(WorkerSetup(recipe=recipe, sys_path=sys.path, cpu_seconds=self._budget))


class _Lane:
    """A thread that grades one trial after the other: itself, or through a process that it feeds."""

    def __init__(self, pool: GradingPool, *, in_process: bool = False) -> None:
        self._pool = pool
        self.in_process = in_process
        # It takes no more trials.
        self.retired = False
        # The trial that it is grading.
        self.item: _Item | None = None
        self._started = 0.0
        self._cpu_started = 0.0
        self._worker: WorkerProcess | None = None
        name = "answerkey-grading-process" if in_process else "answerkey-grading"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def begin(self, item: _Item) -> None:
        """Start on a trial."""
        self.item = item
        self._started = time.monotonic()
        self._cpu_started = time.thread_time()

    def abandon(self) -> list[Trial]:
        """Stop working on its trial, and return that."""
        item, self.item = self.item, None
        if self._worker is not None:
            self._worker.kill()
        elif item is not None and self._thread.ident is not None:
            from ctypes import c_ulong, py_object, pythonapi  # few runs have such a scorer

            # Ends a loop in Python; other code ends when it does, and nothing waits for it.
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(self._thread.ident), py_object(SystemExit))
        return [] if item is None else [item[0]]

    def exceeds(self, cpu_seconds: float, wall_seconds: float) -> bool:
        """Whether its trial has taken more than this."""
        if self.item is None:
            return False
        elapsed = time.monotonic() - self._started
        if elapsed < cpu_seconds or self._thread.ident is None:
            return False
        if elapsed >= wall_seconds or not hasattr(time, "pthread_getcpuclockid"):
            return True
        clock = time.pthread_getcpuclockid(self._thread.ident)
        return time.clock_gettime(clock) - self._cpu_started >= cpu_seconds

    def _work(self) -> None:
        grade = self._grade_in_process if self.in_process else self._pool.grade_here
        try:
            while (item := self._pool.take(self)) is not None:
                started = time.thread_time()
                try:
                    card = grade(item)
                except BaseException as error:  # noqa: BLE001  # whatever a scorer does, the run continues
                    card = self._pool.failed(error)
                self._pool.done(self, item[0], card, time.thread_time() - started)
        finally:
            if self._worker is not None:
                self._worker.kill()
                self._worker.wait()

    def _grade_in_process(self, item: _Item) -> Scorecard:
        if self._worker is None:
            self._worker = self._pool.start_worker()
        worker = self._worker
        answer: Any = worker.ask(item)
        if isinstance(answer, Scorecard):
            return answer
        if isinstance(answer, BaseException):
            return self._pool.failed(answer)
        self._worker = None
        return self._pool.worker_ended(item, worker)
