"""OpenAI Chat Completions: responses, and the messages of its transcripts (which Ollama and many others share)."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply, Source
from answerkey.transcripts.conversation import Message, Role, ToolResult, error_in_result, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.json_numbers import read_duration
from answerkey.transcripts.fields.tool_calls import error_text, read_call
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str

__all__ = ["detect", "read", "read_message"]

_ROLES: dict[str, Role] = {
    "user": "user",
    "system": "system",
    "tool": "tool",
    "developer": "system",
    "function": "tool",
    "model": "assistant",
    "bot": "assistant",
    "human": "user",
    "ai": "assistant",
}


def detect(payload: JsonObject) -> bool:
    """`choices` with a message (or, of the older API, a text)."""
    choices = payload.get("choices")
    return isinstance(choices, list) and (
        payload.get("object") == "chat.completion" or bool(as_dicts(choices))
    )


def read(payload: JsonObject) -> Reply:
    """The first choice."""
    choice = next(iter(as_dicts(payload.get("choices"))), {})
    given = as_dict(choice.get("message"))
    message = read_message({"role": "assistant", "content": choice.get("text"), **given})
    failure = None
    if choice.get("finish_reason") == "content_filter" and not message.text:
        failure = Failure("exception", "the provider's content filter held the answer back")
    return response_of(
        Message(
            role="assistant",
            text=message.text,
            calls=message.calls,
            sources=message.sources,
            usage=read_usage(payload.get("usage")),
            id=as_str(payload.get("id")),
        ),
        failure=failure,
        tools_observed=isinstance(given.get("tool_calls"), list),
    )


def read_message(item: JsonObject) -> Message:
    """One message of a transcript."""
    role = _ROLES.get(str(item.get("role")), "assistant")
    text = read_text(item.get("content"))
    if role == "tool":
        return Message(role="tool", results=(_result(item, text),))
    if text is None:
        text = as_str(item.get("refusal"))
    calls = [read_call(call) for call in as_list(item.get("tool_calls"))]
    if isinstance(item.get("function_call"), dict):
        calls.append(read_call(item["function_call"]))
    return Message(
        role=role,
        text=text,
        calls=tuple(calls) if role == "assistant" else (),
        sources=_citations(item),
        usage=read_usage(item.get("usage")),
        id=as_str(item.get("id")),
    )


def _result(item: JsonObject, text: str | None) -> ToolResult:
    # Inspect says the error and the function, Ollama the tool's name; OpenAI has neither.
    name = next((name for key in ("name", "tool_name", "function") if (name := as_str(item.get(key)))), None)
    return ToolResult(
        call_id=as_str(item.get("tool_call_id")),
        name=name,
        result=text,
        error=error_text(item.get("error")) or error_in_result(text),
        duration_ms=read_duration(item.get("duration_ms")),
    )


def _citations(item: JsonObject) -> tuple[Source, ...]:
    cited = [as_dict(note.get("url_citation")) for note in as_dicts(item.get("annotations"))]
    uris = [(uri, note) for note in cited if (uri := as_str(note.get("url")))]
    return tuple(
        Source(id=uri, uri=uri, title=as_str(note.get("title")), rank=rank, cited=True)
        for rank, (uri, note) in enumerate(uris, start=1)
    )
