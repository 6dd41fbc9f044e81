"""Child processes of targets: started without a shell in a session of their own, ended together with their children."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence

from answerkey.errors import UsageError
from answerkey.model.reply import Failure
from answerkey.observe.environment import child_environment
from answerkey.transcripts.error_kinds import classify_error
from answerkey.transcripts.failures import failure_message

_GRACE_S = 1.0
# What is kept of a child's stderr, for the message of a failure.
_LAST_LINES = 30
_LONGEST_LINE = 2000


class Child:
    """A running program with its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process has no pipes")
        self.process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._stderr = process.stderr
        self._killed = False
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._listening = asyncio.create_task(self._listen())

    @property
    def alive(self) -> bool:
        """Whether the program can still be asked."""
        return self.process.returncode is None and not self._killed

    def kill(self) -> None:
        """End the program and its children at once."""
        self._killed = True
        end_session(self.process)

    async def finish(self) -> bool:
        """Close the program's input; whether it then ends by itself, as one does that waits for the next question."""
        self.stdin.close()
        return await ended_within(self.process, _GRACE_S)

    async def close(self) -> None:
        """Ask the program to end, by closing its input and then by a signal; then end what is left of it."""
        if self.alive and not await self.finish():
            end_session(self.process, signal.SIGTERM)
            await ended_within(self.process, _GRACE_S)
        self.kill()
        await self.process.wait()
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening

    async def failure(self) -> Failure:
        """Why the program ended, from its exit code and the last thing on its stderr."""
        if not await ended_within(self.process, _GRACE_S):
            self.kill()
            await self.process.wait()
        # What it wrote last may still be in the pipe.
        await asyncio.wait({self._listening}, timeout=_GRACE_S)
        code = self.process.returncode or 0
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        said = next((line for line in reversed(self._last) if line.strip()), "")
        kind = classify_error(said) if said else "memory" if code == -signal.SIGKILL else "exception"
        return Failure(kind, failure_message(f"the program {ending}" + (f": {said}" if said else "")))

    async def _listen(self) -> None:
        rest = b""
        while chunk := await self._stderr.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            self._last.extend(
                line[:_LONGEST_LINE].decode("utf-8", "replace") for line in lines[-_LAST_LINES:]
            )
            rest = rest[-_LONGEST_LINE:]
        if rest:
            self._last.append(rest.decode("utf-8", "replace"))


async def ended_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it ends by itself in so long."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


def end_session(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
    """Send a signal to it and its children: the session's id is its own, so this reaches them even when it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: str | None,
    longest_line: int,
) -> Child:
    """Start a program; one that cannot be started is the user's to correct."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**child_environment(), **env},
            cwd=folder,
            limit=longest_line,
            # Ctrl-C is answerkey's to handle, and the whole session can be ended at once.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        # The same error is raised for a folder to start it in that is not there.
        missing = (
            f"folder {folder!r}"
            if folder is not None and error.filename == folder
            else f"program {command[0]!r}"
        )
        raise UsageError(f"there is no {missing}; check the target's cmd") from None
    except (PermissionError, OSError, ValueError) as error:
        raise UsageError(failure_message(f"the program {command[0]!r} cannot be started: {error}")) from None
    return Child(process)
