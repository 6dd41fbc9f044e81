"""What a proxy says of the visitor behind it, believed only of proxies that were named."""

import ipaddress
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers

from answerkey.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_network(text: str) -> Network:
    """An address or a network of addresses, as 127.0.0.1 or 10.0.0.0/8."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigError(
            f"--trust-proxy {text!r}: write an address or a network, as 127.0.0.1 or 10.0.0.0/8"
        ) from None


def client_address(scope: Any, headers: Headers, trusted: Sequence[Network]) -> str:
    """Where the visitor is: the connection's other end or, if that is a trusted proxy, the last address in front of
    trusted ones. What stands further left was written by the visitor."""
    peer = str((scope.get("client") or ("unknown", 0))[0])
    listed = ",".join(headers.getlist("x-forwarded-for")).split(",")
    while listed and _is_trusted(peer, trusted):
        named = _without_port(listed.pop().strip())
        if not named:
            break
        peer = named
    return peer


def forwarded_scheme(scope: Any, headers: Headers, trusted: Sequence[Network]) -> str:
    """http or https, as the visitor's browser speaks it."""
    peer = str((scope.get("client") or ("unknown", 0))[0])
    said = headers.get("x-forwarded-proto", "").strip().lower()
    return said if said in ("http", "https") and _is_trusted(peer, trusted) else str(scope["scheme"])


def limit_name(address: str) -> str:
    """By what a client is counted: one customer of a provider has a whole /64 of IPv6 addresses."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def _without_port(text: str) -> str:
    """An address as lists of proxies write it, with a port or in brackets."""
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


# ServerSettings: how the dashboard is served, from `[server]` and the flags of `answerkey serve`.


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the dashboard is served."""

    host: str = "127.0.0.1"
    port: int = 8765
    # The golden set that production replies are graded by; without it, the configuration's `questions`.
    questions: str | None = None
    # Production replies older than so many days are deleted, with what people said of them; None: none are.
    production_days: float | None = None
    # Names under which the server may be addressed besides its own address: exact, so that no other name is answered.
    allow_hosts: tuple[str, ...] = ()
    # Origins of chat pages that may send feedback and replies, as https://chat.example.com.
    allow_origins: tuple[str, ...] = ()
    # The address that people use, as https://dash.example.com: that of the proxy in front of the server.
    public_url: str | None = None
    # Proxies whose word on the visitor's address and scheme is taken, as 127.0.0.1 or 10.0.0.0/8.
    trust_proxy: tuple[str, ...] = ()
    # Also on loopback; behind a proxy it is so anyway, since everybody comes from there.
    require_token: bool = False
    # Feedback and replies that one sender may send, on average and at once.
    rate_per_minute: float = 120.0
    burst: int = 40
    # Everything else that one person may ask for, where a token is needed.
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
                    f"origin {origin!r}: write scheme and host only, as https://chat.example.com"
                )
        if self.public_url is not None and not _is_origin(self.public_url.removesuffix("/")):
            raise ConfigError(
                f"--public-url {self.public_url!r}: write scheme and host only, as https://dash.example.com; "
                "the dashboard needs a host name of its own"
            )
        # Said now if one of them is none.
        _ = self.trusted_networks

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The proxies that are believed."""
        return _networks(self.trust_proxy)

    @property
    def public_scheme(self) -> str | None:
        """http or https, where a public address is given."""
        return None if self.public_url is None else urlsplit(self.public_url).scheme.lower()

    @property
    def public_origin(self) -> str | None:
        """The public address as a browser writes it in an Origin header: in small letters, without a usual port."""
        if self.public_url is None:
            return None
        origin = self.public_url.removesuffix("/").lower()
        return origin.removesuffix(":443" if self.public_scheme == "https" else ":80")

    @property
    def needs_token(self) -> bool:
        """Whether nobody gets in without a token: behind a proxy, loopback says nothing about who comes."""
        proxied = self.public_url is not None or bool(self.trust_proxy)
        return self.require_token or proxied or not is_loopback(self.host)

    def host_allowed(self, header: str) -> bool:
        """Whether a Host header names this server: a page of another name that resolves here must get nothing."""
        if self.public_origin is not None and header.lower() == urlsplit(self.public_origin).netloc:
            return True
        name, port = _split_port(header)
        if port is not None and port != self.port:
            return header.lower() in {host.lower() for host in self.allow_hosts}
        if name.lower() in {host.lower() for host in self.allow_hosts}:
            return True
        if is_loopback(self.host):
            # With the default port a browser leaves it out of the header.
            return name in ("127.0.0.1", "localhost", "::1", self.host) and (
                port is not None or self.port == 80
            )
        if name == self.host:
            return True
        # Bound to every address: an address cannot be rebound by a foreign name server, a name can.
        return self.host in ("0.0.0.0", "::") and _address(name) is not None  # noqa: S104


def server_settings(configured: Mapping[str, Any], **given: Any) -> ServerSettings:
    """The `[server]` settings with what the command line gives on top (None or empty: not given)."""
    chosen = {name: value for name, value in given.items() if value not in (None, (), False)}
    try:
        return msgspec.convert({**configured, **chosen}, ServerSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[server] {error}") from None


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
    # What is no port matches none.
    return name, int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else -1
