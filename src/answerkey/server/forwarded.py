"""What a proxy says of the visitor behind it, believed only of proxies that were named."""

import ipaddress
from collections.abc import Sequence
from typing import Any

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
