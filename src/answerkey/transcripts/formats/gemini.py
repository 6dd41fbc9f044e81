"""Google Gemini: candidates with parts, in REST's camelCase and the Python SDK's snake_case; ADK's turns, made of the same."""

import re
from functools import cache

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply, ToolCall
from answerkey.transcripts.conversation import Message, merged, reply_of, response_of
from answerkey.transcripts.fields.sources import read_source
from answerkey.transcripts.fields.tool_calls import read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = [
    "assemble",
    "detect",
    "detect_invocation",
    "detect_message",
    "read",
    "read_invocation",
    "read_message",
]

_PART_NAMES = frozenset(
    {"functionCall", "function_call", "functionResponse", "function_response", "text", "executableCode"}
)
# What an ADK invocation, a turn of an eval case, has.
_TURN = frozenset({"final_response", "finalResponse", "intermediate_data", "intermediateData"})


def detect(payload: JsonObject) -> bool:
    """`candidates`, or the feedback that stands in their place when a prompt is blocked."""
    return isinstance(payload.get("candidates"), list) or "promptFeedback" in payload


def detect_message(item: JsonObject) -> bool:
    """Whether a message has parts that only this format has (they carry no `type`)."""
    parts = as_dicts(item.get("parts"))
    return bool(parts) and all(
        "type" not in part and not part.keys().isdisjoint(_PART_NAMES) for part in parts
    )


def _in_either_case(item: JsonObject, name: str) -> Json:
    """The value under `name`, which is in camelCase, or under the same in snake_case."""
    return pick(item, name, _snake(name))


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def read(payload: JsonObject) -> Reply:
    """The first candidate."""
    candidate = next(iter(as_dicts(payload.get("candidates"))), {})
    message = read_message({"role": "model", **as_dict(candidate.get("content"))})
    failure = None
    blocked = as_str(_in_either_case(as_dict(_in_either_case(payload, "promptFeedback")), "blockReason"))
    finish = as_str(_in_either_case(candidate, "finishReason"))
    if message.text is None and not message.calls:
        if blocked:
            failure = Failure("exception", f"the provider blocked the prompt: {blocked}")
        elif finish and finish not in ("STOP", "MAX_TOKENS"):
            failure = Failure("exception", f"the provider stopped without an answer: {finish}")
    grounding = as_dict(_in_either_case(candidate, "groundingMetadata"))
    sources = [
        read_source(pick(chunk, "retrievedContext", "retrieved_context", "web", "maps") or {}, rank)
        for rank, chunk in enumerate(as_dicts(_in_either_case(grounding, "groundingChunks")), start=1)
    ]
    message = msgspec.structs.replace(
        message,
        role="assistant",
        sources=tuple(sources),
        usage=read_usage(_in_either_case(payload, "usageMetadata")),
        id=as_str(_in_either_case(payload, "responseId")),
    )
    return response_of(message, failure=failure)


def read_message(item: JsonObject) -> Message:
    """One content of a history."""
    message = merged([_part(part) for part in as_dicts(item.get("parts"))])
    if item.get("role") in ("model", "assistant"):
        return message
    return msgspec.structs.replace(message, role="tool" if message.results else "user")


def _part(part: JsonObject) -> Message:
    if call := as_dict(_in_either_case(part, "functionCall")):
        return Message(calls=(read_call(call),))
    if response := as_dict(_in_either_case(part, "functionResponse")):
        given = response.get("response")
        error = as_dict(given).get("error")
        output = as_dict(given).get("output", given)
        failed = str(error) if error else None
        return Message(results=(read_result(response.get("id"), response.get("name"), output, failed),))
    if code := as_dict(_in_either_case(part, "executableCode")):
        return Message(calls=(ToolCall(name="code_execution", arguments=code),))
    if ran := as_dict(_in_either_case(part, "codeExecutionResult")):
        outcome = ran.get("outcome")
        failed = None if outcome in (None, "OUTCOME_OK") else str(outcome)
        return Message(results=(read_result(None, "code_execution", ran.get("output"), failed),))
    said = part.get("text")
    return Message(text=said if isinstance(said, str) and part.get("thought") is not True else None)


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One response from a stream's, which each carry some parts."""
    parts: list[Json] = []
    document: JsonObject = {}
    first: JsonObject = {}
    for event in events:
        document.update(event)
        for candidate in as_dicts(event.get("candidates"))[:1]:
            parts += as_dicts(as_dict(candidate.get("content")).get("parts"))
            first.update(candidate)
    document["candidates"] = [{**first, "content": {"role": "model", "parts": parts}}]
    return document, bool(_in_either_case(first, "finishReason"))


def detect_invocation(payload: JsonObject) -> bool:
    """An invocation of Google's ADK, an eval case, or an eval set with a single one."""
    return bool(_invocations(payload))


def _invocations(payload: JsonObject) -> list[JsonObject]:
    """The turns in it, in order."""
    if not payload.keys().isdisjoint(_TURN):
        return [payload]
    conversation = as_dicts(payload.get("conversation"))
    if conversation and all(_invocations(turn) for turn in conversation):
        return conversation
    cases = as_dicts(_in_either_case(payload, "evalCases"))
    return _invocations(cases[0]) if len(cases) == 1 and "eval_cases" not in cases[0] else []


def read_invocation(payload: JsonObject) -> Reply:
    """The last turn: as a history of Gemini that calls, is answered and says the last word."""
    turn = _invocations(payload)[-1]
    between = as_dict(_in_either_case(turn, "intermediateData"))
    uses: list[Json] = [{"functionCall": part} for part in as_dicts(_in_either_case(between, "toolUses"))]
    responses: list[Json] = [
        {"functionResponse": part} for part in as_dicts(_in_either_case(between, "toolResponses"))
    ]
    final = as_dict(_in_either_case(turn, "finalResponse"))
    history: list[JsonObject] = [
        {"role": "model", "parts": uses},
        {"role": "user", "parts": responses},
        {**final, "role": "model"},
    ]
    reply = reply_of([read_message(content) for content in history])
    evidence = msgspec.structs.replace(reply.evidence, tools_observed=bool(between) or bool(reply.tool_calls))
    return msgspec.structs.replace(reply, evidence=evidence)
