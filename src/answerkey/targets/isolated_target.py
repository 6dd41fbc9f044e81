"""A process of a Python chatbot, as answerkey sees it: questions go in, replies come out, and its end is noticed."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.observe.merging import child_environment
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError, TargetContext
from answerkey.targets import python_frames as frames
from answerkey.targets.command_target import end_session, ended_within
from answerkey.targets.conversations import PerConversation
from answerkey.targets.python_frames import Begin
from answerkey.targets.resolve import Stopwatch, read_settings
from answerkey.targets.secrets import settings_hash
from answerkey.text.normalise import clean_text
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.json_values import MOST_MEGABYTES
from answerkey.transcripts.payloads import ReplyMapping, is_watched, note_raw

_GRACE_S = 1.0
# What a frame has beside its reply.
_ENVELOPE_BYTES = 65536
_MEGABYTE = 1024 * 1024

_STANDS_STILL = Failure("timeout", "the chatbot's event loop was blocked by another question")

_decode = msgspec.json.Decoder(frames.FromBot).decode


class _Waiting(NamedTuple):
    ask: Ask
    answer: "asyncio.Future[frames.Answered]"
    # Since it was sent, for a reply that never comes; others are timed where the chatbot is.
    watch: Stopwatch


class PythonProcess:
    """One process with the questions that are under way in it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begin: frames.Begin,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.begin = begin
        self._most_bytes = int(begin.max_reply_mb * _MEGABYTE) + _ENVELOPE_BYTES
        self._waiting: dict[int, _Waiting] = {}
        # Questions that nobody waits for and that have not ended.
        self._given_up: set[int] = set()
        self._number = 0
        self._listening: asyncio.Task[None] | None = None
        self.ready = frames.Ready(is_async=False, remembers=True)
        # Why it ended; None while it lives.
        self.ending: Failure | None = None
        # It gets no new conversations; when nothing is under way in it any more, it is ended.
        self.retiring = False
        # Another is being started in its place; and it is given a moment before it is ended.
        self.is_replaced = self.lingers = False
        # Told of a question that goes on after it was cancelled, of a loop that stands still, and of room.
        self.on_stuck: Callable[[PythonProcess], None] = lambda process: None
        self.on_blocked: Callable[[PythonProcess], None] = lambda process: None
        self.on_room: Callable[[], None] = lambda: None

    @property
    def under_way(self) -> int:
        """How many questions wait for its reply."""
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether it takes another question."""
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
        if isinstance(message, frames.Refused):
            raise UsageError(message.message)
        if isinstance(message, frames.Ready):
            self.ready = message
        self._listening = asyncio.create_task(self._listen())

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; if nobody waits any more, the question is stopped or the process retired."""
        self._number += 1
        number = self._number
        answer: asyncio.Future[frames.Answered] = asyncio.get_running_loop().create_future()
        self._waiting[number] = _Waiting(ask, answer, Stopwatch())
        self._send(frames.Question(number, _writable(ask)))
        try:
            answered = await answer
            if (raw := answered.raw) is not None:
                note_raw(lambda: raw)
            return answered.reply
        except asyncio.CancelledError:
            self._give_up(number)
            raise
        finally:
            self._waiting.pop(number, None)
            self.on_room()

    def release_others(self, number: int | None) -> None:
        """Let the questions that stand still behind another be asked elsewhere; a later turn has to stay where it began."""
        for one, waiting in list(self._waiting.items()):
            if one != number and not waiting.ask.turn and not waiting.answer.done():
                self._given_up.add(one)
                self._send(frames.Cancel(one))
                waiting.answer.set_exception(AskAgainError(_STANDS_STILL))

    async def close(self) -> None:
        """Let it end by itself for a moment, then end it with its children."""
        self._writer.close()
        await ended_within(self._process, _GRACE_S)
        await self.kill()

    async def kill(self) -> None:
        """End it and its children at once."""
        end_session(self._process)
        await self._process.wait()
        if self._listening is not None and self._listening is not asyncio.current_task():
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()

    def _give_up(self, number: int) -> None:
        if self.ending is not None:
            return
        self._given_up.add(number)
        self._send(frames.Cancel(number))
        # An async function ends at its next await, a thread when it returns: only the process can be ended.
        wait = _GRACE_S if self.ready.is_async else 0.0
        asyncio.get_running_loop().call_later(wait, self._check_stopped, number)

    def _check_stopped(self, number: int) -> None:
        if number in self._given_up and self.ending is None:
            self.on_stuck(self)

    async def _listen(self) -> None:
        broken = ""
        try:
            while True:
                self._dispatch(await self._receive())
        except (OSError, EOFError):
            pass
        except ValueError as error:
            # Somebody else wrote to its socket.
            broken = f"the chatbot's process sent what is no reply: {failure_message(str(error))}"
        ended = await self._why()
        self._end(Failure("malformed", broken) if broken else ended)

    def _end(self, failure: Failure) -> None:
        """Whose fault it was is known if only one question was under way; others are asked again."""
        self.ending = self.ending or failure
        self._writer.close()
        suspects = len(self._waiting) + len(self._given_up)
        for waiting in self._waiting.values():
            if waiting.answer.done():
                continue
            if suspects == 1 or waiting.ask.turn:
                waiting.answer.set_result(
                    frames.Answered(0, Reply(failure=failure, timings=waiting.watch.timings()))
                )
            else:
                waiting.answer.set_exception(AskAgainError(failure))
        self.on_room()

    def _dispatch(self, message: frames.FromBot) -> None:
        if isinstance(message, frames.Blocked):
            self.on_blocked(self)
            self.release_others(message.number)
        elif isinstance(message, frames.Answered | frames.TurnedAway | frames.Stopped):
            self._given_up.discard(message.number)
            waiting = self._waiting.get(message.number)
            if waiting is None or waiting.answer.done():
                return
            if isinstance(message, frames.Answered):
                waiting.answer.set_result(message)
            elif isinstance(message, frames.TurnedAway):
                waiting.answer.set_exception(RetryableError(message.failure, message.retry_after))

    async def _receive(self) -> frames.FromBot:
        length = int.from_bytes(await self._reader.readexactly(frames.LENGTH_BYTES), "big")
        if length > self._most_bytes:
            raise ValueError(f"{length} bytes")
        message: frames.FromBot = _decode(await self._reader.readexactly(length))
        return message

    def _send(self, message: frames.ToBot) -> None:
        # To one that has ended nothing is written; its end is noticed by whoever listens.
        if not self._writer.is_closing():
            self._writer.write(frames.encode_frame(message))

    async def _why(self) -> Failure:
        """Why it ended; a process that only closed its socket is ended."""
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


async def start_python_process(begin: frames.Begin) -> PythonProcess:
    """A process with the chatbot loaded; raises UsageError if it cannot be."""
    ours, theirs = socket.socketpair()
    try:
        # -P: nothing in the current folder is imported in the place of a module that the worker needs.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "answerkey.targets.python_worker", str(theirs.fileno())),
            stdin=asyncio.subprocess.DEVNULL,
            # What it prints is shown, and is never part of a document on standard output.
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


# The target `python:module:callable` (also `file.py:callable`): any function of the user's, in processes of its own.
#
# One process is asked many questions at once, as a server would be, so that what it loads is loaded once. Only where
# questions get in each other's way are they kept apart: when the process ends in their midst, or when an async function
# blocks the loop that they share, each is asked in a process that works on nothing else.


# An event loop that stands still for so long keeps others waiting.
_PATIENCE_S = 1.0
# A conversation's next turn comes within this time; then a process that is to be ended is.
_LINGER_S = 1.0
# So many of the questions in whose midst a process ended are asked again at once.
_MOST_SUSPECTS = 4


class PythonSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a callable under test."""

    # "module:callable" or "file.py:callable".
    python: str
    # How many processes share the questions; as many as the concurrency means one question at a time in each.
    processes: int = 1
    # A reply that is larger is a failure.
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
    """A callable in processes of its own as a chatbot."""

    def __init__(
        self,
        settings: PythonSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        folder: Path | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        if settings.processes < 1:
            raise ConfigError(f"processes = {settings.processes}: must be at least 1")
        self.name = name or f"python:{settings.python}"
        # Where its code is; None: that is not known before it is imported.
        self.code = _file_of(settings.python, folder)
        source = "" if self.code is None else self.code.read_text(errors="replace")
        # Another source is another chatbot.
        self.fingerprint = settings_hash("python", [settings.python, settings.reply, source])
        self._concurrency = concurrency
        self._begin = Begin(
            reference=settings.python,
            folder=None if folder is None else str(folder),
            path=sys.path,
            mapping=settings.reply,
            concurrency=-(-concurrency // settings.processes),
            max_reply_mb=settings.max_reply_mb,
            patience_s=patience_s,
            with_raw=is_watched(),
        )
        # Begin for a process that works on one question at a time.
        self._begin_alone = msgspec.structs.replace(self._begin, concurrency=1)
        self._processes: list[PythonProcess] = []
        self._starting = 0
        # Why the last process could not be started.
        self._refusal: UsageError | None = None
        # Conversations in whose midst a process ended or stood still: each is asked where no other is.
        self._suspects: set[str] = set()
        self._said_blocked = False
        # Set whenever a process has room, ended or was started.
        self._changed = asyncio.Event()
        # Starting processes and waiting for the end of old ones, which is given up when the target closes.
        self._chores: set[asyncio.Task[None]] = set()
        self._places: PerConversation[PythonProcess] = PerConversation(concurrency)

    async def __aenter__(self) -> "IsolatedTarget":
        self._changed = asyncio.Event()
        self._said_blocked = False
        # At once, so that a function that cannot be loaded is told before the first question.
        await self._start(self._begin)
        if self._refusal is not None:
            raise self._refusal
        return self

    async def __aexit__(self, *exc: object) -> None:
        chores, self._chores = self._chores, set()
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        processes, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in processes))

    async def wait_for_room(self, ask: Ask) -> None:
        """Until a process is there that takes the question: starting one is not the chatbot's time."""
        await self._place(ask)

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; a process that ends is the failure of the question that it was asked, and of no other."""
        process = await self._place(ask)
        if isinstance(process, Failure):
            return Reply(failure=process)
        self._places.set(ask.conversation_id, process)
        try:
            reply = await process.ask(ask)
        except AskAgainError:
            self._suspects.add(ask.conversation_id)
            raise
        self._suspects.discard(ask.conversation_id)
        return reply

    async def _place(self, ask: Ask) -> PythonProcess | Failure:
        """The process to ask; a conversation stays in its own, and is lost with it if the chatbot may remember it."""
        before = self._places.get(ask.conversation_id) if ask.turn else None
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
                # Not in the question's own task: it may time out, and the process is wanted by others as well.
                self._refusal = None
                self._do(self._start(self._begin_alone if alone or self._said_blocked else self._begin))
            await self._changed.wait()
            if self._refusal is not None:
                raise self._refusal

    def _may_start(self, alone: bool) -> bool:
        """Whether to start another: one that many can share is waited for, and there is a limit to the others."""
        if not alone and not self._said_blocked:
            return not self._starting
        private = sum(process.is_private and not process.retiring for process in self._processes)
        most = self._concurrency if self._said_blocked else min(_MOST_SUSPECTS, self._concurrency)
        return private + self._starting < most

    async def _start(self, begin: Begin) -> None:
        self._starting += 1
        try:
            process = await start_python_process(begin)
        except UsageError as error:
            # For those who wait; the next question tries again.
            self._refusal = error
        else:
            process.on_stuck = self._replace
            process.on_blocked = self._keep_apart
            process.on_room = self._tell_changed
            self._processes.append(process)
        finally:
            self._starting -= 1
            self._tell_changed()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self._processes = [process for process in self._processes if process.ending is None]
        for process in self._processes:
            if process.retiring and not process.under_way and not process.lingers:
                process.lingers = True
                self._do(self._end_idle(process))

    def _replace(self, process: PythonProcess) -> None:
        """A question goes on though nobody waits for it: end its process, when another is there to take its place."""
        if not process.retiring and not process.is_replaced:
            process.is_replaced = True
            self._do(self._start_in_place_of(process))

    async def _start_in_place_of(self, process: PythonProcess) -> None:
        await self._start(process.begin)
        process.retiring = True
        self._tell_changed()

    def _keep_apart(self, process: PythonProcess) -> None:
        """From now on no question shares a loop: this function blocks it."""
        if self._concurrency == 1:
            return
        process.retiring = True
        if not self._said_blocked:
            self._said_blocked = True
            sys.stderr.write(
                f"answerkey: {self.name} blocks its event loop (an async function that waits without await); "
                "its questions are now asked in processes of their own\n"
            )
        self._tell_changed()

    async def _end_idle(self, process: PythonProcess) -> None:
        await asyncio.sleep(_LINGER_S)
        process.lingers = False
        if not process.under_way and process in self._processes:
            self._processes.remove(process)
            process.ending = process.ending or Failure(
                "timeout", "a question in it went on after its timeout"
            )
            await process.kill()

    def _do(self, chore: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


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
