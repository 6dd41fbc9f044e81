"""OTLP in JSON. Ids are hexadecimal there, unlike in protobuf's own mapping to JSON; exporters that follow that are read too."""

import base64
from typing import Any

import msgspec

from answerkey.observe.span import Event, Export, MalformedError, Span, Unread
from answerkey.transcripts.json_shapes import as_dict, as_dicts

_DEEPEST = 40
_STATUS = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
# Objects take several times the room of the text that they came from.
_BLOW_UP = 6


def read_json_traces(data: bytes) -> Export:
    """The spans of an export request."""
    export = _export(_records(data, "resourceSpans", "scopeSpans", "spans"), len(data), is_log=False)
    if export.without_span:
        raise MalformedError("a span without a traceId of 32 and a spanId of 16 hexadecimal digits")
    return export


def read_json_logs(data: bytes) -> Export:
    """The log records of an export request that belong to a span."""
    return _export(_records(data, "resourceLogs", "scopeLogs", "logRecords"), len(data), is_log=True)


def _export(found: list[tuple[str, dict[str, Any]]], length: int, *, is_log: bool) -> Export:
    size = _BLOW_UP * length // max(1, len(found))
    items = []
    for scope, record in found:
        trace_id, span_id, parent_id = _ids(record)
        if trace_id and span_id:
            items.append(Unread(trace_id, span_id, parent_id, scope, record, is_log, size))
    return Export(items, len(found) - len(items))


def _ids(record: dict[str, Any]) -> tuple[str, str, str]:
    parent_id = _id(record.get("parentSpanId"), 8)
    return _id(record.get("traceId"), 16), _id(record.get("spanId"), 8), parent_id


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
    try:
        is_hex = len(value) == 2 * length
        decoded = bytes.fromhex(value) if is_hex else base64.b64decode(value, validate=True)
    except ValueError:
        return ""
    return decoded.hex() if len(decoded) == length else ""


def read_json_span(span: dict[str, Any], scope: str) -> Span:
    """One span in full."""
    status = as_dict(span.get("status"))
    code = status.get("code", 0)
    trace_id, span_id, parent_id = _ids(span)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
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
