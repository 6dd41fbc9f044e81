"""A trace into what was observed: the calls that models asked for, joined with the spans of the tools that ran."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.message import Message, Part
from answerkey.model.reply import Source, ToolCall, Usage
from answerkey.observe.conventions import FINISHED, USAGE, KnownSpan, known_span, value_at
from answerkey.observe.merging import Observation, join_calls
from answerkey.observe.span import Event, Span
from answerkey.transcripts.conversation import NOT_ASKED, reply_of
from answerkey.transcripts.documents import read_document
from answerkey.transcripts.fields.sources import ranked, read_sources
from answerkey.transcripts.fields.tool_calls import UNNAMED, read_arguments, read_result
from answerkey.transcripts.fields.usage import add_usage, read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str
from answerkey.transcripts.message_reading import looks_like_messages, read_messages

_CALLING = ("tool", "function_call")
_UNTOLD = "a model's call whose outcome is not in its span"


class ReadTrace(NamedTuple):
    """What the spans of one trace tell."""

    observation: Observation
    # What the first model was asked, and what the last one said.
    question: str | None
    text: str | None


class _ModelSpan(NamedTuple):
    span: Span
    # What the model gave; None: not told.
    said: list[Message] | None
    # What it got, as far as told.
    got: list[Message]


def read_trace(spans: Iterable[Span], *, zero_ns: int, missing: Sequence[str] = ()) -> ReadTrace:
    """Read spans that are distinct. `zero_ns`: when the question was asked; `missing`: what is known not to be here."""
    by_scope: dict[str, list[KnownSpan]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.end_ns)):
        if (known := known_span(span)) is not None:
            by_scope.setdefault(span.scope, []).append(known)
    calls: list[tuple[ToolCall, ...]] = []
    lacks = list(missing)
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    told = False
    known_calls = 0
    models: list[_ModelSpan] = []
    for found in by_scope.values():
        # Each instrumentation is an observer of its own; two of them may have seen the same call.
        own = [_model_span(known) for known in found if known.kind == "model"]
        tools = [known for known in found if known.kind == "tool"]
        asked, unseen = _asked(own, tools, zero_ns)
        ran = [_tool_call(known, zero_ns) for known in _outermost(tools)]
        calls.append(join_calls(asked, ran))
        lacks += unseen
        told = told or bool(tools) or (bool(own) and not unseen)
        models += own
        sources = sources or ranked(
            [source for known in found if known.kind == "retrieval" for source in _sources(known)]
        )
        usage = usage or _usage([model.span for model in own])
        known_calls = max(known_calls, _answered(own))
    if not told and not lacks and by_scope:
        lacks.append("no call of a model or a tool is in the trace")
    observation = Observation(
        kind="otel",
        tool_calls=join_calls(*calls),
        sources=sources,
        usage=usage,
        complete=told and not lacks,
        missing=tuple(dict.fromkeys(lacks)),
        models=known_calls,
    )
    models.sort(key=lambda model: model.span.start_ns)
    question = next((text for model in models for text in _texts(model.got, "user")[-1:]), None)
    text = next(
        (text for model in reversed(models) for text in _texts(model.said or [], "assistant")[-1:]), None
    )
    return ReadTrace(observation, question, text)


def _texts(messages: Sequence[Message], role: str) -> list[str]:
    return [text for message in messages if message.role == role and (text := message.text)]


def _answered(models: Sequence[_ModelSpan]) -> int:
    """How many calls of models one instrumentation shows that did not fail; a span around others is none of its own."""
    around = {model.span.parent_id for model in models}
    return sum(model.span.span_id not in around and model.span.status != 2 for model in models)


def _asked(
    models: Sequence[_ModelSpan], tools: Sequence[KnownSpan], zero_ns: int
) -> tuple[tuple[ToolCall, ...], list[str]]:
    """The calls that models asked for with what came back to them, and what was not told."""
    messages: list[Message] = []
    lacks: list[str] = []
    for number, (span, said, got) in enumerate(models):
        messages += new_results(got)
        if said is not None:
            messages += [_started(message, span, zero_ns) for message in said]
        reasons = _reasons(span)
        calling = any(word in reason for reason in reasons for word in _CALLING)
        shown = said is not None and (
            not calling or any(part.kind == "call" for one in said for part in one.parts)
        )
        if shown or (reasons and not calling) or span.status == 2:
            continue
        # Where the same instrumentation shows the tools that ran next, they are all of them.
        until = models[number + 1].span.start_ns if number + 1 < len(models) else None
        begun = [tool.span.start_ns for tool in tools if tool.span.start_ns >= span.end_ns]
        if not (calling and any(until is None or start <= until for start in begun)):
            lacks.append("the calls that a model made" if calling else _UNTOLD)
    reply = reply_of(messages)
    return reply.tool_calls, [*lacks, *reply.evidence.unread]


def _started(message: Message, span: Span, zero_ns: int) -> Message:
    """A model's message whose calls begin when the model has ended."""
    start = _after(zero_ns, span.end_ns)
    parts = [
        Part("call", None, msgspec.structs.replace(part.call, start_ms=start), part.sources)
        if part.kind == "call" and part.call is not None
        else part
        for part in message.parts
    ]
    return Message(message.role, tuple(parts))


def _after(zero_ns: int, moment_ns: int) -> float:
    return round(max(0, moment_ns - zero_ns) / 1e6, 3)


def new_results(got: Sequence[Message]) -> list[Message]:
    """The results that are new in what a model got: those after its last own words."""
    last = max((number for number, message in enumerate(got) if message.role == "assistant"), default=-1)
    new = [part for message in got[last + 1 :] for part in message.parts if part.kind == "result"]
    named = [part for part in new if part.call is not None and (part.call.id or part.call.name != UNNAMED)]
    return [Message("tool", tuple(named))] if named else []


def _reasons(span: Span) -> list[str]:
    for name in FINISHED:
        value = span.attributes.get(name)
        if value:
            return [str(one).lower() for one in value] if isinstance(value, list) else [str(value).lower()]
    return []


def _model_span(known: KnownSpan) -> _ModelSpan:
    span = known.span
    _take_events(span)
    said: list[Message] | None = None
    for name, value in known.values("output"):
        found = _messages(value, "assistant")
        if found:
            # The AI SDK has calls and text apart.
            said = [*(said or []), *found]
            if not name.startswith("ai."):
                break
    got: list[Message] = []
    for _, value in known.values("input"):
        got = got or _messages(value, "user")
    chosen = [_event_message(event) for event in span.events if event.name == "gen_ai.choice"]
    before = [_event_message(event) for event in span.events if event.name in _EVENT_ROLES]
    said = said or (read_messages(chosen) or None)
    return _ModelSpan(span, said, got or read_messages(before))


_EVENT_ROLES = {
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _take_events(span: Span) -> None:
    """What an event or a log record says in the names of attributes is the span's."""
    for event in span.events:
        for name, value in event.attributes.items():
            if name.startswith("gen_ai."):
                span.attributes.setdefault(name, value)


def _event_message(event: Event) -> dict[str, Any]:
    """A message that an event or a log record of the older convention tells."""
    body = as_dict(event.body) or event.attributes
    held = as_dict(body.get("message")) or body
    role = _EVENT_ROLES.get(event.name, "assistant")
    message = {"content": None, **held, "role": role}
    return {**message, "tool_call_id": held.get("id")} if role == "tool" else message


def _messages(value: Any, role: str) -> list[Message]:
    """The messages in what a model got or gave, in whatever form the instrumentation has them."""
    if isinstance(value, str):
        return read_messages([{"role": role, "content": value}]) if value else []
    if isinstance(value, list):
        if looks_like_messages(value):
            return read_messages(value)
        calls = [item for item in as_dicts(value) if "toolName" in item or "name" in item]
        return read_messages([{"role": "assistant", "content": None, "tool_calls": calls}]) if calls else []
    if not isinstance(value, dict):
        return []
    for name in ("messages", "message", "generations", "contents"):
        if name in value:
            return _messages(_unnested(value[name]), role)
    if "role" in value or "lc" in value:
        return read_messages([value])
    reply = read_document(value, NOT_ASKED)
    if reply is None or reply.failure is not None:
        return []
    parts = [Part("call", None, call) for call in reply.tool_calls]
    return [Message("assistant", (*parts, Part("text", reply.text)))]


def _unnested(value: Any) -> Any:
    """LangChain has lists of lists: one for each prompt; and a message within each generation."""
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]
    return (
        [as_dict(item).get("message", item) for item in as_list(value)] if isinstance(value, list) else value
    )


def _outermost(tools: Sequence[KnownSpan]) -> list[KnownSpan]:
    """Spans of tools, without those within another one of the same tool (an MCP client's within the agent's)."""
    names = {known.span.span_id: _name(known) for known in tools}
    return [known for known in tools if names.get(known.span.parent_id) != names[known.span.span_id]]


def _name(known: KnownSpan) -> str:
    return _text(known, "name") or known.span.name or UNNAMED


def _text(known: KnownSpan, part: Literal["name", "id"]) -> str | None:
    found = (known.span.attributes.get(name) for row in known.rows for name in getattr(row, part))
    return next((as_str(text) for text in found if text), None)


def _tool_call(known: KnownSpan, zero_ns: int) -> ToolCall:
    span, given, brought = known.span, known.first("input"), known.first("output")
    identity = _text(known, "id")
    if isinstance(given, dict) and "input_str" in given:
        # Traceloop has what LangChain's callback got: the arguments are within.
        identity = identity or as_str(as_dict(given.get("kwargs")).get("tool_call_id"))
        given = given.get("inputs")
    arguments, arguments_text = read_arguments(given)
    result = read_result({"content": brought}) if brought is not None else None
    inner = _tool_message(brought)
    if inner is not None:
        result = read_result(inner)
        identity = identity or result.id
    error = None if result is None else result.error
    if span.status == 2 or span.attributes.get("error.type"):
        error = (
            _exception(span)
            or span.status_message
            or error
            or str(span.attributes.get("error.type", "the call failed"))
        )
    return ToolCall(
        name=_name(known),
        id=identity,
        arguments=arguments,
        arguments_text=arguments_text,
        result=None if result is None else result.result,
        result_seen=result is not None,
        error=error,
        start_ms=_after(zero_ns, span.start_ns),
        duration_ms=round(max(0, span.end_ns - span.start_ns) / 1e6, 3),
    )


def _tool_message(value: Any) -> dict[str, Any] | None:
    """The tool's message that LangChain's instrumentations wrap once or twice; None if it is none."""
    for _ in range(4):
        if not isinstance(value, dict):
            return None
        if "content" in value and ("tool_call_id" in value or "status" in value):
            return value
        value = next((value[name] for name in ("output", "kwargs", "data") if name in value), None)
    return None


def _exception(span: Span) -> str | None:
    for event in span.events:
        if event.name == "exception":
            return as_str(event.attributes.get("exception.message")) or as_str(
                event.attributes.get("exception.type")
            )
    return None


def _sources(known: KnownSpan) -> Sequence[Source]:
    """The documents of a retriever; where one place has their ids and another has not, the one that has."""
    best: Sequence[Source] = ()
    for _, value in known.values("output"):
        for inner in ("documents", "output"):
            value = value.get(inner, value) if isinstance(value, dict) else value
        found = read_sources(value) if isinstance(value, list) else ()
        if found and (not best or (best[0].id is None and found[0].id is not None)):
            best = found
    return best


def _usage(spans: Sequence[Span]) -> Usage | None:
    """What a scope's calls of models used; a span within another is part of it."""
    ids = {span.span_id for span in spans}
    total: Usage | None = None
    for span in spans:
        if span.parent_id in ids:
            continue
        given: dict[str, Any] = {}
        for field, names in USAGE.items():
            value = next((value for name in names if (value := value_at(span, name)) is not None), None)
            given |= value if isinstance(value, dict) else {} if value is None else {field: value}
        read = read_usage(given) if given else None
        total = add_usage(total, read) if read is not None else total
    return total
