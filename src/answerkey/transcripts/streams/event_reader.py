"""Events out of a byte stream: server-sent events, JSON lines, and the line protocol of the AI SDK 4."""

import codecs
from typing import Literal

__all__ = ["EventReader", "StreamKind", "stream_kind"]

StreamKind = Literal["sse", "lines", "data-stream"]

_LINE_TYPES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/jsonlines",
        "application/x-jsonlines",
        "application/json-lines",
        "application/stream+json",
    },
)


def stream_kind(content_type: str, is_data_stream: bool) -> StreamKind | None:
    """How a response of this type streams; None if it does not."""
    if is_data_stream:
        return "data-stream"
    if content_type == "text/event-stream":
        return "sse"
    return "lines" if content_type in _LINE_TYPES else None


class EventReader:
    """Takes bytes and gives the data of each event as text."""

    def __init__(self, kind: StreamKind) -> None:
        self._kind = kind
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._data: list[str] = []
        # Whether the stream said that it is over.
        self.done = False

    def feed(self, chunk: bytes, *, last: bool = False) -> list[str]:
        """The events that `chunk` completes."""
        text = self._rest + self._decoder.decode(chunk, last)
        # A CR at the very end may be half of a CRLF.
        held = "\r" if text.endswith("\r") and not last else ""
        lines = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        if last and self._rest:
            lines.append(self._rest)
            self._rest = ""
        events: list[str] = []
        for line in lines:
            self._line(line, events)
        if last and self._data:
            events.append("\n".join(self._data))
            self._data = []
        return [event for event in events if not self._is_end(event)]

    def _line(self, line: str, events: list[str]) -> None:
        if self._kind != "sse":
            if line.strip():
                events.append(line)
        elif not line:
            if self._data:
                events.append("\n".join(self._data))
                self._data = []
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))

    def _is_end(self, event: str) -> bool:
        if event.strip() == "[DONE]":
            self.done = True
            return True
        return False
