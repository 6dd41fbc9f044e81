"""ObservedTarget: a chatbot with a span receiver or a proxy; and the spans of a chatbot in this process.

Spans in this process are read if the chatbot uses OpenTelemetry's SDK: nothing is imported that it has not imported itself, and
no provider is set.
"""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator, Set
from contextlib import AsyncExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import msgspec

from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import FaultRecord, Reply
from answerkey.observe.observations import (
    OBSERVERS,
    Event,
    Gap,
    Observation,
    Span,
    join_observations,
    read_traceparent,
)
from answerkey.observe.proxy import ExchangeBook, Upstreams, proxy_app
from answerkey.observe.receiver import Receiver, TraceBook, load_messages, receiver_app
from answerkey.observe.trace_reading import read_trace
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError, TargetWrapper
from answerkey.text.normalise import count
from answerkey.transcripts.json_values import admit_reply

if TYPE_CHECKING:
    from aiohttp import web


_SDK = "opentelemetry.sdk.trace"
# Different system prompts, or lists of tools, of a chatbot; with more, they are written for each question.
_MOST_HASHES = 5


class Collected:
    """The spans of one question."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        # Number of spans that have started and not ended.
        self.running = 0

    def observation(self) -> Observation:
        """The calls in the spans."""
        zero = min((span.start_ns for span in self.spans), default=0)
        gaps = [Gap(f"{count(self.running, 'span has', 'spans have')} not ended")] if self.running else []
        return read_trace(self.spans, zero_ns=zero, gaps=gaps).observation


# Trace id → its spans.
_COLLECTING: dict[int, Collected] = {}
# Providers with our processor; they exist as long as the process.
_WATCHED: list[Any] = []


@contextmanager
def in_process_spans(traceparent: str | None) -> Iterator[Collected]:
    """Set the question's trace as the current one, and collect its spans."""
    collected = Collected()
    ids = read_traceparent(traceparent)
    if ids is None or _SDK not in sys.modules:
        yield collected
        return
    context: Any = sys.modules["opentelemetry.context"]
    trace: Any = sys.modules["opentelemetry.trace"]
    _watch(trace.get_tracer_provider())
    trace_id = int(ids[0], 16)
    caller = trace.SpanContext(trace_id, int(ids[1], 16), is_remote=True, trace_flags=trace.TraceFlags(1))
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(caller)))
    _COLLECTING[trace_id] = collected
    try:
        yield collected
    finally:
        del _COLLECTING[trace_id]
        context.detach(token)


def _watch(provider: Any) -> None:
    """Add our processor to a provider of the SDK."""
    if any(one is provider for one in _WATCHED) or not hasattr(provider, "add_span_processor"):
        return
    _WATCHED.append(provider)
    sdk: Any = sys.modules[_SDK]

    class Watcher(sdk.SpanProcessor):  # type: ignore[misc]  # known at run time only
        """Collects the spans of running questions."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.running += 1

        def on_end(self, span: Any) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.running -= 1
                collected.spans.append(_read(span))

    provider.add_span_processor(Watcher())


def _read(span: Any) -> Span:
    own, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
    return Span(
        trace_id=f"{own.trace_id:032x}",
        span_id=f"{own.span_id:016x}",
        parent_id="" if parent is None else f"{parent.span_id:016x}",
        name=span.name,
        scope="" if scope is None else scope.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        attributes=_plain(span.attributes),
        events=[Event(event.name, _plain(event.attributes)) for event in span.events],
        status=span.status.status_code.value,
        status_message=span.status.description or "",
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()
    }


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
    def books(self) -> list[TraceBook | ExchangeBook]:
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
