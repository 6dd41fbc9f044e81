"""Single responses: of the APIs of OpenAI, Anthropic, Gemini, Ollama and Bedrock, messages alone, and results of MCP tools."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.message import Message, Part
from answerkey.model.reply import Failure, Finish, Reply, Timings
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of, response_of
from answerkey.transcripts.dialects import KEYED_PARTS
from answerkey.transcripts.failures import failure_message, not_text, read_failure
from answerkey.transcripts.fields.content_text import spoken_text
from answerkey.transcripts.fields.sources import read_source
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats import Format
from answerkey.transcripts.json_shapes import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    at,
    either,
    pick,
    read_duration,
)
from answerkey.transcripts.message_reading import read_message, read_messages

# Blocks that only Anthropic's messages have.
_OWN_BLOCKS = frozenset(
    {
        *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use"),
        *("thinking", "redacted_thinking", "search_result"),
    }
)
_PART_MARKS = frozenset({"type", "kind", "part_kind", *KEYED_PARTS})
_ITEMS = ("_call", "_call_output")
# The words by which APIs say that a model stopped early.
_FINISHES: dict[Json, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "model_length"), "length"),
    "refusal": "refusal",
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "SAFETY"), "filter"),
    **dict.fromkeys(("RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "filter"),
}
# What it amounts to where nothing was said before.
_UNSAID: dict[Finish, Failure] = {
    "length": Failure("empty", "the model used up its limit of tokens before it said anything"),
    "refusal": Failure("exception", "the model refused to answer"),
    "filter": Failure("exception", "the provider's content filter held the answer back"),
}


def _chat(payload: JsonObject, asked: Asked) -> Reply:
    """OpenAI chat: the first choice."""
    choice = as_dict(at(payload, "choices", 0))
    given = as_dict(choice.get("message"))
    message = read_message({"content": choice.get("text"), **given, "role": "assistant"})
    finish = "refusal" if as_str(given.get("refusal")) else choice.get("finish_reason")
    return _response(payload, [message], finish)


def are_items(value: Json) -> bool:
    """Whether a list is one of items of the Responses API."""
    return any(
        kind == "reasoning"
        or kind.endswith(_ITEMS)
        or (
            kind == "message"
            and any(part.get("type") == "output_text" for part in as_dicts(item.get("content")))
        )
        for item in as_dicts(value)
        if isinstance(kind := item.get("type"), str)
    )


def read_items(items: Json) -> list[Message]:
    """Response items. Commentary is not the answer where the model says which is which."""
    found = as_dicts(items)
    if any(item.get("phase") == "final_answer" for item in found):
        found = [item for item in found if item.get("phase") in (None, "final_answer") or "role" not in item]
    return read_messages(found)


def _responses(payload: JsonObject, asked: Asked) -> Reply:
    messages = read_items(payload["output"])
    failure, status = read_failure(payload.get("error")), payload.get("status")
    reason = at(payload, "incomplete_details", "reason")
    if failure is None and status in ("failed", "incomplete") and not any(one.text for one in messages):
        why = f": {reason}" if as_str(reason) else ""
        failure = Failure("exception", f"the response is {status}{why}")
    contents = [part for item in as_dicts(payload["output"]) for part in as_dicts(item.get("content"))]
    refused = any(part.get("type") == "refusal" for part in contents)
    return _response(payload, messages, "refusal" if refused else reason, failure)


def are_blocks(value: Json) -> bool:
    """Whether a list has content blocks that only Anthropic's messages have."""
    return any(
        isinstance(kind := block.get("type"), str) and kind in _OWN_BLOCKS for block in as_dicts(value)
    )


def read_blocks(blocks: Json) -> Reply:
    """Anthropic's content blocks."""
    return response_of([read_message({"role": "assistant", "content": blocks})])


def _anthropic(payload: JsonObject, asked: Asked) -> Reply:
    message = read_message({**payload, "role": "assistant"})
    return _response(payload, [message], payload.get("stop_reason"))


def _gemini(payload: JsonObject, asked: Asked) -> Reply:
    """The first candidate, after the calls that the SDK made by itself."""
    candidate = as_dict(at(payload, "candidates", 0))
    message = read_message({**as_dict(candidate.get("content")), "role": "model"})
    finish = as_str(either(candidate, "finishReason"))
    failure = None
    if message.text is None and not any(part.kind == "call" for part in message.parts):
        if blocked := as_str(either(as_dict(either(payload, "promptFeedback")), "blockReason")):
            failure = Failure("exception", f"the provider blocked the prompt: {blocked}")
        elif finish and finish not in ("STOP", "MAX_TOKENS"):
            failure = Failure("exception", f"the provider stopped without an answer: {finish}")
    chunks = as_dicts(either(as_dict(either(candidate, "groundingMetadata")), "groundingChunks"))
    sources = tuple(
        read_source(pick(chunk, "retrievedContext", "retrieved_context", "web", "maps") or {}, rank)
        for rank, chunk in enumerate(chunks, start=1)
    )
    if sources:
        message = Message("assistant", (*message.parts, Part("aside", None, None, sources)))
    reply = _response(payload, [message], finish, failure)
    history = either(payload, "automaticFunctionCallingHistory")
    if not as_list(history):
        return reply
    messages = [*read_messages(history), message]
    whole = reply_of(exchange_for(messages, asked) or messages)
    told = {name: getattr(reply, name) for name in ("failure", "usage", "response_id", "finish")}
    return msgspec.structs.replace(whole, **told)


def _ollama(payload: JsonObject, asked: Asked) -> Reply:
    given = as_dict(payload.get("message"))
    message = read_message({"content": payload.get("response"), **given, "role": "assistant"})
    total = read_duration(payload.get("total_duration"))
    timings = Timings(latency_ms=None if total is None else total / 1e6)
    reply = _response(payload, [message], payload.get("done_reason"))
    return msgspec.structs.replace(reply, timings=timings, usage=read_usage(payload))


def _bedrock(payload: JsonObject, asked: Asked) -> Reply:
    message = read_message(as_dict(at(payload, "output", "message")))
    timings = Timings(latency_ms=read_duration(at(payload, "metrics", "latencyMs")))
    reply = _response(payload, [message], payload.get("stopReason"))
    return msgspec.structs.replace(reply, timings=timings)


def _message(payload: JsonObject, asked: Asked) -> Reply:
    """A single message of a framework, as a chain that ends in a model gives it back."""
    return response_of([read_message(payload)])


def _of_parts(payload: JsonObject, asked: Asked) -> Reply:
    """A message of parts. One of the AI SDK's has every call of the reply in it; others may have been preceded by some."""
    message = read_message({"role": "assistant", **payload})
    parts = as_dicts(payload.get("parts"))
    from_sdk = all("type" in part and "content" not in part for part in parts)
    return reply_of([message]) if from_sdk else response_of([message])


def _mcp(payload: JsonObject, asked: Asked) -> Reply:
    """A chatbot that is itself a tool; `isError` inside a successful answer is the tool's own failure."""
    text = spoken_text(payload.get("content")) or None
    if either(payload, "isError") is True:
        return Reply(text=text, failure=Failure("tool", failure_message(text or "the tool failed")))
    structured = either(payload, "structuredContent")
    if text is None and structured is not None:
        return Reply(failure=not_text("structuredContent", structured))
    return Reply(text=text)


def _response(
    payload: JsonObject, messages: list[Message], word: Json, failure: Failure | None = None
) -> Reply:
    """The reply of one response; `word` is how the API says why the model stopped."""
    reply = response_of(messages, failure)
    finish = _FINISHES.get(word) if isinstance(word, str) else None
    if failure is None and finish is not None and not reply.text and not reply.tool_calls:
        failure = _UNSAID[finish]
    return msgspec.structs.replace(
        reply,
        failure=failure,
        usage=read_usage(payload.get("usage", either(payload, "usageMetadata"))),
        response_id=as_str(payload.get("id", either(payload, "responseId"))),
        finish=finish,
    )


def _are_parts(value: Json) -> bool:
    parts = as_dicts(value)
    return bool(parts) and all(not part.keys().isdisjoint(_PART_MARKS) for part in parts)


def _is_assistant(value: Json) -> bool:
    return value in ("ai", "AIMessage", "AIMessageChunk")


def _has_message(value: Json) -> bool:
    message = as_dict(as_dict(value).get("message"))
    return isinstance(message.get("content"), list) and "role" in message


def _has_content(value: Json) -> bool:
    return "content" in as_dict(value)


def _is_given(value: Json) -> bool:
    return value is not None


ROWS = (
    Format("OpenAI chat", {"choices": list}, _chat),
    Format("OpenAI Responses", {"object": "response", "output": list}, _responses),
    Format("OpenAI response items", {"output": are_items}, _responses),
    Format("Anthropic", {"content": list, "type": "message"}, _anthropic),
    Format("Anthropic blocks", {"content": are_blocks}, _anthropic),
    Format("Gemini", {"candidates": list}, _gemini),
    Format("Gemini, blocked", {"promptFeedback": dict}, _gemini),
    Format("Gemini SDK, blocked", {"prompt_feedback": dict, "candidates": type(None)}, _gemini),
    Format("Ollama chat", {"done": bool, "message": dict}, _ollama),
    Format("Ollama generate", {"done": bool, "response": str}, _ollama),
    Format("Bedrock Converse", {"output": _has_message}, _bedrock),
    Format(
        "LangChain message", {"response_metadata": dict, "type": _is_assistant, "content": object}, _message
    ),
    Format("LangChain message, short", {"type": _is_assistant, "content": _is_given}, _message),
    Format("LangChain constructor", {"lc": int, "kwargs": _has_content}, _message),
    Format("LangChain dict", {"type": _is_assistant, "data": dict}, _message),
    Format("Message of parts", {"parts": _are_parts}, _of_parts),
    Format("AI SDK 4 message", {"toolInvocations": list}, _of_parts),
    Format("MCP result", {"isError": bool, "content": list}, _mcp),
    Format("MCP result, without a flag", {"structuredContent": object, "content": list}, _mcp),
    Format("MCP SDK result", {"structured_content": object, "content": list, "is_error": object}, _mcp),
)
