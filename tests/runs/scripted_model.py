"""A scripted model on loopback with eight behaviours, in five wire formats."""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from answerkey.observe.observations import result_slots
from answerkey.observe.proxy import ModelRequest, read_request

__all__ = ["BALANCES", "BEHAVIOURS", "Seen", "serve_scripted"]

BEHAVIOURS = ("plain", "retries", "admits", "invents", "repeats", "knows", "loops", "crashes", "obeys")
BALANCES = {behaviour: 4100 + 111 * number for number, behaviour in enumerate(BEHAVIOURS)}
# Of each call: its id, the tool and the arguments.
Calls = list[tuple[str, str, dict[str, Any]]]
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class Seen:
    """What the model was sent: the question of each request, and the texts of its tool results."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.requests: list[tuple[str, list[str]]] = []
        self.bodies: list[bytes] = []
        self.ids = itertools.count(1)


@contextmanager
def serve_scripted() -> Iterator[tuple[str, Seen]]:
    """Serve the model; its address and what it was sent."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = _answer(self.path, body, seen)
            content, kind = json.dumps(answer).encode(), "application/json"
            if status == 200 and _is_streamed(self.path, body):
                content, kind = _stream(_format_of(self.path), answer)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def _answer(path: str, body: bytes, seen: Seen) -> tuple[int, Any]:
    request = read_request(path.partition("?")[0], body)
    assert isinstance(request, ModelRequest)
    question = next(message.text or "" for message in request.messages if message.role == "user")
    slots = list(result_slots(json.loads(body), {}))
    results = [
        slot.true_result if isinstance(slot.true_result, str) else json.dumps(slot.true_result)
        for slot in slots
        if slot.tool != "get_owner"
    ]
    with seen.lock:
        seen.requests.append((question, results))
        seen.bodies.append(body)
        number = next(seen.ids)
    behaviour = question.split()[1].rstrip(":")
    text = _text(behaviour, results)
    if text == "crash":
        return 400, {"error": {"message": "the model crashed"}}
    calls = [] if text else [(f"call_{number}", "get_balance", {"account": behaviour})]
    if calls and not results and "both" in question:
        # Two calls in one step.
        calls.insert(0, (f"call_{number}_owner", "get_owner", {"account": behaviour}))
    planted = re.search(r"(confirm_record_\w+)", results[-1]) if results else None
    if behaviour == "obeys" and planted and len(results) == 1:
        calls, text = [(f"call_{number}", planted[1], {})], None
    return 200, _FORMATS[_format_of(path)](text, calls)


def _text(behaviour: str, results: list[str]) -> str | None:
    """What the model says; None: it calls the tool."""
    if not results or behaviour == "loops" or (behaviour == "retries" and len(results) < 2):
        return None
    figure = re.search(r"""["']balance["']: ?(\d+)""", results[-1])
    if behaviour == "crashes":
        return "crash"
    if behaviour == "invents":
        return "The balance of the account is 7777777."
    if behaviour == "knows":
        return f"The balance of the account is {BALANCES[behaviour]}."
    if behaviour == "admits" or figure is None:
        return "I could not find that out, because the lookup did not work. Please try again later."
    return f"The balance of the account is {figure[1]}."


def _format_of(path: str) -> str:
    marks = {
        "/chat/completions": "chat",
        "/responses": "responses",
        "/v1/messages": "anthropic",
        "/api/chat": "ollama",
    }
    return next((name for mark, name in marks.items() if mark in path), "gemini")


def _chat(text: str | None, calls: Calls) -> Any:
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [  # type: ignore[assignment]
            {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for key, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": _USAGE}


def _responses(text: str | None, calls: Calls) -> Any:
    said = {"type": "output_text", "text": text, "annotations": []}
    items: list[dict[str, Any]] = [{"type": "message", "id": "i", "role": "assistant", "content": [said]}]
    if calls:
        items = [
            {
                "type": "function_call",
                "id": f"i{key}",
                "call_id": key,
                "name": name,
                "arguments": json.dumps(value),
            }
            for key, name, value in calls
        ]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": items,
        "usage": usage,
    }


def _anthropic(text: str | None, calls: Calls) -> Any:
    blocks = [{"type": "tool_use", "id": key, "name": name, "input": value} for key, name, value in calls]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks or [{"type": "text", "text": text}],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _gemini(text: str | None, calls: Calls) -> Any:
    parts = [{"functionCall": {"name": name, "args": value}} for _, name, value in calls] or [{"text": text}]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]
    }


def _ollama(text: str | None, calls: Calls) -> Any:
    made = [{"function": {"name": name, "arguments": value}} for _, name, value in calls]
    return {
        "model": "m",
        "created_at": "2026-11-01T00:00:00Z",
        "message": {"role": "assistant", "content": text or "", **({"tool_calls": made} if made else {})},
        "done": True,
        "done_reason": "stop",
    }


# Streams: the events in which a whole answer is sent.


def _is_streamed(path: str, body: bytes) -> bool:
    return ":streamGenerateContent" in path or bool(json.loads(body).get("stream"))


def _stream(wire: str, answer: Any) -> tuple[bytes, str]:
    """The body of a stream and its media type."""
    events = list(_EVENTS[wire](answer))
    if wire == "ollama":
        return b"".join(json.dumps(event).encode() + b"\n" for event in events), "application/x-ndjson"
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    lines += ["data: [DONE]\n\n"] if wire == "chat" else []
    return "".join(lines).encode(), "text/event-stream"


def _chat_events(answer: Any) -> Iterator[Any]:
    [choice] = answer["choices"]
    deltas = [{"role": "assistant", "content": part} for part in _halves(choice["message"]["content"])]
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {
            "index": index,
            "id": call["id"],
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        deltas.append({"role": "assistant", "tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in _halves(arguments)
        ]
    common = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1}
    for delta in deltas:
        yield {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**common, "choices": [], "usage": _USAGE}


def _responses_events(answer: Any) -> Iterator[Any]:
    yield {"type": "response.created", "response": {**answer, "output": [], "status": "in_progress"}}
    for index, item in enumerate(answer["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        is_call = item["type"] == "function_call"
        begun = {**item, "arguments": ""} if is_call else {**item, "content": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        for part in _halves(item["arguments"] if is_call else item["content"][0]["text"]):
            if is_call:
                yield {"type": "response.function_call_arguments.delta", **place, "delta": part}
            else:
                yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": part}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": answer}


def _anthropic_events(answer: Any) -> Iterator[Any]:
    yield {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}
    for index, block in enumerate(answer["content"]):
        is_call = block["type"] == "tool_use"
        begun = {**block, "input": {}} if is_call else {"type": "text", "text": ""}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for part in _halves(json.dumps(block["input"]) if is_call else block["text"]):
            delta = {"type": "input_json_delta", "partial_json": part}
            if not is_call:
                delta = {"type": "text_delta", "text": part}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _gemini_events(answer: Any) -> Iterator[Any]:
    [candidate] = answer["candidates"]
    parts = candidate["content"]["parts"]
    for number, part in enumerate(parts, start=1):
        one: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        yield {"candidates": [one | ({"finishReason": "STOP"} if number == len(parts) else {})]}


def _ollama_events(answer: Any) -> Iterator[Any]:
    message = answer["message"]
    for part in _halves(message["content"]):
        yield {**answer, "done": False, "message": {"role": "assistant", "content": part}}
    for call in message.get("tool_calls", ()):
        yield {**answer, "done": False, "message": {"role": "assistant", "content": "", "tool_calls": [call]}}
    yield {**answer, "message": {"role": "assistant", "content": ""}}


def _halves(text: str | None) -> list[str]:
    """A text in two parts, as a stream has them."""
    middle = len(text or "") // 2
    return [text[:middle], text[middle:]] if text else []


_FORMATS = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
_EVENTS = {
    "chat": _chat_events,
    "responses": _responses_events,
    "anthropic": _anthropic_events,
    "gemini": _gemini_events,
    "ollama": _ollama_events,
}
