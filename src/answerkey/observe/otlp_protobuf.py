"""OTLP in protobuf: the few fields that matter, read by hand.

A request is only taken apart into spans at first, in four microseconds each; a span is read in full (forty) once the
question that it belongs to is graded. The generated parser reads in full in seventeen, but what it costs it costs while
a sender waits, spans of no question included; and it needs a package (benchmarks/spans.py).
"""

from struct import unpack_from
from typing import Any

from answerkey.observe.span import Event, Export, MalformedError, Span, Unread

# Deeper values are not looked into.
_DEEPEST = 40
# What a span costs in memory beside its bytes.
_OVERHEAD = 300
# A field as it stands: its number, and a number or the place (start, end) of its bytes.
_Field = tuple[int, int, int]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise MalformedError("a number without an end")


def _fields(data: bytes, at: int, end: int) -> list[_Field]:
    """The fields of a message: (number, start, end) of bytes and fixed numbers; (number, value, -1) of varints."""
    found: list[_Field] = []
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(data, at - 1)
            kind, number = tag & 7, tag >> 3
            if kind == 2:
                length = data[at]
                at += 1
                if length >= 0x80:
                    length, at = _varint(data, at - 1)
                start, at = at, at + length
                found.append((number, start, at))
            elif kind == 0:
                value, at = _varint(data, at)
                found.append((number, value, -1))
            elif kind == 1:
                found.append((number, at, at + 8))
                at += 8
            elif kind == 5:
                found.append((number, at, at + 4))
                at += 4
            else:
                raise MalformedError(f"a field of the unknown kind {kind}")
    except IndexError:
        raise MalformedError("it ends in the middle of a field") from None
    if at != end:
        raise MalformedError("a field is longer than the message that holds it")
    return found


def read_traces(data: bytes) -> Export:
    """The spans of an ExportTraceServiceRequest."""
    items = []
    for scope, start, end in _records(data):
        trace_id, span_id, parent_id = _ids(data, start, end)
        items.append(
            Unread(trace_id, span_id, parent_id, scope, data[start:end], False, end - start + _OVERHEAD)
        )
    return Export(items)


def read_logs(data: bytes) -> Export:
    """The records of an ExportLogsServiceRequest that belong to a span."""
    items, without = [], 0
    for scope, start, end in _records(data):
        ids = {number: data[at:to].hex() for number, at, to in _fields(data, start, end) if number in (9, 10)}
        if not ids.get(9) or not ids.get(10):
            without += 1
            continue
        items.append(Unread(ids[9], ids[10], "", scope, data[start:end], True, end - start + _OVERHEAD))
    return Export(items, without)


def _records(data: bytes) -> list[tuple[str, int, int]]:
    """Where the spans or log records of a request are, each with its scope's name: both are nested in the same way."""
    found = []
    for number, start, end in _fields(data, 0, len(data)):
        if number != 1 or end < 0:
            continue
        for inner, at, to in _fields(data, start, end):
            if inner != 2 or to < 0:
                continue
            parts = _fields(data, at, to)
            scope = next((_first(data, one, two) for kind, one, two in parts if kind == 1), b"")
            name = scope.decode("utf-8", "replace")
            found += [(name, one, two) for kind, one, two in parts if kind == 2 and two >= 0]
    return found


def _ids(data: bytes, start: int, end: int) -> tuple[str, str, str]:
    """A span's ids. Every known exporter writes them first, so that the rest need not be looked at."""
    if data[start : start + 2] == b"\x0a\x10" and data[start + 18 : start + 20] == b"\x12\x08":
        after = start + 28
        if data[after : after + 2] == b"\x22\x08" and after + 10 <= end:
            return (
                data[start + 2 : start + 18].hex(),
                data[start + 20 : after].hex(),
                data[after + 2 : after + 10].hex(),
            )
    ids = {number: data[at:to].hex() for number, at, to in _fields(data, start, end) if number in (1, 2, 4)}
    if len(ids.get(1, "")) != 32 or len(ids.get(2, "")) != 16:
        raise MalformedError("a span without a trace id of 16 bytes and a span id of 8")
    return ids[1], ids[2], ids.get(4, "")


def read_span(data: bytes, scope: str) -> Span:
    """One span in full."""
    span = Span(trace_id="", span_id="", scope=scope, attributes={}, events=[])
    attributes = span.attributes
    for number, at, to in _fields(data, 0, len(data)):
        if number == 9:
            key, value = _pair(data, at, to, 0)
            attributes[key] = value
        elif number == 1:
            span.trace_id = data[at:to].hex()
        elif number == 2:
            span.span_id = data[at:to].hex()
        elif number == 4:
            span.parent_id = data[at:to].hex()
        elif number == 5:
            span.name = _text(data, at, to)
        elif number == 7:
            span.start_ns = _fixed(data, at, to)
        elif number == 8:
            span.end_ns = _fixed(data, at, to)
        elif number == 11:
            span.events.append(_event(data, at, to, named=2, attributed=3))
        elif number == 13:
            span.links = (*span.links, _first(data, at, to).hex())
        elif number == 15:
            for inner, start, end in _fields(data, at, to):
                if inner == 2:
                    span.status_message = _text(data, start, end)
                elif inner == 3:
                    span.status = start
    return span


def record_as_event(data: bytes) -> Event:
    """A log record in full, as an event of the span that it names."""
    return _event(data, 0, len(data), named=12, attributed=6, body=5)


def _event(data: bytes, start: int, end: int, *, named: int, attributed: int, body: int = 0) -> Event:
    """An event or a log record, by the numbers of their fields."""
    name, said, attributes = "", None, {}
    for number, at, to in _fields(data, start, end):
        if number == named:
            name = _text(data, at, to)
        elif number == attributed:
            key, value = _pair(data, at, to, 0)
            attributes[key] = value
        elif number == body:
            said = _value(data, at, to, 0)
    return Event(name or str(attributes.get("event.name", "")), attributes, said)


def _first(data: bytes, start: int, end: int) -> bytes:
    """The field with the number 1: a scope's name, a link's trace id."""
    return next((data[at:to] for number, at, to in _fields(data, start, end) if number == 1), b"")


def _text(data: bytes, start: int, end: int) -> str:
    if end < 0:
        raise MalformedError("a number where a text should be")
    return data[start:end].decode("utf-8", "replace")


def _fixed(data: bytes, start: int, end: int) -> int:
    return int.from_bytes(data[start:end], "little") if end - start == 8 else 0


def _pair(data: bytes, start: int, end: int, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, at, to in _fields(data, start, end):
        if number == 1:
            key = _text(data, at, to)
        elif number == 2:
            value = _value(data, at, to, depth)
    return key, value


def _value(data: bytes, start: int, end: int, depth: int) -> Any:
    """An AnyValue: text, a truth, a number, a list, an object, or bytes."""
    if end < 0:
        raise MalformedError("a number where a value should be")
    if depth > _DEEPEST:
        raise MalformedError("a value is nested too deeply")
    value: Any = None
    for number, at, to in _fields(data, start, end):
        if number == 1:
            value = _text(data, at, to)
        elif number == 2:
            value = bool(at)
        elif number == 3:
            value = at - (1 << 64) if at >= 1 << 63 else at
        elif number == 4 and to - at == 8:
            value = unpack_from("<d", data, at)[0]
        elif number == 5:
            parts = _fields(data, at, to)
            value = [_value(data, one, two, depth + 1) for kind, one, two in parts if kind == 1]
        elif number == 6:
            parts = _fields(data, at, to)
            value = dict([_pair(data, one, two, depth + 1) for kind, one, two in parts if kind == 1])
        elif number == 7:
            value = data[at:to].hex()
    return value
