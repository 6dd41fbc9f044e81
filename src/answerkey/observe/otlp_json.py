"""OTLP in JSON. Ids are hexadecimal there, unlike in protobuf's own mapping to JSON; exporters that follow that are read too."""

import base64
import binascii
from typing import Any

import msgspec

from answerkey.observe.span import Event, Export, MalformedError, Span, Unread
from answerkey.transcripts.json_shapes import as_dict, as_dicts

__all__ = ["read_json_logs", "read_json_span", "read_json_traces", "record_as_json_event"]

_DEEPEST = 40
_STATUS = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
# Objects take several times the room of the text that they came from.
_BLOW_UP = 6


def read_json_traces(data: bytes) -> Export:
    """The spans of an export request."""
    found = _records(data, "resourceSpans", "scopeSpans", "spans")
    size = _BLOW_UP * len(data) // max(1, len(found))
    items = []
    for scope, span in found:
        trace_id, span_id = _id(span.get("traceId"), 16), _id(span.get("spanId"), 8)
        if not trace_id or not span_id:
            raise MalformedError("a span without a traceId of 32 and a spanId of 16 hexadecimal digits")
        items.append(Unread(trace_id, span_id, _id(span.get("parentSpanId"), 8), scope, span, False, size))
    return Export(items)


def read_json_logs(data: bytes) -> Export:
    """The log records of an export request that belong to a span."""
    found = _records(data, "resourceLogs", "scopeLogs", "logRecords")
    size = _BLOW_UP * len(data) // max(1, len(found))
    items = []
    for scope, record in found:
        trace_id, span_id = _id(record.get("traceId"), 16), _id(record.get("spanId"), 8)
        if trace_id and span_id:
            items.append(Unread(trace_id, span_id, "", scope, record, True, size))
    return Export(items, len(found) - len(items))


def _records(data: bytes, outer: str, middle: str, inner: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        request = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"it is not JSON: {error}") from None
    if not isinstance(request, dict) or not isinstance(request.get(outer, []), list):
        raise MalformedError(f"there is no list {outer}")
    return [
        (str(as_dict(part.get("scope")).get("name") or ""), record)
        for resource in as_dicts(request.get(outer))
        for part in as_dicts(resource.get(middle))
        for record in as_dicts(part.get(inner))
    ]


def _id(value: object, length: int) -> str:
    """An id in hexadecimal; empty if it is none."""
    if not isinstance(value, str):
        return ""
    if len(value) == 2 * length:
        try:
            return bytes.fromhex(value).hex()
        except ValueError:
            return ""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.hex() if len(decoded) == length else ""


def read_json_span(span: dict[str, Any], scope: str) -> Span:
    """One span in full."""
    status = as_dict(span.get("status"))
    code = status.get("code", 0)
    return Span(
        trace_id=_id(span.get("traceId"), 16),
        span_id=_id(span.get("spanId"), 8),
        parent_id=_id(span.get("parentSpanId"), 8),
        name=str(span.get("name") or ""),
        scope=scope,
        start_ns=_whole(span.get("startTimeUnixNano")),
        end_ns=_whole(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("attributes")),
        events=[
            Event(str(event.get("name") or ""), _attributes(event.get("attributes")))
            for event in as_dicts(span.get("events"))
        ],
        status=code if isinstance(code, int) else _STATUS.get(str(code), 0),
        status_message=str(status.get("message") or ""),
        links=tuple(_id(link.get("traceId"), 16) for link in as_dicts(span.get("links"))),
    )


def record_as_json_event(record: dict[str, Any]) -> Event:
    """A log record in full, as an event of the span that it names."""
    attributes = _attributes(record.get("attributes"))
    name = record.get("eventName") or attributes.get("event.name") or ""
    return Event(str(name), attributes, _value(record.get("body"), 0))


def _whole(value: object) -> int:
    try:
        return int(value) if isinstance(value, (int, str)) else 0
    except ValueError:
        return 0


def _attributes(value: object, depth: int = 0) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value"), depth) for pair in as_dicts(value)}


def _value(value: object, depth: int) -> Any:
    if depth > _DEEPEST:
        raise MalformedError("a value is nested too deeply")
    for kind, inner in as_dict(value).items():
        if kind == "intValue":
            return _whole(inner)
        if kind == "arrayValue":
            return [_value(one, depth + 1) for one in as_dicts(as_dict(inner).get("values"))]
        if kind == "kvlistValue":
            return _attributes(as_dict(inner).get("values"), depth + 1)
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None
