"""A server that speaks raw bytes: whatever a hostile one may do to a client, on real sockets of loopback."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

__all__ = ["Connection", "answer", "serving"]


class Connection:
    """One connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        # The first connection is 1.
        self.number = number

    async def request(self) -> bytes:
        """The body of the next request; b"" when there is none, or a TLS handshake, at which servers of plain HTTP hang up."""
        try:
            first = await self.reader.read(1)
            if first in (b"", b"\x16"):
                return b""
            head = first + await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                return await self.reader.readexactly(int(line.partition(b":")[2]))
        return head

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    def reset(self) -> None:
        """Hang up with RST instead of FIN."""
        given: socket.socket = self.writer.get_extra_info("socket")
        given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def hang_up(self) -> None:
        self.writer.close()


def answer(
    body: bytes, *headers: bytes, status: bytes = b"200 OK", kind: bytes = b"application/json"
) -> bytes:
    """A proper response."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", b""]) + body


@asynccontextmanager
async def serving(behave: Callable[[Connection], Awaitable[None]]) -> AsyncIterator[str]:
    """The address of a server that does this with every connection."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        # The first connection with nothing on it is the look whether anybody is there.
        count += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await behave(Connection(reader, writer, count))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
    finally:
        server.close()
