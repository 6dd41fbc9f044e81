"""The targets `http(s)://…` and `ws(s)://…`: a chatbot behind an HTTP endpoint or a WebSocket.

An endpoint answers with JSON, text or a stream. `HttpTarget.ask` sends the request by the client of its `TargetSession`, and
`read_reply` or `read_error` reads the response. A WebSocket has a connection for each conversation and a message for each turn.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from answerkey.config import Secrets, safe_url, settings_hash
from answerkey.errors import ConfigError, MissingExtraError, TargetUnreachableError, UsageError
from answerkey.model.reply import FAULT_HEADER, Evidence, Failure, FaultRecord, Json, Reply, Timings
from answerkey.protocols import Ask, BaseTarget, RetryableError, TargetContext
from answerkey.targets.http_client import Response, TlsSettings, read_endpoint
from answerkey.targets.resolve import (
    MessageHistory,
    Messages,
    PerConversation,
    Template,
    read_settings,
    values_of,
)
from answerkey.targets.sessions import (
    FAILURES,
    ConnectionSettings,
    Login,
    LoginSettings,
    TargetSession,
    cookie_header,
    is_refused,
    read_cookies,
    retry_after_seconds,
)
from answerkey.text.normalise import clean_text, decode_text
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import failure_message, kind_of_status, read_failure
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.json_values import (
    MOST_MEGABYTES,
    as_dict,
    decode_json,
    decode_strict_json,
    encode_json,
    json_text,
    too_large,
)
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import (
    ReplyMapping,
    failure_from_exception,
    map_events,
    note_raw,
    reply_from_payload,
)
from answerkey.transcripts.streams import (
    STREAM_KINDS,
    EventReader,
    StreamKind,
    assemble,
    decode_event,
    ends_in_calls,
    listed_events,
)

if TYPE_CHECKING:
    import aiohttp


# Limit for an agent to forward the next response of its model, after one that context for tool calls.
_NEXT_RESPONSE_S = 60.0
_MEGABYTE = 1024 * 1024
# A tag ends before the next begins, so that a page of unclosed ones is read in one pass.
_TAG = lazy(r"<[^<>]*>")
_UNSEEN = lazy(r"<(/?)(?:script|style)\b", re.IGNORECASE)
# A whole document, not an answer that has markup or is about it: the first tag is followed by another.
_PAGE = lazy(
    r"\s*(?:<\?xml[^<>]*>\s*)?(?:<!--(?s:.)*?-->\s*)*"
    r"(?:<!doctype\s+html[^<>]*>\s*<|<html(?:\s[^<>]*)?>\s*<(?:head|body|title|meta|link|script|style|!--))",
    re.IGNORECASE,
)
_TITLE = lazy(r"<(title|h1)\b[^<>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)


class HttpSettings(ConnectionSettings, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME]` of an HTTP target; `${ENV}` is expanded in url, headers, query and body on opening."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    query: dict[str, Any] = {}
    # The JSON of the request, a template with "{{question}}" and the like; or the same as JSON text.
    body: dict[str, Any] | list[Any] | str | None = None
    # Where the parts of the reply are, if not under the usual names.
    reply: ReplyMapping | None = None
    # Of a stream of the chatbot's own: the name of an event → what it brings of the reply.
    events: dict[str, ReplyMapping] = {}
    # A larger reply is a failure.
    max_reply_mb: float = MOST_MEGABYTES
    # False for a chatbot that must never receive a question twice: each gets a new connection.
    retry_reused: bool = True
    # A request before the first question that returns a token or cookies.
    login: LoginSettings | None = None
    # Of a WebSocket: JMESPath that is true for the last message of a reply; None: every message is a reply.
    last: str | None = None


def make_http_target(rest: str, context: TargetContext) -> BaseTarget:
    """The factory of the kind `url`."""
    settings = read_settings(context, HttpSettings)
    if settings.url.startswith(("ws://", "wss://")):
        make: type[HttpTarget] = WebSocketTarget
    else:
        make = HttpTarget
    return make(
        settings,
        name=context.name,
        concurrency=context.concurrency,
        tls=settings.tls_in(context.folder),
    )


class HttpTarget(BaseTarget):
    """An HTTP endpoint as a chatbot."""

    kind = "http"

    def __init__(
        self,
        settings: HttpSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        secrets: Secrets | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https", "ws", "wss") or not parts.netloc:
            raise ConfigError(f"url = {safe_url(settings.url)!r} is not an http:// or https:// address")
        self.name = name or safe_url(settings.url)
        self.fingerprint = settings_hash(
            self.kind, msgspec.structs.replace(settings, url=safe_url(settings.url))
        )
        self.settings = settings
        # By a header, where the chatbot honours it.
        self.takes_faults = True
        self.secrets = secrets or Secrets()
        self._session = TargetSession(
            self.name,
            self.secrets,
            tls=tls or settings.tls_in(None),
            most_bytes=int(settings.max_reply_mb * _MEGABYTE),
            reuse=settings.retry_reused,
        )
        self._login: Login | None = None
        self._history = MessageHistory(concurrency)
        # Id and cookies that the server assigned to a conversation.
        self._issued: PerConversation[str] = PerConversation(concurrency)
        self._cookies: PerConversation[dict[str, str]] = PerConversation(concurrency)
        self._server_issues = settings.reply is not None and settings.reply.conversation_id is not None

    def _expanded(self, value: object, setting: str) -> Any:
        return self.secrets.expand(value, f"target {self.name}: {setting}")

    def _prepare(self) -> None:
        """Read the settings that requests are made of."""
        self._url = str(self._expanded(self.settings.url, "url"))
        where = f"target {self.name}:"
        try:
            self._endpoint = read_endpoint(self._url)
        except ValueError:
            raise ConfigError(f"{where} url is not a valid address") from None
        if self._endpoint.password:
            self.secrets.add("URL_PASSWORD", self._endpoint.password)
        self._query = Template(self._expanded(self.settings.query, "query"), f"{where} query")
        self._body = Template(self._expanded(self._body_template(), "body"), f"{where} body")
        self._sends_messages = "messages" in self._body.names

    async def __aenter__(self) -> "HttpTarget":
        self._prepare()
        settings = self.settings
        headers = {
            "Accept": "application/json, text/event-stream, application/x-ndjson, text/plain;q=0.5",
            "User-Agent": "answerkey",
        }
        self._method = settings.method.upper()
        self._has_body = self._method not in ("GET", "HEAD")
        if self._has_body and not _names_type(settings.headers):
            headers["Content-Type"] = "application/json"
        headers.update(self._expanded(settings.headers, "headers"))
        await self._session.open(self._endpoint, self.name, headers)
        self._client = self._session.client
        if settings.login is not None:
            self._login = Login(settings.login, self.name, self.secrets, self._session)
            await self._login.log_in(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()

    async def check_reachable(self) -> bool:
        """Connect, without the login."""
        self._prepare()
        await self._session.open(self._endpoint, self.name, {})
        await self._session.close()
        return True

    async def ask(self, ask: Ask) -> Reply:
        """One request. 429, 503 and a refused connection are retried by the engine."""
        messages = None
        if self._sends_messages:
            messages = self._history.begin_turn(ask.conversation_id, ask.question, ask.turn)
        logins = 0 if self._login is None else self._login.count
        try:
            reply, status = await self._exchange(ask, messages)
            if status == 401 and self._login is not None:
                # The login has expired, which is not the chatbot's fault.
                try:
                    await self._login.log_in(logins)
                except (TargetUnreachableError, ConfigError) as error:
                    raise RetryableError(Failure("login", str(error))) from error
                reply, _ = await self._exchange(ask, messages)
        except FAILURES as error:
            return await self._session.setup_problem(self._endpoint) or self._session.failure_reply(error)
        if status == 400:
            reply = await self._session.setup_problem(self._endpoint) or reply
        self._session.answered = self._session.answered or status < 400
        if self._server_issues and reply.conversation_id:
            self._issued.set(ask.conversation_id, reply.conversation_id)
        if messages is not None:
            self._history.end_turn(ask.conversation_id, messages, reply.text)
        return reply

    def _values(self, ask: Ask, messages: Messages | None) -> dict[str, object]:
        values = values_of(ask, messages)
        if self._server_issues:
            # The server names a conversation in its first reply; before that it has no id.
            values["conversation_id"] = self._issued.get(ask.conversation_id) if ask.turn else None
        return values

    async def _exchange(self, ask: Ask, messages: Messages | None) -> tuple[Reply, int]:
        """Send one request; its reply and status."""
        started = time.perf_counter()
        endpoint, headers, body = self._endpoint, self._session.headers, None
        cookies = self._cookies.get(ask.conversation_id) if ask.turn else None
        login_cookies = None if self._login is None else self._login.cookies
        if cookies or login_cookies:
            headers = headers | cookie_header(login_cookies, cookies)
        if ask.traceparent:
            headers = {**headers, "traceparent": ask.traceparent}
        if ask.fault is not None:
            from answerkey.fault_points import write_header  # only runs of `faults` need it

            headers = {**headers, FAULT_HEADER: write_header(ask.fault)}
        if self.settings.query:
            endpoint = endpoint.with_query(_query(self._query.fill(self._values(ask, messages))))
        if self._has_body and self.settings.body is None and not self._server_issues:
            # The default body needs no template.
            body = encode_json({"question": ask.question, "conversation_id": ask.conversation_id})
        elif self._has_body:
            body = encode_json(self._body.fill(self._values(ask, messages)))
        # A redirect could carry secrets in the headers to another server, so none is followed.
        response = await self._client.request(
            self._method, endpoint, headers=headers, body=body, most_bytes=self._session.most_bytes
        )
        try:
            if response.status >= 300:
                reply = await read_error(response, self.secrets, self.settings.reply)
            else:
                reply = await self._read(response, QuestionContext(ask.question, ask.turn, ask.turn > 0))
        finally:
            response.release()
        if ask.fault is not None and FAULT_HEADER.lower() in response.headers:
            # The chatbot says that it broke its tool, and reports the result itself.
            reply = msgspec.structs.replace(reply, fault=FaultRecord(fault=ask.fault, landed=True))
        if response.set_cookies:
            self._cookies.set(ask.conversation_id, (cookies or {}) | read_cookies(response.set_cookies))
        timings = Timings(
            latency_ms=1000 * (response.last_byte - response.begun),
            first_byte_ms=1000 * (response.first_byte - response.begun),
            # A request that was lost with its reused connection was sent again, which is not the chatbot's time.
            retry_ms=1000 * (response.begun - started) if response.resent else 0.0,
            attempts=2 if response.resent else 1,
        )
        return msgspec.structs.replace(reply, timings=timings), response.status

    async def _read(self, response: Response, context: QuestionContext) -> Reply:
        """The reply in a successful response."""
        mapping, secrets = self.settings.reply, self.secrets
        kind = STREAM_KINDS.get(response.content_type)
        if "x-vercel-ai-data-stream" in response.headers:
            kind = "data-stream"
        if kind is None:
            body = await response.body()
            note_raw(lambda: secrets.redact(decode_text(body, response.charset)[0]))
            reply = _from_body(response, body, mapping, context)
        else:
            read = partial(reply_from_payload, mapping=mapping, context=context)
            reply = await _from_stream(response, kind, secrets, read, self.settings.events)
        return secrets.redact_reply(reply)

    def _body_template(self) -> object:
        body = self.settings.body
        if body is None:
            return {"question": "{{question}}", "conversation_id": "{{conversation_id}}"}
        if isinstance(body, str):
            try:
                return msgspec.json.decode(body)
            except msgspec.DecodeError as error:
                raise ConfigError(
                    f"target {self.name}: body is not JSON: {error}; write it as a table or JSON text"
                ) from None
        return body


def _query(values: object) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in as_dict(values).items()
        if value is not None
    }


def _names_type(headers: dict[str, str]) -> bool:
    return any(name.lower() == "content-type" for name in headers)


# Reading responses.


async def _from_stream(
    response: Response,
    kind: StreamKind,
    secrets: Secrets,
    read: Callable[[object], Reply],
    mappings: Mapping[str, ReplyMapping],
) -> Reply:
    reader = EventReader(kind)
    events: list[str] = []
    broken: Failure | None = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async for chunk in response.chunks():
                    events += reader.feed(chunk)
                    # Some servers keep the connection open after the last event; an agent forwards the next response.
                    if reader.done and not ends_in_calls(kind, events):
                        break
                    limit.reschedule(time.monotonic() + _NEXT_RESPONSE_S if reader.done else None)
                    reader.done = False
    except ConnectionError as error:
        broken = Failure("connection", failure_message(f"the stream broke off: {error}"))
    events += reader.feed(b"", last=True)
    if not events:
        return Reply(failure=broken, evidence=Evidence(kind="stream", completeness="partial"))
    if mappings:
        decoded = [decode_event(event) for event in events]
        raw: Json = {"events": listed_events(decoded, reader.names)}
        reply, whole = read(map_events(decoded, reader.names, mappings)), reader.done or response.is_framed
    else:
        raw, whole = assemble(kind, events, done=reader.done, closed=response.is_framed, names=reader.names)
        reply = read(raw)
    note_raw(lambda: secrets.redact(json_text(raw)))
    if reply.failure is None and broken is not None:
        reply = msgspec.structs.replace(reply, failure=broken)
    return streamed(reply, whole and broken is None)


def _from_body(
    response: Response, body: bytes, mapping: ReplyMapping | None, context: QuestionContext
) -> Reply:
    is_json = response.content_type == "application/json" or response.content_type.endswith("+json")
    if is_json and response.charset in (None, "utf-8"):
        # Most replies; what is not JSON by the standard is read below.
        with suppress(ValueError):
            return reply_from_payload(decode_strict_json(body), mapping=mapping, context=context)
    text, wrong = decode_text(body, response.charset)
    if wrong is not None:
        return Reply(text=text, failure=Failure("malformed", failure_message(wrong)))
    if (is_json and text.strip()) or text.lstrip()[:1] in ("{", "[", '"') or text.strip() == "null":
        try:
            return reply_from_payload(decode_json(text), mapping=mapping, context=context)
        except ValueError as error:
            if is_json:
                wrong = failure_message(f"the reply is not valid JSON: {error}")
                return Reply(text=clean_text(text) or None, failure=Failure("malformed", wrong))
    if response.content_type in ("text/html", "application/xhtml+xml") and _PAGE.match(text):
        return Reply(failure=_page_failure(response, text))
    # A text does not show by itself that it is whole, as JSON does.
    return Reply(
        text=clean_text(text), evidence=Evidence(completeness="complete" if response.is_framed else "partial")
    )


def _page_failure(response: Response, page: str) -> Failure:
    """The failure of a sign-in page, a single-page application or a proxy's page in place of an answer."""
    title = _TITLE.search(page)
    import html  # slow to load, and few chatbots answer with a page

    words = html.unescape(_without_tags(title[2])) if title else ""
    named = f", titled {failure_message(words, 100)!r}" if words.strip() else ""
    message = f"HTTP {response.status}: a web page ({response.content_type}){named}, not an answer"
    return Failure("http", failure_message(message))


async def read_error(response: Response, secrets: Secrets, mapping: ReplyMapping | None = None) -> Reply:
    """The reply of an error status: its failure with the reason in the body, and the calls that the body lists.

    Raises RetryableError for 429 and 503.
    """
    status = response.status
    body, _ = decode_text(await _beginning(response), response.charset)
    note_raw(lambda: secrets.redact(body))
    if status < 400:
        location = safe_url(response.headers.get("location", "elsewhere"))
        message = f"HTTP {status}: redirected to {location}; use that address as the target"
        return Reply(failure=Failure("http", failure_message(secrets.redact(message))))
    payload: Json = None
    try:
        payload = decode_json(body)
    except ValueError:
        reason = failure_message(_without_tags(body), 300)
    else:
        reason = _reason_in(payload)
    message = f"HTTP {status}: {reason or response.reason or 'no reason given'}"
    failure = Failure(kind_of_status(status), failure_message(secrets.redact_message(message)))
    if status in (429, 503):
        raise RetryableError(failure, retry_after_seconds(response.headers.get("retry-after")))
    if isinstance(payload, dict):
        reply = reply_from_payload(payload, mapping=mapping)
        if reply.evidence.tools_observed:
            return secrets.redact_reply(msgspec.structs.replace(reply, failure=failure))
    return Reply(failure=failure)


async def _beginning(response: Response) -> bytes:
    """The first megabyte of an error's body, or less if it breaks off: the status is what counts."""
    body = b""
    with suppress(ConnectionError, ValueError):
        async for chunk in response.chunks():
            body += chunk
            if len(body) >= _MEGABYTE:
                break
    return body[:_MEGABYTE]


def _without_tags(page: str) -> str:
    """The text of a page, without markup, scripts and styles."""
    texts: list[str] = []
    position = 0
    inside = False
    for mark in _UNSEEN.finditer(page):
        if not inside:
            texts.append(page[position : mark.start()])
        inside = not mark[1]
        position = mark.start()
    texts.append(page[position:])
    return _TAG.sub(" ", " ".join(texts))


def _reason_in(payload: Json) -> str:
    if isinstance(payload, dict):
        for name in ("error", "detail", "message", "reason", "title", "errors"):
            value = payload.get(name)
            if isinstance(value, str) and value.strip():
                return value
            if fields := _wrong_fields(value):
                return fields
            if isinstance(value, (dict, list)) and value:
                failure = read_failure(value)
                return failure.message if failure else ""
    if isinstance(payload, str):
        return payload
    return failure_message(json_text(payload), 300) if payload else ""


def _wrong_fields(listed: object) -> str:
    """The fields that a framework such as FastAPI refuses; empty if it is not such a list."""
    wrong = [
        f"{'.'.join(str(step) for step in item['loc'])}: {item.get('msg', 'is wrong')}"
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("loc"), list)
    ]
    return "; ".join(wrong[:5])


# The code with which a connection is closed over a message that is too large.
_TOO_BIG = 1009
# The code of a connection that ended without being closed.
_LOST = 1006


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
            said, first, is_whole = await self._receive(socket)
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
        payload, whole = assemble("lines", said, done=is_whole, closed=is_whole)
        note_raw(lambda: self.secrets.redact(msgspec.json.encode(payload).decode()))
        reply = reply_from_payload(
            payload,
            mapping=self.settings.reply,
            context=QuestionContext(ask.question, ask.turn, ask.turn > 0),
        )
        if len(said) > 1 or not whole:
            reply = streamed(reply, whole)
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
    ) -> tuple[list[str] | Reply, float | None, bool]:
        """The messages of one reply, or why there are none; the time of the first; and whether the last one came."""
        from aiohttp import WSMsgType

        said: list[str] = []
        first: float | None = None
        size = 0
        while True:
            message = await socket.receive()
            first = first or time.perf_counter()
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                if said and message.type is not WSMsgType.ERROR:
                    # Closing is a way to say that this was all; a connection that is lost is none.
                    return said, first, socket.close_code != _LOST
                if socket.close_code == _TOO_BIG:
                    return too_large(self.settings.max_reply_mb), first, False
                closed = f"the connection was closed ({socket.close_code})"
                return Reply(failure=Failure("connection", closed)), first, False
            data = message.data
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            said.append(text)
            size += len(text)
            if size > self._most_bytes:
                return too_large(self.settings.max_reply_mb), first, False
            if self._last is None or self._is_last(text):
                return said, first, True

    def _is_last(self, text: str) -> bool:
        try:
            return bool(self._last.search(decode_json(text)))
        except (ValueError, TypeError):
            # No JSON, or none to which the expression applies: something on the way.
            return False
