"""HttpClient: HTTP/1.1 over asyncio with persistent connections, TLS, chunked and compressed replies, and exact times.

It is written by hand because asking is what answerkey spends its time on. Measured for a reply of 70 bytes: parsing takes 5 µs
here and 48 µs with h11 (82 µs with its requests), and h11 takes 25 ms to import, so that a run of 1,000 questions would take
1.15 to 1.2 times the CPU. No general client sends a request again that was lost on a persistent connection which the server had
already closed. The client follows no redirect, uses no proxy from the environment and stores no cookies: its callers decide.
"""

import asyncio
import ssl
import time
import zlib
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import lru_cache
from typing import Literal
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

__all__ = [
    "Endpoint",
    "HttpClient",
    "NotHttpError",
    "ReplyTooLargeError",
    "Response",
    "TlsSettings",
    "make_tls",
    "read_endpoint",
]

# Servers close idle connections after 2 to 5 s; ours are dropped earlier.
_KEEP_ALIVE_S = 1.5
_HAPPY_EYEBALLS_S = 0.25
_LARGEST_HEAD = 64 * 1024
_LONGEST_CHUNK_LINE = 4096
# Heads such as 100 Continue and 103 Early Hints that may precede the final one.
_MOST_INFORMATIONAL = 20
# Bytes that are decompressed at a time, so that the size of a small reply is checked before it has grown without bound.
_INFLATED = 1024 * 1024
# A body whose rest has at most this length is read when it is there: servers send it just after its head.
_SHORT_BODY = 256 * 1024
_HEX = frozenset(b"0123456789abcdefABCDEF")

_Framing = Literal["head", "length", "chunk_size", "chunk", "chunk_end", "trailer", "until_close"]
_Key = tuple[str, int, bool]


class NotHttpError(ValueError):
    """The bytes that arrived are not an HTTP response."""


class ReplyTooLargeError(ValueError):
    """The body has more bytes than the limit."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed address."""

    host: str
    port: int
    tls: bool
    # Path and query, as sent.
    path: str
    # The header Host.
    authority: str
    # The header Authorization, if the address has a user and a password.
    authorization: str | None = None
    password: str | None = None

    def with_query(self, values: Mapping[str, str]) -> "Endpoint":
        """The same address with further parameters."""
        if not values:
            return self
        sign = "&" if "?" in self.path else "?"
        return msgspec.structs.replace(self, path=f"{self.path}{sign}{urlencode(values)}")


def read_endpoint(url: str) -> Endpoint:
    """Parse a URL; raises ValueError if it is not an address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise ValueError("not an http:// or https:// address")
    tls = parts.scheme in ("https", "wss")
    port = parts.port or (443 if tls else 80)
    # Names outside ASCII are sent in IDNA; a ValueError if there is no such form.
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    shown = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    authorization = password = None
    if parts.username is not None or parts.password is not None:
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        authorization = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
    return Endpoint(
        host=host,
        port=port,
        tls=tls,
        path=f"{path}?{query}" if query else path,
        authority=shown if parts.port is None else f"{shown}:{port}",
        authorization=authorization,
        password=password or parts.username if authorization else None,
    )


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME.tls]`; files are PEM, and `${ENV}` is expanded in the password."""

    # False: accept any certificate, e.g. that of a test server.
    verify: bool = True
    # The authority that signed the server's certificate.
    ca_file: str | None = None
    # The client certificate, its key (None: in the same file) and the password of the key.
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = None


def make_tls(settings: TlsSettings) -> ssl.SSLContext:
    """The TLS context that checks a server's certificate and shows the client's; raises OSError if a file cannot be used."""
    context = ssl.create_default_context(cafile=settings.ca_file if settings.verify else None)
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.cert_file is not None:
        # A function, since OpenSSL would ask for a missing password on the terminal.
        password = settings.key_password or ""
        context.load_cert_chain(settings.cert_file, settings.key_file, lambda: password)
    return context


class Response:
    """One response: its connection feeds it bytes, its caller reads the head and then the body.

    Parsing is strict, since a reply that is read wrongly would be charged to the chatbot.
    """

    def __init__(self, method: str, most_bytes: int) -> None:
        self.status = 0
        self.reason = ""
        # By name in lower case.
        self.headers: dict[str, str] = {}
        self.set_cookies: list[str] = []
        # Media type in lower case, and character encoding.
        self.content_type = ""
        self.charset: str | None = None
        # Times on the clock of time.perf_counter: when the attempt that was answered began, and when bytes arrived (0.0: never).
        self.begun = time.perf_counter()
        self.first_byte = self.last_byte = 0.0
        # Sent a second time, on a new connection, because the first was closed before anything came back.
        self.resent = False
        self.head_complete = self.complete = False
        self.failure: Exception | None = None
        self.connection: _Connection | None = None
        self._method = method
        self._most_bytes = most_bytes
        # Parts of the body that have not been read by the caller.
        self._pieces: deque[bytes] = deque()
        # Whether the connection can carry another request: not where bytes follow the response.
        self.keep_alive = False
        self._buffer = b""
        self._state: _Framing = "head"
        self._ends_by_closing = False
        self._left = 0
        self._size = 0
        self._informational = 0
        self._inflate: zlib._Decompress | None = None
        # Whether `deflate` has a zlib header is seen from its first byte.
        self._deflate = False

    # For callers.

    @property
    def is_framed(self) -> bool:
        """Whether the server said where the body ends; else a connection that broke looks like its end."""
        return not self._ends_by_closing

    async def body(self) -> bytes:
        """The whole body; raises ConnectionError if it breaks off."""
        while not self.complete:
            await self._more()
        return b"".join(self._pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; raises ConnectionError if it breaks off."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.complete:
                return
            await self._more()

    async def read(self, most_bytes: int) -> bytes:
        """The body, or its first `most_bytes`."""
        body = b""
        async for chunk in self.chunks():
            body += chunk
            if len(body) >= most_bytes:
                return body[:most_bytes]
        return body

    async def _more(self) -> None:
        """Wait for more bytes; raises what is wrong with those that arrived."""
        if self.failure is not None:
            raise self.failure
        if self.connection is None:
            raise ConnectionResetError("the request was not sent")
        await self.connection.wait()

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.release()

    def release(self) -> None:
        """Close the connection, or reuse it if the body was read to its end."""
        if self.connection is not None:
            is_over = self.complete and self.failure is None
            self.connection.release(self, is_reusable=is_over and self.keep_alive)

    # For the connection.

    def feed(self, data: bytes, now: float) -> bool:
        """Parse bytes that arrived at `now`; False while the head or a short body of known length is incomplete."""
        self.first_byte = self.first_byte or now
        if self.complete or self.failure is not None:
            self.keep_alive = False
            return True
        self.last_byte = now
        self._buffer = self._buffer + data if self._buffer else data
        try:
            needs_more = False
            while self._buffer and not self.complete and not needs_more:
                if self._state == "head":
                    needs_more = not self._read_head()
                elif self._state in ("length", "chunk"):
                    self._read_sized()
                elif self._state == "until_close":
                    part, self._buffer = self._buffer, b""
                    self._store(part)
                else:
                    needs_more = not self._read_chunk_line()
            if self.complete and self._buffer:
                self.keep_alive = False
        except zlib.error as error:
            self.failure = NotHttpError(f"the reply cannot be decompressed: {error}")
        except ValueError as error:
            self.failure = error
        is_short = self._state == "length" and self._left <= _SHORT_BODY
        return self.complete or self.failure is not None or (self.head_complete and not is_short)

    def end(self) -> None:
        if self.complete or self.failure is not None:
            return
        if self._state == "until_close":
            self._finish()
        elif self.head_complete:
            self.failure = ConnectionResetError(f"the reply broke off after {self._size} bytes of its body")
        elif self._buffer:
            self.failure = _not_http(self._buffer)
        else:
            self.failure = ConnectionResetError("the server closed the connection without a reply")

    def _read_head(self) -> bool:
        """Parse a head; False if it is not complete."""
        end, gap = self._buffer.find(b"\r\n\r\n"), 4
        if end < 0:
            end, gap = self._buffer.find(b"\n\n"), 2
        if end < 0 and len(self._buffer) <= _LARGEST_HEAD:
            if not b"HTTP/".startswith(self._buffer[:5]):
                raise _not_http(self._buffer)
            return False
        if end < 0 or end > _LARGEST_HEAD:
            raise NotHttpError(f"the head of the reply is larger than {_LARGEST_HEAD // 1024} kB")
        head, self._buffer = self._buffer[:end], self._buffer[end + gap :]
        first, *lines = head.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
        version, _, rest = first.partition(" ")
        code, _, reason = rest.strip().partition(" ")
        is_status = len(code) == 3 and code.isascii() and code.isdigit() and code[0] != "0"
        if not version.startswith("HTTP/1.") or not is_status:
            raise _not_http(head)
        self.status = int(code)
        self.reason = reason.encode("utf-8", "replace").decode()
        self.headers, self.set_cookies = {}, []
        name = ""
        for line in lines:
            if line[:1] in (" ", "\t") and name:
                # A header that continues on the next line, as old servers write them.
                self.headers[name] = f"{self.headers[name]} {line.strip()}"
                continue
            written, colon, value = line.partition(":")
            name = written.strip().lower()
            if not colon or not name:
                raise NotHttpError(f"a header of the reply is {line[:40]!r}")
            value = value.strip()
            if name == "set-cookie":
                self.set_cookies.append(value)
            if name == "content-length" and self.headers.get(name, value) != value:
                raise NotHttpError("the reply has two different Content-Length headers")
            self.headers[name] = value
        if 100 <= self.status < 200:
            self._informational += 1
            if self.status == 101 or self._informational > _MOST_INFORMATIONAL:
                raise NotHttpError(f"the server answers HTTP {self.status} instead of a reply")
            return True
        self.head_complete = True
        self.content_type, self.charset = _media(self.headers.get("content-type", "application/octet-stream"))
        tokens = self.headers.get("connection", "").lower()
        self.keep_alive = "close" not in tokens and (version != "HTTP/1.0" or "keep-alive" in tokens)
        self._choose_framing()
        return True

    def _choose_framing(self) -> None:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(47)
            self._deflate = encoding == "deflate"
        elif encoding not in ("", "identity"):
            raise NotHttpError(f"the reply is compressed as {encoding[:40]!r}, which was not requested")
        length = self.headers.get("content-length")
        if self._method == "HEAD" or self.status in (204, 304):
            self._inflate = None
            self._finish()
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            # A reply with a Content-Length as well may have been tampered with: its connection is not reused.
            self.keep_alive = self.keep_alive and length is None
            self._state = "chunk_size"
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 15:
                raise NotHttpError(f"the reply has the Content-Length {length[:40]!r}")
            self._left = int(length)
            self._state = "length"
            if not self._left:
                self._finish()
        else:
            self.keep_alive = False
            self._ends_by_closing = True
            self._state = "until_close"

    def _read_sized(self) -> None:
        """Take what has arrived of a body or chunk whose length is known."""
        part = self._buffer[: self._left]
        self._buffer = self._buffer[self._left :]
        self._left -= len(part)
        self._store(part)
        if self._left:
            return
        if self._state == "length":
            self._finish()
        else:
            self._state = "chunk_end"

    def _read_chunk_line(self) -> bool:
        """Parse a line between chunks; False if it is not complete."""
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _LONGEST_CHUNK_LINE:
                raise NotHttpError("a chunk of the reply has no size")
            return False
        line, self._buffer = self._buffer[:end].rstrip(b"\r"), self._buffer[end + 1 :]
        if self._state == "chunk_end":
            if line:
                raise NotHttpError("a chunk of the reply is longer than its size")
            self._state = "chunk_size"
        elif self._state == "trailer":
            if not line:
                self._finish()
        else:
            size = line.partition(b";")[0].strip()
            if not size or len(size) > 15 or not _HEX.issuperset(size):
                raise NotHttpError(f"a chunk of the reply has the size {line[:40]!r}")
            self._left = int(size, 16)
            self._state = "chunk" if self._left else "trailer"
        return True

    def _store(self, part: bytes) -> None:
        """Store a part of the body, decompressed."""
        for piece in (part,) if self._inflate is None else self._inflated(part):
            self._size += len(piece)
            if self._size > self._most_bytes:
                raise ReplyTooLargeError("the reply is larger than the limit")
            if piece:
                self._pieces.append(piece)

    def _inflated(self, part: bytes) -> Iterator[bytes]:
        if self._deflate:
            # Some servers send deflate without its frame.
            self._inflate = zlib.decompressobj(15 if part[0] & 0x0F == 8 else -15)
            self._deflate = False
        while part and self._inflate is not None:
            yield self._inflate.decompress(part, _INFLATED)
            part = self._inflate.unconsumed_tail

    def _finish(self) -> None:
        if (inflate := self._inflate) is not None:
            self._inflate = None
            self._store(inflate.flush())
            if not inflate.eof and self._size:
                self.failure = ConnectionResetError("the compressed reply broke off")
                return
        self.complete = True


def _not_http(content: bytes) -> NotHttpError:
    return NotHttpError(f"this is not an HTTP response: {content[:40]!r}")


@lru_cache(maxsize=64)
def _media(content_type: str) -> tuple[str, str | None]:
    """Media type in lower case and charset; most replies of a server have the same header."""
    kind, *parts = content_type.split(";")
    for part in parts:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return kind.strip().lower(), value.strip().strip("\"'") or None
    return kind.strip().lower(), None


class HttpClient:
    """Sends requests over persistent connections."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, reuse: bool = True) -> None:
        self._tls = tls
        # False: each request has its own connection, so that nothing is ever sent twice.
        self.reuse = reuse
        self.idle: dict[_Key, list[_Connection]] = {}
        self.connections: set[_Connection] = set()

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        most_bytes: int = 1 << 62,
    ) -> Response:
        """Send a request and wait for the head of its response.

        A request that is lost on a reused connection before the first byte is sent once more on a new one. Reading a body
        of more than `most_bytes` raises ReplyTooLargeError.
        """
        content = _encode_request(method, endpoint, headers, body)
        response = Response(method, most_bytes)
        connection = self._idle_connection((endpoint.host, endpoint.port, endpoint.tls))
        if connection is not None:
            if await connection.exchange(content, response):
                return response
            response = Response(method, most_bytes)
            response.resent = True
        connection = await self._connect(endpoint)
        if not await connection.exchange(content, response):
            raise connection.lost()
        return response

    async def close(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        self.idle.clear()

    def _idle_connection(self, key: _Key) -> "_Connection | None":
        idle = self.idle.get(key)
        now = time.monotonic()
        while idle:
            connection = idle.pop()
            if connection.usable and now - connection.idle_since < _KEEP_ALIVE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self, endpoint: Endpoint) -> "_Connection":
        tls: ssl.SSLContext | None = None
        if endpoint.tls:
            tls = self._tls = self._tls or make_tls(TlsSettings())
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self, (endpoint.host, endpoint.port, endpoint.tls)),
            endpoint.host,
            endpoint.port,
            ssl=tls,
            happy_eyeballs_delay=_HAPPY_EYEBALLS_S,
        )
        return connection


class _Connection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, client: HttpClient, key: _Key) -> None:
        self._client = client
        self._key = key
        self.usable = False
        self.idle_since = 0.0
        # The response that is being received.
        self._response: Response | None = None
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._lost_by: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's
        self.usable = True
        self._client.connections.add(self)

    def data_received(self, data: bytes) -> None:
        # The time is taken first, so that it does not include the work on another reply.
        now = time.perf_counter()
        if self._response is None:
            # Nothing was asked: the next reply must not begin with these bytes.
            self.abort()
            return
        if self._response.feed(data, now) and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost_by = self._lost_by or exc
        self._end()
        self._client.connections.discard(self)
        idle = self._client.idle.get(self._key)
        if idle and self in idle:
            idle.remove(self)

    def _end(self) -> None:
        self.usable = False
        if self._response is not None:
            self._response.end()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Done when something happens; a caller that stops waiting must release or abort the connection."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    async def exchange(self, content: bytes, response: Response) -> bool:
        """Send a request; True if a head came back, False if nothing did. Raises what is wrong with a head."""
        self._response = response
        response.connection = self
        if self._transport is None or not self.usable:
            return False
        self._transport.write(content)
        try:
            while not response.head_complete and response.failure is None:
                if not self.usable and not response.first_byte:
                    return False
                await self.wait()
        except asyncio.CancelledError:
            self.abort()
            raise
        if response.head_complete or response.failure is None:
            return True
        self.abort()
        if not response.first_byte:
            return False
        raise response.failure

    def lost(self) -> ConnectionError | ssl.SSLError:
        """Why nothing came back."""
        if isinstance(self._lost_by, (ConnectionError, ssl.SSLError)):
            return self._lost_by
        return ConnectionResetError("the server closed the connection without a reply")

    def release(self, response: Response, *, is_reusable: bool) -> None:
        """The caller is done with the response: reuse the connection, or close it."""
        if not (is_reusable and self.usable and self._client.reuse):
            self.abort()
        elif self._response is response:
            self._response = None
            self.idle_since = time.monotonic()
            self._client.idle.setdefault(self._key, []).append(self)

    def abort(self) -> None:
        """Close it at once."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()


def _encode_request(method: str, endpoint: Endpoint, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {endpoint.path} HTTP/1.1", f"Host: {endpoint.authority}"]
    if endpoint.authorization is not None:
        lines.append(f"Authorization: {endpoint.authorization}")
    for name, value in headers.items():
        lines.append(f"{name}: {value}")
    lines.append("Accept-Encoding: gzip, deflate")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    # Header values outside Latin-1 are sent as UTF-8, which servers that accept them expect.
    return "\r\n".join([*lines, "\r\n"]).encode() + (body or b"")
