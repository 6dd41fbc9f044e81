"""Patience: a timeout that a reply which has arrived beats, however busy the loop was when it came."""

import asyncio

__all__ = ["Patience"]

# When the time is up, the loop looks so often for what lies in the sockets already; each look takes microseconds.
_LOOKS = 50


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
