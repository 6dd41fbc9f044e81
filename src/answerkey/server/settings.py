"""ServerSettings: how the dashboard is served, from `[server]` and the flags of `answerkey serve`."""

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError

__all__ = ["ServerSettings", "is_loopback", "server_settings"]


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the dashboard is served."""

    host: str = "127.0.0.1"
    port: int = 8765
    # Names under which the server may be addressed besides its own address: exact, so that no other name is answered.
    allow_hosts: tuple[str, ...] = ()
    # Origins of chat pages that may send feedback and replies, as https://chat.example.com.
    allow_origins: tuple[str, ...] = ()
    # Also on loopback, for instance behind a reverse proxy.
    require_token: bool = False
    # Feedback and replies that one sender may send, on average and at once.
    rate_per_minute: float = 120.0
    burst: int = 40
    # Bytes of a request's body.
    body_limit: int = 1_000_000

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port}: must be between 0 and 65535")
        if not self.rate_per_minute > 0 or self.burst < 1:
            raise ConfigError("[server] rate_per_minute and burst: must be more than 0")
        if self.body_limit < 1_000:
            raise ConfigError("[server] body_limit: must be at least 1000 bytes")
        for origin in self.allow_origins:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
                raise ConfigError(
                    f"origin {origin!r}: write scheme and host only, as https://chat.example.com"
                )

    @property
    def needs_token(self) -> bool:
        """Whether nobody gets in without a token."""
        return self.require_token or not is_loopback(self.host)

    def host_allowed(self, header: str) -> bool:
        """Whether a Host header names this server: a page of another name that resolves here must get nothing."""
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
