"""JudgeClient: one OpenAI-compatible endpoint, asked over HTTP with pacing, retries and what each model understands."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.engine.pacing import LONGEST_WAIT, Pacer, backoff
from answerkey.errors import ConfigError
from answerkey.judge.ledger import read_spent
from answerkey.judge.verdict import UnjudgedError
from answerkey.model.judge_answer import Spent
from answerkey.model.options import JudgeSettings
from answerkey.model.prices import Price, price_of
from answerkey.targets.http_client import Endpoint, HttpClient, NotHttpError, read_endpoint
from answerkey.targets.http_reply import retry_after_seconds
from answerkey.targets.http_session import is_refused
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_message

__all__ = ["Completion", "JudgeClient"]

_OPENAI = "https://api.openai.com/v1"
_MOST_BYTES = 4 * 1024 * 1024
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
# So many calls in a row that found nobody there: the endpoint is down, and nothing more is asked of it.
_DOWN_AFTER = 10
# Calls under way at once where nobody says how many.
_AT_ONCE = 10
# How long a connection may take to be made, and what a refusal takes beyond the trips of its messages.
_CONNECT_S = 5.0
_REFUSAL_S = 0.01
_REFUSAL_TRIPS = 5
# Ways to ask for JSON, strictest first; an endpoint that refuses one is asked in the next.
_FORMATS = ("json_schema", "json_object", "plain")


class Completion(msgspec.Struct, frozen=True):
    """What a model answered."""

    text: str
    # What it said instead, if it refused.
    refusal: str | None
    finish: str | None
    spent: Spent


class _FailedCallError(Exception):
    """A request without a completion that may be made again."""

    def __init__(self, reason: str, wait: float | None = 0.0) -> None:
        super().__init__(reason)
        # Seconds; 0 for the usual. None: it will be put differently, which is no retry.
        self.wait = wait


class _Dialect(msgspec.Struct):
    """What one model has turned out to understand."""

    # Which of _FORMATS.
    format: int = 0
    # Parameters that it does not take.
    dropped: set[str] = msgspec.field(default_factory=set)


class JudgeClient:
    """Asks judges at one endpoint."""

    def __init__(
        self, settings: JudgeSettings, prices: Mapping[str, Price], *, endpoint: str | None = None
    ) -> None:
        base = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"[judge] base_url = {base!r} is not an http:// or https:// address")
        if parts.username or parts.password or parts.query:
            raise ConfigError(
                "[judge] base_url holds a name, password or query; put the key into an environment variable "
                "and name that with api_key_env"
            )
        self.base_url = base.rstrip("/")
        self._settings = settings
        self._prices = prices
        self._address = (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
        loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
        # What a judgement's key knows of the endpoint. The local judge has another port each time it is started.
        self.endpoint = endpoint or parts.netloc
        self._secrets = Secrets()
        self._key = self._read_key(optional=loopback)
        self._pacer = Pacer(settings.rate)
        # One for each call that may be under way; whoever calls takes one first.
        self.at_once = settings.concurrency or _AT_ONCE
        self.slots = asyncio.Semaphore(self.at_once)
        self._dialects = {model: _Dialect() for model in settings.models}
        self._client: HttpClient | None = None
        self._endpoint: Endpoint | None = None
        self._headers: dict[str, str] = {}
        self._nobody_there = 0
        # Model (or "" for all) → why nothing more is asked of it.
        self._down: dict[str, str] = {}

    def price(self, model: str) -> Price | None:
        """What a judge costs, if that is known."""
        return self._settings.prices or price_of(model, self._prices, base_url=self.base_url)

    def _read_key(self, *, optional: bool) -> str | None:
        name = self._settings.api_key_env
        key = os.environ.get(name, "").strip() if name else ""
        if key:
            if any(char in key for char in "\r\n\0"):
                raise ConfigError(f"the judge's key in {name} has a line break in it")
            self._secrets.add(name, key)
            return key
        if name and not optional:
            raise ConfigError(
                f"the judge at {self.base_url} needs a key: export {name}=…, "
                'or set [judge] api_key_env = "" if it takes none, or use --judge local'
            )
        return None

    async def __aenter__(self) -> "JudgeClient":
        # Read once, not for every call.
        self._endpoint = read_endpoint(f"{self.base_url}/chat/completions")
        self._headers = {
            "User-Agent": "answerkey",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        if self._key is not None:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._client = HttpClient()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def time_to_refuse(self) -> float | None:
        """Seconds within which the endpoint would have refused a wrong key or model; None if nobody is there.

        A refusal takes a few trips to and fro (connecting, TLS, the request), a verdict much longer.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(*self._address)
        except OSError:
            return None
        trip = loop.time() - begun
        writer.close()
        return _REFUSAL_S + _REFUSAL_TRIPS * trip

    def document(self) -> dict[str, Any]:
        """The endpoint, how each model was asked for JSON, and parameters that one did not take and was asked without."""
        dialects = self._dialects.items()
        return {
            "endpoint": self.endpoint,
            "response_format": {model: _FORMATS[dialect.format] for model, dialect in dialects},
            "dropped_parameters": {model: sorted(d.dropped) for model, d in dialects if d.dropped},
        }

    async def complete(
        self, model: str, messages: list[dict[str, str]], schema: dict[str, Any], *, seed: int
    ) -> Completion:
        """Ask a model; raises UnjudgedError when it cannot be asked, after the retries that may help."""
        attempt = 1
        while True:
            down = self._down.get("") or self._down.get(model)
            if down is not None:
                raise _unreachable(down)
            await self._pacer.turn()
            try:
                completion = await self._attempt(model, messages, schema, seed)
            except _FailedCallError as failed:
                if failed.wait is None:
                    continue
                if attempt > self._settings.retries or failed.wait > LONGEST_WAIT:
                    self._note_absence(str(failed))
                    raise _unreachable(str(failed)) from None
                await asyncio.sleep(failed.wait or backoff(attempt))
                attempt += 1
            else:
                self._nobody_there = 0
                return completion

    async def _attempt(
        self, model: str, messages: list[dict[str, str]], schema: dict[str, Any], seed: int
    ) -> Completion:
        """One request."""
        if self._client is None or self._endpoint is None:
            raise _unreachable("the judge is not open")
        body = self._body(model, messages, schema, seed)
        try:
            # A redirect could carry the key to another server, and is not followed.
            async with (
                asyncio.timeout(self._settings.timeout),
                await self._client.request(
                    "POST", self._endpoint, headers=self._headers, body=msgspec.json.encode(body)
                ) as response,
            ):
                content = await response.read(_MOST_BYTES)
                status, retry_after = response.status, response.headers.get("retry-after")
        except TimeoutError:
            raise _FailedCallError(f"the judge gave no answer within {self._settings.timeout:g} s") from None
        except (OSError, NotHttpError) as error:
            said = self._said(f"the judge at {self.base_url} cannot be reached: {_cause(error)}")
            raise _FailedCallError(said) from None
        if status == 200:
            return self._completion(content, self.price(model))
        message, param, code = _error(content)
        reason = self._said(f"the judge {model} answered HTTP {status}: {message or 'no reason given'}")
        if status in (400, 422):
            # Another call may have learnt meanwhile what this model does not take.
            learnt = self._body(model, messages, schema, seed) != body
            if learnt or self._adapt(self._dialects[model], message, param):
                raise _FailedCallError(reason, wait=None)
            if code == "content_filter":
                return Completion("", message or "content filter", "content_filter", Spent())
            raise _unreachable(reason)
        if status in _RETRIED and code != "insufficient_quota":
            raise self._paused(reason, retry_after_seconds(retry_after))
        self._down[model] = reason = self._with_remedy(model, status, reason)
        raise _unreachable(reason)

    def _paused(self, reason: str, asked: float | None) -> _FailedCallError:
        """A refusal that may pass, after the time that the endpoint asked for, which the other calls wait for too."""
        if asked is None:
            return _FailedCallError(reason)
        if asked > LONGEST_WAIT:
            # Nobody waits so long; the others need not wait either to learn it.
            return _FailedCallError(f"{reason}; it asks to wait {asked:g} s", asked)
        self._pacer.pause(asked)
        return _FailedCallError(reason, asked or 0.01)

    def _with_remedy(self, model: str, status: int, reason: str) -> str:
        if 300 <= status < 400:
            return f"the judge at {self.base_url} redirects (HTTP {status}); use the address it redirects to"
        remedies = {
            401: f"; check the key in {self._settings.api_key_env or 'the endpoint'}",
            403: "; check what the key is allowed",
            404: f"; check the model's name ({model}) and base_url ({self.base_url})",
        }
        return reason + remedies.get(status, "")

    def _body(
        self, model: str, messages: list[dict[str, str]], schema: dict[str, Any], seed: int
    ) -> dict[str, Any]:
        settings, dialect = self._settings, self._dialects[model]
        body: dict[str, Any] = {
            "model": model,
            "messages": messages,
            "temperature": settings.temperature,
            "seed": seed,
        }
        if settings.max_tokens is not None:
            name = "max_completion_tokens" if "max_tokens" in dialect.dropped else "max_tokens"
            body[name] = settings.max_tokens
        if _FORMATS[dialect.format] == "json_schema":
            named = {"name": "verdict", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif _FORMATS[dialect.format] == "json_object":
            body["response_format"] = {"type": "json_object"}
        kept = {name: value for name, value in body.items() if name not in dialect.dropped}
        return {**kept, **settings.extra}

    def _adapt(self, dialect: _Dialect, message: str, param: str) -> bool:
        """Ask otherwise where the endpoint said which part of the request it does not take."""
        told = f"{param} {message}".lower()
        if dialect.format < len(_FORMATS) - 1 and any(
            word in told for word in ("response_format", "json_schema", "json_object", "structured output")
        ):
            dialect.format += 1
            return True
        for name in ("temperature", "seed", "max_tokens"):
            unwanted = any(
                word in told for word in ("unsupported", "not support", "unknown", "not permitted", "only")
            )
            if name not in dialect.dropped and (param == name or (name in told and unwanted)):
                dialect.dropped.add(name)
                return True
        return False

    def _completion(self, content: bytes, price: Price | None) -> Completion:
        try:
            raw = msgspec.json.decode(content)
            choice = raw["choices"][0]
            message = choice["message"]
            text, refusal = message.get("content"), message.get("refusal")
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError, UnicodeDecodeError):
            raise _unreachable(
                f"{self.base_url} answered something that is no chat completion; is base_url right?"
            ) from None
        if isinstance(text, list):
            text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
        finish = choice.get("finish_reason")
        return Completion(
            self._secrets.redact(text) if isinstance(text, str) else "",
            refusal if isinstance(refusal, str) and refusal else None,
            finish if isinstance(finish, str) else None,
            read_spent(raw.get("usage"), price),
        )

    def _note_absence(self, reason: str) -> None:
        self._nobody_there += 1
        if self._nobody_there >= _DOWN_AFTER:
            self._down[""] = f"{reason} ({self._nobody_there} calls in a row failed, so no more were made)"

    def _said(self, text: str) -> str:
        return failure_message(self._secrets.redact(text), 300)


def _unreachable(reason: str) -> UnjudgedError:
    return UnjudgedError(reason, "unreachable")


def _cause(error: Exception) -> str:
    if is_refused(error):
        return "connection refused"
    return str(error) or type(error).__name__


def _error(content: bytes) -> tuple[str, str, str]:
    """Message, parameter and code of an error body, as far as it has them."""
    try:
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content[:500].decode("utf-8", "replace"), "", ""
    error = raw.get("error", raw) if isinstance(raw, dict) else raw
    if not isinstance(error, dict):
        return str(error), "", ""
    message = error.get("message") or error.get("detail") or ""
    return str(message), str(error.get("param") or ""), str(error.get("code") or "")
