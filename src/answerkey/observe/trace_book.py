"""TraceBook: the spans that have arrived for the questions under way, and when a trace can be taken to be whole."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from answerkey.observe.merging import Observation
from answerkey.observe.otlp_json import read_json_span, record_as_json_event
from answerkey.observe.otlp_protobuf import read_span, record_as_event
from answerkey.observe.span import Event, MalformedError, Span, Unread, read_traceparent
from answerkey.observe.trace_reading import ReadTrace, read_trace

_MEGABYTE = 1024 * 1024
# So many ids of traces that are done are kept, to tell a late span from one of another's trace.
_REMEMBERED = 100_000


class OverfullError(Exception):
    """There is no room for what was sent; none of it was taken."""


class HeldTrace:
    """What has arrived of one trace."""

    def __init__(self, span_id: str | None) -> None:
        # The caller's own span, which is nobody's to send; None: the trace began elsewhere.
        self.span_id = span_id
        self.asked_ns = time.time_ns()
        self.spans: dict[str, Unread] = {}
        self.logs: list[Unread] = []
        # Spans of other traces that are linked to this one.
        self.linked: set[str] = set()
        self.size = 0
        self.last = time.monotonic()
        self.changed = asyncio.Event()

    def add(self, item: Unread, *, linked: bool = False) -> None:
        """Keep a span or log record; the same span twice is once."""
        self.last = time.monotonic()
        self.changed.set()
        if item.is_log:
            self.logs.append(item)
        elif item.span_id in self.spans:
            return
        else:
            self.spans[item.span_id] = item
            if linked:
                self.linked.add(item.span_id)
        self.size += item.size

    def lacks(self) -> list[str]:
        """What of the trace is known not to have arrived, in words."""
        if not self.spans:
            return ["no span arrived"]
        parents = {span.parent_id for span in self.spans.values() if span.span_id not in self.linked}
        if self.span_id is None:
            found = [] if "" in parents else ["the first span did not arrive"]
        else:
            found = (
                []
                if self.span_id in parents or self.linked
                else ["the span that continues the trace did not arrive"]
            )
        absent = len(parents - self.spans.keys() - {self.span_id, ""})
        return [*found, f"{absent} parent span{'s' * (absent > 1)} did not arrive"] if absent else found

    def read(self, missing: Iterable[str] = ()) -> ReadTrace:
        """What the trace tells. A span whose insides are broken is missing."""
        spans: dict[str, Span] = {}
        broken = 0
        for item in (*self.spans.values(), *self.logs):
            try:
                if not item.is_log:
                    spans[item.span_id] = _span(item)
                elif item.span_id in spans:
                    spans[item.span_id].events.append(_event(item))
            except MalformedError:
                broken += 1
        lacks = [*missing, *([f"{broken} spans could not be read"] if broken else [])]
        begun = min((span.start_ns for span in spans.values()), default=self.asked_ns)
        # The chatbot's clock may be another: then its first span is the beginning.
        skewed = not 0 <= begun - self.asked_ns <= time.time_ns() - self.asked_ns
        return read_trace(spans.values(), zero_ns=begun if skewed else self.asked_ns, missing=lacks)


def _span(item: Unread) -> Span:
    held, scope = item.encoded, item.scope
    return read_span(held, scope) if isinstance(held, bytes) else read_json_span(held, scope)


def _event(item: Unread) -> Event:
    held = item.encoded
    return record_as_event(held) if isinstance(held, bytes) else record_as_json_event(held)


class TraceBook:
    """The traces of the questions under way. What arrives for no question is counted, never guessed at."""

    def __init__(self, *, quiet_s: float, patience_s: float, most_bytes: int = 256 * _MEGABYTE) -> None:
        self._quiet_s = quiet_s
        self._patience_s = patience_s
        self._most_bytes = most_bytes
        self._open: dict[str, HeldTrace] = {}
        # The same ids as they stand in protobuf.
        self._raw_ids: set[bytes] = set()
        self._done: dict[str, None] = {}
        self._held_bytes = 0
        # What became of spans: taken, unknown (of no question), late (after its question was graded), refused.
        self.counts: Counter[str] = Counter()
        # Questions that waited in vain while no span of any question had arrived.
        self._in_vain = 0

    def open(self, traceparent: str | None) -> None:
        """Begin to keep the spans of a question."""
        ids = read_traceparent(traceparent)
        if ids is not None:
            self._open[ids[0]] = HeldTrace(ids[1])
            self._raw_ids.add(bytes.fromhex(ids[0]))

    def take(self, items: Iterable[Unread], without_span: int = 0) -> None:
        """Keep what was sent, all of it or nothing: OverfullError if there is no room."""
        ours: list[tuple[HeldTrace, Unread, bool]] = []
        others: Counter[str] = Counter()
        size = 0
        for item in items:
            held = self._open.get(item.trace_id)
            linked = held is None
            if held is None and (held := self._linked(item)) is None:
                others["late" if item.trace_id in self._done else "unknown"] += 1
                continue
            ours.append((held, item, linked))
            size += item.size
        if self._held_bytes + size > self._most_bytes:
            self.counts["refused"] += len(ours)
            raise OverfullError
        for held, item, linked in ours:
            before = held.size
            held.add(item, linked=linked)
            self._held_bytes += held.size - before
        self.counts["taken"] += len(ours)
        self.counts += others

    def _linked(self, item: Unread) -> HeldTrace | None:
        """The trace that a span of another one is linked to: some gateways begin a new trace and link the caller's."""
        if item.is_log:
            return None
        if isinstance(item.encoded, bytes):
            has_links = any(raw in item.encoded for raw in self._raw_ids)
        else:
            has_links = bool(item.encoded.get("links"))
        found = [self._open[link] for link in _span(item).links if link in self._open] if has_links else []
        return found[0] if len(found) == 1 else None

    async def settle(self, traceparent: str | None) -> None:
        """Wait until a question's trace is whole and nothing more comes, or patience ends."""
        ids = read_traceparent(traceparent)
        held = None if ids is None else self._open.get(ids[0])
        if held is None:
            return
        deadline = time.monotonic() + self._patience_s
        if not self.counts["taken"] and self._in_vain:
            # A question has waited its whole time, and nobody has sent anything: nobody is going to.
            deadline = time.monotonic() + min(self._quiet_s, self._patience_s)
        while (now := time.monotonic()) < deadline:
            # In the middle of a trace, a pause says nothing.
            until = deadline if held.lacks() else min(deadline, held.last + self._quiet_s)
            if now >= until:
                break
            held.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(until - now):
                    await held.changed.wait()
        if not self.counts["taken"]:
            self._in_vain += 1

    def close(self, traceparent: str | None) -> Observation | None:
        """What was seen of a question; from now on, its spans are late. None if nothing arrived."""
        ids = read_traceparent(traceparent)
        held = None if ids is None else self._open.pop(ids[0], None)
        if ids is None or held is None:
            return None
        self._raw_ids.discard(bytes.fromhex(ids[0]))
        self._held_bytes -= held.size
        self._done[ids[0]] = None
        if len(self._done) > _REMEMBERED:
            del self._done[next(iter(self._done))]
        if not held.spans:
            self.counts["questions without a span"] += 1
            return None
        return held.read(held.lacks()).observation

    def warnings(self) -> list[str]:
        """What a reader of the run must know."""
        told = {
            "questions without a span": "question(s) brought no span: is the chatbot instrumented, does it continue the "
            "traceparent it gets, and does it export here?",
            "late": "span(s) arrived after their question was graded; raise trace_patience",
            "unknown": "span(s) of traces that no question began were not used",
            "refused": "span(s) were refused for lack of room; their senders were told to send them again",
        }
        return [f"traces: {self.counts[name]} {text}" for name, text in told.items() if self.counts[name]]
