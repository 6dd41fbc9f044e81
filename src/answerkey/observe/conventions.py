"""The conventions of instrumentations: which attributes say that a span is a call of a model, of a tool or a retriever.

A new instrumentation is a row. Several rows may fit a span; what the first does not find, the next may.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from answerkey.observe.span import Span
from answerkey.transcripts.plain_json import decode_json

SpanKind = Literal["model", "tool", "retrieval"]
Part = Literal["name", "id", "input", "output"]


class Convention(NamedTuple):
    """Where one convention has what."""

    # The attribute that tells, and what its values say that a span is; "" stands for any value.
    mark: str
    kinds: dict[str, SpanKind]
    # What went in: a tool's arguments, or the messages that a model got.
    input: tuple[str, ...] = ()
    # What came out: a tool's result, the messages that a model gave, or documents.
    output: tuple[str, ...] = ()
    # Of a tool; without an attribute for it, the span is called after the tool.
    name: tuple[str, ...] = ()
    id: tuple[str, ...] = ()


_OPERATION = "gen_ai.operation.name"

CONVENTIONS: tuple[Convention, ...] = (
    # OpenTelemetry's own, for generative AI.
    Convention(
        _OPERATION,
        {"execute_tool": "tool"},
        # LangSmith has a tool's input and output under the names of a model's.
        input=("gen_ai.tool.call.arguments", "gen_ai.prompt"),
        output=("gen_ai.tool.call.result", "gen_ai.completion"),
        name=("gen_ai.tool.name",),
        id=("gen_ai.tool.call.id",),
    ),
    Convention(
        _OPERATION,
        dict.fromkeys(("chat", "generate_content", "text_completion", "completion"), "model"),
        # The older names are JSON or one attribute for each field; Traceloop's old ones too.
        input=("gen_ai.input.messages", "gen_ai.prompt"),
        output=("gen_ai.output.messages", "gen_ai.completion"),
    ),
    Convention(
        _OPERATION,
        {"retrieval": "retrieval", "vector_db_retrieve": "retrieval"},
        output=("gen_ai.retrieval.documents", "traceloop.entity.output"),
    ),
    # MCP.
    Convention(
        "mcp.method.name",
        {"tools/call": "tool"},
        input=("gen_ai.tool.call.arguments", "mcp.request.argument.arguments"),
        output=("gen_ai.tool.call.result",),
        name=("gen_ai.tool.name", "mcp.tool.name", "mcp.request.argument.name"),
        id=("gen_ai.tool.call.id",),
    ),
    # OpenInference; a document's id is often in the output only.
    Convention(
        "openinference.span.kind",
        {"TOOL": "tool", "RETRIEVER": "retrieval"},
        input=("input.value",),
        output=("retrieval.documents", "output.value"),
        name=("tool.name",),
        id=("tool_call.id", "tool.id"),
    ),
    Convention(
        "openinference.span.kind",
        {"LLM": "model"},
        input=("llm.input_messages",),
        output=("llm.output_messages", "output.value"),
    ),
    # Traceloop.
    Convention(
        "traceloop.span.kind",
        {"tool": "tool"},
        input=("traceloop.entity.input",),
        output=("traceloop.entity.output",),
        name=("traceloop.entity.name",),
    ),
    Convention(
        "llm.request.type",
        {"chat": "model", "completion": "model"},
        input=("gen_ai.prompt",),
        output=("gen_ai.completion",),
    ),
    # Langfuse.
    Convention(
        "langfuse.observation.type",
        {"tool": "tool", "generation": "model", "retriever": "retrieval"},
        input=("langfuse.observation.input",),
        output=("langfuse.observation.output",),
    ),
    # LangSmith.
    Convention(
        "langsmith.span.kind",
        {"tool": "tool", "llm": "model", "retriever": "retrieval"},
        input=("gen_ai.prompt",),
        output=("gen_ai.completion",),
        name=("gen_ai.tool.name", "langsmith.trace.name"),
        id=("gen_ai.tool.call.id",),
    ),
    # Vercel's AI SDK.
    Convention(
        "ai.toolCall.name",
        {"": "tool"},
        input=("ai.toolCall.args", "ai.toolCall.input"),
        output=("ai.toolCall.result", "ai.toolCall.output"),
        name=("ai.toolCall.name",),
        id=("ai.toolCall.id",),
    ),
    Convention(
        "ai.operationId",
        {"ai.generateText.doGenerate": "model", "ai.streamText.doStream": "model"},
        input=("ai.prompt.messages",),
        output=("ai.response.toolCalls", "ai.response.text"),
    ),
    # MLflow.
    Convention(
        "mlflow.spanType",
        {"TOOL": "tool", "CHAT_MODEL": "model", "LLM": "model", "RETRIEVER": "retrieval"},
        input=("mlflow.spanInputs",),
        output=("mlflow.spanOutputs",),
    ),
)

# Why a model stopped; it tells of calls even where they are not shown.
FINISHED = (
    *("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason"),
    *("gen_ai.completion.0.finish_reason", "gen_ai.response.finish_reason"),
)
# What a model used: the names of the counts, or of an object that has them.
USAGE = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.inputTokens"),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        "ai.usage.outputTokens",
    ),
    "input": ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage"),
}  # fmt: skip

# What OpenInference puts around each item of a list.
_WRAPPERS = ("message", "tool_call", "message_content", "document")


class KnownSpan(NamedTuple):
    """A span whose kind is known, and where it may have what."""

    span: Span
    kind: SpanKind
    rows: list[Convention]

    def values(self, part: Part) -> Iterator[tuple[str, Any]]:
        """What the span holds of something: the attribute and its value, in the order of the rows."""
        for name in dict.fromkeys(name for row in self.rows for name in getattr(row, part)):
            value = value_at(self.span, name)
            if value is not None:
                yield name, value

    def first(self, part: Part) -> Any:
        """The first of them; None if there is none."""
        return next((value for _, value in self.values(part)), None)


def known_span(span: Span) -> KnownSpan | None:
    """The span with the rows that fit it, all of one kind; None if it is another step."""
    found: list[tuple[SpanKind, Convention]] = []
    for row in CONVENTIONS:
        given = span.attributes.get(row.mark)
        if isinstance(given, str):
            # MLflow writes every attribute as JSON.
            kind = row.kinds.get(given.strip('"')) or row.kinds.get("")
            found += [(kind, row)] if kind is not None else []
    if not found:
        return None
    # A retriever that LangSmith calls an embedding, or a tool that is one too: what is more certain goes first.
    kind = found[0][0]
    return KnownSpan(span, kind, [row for one, row in found if one == kind])


def value_at(span: Span, name: str) -> Any:
    """What an attribute holds: its JSON if it is some, or what attributes that begin with its name and a dot make."""
    value = span.attributes.get(name)
    # A bare number or word may be text just as well, and stays it.
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        try:
            return decode_json(value)
        except (ValueError, RecursionError):
            return value
    return _nested(span.attributes, f"{name}.") if value is None else value


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
