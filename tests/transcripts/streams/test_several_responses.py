"""Agents that forward the model's events of every step: several responses in one stream, in each API."""

import json
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.payloads import reply_from_payload
from answerkey.transcripts.streams import EventReader, assemble

TEXT = "The total is 442300."
CALLS = [("query_database", {"sql": "a"}), ("search", {"q": "lease"}), ("search", {"q": "deed"})]


def read(*events: dict[str, Any] | str) -> Reply:
    """The reply in a stream of server-sent events."""
    reader = EventReader("sse")
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    data = reader.feed("".join(lines).encode(), last=True)
    payload, whole = assemble("sse", data, done=reader.done)
    return streamed(reply_from_payload(payload), whole)


def chat(number: int, calls: list[tuple[str, Any]], text: str | None) -> list[dict[str, Any] | str]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": f"chatcmpl-{number}", "choices": [choice]}

    made = [
        {
            "index": place,
            "id": f"c{number}{place}",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for place, (name, given) in enumerate(calls)
    ]
    usage = {
        "id": f"chatcmpl-{number}",
        "choices": [],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }
    said = [chunk({"content": text})] if text else [chunk({"tool_calls": [call]}) for call in made]
    return [chunk({"role": "assistant"}), *said, chunk({}, "stop" if text else "tool_calls"), usage, "[DONE]"]


def responses(number: int, calls: list[tuple[str, Any]], text: str | None) -> list[dict[str, Any] | str]:
    items: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "call_id": f"c{number}{place}",
            "name": name,
            "arguments": json.dumps(given),
        }
        for place, (name, given) in enumerate(calls)
    ]
    if text:
        content = [{"type": "output_text", "text": text}]
        items.append({"type": "message", "role": "assistant", "content": content})
    whole = {
        "id": f"resp_{number}",
        "object": "response",
        "output": items,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
    done = [{"type": "response.output_item.done", "item": item} for item in items]
    created = {"type": "response.created", "response": {"id": f"resp_{number}"}}
    return [created, *done, {"type": "response.completed", "response": whole}]


def anthropic(number: int, calls: list[tuple[str, Any]], text: str | None) -> list[dict[str, Any] | str]:
    events: list[dict[str, Any] | str] = [
        {"type": "message_start", "message": {"id": f"msg_{number}", "usage": {"input_tokens": 11}}}
    ]
    for place, (name, given) in enumerate(calls):
        block = {"type": "tool_use", "id": f"c{number}{place}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        events.append({"type": "content_block_start", "index": place, "content_block": block})
        events.append({"type": "content_block_delta", "index": place, "delta": delta})
    if text:
        events.append(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        )
        events.append(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        )
    stop = {"stop_reason": "end_turn" if text else "tool_use"}
    return [
        *events,
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def gemini(number: int, calls: list[tuple[str, Any]], text: str | None) -> list[dict[str, Any] | str]:
    parts = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    words = [{"text": word} for word in (text or "").partition(" is")]

    def chunk(*held: Any, **more: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": held}, **more}
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7}
        return {"candidates": [candidate], "usageMetadata": usage, "responseId": f"g{number}"}

    return [*map(chunk, (*parts, *words)), chunk({"text": ""}, finishReason="STOP")]


def gemini_without_ids(
    number: int, calls: list[tuple[str, Any]], text: str | None
) -> list[dict[str, Any] | str]:
    parts = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    content = {"role": "model", "parts": [*parts, *([{"text": text}] if text else [])]}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7}
    return [{"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}]


@pytest.mark.parametrize("api", [chat, responses, anthropic, gemini, gemini_without_ids])
def test_every_response_is_read(api: Any) -> None:
    reply = read(*api(1, CALLS[:1], None), *api(2, CALLS[1:], None), *api(3, [], TEXT))
    assert reply.text == TEXT
    assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (33, 21)
    assert (reply.evidence.kind, reply.evidence.completeness) == ("stream", "complete")
    assert reply.evidence.tools_observed


@pytest.mark.parametrize("api", [chat, responses, anthropic])
def test_a_stream_that_breaks_off_after_the_first_response_is_partial(api: Any) -> None:
    events = [*api(1, CALLS[:1], None), *api(2, [], TEXT)[:2]]
    reply = read(*[event for event in events if event != "[DONE]"])
    assert [call.name for call in reply.tool_calls] == ["query_database"]
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)


def test_the_usage_after_the_end_may_come_with_an_empty_delta() -> None:
    end = {
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
        "usage": {"prompt_tokens": 5},
    }
    reply = read(*chat(1, [], TEXT)[:-2], end, "[DONE]")
    assert reply.text == TEXT
    assert reply.usage is not None
    assert reply.usage.input_tokens == 5


def test_of_several_choices_the_first_is_the_reply() -> None:
    def chunk(*parts: tuple[int, str]) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": text}} for index, text in parts]}

    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply = read(
        chunk((0, "TRUTH"), (1, "WRONG")), chunk((1, " a"), (0, " b")), chunk((1, " c")), finish, "[DONE]"
    )
    assert reply.text == "TRUTH b"
