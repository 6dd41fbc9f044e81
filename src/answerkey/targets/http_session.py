"""The HTTP client of targets: one session with a bounded pool, no proxies, cookies or redirects of its own accord."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.transcripts.failures import failure_message

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from yarl import URL

__all__ = ["check_headers", "open_session", "preflight"]

# Servers close idle connections after 2 to 5 s; a connection is given up sooner, since a POST that meets a closing
# one cannot be told from one that failed.
_KEEP_ALIVE_S = 1.5
_PREFLIGHT_S = 10.0


def open_session(
    name: str,
    headers: Mapping[str, str],
    *,
    concurrency: int,
    verify_tls: bool = True,
    ca_file: str | None = None,
) -> "aiohttp.ClientSession":
    """A session; `name` is the target's, for errors."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        limit=concurrency,
        ssl=_tls(name, verify_tls, ca_file),
        keepalive_timeout=_KEEP_ALIVE_S,
        ttl_dns_cache=300,
    )
    return aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        # The engine keeps the time; conversations must not share cookies; no proxy is taken from the environment.
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )


def check_headers(headers: Mapping[str, str], name: str) -> None:
    """Refuse headers that would not be sent as one line."""
    for header, value in headers.items():
        if any(char in header + value for char in "\r\n\0"):
            raise ConfigError(f"target {name}: the header {header!r} has a line break in it")


async def preflight(url: "URL", name: str) -> None:
    """Stop before the first question if nothing listens at the address at all."""
    try:
        async with asyncio.timeout(_PREFLIGHT_S):
            _, writer = await asyncio.open_connection(url.host, url.port)
    except TimeoutError:
        raise TargetUnreachableError(
            f"{name} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?",
        ) from None
    except (OSError, UnicodeError) as error:
        reason = (
            "connection refused" if isinstance(error, ConnectionRefusedError) else failure_message(str(error))
        )
        raise TargetUnreachableError(
            f"nothing answers at {name} ({reason}); is the chatbot running and the address right?",
        ) from None
    writer.close()


def _tls(name: str, verify: bool, ca_file: str | None) -> "ssl.SSLContext | bool":
    if not verify:
        return False
    if ca_file is None:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"target {name}: ca_file {ca_file} cannot be used: {error}") from None
