"""Gatekeeper: who gets in. Exact Host and Origin, tokens and roles, size and rate limits, and the headers of every answer."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from answerkey.errors import StoreError
from answerkey.server.rendering import refuse
from answerkey.server.settings import ServerSettings
from answerkey.store.tokens import AccessToken

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "LOCAL", "Gatekeeper", "RateLimit"]

COOKIE = "answerkey_token"
# Who uses a server that only this machine can reach.
LOCAL = AccessToken("local", "admin", "")

# Where chat pages and their servers send to; the only paths that other origins may use.
_INTAKE = ("/api/feedback", "/api/replies")
_PUBLIC = ("/login", "/static/", "/healthz")
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: a form's Origin header would then read "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


# Senders remembered; beyond, the one that was quiet longest is forgotten (and starts with a full bucket again).
_SENDERS = 10_000


class BodyTooLargeError(Exception):
    """The body went over the limit while it was read."""


class RateLimit:
    """Lets every sender send `burst` at once and `per_minute` on average."""

    def __init__(self, per_minute: float, burst: int) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, sender: str) -> float:
        """0 if the sender may go on (and it is counted), else the seconds to wait."""
        now = time.monotonic()
        level, then = self._buckets.pop(sender, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        missing = 1 - level
        self._buckets[sender] = (level if missing > 0 else level - 1, now)
        if len(self._buckets) > _SENDERS:
            self._buckets.popitem(last=False)
        return missing / self._per_second if missing > 0 else 0.0


class Gatekeeper:
    """Wraps the application."""

    def __init__(
        self, app: "ASGIApp", *, settings: ServerSettings, check: Callable[[str], AccessToken | None]
    ) -> None:
        self._app = app
        self._settings = settings
        self._check = check
        self._rate = RateLimit(settings.rate_per_minute, settings.burst)
        # Guessing a token must be slow, whatever the limit for feedback is.
        self._logins = RateLimit(30, 10)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        # They may send, not read what others have sent: the same paths list that to whoever may look.
        allowed = (
            origin in self._settings.allow_origins
            and scope["path"] in _INTAKE
            and scope["method"] in ("POST", "OPTIONS")
        )

        async def answer(message: "Message") -> None:
            if message["type"] == "http.response.start":
                outgoing = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    outgoing.setdefault(name, value)
                outgoing.setdefault("cache-control", "no-store")
                outgoing["cross-origin-resource-policy"] = "cross-origin" if allowed else "same-origin"
                if allowed and origin is not None:
                    outgoing["access-control-allow-origin"] = origin
                    outgoing.add_vary_header("Origin")
            await send(message)

        try:
            refusal = await self._refusal(scope, headers, origin, allowed)
        except StoreError as error:
            refusal = refuse(scope, 503, "store_unavailable", str(error))
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        try:
            await self._app(scope, self._limited(receive), answer)
        except BodyTooLargeError:
            await self._too_large(scope)(scope, receive, answer)

    async def _refusal(
        self, scope: Any, headers: Headers, origin: str | None, allowed: bool
    ) -> Response | None:
        path, method = scope["path"], scope["method"]
        host = headers.get("host", "")
        if not self._settings.host_allowed(host):
            message = f"this server does not answer to the name {host[:80]!r}; allow it with --allow-host"
            return refuse(scope, 421, "wrong_host", message)
        if method == "OPTIONS" and path in _INTAKE and origin is not None:
            return self._preflight(scope, allowed)
        if method not in _SAFE and not allowed and not _same_origin(scope, headers, origin, host):
            sender = (origin or "another site")[:80]
            message = (
                f"requests from {sender} are not accepted; allow a chat page's origin with --allow-origin"
            )
            return refuse(scope, 403, "wrong_origin", message)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._settings.body_limit:
            return self._too_large(scope)
        who = LOCAL
        if self._settings.needs_token:
            found = await self._identify(scope, headers)
            if found is None and not path.startswith(_PUBLIC):
                return _ask_to_sign_in(scope)
            who = found or AccessToken("", "viewer", "")
        scope.setdefault("state", {})["who"] = who
        scope["state"]["needs_token"] = self._settings.needs_token
        return self._refuse_by_role(scope, who) or self._refuse_too_fast(scope, who)

    async def _identify(self, scope: Any, headers: Headers) -> AccessToken | None:
        given = headers.get("authorization", "")
        if given[:7].lower() == "bearer ":
            return await run_in_threadpool(self._check, given[7:].strip())
        secret = HTTPConnection(scope).cookies.get(COOKIE)
        return None if secret is None else await run_in_threadpool(self._check, secret)

    def _refuse_by_role(self, scope: Any, who: AccessToken) -> Response | None:
        path, method = scope["path"], scope["method"]
        if path.startswith(_PUBLIC) or path == "/logout":
            return None
        if who.role == "sender" and not (method == "POST" and path in _INTAKE):
            return refuse(scope, 403, "not_allowed", "this token may only send feedback and replies")
        if who.role == "viewer" and method not in _SAFE and path != "/theme":
            message = "this token may only look; an annotator's may also judge"
            return refuse(scope, 403, "not_allowed", message)
        if who.role != "admin" and method not in _SAFE and path.startswith(("/api/baselines", "/baselines")):
            return refuse(scope, 403, "not_allowed", "only an admin's token may name baselines")
        return None

    def _refuse_too_fast(self, scope: Any, who: AccessToken) -> Response | None:
        path = scope["path"]
        if scope["method"] != "POST" or path not in (*_INTAKE, "/login"):
            return None
        client = scope.get("client") or ("unknown", 0)
        limit = self._logins if path == "/login" else self._rate
        wait = limit.wait(f"{client[0]} {who.name}")
        if not wait:
            return None
        seconds = max(1, round(wait + 0.5))
        refusal = refuse(scope, 429, "too_many_requests", f"too many requests; try again in {seconds} s")
        refusal.headers["retry-after"] = str(seconds)
        return refusal

    def _preflight(self, scope: Any, allowed: bool) -> Response:
        if not allowed:
            return refuse(scope, 403, "wrong_origin", "this origin is not allowed; see --allow-origin")
        return Response(
            status_code=204,
            headers={
                "access-control-allow-methods": "POST",
                "access-control-allow-headers": "authorization, content-type, idempotency-key",
                "access-control-max-age": "600",
            },
        )

    def _too_large(self, scope: Any) -> Response:
        message = f"the request is larger than {self._settings.body_limit:,} bytes; nothing was kept"
        return refuse(scope, 413, "too_large", message)

    def _limited(self, receive: "Receive") -> "Receive":
        seen = 0

        async def counted() -> "Message":
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._settings.body_limit:
                    raise BodyTooLargeError
            return message

        return counted


def _same_origin(scope: Any, headers: Headers, origin: str | None, host: str) -> bool:
    """A browser says where a request comes from; a program that is not one says nothing and holds no cookie of ours."""
    if origin is not None:
        return origin.lower() == f"{scope['scheme']}://{host}".lower()
    return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _ask_to_sign_in(scope: Any) -> Response:
    path = scope["path"]
    if path.startswith("/api/") or scope["method"] != "GET":
        message = "a token is needed: send Authorization: Bearer …; `answerkey serve token add` makes one"
        refusal = refuse(scope, 401, "token_needed", message)
        refusal.headers["www-authenticate"] = "Bearer"
        return refusal
    query = scope.get("query_string", b"").decode("latin-1")
    target = path + (f"?{query}" if query else "")
    return RedirectResponse(f"/login?next={quote(target, safe='')}", status_code=303)
