"""What agent frameworks give back as the result of a whole run: each is written as the messages that it was made of."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.message import Message
from answerkey.model.reply import Evidence, Failure, Reply
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of, with_evidence
from answerkey.transcripts.failures import failure_message, not_text
from answerkey.transcripts.fields.content_text import safe_text, spoken_text
from answerkey.transcripts.fields.sources import ranked
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats import Format
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at, either
from answerkey.transcripts.message_reading import read_message, read_messages

# What an AI SDK step, and an ADK invocation, have.
_STEP = frozenset({"toolCalls", "toolResults", "finishReason", "content"})
_TURN = frozenset({"final_response", "finalResponse", "intermediate_data", "intermediateData"})
# smolagents answers by calling this.
_ANSWERING = "final_answer"


def _sdk_result(payload: JsonObject, asked: Asked) -> Reply:
    """generateText of the AI SDK: its steps."""
    steps: list[Json] = [_sdk_step(step) for step in as_dicts(payload.get("steps")) or [payload]]
    reply = reply_of(read_messages(steps))
    text = payload.get("text")
    reply = msgspec.structs.replace(
        reply,
        text=safe_text(text) if isinstance(text, str) else reply.text,
        sources=ranked(reply.sources),
        usage=read_usage(payload.get("totalUsage")) or reply.usage,
        response_id=as_str(at(payload, "response", "id")),
    )
    return with_evidence(reply, kind="transcript" if "steps" in payload else "response")


def _sdk_step(step: JsonObject) -> JsonObject:
    """One step: its parts in order, or its text, calls, results and sources under names of their own."""
    parts: list[Json] = [*as_dicts(step.get("content"))]
    if not parts:
        parts += [{"type": "text", "text": step["text"]}] if isinstance(step.get("text"), str) else []
        for name, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result"), ("sources", "source")):
            parts += [{**part, "type": kind} for part in as_dicts(step.get(name))]
    return {"role": "assistant", "content": parts, "usage": step.get("usage")}


def _smolagents(payload: JsonObject, asked: Asked) -> Reply:
    """The steps of a run: what a step observed belongs to its call if it made one only."""
    messages: list[Json] = []
    for step in as_dicts(payload.get("steps")):
        # A step that failed has its calls only where the model asked for them.
        made = as_dicts(step.get("tool_calls")) or as_dicts(at(step, "model_output_message", "tool_calls"))
        calls: list[Json] = [
            call for call in made if _ANSWERING not in (call.get("name"), at(call, "function", "name"))
        ]
        messages.append({"role": "assistant", "tool_calls": calls})
        observed, error = step.get("observations"), step.get("error")
        if len(calls) == 1 and (observed is not None or error):
            identity = as_dict(calls[0]).get("id")
            messages.append(
                {"role": "tool", "id": identity, "output": observed, "error": error, "status": None}
            )
    return _with_text(reply_of(read_messages(messages)), payload, "output")


def _crew(payload: JsonObject, asked: Asked) -> Reply:
    """A CrewAI result tells what was said; what was called only if its tasks kept their messages."""
    histories = [task.get("messages") for task in as_dicts(payload.get("tasks_output"))]
    calls = reply_of([message for history in histories for message in read_messages(history)])
    seen = calls if calls.tool_calls else Reply(evidence=Evidence(tools_observed=False))
    return _with_text(seen, payload, "raw")


def _llama_index(payload: JsonObject, asked: Asked) -> Reply:
    parts: list[Json] = []
    for item in as_dicts(payload.get("tool_calls")):
        call = {name: value for name, value in item.items() if name != "tool_output"}
        parts.append({**call, "type": "tool_call"})
        if "tool_output" in item:
            parts.append({**call, "type": "tool_result", "output": item["tool_output"], "status": None})
    calls: JsonObject = {"role": "assistant", "content": parts}
    return reply_of(read_messages([calls, payload["response"]]))


def _a2a_task(payload: JsonObject, asked: Asked) -> Reply:
    """An A2A task: its artifacts are the answer, else what its status or history says; an agent hides its calls."""
    status = as_dict(payload.get("status"))
    made = [
        read_message({"role": "agent", "parts": part.get("parts")})
        for part in as_dicts(payload.get("artifacts"))
    ]
    closing = as_dict(status.get("message"))
    history = [message for message in read_messages(payload.get("history")) if message.role == "assistant"]
    said = [read_message(closing)] if closing else history[-1:]
    messages = made if any(message.text for message in made) or not said else said
    parts = tuple([part for message in messages for part in message.parts])
    reply = with_evidence(reply_of([Message("assistant", parts)]), kind="response", tools_observed=False)
    state = str(status.get("state", "")).lower().removeprefix("task_state_")
    failure = None
    if state in ("failed", "rejected", "canceled", "cancelled"):
        why = said[-1].text if said else None
        failure = Failure("exception", failure_message(f"the task was {state}{f': {why}' if why else ''}"))
    return msgspec.structs.replace(reply, failure=failure, response_id=as_str(payload.get("id")))


def _adk(payload: JsonObject, asked: Asked) -> Reply:
    """Google's ADK: an invocation, an eval case, or an eval set with a single one."""
    turns = [payload]
    if payload.keys().isdisjoint(_TURN):
        cases = as_dicts(either(payload, "evalCases"))
        turns = as_dicts((cases[0] if len(cases) == 1 else payload).get("conversation"))
    messages = read_messages([message for turn in turns for message in _invocation(turn)])
    reply = reply_of(exchange_for(messages, asked) or messages)
    told = bool(reply.tool_calls) or any(either(turn, "intermediateData") for turn in turns)
    return with_evidence(reply, tools_observed=told and reply.evidence.tools_observed)


def _invocation(turn: JsonObject) -> list[Json]:
    """A turn as a history of Gemini's: asks, calls, is answered and says the last word."""
    between, asked = as_dict(either(turn, "intermediateData")), as_dict(either(turn, "userContent"))
    uses: list[Json] = [{"functionCall": part} for part in as_dicts(either(between, "toolUses"))]
    given: list[Json] = [{"functionResponse": part} for part in as_dicts(either(between, "toolResponses"))]
    return [
        *([{"role": "user", **asked}] if asked else []),
        {"role": "model", "parts": uses},
        {"role": "function", "parts": given},
        {**as_dict(either(turn, "finalResponse")), "role": "model"},
    ]


def _with_text(reply: Reply, payload: JsonObject, name: str) -> Reply:
    """A result whose answer stands under a name of its own."""
    text = spoken_text(payload.get(name))
    if text is None and payload.get(name) is not None:
        return msgspec.structs.replace(reply, failure=not_text(name, payload[name]))
    usage = read_usage(payload.get("token_usage")) or reply.usage
    return msgspec.structs.replace(reply, text=text, usage=usage)


def _are_sdk_steps(value: Json) -> bool:
    return any(not step.keys().isdisjoint(_STEP) and "step_number" not in step for step in as_dicts(value))


def _are_smolagents_steps(value: Json) -> bool:
    return any("step_number" in step for step in as_dicts(value))


def _all_turns(value: Json) -> bool:
    turns = as_dicts(value)
    return bool(turns) and all(not turn.keys().isdisjoint(_TURN) for turn in turns)


def _one_case(value: Json) -> bool:
    return _all_turns(at(value, 0, "conversation")) and len(as_dicts(value)) == 1


def _has_blocks(value: Json) -> bool:
    return "blocks" in as_dict(value)


ROWS = (
    Format("AI SDK result", {"steps": _are_sdk_steps}, _sdk_result),
    Format("AI SDK step", {"finishReason": str, "toolCalls": list}, _sdk_result),
    Format("smolagents", {"steps": _are_smolagents_steps}, _smolagents),
    Format("CrewAI", {"tasks_output": list, "raw": str}, _crew),
    Format("LlamaIndex agent", {"response": _has_blocks, "tool_calls": list}, _llama_index),
    *(Format("A2A task", {name: str, "status": dict}, _a2a_task) for name in ("contextId", "context_id")),
    *(Format("ADK invocation", {name: dict}, _adk) for name in sorted(_TURN)),
    Format("ADK eval case", {"conversation": _all_turns}, _adk),
    *(Format("ADK eval set", {name: _one_case}, _adk) for name in ("eval_cases", "evalCases")),
)
