"""Events out of a byte stream: server-sent events, JSON lines, and the line protocol of the AI SDK 4."""

import codecs
from typing import Literal

StreamKind = Literal["sse", "lines", "data-stream"]

_LINE_TYPES = (
    *("application/x-ndjson", "application/ndjson", "application/stream+json", "application/jsonl"),
    *("application/jsonlines", "application/x-jsonlines", "application/json-lines"),
)
# Content type → how a response of it streams; any other does not.
STREAM_KINDS: dict[str, StreamKind] = {"text/event-stream": "sse", **dict.fromkeys(_LINE_TYPES, "lines")}


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
        if last:
            # An event that the end cuts off is complete all the same.
            lines += [self._rest, ""]
            self._rest = ""
        events = [event for line in lines if (event := self._completed_by(line)) is not None]
        self.done = self.done or any(event.strip() == "[DONE]" for event in events)
        return [event for event in events if event.strip() != "[DONE]"]

    def _completed_by(self, line: str) -> str | None:
        if self._kind != "sse":
            return line if line.strip() else None
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        if line or not self._data:
            return None
        event, self._data = "\n".join(self._data), []
        return event
