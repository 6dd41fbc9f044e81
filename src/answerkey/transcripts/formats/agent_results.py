"""What agent frameworks give back as the result of a whole run: each as the messages that it was made of."""

from collections.abc import Iterator

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.message import Message, Part
from answerkey.model.reply import Evidence, Failure, Reply
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import safe_text, spoken_text
from answerkey.transcripts.fields.error_field import not_text
from answerkey.transcripts.fields.sources import ranked
from answerkey.transcripts.fields.tool_calls import read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats.shape import Format
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at, pick
from answerkey.transcripts.message_reading import read_message, read_messages

__all__ = ["ROWS"]

# What an AI SDK step, and an ADK invocation, have.
_STEP = frozenset({"toolCalls", "toolResults", "finishReason", "content"})
_TURN = frozenset({"final_response", "finalResponse", "intermediate_data", "intermediateData"})
# smolagents answers by calling this.
_ANSWERING = "final_answer"


def _sdk_result(payload: JsonObject, asked: Asked) -> Reply:
    """generateText of the AI SDK: its steps."""
    reply = reply_of([_sdk_step(step) for step in as_dicts(payload.get("steps")) or [payload]])
    text = payload.get("text")
    sources = ranked(reply.sources)
    kind = "transcript" if "steps" in payload else "response"
    return msgspec.structs.replace(
        reply,
        text=safe_text(text) if isinstance(text, str) else reply.text,
        sources=sources,
        usage=read_usage(payload.get("totalUsage")) or reply.usage,
        evidence=msgspec.structs.replace(reply.evidence, kind=kind),
        response_id=as_str(at(payload, "response", "id")),
    )


def _sdk_step(step: JsonObject) -> Message:
    """One step: its parts in order, or its calls and results under names of their own."""
    usage = read_usage(step.get("usage"))
    if as_dicts(step.get("content")):
        return Message(
            "assistant", read_message({"role": "assistant", "content": step["content"]}).parts, usage
        )
    said = step.get("text")
    parts = [Part("text", safe_text(said))] if isinstance(said, str) else []
    parts += [Part("call", None, read_call(call)) for call in as_dicts(step.get("toolCalls"))]
    parts += [Part("result", None, read_result(part)) for part in as_dicts(step.get("toolResults"))]
    found = [{"type": "source", **part} for part in as_dicts(step.get("sources"))]
    return Message(
        "assistant", (*parts, *read_message({"role": "assistant", "content": [*found]}).parts), usage
    )


def _smolagents(payload: JsonObject, asked: Asked) -> Reply:
    """The steps of a run: what a step observed belongs to its call if it made one only."""
    parts: list[Part] = []
    for step in as_dicts(payload.get("steps")):
        # A step that failed has its calls only where the model asked for them.
        made = as_dicts(step.get("tool_calls")) or as_dicts(at(step, "model_output_message", "tool_calls"))
        calls = [read_call(call) for call in made]
        calls = [call for call in calls if call.name != _ANSWERING]
        parts += [Part("call", None, call) for call in calls]
        observed, error = step.get("observations"), step.get("error")
        if len(calls) == 1 and (observed is not None or error):
            told = {
                "id": calls[0].id,
                "name": calls[0].name,
                "output": observed,
                "error": error,
                "status": None,
            }
            parts.append(Part("result", None, read_result(told)))
    return _with_text(
        reply_of([Message("assistant", tuple(parts))]), payload, "output", payload.get("token_usage")
    )


def _crew(payload: JsonObject, asked: Asked) -> Reply:
    """A CrewAI result tells what was said; what was called only if its tasks kept their messages."""
    usage = payload.get("token_usage")
    histories = [task.get("messages") for task in as_dicts(payload.get("tasks_output"))]
    messages = [message for history in histories for message in read_messages(history)]
    calls = reply_of(messages)
    if calls.tool_calls:
        return _with_text(calls, payload, "raw", usage)
    return _with_text(Reply(evidence=Evidence(tools_observed=False)), payload, "raw", usage)


def _llama_index(payload: JsonObject, asked: Asked) -> Reply:
    said = read_message(as_dict(payload["response"]))
    parts: list[Part] = []
    for item in as_dicts(payload.get("tool_calls")):
        call = read_call({name: value for name, value in item.items() if name != "tool_output"})
        parts.append(Part("call", None, call))
        if "tool_output" in item:
            told = {"tool_id": call.id, "tool_name": call.name, "output": item["tool_output"], "status": None}
            parts.append(Part("result", None, read_result(told)))
    return reply_of([Message("assistant", tuple(parts)), Message("assistant", said.parts)])


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
    reply = reply_of([Message("assistant", tuple([part for message in messages for part in message.parts]))])
    state = str(status.get("state", "")).lower().removeprefix("task_state_")
    failure = None
    if state in ("failed", "rejected", "canceled", "cancelled"):
        why = said[-1].text if said else None
        failure = Failure("exception", failure_message(f"the task was {state}{f': {why}' if why else ''}"))
    evidence = msgspec.structs.replace(reply.evidence, kind="response", tools_observed=False)
    return msgspec.structs.replace(
        reply, failure=failure, evidence=evidence, response_id=as_str(payload.get("id"))
    )


def _adk(payload: JsonObject, asked: Asked) -> Reply:
    """Google's ADK: an invocation, an eval case, or an eval set with a single one."""
    turns = _invocations(payload)
    messages = [message for turn in turns for message in _invocation(turn)]
    reply = reply_of(exchange_for(messages, asked) or messages)
    told = bool(reply.tool_calls) or any(
        pick(turn, "intermediateData", "intermediate_data") for turn in turns
    )
    evidence = msgspec.structs.replace(reply.evidence, tools_observed=told and reply.evidence.tools_observed)
    return msgspec.structs.replace(reply, evidence=evidence)


def _invocations(payload: JsonObject) -> list[JsonObject]:
    """The turns in it, in order."""
    if not payload.keys().isdisjoint(_TURN):
        return [payload]
    cases = as_dicts(pick(payload, "evalCases", "eval_cases"))
    return as_dicts((cases[0] if len(cases) == 1 else payload).get("conversation"))


def _invocation(turn: JsonObject) -> Iterator[Message]:
    """A turn as a history of Gemini's: asks, calls, is answered and says the last word."""
    between = as_dict(pick(turn, "intermediateData", "intermediate_data"))
    uses: list[Json] = [{"functionCall": part} for part in as_dicts(pick(between, "toolUses", "tool_uses"))]
    given = as_dicts(pick(between, "toolResponses", "tool_responses"))
    asked = as_dict(pick(turn, "userContent", "user_content"))
    if asked:
        yield read_message({"role": "user", **asked})
    yield read_message({"role": "model", "parts": uses})
    yield read_message({"role": "function", "parts": [{"functionResponse": part} for part in given]})
    yield read_message({**as_dict(pick(turn, "finalResponse", "final_response")), "role": "model"})


def _with_text(reply: Reply, payload: JsonObject, name: str, usage: Json) -> Reply:
    """A result whose answer stands under a name of its own."""
    text = spoken_text(payload.get(name))
    if text is None and payload.get(name) is not None:
        return msgspec.structs.replace(reply, failure=not_text(name, payload[name]))
    return msgspec.structs.replace(reply, text=text, usage=read_usage(usage) or reply.usage)


def _any_step(value: Json) -> bool:
    return any(not step.keys().isdisjoint(_STEP) and "step_number" not in step for step in as_dicts(value))


def _all_turns(value: Json) -> bool:
    turns = as_dicts(value)
    return bool(turns) and all(not turn.keys().isdisjoint(_TURN) for turn in turns)


def _one_case(value: Json) -> bool:
    return _all_turns(at(value, 0, "conversation")) and len(as_dicts(value)) == 1


ROWS = (
    Format("AI SDK result", {"steps": _any_step}, _sdk_result),
    Format("AI SDK step", {"finishReason": str, "toolCalls": list}, _sdk_result),
    Format(
        "smolagents",
        {"steps": lambda value: any("step_number" in step for step in as_dicts(value))},
        _smolagents,
    ),
    Format("CrewAI", {"tasks_output": list, "raw": str}, _crew),
    Format(
        "LlamaIndex agent",
        {"response": lambda value: "blocks" in as_dict(value), "tool_calls": list},
        _llama_index,
    ),
    Format("A2A task", {"contextId": str, "status": dict}, _a2a_task),
    Format("A2A task, SDK", {"context_id": str, "status": dict}, _a2a_task),
    *(Format("ADK invocation", {name: dict}, _adk) for name in sorted(_TURN)),
    Format("ADK eval case", {"conversation": _all_turns}, _adk),
    *(Format("ADK eval set", {name: _one_case}, _adk) for name in ("eval_cases", "evalCases")),
)
