"""The target `ws(s)://…`: a chatbot behind a WebSocket, a connection for each conversation and a message for each turn."""

import time
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import ConfigError, MissingExtraError, UsageError
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.protocols import Ask, RetryableError
from answerkey.targets.conversations import PerConversation, values_of
from answerkey.targets.http_client import TlsSettings
from answerkey.targets.http_session import is_refused
from answerkey.targets.http_target import HttpSettings, HttpTarget
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.json_values import decode_json, too_large
from answerkey.transcripts.messages import QuestionContext, with_evidence
from answerkey.transcripts.payloads import note_raw, reply_from_payload
from answerkey.transcripts.streams import assemble

if TYPE_CHECKING:
    import aiohttp

_MEGABYTE = 1024 * 1024
# The code with which a connection is closed over a message that is too large.
_TOO_BIG = 1009


class WebSocketTarget(HttpTarget):
    """A WebSocket as a chatbot."""

    kind = "websocket"

    def __init__(
        self,
        settings: HttpSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        tls: TlsSettings | None = None,
    ) -> None:
        super().__init__(settings, name=name, concurrency=concurrency, tls=tls)
        if settings.login is not None:
            raise ConfigError(f"target {self.name}: a WebSocket has no login; put the token into its headers")
        # A socket has no headers for each question.
        self.takes_faults = False
        self._most_bytes = int(settings.max_reply_mb * _MEGABYTE)
        self._aiohttp: aiohttp.ClientSession | None = None
        self._sockets: PerConversation[aiohttp.ClientWebSocketResponse] = PerConversation(concurrency)
        self._last: Any = None

    async def __aenter__(self) -> "WebSocketTarget":
        # A general client is installed and loaded for the few chatbots that need one.
        try:
            import aiohttp
        except ModuleNotFoundError:
            raise MissingExtraError("a WebSocket", "observe") from None
        import jmespath

        self._prepare()
        settings = self.settings
        self._headers = dict(self._expanded(settings.headers, "headers"))
        if settings.last is not None:
            try:
                self._last = jmespath.compile(settings.last)
            except ValueError:
                raise ConfigError(
                    f"target {self.name}: last = {settings.last!r} is not a JMESPath expression"
                ) from None
        # Whether anything answers there at all.
        await self._session.open(self._endpoint, self.name, self._headers)
        await self._session.close()
        self._tls = self._session.tls or True
        self._aiohttp = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._aiohttp is not None:
            await self._aiohttp.close()
            self._aiohttp = None

    async def ask(self, ask: Ask) -> Reply:
        """One message there, and those that come back."""
        import aiohttp

        begun = time.perf_counter()
        try:
            socket = await self._socket(ask)
            await socket.send_str(msgspec.json.encode(self._body.fill(values_of(ask))).decode())
            said, first = await self._receive(socket)
        except (aiohttp.ClientError, OSError) as error:
            if is_refused(error) or is_refused(getattr(error, "os_error", error)):
                failure = Failure("connection", failure_message(f"{self.name}: connection refused"))
                raise RetryableError(failure) from error
            return Reply(failure=failure_from_exception(error, self.secrets.redact))
        timings = Timings(
            latency_ms=1000 * (time.perf_counter() - begun),
            first_byte_ms=None if first is None else 1000 * (first - begun),
        )
        if isinstance(said, Reply):
            return msgspec.structs.replace(said, timings=timings)
        payload, _ = assemble("lines", said, done=True)
        note_raw(lambda: self.secrets.redact(msgspec.json.encode(payload).decode()))
        reply = reply_from_payload(
            payload,
            mapping=self.settings.reply,
            context=QuestionContext(ask.question, ask.turn, ask.turn > 0),
        )
        reply = with_evidence(reply, kind="stream") if len(said) > 1 else reply
        return self.secrets.redact_reply(msgspec.structs.replace(reply, timings=timings))

    async def _socket(self, ask: Ask) -> "aiohttp.ClientWebSocketResponse":
        """The conversation's connection; each question begins with a new one."""
        kept = self._sockets.get(ask.conversation_id)
        if kept is not None and not kept.closed:
            if ask.turn:
                return kept
            await kept.close()
        if self._aiohttp is None:
            raise UsageError("the target is not open: use it in `async with`")
        socket = await self._aiohttp.ws_connect(
            self._url, headers=self._headers, max_msg_size=self._most_bytes, ssl=self._tls
        )
        self._sockets.set(ask.conversation_id, socket)
        return socket

    async def _receive(
        self, socket: "aiohttp.ClientWebSocketResponse"
    ) -> tuple[list[str] | Reply, float | None]:
        """The messages of one reply, or why there are none, with the time of the first."""
        from aiohttp import WSMsgType

        said: list[str] = []
        first: float | None = None
        size = 0
        while True:
            message = await socket.receive()
            first = first or time.perf_counter()
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                if said and message.type is not WSMsgType.ERROR:
                    # Closing is a way to say that this was all.
                    return said, first
                if socket.close_code == _TOO_BIG:
                    return too_large(self.settings.max_reply_mb), first
                closed = f"the connection was closed ({socket.close_code})"
                return Reply(failure=Failure("connection", closed)), first
            data = message.data
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            said.append(text)
            size += len(text)
            if size > self._most_bytes:
                return too_large(self.settings.max_reply_mb), first
            if self._last is None or self._is_last(text):
                return said, first

    def _is_last(self, text: str) -> bool:
        try:
            return bool(self._last.search(decode_json(text)))
        except (ValueError, TypeError):
            # No JSON, or none to which the expression applies: something on the way.
            return False
