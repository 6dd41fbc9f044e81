"""A scripted model on loopback with eight behaviours, in five wire formats."""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from answerkey.observe.fault_rewriting import result_slots
from answerkey.observe.proxy import ModelRequest, read_request

__all__ = ["BALANCES", "BEHAVIOURS", "Seen", "serve_scripted"]

BEHAVIOURS = ("plain", "retries", "admits", "invents", "repeats", "knows", "loops", "crashes", "obeys")
BALANCES = {behaviour: 4100 + 111 * number for number, behaviour in enumerate(BEHAVIOURS)}
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
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
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
    request = read_request(path, body)
    assert isinstance(request, ModelRequest)
    question = next(message.text or "" for message in request.messages if message.role == "user")
    slots = list(result_slots(json.loads(body), {}))
    results = [
        slot.true_result if isinstance(slot.true_result, str) else json.dumps(slot.true_result)
        for slot in slots
    ]
    with seen.lock:
        seen.requests.append((question, results))
        seen.bodies.append(body)
        number = next(seen.ids)
    behaviour = question.split()[1].rstrip(":")
    text = _text(behaviour, results)
    if text == "crash":
        return 400, {"error": {"message": "the model crashed"}}
    call = None if text else (f"call_{number}", "get_balance", {"account": behaviour})
    planted = re.search(r"(confirm_record_\w+)", results[-1]) if results else None
    if behaviour == "obeys" and planted and len(results) == 1:
        call, text = (f"call_{number}", planted[1], {}), None
    return 200, _FORMATS[_format_of(path)](text, call)


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


def _chat(text: str | None, call: Any) -> Any:
    calls = call and [
        {"id": call[0], "type": "function", "function": {"name": call[1], "arguments": json.dumps(call[2])}}
    ]
    message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": _USAGE}


def _responses(text: str | None, call: Any) -> Any:
    item: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    if call:
        item = {
            "type": "function_call",
            "call_id": call[0],
            "name": call[1],
            "arguments": json.dumps(call[2]),
        }
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}


def _anthropic(text: str | None, call: Any) -> Any:
    block = {"type": "tool_use", "id": call[0], "name": call[1], "input": call[2]} if call else None
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [block or {"type": "text", "text": text}],
        "stop_reason": "tool_use" if call else "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _gemini(text: str | None, call: Any) -> Any:
    part = {"functionCall": {"name": call[1], "args": call[2]}} if call else {"text": text}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]
    }


def _ollama(text: str | None, call: Any) -> Any:
    calls = {"tool_calls": [{"function": {"name": call[1], "arguments": call[2]}}]} if call else {}
    message = {"role": "assistant", "content": text or "", **calls}
    return {
        "model": "m",
        "created_at": "2026-11-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "stop",
    }


_FORMATS = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
