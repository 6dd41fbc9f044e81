"""Pacing: a rate limit, and the pause that a chatbot's `Retry-After` asks of everyone."""

import asyncio
import random
import time

__all__ = ["LONGEST_WAIT", "Pacer", "backoff"]

# Nobody waits longer than this for a retry: a longer `Retry-After` is a failure that says so.
LONGEST_WAIT = 60.0


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
