"""Access control: roles, rate limits, host and origin checks, and security headers. Anything not listed needs an admin."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from answerkey.errors import StoreError
from answerkey.server.rendering import refuse
from answerkey.server.settings import ServerSettings, client_address, forwarded_scheme, limit_name
from answerkey.store.feedback import ROLES, Role, User

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# Where chat pages and their servers send to: the only paths open to other origins and keys of sites.
INTAKE = ("/api/feedback", "/api/feedback/batch", "/api/replies", "/v1/traces", "/v1/logs")
SAFE = ("GET", "HEAD", "OPTIONS")

_PUBLIC = ("/login", "/healthz", "/theme")
# Path or prefix of a change that needs less than an admin → the role.
_CHANGES: tuple[tuple[str, Role], ...] = (
    ("/logout", "viewer"),
    # Each user has their own.
    ("/views", "viewer"),
    ("/api/feedback", "reviewer"),
    ("/api/feedback/batch", "reviewer"),
    ("/api/review", "reviewer"),
    ("/review", "reviewer"),
    # Shows what would change; saving needs an admin.
    ("/golden", "reviewer"),
    # Creates a golden case for download; the store does not change.
    ("/replies/", "reviewer"),
)


class Visitor(msgspec.Struct, frozen=True):
    """The sender of a request."""

    name: str
    # A site may only add feedback, replies and their spans.
    role: Role
    # The name under which what they send is stored.
    sender: str

    def may(self, method: str, path: str) -> bool:
        """Whether they may make this request."""
        if self.role == "site":
            return method == "POST" and path in INTAKE
        return ROLES.index(self.role) >= ROLES.index(needed_role(method, path))


# The visitor of a server that only this machine can reach.
LOCAL = Visitor("local", "admin", "local")


def visitor(user: User | None) -> Visitor | None:
    """A user as a visitor."""
    return None if user is None else Visitor(user.name, user.role, user.sender)


def is_public(path: str) -> bool:
    """Whether a path needs no sign-in: the sign-in page with its files, and the health check."""
    return path in _PUBLIC or path.startswith("/static/")


def needed_role(method: str, path: str) -> Role:
    """The lowest role that may make this request."""
    if method in SAFE:
        return "viewer"
    if method != "POST":
        return "admin"
    return next((role for prefix, role in _CHANGES if _begins(path, prefix)), "admin")


def _begins(path: str, prefix: str) -> bool:
    return path == prefix or (prefix.endswith("/") and path.startswith(prefix))


# Rate limits


# Senders remembered; beyond, the one that was silent longest is dropped.
_SENDERS = 10_000
# The visitors of a page share its site's key: together they may send this many times as often as one client.
_MANY = 10


class RateLimit:
    """A token bucket per sender: `burst` requests at once, `per_minute` on average."""

    def __init__(self, per_minute: float, burst: int) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, sender: str) -> float:
        """Count a request; 0 if it is allowed, else the seconds to wait."""
        now = time.monotonic()
        level, then = self._buckets.pop(sender, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        missing = 1 - level
        self._buckets[sender] = (level if missing > 0 else level - 1, now)
        if len(self._buckets) > _SENDERS:
            self._buckets.popitem(last=False)
        return missing / self._per_second if missing > 0 else 0.0


class Limits:
    """The rate limits of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        rate, burst = settings.rate_per_minute, settings.burst
        self._sent_by_client = RateLimit(rate, burst)
        self._sent_by_name = RateLimit(_MANY * rate, _MANY * burst)
        # Guessing a token must be slow.
        self._sign_ins = RateLimit(30, 10)
        self._asked = RateLimit(settings.requests_per_minute, max(1, int(settings.requests_per_minute / 4)))

    def wait(self, method: str, path: str, client: str, who: Visitor | None) -> float:
        """The seconds that this visitor must wait; 0 if none."""
        if method == "POST" and path == "/login":
            return self._sign_ins.wait(client)
        if method == "POST" and path in INTAKE:
            waiting = self._sent_by_client.wait(client)
            # A refused request is not charged to those who share the key.
            return waiting or (
                self._sent_by_name.wait(who.sender) if who is not None and who != LOCAL else 0.0
            )
        if who == LOCAL or path.startswith("/static/"):
            return 0.0
        return self._asked.wait(client if who is None else who.sender)


# The middleware


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

# Headers that proxies add.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")

# Finds a visitor by a program's secret, or by a browser's session.
Recognise = Callable[[str], Visitor | None]


def session_cookie(scheme: str) -> str:
    """The name of the session cookie; the prefix under https keeps other hosts of the domain from setting it."""
    return "__Host-answerkey" if scheme == "https" else "answerkey"


class BodyTooLargeError(Exception):
    """The body exceeded the limit while it was read."""


class Gatekeeper:
    """Middleware that checks every request and adds security headers to every response."""

    def __init__(
        self, app: "ASGIApp", *, settings: ServerSettings, by_secret: Recognise, by_session: Recognise
    ) -> None:
        self._app = app
        self._settings = settings
        self._by_secret = by_secret
        self._by_session = by_session
        self._limits = Limits(settings)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        # Other origins may send, not read: the same paths list what others have sent.
        allowed = (
            origin in self._settings.allow_origins
            and scope["path"] in INTAKE
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

        self._set_address(scope, headers, foreign=allowed)
        try:
            refusal = self._refuse_by_address(scope, headers, origin, allowed)
            refusal = refusal or await self._refuse_by_visitor(scope, headers)
        except StoreError as error:
            refusal = refuse(scope, 503, "store_unavailable", str(error))
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        try:
            await self._app(scope, self._limited(receive), answer)
        except BodyTooLargeError:
            await self._too_large(scope)(scope, receive, answer)

    def _set_address(self, scope: Any, headers: Headers, *, foreign: bool) -> None:
        """Set the public address of the server and the address of the client for later steps."""
        trusted = self._settings.trusted_networks
        scheme = self._settings.public_scheme or forwarded_scheme(scope, headers, trusted)
        scope["scheme"] = scheme
        scope.setdefault("state", {}).update(
            address=self._settings.public_origin or f"{scheme}://{headers.get('host', '')}",
            client=limit_name(client_address(scope, headers, trusted)),
            # Whether it comes from a page of another site.
            foreign=foreign,
            needs_token=self._settings.needs_token,
            allow_run=self._settings.allow_run,
            has_drafts=self._settings.drafts is not None,
            edits_golden=scope["app"].state.golden.editable if "app" in scope else False,
        )

    def _refuse_by_address(
        self, scope: Any, headers: Headers, origin: str | None, allowed: bool
    ) -> Response | None:
        host = headers.get("host", "")
        if not self._settings.host_allowed(host):
            message = (
                f"unknown host name {host[:80]!r}; "
                "set the public address with --public-url, or further names with --allow-host"
            )
            return refuse(scope, 421, "wrong_host", message)
        if not self._settings.needs_token and scope["path"] != "/healthz":
            forwarded = next((name for name in _FORWARDED if name in headers), None)
            if forwarded is not None:
                # Behind a proxy every visitor comes from loopback, and would be an admin.
                message = (
                    f"the request came through a proxy ({forwarded}), but this server has no sign-in; "
                    "start it with --public-url and the address that people use"
                )
                return refuse(scope, 403, "proxy_without_public_url", message)
        method = scope["method"]
        if method == "OPTIONS" and scope["path"] in INTAKE and origin is not None:
            return self._preflight(scope, allowed)
        if method not in SAFE and not allowed and not _same_origin(scope, headers, origin):
            message = (
                f"requests from {(origin or 'another site')[:80]} are not accepted at "
                f"{scope['state']['address'][:80]}; behind a proxy, give its address with --public-url, "
                "and a chat page's origin with --allow-origin"
            )
            return refuse(scope, 403, "wrong_origin", message)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._settings.body_limit:
            return self._too_large(scope)
        return None

    async def _refuse_by_visitor(self, scope: Any, headers: Headers) -> Response | None:
        method, path, state = scope["method"], scope["path"], scope["state"]
        who = await self._identify(scope, headers) if self._settings.needs_token else LOCAL
        state["who"] = who
        wait = self._limits.wait(method, path, state["client"], who)
        if wait:
            return _ask_to_wait(scope, wait)
        if is_public(path):
            return None
        if who is None:
            return _ask_to_sign_in(scope)
        if who.may(method, path):
            return None
        message = (
            "a site's key can only send feedback, replies and their spans"
            if who.role == "site"
            else f"the role {who.role} may not do this"
        )
        return refuse(scope, 403, "not_allowed", message)

    async def _identify(self, scope: Any, headers: Headers) -> Visitor | None:
        given = headers.get("authorization", "")
        if given[:7].lower() == "bearer ":
            return await run_in_threadpool(self._by_secret, given[7:].strip())
        session = HTTPConnection(scope).cookies.get(session_cookie(scope["scheme"]))
        return None if session is None else await run_in_threadpool(self._by_session, session)

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
        message = f"the request is larger than {self._settings.body_limit:,} bytes; nothing was stored"
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


def _same_origin(scope: Any, headers: Headers, origin: str | None) -> bool:
    """Whether a request comes from our own pages: browsers say so, and other programs have no cookie of ours."""
    if origin is not None:
        return origin.lower() == str(scope["state"]["address"]).lower()
    return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _ask_to_wait(scope: Any, wait: float) -> Response:
    seconds = max(1, round(wait + 0.5))
    refusal = refuse(scope, 429, "too_many_requests", f"too many requests; try again in {seconds} s")
    refusal.headers["retry-after"] = str(seconds)
    return refusal


def _ask_to_sign_in(scope: Any) -> Response:
    path = scope["path"]
    if path.startswith("/api/") or scope["method"] != "GET":
        message = (
            "a token is needed: send Authorization: Bearer …; "
            "`answerkey users add NAME` makes one, and with `--role site` a key for a site"
        )
        refusal = refuse(scope, 401, "token_needed", message)
        refusal.headers["www-authenticate"] = "Bearer"
        return refusal
    query = scope.get("query_string", b"").decode("latin-1")
    target = path + (f"?{query}" if query else "")
    return RedirectResponse(f"/login?next={quote(target, safe='')}", status_code=303)
