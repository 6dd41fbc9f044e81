"""Spans as exporters write them, in both encodings of OTLP."""

import json
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"
ASKED = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{ASKED}-01"


def span(
    span_id: str, parent: str = ASKED, *, trace: str = TRACE, name: str = "step", **more: Any
) -> dict[str, Any]:
    """A span by the names of OTLP's JSON, with plain attributes."""
    return {"traceId": trace, "spanId": span_id, "parentSpanId": parent, "name": name, **more}


def tool_span(span_id: str, parent: str, name: str, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(span_id, parent, name=f"execute_tool {name}", attributes={**attributes, **more})


def model_span(span_id: str, parent: str, *messages: dict[str, Any]) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(messages)}
    return span(span_id, parent, name="chat", attributes=attributes)


def as_json(*spans: dict[str, Any], scope: str = "tests") -> bytes:
    """An export request in JSON."""
    written = []
    for number, one in enumerate(spans):
        attributes = [
            {"key": key, "value": _value(value)} for key, value in one.get("attributes", {}).items()
        ]
        times = {"startTimeUnixNano": str(1000 + number), "endTimeUnixNano": str(2000 + number)}
        written.append({**times, **one, "attributes": attributes})
    return json.dumps(
        {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": written}]}]}
    ).encode()


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def as_protobuf(*spans: dict[str, Any], scope: str = "tests") -> bytes:
    """The same in protobuf."""
    written = []
    for number, one in enumerate(spans):
        parts = [
            field(1, bytes.fromhex(one["traceId"])),
            field(2, bytes.fromhex(one["spanId"])),
            field(4, bytes.fromhex(one["parentSpanId"])) if one["parentSpanId"] else b"",
            field(5, one["name"].encode()),
            b"\x39" + (1000 + number).to_bytes(8, "little") + b"\x41" + (2000 + number).to_bytes(8, "little"),
            *(
                field(9, field(1, key.encode()) + field(2, any_value(value)))
                for key, value in one.get("attributes", {}).items()
            ),
            *(field(13, field(1, bytes.fromhex(link["traceId"]))) for link in one.get("links", [])),
        ]
        written.append(field(2, b"".join(parts)))
    return field(1, field(2, field(1, field(1, scope.encode())) + b"".join(written)))


def varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def any_value(value: Any) -> bytes:
    if isinstance(value, int):
        return varint(3 << 3) + varint(value)
    if isinstance(value, list):
        return field(5, b"".join(field(1, any_value(one)) for one in value))
    return field(1, value.encode())
