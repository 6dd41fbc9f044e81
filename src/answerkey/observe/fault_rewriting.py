"""Faults in the proxy: rewrites tool results inside requests to models, and answers of tools behind the proxy.

A model's API has no memory, so an agent sends each tool result again with every later request. What was planted for a call
is kept per conversation and planted again, so that the conversation stays consistent and every other byte as the agent sent it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.fault import Fault, FaultRecord, Planted, decoded, plant
from answerkey.observe.merging import same_tool
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, decode_strict_json

# Seconds after which a tool that hangs answers 504: longer than most clients wait.
HANG_S = 30.0
# Text parts of a tool result, in the APIs that divide it.
_TEXT_TYPES = {"chat": "text", "responses": "input_text", "anthropic": "text"}


class ResultSlot(NamedTuple):
    """The place of a tool result in a request."""

    tool: str
    # The call's id; None: the API has none.
    id: str | None
    true_result: Any
    write: Callable[[Planted], None]


class ConversationFaults:
    """What is planted in one conversation."""

    def __init__(self) -> None:
        self._fault: Fault | None = None
        # Key of a result → what was planted for it.
        self._planted: dict[str, Planted] = {}
        # Keys of results that were in a request.
        self._seen: set[str] = set()
        # Calls of the fault's tool whose result was seen since the turn began.
        self._count = 0
        # Id of a call → its tool, as the model's responses name them.
        self._tools: dict[str, str] = {}
        # Calls of the fault's tool that models asked for in the turn.
        self._asked_for = 0
        self.record: FaultRecord | None = None

    def begin_turn(self, fault: Fault | None) -> None:
        """A turn begins, or is asked again."""
        self._fault, self._count, self._asked_for, self.record = fault, 0, 0, None

    def note_call(self, tool: str, call_id: str | None) -> None:
        """A model asked for a call."""
        if call_id:
            self._tools[call_id] = tool
        if self._fault is not None and same_tool(tool, self._fault.tool):
            self._asked_for += 1

    def rewrite(self, body: bytes) -> bytes:
        """The body with planted results; the same object if there is nothing to plant."""
        try:
            # It was read before, which refuses what is nested too deeply.
            payload = as_dict(msgspec.json.decode(body))
        except ValueError:
            return body
        changed = False
        places: dict[str, int] = {}
        for slot in result_slots(payload, self._tools):
            places[slot.tool] = places.get(slot.tool, 0) + 1
            key = slot.id or f"{slot.tool}@{places[slot.tool]}"
            planted = self._planted.get(key)
            if key not in self._seen:
                self._seen.add(key)
                planted = self._decide(slot.tool, key, slot.id, slot.true_result)
            if planted is not None:
                slot.write(planted)
                changed = True
        return msgspec.json.encode(payload) if changed else body

    def _decide(self, tool: str, key: str, call_id: str | None, true_result: Any) -> Planted | None:
        """Count a new result; what to plant if it is the one to break."""
        fault = self.due(tool)
        if fault is None:
            return None
        planted = self._planted[key] = plant(fault, true_result)
        self.land(planted, call_id)
        return planted

    def due(self, tool: str) -> Fault | None:
        """Count a call; the fault if this call is the one to break."""
        fault = self._fault
        if fault is None or self.record is not None or not same_tool(tool, fault.tool):
            return None
        self._count += 1
        return fault if self._count == fault.call else None

    def land(self, planted: Planted, call_id: str | None = None) -> None:
        """Note that the fault landed."""
        self.record = FaultRecord(
            fault=self._fault, landed=True, call_id=call_id, result=planted.result, error=planted.error
        )

    def missed(self) -> FaultRecord:
        """The record of a fault that did not land, with the reason."""
        fault = self._fault
        if fault is None:
            return FaultRecord(reason="no fault was planned")
        if self._asked_for >= fault.call:
            reason = (
                f"the result of {fault.tool} was in no request to a model: the provider runs the tool, or the agent sends its "
                "results as text"
            )
        else:
            often = f"{fault.call} times" if fault.call > 1 else "this time"
            reason = f"{fault.tool} was not called {often}"
        return FaultRecord(fault=fault, reason=reason)


def result_slots(payload: dict[str, Any], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """The tool results in a request to a model, in order.

    Args:
        payload: The request in the API of OpenAI (chat, Responses), Anthropic, Gemini or Ollama.
        tools: Id of a call → its tool, for calls that are not in the request; those that are, are added.
    """
    if isinstance(payload.get("messages"), list):
        yield from _message_slots(as_dicts(payload["messages"]), tools)
    elif isinstance(payload.get("input"), list):
        yield from _item_slots(as_dicts(payload["input"]), tools)
    elif isinstance(payload.get("contents"), list):
        for content in as_dicts(payload["contents"]):
            for part in as_dicts(content.get("parts")):
                yield from _gemini_slot(part)


def _message_slots(messages: list[dict[str, Any]], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """OpenAI's chat, Anthropic and Ollama."""
    # Names of calls without an id, which results answer in order.
    waiting: list[str] = []
    for message in messages:
        for call in as_dicts(message.get("tool_calls")):
            name = as_str(as_dict(call.get("function")).get("name")) or ""
            call_id = as_str(call.get("id"))
            if call_id:
                tools[call_id] = name
            else:
                waiting.append(name)
        blocks = as_dicts(message.get("content")) if isinstance(message.get("content"), list) else []
        for block in blocks:
            if block.get("type") == "tool_use":
                tools[str(block.get("id"))] = as_str(block.get("name")) or ""
            elif block.get("type") == "tool_result":
                call_id = as_str(block.get("tool_use_id"))
                yield _text_slot(block, "content", tools.get(call_id or "", ""), call_id, "anthropic")
        if message.get("role") in ("tool", "function"):
            call_id = as_str(message.get("tool_call_id"))
            named = as_str(message.get("tool_name")) or as_str(message.get("name"))
            first = waiting.pop(0) if waiting and not call_id else ""
            yield _text_slot(message, "content", tools.get(call_id or "") or named or first, call_id, "chat")


def _item_slots(items: list[dict[str, Any]], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """OpenAI's Responses."""
    for item in items:
        call_id = as_str(item.get("call_id"))
        if item.get("type") in ("function_call", "custom_tool_call") and call_id:
            tools[call_id] = as_str(item.get("name")) or ""
        elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield _text_slot(item, "output", tools.get(call_id or "", ""), call_id, "responses")


def _text_slot(
    holder: dict[str, Any],
    key: str,
    tool: str,
    call_id: str | None,
    api: Literal["chat", "responses", "anthropic"],
) -> ResultSlot:
    """A result that is a text, or a list of parts with texts."""
    value = holder.get(key)
    parts = as_dicts(value) if isinstance(value, list) else None
    true_result = value if parts is None else "".join(as_str(part.get("text")) or "" for part in parts)

    def write(planted: Planted) -> None:
        text = as_text(planted)
        holder[key] = text if parts is None else [{"type": _TEXT_TYPES[api], "text": text}]
        if api == "anthropic":
            holder.pop("is_error", None)
            if planted.error is not None:
                holder["is_error"] = True

    return ResultSlot(tool, call_id, true_result, write)


def _gemini_slot(part: dict[str, Any]) -> Iterator[ResultSlot]:
    """A part of Gemini's contents: the result is an object, often with the value under one name."""
    for name in ("functionResponse", "function_response"):
        answer = as_dict(part.get(name))
        if not answer:
            continue
        response = as_dict(answer.get("response"))
        wrapped = next((key for key in ("result", "output") if list(response) == [key]), None)
        true_result = response if wrapped is None else response[wrapped]

        def write(planted: Planted, answer: dict[str, Any] = answer, wrapped: str | None = wrapped) -> None:
            if planted.error is not None:
                answer["response"] = {"error": planted.error}
            elif wrapped is None and isinstance(planted.result, dict):
                answer["response"] = planted.result
            else:
                answer["response"] = {wrapped or "result": planted.result}

        yield ResultSlot(as_str(answer.get("name")) or "", as_str(answer.get("id")), true_result, write)


def as_text(planted: Planted) -> str:
    """What is planted as the text of a tool result."""
    if planted.error is not None:
        return planted.error
    result = planted.result
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()


class ToolAnswer(NamedTuple):
    """The answer of a tool behind the proxy."""

    status: int
    body: bytes
    # Bytes after which the connection is cut; None: it is sent whole.
    cut: int | None = None
    # Seconds before it is sent.
    delay_s: float = 0.0


def needs_true_answer(fault: Fault) -> bool:
    """Whether the tool must be asked first."""
    return fault.kind not in ("error", "timeout", "rate_limit", "garbage")


def broken_answer(fault: Fault, body: bytes, request_id: Any = None) -> tuple[ToolAnswer, Planted]:
    """The answer of an HTTP tool or, with a request id, of an MCP server; and what the chatbot gets as the result."""
    if fault.kind == "truncated":
        return ToolAnswer(200, body, cut=len(body) // 3), Planted(error="the answer was cut off")
    if fault.kind == "garbage":
        planted = plant(fault, None)
        return ToolAnswer(200, as_text(planted).encode()), planted
    if request_id is None:
        planted = plant(fault, decoded(body.decode("utf-8", "replace")))
        content: Any = planted.result if planted.error is None else {"error": planted.error}
    else:
        planted = plant(fault, _mcp_text(body))
        inner = {
            "content": [{"type": "text", "text": as_text(planted)}],
            "isError": planted.error is not None,
        }
        content = {"jsonrpc": "2.0", "id": request_id, "result": inner}
    answer = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    if fault.kind == "timeout":
        return ToolAnswer(504, answer, delay_s=HANG_S), planted
    if fault.kind == "rate_limit":
        return ToolAnswer(429, answer), planted
    # An MCP server reports a tool's failure in a message that is itself in order.
    return ToolAnswer(503 if fault.kind == "error" and request_id is None else 200, answer), planted


def _mcp_text(body: bytes) -> str | None:
    """The text of the result in an MCP server's answer: JSON, or an event stream of it."""
    for line in body.decode("utf-8", "replace").splitlines() or [""]:
        text = line.removeprefix("data:").strip()
        try:
            result = as_dict(as_dict(decode_strict_json(text)).get("result"))
        except ValueError:
            continue
        if result:
            return "".join(as_str(part.get("text")) or "" for part in as_dicts(result.get("content")))
    return None
