"""The OTLP/HTTP receiver: reads spans and log records, in JSON or protobuf, and holds them until their question is graded.

Ids in JSON are hexadecimal, unlike in protobuf's own mapping to JSON; exporters that use that are read too.
"""

import asyncio
import base64
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from answerkey.errors import MissingExtraError
from answerkey.observe.merging import (
    Event,
    Export,
    Gap,
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
# Objects take several times the memory of their text.
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


def _export(records: list[tuple[str, dict[str, Any]]], length: int, *, is_log: bool) -> Export:
    size = _BLOW_UP * length // max(1, len(records))
    items = []
    for scope, record in records:
        trace_id, span_id, parent_id = _ids(record)
        if trace_id and span_id:
            items.append(Unread(trace_id, span_id, parent_id, scope, record, is_log, size))
    return Export(items, len(records) - len(items))


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
    """An id in hexadecimal; empty if it is not valid."""
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


# OTLP in protobuf, decoded by opentelemetry-proto. A span is kept encoded until its question is graded: a decoded one would
# keep the memory of its whole request.


# What a span costs in memory beside its bytes.
_OVERHEAD = 300


@cache
def load_messages() -> "_Messages":
    """The generated messages; loaded before the first question, since importing them takes 0.2 CPU s."""
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # its stubs are a package
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
        from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
    except ImportError:
        raise MissingExtraError("reading OTLP in protobuf", "observe") from None
    return _Messages(ExportTraceServiceRequest, ExportLogsServiceRequest, OtlpSpan, LogRecord, DecodeError)


class _Messages(NamedTuple):
    """Classes of opentelemetry-proto, and the error that decoding raises."""

    traces: Any
    logs: Any
    span: Any
    log_record: Any
    error: type[Exception]


def _decode(message: Any, data: bytes) -> Any:
    try:
        return message.FromString(data)
    except load_messages().error as error:
        raise MalformedError(str(error)) from None


def read_traces(data: bytes) -> Export:
    """The spans of an ExportTraceServiceRequest."""
    items = []
    for resource in _decode(load_messages().traces, data).resource_spans:
        for part in resource.scope_spans:
            for span in part.spans:
                if len(span.trace_id) != 16 or len(span.span_id) != 8:
                    raise MalformedError("a span without a trace id of 16 bytes and a span id of 8")
                items.append(_unread(span, part.scope.name, span.parent_span_id.hex(), is_log=False))
    return Export(items)


def read_logs(data: bytes) -> Export:
    """The records of an ExportLogsServiceRequest that belong to a span."""
    items, without_span = [], 0
    for resource in _decode(load_messages().logs, data).resource_logs:
        for part in resource.scope_logs:
            for record in part.log_records:
                if record.trace_id and record.span_id:
                    items.append(_unread(record, part.scope.name, "", is_log=True))
                else:
                    without_span += 1
    return Export(items, without_span)


def _unread(message: Any, scope: str, parent_id: str, *, is_log: bool) -> Unread:
    encoded = message.SerializeToString()
    size = len(encoded) + _OVERHEAD
    return Unread(message.trace_id.hex(), message.span_id.hex(), parent_id, scope, encoded, is_log, size)


def read_span(data: bytes, scope: str) -> Span:
    """One span in full."""
    span = _decode(load_messages().span, data)
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        scope=scope,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_decoded_pairs(span.attributes),
        events=[Event(event.name, _decoded_pairs(event.attributes)) for event in span.events],
        status=span.status.code,
        status_message=span.status.message,
        links=tuple(link.trace_id.hex() for link in span.links),
    )


def read_log_record(data: bytes) -> Event:
    """A log record in full, as an event of the span that it names."""
    record = _decode(load_messages().log_record, data)
    attributes = _decoded_pairs(record.attributes)
    name = record.event_name or str(attributes.get("event.name", ""))
    return Event(name, attributes, _decoded_value(record.body))


def _decoded_pairs(pairs: Any, depth: int = 0) -> dict[str, Any]:
    return {pair.key: _decoded_value(pair.value, depth) for pair in pairs}


def _decoded_value(value: Any, depth: int = 0) -> Any:
    """An AnyValue: text, a truth value, a number, a list, an object, or bytes in hexadecimal."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_decoded_value(one, _deeper(depth)) for one in value.array_value.values]
    if kind == "kvlist_value":
        return _decoded_pairs(value.kvlist_value.values, _deeper(depth))
    if kind == "bytes_value":
        return value.bytes_value.hex()
    return getattr(value, kind)


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise MalformedError("a value is nested too deeply")
    return depth + 1


_MEGABYTE = 1024 * 1024
# Number of ids of finished traces that are stored, to distinguish late spans from unknown ones.
_REMEMBERED = 100_000


class OverfullError(Exception):
    """There is no room for a request; none of it was stored."""


class HeldTrace:
    """The spans of one trace that have arrived."""

    def __init__(self, span_id: str | None) -> None:
        # The caller's own span, which is never sent; None: the trace began elsewhere.
        self.span_id = span_id
        self.asked_ns = time.time_ns()
        self.spans: dict[str, Unread] = {}
        self.logs: list[Unread] = []
        # Spans of other traces that are linked to this one.
        self.linked: set[str] = set()
        # A request that may have had spans of this trace could not be read.
        self.malformed = False
        self.size = 0
        self.last = time.monotonic()
        self.changed = asyncio.Event()

    def add(self, item: Unread, *, linked: bool = False) -> None:
        """Store a span or log record; a duplicate span is ignored."""
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
        """What is known to be missing from the trace, in words."""
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
        """Read the trace. A span that cannot be read counts as missing."""
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
        if self.malformed:
            lacks.append("an export request could not be read")
        begun = min((span.start_ns for span in spans.values()), default=self.asked_ns)
        # If the chatbot's clock differs, its first span is the beginning.
        skewed = not 0 <= begun - self.asked_ns <= time.time_ns() - self.asked_ns
        gaps = [Gap(text, is_lost_span=True) for text in lacks]
        return read_trace(spans.values(), zero_ns=begun if skewed else self.asked_ns, gaps=gaps)


def _span(item: Unread) -> Span:
    held, scope = item.encoded, item.scope
    return read_span(held, scope) if isinstance(held, bytes) else read_json_span(held, scope)


def _event(item: Unread) -> Event:
    held = item.encoded
    return read_log_record(held) if isinstance(held, bytes) else record_as_json_event(held)


class TraceBook:
    """The traces of the running questions, and when each is complete. Spans of no question are counted and not used."""

    def __init__(self, *, quiet_s: float, longest_s: float, most_bytes: int = 256 * _MEGABYTE) -> None:
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._most_bytes = most_bytes
        self._open: dict[str, HeldTrace] = {}
        # The same ids in binary.
        self._raw_ids: set[bytes] = set()
        self._done: dict[str, None] = {}
        self._held_bytes = 0
        # Spans: taken, unknown (of no question), late (after the question was graded), refused; malformed requests.
        self.counts: Counter[str] = Counter()
        # Questions that waited in vain while no span had arrived at all.
        self._in_vain = 0

    def open(self, traceparent: str | None) -> None:
        """Start to store the spans of a question."""
        ids = read_traceparent(traceparent)
        if ids is not None:
            self._open[ids[0]] = HeldTrace(ids[1])
            self._raw_ids.add(bytes.fromhex(ids[0]))

    def take(self, items: Iterable[Unread], without_span: int = 0) -> None:
        """Store a request, all of it or nothing: raises OverfullError if there is no room."""
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

    def note_malformed(self) -> None:
        """A request could not be read: any open trace may lack its spans."""
        self.counts["malformed"] += 1
        for held in self._open.values():
            held.malformed = True

    def _linked(self, item: Unread) -> HeldTrace | None:
        """The open trace that a span of another trace is linked to: some gateways start a new trace and link the caller's."""
        if item.is_log:
            return None
        if isinstance(item.encoded, bytes):
            has_links = any(raw in item.encoded for raw in self._raw_ids)
        else:
            has_links = bool(item.encoded.get("links"))
        found = [self._open[link] for link in _span(item).links if link in self._open] if has_links else []
        return found[0] if len(found) == 1 else None

    async def settle(self, traceparent: str | None) -> None:
        """Wait until a question's trace is complete and no more spans arrive, or the time limit is reached."""
        ids = read_traceparent(traceparent)
        held = None if ids is None else self._open.get(ids[0])
        if held is None:
            return
        deadline = time.monotonic() + self._longest_s
        if not self.counts["taken"] and self._in_vain:
            # A question has waited in vain: no spans are being sent.
            deadline = time.monotonic() + min(self._quiet_s, self._longest_s)
        while (now := time.monotonic()) < deadline:
            # A pause in the middle of a trace is not its end.
            until = deadline if held.lacks() else min(deadline, held.last + self._quiet_s)
            if now >= until:
                break
            held.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(until - now):
                    await held.changed.wait()
        if not self.counts["taken"]:
            self._in_vain += 1

    def close(self, traceparent: str | None, *, is_retried: bool = False) -> Observation | None:
        """The observation of a question; later spans are late. None if nothing arrived. A retried attempt is not counted."""
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
            self.counts["questions without a span"] += not is_retried
            return None
        return held.read(held.lacks()).observation

    def warnings(self) -> list[str]:
        """Warnings for the reader of the run."""
        texts = {
            "questions without a span": "question(s) brought no span: is the chatbot instrumented, does it continue the "
            "traceparent it gets, and does it export here?",
            "late": "span(s) arrived after their question was graded; raise trace_patience",
            "unknown": "span(s) of traces that no question began were not used",
            "malformed": "export request(s) could not be read",
            "refused": "span(s) were refused for lack of room; their senders were asked to send them again",
        }
        return [f"traces: {self.counts[name]} {text}" for name, text in texts.items() if self.counts[name]]


# The largest body, compressed and decompressed.
MOST_BYTES = 32 * 1024 * 1024
# Total of all requests that are being read.
_MOST_READING = 4 * MOST_BYTES
# Path → signal; metrics are accepted and not used, since exporters send everything to one address.
PATHS = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_READERS = {
    ("traces", False): read_traces,
    ("logs", False): read_logs,
    ("traces", True): read_json_traces,
    ("logs", True): read_json_logs,
}


class Taker(Protocol):
    """Stores spans: a TraceBook, or that of the server."""

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        """Store them all, or raise OverfullError and store none."""


class Answer(NamedTuple):
    """The answer to an export request."""

    status: int
    body: bytes
    content_type: str
    headers: dict[str, str]


class Receiver:
    """Reads export requests and passes the spans on."""

    def __init__(self, taker: Taker, on_malformed: Callable[[], None] | None = None) -> None:
        self._taker = taker
        # Called for each request that cannot be read.
        self._on_malformed = on_malformed
        self._reading = 0

    def begin(self, length: int) -> bool:
        """Reserve room for `length` bytes, until `end`; False if there is none."""
        if self._reading + length > _MOST_READING:
            return False
        self._reading += length
        return True

    def end(self, length: int) -> None:
        """Release the room."""
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
            if self._on_malformed is not None:
                self._on_malformed()
            return refusal(400, f"this is not an OTLP request: {error}", is_json=is_json)
        except OverfullError:
            return busy(is_json=is_json)
        return Answer(200, b"{}" if is_json else b"", kind, {})


def busy(*, is_json: bool) -> Answer:
    """There is no room now: nothing was stored, and the sender must send it again."""
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
    """The decompressed body; None if it is too large, which is noticed before it is decompressed."""
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
    """The receiver as a web application."""
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
