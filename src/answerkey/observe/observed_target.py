"""ObservedTarget: any chatbot, with observers that listen for as long as it is open and see each question's calls."""

import os
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import Reply
from answerkey.observe.environment import OBSERVERS
from answerkey.observe.exchange_book import ExchangeBook
from answerkey.observe.merging import Observation, join_observations
from answerkey.observe.proxy import Upstreams, proxy_app
from answerkey.observe.receiver import Receiver, receiver_app
from answerkey.observe.trace_book import TraceBook
from answerkey.protocols import Ask, RetryableError, Target

if TYPE_CHECKING:
    from aiohttp import web


class ObservedTarget:
    """A chatbot whose calls are seen from outside."""

    def __init__(self, target: Target, options: Options) -> None:
        if find_spec("aiohttp") is None:
            raise MissingExtraError("--proxy" if options.traces is None else "--traces", "observe")
        self._target = target
        self._options = options
        self._open = AsyncExitStack()
        self._spans: TraceBook | None = None
        self._exchanges: ExchangeBook | None = None
        # Where the observers listen, by what they are, once they do.
        self.addresses: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The chatbot's own."""
        return self._target.name

    @property
    def fingerprint(self) -> str:
        """The chatbot's own: who watches does not change it."""
        return self._target.fingerprint

    def __getattr__(self, name: str) -> Any:
        # What else the engine looks for: capacity, replays, wait_for_room.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._target, name)

    async def __aenter__(self) -> "ObservedTarget":
        options = self._options
        environment: dict[str, str] = {}
        try:
            if options.traces is not None:
                self._spans = TraceBook(quiet_s=options.trace_quiet, patience_s=options.trace_patience)
                address = await self._listen("traces", receiver_app(Receiver(self._spans)), options.traces)
                if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
                    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
                    environment["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
            if options.proxy is not None:
                self._exchanges = ExchangeBook(quiet_s=options.trace_quiet)
                upstreams = Upstreams(options.upstreams)
                address = await self._listen("proxy", proxy_app(self._exchanges, upstreams), options.proxy)
                environment |= upstreams.environment(address)
            token = OBSERVERS.set(environment)
            self._open.callback(OBSERVERS.reset, token)
            await self._open.enter_async_context(self._target)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
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
                f"--{what} cannot listen on port {port}: {error.strerror or error}; give another: --{what} {port + 10}"
            ) from None
        self.addresses[what] = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return self.addresses[what]

    async def ask(self, ask: Ask) -> Reply:
        """Ask the chatbot, while the observers know of the question."""
        if self._spans is not None:
            self._spans.open(ask.traceparent)
        if self._exchanges is not None:
            self._exchanges.open(ask)
        try:
            return await self._target.ask(ask)
        except RetryableError:
            # It is asked again under another trace.
            self._close(ask)
            raise

    def _books(self) -> list[TraceBook | ExchangeBook]:
        return [book for book in (self._spans, self._exchanges) if book is not None]

    def _close(self, ask: Ask) -> list[Observation]:
        seen = [book.close(ask.traceparent) for book in self._books()]
        return [one for one in seen if one is not None]

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """The reply with what was seen of it, once nothing more is to be expected; outside the chatbot's time."""
        try:
            for book in reversed(self._books()):
                await book.settle(ask.traceparent)
        finally:
            seen = self._close(ask)
        return join_observations(reply, seen)

    def warnings(self) -> list[str]:
        """What a reader of the run must know of the observing."""
        return [line for book in self._books() for line in book.warnings()]
