"""The target `http(s)://…`: a chatbot behind an HTTP endpoint, asked with JSON and answering with JSON, text or a stream."""

import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.protocols import Ask, RetryableError, Target, TargetContext
from answerkey.targets.http_client import read_endpoint
from answerkey.targets.http_login import Login, cookie_header, read_cookies
from answerkey.targets.http_reply import read_error, read_reply
from answerkey.targets.http_session import Conversations, TargetSession, UnderWay
from answerkey.targets.http_settings import HttpSettings
from answerkey.targets.request_template import compile_template, encode_body, values_of
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.json_shapes import as_dict

_MEGABYTE = 1024 * 1024


def make_http_target(rest: str, context: TargetContext) -> Target:
    """The factory of the kind `url`."""
    settings = read_settings(context, HttpSettings)
    if settings.url.startswith(("ws://", "wss://")):
        from answerkey.targets.websocket_target import WebSocketTarget  # few chatbots have one

        return WebSocketTarget(settings, name=context.name, concurrency=context.concurrency)
    return HttpTarget(settings, name=context.name, concurrency=context.concurrency)


class HttpTarget:
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
            most_bytes=int(settings.max_reply_mb * _MEGABYTE),
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
