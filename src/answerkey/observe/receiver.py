"""OTLP in JSON. Ids are hexadecimal there, unlike in protobuf's own mapping to JSON; exporters that follow that are read too."""

import asyncio
import base64
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from struct import unpack_from
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from answerkey.observe.merging import (
    Event,
    Export,
    MalformedError,
    Observation,
    Span,
    Unread,
    read_traceparent,
)
from answerkey.observe.trace_reading import ReadTrace, read_trace
from answerkey.transcripts.json_values import as_dict, as_dicts, decode_strict_json

if TYPE_CHECKING:
    from aiohttp import web


_DEEPEST = 40
_STATUS = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
# Objects take several times the room of the text that they came from.
_BLOW_UP = 6


def read_json_traces(data: bytes) -> Export:
    """The spans of an export request."""
    export = _export(_records(data, "resourceSpans", "scopeSpans", "spans"), len(data), is_log=False)
    if export.without_span:
        raise MalformedError("a span without a traceId of 32 and a spanId of 16 hexadecimal digits")
    return export


def read_json_logs(data: bytes) -> Export:
    """The log records of an export request that belong to a span."""
    return _export(_records(data, "resourceLogs", "scopeLogs", "logRecords"), len(data), is_log=True)


def _export(found: list[tuple[str, dict[str, Any]]], length: int, *, is_log: bool) -> Export:
    size = _BLOW_UP * length // max(1, len(found))
    items = []
    for scope, record in found:
        trace_id, span_id, parent_id = _ids(record)
        if trace_id and span_id:
            items.append(Unread(trace_id, span_id, parent_id, scope, record, is_log, size))
    return Export(items, len(found) - len(items))


def _ids(record: dict[str, Any]) -> tuple[str, str, str]:
    parent_id = _id(record.get("parentSpanId"), 8)
    return _id(record.get("traceId"), 16), _id(record.get("spanId"), 8), parent_id


def _records(data: bytes, outer: str, middle: str, inner: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        request = decode_strict_json(data)
    except ValueError as error:
        raise MalformedError(f"it is not JSON: {error}") from None
    if not isinstance(request, dict) or not isinstance(request.get(outer, []), list):
        raise MalformedError(f"there is no list {outer}")
    return [
        (str(as_dict(part.get("scope")).get("name") or ""), record)
        for resource in as_dicts(request.get(outer))
        for part in as_dicts(resource.get(middle))
        for record in as_dicts(part.get(inner))
    ]


def _id(value: object, length: int) -> str:
    """An id in hexadecimal; empty if it is none."""
    if not isinstance(value, str):
        return ""
    try:
        is_hex = len(value) == 2 * length
        decoded = bytes.fromhex(value) if is_hex else base64.b64decode(value, validate=True)
    except ValueError:
        return ""
    return decoded.hex() if len(decoded) == length else ""


def read_json_span(span: dict[str, Any], scope: str) -> Span:
    """One span in full."""
    status = as_dict(span.get("status"))
    code = status.get("code", 0)
    trace_id, span_id, parent_id = _ids(span)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=str(span.get("name") or ""),
        scope=scope,
        start_ns=_whole(span.get("startTimeUnixNano")),
        end_ns=_whole(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("attributes")),
        events=[
            Event(str(event.get("name") or ""), _attributes(event.get("attributes")))
            for event in as_dicts(span.get("events"))
        ],
        status=code if isinstance(code, int) else _STATUS.get(str(code), 0),
        status_message=str(status.get("message") or ""),
        links=tuple(_id(link.get("traceId"), 16) for link in as_dicts(span.get("links"))),
    )


def record_as_json_event(record: dict[str, Any]) -> Event:
    """A log record in full, as an event of the span that it names."""
    attributes = _attributes(record.get("attributes"))
    name = record.get("eventName") or attributes.get("event.name") or ""
    return Event(str(name), attributes, _value(record.get("body"), 0))


def _whole(value: object) -> int:
    try:
        return int(value) if isinstance(value, (int, str)) else 0
    except ValueError:
        return 0


def _attributes(value: object, depth: int = 0) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value"), depth) for pair in as_dicts(value)}


def _value(value: object, depth: int) -> Any:
    if depth > _DEEPEST:
        raise MalformedError("a value is nested too deeply")
    for kind, inner in as_dict(value).items():
        if kind == "intValue":
            return _whole(inner)
        if kind == "arrayValue":
            return [_value(one, depth + 1) for one in as_dicts(as_dict(inner).get("values"))]
        if kind == "kvlistValue":
            return _attributes(as_dict(inner).get("values"), depth + 1)
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None


# OTLP in protobuf: the few fields that matter, read by hand.
#
# A request is only taken apart into spans at first, in four microseconds each; a span is read in full (forty) once the
# question that it belongs to is graded. The generated parser reads in full in seventeen, but what it costs it costs while
# a sender waits, spans of no question included; and it needs a package (benchmarks/spans.py).


# Deeper values are not looked into.
_DEEPEST_OTLP_PROTOBUF = 40
# What a span costs in memory beside its bytes.
_OVERHEAD = 300
# A field as it stands: its number, and a number or the place (start, end) of its bytes.
_Field = tuple[int, int, int]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise MalformedError("a number without an end")


def _fields(data: bytes, at: int, end: int) -> list[_Field]:
    """The fields of a message: (number, start, end) of bytes and fixed numbers; (number, value, -1) of varints."""
    found: list[_Field] = []
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(data, at - 1)
            kind, number = tag & 7, tag >> 3
            if kind == 2:
                length = data[at]
                at += 1
                if length >= 0x80:
                    length, at = _varint(data, at - 1)
                start, at = at, at + length
                found.append((number, start, at))
            elif kind == 0:
                value, at = _varint(data, at)
                found.append((number, value, -1))
            elif kind == 1:
                found.append((number, at, at + 8))
                at += 8
            elif kind == 5:
                found.append((number, at, at + 4))
                at += 4
            else:
                raise MalformedError(f"a field of the unknown kind {kind}")
    except IndexError:
        raise MalformedError("it ends in the middle of a field") from None
    if at != end:
        raise MalformedError("a field is longer than the message that holds it")
    return found


def read_traces(data: bytes) -> Export:
    """The spans of an ExportTraceServiceRequest."""
    items = []
    for scope, start, end in _records_otlp_protobuf(data):
        trace_id, span_id, parent_id = _ids_otlp_protobuf(data, start, end)
        items.append(
            Unread(trace_id, span_id, parent_id, scope, data[start:end], False, end - start + _OVERHEAD)
        )
    return Export(items)


def read_logs(data: bytes) -> Export:
    """The records of an ExportLogsServiceRequest that belong to a span."""
    items, without = [], 0
    for scope, start, end in _records_otlp_protobuf(data):
        ids = {number: data[at:to].hex() for number, at, to in _fields(data, start, end) if number in (9, 10)}
        if not ids.get(9) or not ids.get(10):
            without += 1
            continue
        items.append(Unread(ids[9], ids[10], "", scope, data[start:end], True, end - start + _OVERHEAD))
    return Export(items, without)


def _records_otlp_protobuf(data: bytes) -> list[tuple[str, int, int]]:
    """Where the spans or log records of a request are, each with its scope's name: both are nested in the same way."""
    found = []
    for number, start, end in _fields(data, 0, len(data)):
        if number != 1 or end < 0:
            continue
        for inner, at, to in _fields(data, start, end):
            if inner != 2 or to < 0:
                continue
            parts = _fields(data, at, to)
            scope = next((_first(data, one, two) for kind, one, two in parts if kind == 1), b"")
            name = scope.decode("utf-8", "replace")
            found += [(name, one, two) for kind, one, two in parts if kind == 2 and two >= 0]
    return found


def _ids_otlp_protobuf(data: bytes, start: int, end: int) -> tuple[str, str, str]:
    """A span's ids. Every known exporter writes them first, so that the rest need not be looked at."""
    if data[start : start + 2] == b"\x0a\x10" and data[start + 18 : start + 20] == b"\x12\x08":
        after = start + 28
        if data[after : after + 2] == b"\x22\x08" and after + 10 <= end:
            return (
                data[start + 2 : start + 18].hex(),
                data[start + 20 : after].hex(),
                data[after + 2 : after + 10].hex(),
            )
    ids = {number: data[at:to].hex() for number, at, to in _fields(data, start, end) if number in (1, 2, 4)}
    if len(ids.get(1, "")) != 32 or len(ids.get(2, "")) != 16:
        raise MalformedError("a span without a trace id of 16 bytes and a span id of 8")
    return ids[1], ids[2], ids.get(4, "")


def read_span(data: bytes, scope: str) -> Span:
    """One span in full."""
    span = Span(trace_id="", span_id="", scope=scope, attributes={}, events=[])
    attributes = span.attributes
    for number, at, to in _fields(data, 0, len(data)):
        if number == 9:
            key, value = _pair(data, at, to, 0)
            attributes[key] = value
        elif number == 1:
            span.trace_id = data[at:to].hex()
        elif number == 2:
            span.span_id = data[at:to].hex()
        elif number == 4:
            span.parent_id = data[at:to].hex()
        elif number == 5:
            span.name = _text(data, at, to)
        elif number == 7:
            span.start_ns = _fixed(data, at, to)
        elif number == 8:
            span.end_ns = _fixed(data, at, to)
        elif number == 11:
            span.events.append(_event(data, at, to, named=2, attributed=3))
        elif number == 13:
            span.links = (*span.links, _first(data, at, to).hex())
        elif number == 15:
            for inner, start, end in _fields(data, at, to):
                if inner == 2:
                    span.status_message = _text(data, start, end)
                elif inner == 3:
                    span.status = start
    return span


def record_as_event(data: bytes) -> Event:
    """A log record in full, as an event of the span that it names."""
    return _event(data, 0, len(data), named=12, attributed=6, body=5)


def _event(data: bytes, start: int, end: int, *, named: int, attributed: int, body: int = 0) -> Event:
    """An event or a log record, by the numbers of their fields."""
    name, said, attributes = "", None, {}
    for number, at, to in _fields(data, start, end):
        if number == named:
            name = _text(data, at, to)
        elif number == attributed:
            key, value = _pair(data, at, to, 0)
            attributes[key] = value
        elif number == body:
            said = _value_otlp_protobuf(data, at, to, 0)
    return Event(name or str(attributes.get("event.name", "")), attributes, said)


def _first(data: bytes, start: int, end: int) -> bytes:
    """The field with the number 1: a scope's name, a link's trace id."""
    return next((data[at:to] for number, at, to in _fields(data, start, end) if number == 1), b"")


def _text(data: bytes, start: int, end: int) -> str:
    if end < 0:
        raise MalformedError("a number where a text should be")
    return data[start:end].decode("utf-8", "replace")


def _fixed(data: bytes, start: int, end: int) -> int:
    return int.from_bytes(data[start:end], "little") if end - start == 8 else 0


def _pair(data: bytes, start: int, end: int, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, at, to in _fields(data, start, end):
        if number == 1:
            key = _text(data, at, to)
        elif number == 2:
            value = _value_otlp_protobuf(data, at, to, depth)
    return key, value


def _value_otlp_protobuf(data: bytes, start: int, end: int, depth: int) -> Any:
    """An AnyValue: text, a truth, a number, a list, an object, or bytes."""
    if end < 0:
        raise MalformedError("a number where a value should be")
    if depth > _DEEPEST_OTLP_PROTOBUF:
        raise MalformedError("a value is nested too deeply")
    value: Any = None
    for number, at, to in _fields(data, start, end):
        if number == 1:
            value = _text(data, at, to)
        elif number == 2:
            value = bool(at)
        elif number == 3:
            value = at - (1 << 64) if at >= 1 << 63 else at
        elif number == 4 and to - at == 8:
            value = unpack_from("<d", data, at)[0]
        elif number == 5:
            parts = _fields(data, at, to)
            value = [_value_otlp_protobuf(data, one, two, depth + 1) for kind, one, two in parts if kind == 1]
        elif number == 6:
            parts = _fields(data, at, to)
            value = dict([_pair(data, one, two, depth + 1) for kind, one, two in parts if kind == 1])
        elif number == 7:
            value = data[at:to].hex()
    return value


# TraceBook: the spans that have arrived for the questions under way, and when a trace can be taken to be whole.


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
                    spans[item.span_id].events.append(_event_trace_book(item))
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


def _event_trace_book(item: Unread) -> Event:
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


# The OTLP/HTTP receiver: what it answers to each request, whichever server it stands in, and a server of its own.


# The largest body, as it is sent and as it is unpacked.
MOST_BYTES = 32 * 1024 * 1024
# All requests together that are still being read.
_MOST_READING = 4 * MOST_BYTES
# What is sent to each path; metrics are taken and not used, since exporters send all to one address.
PATHS = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_READERS = {
    ("traces", False): read_traces,
    ("logs", False): read_logs,
    ("traces", True): read_json_traces,
    ("logs", True): read_json_logs,
}


class Taker(Protocol):
    """Where spans go: a TraceBook, or the server's."""

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        """Keep them all, or raise OverfullError and keep none."""


class Answer(NamedTuple):
    """The answer to an export request."""

    status: int
    body: bytes
    content_type: str
    headers: dict[str, str]


class Receiver:
    """Takes export requests apart and hands the spans on."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._reading = 0

    def begin(self, length: int) -> bool:
        """Whether there is room to read so many bytes more; `end` gives it back."""
        if self._reading + length > _MOST_READING:
            return False
        self._reading += length
        return True

    def end(self, length: int) -> None:
        """A request has been dealt with."""
        self._reading -= length

    def receive(self, signal: str, content_type: str, encoding: str, body: bytes) -> Answer:
        """The answer to one request."""
        kind = content_type.partition(";")[0].strip().lower()
        is_json = kind == "application/json"
        if not is_json and kind not in ("application/x-protobuf", "application/protobuf"):
            return refusal(415, "send application/x-protobuf or application/json", is_json=True)
        try:
            plain = unpacked(body, encoding)
            if plain is None:
                return refusal(
                    413, f"at most {MOST_BYTES} bytes, unpacked too; send smaller batches", is_json=is_json
                )
            if signal != "metrics":
                items, without_span = _READERS[signal, is_json](plain)
                self._taker.take(items, without_span)
        except MalformedError as error:
            return refusal(400, f"this is not an OTLP request: {error}", is_json=is_json)
        except OverfullError:
            return busy(is_json=is_json)
        return Answer(200, b"{}" if is_json else b"", kind, {})


def busy(*, is_json: bool) -> Answer:
    """There is no room now: nothing was taken, and the sender keeps it."""
    return refusal(
        503, "no room for more spans now; send them again", is_json=is_json, headers={"Retry-After": "1"}
    )


def refusal(status: int, message: str, *, is_json: bool, headers: dict[str, str] | None = None) -> Answer:
    """A google.rpc.Status in the encoding of the request, as OTLP has it."""
    if is_json:
        return Answer(status, msgspec.json.encode({"message": message}), "application/json", headers or {})
    text = message.encode()[:120]
    return Answer(status, b"\x12" + bytes([len(text)]) + text, "application/x-protobuf", headers or {})


def unpacked(body: bytes, encoding: str) -> bytes | None:
    """The body without its compression; None if it is too large. A bomb is noticed before it is unpacked."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body if len(body) <= MOST_BYTES else None
    if encoding not in ("gzip", "deflate"):
        raise MalformedError(f"the encoding {encoding[:20]!r} is not known; use gzip")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = unpacker.decompress(body, MOST_BYTES + 1)
    except zlib.error as error:
        raise MalformedError(f"it is not {encoding}: {error}") from None
    if len(plain) > MOST_BYTES:
        return None
    if not unpacker.eof:
        raise MalformedError(f"the {encoding} data ends too early")
    return plain


def receiver_app(receiver: Receiver) -> "web.Application":
    """The receiver as a server of its own."""
    from aiohttp import web  # 200 ms that only runs with an observer need

    async def handle(request: web.Request) -> web.Response:
        is_json = request.content_type == "application/json"
        body = bytearray()
        reserved = 0
        answer: Answer | None = None
        try:
            async for chunk in request.content.iter_any():
                if not receiver.begin(len(chunk)):
                    answer = busy(is_json=is_json)
                    break
                reserved += len(chunk)
                body += chunk
                if len(body) > MOST_BYTES:
                    answer = refusal(
                        413, f"at most {MOST_BYTES} bytes; send smaller batches", is_json=is_json
                    )
                    break
            if answer is None:
                encoding = request.headers.get("Content-Encoding", "")
                answer = receiver.receive(PATHS[request.path], request.content_type, encoding, bytes(body))
        finally:
            receiver.end(reserved)
        headers: dict[str, Any] = {"Content-Type": answer.content_type, **answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    app = web.Application(handler_args={"auto_decompress": False, "access_log": None})
    for path in PATHS:
        app.router.add_post(path, handle)
    return app
