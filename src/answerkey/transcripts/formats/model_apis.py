"""The responses of model APIs: OpenAI (chat and responses), Anthropic, Gemini, Ollama and Bedrock, and single messages."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.message import Message, Part
from answerkey.model.reply import Failure, Finish, Reply, Timings
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of, response_of
from answerkey.transcripts.dialects import KEYED_PARTS
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.sources import read_source
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats.shape import Format
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, at, pick, read_duration
from answerkey.transcripts.message_reading import read_message, read_messages

__all__ = ["ROWS", "are_blocks", "are_items", "read_blocks", "read_items"]

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
    return _response([message], None, payload.get("usage"), payload.get("id"), finish)


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
    failure = read_failure(payload.get("error"))
    status = payload.get("status")
    if (
        failure is None
        and status in ("failed", "incomplete")
        and not any(message.text for message in messages)
    ):
        reason = as_str(at(payload, "incomplete_details", "reason"))
        failure = Failure("exception", f"the response is {status}{f': {reason}' if reason else ''}")
    refused = any(
        part.get("type") == "refusal"
        for item in as_dicts(payload["output"])
        for part in as_dicts(item.get("content"))
    )
    finish = "refusal" if refused else at(payload, "incomplete_details", "reason")
    return _response(messages, failure, payload.get("usage"), payload.get("id"), finish)


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
    return _response([message], None, payload.get("usage"), payload.get("id"), payload.get("stop_reason"))


def _gemini(payload: JsonObject, asked: Asked) -> Reply:
    """The first candidate, after the calls that the SDK made by itself."""
    candidate = as_dict(at(payload, "candidates", 0))
    message = read_message({**as_dict(candidate.get("content")), "role": "model"})
    finish = as_str(pick(candidate, "finishReason", "finish_reason"))
    failure = None
    if message.text is None and not any(part.kind == "call" for part in message.parts):
        feedback = as_dict(pick(payload, "promptFeedback", "prompt_feedback"))
        blocked = as_str(pick(feedback, "blockReason", "block_reason"))
        if blocked:
            failure = Failure("exception", f"the provider blocked the prompt: {blocked}")
        elif finish and finish not in ("STOP", "MAX_TOKENS"):
            failure = Failure("exception", f"the provider stopped without an answer: {finish}")
    grounding = as_dict(pick(candidate, "groundingMetadata", "grounding_metadata"))
    chunks = as_dicts(pick(grounding, "groundingChunks", "grounding_chunks"))
    sources = tuple(
        read_source(pick(chunk, "retrievedContext", "retrieved_context", "web", "maps") or {}, rank)
        for rank, chunk in enumerate(chunks, start=1)
    )
    if sources:
        message = Message("assistant", (*message.parts, Part("aside", None, None, sources)))
    usage, identity = (
        pick(payload, "usageMetadata", "usage_metadata"),
        pick(payload, "responseId", "response_id"),
    )
    reply = _response([message], failure, usage, identity, finish)
    history = pick(payload, "automaticFunctionCallingHistory", "automatic_function_calling_history")
    if not as_list(history):
        return reply
    messages = [*read_messages(history), message]
    whole = reply_of(exchange_for(messages, asked) or messages)
    told = {name: getattr(reply, name) for name in ("failure", "usage", "response_id", "finish")}
    return msgspec.structs.replace(whole, **told)


def _ollama(payload: JsonObject, asked: Asked) -> Reply:
    given = as_dict(payload.get("message"))
    message = read_message({"content": payload.get("response"), **given, "role": "assistant"})
    reply = _response([message], None, payload, None, payload.get("done_reason"))
    total = read_duration(payload.get("total_duration"))
    return reply if total is None else msgspec.structs.replace(reply, timings=Timings(latency_ms=total / 1e6))


def _bedrock(payload: JsonObject, asked: Asked) -> Reply:
    message = read_message(as_dict(at(payload, "output", "message")))
    reply = _response([message], None, payload.get("usage"), None, payload.get("stopReason"))
    taken = read_duration(at(payload, "metrics", "latencyMs"))
    return reply if taken is None else msgspec.structs.replace(reply, timings=Timings(latency_ms=taken))


def _message(payload: JsonObject, asked: Asked) -> Reply:
    """A single message of a framework, as a chain that ends in a model gives it back."""
    return response_of([read_message(payload)])


def _of_parts(payload: JsonObject, asked: Asked) -> Reply:
    """A message of parts. One of the AI SDK's has every call of the reply in it; others may have been preceded by some."""
    message = read_message({"role": "assistant", **payload})
    parts = as_dicts(payload.get("parts"))
    from_sdk = all("type" in part and "content" not in part for part in parts)
    return reply_of([message]) if from_sdk else response_of([message])


def _response(
    messages: list[Message], failure: Failure | None, usage: Json, identity: Json, word: Json
) -> Reply:
    """The reply of one response; `word` is how the API says why the model stopped."""
    reply = response_of(messages, failure)
    finish = _FINISHES.get(word) if isinstance(word, str) else None
    if failure is None and finish is not None and not reply.text and not reply.tool_calls:
        failure = _UNSAID[finish]
    return msgspec.structs.replace(
        reply, failure=failure, usage=read_usage(usage), response_id=as_str(identity), finish=finish
    )


def _are_parts(value: Json) -> bool:
    parts = as_dicts(value)
    return bool(parts) and all(not part.keys().isdisjoint(_PART_MARKS) for part in parts)


def _is_assistant(value: Json) -> bool:
    return value in ("ai", "AIMessage", "AIMessageChunk")


def _has_content(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), list) and "role" in value


ROWS = (
    Format("OpenAI chat", {"choices": list}, _chat),
    Format("OpenAI Responses", {"object": "response", "output": list}, _responses),
    Format("OpenAI response items", {"output": are_items}, _responses),
    Format("Anthropic", {"content": list, "type": "message"}, _anthropic),
    Format("Anthropic blocks", {"content": are_blocks}, _anthropic),
    Format("Gemini", {"candidates": list}, _gemini),
    Format("Gemini, blocked", {"promptFeedback": dict}, _gemini),
    Format(
        "Gemini SDK, blocked", {"prompt_feedback": dict, "candidates": lambda value: value is None}, _gemini
    ),
    Format("Ollama chat", {"done": bool, "message": dict}, _ollama),
    Format("Ollama generate", {"done": bool, "response": str}, _ollama),
    Format(
        "Bedrock Converse", {"output": lambda value: _has_content(as_dict(value).get("message"))}, _bedrock
    ),
    Format(
        "LangChain message", {"response_metadata": dict, "type": _is_assistant, "content": object}, _message
    ),
    Format(
        "LangChain message, short",
        {"type": _is_assistant, "content": lambda value: value is not None},
        _message,
    ),
    Format(
        "LangChain constructor", {"lc": int, "kwargs": lambda value: "content" in as_dict(value)}, _message
    ),
    Format("LangChain dict", {"type": _is_assistant, "data": dict}, _message),
    Format("Message of parts", {"parts": _are_parts}, _of_parts),
    Format("AI SDK 4 message", {"toolInvocations": list}, _of_parts),
)
