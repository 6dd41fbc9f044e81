"""Observers of a run: the OTLP/HTTP receiver, and ObservedTarget, a chatbot with the receiver, the proxy or both.

The receiver reads spans and log records, in JSON or protobuf, and holds them until their question is graded.

JSON is read as protobuf's own mapping has it, once its ids are in base64: OTLP has them in hexadecimal, some exporters do not.
"""

import asyncio
import base64
import hashlib
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Set
from contextlib import AsyncExitStack, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import msgspec

from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import FaultRecord, Reply
from answerkey.observe.observations import (
    OBSERVERS,
    Event,
    Export,
    Gap,
    MalformedError,
    Observation,
    Span,
    Unread,
    join_observations,
    read_traceparent,
)
from answerkey.observe.trace_reading import ReadTrace, read_trace
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError, TargetWrapper
from answerkey.transcripts.json_values import admit_reply, decode_strict_json

if TYPE_CHECKING:
    from aiohttp import web

    from answerkey.observe.proxy import ExchangeBook


_DEEPEST = 40
# What a span costs in memory beside its bytes.
_OVERHEAD = 300
_ID_FIELDS = ("traceId", "spanId", "parentSpanId")
# Digits of a span id and of a trace id in hexadecimal; in base64 they have other lengths.
_HEX_DIGITS = (16, 32)


@cache
def load_messages() -> "_Messages":
    """The generated messages; loaded before the first question, since importing them takes 0.2 CPU s."""
    try:
        from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]  # its stubs are a package
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
        from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
    except ImportError:
        raise MissingExtraError("reading OTLP", "observe") from None
    return _Messages(ExportTraceServiceRequest, ExportLogsServiceRequest, OtlpSpan, LogRecord, ParseDict)


class _Messages(NamedTuple):
    """Classes of opentelemetry-proto, and the reader of their JSON."""

    traces: Any
    logs: Any
    span: Any
    log_record: Any
    parse_json: Callable[..., None]


def read_export(signal: str, data: bytes, *, is_json: bool) -> Export:
    """The spans of an export request, or its log records that belong to a span; each is decoded when its question is graded.

    Decoded, they would keep the memory of the whole request.
    """
    messages = load_messages()
    request = (messages.traces if signal == "traces" else messages.logs)()
    try:
        if is_json:
            content = decode_strict_json(data)
            if not isinstance(content, dict):
                raise MalformedError("expected an object")
            messages.parse_json(_with_base64_ids(content), request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(data)
    except Exception as error:  # noqa: BLE001  # protobuf's own errors have no common base
        raise MalformedError(str(error)) from None
    if signal == "traces":
        found = [
            (part.scope.name, span)
            for one in request.resource_spans
            for part in one.scope_spans
            for span in part.spans
        ]
    else:
        found = [
            (part.scope.name, record)
            for one in request.resource_logs
            for part in one.scope_logs
            for record in part.log_records
        ]
    items = []
    for scope, message in found:
        if len(message.trace_id) == 16 and len(message.span_id) == 8:
            items.append(_unread(message, scope, is_log=signal == "logs"))
        elif signal == "traces":
            raise MalformedError("a span without a trace id of 16 bytes and a span id of 8")
    return Export(items, len(found) - len(items))


def _with_base64_ids(value: Any) -> Any:
    """OTLP's JSON, whose ids are hexadecimal, with ids as protobuf's JSON has them."""
    if isinstance(value, list):
        return [_with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _with_base64_ids(part) for name, part in value.items()}
    for name in _ID_FIELDS:
        identity = changed.get(name)
        if isinstance(identity, str) and len(identity) in _HEX_DIGITS:
            changed[name] = base64.b64encode(bytes.fromhex(identity)).decode()
    return changed


def _unread(message: Any, scope: str, *, is_log: bool) -> Unread:
    encoded = message.SerializeToString()
    parent_id = "" if is_log else message.parent_span_id.hex()
    size = len(encoded) + _OVERHEAD
    return Unread(message.trace_id.hex(), message.span_id.hex(), parent_id, scope, encoded, is_log, size)


def _read_span(item: Unread) -> Span:
    """One span in full."""
    span = load_messages().span.FromString(item.encoded)
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        scope=item.scope,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=[Event(event.name, _attributes(event.attributes)) for event in span.events],
        status=span.status.code,
        status_message=span.status.message,
        links=tuple(link.trace_id.hex() for link in span.links),
    )


def _read_log_record(item: Unread) -> Event:
    """A log record in full, as an event of the span that it names."""
    record = load_messages().log_record.FromString(item.encoded)
    attributes = _attributes(record.attributes)
    name = record.event_name or str(attributes.get("event.name", ""))
    return Event(name, attributes, _value(record.body))


def _attributes(pairs: Any, depth: int = 0) -> dict[str, Any]:
    return {pair.key: _value(pair.value, depth) for pair in pairs}


def _value(value: Any, depth: int = 0) -> Any:
    """An AnyValue: text, a truth value, a number, a list, an object, or bytes in hexadecimal."""
    if depth > _DEEPEST:
        raise MalformedError("a value is nested too deeply")
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(one, depth + 1) for one in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values, depth + 1)
    return value.bytes_value.hex() if kind == "bytes_value" else getattr(value, kind)


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
                    spans[item.span_id] = _read_span(item)
                elif item.span_id in spans:
                    spans[item.span_id].events.append(_read_log_record(item))
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
        if not any(raw in item.encoded for raw in self._raw_ids):
            return None
        found = [self._open[link] for link in _read_span(item).links if link in self._open]
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
                items, without_span = read_export(signal, plain, is_json=is_json)
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


# Different system prompts, or lists of tools, of a chatbot; with more, they are written for each question.
_MOST_HASHES = 5


class Observers:
    """The trace receiver and the proxy of a run; they listen while a target that uses them is open."""

    def __init__(self, options: Options) -> None:
        if find_spec("aiohttp") is None:
            raise MissingExtraError("--proxy" if options.traces is None else "--traces", "observe")
        self._options = options
        self._open = AsyncExitStack()
        # Open targets that use them.
        self._users = 0
        self.spans: TraceBook | None = None
        self.exchanges: ExchangeBook | None = None
        # "traces", "proxy" → the address that it listens on.
        self.addresses: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self._users += 1
        if self._users > 1:
            return self
        options = self._options
        environment: dict[str, str] = {}
        try:
            if options.traces is not None:
                self.spans = TraceBook(quiet_s=options.trace_quiet, longest_s=options.trace_patience)
                load_messages()
                receiver = Receiver(self.spans, self.spans.note_malformed)
                address = await self._listen("traces", receiver_app(receiver), options.traces)
                if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
                    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
                    environment["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
            if options.proxy is not None:
                from answerkey.observe.proxy import ExchangeBook, Upstreams, proxy_app

                self.exchanges = ExchangeBook(quiet_s=options.trace_quiet)
                upstreams = Upstreams(options.upstreams)
                address = await self._listen("proxy", proxy_app(self.exchanges, upstreams), options.proxy)
                environment |= upstreams.environment(address)
            # Not by a token: the run may be closed in another task than the one that opened it.
            self._open.callback(OBSERVERS.set, OBSERVERS.get())
            OBSERVERS.set(environment)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._users -= 1
        if not self._users:
            await self._open.aclose()

    async def _listen(self, what: str, app: "web.Application", port: int) -> str:
        from aiohttp import web  # 200 ms that only runs with an observer need

        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._open.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", port)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"--{what} cannot listen on port {port}: {error.strerror or error}; use another: --{what} {port + 10}"
            ) from None
        self.addresses[what] = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return self.addresses[what]

    def open_question(self, ask: Ask) -> None:
        """Expect calls of a question."""
        if self.spans is not None:
            self.spans.open(ask.traceparent)
        if self.exchanges is not None:
            self.exchanges.open(ask)

    def give_up_question(self, ask: Ask) -> None:
        """A question timed out; the chatbot may still work on it."""
        if self.exchanges is not None:
            self.exchanges.give_up(ask.traceparent)

    def without_fault(self, ask: Ask) -> Ask:
        """What the chatbot is asked: a proxy plants the fault itself."""
        if ask.fault is None or self.exchanges is None:
            return ask
        return msgspec.structs.replace(ask, fault=None)

    def fault_record(self, ask: Ask) -> FaultRecord | None:
        """What became of the fault that the proxy was to plant."""
        return None if self.exchanges is None else self.exchanges.fault_record(ask)

    def close_question(self, ask: Ask, *, is_retried: bool = False) -> list[Observation]:
        """Expect nothing more of a question; what was seen of it."""
        seen = [book.close(ask.traceparent, is_retried=is_retried) for book in self.books]
        return [one for one in seen if one is not None]

    @property
    def books(self) -> "list[TraceBook | ExchangeBook]":
        """The records of what was seen."""
        return [book for book in (self.spans, self.exchanges) if book is not None]


def _joint_hash(hashes: Set[str]) -> str | None:
    """One hash for all; None if there is none, or if there are too many: they depend on the question."""
    if len(hashes) <= 1:
        return next(iter(hashes), None)
    if len(hashes) > _MOST_HASHES:
        return None
    return hashlib.blake2b(" ".join(sorted(hashes)).encode(), digest_size=5).hexdigest()


class ObservedTarget(TargetWrapper):
    """A chatbot whose calls are seen from outside, by observers that it may share with others."""

    def __init__(self, target: BaseTarget, observers: Observers) -> None:
        super().__init__(target)
        self._observers = observers
        self._open = AsyncExitStack()
        # Hashes of the system prompts and of the lists of tools with which questions began.
        self._prompts: set[str] = set()
        self._tools: set[str] = set()

    @property
    def prompt_hash(self) -> str | None:  # type: ignore[override]  # read only, like every forwarded member
        """Identifies its instructions, if it says so itself or requests to models were seen."""
        return self.target.prompt_hash or _joint_hash(self._prompts)

    @property
    def tools_hash(self) -> str | None:  # type: ignore[override]
        """Identifies the tools that it offers to its model."""
        return self.target.tools_hash or _joint_hash(self._tools)

    @property
    def addresses(self) -> dict[str, str]:
        """ "traces", "proxy" → the address that the observer listens on."""
        return self._observers.addresses

    async def __aenter__(self) -> Self:
        try:
            await self._open.enter_async_context(self._observers)
            await self._open.enter_async_context(self.target)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    async def ask(self, ask: Ask) -> Reply:
        """Ask the chatbot while the observers expect the question."""
        self._observers.open_question(ask)
        try:
            return await self.target.ask(self._observers.without_fault(ask))
        except RetryableError as error:
            # It is asked again with another trace.
            if isinstance(error, AskAgainError) and error.still_works:
                self._observers.give_up_question(ask)
            self._observers.close_question(ask, is_retried=True)
            raise
        except asyncio.CancelledError:
            self._observers.give_up_question(ask)
            raise

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """The reply with the observations, once they are complete; not part of the chatbot's time."""
        try:
            reply = await self.target.observe(self._observers.without_fault(ask), reply)
            for book in reversed(self._observers.books):
                await book.settle(ask.traceparent)
            fault = self._observers.fault_record(ask)
        finally:
            seen = self._observers.close_question(ask)
        for prompt, tools in (one.first_request for one in seen if one.first_request is not None):
            self._prompts.update([prompt] if prompt else [])
            self._tools.update([tools] if tools else [])
        joined = admit_reply(join_observations(reply, seen))
        return joined if fault is None else msgspec.structs.replace(joined, fault=fault)

    def warnings(self) -> list[str]:
        """What may be missing from the observations."""
        return [
            *self.target.warnings(),
            *(line for book in self._observers.books for line in book.warnings()),
        ]
