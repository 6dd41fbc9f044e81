"""The target `ws(s)://…`: a chatbot behind a WebSocket, a connection for each conversation and a message for each turn."""

import time
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import ConfigError, MissingExtraError, UsageError
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.protocols import Ask, RetryableError
from answerkey.targets.chat_histories import UnderWay
from answerkey.targets.http_client import make_tls, read_endpoint
from answerkey.targets.http_session import TargetSession, is_refused
from answerkey.targets.http_settings import HttpSettings
from answerkey.targets.request_template import compile_template, values_of
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.transcripts.conversation import asked_in
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.plain_json import decode_json
from answerkey.transcripts.raw_replies import is_watched, note_raw
from answerkey.transcripts.reply_mapping import reply_from_payload
from answerkey.transcripts.streams.whole_stream import assemble

if TYPE_CHECKING:
    import aiohttp

__all__ = ["WebSocketTarget"]

_MEGABYTE = 1024 * 1024
# The code with which a connection is closed over a message that is too large.
_TOO_BIG = 1009


class WebSocketTarget:
    """A WebSocket as a chatbot."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        secrets: Secrets | None = None,
    ) -> None:
        self.name = name or safe_url(settings.url)
        self.fingerprint = settings_hash(
            "websocket", msgspec.structs.replace(settings, url=safe_url(settings.url))
        )
        if settings.login is not None:
            raise ConfigError(f"target {self.name}: a WebSocket has no login; put the token into its headers")
        self._settings = settings
        self._secrets = secrets or Secrets()
        self._most_bytes = int(settings.max_reply_mb * _MEGABYTE)
        self._session: aiohttp.ClientSession | None = None
        self._sockets: UnderWay[aiohttp.ClientWebSocketResponse] = UnderWay(concurrency)
        self._last: Any = None

    async def __aenter__(self) -> "WebSocketTarget":
        # A general client is installed and loaded for the few chatbots that need one.
        try:
            import aiohttp
        except ModuleNotFoundError:
            raise MissingExtraError("a WebSocket", "observe") from None
        import jmespath

        settings, expand, where = self._settings, self._secrets.expand, f"target {self.name}:"
        self._url = str(expand(settings.url, f"{where} url"))
        body = settings.body or {"question": "{{question}}", "conversation_id": "{{conversation_id}}"}
        self._body = compile_template(expand(body, f"{where} body"), f"{where} body")
        self._headers = dict(expand(settings.headers, f"{where} headers"))
        if settings.last is not None:
            try:
                self._last = jmespath.compile(settings.last)
            except jmespath.exceptions.JMESPathError:
                raise ConfigError(f"{where} last = {settings.last!r} is not a JMESPath expression") from None
        try:
            endpoint = read_endpoint(self._url)
        except ValueError:
            raise ConfigError(f"{where} url is not a valid address") from None
        checked = TargetSession(
            self.name,
            self._secrets,
            verify_tls=settings.verify_tls,
            ca_file=settings.ca_file,
            most_bytes=self._most_bytes,
        )
        await checked.open(endpoint, self.name, self._headers)
        await checked.close()
        self._tls = make_tls(verify=settings.verify_tls, ca_file=settings.ca_file) if endpoint.tls else True
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, ask: Ask) -> Reply:
        """One message there, and those that come back."""
        import aiohttp

        begun = time.perf_counter()
        try:
            socket = await self._socket(ask)
            await socket.send_str(msgspec.json.encode(self._body.fill(values_of(ask))).decode())
            said, first = await self._read(socket)
        except (aiohttp.ClientError, OSError) as error:
            if is_refused(error) or is_refused(getattr(error, "os_error", error)):
                failure = Failure("connection", failure_message(f"{self.name}: connection refused"))
                raise RetryableError(failure) from error
            return Reply(failure=failure_from_exception(error, self._secrets.redact))
        timings = Timings(
            latency_ms=1000 * (time.perf_counter() - begun),
            first_byte_ms=None if first is None else 1000 * (first - begun),
        )
        if isinstance(said, Failure):
            return Reply(failure=said, timings=timings)
        payload, _ = assemble("lines", said, done=True)
        if is_watched():
            note_raw(self._secrets.redact(msgspec.json.encode(payload).decode()))
        reply = reply_from_payload(payload, mapping=self._settings.reply, asked=asked_in(ask))
        evidence = msgspec.structs.replace(reply.evidence, kind="stream") if len(said) > 1 else reply.evidence
        return self._secrets.redact_reply(msgspec.structs.replace(reply, timings=timings, evidence=evidence))

    async def _socket(self, ask: Ask) -> "aiohttp.ClientWebSocketResponse":
        """The conversation's connection; each question begins with a new one."""
        kept = self._sockets.get(ask.conversation_id)
        if kept is not None and not kept.closed:
            if ask.turn:
                return kept
            await kept.close()
        if self._session is None:
            raise UsageError("the target is not open: use it in `async with`")
        socket = await self._session.ws_connect(
            self._url, headers=self._headers, max_msg_size=self._most_bytes, ssl=self._tls
        )
        self._sockets.keep(ask.conversation_id, socket)
        return socket

    async def _read(
        self, socket: "aiohttp.ClientWebSocketResponse"
    ) -> tuple[list[str] | Failure, float | None]:
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
                    return self._too_large(), first
                return Failure("connection", f"the connection was closed ({socket.close_code})"), first
            data = message.data
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            said.append(text)
            size += len(text)
            if size > self._most_bytes:
                return self._too_large(), first
            if self._last is None or self._is_last(text):
                return said, first

    def _is_last(self, text: str) -> bool:
        try:
            return bool(self._last.search(decode_json(text)))
        except (ValueError, TypeError, RecursionError):
            # No JSON, or none to which the expression applies: something on the way.
            return False

    def _too_large(self) -> Failure:
        most = f"{self._most_bytes / _MEGABYTE:g} MB"
        return Failure("malformed", f"the reply is larger than {most}; raise max_reply_mb if that is right")
