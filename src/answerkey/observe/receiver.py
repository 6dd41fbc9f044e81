"""The OTLP/HTTP receiver: what it answers to each request, whichever server it stands in, and a server of its own."""

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from answerkey.observe.otlp_json import read_json_logs, read_json_traces
from answerkey.observe.otlp_protobuf import read_logs, read_traces
from answerkey.observe.span import MalformedError, Unread
from answerkey.observe.trace_book import OverfullError

if TYPE_CHECKING:
    from aiohttp import web

# The largest body, as it is sent and as it is unpacked.
MOST_BYTES = 32 * 1024 * 1024
# All requests together that are still being read.
_MOST_READING = 4 * MOST_BYTES
# What is sent to each path; metrics are taken and not used, since exporters send all to one address.
PATHS = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_READERS = {
    ("traces", False): read_traces,
    ("logs", False): read_logs,
    ("traces", True): read_json_traces,
    ("logs", True): read_json_logs,
}


class Taker(Protocol):
    """Where spans go: a TraceBook, or the server's."""

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        """Keep them all, or raise OverfullError and keep none."""


class Answer(NamedTuple):
    """The answer to an export request."""

    status: int
    body: bytes
    content_type: str
    headers: dict[str, str]


class Receiver:
    """Takes export requests apart and hands the spans on."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._reading = 0

    def begin(self, length: int) -> bool:
        """Whether there is room to read so many bytes more; `end` gives it back."""
        if self._reading + length > _MOST_READING:
            return False
        self._reading += length
        return True

    def end(self, length: int) -> None:
        """A request has been dealt with."""
        self._reading -= length

    def receive(self, signal: str, content_type: str, encoding: str, body: bytes) -> Answer:
        """The answer to one request."""
        kind = content_type.partition(";")[0].strip().lower()
        is_json = kind == "application/json"
        if not is_json and kind not in ("application/x-protobuf", "application/protobuf"):
            return refusal(415, "send application/x-protobuf or application/json", is_json=True)
        try:
            plain = unpacked(body, encoding)
            if plain is None:
                return refusal(
                    413, f"at most {MOST_BYTES} bytes, unpacked too; send smaller batches", is_json=is_json
                )
            if signal != "metrics":
                items, without_span = _READERS[signal, is_json](plain)
                self._taker.take(items, without_span)
        except MalformedError as error:
            return refusal(400, f"this is not an OTLP request: {error}", is_json=is_json)
        except OverfullError:
            return busy(is_json=is_json)
        return Answer(200, b"{}" if is_json else b"", kind, {})


def busy(*, is_json: bool) -> Answer:
    """There is no room now: nothing was taken, and the sender keeps it."""
    return refusal(
        503, "no room for more spans now; send them again", is_json=is_json, headers={"Retry-After": "1"}
    )


def refusal(status: int, message: str, *, is_json: bool, headers: dict[str, str] | None = None) -> Answer:
    """A google.rpc.Status in the encoding of the request, as OTLP has it."""
    if is_json:
        return Answer(status, msgspec.json.encode({"message": message}), "application/json", headers or {})
    text = message.encode()[:120]
    return Answer(status, b"\x12" + bytes([len(text)]) + text, "application/x-protobuf", headers or {})


def unpacked(body: bytes, encoding: str) -> bytes | None:
    """The body without its compression; None if it is too large. A bomb is noticed before it is unpacked."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body if len(body) <= MOST_BYTES else None
    if encoding not in ("gzip", "deflate"):
        raise MalformedError(f"the encoding {encoding[:20]!r} is not known; use gzip")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = unpacker.decompress(body, MOST_BYTES + 1)
    except zlib.error as error:
        raise MalformedError(f"it is not {encoding}: {error}") from None
    if len(plain) > MOST_BYTES:
        return None
    if not unpacker.eof:
        raise MalformedError(f"the {encoding} data ends too early")
    return plain


def receiver_app(receiver: Receiver) -> "web.Application":
    """The receiver as a server of its own."""
    from aiohttp import web  # 200 ms that only runs with an observer need

    async def handle(request: web.Request) -> web.Response:
        is_json = request.content_type == "application/json"
        body = bytearray()
        reserved = 0
        answer: Answer | None = None
        try:
            async for chunk in request.content.iter_any():
                if not receiver.begin(len(chunk)):
                    answer = busy(is_json=is_json)
                    break
                reserved += len(chunk)
                body += chunk
                if len(body) > MOST_BYTES:
                    answer = refusal(
                        413, f"at most {MOST_BYTES} bytes; send smaller batches", is_json=is_json
                    )
                    break
            if answer is None:
                encoding = request.headers.get("Content-Encoding", "")
                answer = receiver.receive(PATHS[request.path], request.content_type, encoding, bytes(body))
        finally:
            receiver.end(reserved)
        headers: dict[str, Any] = {"Content-Type": answer.content_type, **answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    app = web.Application(handler_args={"auto_decompress": False, "access_log": None})
    for path in PATHS:
        app.router.add_post(path, handle)
    return app
