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
    """Like `asyncio.timeout`, but what arrived in time counts even where the loop comes to read it too late."""

    __slots__ = ("_expired", "_handle", "_loop", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._handle: asyncio.Handle = self._loop.call_later(self._seconds, self._look, _LOOKS)

    def _look(self, left: int) -> None:
        if left:
            self._handle = self._loop.call_soon(self._look, left - 1)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._handle.cancel()
        # Cancelled by somebody else as well, it stays cancelled.
        if (
            self._expired
            and self._task is not None
            and self._task.uncancel() <= 0
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError
