"""The target `http(s)://…`: a chatbot behind an HTTP endpoint, which answers with JSON, text or a stream.

`HttpTarget.ask` sends the request by the client of its `TargetSession`, and `read_reply` or `read_error` reads the response.
"""

import asyncio
import errno
import json
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.fault import FAULT_HEADER, FaultRecord
from answerkey.model.reply import Evidence, Failure, Json, Reply, Timings
from answerkey.protocols import Ask, BaseTarget, RetryableError, TargetContext
from answerkey.targets.conversations import (
    MessageHistory,
    PerConversation,
    compile_template,
    encode_body,
    values_of,
)
from answerkey.targets.http_client import (
    Endpoint,
    HttpClient,
    NotHttpError,
    ReplyTooLargeError,
    Response,
    TlsSettings,
    make_tls,
    read_endpoint,
)
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.text.normalise import clean_text, decode_text
from answerkey.transcripts.conversation import NO_CONTEXT, QuestionContext
from answerkey.transcripts.failures import (
    failure_from_exception,
    failure_message,
    kind_of_status,
    read_failure,
)
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.json_values import MOST_MEGABYTES, as_dict, decode_json, read_number, too_large
from answerkey.transcripts.payloads import ReplyMapping, map_events, note_raw, reply_from_payload
from answerkey.transcripts.streams import (
    STREAM_KINDS,
    EventReader,
    StreamKind,
    assemble,
    decode_event,
    ends_in_calls,
    listed_events,
)

_LONGEST_REPLY = 1024 * 1024
_PREFLIGHT_S = 10.0
# Time for a server's alert after a handshake.
_REFUSAL_S = 2.0
# Limit for an agent to forward the next response of its model, after one that context for tool calls.
_NEXT_RESPONSE_S = 60.0
_MEGABYTE = 1024 * 1024
# What a request may raise because of the server or the network.
FAILURES = (ReplyTooLargeError, NotHttpError, OSError, EOFError, ValueError)
# Errors of this machine, which say nothing about the chatbot.
_LOCAL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))
# A tag ends before the next begins, so that a page of unclosed ones is read in one pass.
_TAG = re.compile(r"<[^<>]*>")
_UNSEEN = re.compile(r"<(/?)(?:script|style)\b", re.IGNORECASE)


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME.login]`; `${ENV}` is expanded in url, headers and body."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    # Sent as JSON.
    body: dict[str, Any] = {}
    # JMESPath of the token in the reply; None: the login only sets cookies.
    token: str | None = None
    # The header that carries the token, and the text before it.
    header: str = "Authorization"
    prefix: str = "Bearer "


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    tls: TlsSettings | None = None
    # The same as `verify` and `ca_file` in `tls`.
    verify_tls: bool = True
    ca_file: str | None = None
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
        from answerkey.targets.websocket_target import WebSocketTarget  # few targets are WebSockets

        make: type[HttpTarget] = WebSocketTarget
    else:
        make = HttpTarget
    return make(
        settings,
        name=context.name,
        concurrency=context.concurrency,
        tls=tls_settings(settings, context.folder),
    )


class _HasTls(Protocol):
    """The settings of TLS, of a chatbot or a model."""

    @property
    def tls(self) -> TlsSettings | None: ...
    @property
    def verify_tls(self) -> bool: ...
    @property
    def ca_file(self) -> str | None: ...


def tls_settings(settings: _HasTls, folder: Path | None) -> TlsSettings:
    """The settings of TLS with their files in the folder of relative paths."""
    tls = settings.tls or TlsSettings()
    paths = {"ca_file": tls.ca_file or settings.ca_file, "cert_file": tls.cert_file, "key_file": tls.key_file}
    files = {name: path and str((folder or Path()) / path) for name, path in paths.items()}
    return msgspec.structs.replace(tls, verify=tls.verify and settings.verify_tls, **files)


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
            tls=tls or tls_settings(settings, None),
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
        self._query = compile_template(self._expanded(self.settings.query, "query"), f"{where} query")
        self._body = compile_template(self._expanded(self._body_template(), "body"), f"{where} body")
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
        values = values_of(ask, messages)
        if self._server_issues:
            # The server names a conversation in its first reply; before that it has no id.
            values["conversation_id"] = self._issued.get(ask.conversation_id) if ask.turn else None
        logins = 0 if self._login is None else self._login.count
        try:
            reply, status = await self._exchange(ask, values)
            if status == 401 and self._login is not None:
                # The login has expired, which is not the chatbot's fault.
                try:
                    await self._login.log_in(logins)
                except (TargetUnreachableError, ConfigError) as error:
                    raise RetryableError(Failure("login", str(error))) from error
                reply, _ = await self._exchange(ask, values)
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

    async def _exchange(self, ask: Ask, values: Mapping[str, object]) -> tuple[Reply, int]:
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
            endpoint = endpoint.with_query(_query(self._query.fill(values)))
        if self._has_body:
            # The default body needs no template.
            default = {"question": ask.question, "conversation_id": values["conversation_id"]}
            body = encode_body(default if self.settings.body is None else self._body.fill(values))
        # A redirect could carry secrets in the headers to another server, so none is followed.
        async with await self._session.client.request(
            self._method, endpoint, headers=headers, body=body, most_bytes=self._session.most_bytes
        ) as response:
            if response.status >= 300:
                reply = await read_error(response, self.secrets, self.settings.reply)
            else:
                context = QuestionContext(ask.question, ask.turn, ask.turn > 0)
                reply = await read_reply(
                    response, self.settings.reply, self.secrets, context, events=self.settings.events
                )
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


async def read_reply(
    response: Response,
    mapping: ReplyMapping | None,
    secrets: Secrets,
    context: QuestionContext = NO_CONTEXT,
    *,
    events: Mapping[str, ReplyMapping] | None = None,
) -> Reply:
    """The reply in a successful response."""
    kind = STREAM_KINDS.get(response.content_type)
    if "x-vercel-ai-data-stream" in response.headers:
        kind = "data-stream"
    if kind is None:
        body = await response.body()
        note_raw(lambda: secrets.redact(decode_text(body, response.charset)[0]))
        reply = _from_body(response, body, mapping, context)
    else:
        read = partial(reply_from_payload, mapping=mapping, context=context)
        reply = await _from_stream(response, kind, secrets, read, events or {})
    return secrets.redact_reply(reply)


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
        reply, whole = read(map_events(decoded, reader.names, mappings)), True
    else:
        raw, whole = assemble(kind, events, done=reader.done, names=reader.names)
        reply = read(raw)
    note_raw(lambda: secrets.redact(json.dumps(raw, ensure_ascii=False, default=str)))
    if reply.failure is None and broken is not None:
        reply = msgspec.structs.replace(reply, failure=broken)
    return streamed(reply, whole and broken is None)


def _from_body(
    response: Response, body: bytes, mapping: ReplyMapping | None, context: QuestionContext
) -> Reply:
    text, wrong = decode_text(body, response.charset)
    if wrong is not None:
        return Reply(text=text, failure=Failure("malformed", failure_message(wrong)))
    is_json = response.content_type == "application/json" or response.content_type.endswith("+json")
    if is_json or text.lstrip()[:1] in ("{", "[", '"') or text.strip() == "null":
        try:
            return reply_from_payload(decode_json(text), mapping=mapping, context=context)
        except ValueError as error:
            if is_json:
                wrong = failure_message(f"the reply is not valid JSON: {error}")
                return Reply(text=clean_text(text) or None, failure=Failure("malformed", wrong))
    return Reply(text=clean_text(text), evidence=Evidence())


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
    return failure_message(json.dumps(payload, default=str), 300) if payload else ""


def _wrong_fields(listed: object) -> str:
    """The fields that a framework such as FastAPI refuses; empty if it is not such a list."""
    wrong = [
        f"{'.'.join(str(step) for step in item['loc'])}: {item.get('msg', 'is wrong')}"
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("loc"), list)
    ]
    return "; ".join(wrong[:5])


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header, which holds seconds or a date."""
    if not value:
        return None
    seconds = read_number(value)
    if seconds is not None:
        return max(0.0, seconds)
    from email.utils import parsedate_to_datetime  # few servers send a date

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


# Connections, and the login before the first question.


class TargetSession:
    """The connections and headers of one target, and the replies that its errors become."""

    def __init__(
        self,
        name: str,
        secrets: Secrets,
        *,
        tls: TlsSettings,
        most_bytes: int,
        reuse: bool = True,
    ) -> None:
        # In errors.
        self._name = name
        self._secrets = secrets
        self._tls_settings = tls
        self.most_bytes = most_bytes
        self._reuse = reuse
        self._client: HttpClient | None = None
        # None: not open, or not over TLS.
        self.tls: ssl.SSLContext | None = None
        self.headers: dict[str, str] = {}
        # Whether it has replied at all, so that the address is right.
        self.answered = False
        # What is wrong with the setup of the connection, where it was looked for; empty for nothing.
        self._problem: str | None = None

    async def open(self, endpoint: Endpoint, display_url: str, headers: Mapping[str, str]) -> None:
        """Open it; raises TargetUnreachableError if nothing answers at the address, which errors show as `display_url`."""
        for header, value in headers.items():
            if any(char in header + value for char in "\r\n\0"):
                raise ConfigError(f"target {self._name}: the header {header!r} has a line break in it")
            if header.lower() == "authorization" and endpoint.authorization is not None:
                raise ConfigError(
                    f"target {self._name}: the address has a user and password and the headers an Authorization; "
                    "keep one of the two"
                )
        self.headers = dict(headers)
        self.tls = self._make_tls() if endpoint.tls else None
        await _preflight(endpoint, display_url, self.tls)
        self._client = HttpClient(tls=self.tls, reuse=self._reuse)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def client(self) -> HttpClient:
        """The client, which does not send the target's headers by itself."""
        if self._client is None:
            raise UsageError("the target is not open: use it in `async with`")
        return self._client

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        *,
        body: bytes | None,
        traceparent: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request to the chatbot, with the target's headers and `more`."""
        headers = self.headers
        if traceparent or more:
            headers = {**headers, **(more or {})}
            if traceparent:
                headers["traceparent"] = traceparent
        return await self.client.request(
            method, endpoint, headers=headers, body=body, most_bytes=self.most_bytes
        )

    def failure_reply(self, error: Exception) -> Reply:
        """The reply for one of FAILURES; raises RetryableError if the server did not work on the question."""
        if isinstance(error, ReplyTooLargeError):
            return too_large(self.most_bytes / _MEGABYTE)
        if isinstance(error, NotHttpError):
            return Reply(failure=Failure("malformed", failure_message(self._secrets.redact(str(error)))))
        if isinstance(error, OSError) and error.errno in _LOCAL:
            message = failure_message(f"out of sockets, ports or memory on this machine: {error}")
            raise RetryableError(Failure("local_resources", message)) from error
        if isinstance(error, ssl.SSLError):
            # The client's own verdict, or the server's about the client's certificate; the chatbot was not asked.
            return Reply(failure=Failure("configuration", tls_problem(error)))
        if is_refused(error):
            message = failure_message(self._secrets.redact(f"{self._name}: connection refused"))
            raise RetryableError(Failure("connection", message)) from error
        failure = failure_from_exception(error, self._secrets.redact)
        if isinstance(error, OSError) and failure.kind == "exception":
            # Names that do not resolve, unreachable networks.
            failure = Failure("connection", failure.message)
        return Reply(failure=failure)

    async def setup_problem(self, endpoint: Endpoint) -> Reply | None:
        """The reply where the first request failed since the connection is set up wrongly, which its error need not show.

        Asked for http, servers that speak TLS answer 400 or close the connection; those that want a client certificate
        send an alert, which may be lost with the connection.
        """
        if self.answered:
            return None
        if self._problem is None:
            if endpoint.tls:
                self._problem = await _tls_refusal(endpoint, self.tls)
            elif await _speaks_tls(endpoint):
                self._problem = f"{self._name}: the server speaks TLS; write https:// in the address"
            else:
                self._problem = ""
        return Reply(failure=Failure("configuration", self._problem)) if self._problem else None

    def _make_tls(self) -> ssl.SSLContext:
        settings, where = self._tls_settings, f"target {self._name}:"
        password = self._secrets.expand(settings.key_password, f"{where} key_password")
        settings = msgspec.structs.replace(settings, key_password=password)
        files = {name: getattr(settings, name) for name in ("ca_file", "cert_file", "key_file")}
        for name, path in files.items():
            if path is not None and not Path(path).is_file():
                raise ConfigError(f"{where} {name} {path} cannot be used: there is no such file")
        try:
            return make_tls(settings)
        except (OSError, ValueError) as error:
            used = ", ".join(f"{name} {path}" for name, path in files.items() if path is not None)
            raise ConfigError(failure_message(f"{where} {used} cannot be used: {error}")) from None


# Reasons of OpenSSL for bytes that are not TLS, and the alerts of a server that wants another client certificate.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_CLIENT_CERTIFICATE = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")


def tls_problem(error: ssl.SSLError) -> str:
    """What is wrong with a TLS connection, and its remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = failure_message(error.verify_message)
        return (
            f"the server's certificate is not trusted ({why}); name its authority with ca_file under "
            "[targets.NAME.tls], or for a test server set verify = false"
        )
    reason = error.reason or str(error)
    if any(mark in reason for mark in _NOT_TLS):
        return "the server does not speak TLS at this port; write http:// in the address"
    if any(mark in reason for mark in _CLIENT_CERTIFICATE):
        return (
            f"the server refused the connection ({reason.lower().replace('_', ' ')}); "
            "give a client certificate with cert_file and key_file under [targets.NAME.tls]"
        )
    return failure_message(f"TLS failed ({reason}); check the address and [targets.NAME.tls]")


async def _speaks_tls(endpoint: Endpoint) -> bool:
    """Whether a server completes a TLS handshake, or ends it with an alert of TLS."""
    tls = make_tls(TlsSettings(verify=False))
    try:
        # A server of plain HTTP may wait for the rest of what it takes for a request.
        async with asyncio.timeout(_REFUSAL_S):
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except (TimeoutError, OSError, UnicodeError):
        return False
    writer.close()
    return True


def is_refused(error: BaseException) -> bool:
    """Whether nothing listens; for a name with several addresses the error combines one for each."""
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)
    )


async def _tls_refusal(endpoint: Endpoint, tls: ssl.SSLContext | None) -> str:
    """Why a server ends a connection after the handshake, as one without a client certificate; empty if it does not."""
    try:
        async with asyncio.timeout(_REFUSAL_S):
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
            try:
                await reader.read(1)
            finally:
                writer.close()
    except ssl.SSLError as error:
        return tls_problem(error)
    except (TimeoutError, ConnectionRefusedError):
        # It waits for a request, or is gone.
        return ""
    except OSError:
        pass
    return (
        "the server ends the connection after the TLS handshake, before a request; if it wants a client certificate, "
        "give cert_file and key_file under [targets.NAME.tls]"
    )


async def _preflight(endpoint: Endpoint, display_url: str, tls: ssl.SSLContext | None) -> None:
    """Stop before the first question if nothing listens at the address, or TLS fails."""
    try:
        # A server of plain HTTP may wait for the rest of what it takes for a request.
        async with asyncio.timeout(_REFUSAL_S):
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
    except ssl.SSLError as error:
        raise TargetUnreachableError(f"{display_url}: {tls_problem(error)}") from None
    except TimeoutError:
        raise TargetUnreachableError(
            f"{display_url} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?",
        ) from None
    except (OSError, UnicodeError) as error:
        reason = "connection refused" if is_refused(error) else failure_message(str(error))
        raise TargetUnreachableError(
            f"nothing answers at {display_url} ({reason}); is the chatbot running and the address right?",
        ) from None
    writer.close()


class Login:
    """Logs in, and again when the token or cookies have expired."""

    def __init__(self, settings: LoginSettings, name: str, secrets: Secrets, session: TargetSession) -> None:
        self._settings = settings
        self._where = f"[targets.{name}.login]"
        self._secrets = secrets
        self._session = session
        self._lock = asyncio.Lock()
        # Number of logins.
        self.count = 0
        self.cookies: dict[str, str] = {}
        expand = secrets.expand
        try:
            self._endpoint: Endpoint = read_endpoint(expand(settings.url, f"{self._where} url"))
        except ValueError:
            raise ConfigError(f"{self._where} url is not an http:// or https:// address") from None
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers |= expand(settings.headers, f"{self._where} headers")
        self._body = msgspec.json.encode(expand(settings.body, f"{self._where} body"))

    async def log_in(self, seen: int) -> None:
        """Log in, unless another question has done so since `count` was `seen`."""
        async with self._lock:
            if self.count > seen:
                return
            content = await self._send()
            if self._settings.token is not None:
                token = self._find(content)
                self._secrets.add("LOGIN_TOKEN", token)
                self._session.headers[self._settings.header] = f"{self._settings.prefix}{token}"
            self.count += 1

    async def _send(self) -> bytes:
        try:
            async with await self._session.client.request(
                self._settings.method.upper(), self._endpoint, headers=self._headers, body=self._body
            ) as response:
                content = await response.read(_LONGEST_REPLY)
                self.cookies |= read_cookies(response.set_cookies)
        except (OSError, ValueError) as error:
            reason = failure_message(self._secrets.redact(str(error)))
            raise TargetUnreachableError(f"{self._where} cannot log in: {reason}; check its url") from None
        if response.status >= 300:
            reason = failure_message(self._secrets.redact(content.decode("utf-8", "replace")), 200)
            raise TargetUnreachableError(
                f"{self._where} cannot log in: HTTP {response.status}: {reason or response.reason}; check its url and body"
            )
        return content

    def _find(self, content: bytes) -> str:
        import jmespath  # few targets have a login

        expression = self._settings.token or ""
        try:
            token = jmespath.search(expression, decode_json(content.decode("utf-8", "replace")))
        except ValueError as error:
            raise ConfigError(
                f"{self._where} token = {expression!r}: {failure_message(str(error))}"
            ) from None
        if not isinstance(token, str) or not token or any(char in token for char in "\r\n\0"):
            raise TargetUnreachableError(
                f"{self._where} token = {expression!r} finds no token in the reply; correct the expression"
            )
        return token


def read_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name → value of `Set-Cookie` headers; empty for a cookie that is deleted."""
    cookies: dict[str, str] = {}
    for line in lines:
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            expired = any(part.replace(" ", "").lower() == "max-age=0" for part in attributes)
            cookies[name.strip()] = "" if expired else value.strip()
    return cookies


def cookie_header(*jars: Mapping[str, str] | None) -> dict[str, str]:
    """The header Cookie; of two cookies with the same name the later is sent."""
    joined = {name: value for cookies in jars for name, value in (cookies or {}).items()}
    text = "; ".join(f"{name}={value}" for name, value in joined.items() if value)
    return {"Cookie": text} if text else {}
