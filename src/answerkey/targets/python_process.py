"""A process of a Python chatbot, as answerkey sees it: questions go in, replies come out, and its end is noticed."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.observe.environment import child_environment
from answerkey.protocols import Ask, AskAgainError, RetryableError
from answerkey.targets import python_frames as frames
from answerkey.targets.child_process import end_session, ended_within
from answerkey.targets.stopwatch import Stopwatch
from answerkey.text.sanitise import clean_text
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.reply_mapping import note_raw

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
