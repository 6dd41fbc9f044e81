"""OpenAI's Chat Completions, which most servers of open models speak as well."""

from collections.abc import Sequence

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import (
    ModelApi,
    Prompt,
    SaidToken,
    Taken,
    ToolSpec,
    result_text,
    said_token,
    with_parameters,
)
from answerkey.transcripts.fields.content_text import json_text
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at

# What servers that think aloud want back while a turn goes on.
_THOUGHTS = ("reasoning_content", "reasoning_details")


def function_tool(tool: ToolSpec) -> JsonObject:
    """A tool in the form that Chat Completions and Ollama share."""
    return {"type": "function", "function": msgspec.structs.asdict(tool)}


def tokens_told(listed: Json) -> tuple[SaidToken, ...]:
    """Tokens in the form that Chat Completions and Ollama share."""
    return tuple(
        said_token(one, as_dicts(one.get("top_logprobs")), logarithm="logprob") for one in as_dicts(listed)
    )


def _body(prompt: Prompt) -> JsonObject:
    system: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: JsonObject = {"model": prompt.model, "messages": [*system, *prompt.messages]}
    if prompt.tools:
        body["tools"] = [function_tool(tool) for tool in prompt.tools]
    if prompt.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if prompt.schema is not None:
        named: JsonObject = {"name": "answer", "strict": True, "schema": prompt.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif prompt.as_json:
        body["response_format"] = {"type": "json_object"}
    if prompt.likeliest is not None:
        body |= {"logprobs": True, "top_logprobs": prompt.likeliest}
    return with_parameters(body, prompt.parameters, {})


def _taken(payload: JsonObject) -> Taken:
    message = as_dict(at(payload, "choices", 0, "message"))
    calls: list[ToolCall] = []
    sent_back: list[Json] = []
    for place, item in enumerate(as_dicts(message.get("tool_calls"))):
        # A result must name its call, and not every server gives it an id.
        known: JsonObject = {**item, "id": as_str(item.get("id")) or f"call_{place}"}
        known.pop("index", None)
        call = read_call(known)
        if "custom" not in item:
            given = as_dict(item.get("function")).get("arguments")
            arguments = given if isinstance(given, str) else json_text(given or {})
            known |= {"type": "function", "function": {"name": call.name, "arguments": arguments}}
        calls.append(call)
        sent_back.append(known)
    kept: JsonObject = {"role": "assistant", "content": message.get("content")}
    if sent_back:
        kept["tool_calls"] = sent_back
        kept |= {name: message[name] for name in _THOUGHTS if message.get(name)}
    elif kept["content"] is None:
        kept["content"] = as_str(message.get("refusal")) or ""
    return tuple(calls), (kept,)


def _results(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple({"role": "tool", "tool_call_id": call.id, "content": result_text(call)} for call in calls)


OPENAI_CHAT = ModelApi(
    name="OpenAI chat",
    base_url="https://api.openai.com/v1",
    base_url_env="OPENAI_BASE_URL",
    key_env=("OPENAI_API_KEY",),
    path=lambda model, stream: "/chat/completions",
    body=_body,
    answers=lambda payload: bool(as_dicts(payload.get("choices"))),
    taken=_taken,
    results=_results,
    speaks=lambda event: bool(as_str(at(event, "choices", 0, "delta", "content"))),
    tokens=lambda payload: tokens_told(at(payload, "choices", 0, "logprobs", "content")),
)
