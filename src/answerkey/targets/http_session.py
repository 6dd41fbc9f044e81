"""The HTTP client of targets: one session with a bounded pool, no proxies, cookies or redirects of its own accord."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import RetryableError
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_from_exception, failure_message

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from yarl import URL

__all__ = ["HttpClient"]

# Servers close idle connections after 2 to 5 s; a connection is given up sooner, since a POST that meets a closing
# one cannot be told from one that failed.
_KEEP_ALIVE_S = 1.5
_PREFLIGHT_S = 10.0


class HttpClient:
    """The requests of one target: its session and headers, and what a failed connection comes to."""

    def __init__(self, name: str, secrets: Secrets, *, verify_tls: bool, ca_file: str | None) -> None:
        # The target's, for errors.
        self._name = name
        self._secrets = secrets
        self._verify_tls = verify_tls
        self._ca_file = ca_file
        self._headers: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None

    async def open(self, url: "URL", shown: str, headers: Mapping[str, str], *, connections: int) -> None:
        """Open it; `shown` is what errors call the address, and nothing answering there is an error at once."""
        import aiohttp

        for header, value in headers.items():
            if any(char in header + value for char in "\r\n\0"):
                raise ConfigError(f"target {self._name}: the header {header!r} has a line break in it")
        self._headers = dict(headers)
        await _preflight(url, shown)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, ssl=self._tls(), keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=300
            ),
            # The engine keeps the time; conversations must not share cookies; no proxy is taken from the environment.
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def session(self) -> "aiohttp.ClientSession":
        """The session itself, which sends none of the target's headers."""
        if self._session is None:
            raise UsageError("the target is not open: use it in `async with`")
        return self._session

    def request(
        self, method: str, url: "URL", *, traceparent: str | None, **content: Any
    ) -> "aiohttp.client._RequestContextManager":
        """Send a request to the chatbot."""
        headers = {**self._headers, "traceparent": traceparent} if traceparent else self._headers
        # A redirect could carry the headers' secrets to another server.
        return self.session.request(method, url, headers=headers, allow_redirects=False, **content)

    async def reply(self, exchange: Awaitable[Reply]) -> Reply:
        """What an exchange gives; a connection that is refused is for the engine to retry, others are failures."""
        import aiohttp

        try:
            return await exchange
        except aiohttp.ClientConnectorError as error:
            message = self._secrets.redact(f"{self._name}: {error.strerror or error}")
            failure = Failure("connection", failure_message(message))
            if isinstance(error.os_error, ConnectionRefusedError):
                raise RetryableError(failure) from error
            return Reply(failure=failure)
        except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
            return Reply(failure=failure_from_exception(error, self._secrets.redact))

    def _tls(self) -> "ssl.SSLContext | bool":
        if self._ca_file is None or not self._verify_tls:
            return self._verify_tls
        import ssl

        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ssl.SSLError) as error:
            message = f"target {self._name}: ca_file {self._ca_file} cannot be used: {error}"
            raise ConfigError(message) from None


async def _preflight(url: "URL", shown: str) -> None:
    """Stop before the first question if nothing listens at the address at all."""
    try:
        async with asyncio.timeout(_PREFLIGHT_S):
            _, writer = await asyncio.open_connection(url.host, url.port)
    except TimeoutError:
        raise TargetUnreachableError(
            f"{shown} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?",
        ) from None
    except (OSError, UnicodeError) as error:
        refused = isinstance(error, ConnectionRefusedError)
        reason = "connection refused" if refused else failure_message(str(error))
        raise TargetUnreachableError(
            f"nothing answers at {shown} ({reason}); is the chatbot running and the address right?",
        ) from None
    writer.close()
