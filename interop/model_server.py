"""A model that is a script: it speaks the wire formats of five APIs on loopback, and always makes the same two calls.

Asked something, it calls `query_database` and `search_document_content`; given what came of them, it says ANSWER.
"""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ANSWER", "CALLS", "serve_model"]

ANSWER = "The total is 442300; the lease could not be searched."
CALLS = (
    ("call_1", "query_database", {"sql": "SELECT total"}),
    ("call_2", "search_document_content", {"query": "lease"}),
)
_FINAL = (("call_3", "final_answer", {"answer": ANSWER}),)
_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def serve_model() -> str:
    """Start the server in a thread of its own; its address without a path, or that of the proxy before one."""
    if "INTEROP_PROXY" in os.environ:
        return os.environ["INTEROP_PROXY"]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent = json.dumps(body)
        answered = any(
            mark in sent
            for mark in ('"role": "tool"', "tool_result", "function_call_output", "functionResponse")
        )
        # smolagents shows what came of a call as an observation, and wants the answer as a call too.
        answered = answered or "Error executing tool" in sent
        by_call = answered and '"name": "final_answer"' in json.dumps(body.get("tools"))
        wants_stream = bool(body.get("stream")) or "stream" in self.path
        if "[[ ## " in sent:
            self._send([_chat_text(_react_step(sent))], wants_stream, "sse")
        elif "/chat/completions" in self.path:
            whole = _chat(answered and not by_call, _FINAL if by_call else CALLS)
            self._send(_chat_chunks(answered) if wants_stream else [whole], wants_stream, "sse", "[DONE]")
        elif "/responses" in self.path:
            self._send(
                _response_events(answered) if wants_stream else [_response(answered)], wants_stream, "sse"
            )
        elif "/messages" in self.path:
            self._send(
                _anthropic_events(answered) if wants_stream else [_anthropic(answered)], wants_stream, "sse"
            )
        elif "enerateContent" in self.path:
            self._send([_gemini(answered)], wants_stream, "sse")
        else:
            self._send([_ollama(answered)], wants_stream, "lines")

    def _send(self, events: Any, stream: bool, kind: str, last: str | None = None) -> None:
        if not stream:
            return self._reply("application/json", json.dumps(next(iter(events))).encode())
        if kind == "lines":
            return self._reply(
                "application/x-ndjson", b"".join(json.dumps(one).encode() + b"\n" for one in events)
            )
        lines = []
        for event in events:
            named = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{named}data: {json.dumps(event)}\n\n")
        lines += [f"data: {last}\n\n"] if last else []
        return self._reply("text/event-stream", "".join(lines).encode())

    def _reply(self, content_type: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def _chat(answered: bool, made: tuple[Any, ...]) -> dict[str, Any]:
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for one, name, given in made
    ]
    message = {"content": ANSWER} if answered else {"content": None, "tool_calls": calls}
    choice = {"index": 0, "message": {"role": "assistant", **message}}
    choice["finish_reason"] = "stop" if answered else "tool_calls"
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _chat_text(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _react_step(sent: str) -> str:
    """The next step of DSPy's ReAct, in the form that its prompt asks for: calls are fields of a text."""
    if "[[ ## reasoning ## ]]" in sent:
        return f"[[ ## reasoning ## ]]\nDone.\n\n[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"
    done = ("observation_0" in sent) + ("observation_1" in sent)
    name, given = ("finish", {}) if done == len(CALLS) else CALLS[done][1:]
    return (
        f"[[ ## next_thought ## ]]\nNext.\n\n[[ ## next_tool_name ## ]]\n{name}\n\n"
        f"[[ ## next_tool_args ## ]]\n{json.dumps(given)}\n\n[[ ## completed ## ]]"
    )


_HEAD = {"id": "chatcmpl-1", "created": 1_790_000_000, "model": "scripted"}


def _chat_chunks(answered: bool) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    if answered:
        for word in ANSWER.split(" "):
            yield chunk({"content": word if word == "The" else f" {word}"})
    else:
        for index, (one, name, given) in enumerate(CALLS):
            text = json.dumps(given)
            function = {"name": name, "arguments": ""}
            yield chunk(
                {"tool_calls": [{"index": index, "id": one, "type": "function", "function": function}]}
            )
            for piece in (text[:5], text[5:]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "stop" if answered else "tool_calls")
    yield {**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}


def _response(answered: bool) -> dict[str, Any]:
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{one}",
            "call_id": one,
            "name": name,
            "arguments": json.dumps(given),
        }
        for one, name, given in CALLS
    ]
    part = {"type": "output_text", "text": ANSWER, "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "model": "scripted",
        "status": "completed",
        "output": [said] if answered else calls,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "output_tokens": 7,
            "total_tokens": 18,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(answered: bool) -> Iterator[dict[str, Any]]:
    whole = _response(answered)
    yield {
        "type": "response.created",
        "sequence_number": 0,
        "response": {**whole, "status": "in_progress", "output": []},
    }
    number = 0
    for index, item in enumerate(whole["output"]):
        number += 1
        begun = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        at = {"output_index": index, "item_id": item["id"]}
        yield {
            "type": "response.output_item.added",
            "sequence_number": number,
            "output_index": index,
            "item": begun,
        }
        number += 1
        if item["type"] == "message":
            delta = {"content_index": 0, "delta": ANSWER, "logprobs": []}
            yield {"type": "response.output_text.delta", "sequence_number": number, **at, **delta}
        else:
            kind = "response.function_call_arguments.delta"
            yield {"type": kind, "sequence_number": number, **at, "delta": item["arguments"]}
        number += 1
        yield {
            "type": "response.output_item.done",
            "sequence_number": number,
            "output_index": index,
            "item": item,
        }
    yield {"type": "response.completed", "sequence_number": number + 1, "response": whole}


def _anthropic(answered: bool) -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": one, "name": name, "input": given} for one, name, given in CALLS]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": ANSWER}] if answered else calls,
        "stop_reason": "end_turn" if answered else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _anthropic_events(answered: bool) -> Iterator[dict[str, Any]]:
    whole = _anthropic(answered)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        begun = {**block, "text": ""} if answered else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        text = ANSWER if answered else json.dumps(block["input"])
        for piece in (text[:5], text[5:]):
            delta = (
                {"type": "text_delta", "text": piece}
                if answered
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"]},
        "usage": {"output_tokens": 7},
    }
    yield {"type": "message_stop"}


def _gemini(answered: bool) -> dict[str, Any]:
    calls = [{"functionCall": {"name": name, "args": given}} for _, name, given in CALLS]
    content = {"role": "model", "parts": [{"text": ANSWER}] if answered else calls}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "responseId": "r1",
    }


def _ollama(answered: bool) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": given}} for _, name, given in CALLS]
    said: dict[str, Any] = {"content": ANSWER} if answered else {"content": "", "tool_calls": calls}
    return {
        "model": "scripted",
        "created_at": "2026-11-01T00:00:00Z",
        "message": {"role": "assistant", **said},
        "done": True,
        "done_reason": "stop",
        "total_duration": 1_000_000,
        "prompt_eval_count": 11,
        "eval_count": 7,
    }
