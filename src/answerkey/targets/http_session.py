"""The requests of one target: its headers, its connections, and what a connection that fails comes to."""

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Mapping
from typing import Generic, TypeVar

from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import RetryableError
from answerkey.targets.http_client import Endpoint, HttpClient, NotHttpError, Response, make_tls
from answerkey.targets.http_parser import ReplyTooLargeError
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.plain_json import too_large

_PREFLIGHT_S = 10.0
_MEGABYTE = 1024 * 1024
# What an exchange may raise that is no mistake of ours.
FAILURES = (ReplyTooLargeError, NotHttpError, OSError, EOFError, ValueError)
# This machine has run out of something, which says nothing of the chatbot.
_LOCAL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))


class TargetSession:
    """What one target sends, and what comes of it."""

    def __init__(
        self,
        name: str,
        secrets: Secrets,
        *,
        verify_tls: bool,
        ca_file: str | None,
        most_bytes: int,
        reuse: bool = True,
    ) -> None:
        # The target's, for errors.
        self._name = name
        self._secrets = secrets
        self._verify_tls = verify_tls
        self._ca_file = ca_file
        self._most_bytes = most_bytes
        self._reuse = reuse
        self._client: HttpClient | None = None
        self.headers: dict[str, str] = {}

    async def open(self, endpoint: Endpoint, shown: str, headers: Mapping[str, str]) -> None:
        """Open it; `shown` is what errors call the address, and nothing answering there is an error at once."""
        for header, value in headers.items():
            if any(char in header + value for char in "\r\n\0"):
                raise ConfigError(f"target {self._name}: the header {header!r} has a line break in it")
            if header.lower() == "authorization" and endpoint.authorization is not None:
                raise ConfigError(
                    f"target {self._name}: the address has a user and password and the headers an Authorization; "
                    "keep one of the two"
                )
        self.headers = dict(headers)
        tls = self._tls() if endpoint.tls else None
        await _preflight(endpoint, shown)
        self._client = HttpClient(tls=tls, reuse=self._reuse)

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def client(self) -> HttpClient:
        """The client itself, which sends none of the target's headers."""
        if self._client is None:
            raise UsageError("the target is not open: use it in `async with`")
        return self._client

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        *,
        body: bytes | None,
        traceparent: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request to the chatbot, with the target's headers and `more`."""
        headers = self.headers
        if traceparent or more:
            headers = {**headers, **(more or {})}
            if traceparent:
                headers["traceparent"] = traceparent
        # A redirect could carry the headers' secrets to another server, so none is followed.
        return await self.client.request(
            method, endpoint, headers=headers, body=body, most_bytes=self._most_bytes
        )

    async def reply(self, exchange: Awaitable[Reply]) -> Reply:
        """What an exchange gives; a connection that is refused is for the engine to retry, others are failures."""
        try:
            return await exchange
        except FAILURES as error:
            return self.failed(error)

    def failed(self, error: Exception) -> Reply:
        """What an exchange that raised one of FAILURES comes to; raises RetryableError where it was turned away."""
        if isinstance(error, ReplyTooLargeError):
            return too_large(self._most_bytes / _MEGABYTE)
        if isinstance(error, NotHttpError):
            return Reply(failure=Failure("malformed", failure_message(self._secrets.redact(str(error)))))
        if isinstance(error, OSError) and error.errno in _LOCAL:
            message = failure_message(f"this machine has run out of what connections need: {error}")
            raise RetryableError(Failure("local_resources", message)) from error
        if is_refused(error):
            message = failure_message(self._secrets.redact(f"{self._name}: connection refused"))
            raise RetryableError(Failure("connection", message)) from error
        failure = failure_from_exception(error, self._secrets.redact)
        if isinstance(error, OSError) and failure.kind == "exception":
            # Names that do not resolve, certificates that do not hold, networks that are not there.
            failure = Failure("connection", failure.message)
        return Reply(failure=failure)

    def _tls(self) -> ssl.SSLContext:
        try:
            return make_tls(verify=self._verify_tls, ca_file=self._ca_file)
        except (OSError, ssl.SSLError) as error:
            message = f"target {self._name}: ca_file {self._ca_file} cannot be used: {error}"
            raise ConfigError(message) from None


def is_refused(error: BaseException) -> bool:
    """Whether nobody listens; a name with several addresses has an error for each of them in one."""
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)
    )


async def _preflight(endpoint: Endpoint, shown: str) -> None:
    """Stop before the first question if nothing listens at the address at all."""
    try:
        async with asyncio.timeout(_PREFLIGHT_S):
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except TimeoutError:
        raise TargetUnreachableError(
            f"{shown} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?",
        ) from None
    except (OSError, UnicodeError) as error:
        reason = "connection refused" if is_refused(error) else failure_message(str(error))
        raise TargetUnreachableError(
            f"nothing answers at {shown} ({reason}); is the chatbot running and the address right?",
        ) from None
    writer.close()


Messages = list[dict[str, str]]
_Kept = TypeVar("_Kept")


class UnderWay(Generic[_Kept]):
    """Something for each conversation. Only those under way are kept, so that memory stays flat."""

    def __init__(self, at_once: int) -> None:
        # A conversation's turns are asked one after the other, so older ones than these are over.
        self._most = 2 * at_once + 16
        self._kept: dict[str, _Kept] = {}

    def get(self, conversation_id: str) -> _Kept | None:
        """What is kept for a conversation."""
        return self._kept.get(conversation_id)

    def keep(self, conversation_id: str, value: _Kept) -> None:
        """Keep it for the turns to come."""
        self._kept.pop(conversation_id, None)
        self._kept[conversation_id] = value
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]


class Conversations:
    """What was said so far in each conversation."""

    def __init__(self, at_once: int) -> None:
        self._said: UnderWay[Messages] = UnderWay(at_once)

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        # A retried or repeated turn starts again from where it stood.
        before = (self._said.get(conversation_id) or [])[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Keep what was answered for the turns to come."""
        self._said.keep(conversation_id, [*sent, {"role": "assistant", "content": answer or ""}])
