"""OpenAI Responses: `output` items, with the calls of functions, MCP servers and hosted tools."""

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply, Source, ToolCall
from answerkey.transcripts.conversation import Message, ToolResult, error_in_result, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.sources import read_sources
from answerkey.transcripts.fields.tool_calls import error_text, read_arguments
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str

__all__ = ["detect", "detect_items", "read", "read_items"]

# Hosted tools: the item's type is the tool's name with "_call" after it.
_HOSTED = frozenset(
    {
        "file_search_call",
        "web_search_call",
        "code_interpreter_call",
        "computer_call",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "tool_search_call",
        "image_generation_call",
    },
)
_ITEMS = _HOSTED | {
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "mcp_call",
    "reasoning",
}


def detect(payload: JsonObject) -> bool:
    """`object: response`, or `output` as a list of typed items."""
    output = payload.get("output")
    return isinstance(output, list) and (payload.get("object") == "response" or detect_items(output))


def detect_items(items: list[Json]) -> bool:
    """Whether a list is one of response items."""
    kinds = {item.get("type") for item in as_dicts(items) if isinstance(item.get("type"), str)}
    return bool(kinds & _ITEMS) or any(
        item.get("type") == "message"
        and any(part.get("type") == "output_text" for part in as_dicts(item.get("content")))
        for item in as_dicts(items)
    )


def read(payload: JsonObject) -> Reply:
    """The whole response."""
    message = read_items(as_list(payload["output"]))
    failure = read_failure(payload.get("error"))
    if failure is None and payload.get("status") in ("failed", "incomplete") and message.text is None:
        reason = as_dict(payload.get("incomplete_details")).get("reason")
        failure = Failure(
            "exception", f"the response is {payload['status']}{f': {reason}' if as_str(reason) else ''}"
        )
    return response_of(
        Message(
            role="assistant",
            text=message.text,
            calls=message.calls,
            results=message.results,
            sources=message.sources,
            usage=read_usage(payload.get("usage")),
            id=as_str(payload.get("id")),
        ),
        failure=failure,
    )


def read_items(items: list[Json]) -> Message:
    """A list of items as one message: what it says last, and every call in order."""
    said: list[tuple[str | None, str]] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    sources: list[Source] = []
    for item in as_dicts(items):
        kind = item.get("type")
        if kind == "message" and item.get("role", "assistant") == "assistant":
            text = "".join(
                str(part.get("text", part.get("refusal", "")))
                for part in as_dicts(item.get("content"))
                if part.get("type") in ("output_text", "refusal", "text")
            )
            said.append((as_str(item.get("phase")), text))
            sources += _citations(item)
        elif kind in ("function_call", "custom_tool_call", "mcp_call"):
            calls.append(_call(item))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = item.get("output")
            result = output if isinstance(output, str) else read_text(output)
            results.append(
                ToolResult(call_id=as_str(item.get("call_id")), result=result, error=error_in_result(result)),
            )
        elif isinstance(kind, str) and kind in _HOSTED:
            calls.append(_hosted(kind, item))
            sources += read_sources(item.get("results"))
            sources += read_sources(as_dict(item.get("action")).get("sources"))
    # Commentary is not the answer where the model says which is which.
    final = [text for phase, text in said if phase == "final_answer"] or [text for _, text in said]
    return Message(
        role="assistant",
        text="".join(final) if final else None,
        calls=tuple(calls),
        results=tuple(results),
        sources=tuple(sources),
    )


def _call(item: JsonObject) -> ToolCall:
    arguments, text = read_arguments(item.get("arguments", item.get("input")))
    is_mcp = item.get("type") == "mcp_call"
    return ToolCall(
        name=as_str(item.get("name")) or "(unnamed)",
        id=as_str(item.get("call_id")) or as_str(item.get("id")),
        arguments=arguments,
        arguments_text=text,
        result=item.get("output") if is_mcp else None,
        result_seen=is_mcp and item.get("output") is not None,
        error=error_text(item.get("error")),
    )


def _hosted(kind: str, item: JsonObject) -> ToolCall:
    action = as_dict(item.get("action"))
    arguments = {
        name: part
        for name, part in {**action, "queries": item.get("queries"), "code": item.get("code")}.items()
        if part is not None and name != "sources"
    }
    return ToolCall(
        name=kind.removesuffix("_call"),
        id=as_str(item.get("id")),
        arguments=arguments,
        result=item.get("results"),
        result_seen=item.get("results") is not None,
        error="the call failed" if item.get("status") == "failed" else None,
    )


def _citations(item: JsonObject) -> list[Source]:
    notes = [note for part in as_dicts(item.get("content")) for note in as_dicts(part.get("annotations"))]
    return [
        Source(
            id=as_str(note.get("file_id")) or as_str(note.get("url")),
            uri=as_str(note.get("url")),
            title=as_str(note.get("filename")) or as_str(note.get("title")),
            cited=True,
        )
        for note in notes
    ]
