"""Server settings, and the client address behind trusted proxies."""

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import time
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers

from answerkey.errors import ConfigError, explain_validation

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
    def nightly_time(self) -> time | None:
        """When runs are started every day."""
        if self.nightly is None:
            return None
        try:
            return time.fromisoformat(self.nightly)
        except ValueError:
            raise ConfigError(f"[server] nightly {self.nightly[:40]!r}: write a time such as 02:30") from None

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The trusted proxies."""
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
