"""Formats that are recognised without configuration: the marks of a payload, and the function that reads it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import reduce
from typing import TypeAlias

import msgspec

from answerkey.model.reply import (
    Evidence,
    Failure,
    Finish,
    Json,
    JsonObject,
    Message,
    Part,
    Reply,
    Source,
    Timings,
    ToolCall,
)
from answerkey.transcripts.fields import (
    add_usage,
    failure_message,
    not_text,
    ranked,
    read_call,
    read_failure,
    read_source,
    read_sources,
    read_usage,
)
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    as_dict,
    as_dicts,
    as_list,
    as_str,
    at,
    decode_json,
    either,
    pick,
    read_duration,
    safe_text,
    spoken_text,
)
from answerkey.transcripts.messages import (
    KEYED_PARTS,
    QuestionContext,
    looks_like_messages,
    read_message,
    read_messages,
    reply_of,
    response_of,
    select_exchange,
    shows_every_call,
    with_evidence,
)
from answerkey.transcripts.streams import SEVERAL_RESPONSES

# A type that the field has, a text that it equals, or a test that it passes.
Mark: TypeAlias = type | str | Callable[[Json], bool]


class Format(msgspec.Struct, frozen=True):
    """One shape that a payload may have."""

    name: str
    # Field, or a path to one → its mark; all must be there. The first is the one that others have least.
    marks: dict[str, Mark]
    read: Callable[[JsonObject, QuestionContext], Reply]


def is_marked(payload: JsonObject, marks: dict[str, Mark]) -> bool:
    """Whether a payload has all the marks."""
    for name, mark in marks.items():
        outer, *path = name.split("/")
        if outer not in payload:
            return False
        value = at(payload[outer], *path) if path else payload[outer]
        if isinstance(mark, type):
            if not isinstance(value, mark):
                return False
        elif value != mark if isinstance(mark, str) else not mark(value):
            return False
    return True


def _having(*names: str) -> Callable[[Json], bool]:
    """The mark of a list in which some object has one of the fields."""
    return lambda value: any(not item.keys().isdisjoint(names) for item in as_dicts(value))


def _all_having(names: Iterable[str]) -> Callable[[Json], bool]:
    """The mark of a list in which every object has one of the fields."""
    chosen = frozenset(names)
    return lambda value: (
        bool(as_dicts(value)) and all(not chosen.isdisjoint(item) for item in as_dicts(value))
    )


# Single responses: of the APIs of OpenAI, Anthropic, Gemini, Ollama and Bedrock, messages alone, and results of MCP tools.


# Blocks that only Anthropic's messages have.
_OWN_BLOCKS = frozenset(
    {
        *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use"),
        *("thinking", "redacted_thinking", "search_result"),
    }
)
_PART_MARKS = frozenset({"type", "kind", "part_kind", *KEYED_PARTS})
_ITEMS = ("_call", "_call_output")
# Why a model stopped early, in the words of the APIs.
_FINISHES: dict[Json, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "model_length"), "length"),
    "refusal": "refusal",
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "SAFETY"), "filter"),
    **dict.fromkeys(("RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "filter"),
}
# The failure if there is no text.
_NO_TEXT_FAILURES: dict[Finish, Failure] = {
    "length": Failure("empty", "the model reached its token limit before any text"),
    "refusal": Failure("exception", "the model refused to answer"),
    "filter": Failure("exception", "the provider's content filter blocked the answer"),
}


def _chat(payload: JsonObject, context: QuestionContext) -> Reply:
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


def _responses(payload: JsonObject, context: QuestionContext) -> Reply:
    if any(item.get("role") == "user" for item in as_dicts(payload["output"])):
        # The whole conversation, as an agent's input list has it.
        return read_transcript(payload["output"], context) or Reply()
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


def _anthropic(payload: JsonObject, context: QuestionContext) -> Reply:
    message = read_message({**payload, "role": "assistant"})
    return _response(payload, [message], payload.get("stop_reason"))


def _gemini(payload: JsonObject, context: QuestionContext) -> Reply:
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
    whole = reply_of(select_exchange(messages, context) or messages, shows_calls=True)
    carried_over = {name: getattr(reply, name) for name in ("failure", "usage", "response_id", "finish")}
    return msgspec.structs.replace(whole, **carried_over)


def _ollama(payload: JsonObject, context: QuestionContext) -> Reply:
    given = as_dict(payload.get("message"))
    message = read_message({"content": payload.get("response"), **given, "role": "assistant"})
    total = read_duration(payload.get("total_duration"))
    timings = Timings(latency_ms=None if total is None else total / 1e6)
    reply = _response(payload, [message], payload.get("done_reason"))
    return msgspec.structs.replace(reply, timings=timings, usage=read_usage(payload))


def _bedrock(payload: JsonObject, context: QuestionContext) -> Reply:
    message = read_message(as_dict(at(payload, "output", "message")))
    timings = Timings(latency_ms=read_duration(at(payload, "metrics", "latencyMs")))
    # Cached tokens are neither in the input nor in the total here.
    counts = {name: count for name, count in as_dict(payload.get("usage")).items() if name != "totalTokens"}
    reply = _response({**payload, "usage": counts}, [message], payload.get("stopReason"))
    return msgspec.structs.replace(reply, timings=timings)


def _message(payload: JsonObject, context: QuestionContext) -> Reply:
    """A single message of a framework, as a chain that ends in a model gives it back."""
    return response_of([read_message(payload)])


def _of_parts(payload: JsonObject, context: QuestionContext) -> Reply:
    """A message of parts. One of the AI SDK's has every call of the reply in it; others may have been preceded by some."""
    message = read_message({"role": "assistant", **payload})
    parts = as_dicts(payload.get("parts"))
    from_sdk = all("type" in part and "content" not in part for part in parts)
    return reply_of([message], shows_calls=True) if from_sdk else response_of([message])


def _mcp(payload: JsonObject, context: QuestionContext) -> Reply:
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
        failure = _NO_TEXT_FAILURES[finish]
    return msgspec.structs.replace(
        reply,
        failure=failure,
        usage=read_usage(payload.get("usage", either(payload, "usageMetadata"))),
        response_id=as_str(payload.get("id", either(payload, "responseId"))),
        finish=finish,
    )


def _is_given(value: Json) -> bool:
    return value is not None


_ASSISTANTS = ("ai", "AIMessage", "AIMessageChunk")

MODEL_API_FORMATS = (
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
    Format("Bedrock Converse", {"output/message/content": list, "output/message/role": object}, _bedrock),
    *(
        Format("LangChain message", {"response_metadata": dict, "type": kind, "content": object}, _message)
        for kind in _ASSISTANTS
    ),
    *(
        Format("LangChain message, short", {"type": kind, "content": _is_given}, _message)
        for kind in _ASSISTANTS
    ),
    Format(
        "LangChain constructor", {"lc": int, "kwargs": lambda value: "content" in as_dict(value)}, _message
    ),
    *(Format("LangChain dict", {"type": kind, "data": dict}, _message) for kind in _ASSISTANTS),
    Format("Message of parts", {"parts": _all_having(_PART_MARKS)}, _of_parts),
    Format("AI SDK 4 message", {"toolInvocations": list}, _of_parts),
    Format("MCP result", {"isError": bool, "content": list}, _mcp),
    Format("MCP result, without a flag", {"structuredContent": object, "content": list}, _mcp),
    Format("MCP SDK result", {"structured_content": object, "content": list, "is_error": object}, _mcp),
)


# Results of agent frameworks for a whole run, converted to messages.


# What an AI SDK step, and an ADK invocation, have.
_STEP = frozenset({"toolCalls", "toolResults", "finishReason", "content"})
_TURN = frozenset({"final_response", "finalResponse", "intermediate_data", "intermediateData"})
# smolagents answers by calling this.
_ANSWERING = "final_answer"


def _sdk_result(payload: JsonObject, context: QuestionContext) -> Reply:
    """generateText of the AI SDK: its steps."""
    steps: list[Json] = [_sdk_step(step) for step in as_dicts(payload.get("steps")) or [payload]]
    reply = reply_of(read_messages(steps), shows_calls=True)
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
    parts = as_dicts(step.get("content"))
    # Mastra has the fields in a payload, and not all calls in the content.
    listed: list[JsonObject] = [
        {**part, **as_dict(part.get("payload")), "type": kind}
        for name, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result"), ("sources", "source"))
        for part in as_dicts(step.get(name))
    ]
    held, known = ([(part.get("type"), part.get("toolCallId")) for part in one] for one in (parts, listed))
    if not parts or any(key[0] == "tool-call" and key not in held for key in known):
        text = step.get("text") if not parts else None
        said: list[JsonObject] = [{"type": "text", "text": text}] if isinstance(text, str) else []
        rest = [part for part, key in zip(parts, held, strict=True) if key not in known]
        parts = [*said, *listed, *rest]
    return {"role": "assistant", "content": [*parts], "usage": step.get("usage")}


def _smolagents(payload: JsonObject, context: QuestionContext) -> Reply:
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
    reply = reply_of(read_messages(messages), shows_calls=True)
    if any(step.get("code_action") is not None for step in as_dicts(payload.get("steps"))):
        reply = with_evidence(
            reply, completeness="partial", tools_observed=False, unread=("tool calls inside code",)
        )
    return _with_text(reply, payload, "output")


def _crew(payload: JsonObject, context: QuestionContext) -> Reply:
    """A CrewAI result: its text, and its calls if the tasks have their messages."""
    histories = [task.get("messages") for task in as_dicts(payload.get("tasks_output"))]
    reply = reply_of([message for history in histories for message in read_messages(history)])
    return _with_text(reply if reply.tool_calls else Reply(), payload, "raw")


def _llama_index(payload: JsonObject, context: QuestionContext) -> Reply:
    parts: list[Json] = []
    for item in as_dicts(payload.get("tool_calls")):
        call = {name: value for name, value in item.items() if name != "tool_output"}
        parts.append({**call, "type": "tool_call"})
        if "tool_output" in item:
            parts.append({**call, "type": "tool_result", "output": item["tool_output"], "status": None})
    calls: JsonObject = {"role": "assistant", "content": parts}
    return reply_of(read_messages([calls, payload["response"]]), shows_calls=True)


def _agent_framework(payload: JsonObject, context: QuestionContext) -> Reply:
    """A response of Microsoft's Agent Framework, or the stream of an agent: all messages of a run but the question."""
    reply = reply_of(read_messages(payload["messages"]), shows_calls=True)
    usage = read_usage(payload.get("usage_details")) or reply.usage
    return msgspec.structs.replace(reply, usage=usage, response_id=as_str(payload.get("response_id")))


def _dspy(payload: JsonObject, context: QuestionContext) -> Reply:
    """The numbered steps of DSPy's ReAct; the answer is a field of the signature, by default the last one."""
    steps = as_dict(payload["trajectory"])
    messages: list[Json] = []
    for name, tool in steps.items():
        number = name.rpartition("_")[2]
        if not name.startswith("tool_name_") or tool == "finish":
            continue
        call: JsonObject = {"name": tool, "id": number, "arguments": steps.get(f"tool_args_{number}")}
        brought = steps.get(f"observation_{number}")
        failed = isinstance(brought, str) and brought.startswith("Execution error in ")
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": number, "content": brought, "is_error": failed})
    reply = reply_of(read_messages(messages), shows_calls=True)
    said = [value for name, value in payload.items() if isinstance(value, str) and name != "reasoning"]
    calls = tuple(msgspec.structs.replace(call, id=None) for call in reply.tool_calls)
    return msgspec.structs.replace(reply, text=safe_text(said[-1]) if said else None, tool_calls=calls)


def _semantic_kernel(payload: JsonObject, context: QuestionContext) -> Reply:
    """The last message of an agent, or all pieces of it; its calls are in the thread."""
    return response_of([read_message(as_dict(payload["message"]))])


def _a2a_task(payload: JsonObject, context: QuestionContext) -> Reply:
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


def _adk(payload: JsonObject, context: QuestionContext) -> Reply:
    """Google's ADK: an invocation, an eval case, or an eval set with a single one."""
    turns = [payload]
    if payload.keys().isdisjoint(_TURN):
        cases = as_dicts(either(payload, "evalCases"))
        turns = as_dicts((cases[0] if len(cases) == 1 else payload).get("conversation"))
    messages = read_messages([message for turn in turns for message in _invocation(turn)])
    records_calls = any(either(turn, "intermediateData") for turn in turns)
    return reply_of(
        select_exchange(messages, context) or messages,
        shows_calls=records_calls or shows_every_call(messages),
    )


def _invocation(turn: JsonObject) -> list[Json]:
    """A turn as a history of Gemini: question, calls, results and final response."""
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
    """A result with the answer in a field of a special name."""
    text = spoken_text(payload.get(name))
    if text is None and payload.get(name) is not None:
        return msgspec.structs.replace(reply, failure=not_text(name, payload[name]))
    usage = read_usage(payload.get("token_usage")) or reply.usage
    return msgspec.structs.replace(reply, text=text, usage=usage)


def _are_sdk_steps(value: Json) -> bool:
    return any(not step.keys().isdisjoint(_STEP) and "step_number" not in step for step in as_dicts(value))


def _one_case(value: Json) -> bool:
    return len(as_dicts(value)) == 1 and _all_having(_TURN)(at(value, 0, "conversation"))


AGENT_FORMATS = (
    Format("AI SDK result", {"steps": _are_sdk_steps}, _sdk_result),
    Format("AI SDK step", {"finishReason": str, "toolCalls": list}, _sdk_result),
    Format("smolagents", {"steps": _having("step_number")}, _smolagents),
    Format("CrewAI", {"tasks_output": list, "raw": str}, _crew),
    Format("LlamaIndex agent", {"response/blocks": object, "tool_calls": list}, _llama_index),
    Format("Agent Framework", {"messages": list, "type": "agent_response"}, _agent_framework),
    Format("DSPy ReAct", {"trajectory/tool_name_0": str}, _dspy),
    Format("Semantic Kernel", {"message/items": list, "message/content_type": str}, _semantic_kernel),
    *(Format("A2A task", {name: str, "status": dict}, _a2a_task) for name in ("contextId", "context_id")),
    *(Format("ADK invocation", {name: dict}, _adk) for name in sorted(_TURN)),
    Format("ADK eval case", {"conversation": _all_having(_TURN)}, _adk),
    *(Format("ADK eval set", {name: _one_case}, _adk) for name in ("eval_cases", "evalCases")),
)


# Logs of one question: a sample of Inspect, or a run of LangSmith with its child runs.


def _sample(payload: JsonObject, context: QuestionContext) -> Reply:
    """A sample of Inspect: its messages, with the tool events that time and grade each call."""
    messages = read_messages(payload.get("messages"))
    # A sample has all messages of its solver.
    reply = reply_of(select_exchange(messages, context) or messages, shows_calls=True)
    said = at(payload, "output", "choices", 0, "message", "content")
    events = [_event(event) for event in as_dicts(payload.get("events")) if event.get("event") == "tool"]
    usages = [read_usage(part) for part in as_dict(payload.get("model_usage")).values()]
    # The events are the better record, with durations and errors; but only of the whole sample.
    timed = len(events) == len(reply.tool_calls)
    return msgspec.structs.replace(
        reply,
        text=spoken_text(said) if reply.text is None else reply.text,
        tool_calls=tuple(events) if timed else reply.tool_calls,
        failure=read_failure(payload.get("error")),
        usage=reduce(add_usage, usages, None) or reply.usage,
        timings=Timings(latency_ms=_from_seconds(payload.get("total_time"))),
        response_id=as_str(payload.get("uuid")) or reply.response_id,
    )


def _event(event: JsonObject) -> ToolCall:
    error = event.get("error") or event.get("failed") is True
    return read_call({**event, "error": error, "duration_ms": _from_seconds(event.get("working_time"))})


def _from_seconds(value: object) -> float | None:
    seconds = read_duration(value)
    return None if seconds is None else seconds * 1000


def _langsmith(payload: JsonObject, context: QuestionContext) -> Reply:
    """The root run's output in any known format; its child runs are calls and sources."""
    outputs = payload.get("outputs")
    inner = read_document(outputs, context) if isinstance(outputs, dict) else None
    if inner is None:
        text = _text(outputs)
        inner = Reply(text=text, failure=not_text("outputs", outputs) if text is None and outputs else None)
    below = list(_below(payload, 0))
    calls = [_call(run) for run in below if run.get("run_type") == "tool"]
    found: list[Source] = []
    for run in below:
        if run.get("run_type") == "retriever":
            found += read_sources(as_dict(run.get("outputs")).get("documents"))
    sources = ranked(found) or inner.sources
    observed = bool(below or inner.tool_calls or inner.evidence.tools_observed)
    return Reply(
        text=inner.text,
        tool_calls=tuple(calls) or inner.tool_calls,
        sources=sources,
        failure=read_failure(payload.get("error")) or inner.failure,
        usage=inner.usage,
        timings=Timings(latency_ms=_elapsed_ms(payload)),
        evidence=Evidence(kind="log", tools_observed=observed, sources_observed=bool(sources)),
        response_id=as_str(pick(payload, "id", "run_id")),
        trace_id=as_str(payload.get("trace_id")),
    )


def _text(outputs: object) -> str | None:
    if not isinstance(outputs, dict):
        return spoken_text(outputs)
    for name in ("answer", "output", "response", "text", "result", "content"):
        if isinstance(outputs.get(name), str):
            return str(outputs[name])
    return spoken_text(next(iter(outputs.values()))) if len(outputs) == 1 else None


def _below(run: JsonObject, depth: int) -> Iterator[JsonObject]:
    if depth > 50:
        return
    for child in as_dicts(run.get("child_runs")):
        yield child
        yield from _below(child, depth + 1)


def _call(run: JsonObject) -> ToolCall:
    inputs = as_dict(run.get("inputs"))
    given = inputs.get("input") if set(inputs) == {"input"} else inputs
    call = {**run, "args": given, "duration_ms": _elapsed_ms(run)}
    outputs = run.get("outputs")
    if outputs is not None:
        call["result"] = as_dict(outputs).get("output", outputs)
    return read_call(call)


def _elapsed_ms(run: JsonObject) -> float | None:
    start, end = as_str(run.get("start_time")), as_str(run.get("end_time"))
    if start is None or end is None:
        return None
    try:
        elapsed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
    except (ValueError, TypeError):
        return None
    return elapsed if elapsed >= 0 else None


RUN_LOG_FORMATS = (
    Format("Inspect sample", {"messages": list, "epoch": int}, _sample),
    Format("Inspect sample, without an epoch", {"messages": list, "model_usage": dict}, _sample),
    Format(
        "Inspect log of one sample",
        {"samples": lambda value: len(as_dicts(value)) == 1 and isinstance(at(value, 0, "messages"), list)},
        lambda payload, context: _sample(as_dicts(payload["samples"])[0], context),
    ),
)


# The table of all formats, and transcripts.
#
# A payload is read by the format all of whose marks it has; of several, by the one with most marks. The order of the rows
# has no meaning.


_OTEL = ("gen_ai.input.messages", "gen_ai.output.messages")


def formats_of(payload: JsonObject) -> list[Format]:
    """The rows whose marks a payload has, the most marks first."""
    found = [
        row for name in payload if name in _BY_MARK for row in _BY_MARK[name] if is_marked(payload, row.marks)
    ]
    return sorted(found, key=lambda row: -len(row.marks)) if len(found) > 1 else found


def read_document(payload: JsonObject, context: QuestionContext) -> Reply | None:
    """The reply in a payload of a known format; None if it is in none."""
    found = formats_of(payload)
    return found[0].read(payload, context) if found else None


def read_list(items: list[Json], context: QuestionContext) -> Reply | None:
    """The reply in a bare list: a transcript, response items, or content blocks; None if it is none of them."""
    if looks_like_messages(items):
        return read_transcript(items, context)
    if are_items(items):
        return response_of(read_items(items))
    return read_blocks(items) if are_blocks(items) else None


def streamed(reply: Reply, whole: bool) -> Reply:
    """A reply that came as a stream; `whole` if its end was seen."""
    ran_tools = any(call.result is not None or call.error for call in reply.tool_calls)
    if ran_tools and reply.evidence.kind == "transcript" and reply.text is None and reply.failure is None:
        # An agent answers after its calls; many of their streams have no event at the end.
        whole = False
    complete = whole and reply.evidence.completeness == "complete"
    return with_evidence(
        reply,
        kind="stream",
        completeness="complete" if complete else "partial",
        tools_observed=complete and reply.evidence.tools_observed,
    )


def read_transcript(items: Json, context: QuestionContext) -> Reply | None:
    """The reply to what was asked, in a list of messages; None if a recorded one has no such turn."""
    messages = read_messages(items)
    chosen = select_exchange(messages, context)
    if chosen is None:
        return None
    # A call anywhere in the conversation shows that it records calls.
    reply = reply_of(chosen, shows_calls=shows_every_call(messages))
    last = as_dict(as_list(items)[-1]) if items else {}
    return _with_result(reply, last) if "total_cost_usd" in last else reply


def _with_result(reply: Reply, result: JsonObject) -> Reply:
    """A transcript that ends with the result of Claude's agent: what it used in all, and whether it failed."""
    failure = None
    if result.get("is_error") is True:
        failure = Failure("exception", f"the agent ended with {result.get('subtype') or 'an error'}")
    usage = read_usage(result.get("usage"), result.get("total_cost_usd"))
    identity = as_str(result.get("session_id")) or reply.conversation_id
    return msgspec.structs.replace(
        reply, usage=usage or reply.usage, failure=failure, conversation_id=identity
    )


def _messages_at(*path: str) -> Callable[[JsonObject, QuestionContext], Reply]:
    return lambda payload, context: read_transcript(at(payload, *path), context) or Reply()


def _otel(payload: JsonObject, context: QuestionContext) -> Reply:
    """The messages of a span, often JSON in a string; the input has the earlier texts and calls."""
    items: list[Json] = []
    for given in (payload.get(name) for name in _OTEL):
        with suppress(ValueError):
            items += as_list(decode_json(given) if isinstance(given, str) else given)
    return read_transcript(items, context) or Reply()


def _rpc(payload: JsonObject, context: QuestionContext) -> Reply:
    """A JSON-RPC answer (MCP, A2A): its error, or the result in its own format."""
    result = as_dict(payload.get("result"))
    if not result:
        return Reply(failure=read_failure(payload.get("error")))
    # A2A's newer versions wrap once more.
    inner = next((result[name] for name in ("task", "message") if isinstance(result.get(name), dict)), result)
    reply = read_document(as_dict(inner), context) or read_document(
        {"isError": False, **as_dict(inner)}, context
    )
    if reply is not None:
        return reply
    names = ", ".join(list(result)[:8])
    return Reply(failure=Failure("malformed", f"the JSON-RPC result is in no known format (it has: {names})"))


def _several(payload: JsonObject, context: QuestionContext) -> Reply:
    """The responses of a model in all steps of an agent: their calls in order, and the last one's text."""
    found = [read_document(response, context) for response in as_dicts(payload["responses"])]
    replies = [reply for reply in found if reply is not None]
    if not replies:
        return Reply()
    unread = tuple(dict.fromkeys(name for reply in replies for name in reply.evidence.unread))
    calls = tuple(call for reply in replies for call in reply.tool_calls)
    thoughts = [reply.reasoning for reply in replies if reply.reasoning]
    reply = msgspec.structs.replace(
        replies[-1],
        tool_calls=calls,
        sources=tuple(source for reply in replies for source in reply.sources),
        usage=reduce(add_usage, [reply.usage for reply in replies]),
        reasoning="\n\n".join(thoughts) or None,
    )
    return with_evidence(
        reply,
        completeness="partial" if unread else "complete",
        tools_observed=bool(calls) and not unread,
        sources_observed=bool(reply.sources),
        unread=unread,
    )


FORMATS: tuple[Format, ...] = (
    *MODEL_API_FORMATS,
    *AGENT_FORMATS,
    *RUN_LOG_FORMATS,
    *(Format("JSON-RPC", {"jsonrpc": str, name: dict}, _rpc) for name in ("result", "error")),
    *(Format("LangSmith run", {"run_type": str, name: object}, _langsmith) for name in ("inputs", "outputs")),
    Format("transcript", {"messages": looks_like_messages}, _messages_at("messages")),
    Format("Gemini history", {"contents": looks_like_messages}, _messages_at("contents")),
    Format("LangGraph state", {"values/messages": looks_like_messages}, _messages_at("values", "messages")),
    Format(
        "AI SDK response", {"response/messages": looks_like_messages}, _messages_at("response", "messages")
    ),
    Format("AI SDK 7", {"responseMessages": looks_like_messages}, _messages_at("responseMessages")),
    # Its response has only the last step.
    Format(
        "AI SDK 7, with the response",
        {"responseMessages": looks_like_messages, "response/messages": list},
        _messages_at("responseMessages"),
    ),
    Format("several responses", {"object": SEVERAL_RESPONSES, "responses": list}, _several),
    *(Format("OpenTelemetry messages", {name: object}, _otel) for name in _OTEL),
)
_BY_MARK: dict[str, list[Format]] = {}
for _row in FORMATS:
    _BY_MARK.setdefault(next(iter(_row.marks)).partition("/")[0], []).append(_row)
# A payload with none of these names can only be in a format if its text field is not text.
FORMAT_MARKS = frozenset(_BY_MARK) - {*TEXT_NAMES, "type"}


def has_reply_names(value: JsonObject) -> bool:
    """Whether an object can be a reply: it has a text under a usual name, or a format's mark."""
    return any(name in value for name in TEXT_NAMES) or not value.keys().isdisjoint(FORMAT_MARKS)
