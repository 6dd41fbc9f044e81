"""The target `http(s)://…`: a chatbot behind an HTTP endpoint, asked with JSON and answering with JSON, text or a stream."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, TargetContext
from answerkey.targets.chat_histories import Conversations
from answerkey.targets.http_reply import read_error, read_reply
from answerkey.targets.http_session import HttpClient
from answerkey.targets.request_template import compile_template, values_of
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.targets.stopwatch import Stopwatch
from answerkey.targets.table_settings import read_settings
from answerkey.transcripts.conversation import asked_in
from answerkey.transcripts.json_shapes import as_dict
from answerkey.transcripts.reply_mapping import ReplyMapping

__all__ = ["HttpSettings", "HttpTarget", "make_http_target"]

_MEGABYTE = 1024 * 1024


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
    max_reply_mb: float = 16.0


def make_http_target(rest: str, context: TargetContext) -> "HttpTarget":
    """The factory of the kind `url`."""
    return HttpTarget(
        read_settings(context, HttpSettings), name=context.name, concurrency=context.concurrency
    )


class HttpTarget:
    """An HTTP endpoint as a chatbot."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        secrets: Secrets | None = None,
    ) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(f"url = {safe_url(settings.url)!r} is not an http:// or https:// address")
        self.name = name or safe_url(settings.url)
        self.fingerprint = settings_hash(
            "http", msgspec.structs.replace(settings, url=safe_url(settings.url))
        )
        self._settings = settings
        self._secrets = secrets or Secrets()
        self._concurrency = concurrency
        self._client = HttpClient(
            self.name, self._secrets, verify_tls=settings.verify_tls, ca_file=settings.ca_file
        )
        self._most_bytes = int(settings.max_reply_mb * _MEGABYTE)
        self._conversations = Conversations(concurrency)

    async def __aenter__(self) -> "HttpTarget":
        from yarl import URL

        settings, expand = self._settings, self._secrets.expand
        where = f"target {self.name}:"
        try:
            url = URL(expand(settings.url, f"{where} url", private=True))
        except ValueError:
            raise ConfigError(f"{where} url is not a valid address") from None
        query = expand(settings.query, f"{where} query", private=True)
        self._query = compile_template(query, f"{where} query")
        if url.user is not None or url.password is not None:
            self._secrets.add("URL_PASSWORD", url.password or url.user or "")
        self._url = url
        self._body = compile_template(expand(self._body_template(), f"{where} body"), f"{where} body")
        headers = {
            "Accept": "application/json, text/event-stream, application/x-ndjson, text/plain;q=0.5",
            "User-Agent": "answerkey",
        }
        self._method = settings.method.upper()
        self._has_body = self._method not in ("GET", "HEAD")
        if self._has_body and not _names_type(settings.headers):
            headers["Content-Type"] = "application/json"
        headers.update(expand(settings.headers, f"{where} headers", private=True))
        await self._client.open(url, self.name, headers, connections=self._concurrency)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.close()

    async def ask(self, ask: Ask) -> Reply:
        """One request. 429, 503 and a refused connection are for the engine to retry."""
        watch = Stopwatch()
        reply = await self._client.reply(self._exchange(ask, watch))
        return msgspec.structs.replace(reply, timings=watch.timings())

    async def _exchange(self, ask: Ask, watch: Stopwatch) -> Reply:
        messages = None
        if "messages" in self._body.names:
            messages = self._conversations.begin_turn(ask.conversation_id, ask.question, ask.turn)
        values = values_of(ask, messages)
        async with self._client.request(
            self._method,
            self._url,
            traceparent=ask.traceparent,
            params=_query(self._query.fill(values)) if self._settings.query else None,
            data=_encoded(self._body.fill(values)) if self._has_body else None,
        ) as response:
            if response.status >= 300:
                reply = await read_error(response, self._secrets, self._settings.reply)
            else:
                reply = await read_reply(
                    response, self._most_bytes, self._settings.reply, self._secrets, watch, asked_in(ask)
                )
        if messages is not None:
            self._conversations.end_turn(ask.conversation_id, messages, reply.text)
        return msgspec.structs.replace(reply, trace_id=reply.trace_id or _trace_id(ask.traceparent))

    def _body_template(self) -> object:
        body = self._settings.body
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


def _encoded(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, ValueError):
        import json

        # A lone surrogate in a question is sent as the escape that it is in the golden set.
        return json.dumps(body).encode()


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
