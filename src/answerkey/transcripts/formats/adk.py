"""Google ADK invocations: a turn of an eval case with its intermediate tool uses."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts.conversation import Message, reply_of
from answerkey.transcripts.formats.gemini import read_message
from answerkey.transcripts.json_shapes import as_dict, as_dicts, pick

__all__ = ["detect", "invocations_of", "read"]


def detect(payload: JsonObject) -> bool:
    """An invocation, an eval case, or an eval set with a single one."""
    return bool(invocations_of(payload))


def invocations_of(payload: JsonObject) -> list[JsonObject]:
    """The turns in it, in order."""
    if not payload.keys().isdisjoint(
        {"final_response", "finalResponse", "intermediate_data", "intermediateData"}
    ):
        return [payload]
    conversation = as_dicts(payload.get("conversation"))
    if conversation and all(invocations_of(turn) for turn in conversation):
        return conversation
    cases = as_dicts(pick(payload, "eval_cases", "evalCases"))
    return invocations_of(cases[0]) if len(cases) == 1 and "eval_cases" not in cases[0] else []


def read(payload: JsonObject) -> Reply:
    """The last turn."""
    turn = invocations_of(payload)[-1]
    between = as_dict(pick(turn, "intermediate_data", "intermediateData"))
    uses: list[Json] = [{"functionCall": part} for part in as_dicts(pick(between, "tool_uses", "toolUses"))]
    responses: list[Json] = [
        {"functionResponse": part} for part in as_dicts(pick(between, "tool_responses", "toolResponses"))
    ]
    final = as_dict(pick(turn, "final_response", "finalResponse"))
    messages: list[Message] = []
    if uses:
        messages.append(read_message({"role": "model", "parts": [*uses]}))
    if responses:
        messages.append(read_message({"role": "user", "parts": [*responses]}))
    messages.append(read_message({**final, "role": "model"}))
    reply = reply_of(messages)
    evidence = msgspec.structs.replace(reply.evidence, tools_observed=bool(between) or bool(reply.tool_calls))
    return msgspec.structs.replace(reply, evidence=evidence)
