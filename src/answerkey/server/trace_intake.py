"""Spans that production chatbots send: held in memory, for each sender by itself, until the reply of their trace arrives."""

import time
from threading import Lock

from answerkey.model.reply import Reply
from answerkey.observe.merging import join_observations
from answerkey.observe.receiver import Answer, Receiver
from answerkey.observe.span import Unread
from answerkey.observe.trace_book import HeldTrace, OverfullError

__all__ = ["TraceIntake"]

_MOST_BYTES = 64 * 1024 * 1024
# So long a trace waits for its reply.
_HELD_S = 900.0


class TraceIntake:
    """The traces that arrived lately."""

    def __init__(self, *, most_bytes: int = _MOST_BYTES, held_s: float = _HELD_S) -> None:
        self._most_bytes = most_bytes
        self._held_s = held_s
        self._held: dict[tuple[str, str], HeldTrace] = {}
        self._bytes = 0
        self._lock = Lock()

    def receive(self, sender: str, signal: str, content_type: str, encoding: str, body: bytes) -> Answer:
        """The answer to an export request."""
        return Receiver(_FromSender(self, sender)).receive(signal, content_type, encoding, body)

    def take(self, sender: str, items: list[Unread]) -> None:
        """Keep spans, all of them or none: OverfullError if there is no room."""
        with self._lock:
            self._drop_old()
            if self._bytes + sum(item.size for item in items) > self._most_bytes:
                raise OverfullError
            for item in items:
                held = self._held.setdefault((sender, item.trace_id), HeldTrace(None))
                before = held.size
                held.add(item)
                self._bytes += held.size - before

    def join(self, sender: str, reply: Reply) -> Reply:
        """A reply with what the spans of its trace tell that the same sender sent before it."""
        with self._lock:
            # It stays: the same reply may be sent again, if another in the same request is refused.
            held = self._held.get((sender, (reply.trace_id or "").lower()))
            seen = None if held is None else held.read(held.lacks()).observation
        return reply if seen is None else join_observations(reply, [seen])

    def _drop_old(self) -> None:
        oldest = time.monotonic() - self._held_s
        for key in [key for key, held in self._held.items() if held.last < oldest]:
            self._bytes -= self._held.pop(key).size


class _FromSender:
    """The intake as one sender sees it."""

    def __init__(self, intake: TraceIntake, sender: str) -> None:
        self._intake = intake
        self._sender = sender

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        self._intake.take(self._sender, items)
