"""The target `python:module:callable` (also `file.py:callable`): a function of the user's in separate processes.

One process is asked many questions concurrently, like a server, so that it is loaded once. Questions that disturb each other,
because the process ends or an async function blocks the event loop that they share, are each asked in their own process.

The process runs this module: it loads the chatbot, asks it the questions from the socket, and reports a blocked event loop. Its
stdout is answerkey's stderr, so that what the chatbot prints is shown and never becomes part of a document.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

import msgspec

from answerkey.config import settings_hash
from answerkey.errors import AnswerkeyError, ConfigError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.observe.observations import child_environment
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError, TargetContext
from answerkey.targets.command_target import end_session, ended_within
from answerkey.targets.python_target import PythonTarget, load_callable
from answerkey.targets.resolve import PerConversation, Stopwatch, read_settings
from answerkey.text.normalise import clean_text
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.json_values import MOST_MEGABYTES
from answerkey.transcripts.payloads import (
    ReplyMapping,
    failure_from_exception,
    is_watched,
    note_raw,
    watch_raw,
)

_GRACE_S = 1.0
# Bytes of a frame beside its reply.
_ENVELOPE_BYTES = 65536
_MEGABYTE = 1024 * 1024

_BLOCKED = Failure("timeout", "the chatbot's event loop was blocked by another question")


# Messages between answerkey and the process of a chatbot: length-prefixed JSON over a socket.


LENGTH_BYTES = 4

_encode = msgspec.json.Encoder().encode


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first frame to the process: what to load and how to ask it."""

    # "module:callable" or "file.py:callable".
    reference: str
    # Where relative paths and modules are searched.
    folder: str | None
    # Python's search path of answerkey's process.
    path: list[str]
    mapping: ReplyMapping | None
    # Maximum concurrent questions.
    concurrency: int
    max_reply_mb: float
    # An event loop that is blocked for longer is reported.
    blocked_after_s: float
    # Also send what the chatbot returned, before it is read.
    with_raw: bool = False


class Question(msgspec.Struct, frozen=True, tag=True):
    """Ask the chatbot."""

    number: int
    ask: Ask


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop a question: its reply is not needed any more."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The chatbot is loaded."""

    # Whether a running question can be stopped without ending the process.
    is_async: bool
    # Whether it gets the conversation id, so that it may remember earlier turns.
    remembers: bool


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why the chatbot cannot be loaded."""

    message: str


class Answered(msgspec.Struct, frozen=True, tag=True):
    """A reply."""

    number: int
    reply: Reply
    # What it was read from, if requested.
    raw: str | None = None


class Retry(msgspec.Struct, frozen=True, tag=True):
    """The question may be asked again: a RetryableError."""

    number: int
    failure: Failure
    retry_after: float | None


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """A question that was cancelled has ended."""

    number: int


class Blocked(msgspec.Struct, frozen=True, tag=True):
    """The event loop is blocked, by this question if that is known."""

    number: int | None


ToBot = Begin | Question | Cancel
FromBot = Ready | Refused | Answered | Retry | Stopped | Blocked


def encode_frame(message: ToBot | FromBot) -> bytes:
    """A message, preceded by its length."""
    content = _encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


_decode = msgspec.json.Decoder(FromBot).decode


class _Waiting(NamedTuple):
    ask: Ask
    answer: "asyncio.Future[Answered]"
    # For a reply that never comes; others are timed in the process.
    watch: Stopwatch


class PythonProcess:
    """One process and its running questions."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begin: Begin,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.begin = begin
        self._most_bytes = int(begin.max_reply_mb * _MEGABYTE) + _ENVELOPE_BYTES
        self._waiting: dict[int, _Waiting] = {}
        # Questions that were cancelled and have not ended.
        self._cancelled: set[int] = set()
        self._number = 0
        self._listening: asyncio.Task[None] | None = None
        self.ready = Ready(is_async=False, remembers=True)
        # Why it ended; None while it runs.
        self.ending: Failure | None = None
        # It gets no new conversations, and is ended when its questions are done.
        self.retiring = False
        # It waits for a next turn before it is ended.
        self.lingers = False
        # Called for a blocked loop, and when there is room or the process retires.
        self.on_blocked: Callable[[PythonProcess], None] = lambda process: None
        self.on_room: Callable[[], None] = lambda: None

    @property
    def running(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether it accepts another question."""
        usable = self.ending is None and not self.retiring
        return usable and len(self._waiting) < self.begin.concurrency

    @property
    def is_private(self) -> bool:
        """Whether it works on one question at a time."""
        return self.begin.concurrency == 1

    async def open(self) -> None:
        """Load the chatbot; raises UsageError if that fails."""
        self._send(self.begin)
        try:
            message = await self._receive()
        except (OSError, EOFError, ValueError):
            ended = await self._why()
            raise UsageError(f"importing {self.begin.reference} ended the process: {ended.message}") from None
        if isinstance(message, Refused):
            raise UsageError(message.message)
        if isinstance(message, Ready):
            self.ready = message
        self._listening = asyncio.create_task(self._listen())

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; if the task is cancelled, the question is stopped or the process retired."""
        self._number += 1
        number = self._number
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting[number] = _Waiting(ask, answer, Stopwatch())
        self._send(Question(number, _writable(ask)))
        try:
            answered = await answer
            if (raw := answered.raw) is not None:
                note_raw(lambda: raw)
            return answered.reply
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self._waiting.pop(number, None)
            self.on_room()

    def release_others(self, number: int | None) -> None:
        """Have the questions that another one blocks asked elsewhere, except for later turns, which must stay here."""
        if len(self._waiting) + len(self._cancelled) == 1:
            # Nothing else is asked there: it blocks itself, perhaps by a task that it started.
            return
        for one, waiting in list(self._waiting.items()):
            if one != number and not waiting.ask.turn and not waiting.answer.done():
                self._cancelled.add(one)
                self._send(Cancel(one))
                waiting.answer.set_exception(AskAgainError(_BLOCKED, still_works=True))

    async def close(self) -> None:
        """Let the process end by itself for a moment, then kill it and its children."""
        self._writer.close()
        await ended_within(self._process, _GRACE_S)
        await self.kill()

    async def kill(self) -> None:
        end_session(self._process)
        await self._process.wait()
        if self._listening is not None and self._listening is not asyncio.current_task():
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()

    def _cancel(self, number: int) -> None:
        if self.ending is not None:
            return
        self._cancelled.add(number)
        self._send(Cancel(number))
        # An async function ends at its next await, a thread only when it returns.
        wait = _GRACE_S if self.ready.is_async else 0.0
        asyncio.get_running_loop().call_later(wait, self._check_stopped, number)

    def _check_stopped(self, number: int) -> None:
        if number in self._cancelled and self.ending is None:
            # The question continues although its time is over: the process must not get further ones.
            self.retiring = True
            self.on_room()

    async def _listen(self) -> None:
        broken = ""
        try:
            while True:
                self._dispatch(await self._receive())
        except (OSError, EOFError):
            pass
        except ValueError as error:
            # Other code wrote to the socket.
            broken = f"the chatbot's process sent a malformed reply: {failure_message(str(error))}"
        ended = await self._why()
        self._end(Failure("malformed", broken) if broken else ended)

    def _end(self, failure: Failure) -> None:
        """Fail the running question if there is only one, which then is the cause; otherwise have all asked again."""
        self.ending = self.ending or failure
        self._writer.close()
        suspects = len(self._waiting) + len(self._cancelled)
        for waiting in self._waiting.values():
            if waiting.answer.done():
                continue
            if suspects == 1 or waiting.ask.turn:
                waiting.answer.set_result(
                    Answered(0, Reply(failure=failure, timings=waiting.watch.timings()))
                )
            else:
                waiting.answer.set_exception(AskAgainError(failure))
        self.on_room()

    def _dispatch(self, message: FromBot) -> None:
        if isinstance(message, Blocked):
            self.on_blocked(self)
            self.release_others(message.number)
        elif isinstance(message, Answered | Retry | Stopped):
            self._cancelled.discard(message.number)
            waiting = self._waiting.get(message.number)
            if waiting is None or waiting.answer.done():
                return
            if isinstance(message, Answered):
                waiting.answer.set_result(message)
            elif isinstance(message, Retry):
                waiting.answer.set_exception(RetryableError(message.failure, message.retry_after))

    async def _receive(self) -> FromBot:
        length = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big")
        if length > self._most_bytes:
            raise ValueError(f"{length} bytes")
        message: FromBot = _decode(await self._reader.readexactly(length))
        return message

    def _send(self, message: ToBot) -> None:
        # The end of the process is noticed by `_listen`.
        if not self._writer.is_closing():
            self._writer.write(encode_frame(message))

    async def _why(self) -> Failure:
        """Why the process ended; one that only closed its socket is killed."""
        by_itself = await ended_within(self._process, _GRACE_S)
        end_session(self._process)
        if not by_itself:
            await self._process.wait()
            return Failure("exception", "the chatbot closed its connection to answerkey")
        code = self._process.returncode or 0
        if code < 0:
            return Failure(
                "memory" if -code == signal.SIGKILL else "exception",
                f"the chatbot's process was ended by signal {-code}",
            )
        return Failure("exception", f"the chatbot's process ended with exit code {code}")


def _writable(ask: Ask) -> Ask:
    context = None if ask.context is None else clean_text(ask.context)
    return msgspec.structs.replace(ask, question=clean_text(ask.question), context=context)


async def start_python_process(begin: Begin) -> PythonProcess:
    """Start a process and load the chatbot; raises UsageError if that fails."""
    ours, theirs = socket.socketpair()
    try:
        # -P: files in the working directory must not shadow modules that the worker needs.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "answerkey.targets.isolated_target", str(theirs.fileno())),
            stdin=asyncio.subprocess.DEVNULL,
            # What it prints is shown, and is not part of a document on stdout.
            stdout=2,
            pass_fds=(theirs.fileno(),),
            env=child_environment(),
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    started = PythonProcess(process, reader, writer, begin)
    try:
        await started.open()
    except BaseException:
        await started.kill()
        raise
    return started


# An event loop that is blocked for longer delays other questions.
_BLOCKED_AFTER_S = 1.0
# Time for the next turn of a conversation before a retired process is ended.
_LINGER_S = 1.0
# Maximum concurrent retries after a process crash.
_MOST_SUSPECTS = 4


class PythonSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME]` of a Python callable."""

    # "module:callable" or "file.py:callable".
    python: str
    # Number of processes; as many as the concurrency means one question at a time in each.
    processes: int = 1
    # A larger reply is a failure.
    max_reply_mb: float = MOST_MEGABYTES
    reply: ReplyMapping | None = None


def make_isolated_target(rest: str, context: TargetContext) -> "IsolatedTarget":
    """The factory of the kind `python`."""
    return IsolatedTarget(
        read_settings(context, PythonSettings),
        name=context.name,
        concurrency=context.concurrency,
        folder=context.folder,
    )


class IsolatedTarget(BaseTarget):
    """A callable in separate processes as a chatbot."""

    def __init__(
        self,
        settings: PythonSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        folder: Path | None = None,
        blocked_after_s: float = _BLOCKED_AFTER_S,
    ) -> None:
        if settings.processes < 1:
            raise ConfigError(f"processes = {settings.processes}: must be at least 1")
        self.name = name or f"python:{settings.python}"
        # By the chatbot's fault points.
        self.takes_faults = True
        # None: not known before it is imported.
        self.code = _file_of(settings.python, folder)
        source = "" if self.code is None else self.code.read_text(errors="replace")
        # Another source is another version.
        self.fingerprint = settings_hash("python", [settings.python, settings.reply, source])
        self._concurrency = concurrency
        self._begin = Begin(
            reference=settings.python,
            folder=None if folder is None else str(folder),
            path=sys.path,
            mapping=settings.reply,
            concurrency=-(-concurrency // settings.processes),
            max_reply_mb=settings.max_reply_mb,
            blocked_after_s=blocked_after_s,
            with_raw=is_watched(),
        )
        # For a process that works on one question at a time.
        self._begin_alone = msgspec.structs.replace(self._begin, concurrency=1)
        self._processes: list[PythonProcess] = []
        self._starting = 0
        # Why the last process could not be started.
        self._refusal: UsageError | None = None
        # Conversations during which a process ended or was blocked: each is asked in its own process.
        self._suspects: set[str] = set()
        self._blocks = False
        # Set whenever a process has room, ended or was started.
        self._changed = asyncio.Event()
        # Background tasks that start and end processes; cancelled when the target closes.
        self._background: set[asyncio.Task[None]] = set()
        self._process_of: PerConversation[PythonProcess] = PerConversation(concurrency)

    async def __aenter__(self) -> "IsolatedTarget":
        self._changed = asyncio.Event()
        self._blocks = False
        # At once, so that a function that cannot be loaded is an error before the first question.
        await self._start(self._begin)
        if self._refusal is not None:
            raise self._refusal
        return self

    async def __aexit__(self, *exc: object) -> None:
        tasks, self._background = self._background, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        processes, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in processes))

    async def wait_for_room(self, ask: Ask) -> None:
        """Wait for a process with room: starting one is not the chatbot's time."""
        await self._process_for(ask)

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; a process that ends fails only the question that ended it."""
        process = await self._process_for(ask)
        if isinstance(process, Failure):
            return Reply(failure=process)
        self._process_of.set(ask.conversation_id, process)
        try:
            reply = await process.ask(ask)
        except AskAgainError:
            self._suspects.add(ask.conversation_id)
            raise
        self._suspects.discard(ask.conversation_id)
        return reply

    async def _process_for(self, ask: Ask) -> PythonProcess | Failure:
        """The process to ask. A conversation stays in one process, and is lost with it if the chatbot may remember it."""
        before = self._process_of.get(ask.conversation_id) if ask.turn else None
        if before is not None:
            if before.ending is None:
                return before
            if before.ready.remembers:
                return Failure("exception", f"the conversation was lost: {before.ending.message}")
        alone = ask.conversation_id in self._suspects
        while True:
            for process in self._processes:
                if process.has_room and (process.is_private or not alone):
                    return process
            if self._may_start(alone):
                # In the background: the question may time out, and others need the process as well.
                self._refusal = None
                self._in_background(self._start(self._begin_alone if alone or self._blocks else self._begin))
            await self._changed.wait()
            if self._refusal is not None:
                raise self._refusal

    def _may_start(self, alone: bool) -> bool:
        """Whether to start another process: one shared process at a time, and a limited number of private ones."""
        if not alone and not self._blocks:
            return not self._starting
        private = sum(process.is_private and not process.retiring for process in self._processes)
        most = self._concurrency if self._blocks else min(_MOST_SUSPECTS, self._concurrency)
        return private + self._starting < most

    async def _start(self, begin: Begin) -> None:
        self._starting += 1
        try:
            process = await start_python_process(begin)
        except UsageError as error:
            # Raised by the questions that wait; the next one tries again.
            self._refusal = error
        else:
            process.on_blocked = self._isolate
            process.on_room = self._notify
            self._processes.append(process)
        finally:
            self._starting -= 1
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self._processes = [process for process in self._processes if process.ending is None]
        for process in self._processes:
            if process.retiring and not process.running and not process.lingers:
                process.lingers = True
                self._in_background(self._end_idle(process))

    def _isolate(self, process: PythonProcess) -> None:
        """Ask each question in its own process from now on, since the function blocks its loop."""
        if self._concurrency == 1:
            return
        process.retiring = True
        if not self._blocks:
            self._blocks = True
            sys.stderr.write(
                f"answerkey: {self.name} blocks its event loop (an async function that waits without await); "
                "each question is now asked in its own process\n"
            )
        self._notify()

    async def _end_idle(self, process: PythonProcess) -> None:
        await asyncio.sleep(_LINGER_S)
        process.lingers = False
        if not process.running and process in self._processes:
            self._processes.remove(process)
            process.ending = process.ending or Failure("timeout", "a question continued after its timeout")
            await process.kill()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _file_of(reference: str, folder: Path | None) -> Path | None:
    """The file of a callable's module, found without importing it."""
    place = reference.rpartition(":")[0]
    start = folder or Path()
    if place.endswith(".py") or "/" in place or "\\" in place:
        path: Path | None = start / place
    else:
        path = _module_file(place, [str(start.resolve()), *sys.path])
    return path if path is not None and path.is_file() else None


def _module_file(name: str, search: list[str]) -> Path | None:
    origin: str | None = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), search)
        if spec is None:
            return None
        origin, search = spec.origin, list(spec.submodule_search_locations or [])
    return None if origin is None else Path(origin)


# Time limit for the chatbot's exit handlers.
_EXIT_S = 1.0


def main() -> None:
    """Serve one chatbot until the socket closes."""
    channel = _Channel(socket.socket(fileno=int(sys.argv[1])))
    # answerkey handles Ctrl-C. Lines are shown as they are printed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    begin = channel.receive()
    if not isinstance(begin, Begin):
        return
    try:
        sys.path[:] = begin.path
        function, _ = load_callable(begin.reference, None if begin.folder is None else Path(begin.folder))
        target = PythonTarget(
            function,
            mapping=begin.mapping,
            concurrency=begin.concurrency,
            max_reply_mb=begin.max_reply_mb,
        )
    except AnswerkeyError as error:
        channel.send(Refused(str(error)))
        return
    except BaseException as error:  # noqa: BLE001  # loading it may raise anything
        message = f"importing {begin.reference} failed: {type(error).__name__}: {error}"
        channel.send(Refused(failure_message(message)))
        return
    # This process is the chatbot's: what it imports later is also searched in its folder first.
    sys.path[:] = [*(folder for folder in sys.path if folder not in begin.path), *begin.path]
    channel.send(Ready(target.is_async, target.remembers))
    asyncio.run(_Server(channel, target, begin).serve())


class _Channel:
    """The socket, for one reader and several writers."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._decode = msgspec.json.Decoder(ToBot).decode
        # A process that the chatbot forks must neither keep the socket open nor answer.
        os.register_at_fork(after_in_child=connection.close)

    def send(self, message: FromBot) -> None:
        """Send a message; ends the process if answerkey is gone."""
        try:
            with self._writing:
                self._connection.sendall(encode_frame(message))
        except OSError:
            os._exit(0)

    def receive(self) -> ToBot | None:
        """The next message; None if answerkey is gone."""
        try:
            content = self._exactly(int.from_bytes(self._exactly(LENGTH_BYTES), "big"))
        except OSError:
            return None
        return self._decode(content) if content else None

    def _exactly(self, count: int) -> bytes:
        """Read `count` bytes; empty if answerkey is gone."""
        content = bytearray()
        while len(content) < count:
            more = self._connection.recv(min(count - len(content), 1 << 20))
            if not more:
                return b""
            content += more
        return bytes(content)


class _Server:
    """Answers questions until the socket closes."""

    def __init__(self, channel: _Channel, target: PythonTarget, begin: Begin) -> None:
        self._channel = channel
        self._target = target
        self._blocked_after_s = begin.blocked_after_s
        self._with_raw = begin.with_raw
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer until the socket closes."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        async with self._target:
            for work in (lambda: self._receive(loop, over), lambda: self._watch(loop)):
                threading.Thread(target=work, name="answerkey", daemon=True).start()
            await over.wait()

    def _receive(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        """In its own thread, since the chatbot may block the loop."""
        while (message := self._channel.receive()) is not None:
            if isinstance(message, Question):
                loop.call_soon_threadsafe(self._begin, message)
            elif isinstance(message, Cancel):
                loop.call_soon_threadsafe(self._cancel, message.number)
        _soon(loop, over.set)
        # A process that does not end by itself is ended.
        threading.Event().wait(_EXIT_S)
        os._exit(0)

    def _begin(self, question: Question) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(question))
        self._tasks[question.number] = task

    def _cancel(self, number: int) -> None:
        if number in self._tasks:
            self._tasks[number].cancel()

    async def _answer(self, question: Question) -> None:
        number = question.number
        try:
            with watch_raw() if self._with_raw else nullcontext() as seen:
                reply = await self._target.ask(question.ask)
            self._channel.send(Answered(number, reply, seen[-1] if seen else None))
        except RetryableError as error:
            self._channel.send(Retry(number, error.failure, error.retry_after))
        except Exception as error:  # noqa: BLE001  # a question without an answer would time out
            reply = Reply(failure=failure_from_exception(error))
            self._channel.send(Answered(number, reply))
        except asyncio.CancelledError:
            # A thread continues after its task is cancelled.
            if self._target.is_async:
                self._channel.send(Stopped(number))
        finally:
            self._tasks.pop(number, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report a blocked loop, in which no question can continue."""
        pause = threading.Event()
        while True:
            moves = threading.Event()
            if not _soon(loop, moves.set):
                return
            if not moves.wait(self._blocked_after_s):
                task = asyncio.current_task(loop)
                numbers = [number for number, one in list(self._tasks.items()) if one is task]
                self._channel.send(Blocked(numbers[0] if numbers else None))
                moves.wait()
            pause.wait(self._blocked_after_s / 4)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> bool:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # The loop is closed.
        return False
    return True


if __name__ == "__main__":
    main()
