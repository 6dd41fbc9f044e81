"""Patience: a timeout that a reply which has arrived beats, however busy the loop was when it came."""

import asyncio

__all__ = ["Patience"]

# When the time is up, the loop looks so often for what lies in the sockets already; each look takes microseconds.
_LOOKS = 50


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
