"""The process of a Python chatbot: loads it, asks it the questions from the socket, and reports a blocked event loop.

It is started by `start_python_process` with the descriptor of the socket as its argument. Its stdout is answerkey's stderr, so
that what the chatbot prints is shown and never becomes part of a document.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec

from answerkey.errors import AnswerkeyError
from answerkey.model.reply import Reply
from answerkey.protocols import RetryableError
from answerkey.targets import isolated_target as frames
from answerkey.targets.python_target import PythonTarget, load_callable
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.payloads import watch_raw

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
    if not isinstance(begin, frames.Begin):
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
        channel.send(frames.Refused(str(error)))
        return
    except BaseException as error:  # noqa: BLE001  # loading it may raise anything
        message = f"importing {begin.reference} failed: {type(error).__name__}: {error}"
        channel.send(frames.Refused(failure_message(message)))
        return
    # This process is the chatbot's: what it imports later is also searched in its folder first.
    sys.path[:] = [*(folder for folder in sys.path if folder not in begin.path), *begin.path]
    channel.send(frames.Ready(target.is_async, target.remembers))
    asyncio.run(_Server(channel, target, begin).serve())


class _Channel:
    """The socket, for one reader and several writers."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._decode = msgspec.json.Decoder(frames.ToBot).decode
        # A process that the chatbot forks must neither keep the socket open nor answer.
        os.register_at_fork(after_in_child=connection.close)

    def send(self, message: frames.FromBot) -> None:
        """Send a message; ends the process if answerkey is gone."""
        try:
            with self._writing:
                self._connection.sendall(frames.encode_frame(message))
        except OSError:
            os._exit(0)

    def receive(self) -> frames.ToBot | None:
        """The next message; None if answerkey is gone."""
        try:
            content = self._exactly(int.from_bytes(self._exactly(frames.LENGTH_BYTES), "big"))
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

    def __init__(self, channel: _Channel, target: PythonTarget, begin: frames.Begin) -> None:
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
            if isinstance(message, frames.Question):
                loop.call_soon_threadsafe(self._begin, message)
            elif isinstance(message, frames.Cancel):
                loop.call_soon_threadsafe(self._cancel, message.number)
        _soon(loop, over.set)
        # A process that does not end by itself is ended.
        threading.Event().wait(_EXIT_S)
        os._exit(0)

    def _begin(self, question: frames.Question) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(question))
        self._tasks[question.number] = task

    def _cancel(self, number: int) -> None:
        if number in self._tasks:
            self._tasks[number].cancel()

    async def _answer(self, question: frames.Question) -> None:
        number = question.number
        try:
            with watch_raw() if self._with_raw else nullcontext() as seen:
                reply = await self._target.ask(question.ask)
            self._channel.send(frames.Answered(number, reply, seen[-1] if seen else None))
        except RetryableError as error:
            self._channel.send(frames.Retry(number, error.failure, error.retry_after))
        except Exception as error:  # noqa: BLE001  # a question without an answer would time out
            reply = Reply(failure=failure_from_exception(error))
            self._channel.send(frames.Answered(number, reply))
        except asyncio.CancelledError:
            # A thread continues after its task is cancelled.
            if self._target.is_async:
                self._channel.send(frames.Stopped(number))
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
                self._channel.send(frames.Blocked(numbers[0] if numbers else None))
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
