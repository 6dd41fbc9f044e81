"""Google ADK invocations: a turn of an eval case with its intermediate tool uses."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts.conversation import reply_of
from answerkey.transcripts.formats.gemini import in_either_case, read_message
from answerkey.transcripts.json_shapes import as_dict, as_dicts

__all__ = ["detect", "read"]

_TURN = frozenset({"final_response", "finalResponse", "intermediate_data", "intermediateData"})


def detect(payload: JsonObject) -> bool:
    """An invocation, an eval case, or an eval set with a single one."""
    return bool(_invocations(payload))


def _invocations(payload: JsonObject) -> list[JsonObject]:
    """The turns in it, in order."""
    if not payload.keys().isdisjoint(_TURN):
        return [payload]
    conversation = as_dicts(payload.get("conversation"))
    if conversation and all(_invocations(turn) for turn in conversation):
        return conversation
    cases = as_dicts(in_either_case(payload, "evalCases"))
    return _invocations(cases[0]) if len(cases) == 1 and "eval_cases" not in cases[0] else []


def read(payload: JsonObject) -> Reply:
    """The last turn: as a history of Gemini that calls, is answered and says the last word."""
    turn = _invocations(payload)[-1]
    between = as_dict(in_either_case(turn, "intermediateData"))
    uses: list[Json] = [{"functionCall": part} for part in as_dicts(in_either_case(between, "toolUses"))]
    responses: list[Json] = [
        {"functionResponse": part} for part in as_dicts(in_either_case(between, "toolResponses"))
    ]
    final = as_dict(in_either_case(turn, "finalResponse"))
    history: list[JsonObject] = [
        {"role": "model", "parts": uses},
        {"role": "user", "parts": responses},
        {**final, "role": "model"},
    ]
    reply = reply_of([read_message(content) for content in history])
    evidence = msgspec.structs.replace(reply.evidence, tools_observed=bool(between) or bool(reply.tool_calls))
    return msgspec.structs.replace(reply, evidence=evidence)
