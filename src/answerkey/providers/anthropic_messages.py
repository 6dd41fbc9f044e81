"""Anthropic's Messages API."""

from collections.abc import Sequence

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ModelApi, Prompt, Taken, result_text, with_parameters
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str

_VERSION = "2023-06-01"
# The API wants a limit in every request; all models of the last years can say so much.
_MAX_TOKENS = 8192
_WITHOUT = frozenset(("seed",))


def _body(prompt: Prompt) -> JsonObject:
    body: JsonObject = {
        "model": prompt.model,
        "max_tokens": _MAX_TOKENS,
        "messages": [*prompt.messages],
    }
    if prompt.system:
        body["system"] = prompt.system
    if prompt.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in prompt.tools
        ]
    if prompt.stream:
        body["stream"] = True
    if prompt.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
    given = {name: value for name, value in prompt.parameters.items() if name not in _WITHOUT}
    return with_parameters(body, given, {"stop": ("stop_sequences",)})


def _taken(payload: JsonObject) -> Taken:
    calls: list[ToolCall] = []
    blocks: list[Json] = []
    for place, block in enumerate(as_dicts(payload.get("content"))):
        if block.get("type") == "tool_use":
            call = read_call({**block, "id": as_str(block.get("id")) or f"call_{place}"})
            calls.append(call)
            block = {**block, "id": call.id, "name": call.name, "input": as_dict(block.get("input"))}
        # It refuses back a text without a word in it.
        if block.get("type") != "text" or as_str(block.get("text")):
            blocks.append(block)
    return tuple(calls), ({"role": "assistant", "content": blocks},) if blocks else ()


def _results(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    brought: list[Json] = [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": call.error if call.error is not None else result_text(call),
            "is_error": call.error is not None,
        }
        for call in calls
    ]
    return ({"role": "user", "content": brought},)


ANTHROPIC = ModelApi(
    name="Anthropic",
    base_url="https://api.anthropic.com",
    base_url_env="ANTHROPIC_BASE_URL",
    key_env=("ANTHROPIC_API_KEY",),
    path=lambda model, stream: "/v1/messages",
    headers=lambda key: {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {}),
    body=_body,
    answers=lambda payload: isinstance(payload.get("content"), list),
    taken=_taken,
    results=_results,
    speaks=lambda event: bool(as_str(as_dict(event.get("delta")).get("text"))),
    without=_WITHOUT,
)
