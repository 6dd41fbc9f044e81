"""From the spans of a trace to an observation, by the conventions of instrumentations in `conventions.toml`."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.reply import Message, Part, Source, ToolCall, Usage
from answerkey.observe.observations import Event, Gap, Observation, Span, join_calls, read_traceparent
from answerkey.text.normalise import count
from answerkey.transcripts.fields import (
    UNNAMED,
    add_usage,
    ranked,
    read_arguments,
    read_result,
    read_sources,
    read_usage,
)
from answerkey.transcripts.formats import read_document
from answerkey.transcripts.json_values import as_dict, as_dicts, as_list, as_str, decode_json
from answerkey.transcripts.messages import NO_CONTEXT, looks_like_messages, read_messages, reply_of

SpanKind = Literal["model", "tool", "retrieval"]
CallPart = Literal["name", "id", "input", "output"]


class Convention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes of one convention."""

    # Attribute, and its values → kind of the span; "" matches any value.
    mark: str
    kinds: dict[str, SpanKind]
    # Input: a tool's arguments, or a model's messages.
    input: tuple[str, ...] = ()
    # Output: a tool's result, a model's messages, or documents.
    output: tuple[str, ...] = ()
    # A tool's name; without an attribute, the name of the span.
    name: tuple[str, ...] = ()
    id: tuple[str, ...] = ()


class Conventions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `conventions.toml`."""

    conventions: tuple[Convention, ...]
    # Attributes that say why a model stopped, and those of its usage.
    finished: tuple[str, ...]
    usage: dict[str, tuple[str, ...]]


@cache
def known_conventions() -> Conventions:
    """The conventions that are known."""
    import tomllib  # needed once there are spans

    text = Path(__file__).with_name("conventions.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Conventions)


# OpenInference's wrappers of list items.
_WRAPPERS = ("message", "tool_call", "message_content", "document")


class KnownSpan(NamedTuple):
    """A span of a known kind, with the conventions that it follows."""

    span: Span
    kind: SpanKind
    rows: list[Convention]

    def values(self, part: CallPart) -> Iterator[tuple[str, Any]]:
        """The attributes of one part of the span and their values, in the order of the conventions."""
        for name in dict.fromkeys(name for row in self.rows for name in getattr(row, part)):
            value = value_at(self.span, name)
            if value is not None:
                yield name, value

    def first(self, part: CallPart) -> Any:
        """The first one; None if there is none."""
        return next((value for _, value in self.values(part)), None)


def known_span(span: Span) -> KnownSpan | None:
    """The span with the conventions that it follows, all of one kind; None for another step."""
    found: list[tuple[SpanKind, Convention]] = []
    for row in known_conventions().conventions:
        given = span.attributes.get(row.mark)
        if isinstance(given, str):
            # MLflow writes every attribute as JSON.
            kind = row.kinds.get(given.strip('"')) or row.kinds.get("")
            found += [(kind, row)] if kind is not None else []
    if not found or span.name.endswith(_NOT_MODELS):
        return None
    # Where two kinds match, the more certain one is used.
    kind = found[0][0]
    return KnownSpan(span, kind, [row for one, row in found if one == kind])


def value_at(span: Span, name: str) -> Any:
    """The value of an attribute, decoded if it is JSON; or the object of the attributes with its name and a dot as prefix."""
    value = span.attributes.get(name)
    return _nested(span.attributes, f"{name}.") if value is None else _decoded(value)


def _decoded(value: Any) -> Any:
    """A value that may be JSON in a text; a bare number or word stays text."""
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        with suppress(ValueError):
            return decode_json(value)
    return value


def _nested(attributes: Mapping[str, Any], prefix: str) -> Any:
    """The list or object that flat attributes describe: `a.0.b`; None if there are none."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            *path, last = name[len(prefix) :].split(".")
            held = tree
            for step in path:
                inner = held.setdefault(step, {})
                if not isinstance(inner, dict):
                    inner = held[step] = {}
                held = inner
            held[last] = value
    return _listed(tree) if tree else None


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if all(key.isdecimal() for key in value):
        return [_listed(item) for _, item in sorted(value.items(), key=lambda pair: int(pair[0]))]
    if len(value) == 1 and (only := next(iter(value))) in _WRAPPERS:
        return _listed(value[only])
    return {"content" if key == "contents" else key: _listed(item) for key, item in value.items()}


# From a trace to an observation: the calls that models requested, joined with the spans of the tools.


_CALLING = ("tool", "function_call")
# Names that are not tools, with the part of the instrumentation's name where they are not: ADK's summary of parallel calls,
# and how agents of smolagents and DSPy end.
_NOT_TOOLS = {"(merged tools)": "", "final_answer": "smolagents", "finish": "dspy"}
# The packages whose spans have what a tool returned in an object, {"result": …}.
_ADK = ("gcp", "openinference.instrumentation.google_adk")
# LlamaIndex marks as a model's call what only prepares one.
_NOT_MODELS = "._prepare_chat_with_tools"
_UNKNOWN_OUTCOME = "a model's call whose outcome is not in its span"


class ReadTrace(NamedTuple):
    """The content of one trace."""

    observation: Observation
    # The question to the first model, and the text of the last one.
    question: str | None
    text: str | None


class _ModelSpan(NamedTuple):
    span: Span
    # The model's output; None: unknown.
    output: list[Message] | None
    # Its input, as far as it is known.
    input: list[Message]

    @property
    def is_whole_run(self) -> bool:
        """Whether it has several responses, so that its input holds the results of its own calls."""
        made, before = (
            [
                (part.call.name, part.call.arguments)
                for one in messages
                for part in one.parts
                if part.kind == "call" and part.call
            ]
            for messages in (self.output or [], self.input)
        )
        return bool(made) and made == before and bool(new_results(self.input))


def read_trace(spans: Iterable[Span], *, zero_ns: int, gaps: Sequence[Gap] = ()) -> ReadTrace:
    """Read distinct spans. `zero_ns`: when the question was asked; `gaps`: what is known to be missing."""
    in_order = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    tree = _SpanTree(in_order)
    by_scope: dict[str, list[KnownSpan]] = {}
    for span in in_order:
        if (known := known_span(span)) is not None:
            by_scope.setdefault(_instrumentation(span.scope), []).append(known)
    calls: list[tuple[ToolCall, ...]] = []
    found_gaps = list(gaps)
    sources: tuple[Source, ...] = ()
    usages: list[Usage] = []
    shows_calls = False
    models: list[_ModelSpan] = []
    for scope, found in by_scope.items():
        # Each instrumentation is a separate observer; two of them may have seen the same call.
        own = [_model_span(known) for known in found if known.kind == "model"]
        tools = [known for known in found if known.kind == "tool"]
        requested, unseen = _requested_calls(own, tools, tree, zero_ns)
        ran = [_tool_call(known, zero_ns) for known in _outermost(tools, tree)]
        joined = join_calls(requested, ran)
        if scope in _ADK:
            joined = tuple([msgspec.structs.replace(call, result=_from_adk(call.result)) for call in joined])
        calls.append(tuple(call for call in joined if _NOT_TOOLS.get(call.name, " ") not in scope))
        found_gaps += unseen
        shows_calls = shows_calls or bool(tools) or (bool(own) and not unseen)
        models += own
        sources = sources or ranked(
            [source for known in found if known.kind == "retrieval" for source in _sources(known)]
        )
        if (usage := _usage(own, tree)) is not None:
            usages.append(usage)
    if not shows_calls and not found_gaps and by_scope:
        found_gaps.append(Gap("no call of a model or a tool is in the trace"))
    unknown = {identity for gap in found_gaps for identity in gap.ids}
    answered = {identity for model in models for identity in _model_ids(model.span)} - unknown
    observation = Observation(
        kind="otel",
        tool_calls=join_calls(*calls),
        sources=sources,
        # Of two instrumentations one may have counted only some of the model calls.
        usage=max(usages, key=lambda usage: usage.input_tokens or 0, default=None),
        shows_calls=shows_calls,
        gaps=tuple(dict.fromkeys(found_gaps)),
        # A request names the span that sent it, which is often an HTTP client's inside the model's.
        known=frozenset(answered).union(
            span.span_id for span in in_order if not answered.isdisjoint(tree.ancestors(span))
        ),
    )
    models.sort(key=lambda model: model.span.start_ns)
    question = next((text for model in models for text in _texts(model.input, "user")[-1:]), None)
    text = next(
        (text for model in reversed(models) for text in _texts(model.output or [], "assistant")[-1:]), None
    )
    return ReadTrace(observation, question, text)


def _instrumentation(scope: str) -> str:
    """The package that a scope is of: some have a scope for each of their modules."""
    parts = scope.split(".")
    return scope if "instrumentation" in parts else parts[0]


class _SpanTree:
    """The parents of spans."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._parents = {span.span_id: span.parent_id for span in spans}

    def ancestors(self, span: Span) -> list[str]:
        """The ids of the spans around a span, the nearest first."""
        found: list[str] = []
        parent = span.parent_id
        while parent in self._parents and parent not in found:
            found.append(parent)
            parent = self._parents[parent]
        return found


def _model_ids(span: Span) -> list[str]:
    """Ids by which another observer may know the same model call."""
    response = as_str(span.attributes.get("gen_ai.response.id"))
    return [span.span_id, response] if response else [span.span_id]


def _texts(messages: Sequence[Message], role: str) -> list[str]:
    return [text for message in messages if message.role == role and (text := message.text)]


def _requested_calls(
    models: Sequence[_ModelSpan], tools: Sequence[KnownSpan], tree: _SpanTree, zero_ns: int
) -> tuple[tuple[ToolCall, ...], list[Gap]]:
    """The calls that models requested with their results, and what is unknown."""
    messages: list[Message] = []
    gaps: list[Gap] = []
    # Call id → the spans that have it: a span around another repeats its calls.
    shown_in: dict[str, set[str]] = {}
    for number, (span, said, got) in enumerate(models):
        results = new_results(got)
        is_whole_run = not shown_in and models[number].is_whole_run
        messages += [] if is_whole_run else results
        around = {span.span_id, *tree.ancestors(span)}
        for message in said or []:
            parts = [part for part in message.parts if not _is_repeated(part, around, shown_in)]
            messages.append(_started(Message(message.role, tuple(parts)), span, zero_ns))
        messages += results if is_whole_run else []
        for part in (part for message in said or [] for part in message.parts if part.kind == "call"):
            if part.call is not None and part.call.id is not None:
                shown_in.setdefault(part.call.id, set()).add(span.span_id)
        reasons = _reasons(span)
        calling = any(word in reason for reason in reasons for word in _CALLING)
        shown = said is not None and (
            not calling or any(part.kind == "call" for one in said for part in one.parts)
        )
        if shown or (reasons and not calling) or span.status == 2:
            continue
        # If the same instrumentation recorded the tools that ran next, or while the model streamed, these are all calls.
        until = models[number + 1].span.start_ns if number + 1 < len(models) else None
        begun = [tool.span.start_ns for tool in tools if tool.span.start_ns >= span.start_ns]
        if not (calling and any(until is None or start <= until for start in begun)):
            text = "the calls that a model made" if calling else _UNKNOWN_OUTCOME
            gaps.append(Gap(text, frozenset(_model_ids(span))))
    reply = reply_of(messages)
    # Gemini has no ids; ADK makes some up for a model's span, and others for those of the tools.
    calls = [
        msgspec.structs.replace(call, id=None)
        if call.id and call.id.rstrip("0123456789") == f"{call.name}_"
        else call
        for call in reply.tool_calls
    ]
    return tuple(calls), [*gaps, *map(Gap, reply.evidence.unread)]


def _is_repeated(part: Part, around: set[str], shown_in: Mapping[str, set[str]]) -> bool:
    """Whether a part is a call that a span around this one has shown."""
    return (
        part.kind == "call"
        and part.call is not None
        and part.call.id is not None
        and not around.isdisjoint(shown_in.get(part.call.id, ()))
    )


def _started(message: Message, span: Span, zero_ns: int) -> Message:
    """A model's message; its calls start when the model has ended."""
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
    """The new results in a model's input: those after its own last message."""
    last = max((number for number, message in enumerate(got) if message.role == "assistant"), default=-1)
    new = [part for message in got[last + 1 :] for part in message.parts if part.kind == "result"]
    named = [part for part in new if part.call is not None and (part.call.id or part.call.name != UNNAMED)]
    return [Message("tool", tuple(named))] if named else []


def _reasons(span: Span) -> list[str]:
    for name in known_conventions().finished:
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
            # The AI SDK separates calls and text.
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
    """Add attributes in events and log records to the span."""
    for event in span.events:
        for name, value in event.attributes.items():
            if name.startswith("gen_ai."):
                span.attributes.setdefault(name, value)


def _event_message(event: Event) -> dict[str, Any]:
    """The message in an event or log record of the older convention."""
    body = as_dict(event.body) or event.attributes
    held = as_dict(body.get("message")) or body
    role = _EVENT_ROLES.get(event.name, "assistant")
    message = {"content": None, **held, "role": role}
    return {**message, "tool_call_id": held.get("id")} if role == "tool" else message


def _messages(value: Any, role: str) -> list[Message]:
    """The messages in a model's input or output, in any format of an instrumentation."""
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
    reply = read_document(value, NO_CONTEXT)
    if reply is None or reply.failure is not None:
        return []
    parts = [Part("call", None, call) for call in reply.tool_calls]
    return [Message("assistant", (*parts, Part("text", reply.text)))]


def _unnested(value: Any) -> Any:
    """LangChain has a list for each prompt, and a message within each generation."""
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]
    return (
        [as_dict(item).get("message", item) for item in as_list(value)] if isinstance(value, list) else value
    )


def _outermost(tools: Sequence[KnownSpan], tree: _SpanTree) -> list[KnownSpan]:
    """Spans of tools, without those inside another span of the same tool (e.g. an MCP client's inside the agent's)."""
    names = {known.span.span_id: _name(known) for known in tools}
    return [
        known
        for known in tools
        if not any(names.get(outer) == names[known.span.span_id] for outer in tree.ancestors(known.span))
    ]


def _name(known: KnownSpan) -> str:
    return (
        (_text(known, "name") or known.span.name or UNNAMED).removesuffix(".__call__").removesuffix(".acall")
    )


def _text(known: KnownSpan, part: Literal["name", "id"]) -> str | None:
    found = (known.span.attributes.get(name) for row in known.rows for name in getattr(row, part))
    return next((as_str(text) for text in found if text), None)


def _tool_call(known: KnownSpan, zero_ns: int) -> ToolCall:
    span, given, brought = known.span, known.first("input"), known.first("output")
    identity = _text(known, "id")
    for event in span.events:
        # Strands has the arguments, the result and the id in events.
        if event.name in ("gen_ai.tool.message", "gen_ai.choice"):
            identity = identity or as_str(event.attributes.get("id"))
        if event.name == "gen_ai.tool.message" and given is None:
            given = _decoded(event.attributes.get("content"))
        elif event.name == "gen_ai.choice" and brought is None:
            brought = _decoded(event.attributes.get("message"))
    if isinstance(given, dict) and "input_str" in given:
        # Traceloop records the input of LangChain's callback, which contains the arguments.
        identity = identity or as_str(as_dict(given.get("kwargs")).get("tool_call_id"))
        given = given.get("inputs")
    elif isinstance(given, dict) and isinstance(given.get("kwargs"), dict) and not given.get("args"):
        # A decorator's record of how the tool's function was called.
        given = given["kwargs"]
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
            or error
            or span.status_message
            or str(span.attributes.get("error.type", "the call failed"))
        )
    return ToolCall(
        name=_name(known),
        id=identity,
        arguments=arguments,
        arguments_text=arguments_text,
        result=None if result is None else result.result,
        # A tool that failed has brought its error.
        result_seen=result is not None or error is not None,
        error=error,
        start_ms=_after(zero_ns, span.start_ns),
        duration_ms=round(max(0, span.end_ns - span.start_ns) / 1e6, 3),
    )


def _from_adk(result: Any) -> Any:
    held = as_dict(result).get("response", result)
    return held["result"] if as_dict(held).keys() == {"result"} else held


def _tool_message(value: Any) -> dict[str, Any] | None:
    """The tool message that LangChain's instrumentations wrap once or twice; None if it is not one."""
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
    """The documents of a retriever, from the attribute that has their ids if there are several."""
    best: Sequence[Source] = ()
    for _, value in known.values("output"):
        for inner in ("documents", "output"):
            value = value.get(inner, value) if isinstance(value, dict) else value
        found = read_sources(value) if isinstance(value, list) else ()
        if found and (not best or (best[0].id is None and found[0].id is not None)):
            best = found
    return best


def _usage(models: Sequence[_ModelSpan], tree: _SpanTree) -> Usage | None:
    """The usage of an instrumentation's model calls, without spans inside others that have it; None if it is not whole."""
    if models and new_results(models[0].input):
        # The response that asked for these calls has no span.
        return None
    counted: set[str] = set()
    total: Usage | None = None
    for span, _, _ in models:
        if not counted.isdisjoint(tree.ancestors(span)):
            continue
        given: dict[str, Any] = {}
        for field, names in known_conventions().usage.items():
            value = next((value for name in names if (value := value_at(span, name)) is not None), None)
            given |= value if isinstance(value, dict) else {} if value is None else {field: value}
        read = read_usage(given) if given else None
        if read is not None:
            counted.add(span.span_id)
            total = add_usage(total, read)
    return total


# Spans of a chatbot in this process, if it uses OpenTelemetry's SDK: nothing is imported that it has not imported itself, and
# no provider is set.


_SDK = "opentelemetry.sdk.trace"


class Collected:
    """The spans of one question."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        # Number of spans that have started and not ended.
        self.running = 0

    def observation(self) -> Observation:
        """The calls in the spans."""
        zero = min((span.start_ns for span in self.spans), default=0)
        gaps = [Gap(f"{count(self.running, 'span has', 'spans have')} not ended")] if self.running else []
        return read_trace(self.spans, zero_ns=zero, gaps=gaps).observation


# Trace id → its spans.
_COLLECTING: dict[int, Collected] = {}
# Providers with our processor; they exist as long as the process.
_WATCHED: list[Any] = []


@contextmanager
def in_process_spans(traceparent: str | None) -> Iterator[Collected]:
    """Set the question's trace as the current one, and collect its spans."""
    collected = Collected()
    ids = read_traceparent(traceparent)
    if ids is None or _SDK not in sys.modules:
        yield collected
        return
    context: Any = sys.modules["opentelemetry.context"]
    trace: Any = sys.modules["opentelemetry.trace"]
    _watch(trace.get_tracer_provider())
    trace_id = int(ids[0], 16)
    caller = trace.SpanContext(trace_id, int(ids[1], 16), is_remote=True, trace_flags=trace.TraceFlags(1))
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(caller)))
    _COLLECTING[trace_id] = collected
    try:
        yield collected
    finally:
        del _COLLECTING[trace_id]
        context.detach(token)


def _watch(provider: Any) -> None:
    """Add our processor to a provider of the SDK."""
    if any(one is provider for one in _WATCHED) or not hasattr(provider, "add_span_processor"):
        return
    _WATCHED.append(provider)
    sdk: Any = sys.modules[_SDK]

    class Watcher(sdk.SpanProcessor):  # type: ignore[misc]  # known at run time only
        """Collects the spans of running questions."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.running += 1

        def on_end(self, span: Any) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.running -= 1
                collected.spans.append(_read(span))

    provider.add_span_processor(Watcher())


def _read(span: Any) -> Span:
    own, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
    return Span(
        trace_id=f"{own.trace_id:032x}",
        span_id=f"{own.span_id:016x}",
        parent_id="" if parent is None else f"{parent.span_id:016x}",
        name=span.name,
        scope="" if scope is None else scope.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        attributes=_plain(span.attributes),
        events=[Event(event.name, _plain(event.attributes)) for event in span.events],
        status=span.status.status_code.value,
        status_message=span.status.description or "",
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()
    }
