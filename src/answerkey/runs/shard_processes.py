"""Processes that score the blocks of a log: this one alone, or several others that are fed block by block."""

import gc
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol, cast

import msgspec

from answerkey.errors import AnswerkeyError
from answerkey.model.question_lines import AddedUp
from answerkey.runs.score_journal import Places, add_up_partitions
from answerkey.runs.shard import Block, ShardPlan, ShardScorer
from answerkey.runs.shard_tally import ShardPart
from answerkey.scorers.grader import Grader
from answerkey.scorers.grading_process import SLEEPING, read_frame

# Groups of partitions for each process: those that are done sooner take more of them.
_GROUPS = 3
# What a process answers that cannot read a block's lines where they should be.
_UNREAD = "unread"


class Shards(Protocol):
    """Whoever scores blocks and adds up partitions, in any order."""

    def score(self, blocks: Iterable[Block]) -> Iterator[ShardPart]:
        """The parts, as they are done; blocks are taken only as fast as they are scored."""
        ...

    def add_up(self, journal: str, partitions: Sequence[Places]) -> Iterator[AddedUp]:
        """The partitions of a journal, some at a time, as they are done."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class Here:
    """This process."""

    def __init__(self, plan: ShardPlan, grader: Grader) -> None:
        self._plan = plan
        self._scorer = ShardScorer(plan, grader)

    def score(self, blocks: Iterable[Block]) -> Iterator[ShardPart]:
        """One after the other."""
        return map(self._scorer.score, blocks)

    def add_up(self, journal: str, partitions: Sequence[Places]) -> Iterator[AddedUp]:
        """One after the other."""
        yield add_up_partitions(journal, partitions, self._plan.pass_mark, self._plan.given)

    def close(self) -> None:
        """Nothing is open."""


class OtherProcesses:
    """Several processes, each fed by a thread of this one."""

    def __init__(
        self, plan: ShardPlan, count: int, grader: Grader, *, not_theirs: Sequence[int] = ()
    ) -> None:
        """`not_theirs` are numbers of open files that copies must not hold: the locks on them would outlive this process."""
        self._plan = plan
        # Whether new processes tell each row: a block took longer than a row may.
        self._careful = False
        self._closed = threading.Event()
        # Held while a process takes the place of another, so that none is started behind the back of `close`.
        self._replacing = threading.Lock()
        # Bounded, so that whoever reads slowly holds up the others instead of filling the memory.
        self._done: queue.Queue[Any] = queue.Queue(maxsize=2 * count)
        # Loaded once, and shared by copies.
        grader.prepare()
        # A copy of this process can score at once, but threads are not copied, nor is what they hold let go of.
        copies = sys.platform == "linux" and threading.active_count() == 1
        self._processes: list[_Process] = []
        try:
            for _ in range(count):
                with _ctrl_c_held_back():
                    self._processes.append(_Copy(plan, grader, not_theirs) if copies else _start(plan))
        except BaseException:
            self.close()
            raise

    def score(self, blocks: Iterable[Block]) -> Iterator[ShardPart]:
        """As they are done."""
        return self._map(blocks)

    def add_up(self, journal: str, partitions: Sequence[Places]) -> Iterator[AddedUp]:
        """In groups, so that little is left to be merged here, where nobody helps."""
        groups = _GROUPS * len(self._processes)
        return self._map((journal, partitions[first::groups]) for first in range(groups))

    def _map(self, items: Iterable[Any]) -> Iterator[Any]:
        waiting, taking, done = iter(items), threading.Lock(), self._done

        def work(place: int) -> None:
            try:
                while not self._closed.is_set():
                    with taking:
                        item = next(waiting, None)
                    if item is None:
                        break
                    done.put(self._asked(place, item))
                done.put(None)
            except BaseException as error:  # noqa: BLE001  # raised again where the results are read
                done.put(error)

        threads = [
            threading.Thread(target=work, args=(place,), name="answerkey-shard", daemon=True)
            for place in range(len(self._processes))
        ]
        for thread in threads:
            thread.start()
        ended = 0
        while ended < len(threads):
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                ended += 1
            else:
                yield found

    def _asked(self, place: int, item: object) -> object:
        """What a process makes of an item; one that died is replaced, once.

        One that used up its seconds is replaced by one that tells each row before it scores it, and then by one that leaves out
        the row which took so long.
        """
        died = 0
        while died < 2:
            process = self._processes[place]
            found, row = _answer(process, item)
            if isinstance(found, BaseException):
                raise found
            if found == _UNREAD and isinstance(item, Block):
                item = msgspec.structs.replace(item, part=None)
                continue
            if found is not None:
                return found
            process.kill()
            if -process.wait() in (signal.SIGPROF, signal.SIGALRM) and isinstance(item, Block):
                self._careful = True
                if row is not None:
                    item = msgspec.structs.replace(item, too_costly=(*item.too_costly, row))
            else:
                died += 1
            self._replace(place)
        where = f"block {item.number} of {item.path}" if isinstance(item, Block) else "a partition"
        raise AnswerkeyError(f"the process that scored {where} ended twice; is there enough memory?")

    def _replace(self, place: int) -> None:
        with self._replacing:
            if self._closed.is_set():
                raise AnswerkeyError("the scoring has ended")
            with _ctrl_c_held_back():
                self._processes[place] = _start(self._plan, careful=self._careful)

    def close(self) -> None:
        """End them. Threads that still wait for one find it dead, and end as well."""
        self._closed.set()
        with self._replacing:
            processes = list(self._processes)
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        # Each thread has two things to say at most from here on, for which there is room then.
        with suppress(queue.Empty):
            while True:
                self._done.get_nowait()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """What is started here is never interrupted: Ctrl-C goes to the whole group, and is for the first process alone."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process(Protocol):
    """A process that answers, as `subprocess` has it."""

    @property
    def stdin(self) -> Any: ...
    @property
    def stdout(self) -> Any: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Copy:
    """A process that begins as a copy of this one, with all that it has loaded."""

    def __init__(self, plan: ShardPlan, grader: Grader, not_theirs: Sequence[int] = ()) -> None:
        given, ask = os.pipe()
        answered, answer = os.pipe()
        self._id = os.fork()
        if not self._id:
            try:
                os.close(ask)
                os.close(answered)
                for number in (signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                os.dup2(2, 1)
                nothing = os.open(os.devnull, os.O_RDWR)
                for unwanted in not_theirs:
                    os.dup2(nothing, unwanted)
                gc.freeze()
                _serve(os.fdopen(given, "rb"), os.fdopen(answer, "wb"), plan, grader)
            finally:
                # Nothing of what the parent still has to write or to close.
                os._exit(1)
        os.close(given)
        os.close(answer)
        self.stdin, self.stdout = os.fdopen(ask, "wb"), os.fdopen(answered, "rb")
        # How it ended; its number may be another process's then.
        self._ended: int | None = None
        # The thread that feeds it and the one that closes all may both wait for it, which the system allows once.
        self._ending = threading.Lock()

    def kill(self) -> None:
        with self._ending, suppress(ProcessLookupError):
            if self._ended is None:
                os.kill(self._id, signal.SIGKILL)

    def wait(self) -> int:
        with self._ending:
            if self._ended is None:
                try:
                    self._ended = os.waitstatus_to_exitcode(os.waitpid(self._id, 0)[1])
                except ChildProcessError:
                    # It was waited for, but a second Ctrl-C came before that was noted.
                    self._ended = -signal.SIGKILL
                for stream in (self.stdin, self.stdout):
                    with suppress(OSError):
                        stream.close()
            return self._ended


def _answer(process: _Process, item: object) -> tuple[object | None, int | None]:
    """What a process makes of an item (None: it died), and the row that it told last."""
    row: int | None = None
    try:
        _write(process.stdin, item.sent() if isinstance(item, Block) else item)
        while (content := read_frame(process.stdout)) is not None:
            found = pickle.loads(content)  # noqa: S301  # from our own child
            if not isinstance(found, int):
                return found, row
            row = found
    except (OSError, ValueError):
        pass  # It died, or was closed, while it was written to, which is told as any other end.
    return None, row


def _start(plan: ShardPlan, *, careful: bool = False) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "answerkey.runs.shard_processes"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own module
    _write(cast("BinaryIO", process.stdin), (sys.path, plan, careful))
    return process


def _write(stream: BinaryIO, value: object) -> None:
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(4, "little"))
    stream.write(content)
    stream.flush()


def _main() -> None:
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a scorer prints must not stand among the answers.
    os.dup2(2, 1)
    first = read_frame(given)
    if first is not None:
        sys.path[:], plan, careful = pickle.loads(first)  # noqa: S301  # from our own parent
        _serve(given, answers, plan, careful=careful)


def _serve(
    given: BinaryIO,
    answers: BinaryIO,
    plan: ShardPlan,
    grader: Grader | None = None,
    *,
    careful: bool = False,
) -> None:
    # Ctrl-C is for the parent, which closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scorer = ShardScorer(plan, grader)

    def tell(row: int) -> None:
        _write(answers, row)
        _limit(plan.scoring_seconds)

    if careful:
        # What the first row would load is not charged to it.
        scorer.prepare()
        scorer.before_row = tell
    while (content := read_frame(given)) is not None:
        item = pickle.loads(content)  # noqa: S301
        try:
            if isinstance(item, Block):
                item = item.arrived()
            if item is None:
                answer: object = _UNREAD
            elif isinstance(item, Block):
                # A block of usual rows takes no longer than one row may; if it does, its rows are looked at one by one.
                _limit(plan.scoring_seconds)
                answer = scorer.score(item)
                _limit(0)
            else:
                journal, partitions = item
                answer = add_up_partitions(journal, partitions, plan.pass_mark, plan.given)
        except Exception as error:  # noqa: BLE001  # told to the parent, which raises it
            answer = error
        _write(answers, answer)


def _limit(seconds: float) -> None:
    """Have the kernel end this process after so many seconds of CPU, or a few times as many altogether; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, SLEEPING * seconds)


if __name__ == "__main__":
    _main()
