"""Google Gemini: candidates with parts, in REST's camelCase and the Python SDK's snake_case."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply, Source, ToolCall, Usage
from answerkey.transcripts.conversation import Message, Role, ToolResult, response_of
from answerkey.transcripts.fields.json_numbers import read_count
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = ["detect", "detect_message", "read", "read_message"]

_PART_NAMES = frozenset(
    {"functionCall", "function_call", "functionResponse", "function_response", "text", "executableCode"}
)


def detect(payload: JsonObject) -> bool:
    """`candidates`, or the feedback that stands in their place when a prompt is blocked."""
    return isinstance(payload.get("candidates"), list) or "promptFeedback" in payload


def detect_message(item: JsonObject) -> bool:
    """Whether a message has parts that only this format has (they carry no `type`)."""
    parts = as_dicts(item.get("parts"))
    return bool(parts) and all(
        "type" not in part and not part.keys().isdisjoint(_PART_NAMES) for part in parts
    )


def read(payload: JsonObject) -> Reply:
    """The first candidate."""
    candidate = next(iter(as_dicts(payload.get("candidates"))), {})
    message = read_message({"role": "model", **as_dict(candidate.get("content"))})
    failure = None
    blocked = pick(as_dict(pick(payload, "promptFeedback", "prompt_feedback")), "blockReason", "block_reason")
    finish = pick(candidate, "finishReason", "finish_reason")
    if message.text is None and not message.calls:
        if as_str(blocked):
            failure = Failure("exception", f"the provider blocked the prompt: {blocked}")
        elif as_str(finish) and finish not in ("STOP", "MAX_TOKENS"):
            failure = Failure("exception", f"the provider stopped without an answer: {finish}")
    return response_of(
        Message(
            role="assistant",
            text=message.text,
            calls=message.calls,
            results=message.results,
            sources=_sources(as_dict(pick(candidate, "groundingMetadata", "grounding_metadata"))),
            usage=_usage(as_dict(pick(payload, "usageMetadata", "usage_metadata"))),
            id=as_str(pick(payload, "responseId", "response_id")),
        ),
        failure=failure,
    )


def read_message(item: JsonObject) -> Message:
    """One content of a history."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for part in as_dicts(item.get("parts")):
        call = as_dict(pick(part, "functionCall", "function_call"))
        response = as_dict(pick(part, "functionResponse", "function_response"))
        code = as_dict(pick(part, "executableCode", "executable_code"))
        outcome = as_dict(pick(part, "codeExecutionResult", "code_execution_result"))
        if call:
            arguments = call.get("args")
            calls.append(
                ToolCall(
                    name=as_str(call.get("name")) or "(unnamed)",
                    id=as_str(call.get("id")),
                    arguments=arguments if isinstance(arguments, dict) else None,
                ),
            )
        elif response:
            results.append(_result(response))
        elif code:
            calls.append(ToolCall(name="code_execution", arguments=code))
        elif outcome:
            failed = outcome.get("outcome") not in (None, "OUTCOME_OK")
            results.append(
                ToolResult(
                    name="code_execution",
                    result=outcome.get("output"),
                    error=str(outcome.get("outcome")) if failed else None,
                ),
            )
        elif isinstance(said := part.get("text"), str) and part.get("thought") is not True:
            texts.append(said)
    role: Role = "assistant" if item.get("role") in ("model", "assistant") else "tool" if results else "user"
    return Message(
        role=role,
        text="".join(texts) if texts else None,
        calls=tuple(calls),
        results=tuple(results),
    )


def _result(response: JsonObject) -> ToolResult:
    given = response.get("response")
    inner = as_dict(given)
    error = inner.get("error")
    return ToolResult(
        call_id=as_str(response.get("id")),
        name=as_str(response.get("name")),
        result=inner.get("output", given),
        error=None if not error else error if isinstance(error, str) else str(error),
    )


def _sources(grounding: JsonObject) -> tuple[Source, ...]:
    found: list[Source] = []
    for rank, chunk in enumerate(as_dicts(pick(grounding, "groundingChunks", "grounding_chunks")), start=1):
        part = as_dict(pick(chunk, "retrievedContext", "retrieved_context", "web", "maps"))
        found.append(
            Source(
                id=as_str(pick(part, "documentName", "document_name"))
                or as_str(part.get("uri"))
                or as_str(part.get("title")),
                uri=as_str(part.get("uri")),
                title=as_str(part.get("title")),
                text=as_str(part.get("text")),
                rank=rank,
            ),
        )
    return tuple(found)


def _usage(given: JsonObject) -> Usage | None:
    if not given:
        return None
    return Usage(
        input_tokens=read_count(pick(given, "promptTokenCount", "prompt_token_count")),
        output_tokens=read_count(pick(given, "candidatesTokenCount", "candidates_token_count")),
        total_tokens=read_count(pick(given, "totalTokenCount", "total_token_count")),
        reasoning_tokens=read_count(pick(given, "thoughtsTokenCount", "thoughts_token_count")),
        cached_tokens=read_count(pick(given, "cachedContentTokenCount", "cached_content_token_count")),
    )
