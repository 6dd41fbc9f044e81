"""What a server sends, read as an HTTP/1.1 response: strictly, since what is read wrongly would be charged to the chatbot."""

import asyncio
import ssl
import time
import zlib
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Literal
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

_LARGEST_HEAD = 64 * 1024
_LONGEST_CHUNK_LINE = 4096
# Heads such as 100 Continue and 103 Early Hints that may come before the one that counts.
_MOST_INFORMATIONAL = 20
# So many bytes are decompressed at a time, so that a small reply cannot grow without bound before it is looked at.
_INFLATED = 1024 * 1024
_HEX = frozenset(b"0123456789abcdefABCDEF")

_Framing = Literal["head", "length", "chunk_size", "chunk", "chunk_end", "trailer", "until_close"]


class NotHttpError(ValueError):
    """What came back is no HTTP response."""


class ReplyTooLargeError(ValueError):
    """A body of more bytes than are wanted."""


class ResponseParser:
    """Reads one response from the bytes of its connection."""

    def __init__(self, method: str, most_bytes: int) -> None:
        self._method = method
        self._most_bytes = most_bytes
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        self.set_cookies: list[str] = []
        # What has been read of the body and not been taken yet.
        self.pieces: deque[bytes] = deque()
        self.head_complete = self.complete = False
        self.failure: Exception | None = None
        # When bytes arrived; 0.0: none have.
        self.first_byte = self.last_byte = 0.0
        self._keep_alive = False
        self._extra = False
        self._buffer = b""
        self._state: _Framing = "head"
        self._left = 0
        self._size = 0
        self._informational = 0
        self._inflate: zlib._Decompress | None = None
        # Whether how `deflate` is meant is still to be seen from its first byte.
        self._deflate = False

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request after this response."""
        return self.complete and self.failure is None and self._keep_alive and not self._extra

    def feed(self, data: bytes, now: float) -> None:
        """Bytes that arrived at a time."""
        self.first_byte = self.first_byte or now
        if self.complete or self.failure is not None:
            self._extra = True
            return
        self.last_byte = now
        self._buffer = self._buffer + data if self._buffer else data
        try:
            while self._buffer and not self.complete and self._step():
                pass
            self._extra = self.complete and bool(self._buffer)
        except (ValueError, zlib.error) as error:
            wrong = NotHttpError(f"the reply cannot be decompressed: {error}")
            self.failure = error if isinstance(error, ValueError) else wrong

    def end(self) -> None:
        """The connection has ended: what is missing now will not come."""
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

    def _step(self) -> bool:
        """Read one part; False where more bytes are needed."""
        state = self._state
        if state == "head":
            return self._read_head()
        if state in ("length", "chunk"):
            part = self._buffer[: self._left]
            self._buffer = self._buffer[self._left :]
            self._left -= len(part)
            self._add(part)
            if not self._left:
                if state == "length":
                    self._finish()
                self._state = "chunk_end"
            return True
        if state == "until_close":
            part, self._buffer = self._buffer, b""
            self._add(part)
            return True
        return self._read_chunk_line()

    def _read_chunk_line(self) -> bool:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _LONGEST_CHUNK_LINE:
                raise NotHttpError("a chunk of the reply has no size")
            return False
        line, self._buffer = self._buffer[:end].rstrip(b"\r"), self._buffer[end + 1 :]
        if self._state == "chunk_end":
            if line:
                raise NotHttpError("a chunk of the reply is longer than it says")
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

    def _read_head(self) -> bool:
        end, gap = self._buffer.find(b"\r\n\r\n"), 4
        if end < 0:
            end, gap = self._buffer.find(b"\n\n"), 2
        if end < 0:
            if len(self._buffer) > _LARGEST_HEAD:
                raise NotHttpError(f"the head of the reply is larger than {_LARGEST_HEAD // 1024} kB")
            if not b"HTTP/".startswith(self._buffer[:5]):
                raise _not_http(self._buffer)
            return False
        if end > _LARGEST_HEAD:
            raise NotHttpError(f"the head of the reply is larger than {_LARGEST_HEAD // 1024} kB")
        head, self._buffer = self._buffer[:end], self._buffer[end + gap :]
        first, *lines = head.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
        version, _, rest = first.partition(" ")
        code, _, reason = rest.strip().partition(" ")
        if not version.startswith("HTTP/1.") or len(code) != 3 or not (code.isascii() and code.isdigit()):
            raise _not_http(head)
        self.status = int(code)
        self.reason = reason.encode("utf-8", "replace").decode()
        self._read_fields(lines)
        if 100 <= self.status < 200:
            self._informational += 1
            if self.status == 101 or self._informational > _MOST_INFORMATIONAL:
                raise NotHttpError(f"the server answers HTTP {self.status} instead of a reply")
            return True
        self.head_complete = True
        tokens = self.headers.get("connection", "").lower()
        self._keep_alive = "close" not in tokens and (version != "HTTP/1.0" or "keep-alive" in tokens)
        self._choose_framing()
        return True

    def _read_fields(self, lines: list[str]) -> None:
        self.headers, self.set_cookies = {}, []
        name = ""
        for line in lines:
            if line[:1] in (" ", "\t") and name:
                # A header that goes on in the next line, as old servers write them.
                self.headers[name] = f"{self.headers[name]} {line.strip()}"
                continue
            given, colon, value = line.partition(":")
            name = given.strip().lower()
            if not colon or not name:
                raise NotHttpError(f"a header of the reply is {line[:40]!r}")
            value = value.strip()
            if name == "set-cookie":
                self.set_cookies.append(value)
            if name == "content-length" and self.headers.get(name, value) != value:
                raise NotHttpError("the reply says two different lengths of its own")
            self.headers[name] = value

    def _choose_framing(self) -> None:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(47)
            self._deflate = encoding == "deflate"
        elif encoding not in ("", "identity"):
            raise NotHttpError(f"the reply is compressed as {encoding[:40]!r}, which was not asked for")
        length = self.headers.get("content-length")
        if self._method == "HEAD" or self.status in (204, 304):
            self._inflate = None
            self._finish()
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            # A reply that says its length as well may have been tampered with on the way: its connection ends with it.
            self._keep_alive = self._keep_alive and length is None
            self._state = "chunk_size"
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 15:
                raise NotHttpError(f"the reply says that it has {length[:40]!r} bytes")
            self._left = int(length)
            self._state = "length"
            if not self._left:
                self._finish()
        else:
            self._keep_alive = False
            self._state = "until_close"

    def _add(self, part: bytes) -> None:
        if self._inflate is None:
            self._keep(part)
            return
        if self._deflate:
            # Some servers send deflate without its frame.
            self._inflate = zlib.decompressobj(15 if part[0] & 0x0F == 8 else -15)
            self._deflate = False
        while part:
            self._keep(self._inflate.decompress(part, _INFLATED))
            part = self._inflate.unconsumed_tail

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if self._size > self._most_bytes:
            raise ReplyTooLargeError("the reply is larger than is wanted")
        self.pieces.append(part)

    def _finish(self) -> None:
        if self._inflate is not None:
            self._keep(self._inflate.flush())
            if not self._inflate.eof and self._size:
                self.failure = ConnectionResetError("the compressed reply broke off")
                return
        self.complete = True


def _not_http(content: bytes) -> NotHttpError:
    return NotHttpError(f"what came back is no HTTP response: {content[:40]!r}")


# HttpClient: HTTP/1.1 over asyncio, with kept-alive connections, TLS, chunked and compressed replies, and exact times.
#
# It is written out because asking is all that answerkey waits for: importing a general client takes longer than a thousand
# questions, and none of them sends again what died on a connection that the server had already closed. It follows no
# redirect, takes no proxy from the environment and keeps no cookies: whoever calls decides about those.


__all__ = ["Endpoint", "HttpClient", "NotHttpError", "Response", "make_tls", "read_endpoint"]

# Servers close idle connections after 2 to 5 s; one is given up sooner.
_KEEP_ALIVE_S = 1.5
_HAPPY_EYEBALLS_S = 0.25


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An address, read once."""

    host: str
    port: int
    tls: bool
    # Path and query, as they are sent.
    path: str
    # What the header Host says.
    authority: str
    # The header Authorization, where the address has a user and a password.
    authorization: str | None = None
    password: str | None = None

    def with_query(self, values: Mapping[str, str]) -> "Endpoint":
        """The same address with more parameters."""
        if not values:
            return self
        sign = "&" if "?" in self.path else "?"
        return msgspec.structs.replace(self, path=f"{self.path}{sign}{urlencode(values)}")


def read_endpoint(url: str) -> Endpoint:
    """The address in a URL; a ValueError if it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise ValueError("not an http:// or https:// address")
    tls = parts.scheme in ("https", "wss")
    port = parts.port or (443 if tls else 80)
    # Names outside ASCII are sent as the network knows them; a ValueError if there is no such form.
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


def make_tls(*, verify: bool = True, ca_file: str | None = None) -> ssl.SSLContext:
    """How a server's certificate is checked."""
    context = ssl.create_default_context(cafile=ca_file if verify else None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Response:
    """A reply whose head has arrived; its body is read on."""

    def __init__(self, connection: "_Connection", begun: float, *, resent: bool) -> None:
        self._connection = connection
        self._parser = parser = connection.parser
        self.status = parser.status
        self.reason = parser.reason
        # By name in small letters.
        self.headers = parser.headers
        self.set_cookies = parser.set_cookies
        # When the attempt that counted began: on the clock of time.perf_counter, as the other times.
        self.begun = begun
        # Sent a second time, on a new connection, since the first died before anything came back.
        self.resent = resent

    @property
    def first_byte(self) -> float:
        """When the first byte arrived."""
        return self._parser.first_byte

    @property
    def last_byte(self) -> float:
        """When the last byte so far arrived."""
        return self._parser.last_byte

    @property
    def content_type(self) -> str:
        """The media type in small letters."""
        return _media(self.headers.get("content-type", "application/octet-stream"))[0]

    @property
    def charset(self) -> str | None:
        """The encoding that the reply says it is in."""
        return _media(self.headers.get("content-type", ""))[1]

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; raises ConnectionError if it breaks off."""
        parser = self._parser
        while True:
            while parser.pieces:
                yield parser.pieces.popleft()
            if parser.failure is not None:
                raise parser.failure
            if parser.complete:
                return
            await self._connection.wait()

    async def read(self, most_bytes: int) -> bytes:
        """The body, or its beginning if it is longer."""
        body = b""
        async for chunk in self.chunks():
            body += chunk
            if len(body) >= most_bytes:
                return body[:most_bytes]
        return body

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Be done with it: a connection whose reply was read to its end can be used again."""
        self._connection.release()


class HttpClient:
    """Sends requests and keeps connections for the next."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, reuse: bool = True) -> None:
        self._tls = tls
        # False: every request has a connection of its own, so that nothing is ever sent twice.
        self._reuse = reuse
        self._idle: dict[tuple[str, int, bool], list[_Connection]] = {}
        self._open: set[_Connection] = set()

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        most_bytes: int = 1 << 62,
    ) -> Response:
        """Send a request and wait for the head of its reply.

        What dies on a kept-alive connection before its first byte is sent once more on a new one. A reply of more than
        `most_bytes` has the failure ReplyTooLargeError when it is read.
        """
        content = _request(method, endpoint, headers, body)
        begun = time.perf_counter()
        connection = self._kept((endpoint.host, endpoint.port, endpoint.tls))
        resent = False
        if connection is not None:
            if await connection.exchange(content, method, most_bytes):
                return Response(connection, begun, resent=False)
            resent, begun = True, time.perf_counter()
        connection = await self._connect(endpoint)
        if not await connection.exchange(content, method, most_bytes):
            raise connection.lost()
        return Response(connection, begun, resent=resent)

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            connection.abort()
        self._idle.clear()

    def _kept(self, key: tuple[str, int, bool]) -> "_Connection | None":
        idle = self._idle.get(key)
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
            tls = self._tls = self._tls or make_tls()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self, (endpoint.host, endpoint.port, endpoint.tls)),
            endpoint.host,
            endpoint.port,
            ssl=tls,
            happy_eyeballs_delay=_HAPPY_EYEBALLS_S,
        )
        return connection

    def keep(self, connection: "_Connection") -> None:
        """Take back a connection whose reply was read."""
        if self._reuse:
            self._idle.setdefault(connection.key, []).append(connection)
        else:
            connection.abort()

    def opened(self, connection: "_Connection") -> None:
        """A connection was made."""
        self._open.add(connection)

    def ended(self, connection: "_Connection") -> None:
        """A connection is no more."""
        self._open.discard(connection)
        idle = self._idle.get(connection.key)
        if idle and connection in idle:
            idle.remove(connection)


class _Connection(asyncio.Protocol):
    """One connection, on which one request at a time is under way."""

    def __init__(self, client: HttpClient, key: tuple[str, int, bool]) -> None:
        self._client = client
        self.key = key
        self.parser = ResponseParser("", 0)
        self.usable = False
        self.idle_since = 0.0
        self._busy = False
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._why: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's
        self.usable = True
        self._client.opened(self)

    def data_received(self, data: bytes) -> None:
        # The time is taken before anything else, so that no other reply's work is in it.
        now = time.perf_counter()
        if not self._busy:
            # Nothing was asked: whatever this is, the next reply must not begin with it.
            self.abort()
            return
        self.parser.feed(data, now)
        self._wake()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._why = self._why or exc
        self._end()
        self._client.ended(self)

    def _end(self) -> None:
        self.usable = False
        if self._busy:
            self.parser.end()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until something happens."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise

    async def exchange(self, content: bytes, method: str, most_bytes: int) -> bool:
        """Send a request; whether anything came back. Raises what is wrong with a head that did."""
        parser = self.parser = ResponseParser(method, most_bytes)
        self._busy = True
        if self._transport is None or not self.usable:
            return False
        self._transport.write(content)
        while not parser.head_complete and parser.failure is None:
            if not self.usable and not parser.first_byte:
                return False
            await self.wait()
        if parser.failure is not None and not parser.head_complete:
            self.abort()
            if not parser.first_byte:
                return False
            raise parser.failure
        return True

    def lost(self) -> ConnectionError:
        """Why nothing came back."""
        if isinstance(self._why, ConnectionError):
            return self._why
        return ConnectionResetError("the server closed the connection without a reply")

    def release(self) -> None:
        """The reply has been read, or nobody wants the rest of it."""
        if self.parser.reusable and self.usable:
            self._busy = False
            self.idle_since = time.monotonic()
            self._client.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close it at once."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()


@lru_cache(maxsize=64)
def _media(content_type: str) -> tuple[str, str | None]:
    """Media type in small letters and charset of a header that most replies of a server share."""
    kind, *parts = content_type.split(";")
    for part in parts:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return kind.strip().lower(), value.strip().strip("\"'") or None
    return kind.strip().lower(), None


def _request(method: str, endpoint: Endpoint, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {endpoint.path} HTTP/1.1", f"Host: {endpoint.authority}"]
    if endpoint.authorization is not None:
        lines.append(f"Authorization: {endpoint.authorization}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append("Accept-Encoding: gzip, deflate")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    # Header values outside Latin-1 go out as UTF-8, which is what servers that take them expect.
    return "\r\n".join([*lines, "\r\n"]).encode() + (body or b"")
