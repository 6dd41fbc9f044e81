"""The settings of a chatbot behind an address, as `[targets.NAME]` has them."""

import asyncio
import errno
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.protocols import Ask, BaseTarget, RetryableError, Target, TargetContext
from answerkey.targets.http_client import (
    Endpoint,
    HttpClient,
    NotHttpError,
    ReplyTooLargeError,
    Response,
    make_tls,
    read_endpoint,
)
from answerkey.targets.http_reply import read_error, read_reply
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.json_values import MOST_MEGABYTES, as_dict, decode_json, too_large
from answerkey.transcripts.payloads import ReplyMapping

# Request templates: `{{question}}` and the like in a JSON structure, filled in as values and never pasted as text.


# What a template may name. The question's id and expectations are not among them: a chatbot never sees those.
VARIABLES = ("question", "conversation_id", "turn", "trial", "context", "messages")

_SLOT = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_Fill = Callable[[Mapping[str, object]], object]


class Template(msgspec.Struct, frozen=True):
    """A compiled template."""

    fill: _Fill
    # The variables that it names.
    names: frozenset[str]


def compile_template(template: object, where: str) -> Template:
    """A template that is checked once and filled for every question; `where` names the setting in errors."""
    names: set[str] = set()
    return Template(_compile(template, where, names), frozenset(names))


def values_of(ask: Ask, messages: list[dict[str, str]] | None = None) -> dict[str, object]:
    """What the variables stand for in one ask."""
    return {
        "question": ask.question,
        "conversation_id": ask.conversation_id,
        "turn": ask.turn,
        "trial": ask.trial,
        "context": ask.context,
        "messages": messages,
    }


def encode_body(body: object) -> bytes:
    """What a filled template comes to, as JSON."""
    try:
        return msgspec.json.encode(body)
    except ValueError:
        import json

        # A lone surrogate in a question is sent as the escape that it is in the golden set.
        return json.dumps(body).encode()


def _compile(template: object, where: str, names: set[str]) -> _Fill:
    if isinstance(template, str):
        return _compile_text(template, where, names)
    if isinstance(template, Mapping):
        parts = [
            (_compile_text(str(key), where, names), _compile(part, where, names))
            for key, part in template.items()
        ]
        return lambda values: {str(key(values)): part(values) for key, part in parts}
    if isinstance(template, (list, tuple)):
        items = [_compile(part, where, names) for part in template]
        return lambda values: [item(values) for item in items]
    return lambda values: template


def _compile_text(template: str, where: str, names: set[str]) -> _Fill:
    found = _SLOT.findall(template)
    for name in found:
        if name not in VARIABLES:
            close = get_close_matches(name, VARIABLES, n=1)
            hint = f"did you mean {{{{{close[0]}}}}}?" if close else f"there are {', '.join(VARIABLES)}"
            raise ConfigError(f"{where} names {{{{{name}}}}}, which is unknown; {hint}")
    names.update(found)
    if not found:
        return lambda values: template
    whole = _SLOT.fullmatch(template)
    if whole:
        # A slot that is the whole string keeps its type: a number stays a number, the messages a list.
        name = whole[1]
        return lambda values: values[name]
    return lambda values: _SLOT.sub(lambda slot: _as_text(values[slot[1]]), template)


def _as_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


# What is sent with every request since a server gave it: a login's token and cookies, and the cookies of a conversation.


_LONGEST_REPLY = 1024 * 1024


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME.login]`; `${ENV}` is expanded in its url, headers and body."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    # Sent as JSON.
    body: dict[str, Any] = {}
    # Where the reply has the token, in JMESPath; None: it only sets cookies.
    token: str | None = None
    # The header that carries the token from then on, and what stands before it.
    header: str = "Authorization"
    prefix: str = "Bearer "


class Login:
    """Logs in, and again when what it was given has run out."""

    def __init__(
        self, settings: LoginSettings, name: str, secrets: Secrets, session: "TargetSession"
    ) -> None:
        self._settings = settings
        self._where = f"[targets.{name}.login]"
        self._secrets = secrets
        self._session = session
        self._lock = asyncio.Lock()
        # How often it has logged in.
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
        """Log in, unless somebody has since `count` was `seen`."""
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
            said = failure_message(self._secrets.redact(content.decode("utf-8", "replace")), 200)
            raise TargetUnreachableError(
                f"{self._where} cannot log in: HTTP {response.status}: {said or response.reason}; check its url and body"
            )
        return content

    def _find(self, content: bytes) -> str:
        import jmespath  # only where there is a login

        expression = self._settings.token or ""
        try:
            found = jmespath.search(expression, decode_json(content.decode("utf-8", "replace")))
        except ValueError as error:
            raise ConfigError(
                f"{self._where} token = {expression!r}: {failure_message(str(error))}"
            ) from None
        if not isinstance(found, str) or not found or any(char in found for char in "\r\n\0"):
            raise TargetUnreachableError(
                f"{self._where} token = {expression!r} finds no token in the reply; say where it is"
            )
        return found


def read_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name → value of `Set-Cookie` headers; one that is taken back has an empty value."""
    found: dict[str, str] = {}
    for line in lines:
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            expired = any(part.replace(" ", "").lower() == "max-age=0" for part in attributes)
            found[name.strip()] = "" if expired else value.strip()
    return found


def cookie_header(*kept: Mapping[str, str] | None) -> dict[str, str]:
    """The header that sends them back; of two with one name the later counts."""
    joined = {name: value for cookies in kept for name, value in (cookies or {}).items()}
    text = "; ".join(f"{name}={value}" for name, value in joined.items() if value)
    return {"Cookie": text} if text else {}


# The requests of one target: its headers, its connections, and what a connection that fails comes to.


_PREFLIGHT_S = 10.0
_MEGABYTE = 1024 * 1024
# What an exchange may raise that is no mistake of ours.
FAILURES = (ReplyTooLargeError, NotHttpError, OSError, EOFError, ValueError)
# This machine has run out of something, which says nothing of the chatbot.
_LOCAL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))


class TargetSession:
    """What one target sends, and what comes of it."""

    def __init__(
        self,
        name: str,
        secrets: Secrets,
        *,
        verify_tls: bool,
        ca_file: str | None,
        most_bytes: int,
        reuse: bool = True,
    ) -> None:
        # The target's, for errors.
        self._name = name
        self._secrets = secrets
        self._verify_tls = verify_tls
        self._ca_file = ca_file
        self._most_bytes = most_bytes
        self._reuse = reuse
        self._client: HttpClient | None = None
        self.headers: dict[str, str] = {}

    async def open(self, endpoint: Endpoint, shown: str, headers: Mapping[str, str]) -> None:
        """Open it; `shown` is what errors call the address, and nothing answering there is an error at once."""
        for header, value in headers.items():
            if any(char in header + value for char in "\r\n\0"):
                raise ConfigError(f"target {self._name}: the header {header!r} has a line break in it")
            if header.lower() == "authorization" and endpoint.authorization is not None:
                raise ConfigError(
                    f"target {self._name}: the address has a user and password and the headers an Authorization; "
                    "keep one of the two"
                )
        self.headers = dict(headers)
        tls = self._tls() if endpoint.tls else None
        await _preflight(endpoint, shown)
        self._client = HttpClient(tls=tls, reuse=self._reuse)

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def client(self) -> HttpClient:
        """The client itself, which sends none of the target's headers."""
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
        # A redirect could carry the headers' secrets to another server, so none is followed.
        return await self.client.request(
            method, endpoint, headers=headers, body=body, most_bytes=self._most_bytes
        )

    async def reply(self, exchange: Awaitable[Reply]) -> Reply:
        """What an exchange gives; a connection that is refused is for the engine to retry, others are failures."""
        try:
            return await exchange
        except FAILURES as error:
            return self.failed(error)

    def failed(self, error: Exception) -> Reply:
        """What an exchange that raised one of FAILURES comes to; raises RetryableError where it was turned away."""
        if isinstance(error, ReplyTooLargeError):
            return too_large(self._most_bytes / _MEGABYTE)
        if isinstance(error, NotHttpError):
            return Reply(failure=Failure("malformed", failure_message(self._secrets.redact(str(error)))))
        if isinstance(error, OSError) and error.errno in _LOCAL:
            message = failure_message(f"this machine has run out of what connections need: {error}")
            raise RetryableError(Failure("local_resources", message)) from error
        if is_refused(error):
            message = failure_message(self._secrets.redact(f"{self._name}: connection refused"))
            raise RetryableError(Failure("connection", message)) from error
        failure = failure_from_exception(error, self._secrets.redact)
        if isinstance(error, OSError) and failure.kind == "exception":
            # Names that do not resolve, certificates that do not hold, networks that are not there.
            failure = Failure("connection", failure.message)
        return Reply(failure=failure)

    def _tls(self) -> ssl.SSLContext:
        try:
            return make_tls(verify=self._verify_tls, ca_file=self._ca_file)
        except (OSError, ssl.SSLError) as error:
            message = f"target {self._name}: ca_file {self._ca_file} cannot be used: {error}"
            raise ConfigError(message) from None


def is_refused(error: BaseException) -> bool:
    """Whether nobody listens; a name with several addresses has an error for each of them in one."""
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)
    )


async def _preflight(endpoint: Endpoint, shown: str) -> None:
    """Stop before the first question if nothing listens at the address at all."""
    try:
        async with asyncio.timeout(_PREFLIGHT_S):
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except TimeoutError:
        raise TargetUnreachableError(
            f"{shown} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?",
        ) from None
    except (OSError, UnicodeError) as error:
        reason = "connection refused" if is_refused(error) else failure_message(str(error))
        raise TargetUnreachableError(
            f"nothing answers at {shown} ({reason}); is the chatbot running and the address right?",
        ) from None
    writer.close()


Messages = list[dict[str, str]]
_Kept = TypeVar("_Kept")


class UnderWay(Generic[_Kept]):
    """Something for each conversation. Only those under way are kept, so that memory stays flat."""

    def __init__(self, at_once: int) -> None:
        # A conversation's turns are asked one after the other, so older ones than these are over.
        self._most = 2 * at_once + 16
        self._kept: dict[str, _Kept] = {}

    def get(self, conversation_id: str) -> _Kept | None:
        """What is kept for a conversation."""
        return self._kept.get(conversation_id)

    def keep(self, conversation_id: str, value: _Kept) -> None:
        """Keep it for the turns to come."""
        self._kept.pop(conversation_id, None)
        self._kept[conversation_id] = value
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]


class Conversations:
    """What was said so far in each conversation."""

    def __init__(self, at_once: int) -> None:
        self._said: UnderWay[Messages] = UnderWay(at_once)

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        # A retried or repeated turn starts again from where it stood.
        before = (self._said.get(conversation_id) or [])[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Keep what was answered for the turns to come."""
        self._said.keep(conversation_id, [*sent, {"role": "assistant", "content": answer or ""}])


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of an HTTP target; `${ENV}` is expanded in its url, headers, query and body when it opens."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    query: dict[str, Any] = {}
    # The request's JSON, with "{{question}}" and the like in it; JSON text is taken too.
    body: dict[str, Any] | list[Any] | str | None = None
    # Where the reply has its parts, when not under the usual names.
    reply: ReplyMapping | None = None
    # False: accept any certificate (a test server's own).
    verify_tls: bool = True
    # A PEM file with the authority that signed the server's certificate.
    ca_file: str | None = None
    # A reply that is larger is a failure.
    max_reply_mb: float = MOST_MEGABYTES
    # False, for a chatbot that must never get a question twice: each has a connection of its own.
    retry_reused: bool = True
    # A request before the first question that gives a token or cookies.
    login: LoginSettings | None = None
    # Of a WebSocket, which message is the last of a reply, in JMESPath; None: every message is a reply.
    last: str | None = None


# The target `http(s)://…`: a chatbot behind an HTTP endpoint, asked with JSON and answering with JSON, text or a stream.


_MEGABYTE_HTTP_TARGET = 1024 * 1024


def make_http_target(rest: str, context: TargetContext) -> Target:
    """The factory of the kind `url`."""
    settings = read_settings(context, HttpSettings)
    if settings.url.startswith(("ws://", "wss://")):
        from answerkey.targets.websocket_target import WebSocketTarget  # few chatbots have one

        return WebSocketTarget(settings, name=context.name, concurrency=context.concurrency)
    return HttpTarget(settings, name=context.name, concurrency=context.concurrency)


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
    ) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https", "ws", "wss") or not parts.netloc:
            raise ConfigError(f"url = {safe_url(settings.url)!r} is not an http:// or https:// address")
        self.name = name or safe_url(settings.url)
        self.fingerprint = settings_hash(
            self.kind, msgspec.structs.replace(settings, url=safe_url(settings.url))
        )
        self.settings = settings
        self.secrets = secrets or Secrets()
        self._session = TargetSession(
            self.name,
            self.secrets,
            verify_tls=settings.verify_tls,
            ca_file=settings.ca_file,
            most_bytes=int(settings.max_reply_mb * _MEGABYTE_HTTP_TARGET),
            reuse=settings.retry_reused,
        )
        self._login: Login | None = None
        self._conversations = Conversations(concurrency)
        # What the server gave a conversation: its id, and its cookies.
        self._issued: UnderWay[str] = UnderWay(concurrency)
        self._cookies: UnderWay[dict[str, str]] = UnderWay(concurrency)
        self._server_issues = settings.reply is not None and settings.reply.conversation_id is not None

    def _expanded(self, value: object, setting: str) -> Any:
        return self.secrets.expand(value, f"target {self.name}: {setting}")

    def _prepare(self) -> None:
        """Read what is said of the requests."""
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

    async def ask(self, ask: Ask) -> Reply:
        """One request. 429, 503 and a refused connection are for the engine to retry."""
        return await self._session.reply(self._converse(ask))

    async def _converse(self, ask: Ask) -> Reply:
        """One turn, with what the conversation has so far."""
        messages = None
        if "messages" in self._body.names:
            messages = self._conversations.begin_turn(ask.conversation_id, ask.question, ask.turn)
        values = values_of(ask, messages)
        if self._server_issues:
            # The server names a conversation in its first reply; before that it has no name.
            values["conversation_id"] = self._issued.get(ask.conversation_id) if ask.turn else None
        seen = 0 if self._login is None else self._login.count
        reply, status = await self._exchange(ask, values)
        if status == 401 and self._login is not None:
            # What the login gave has run out, which is nothing that the chatbot did.
            try:
                await self._login.log_in(seen)
            except (TargetUnreachableError, ConfigError) as error:
                raise RetryableError(Failure("login", str(error))) from error
            reply, _ = await self._exchange(ask, values)
        if self._server_issues and reply.conversation_id:
            self._issued.keep(ask.conversation_id, reply.conversation_id)
        if messages is not None:
            self._conversations.end_turn(ask.conversation_id, messages, reply.text)
        return reply

    async def _exchange(self, ask: Ask, values: dict[str, object]) -> tuple[Reply, int]:
        """One request and what comes back, with its status."""
        asked = time.perf_counter()
        kept = self._cookies.get(ask.conversation_id) if ask.turn else None
        given = None if self._login is None else self._login.cookies
        query = _query(self._query.fill(values)) if self.settings.query else {}
        async with await self._session.request(
            self._method,
            self._endpoint.with_query(query),
            body=encode_body(self._body.fill(values)) if self._has_body else None,
            traceparent=ask.traceparent,
            more=cookie_header(given, kept) if given or kept else None,
        ) as response:
            if response.status >= 300:
                reply = await read_error(response, self.secrets, self.settings.reply)
            else:
                reply = await read_reply(
                    response, self.settings.reply, self.secrets, Asked(ask.question, ask.turn, ask.turn > 0)
                )
        if response.set_cookies:
            self._cookies.keep(ask.conversation_id, {**(kept or {}), **read_cookies(response.set_cookies)})
        timings = Timings(
            latency_ms=1000 * (response.last_byte - response.begun),
            first_byte_ms=1000 * (response.first_byte - response.begun),
            # A request that died with its kept-alive connection was sent again; that is the harness's time.
            retry_ms=1000 * (response.begun - asked) if response.resent else 0.0,
            attempts=2 if response.resent else 1,
        )
        trace_id = reply.trace_id or _trace_id(ask.traceparent)
        return msgspec.structs.replace(reply, timings=timings, trace_id=trace_id), response.status

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


def _trace_id(traceparent: str | None) -> str | None:
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 else None
