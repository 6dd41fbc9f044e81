"""Server settings, the client address behind trusted proxies, and access control.

Roles, rate limits, host and origin checks, and security headers. Anything not listed needs an admin.
"""

import datetime
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from answerkey.errors import ConfigError, StoreError, explain_validation
from answerkey.server.rendering import refuse
from answerkey.store.feedback import ROLES, Role, User

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_network(text: str) -> Network:
    """Parse an address or a network, e.g. 127.0.0.1 or 10.0.0.0/8."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigError(
            f"--trust-proxy {text!r}: use an address or a network, e.g. 127.0.0.1 or 10.0.0.0/8"
        ) from None


def client_address(scope: Any, headers: Headers, trusted: Sequence[Network]) -> str:
    """The visitor's address: the peer or, if that is a trusted proxy, the last address that no trusted proxy has.

    Anything further left in X-Forwarded-For was written by the visitor.
    """
    peer = str((scope.get("client") or ("unknown", 0))[0])
    listed = ",".join(headers.getlist("x-forwarded-for")).split(",")
    while listed and _is_trusted(peer, trusted):
        named = _without_port(listed.pop().strip())
        if not named:
            break
        peer = named
    return peer


def forwarded_scheme(scope: Any, headers: Headers, trusted: Sequence[Network]) -> str:
    """The scheme that the visitor's browser uses."""
    peer = str((scope.get("client") or ("unknown", 0))[0])
    forwarded = headers.get("x-forwarded-proto", "").strip().lower()
    return (
        forwarded if forwarded in ("http", "https") and _is_trusted(peer, trusted) else str(scope["scheme"])
    )


def limit_name(address: str) -> str:
    """The key of a client's rate limit: an IPv6 client has a whole /64 network."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def _without_port(text: str) -> str:
    """An address without its port or brackets."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(known, "ipv4_mapped", None)
    return any((mapped or known) in network for network in trusted)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the dashboard, from `[server]` and the flags of `answerkey serve`."""

    host: str = "127.0.0.1"
    port: int = 8765
    # The golden set that production replies are graded by; default: the configuration's `questions`.
    questions: str | None = None
    # A file of `answerkey draft`, whose cases a person accepts or rejects.
    drafts: str | None = None
    # Delete production replies with their feedback after this many days; None: never.
    production_days: float | None = None
    # Further host names of the server, matched exactly.
    allow_hosts: tuple[str, ...] = ()
    # Origins of chat pages that may send feedback and replies, e.g. https://chat.example.com.
    allow_origins: tuple[str, ...] = ()
    # The public address, i.e. that of the proxy in front, e.g. https://dash.example.com.
    public_url: str | None = None
    # Proxies whose X-Forwarded headers are trusted, e.g. 127.0.0.1 or 10.0.0.0/8.
    trust_proxy: tuple[str, ...] = ()
    # Require sign-in on loopback too; behind a proxy it is always required.
    require_token: bool = False
    # Whether admins may start runs of configured targets.
    allow_run: bool = False
    # The time of day at which runs are started, "02:30", in the time zone of this machine; needs allow_run.
    nightly: str | None = None
    # The configured targets that are asked then; empty: the default target.
    nightly_targets: tuple[str, ...] = ()
    # Rate limit of feedback and replies per sender: average and burst.
    rate_per_minute: float = 120.0
    burst: int = 40
    # Rate limit of other requests per user, where sign-in is required.
    requests_per_minute: float = 1200.0
    # Bytes of a request's body.
    body_limit: int = 1_000_000

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port}: must be between 0 and 65535")
        if not (self.rate_per_minute > 0 and self.requests_per_minute > 0) or self.burst < 1:
            raise ConfigError("[server] rate_per_minute, requests_per_minute and burst: must be more than 0")
        if self.production_days is not None and not self.production_days > 0:
            raise ConfigError("[server] production_days: must be more than 0")
        if self.body_limit < 1_000:
            raise ConfigError("[server] body_limit: must be at least 1000 bytes")
        for origin in self.allow_origins:
            if not _is_origin(origin):
                raise ConfigError(
                    f"origin {origin!r}: use scheme and host only, e.g. https://chat.example.com"
                )
        if self.public_url is not None and not _is_origin(self.public_url.removesuffix("/")):
            raise ConfigError(
                f"--public-url {self.public_url!r}: use scheme and host only, e.g. https://dash.example.com; "
                "the dashboard cannot share a host name with another site"
            )
        if self.nightly is not None and not self.allow_run:
            raise ConfigError("[server] nightly: runs are only started by a server with --allow-run")
        # Raises ConfigError now if one is invalid.
        _ = self.trusted_networks, self.nightly_time

    @property
    def nightly_time(self) -> datetime.time | None:
        """When runs are started every day."""
        if self.nightly is None:
            return None
        try:
            return datetime.time.fromisoformat(self.nightly)
        except ValueError:
            raise ConfigError(f"[server] nightly {self.nightly[:40]!r}: write a time such as 02:30") from None

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        return _networks(self.trust_proxy)

    @property
    def public_scheme(self) -> str | None:
        """The scheme of the public address, if there is one."""
        return None if self.public_url is None else urlsplit(self.public_url).scheme.lower()

    @property
    def public_origin(self) -> str | None:
        """The public address as in an Origin header: lower case, without a default port."""
        if self.public_url is None:
            return None
        origin = self.public_url.removesuffix("/").lower()
        return origin.removesuffix(":443" if self.public_scheme == "https" else ":80")

    @property
    def needs_token(self) -> bool:
        """Whether sign-in is required; always behind a proxy, where every request comes from loopback."""
        proxied = self.public_url is not None or bool(self.trust_proxy)
        return self.require_token or proxied or not is_loopback(self.host)

    def host_allowed(self, header: str) -> bool:
        """Whether a Host header names this server; others are refused to prevent DNS rebinding."""
        if self.public_origin is not None and header.lower() == urlsplit(self.public_origin).netloc:
            return True
        name, port = _split_port(header)
        if port is not None and port != self.port:
            return header.lower() in {host.lower() for host in self.allow_hosts}
        if name.lower() in {host.lower() for host in self.allow_hosts}:
            return True
        if is_loopback(self.host):
            # Browsers omit the default port.
            return name in ("127.0.0.1", "localhost", "::1", self.host) and (
                port is not None or self.port == 80
            )
        if name == self.host:
            return True
        # Bound to every address: IP addresses are safe from DNS rebinding, names are not.
        return self.host in ("0.0.0.0", "::") and _address(name) is not None  # noqa: S104


def server_settings(configured: Mapping[str, Any], **flags: Any) -> ServerSettings:
    """The `[server]` settings, overridden by command line flags (None or empty: not set)."""
    chosen = {name: value for name, value in flags.items() if value not in (None, (), False)}
    try:
        return msgspec.convert({**configured, **chosen}, ServerSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[server] {explain_validation(error, ServerSettings)}") from None


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


@cache
def _networks(listed: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(read_network(text) for text in listed)


def _is_origin(text: str) -> bool:
    parts = urlsplit(text)
    plain = not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and plain


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _split_port(header: str) -> tuple[str, int | None]:
    if header.startswith("["):
        name, _, rest = header[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        name, _, port = header.partition(":")
    if not port:
        return name, None
    # -1 matches no port.
    return name, int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else -1


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
