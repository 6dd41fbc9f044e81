"""The conventions of instrumentations: which attributes say that a span is a call of a model, of a tool or a retriever.

A new instrumentation is a row. Several rows may fit a span; what the first does not find, the next may.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from answerkey.observe.span import Span
from answerkey.transcripts.plain_json import decode_json

__all__ = [
    "CONVENTIONS",
    "FINISHED",
    "USAGE",
    "Convention",
    "SpanKind",
    "conventions_of",
    "nested",
    "value_at",
]

SpanKind = Literal["model", "tool", "retrieval"]


class Convention(NamedTuple):
    """Where one convention has what."""

    # Whose it is.
    owner: str
    kind: SpanKind
    # The attribute that tells, and the values by which it does; none: any.
    mark: str
    values: frozenset[str] = frozenset()
    # Of a tool; without an attribute for it, the span is called after the tool.
    name: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    # What went in: a tool's arguments, or the messages that a model got.
    input: tuple[str, ...] = ()
    # What came out: a tool's result, the messages that a model gave, or documents.
    output: tuple[str, ...] = ()


_GEN_AI = "OpenTelemetry GenAI"
_OPERATION = "gen_ai.operation.name"

CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        *(_GEN_AI, "tool", _OPERATION, frozenset({"execute_tool"})),
        name=("gen_ai.tool.name",),
        id=("gen_ai.tool.call.id",),
        # LangSmith has a tool's input and output under the names of a model's.
        input=("gen_ai.tool.call.arguments", "gen_ai.prompt"),
        output=("gen_ai.tool.call.result", "gen_ai.completion"),
    ),
    Convention(
        *(
            _GEN_AI,
            "model",
            _OPERATION,
            frozenset({"chat", "generate_content", "text_completion", "completion"}),
        ),
        # The older names are JSON or one attribute for each field; Traceloop's old ones too.
        input=("gen_ai.input.messages", "gen_ai.prompt"),
        output=("gen_ai.output.messages", "gen_ai.completion"),
    ),
    Convention(
        *(_GEN_AI, "retrieval", _OPERATION, frozenset({"retrieval", "vector_db_retrieve"})),
        output=("gen_ai.retrieval.documents", "traceloop.entity.output"),
    ),
    Convention(
        *("MCP", "tool", "mcp.method.name", frozenset({"tools/call"})),
        name=("gen_ai.tool.name", "mcp.tool.name", "mcp.request.argument.name"),
        id=("gen_ai.tool.call.id",),
        input=("gen_ai.tool.call.arguments", "mcp.request.argument.arguments"),
        output=("gen_ai.tool.call.result",),
    ),
    Convention(
        *("OpenInference", "tool", "openinference.span.kind", frozenset({"TOOL"})),
        name=("tool.name",),
        id=("tool_call.id", "tool.id"),
        input=("input.value",),
        output=("output.value",),
    ),
    Convention(
        *("OpenInference", "model", "openinference.span.kind", frozenset({"LLM"})),
        input=("llm.input_messages",),
        output=("llm.output_messages", "output.value"),
    ),
    Convention(
        *("OpenInference", "retrieval", "openinference.span.kind", frozenset({"RETRIEVER"})),
        # The id is often in the output only.
        output=("retrieval.documents", "output.value"),
    ),
    Convention(
        *("Traceloop", "tool", "traceloop.span.kind", frozenset({"tool"})),
        name=("traceloop.entity.name",),
        input=("traceloop.entity.input",),
        output=("traceloop.entity.output",),
    ),
    Convention(
        *("Traceloop", "model", "llm.request.type", frozenset({"chat", "completion"})),
        input=("gen_ai.prompt",),
        output=("gen_ai.completion",),
    ),
    Convention(
        *("Langfuse", "tool", "langfuse.observation.type", frozenset({"tool"})),
        input=("langfuse.observation.input",),
        output=("langfuse.observation.output",),
    ),
    Convention(
        *("Langfuse", "model", "langfuse.observation.type", frozenset({"generation"})),
        input=("langfuse.observation.input",),
        output=("langfuse.observation.output",),
    ),
    Convention(
        *("Langfuse", "retrieval", "langfuse.observation.type", frozenset({"retriever"})),
        output=("langfuse.observation.output",),
    ),
    Convention(
        *("LangSmith", "tool", "langsmith.span.kind", frozenset({"tool"})),
        name=("gen_ai.tool.name", "langsmith.trace.name"),
        id=("gen_ai.tool.call.id",),
        input=("gen_ai.prompt",),
        output=("gen_ai.completion",),
    ),
    Convention(
        *("LangSmith", "model", "langsmith.span.kind", frozenset({"llm"})),
        input=("gen_ai.prompt",),
        output=("gen_ai.completion",),
    ),
    Convention(
        *("LangSmith", "retrieval", "langsmith.span.kind", frozenset({"retriever"})),
        output=("gen_ai.completion",),
    ),
    Convention(
        *("Vercel AI SDK", "tool", "ai.toolCall.name"),
        name=("ai.toolCall.name",),
        id=("ai.toolCall.id",),
        input=("ai.toolCall.args", "ai.toolCall.input"),
        output=("ai.toolCall.result", "ai.toolCall.output"),
    ),
    Convention(
        *("Vercel AI SDK", "model", "ai.operationId"),
        frozenset({"ai.generateText.doGenerate", "ai.streamText.doStream"}),
        input=("ai.prompt.messages",),
        output=("ai.response.toolCalls", "ai.response.text"),
    ),
    Convention(
        *("MLflow", "tool", "mlflow.spanType", frozenset({"TOOL"})),
        input=("mlflow.spanInputs",),
        output=("mlflow.spanOutputs",),
    ),
    Convention(
        *("MLflow", "model", "mlflow.spanType", frozenset({"CHAT_MODEL", "LLM"})),
        input=("mlflow.spanInputs",),
        output=("mlflow.spanOutputs",),
    ),
    Convention(
        *("MLflow", "retrieval", "mlflow.spanType", frozenset({"RETRIEVER"})), output=("mlflow.spanOutputs",)
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

_BY_MARK: dict[str, list[Convention]] = {}
for _row in CONVENTIONS:
    _BY_MARK.setdefault(_row.mark, []).append(_row)
# What OpenInference puts around each item of a list.
_WRAPPERS = ("message", "tool_call", "message_content", "document")


def conventions_of(span: Span) -> list[Convention]:
    """The rows that fit a span, all of one kind; none if it is another step."""
    found = []
    for mark, rows in _BY_MARK.items():
        given = span.attributes.get(mark)
        if isinstance(given, str):
            # MLflow writes every attribute as JSON.
            plain = given.strip('"')
            found += [row for row in rows if not row.values or plain in row.values]
    # A retriever that LangSmith calls an embedding, or a tool that is one too: what is more certain goes first.
    return [row for row in found if row.kind == found[0].kind]


def value_at(span: Span, name: str) -> Any:
    """What an attribute holds: its JSON if it is some, or what attributes that begin with its name and a dot make."""
    value = span.attributes.get(name)
    # A bare number or word may be text just as well, and stays it.
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        try:
            return decode_json(value)
        except (ValueError, RecursionError):
            return value
    return nested(span.attributes, f"{name}.") if value is None else value


def nested(attributes: Mapping[str, Any], prefix: str) -> Any:
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
    return dict(_renamed(value))


def _renamed(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        yield ("content" if key == "contents" else key), _listed(item)
