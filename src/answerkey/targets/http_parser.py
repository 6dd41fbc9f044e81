"""What a server sends, read as an HTTP/1.1 response: strictly, since what is read wrongly would be charged to the chatbot."""

import zlib
from collections import deque
from typing import Literal

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
