"""Pacing: a rate limit, the pause that a chatbot's `Retry-After` asks of everyone, and how long a reply is waited for."""

import asyncio
import random
import time

__all__ = ["LONGEST_WAIT", "Pacer", "Patience", "backoff"]

# Nobody waits longer than this for a retry: a longer `Retry-After` is a failure that says so.
LONGEST_WAIT = 60.0
# When the time is up, the loop looks so often for what lies in the sockets already; each look takes microseconds.
_LOOKS = 50


class Pacer:
    """Lets questions begin at most `rate` times a second, and not before a pause is over."""

    def __init__(self, rate: float | None) -> None:
        self._spacing = 1 / rate if rate else 0.0
        self._next = 0.0
        self._not_before = 0.0

    def pause(self, seconds: float) -> None:
        """Begin nothing for so long: the chatbot said that it has too much to do."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    async def turn(self) -> None:
        """Wait until the next question may begin."""
        if not self._spacing and not self._not_before:
            return
        now = time.monotonic()
        begin = max(now, self._next, self._not_before)
        self._next = begin + self._spacing
        if begin > now:
            await asyncio.sleep(begin - now)


def backoff(attempt: int) -> float:
    """Seconds before the next attempt: doubling from half a second, spread so that retries do not come in waves."""
    return min(LONGEST_WAIT, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


class Patience:
    """Many waits of the same length, with one timer for all of them: who began first is over first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # Those under way, in the order in which they began.
        self._waits: dict[_Wait, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait(self) -> "_Wait":
        """Like `asyncio.timeout`, but what arrived in time counts even where the loop comes to read it too late."""
        return _Wait(self)

    def begin(self, wait: "_Wait", loop: asyncio.AbstractEventLoop) -> None:
        """A wait that begins now."""
        if loop is not self._loop:
            self._loop, self._timer, self._waits = loop, None, {}
        self._waits[wait] = None
        if self._timer is None:
            self._timer = loop.call_at(wait.due, self._ring, loop)

    def end(self, wait: "_Wait") -> None:
        """A wait that is over."""
        self._waits.pop(wait, None)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for wait in list(self._waits):
            if wait.due > now:
                self._timer = loop.call_at(wait.due, self._ring, loop)
                return
            del self._waits[wait]
            wait.look(loop, _LOOKS)


class _Wait:
    """One wait, for as long as the body runs."""

    __slots__ = ("_expired", "_handle", "_patience", "_task", "due")

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._expired = False
        self._handle: asyncio.Handle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self.due = loop.time() + self._patience.seconds
        self._patience.begin(self, loop)

    def look(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        """The time is up, unless what is waited for has come by now."""
        if left:
            self._handle = loop.call_soon(self.look, loop, left - 1)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._patience.end(self)
        if self._handle is not None:
            self._handle.cancel()
        # Cancelled by somebody else as well, it stays cancelled.
        if (
            self._expired
            and self._task is not None
            and self._task.uncancel() <= 0
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError
