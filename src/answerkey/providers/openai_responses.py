"""OpenAI's Responses API, asked without state on the server: every step is sent all items."""

from collections.abc import Sequence

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ModelApi, Prompt, Taken, result_text, with_parameters
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.json_shapes import as_dicts, as_str

_OURS = ("function_call", "custom_tool_call")


def _body(prompt: Prompt) -> JsonObject:
    body: JsonObject = {"model": prompt.model, "input": [*prompt.messages]}
    if prompt.system:
        body["instructions"] = prompt.system
    if prompt.tools:
        # Strict, its default, takes few schemas.
        body["tools"] = [
            {"type": "function", **msgspec.structs.asdict(tool), "strict": False} for tool in prompt.tools
        ]
    if prompt.stream:
        body["stream"] = True
    if prompt.schema is not None:
        named: JsonObject = {"name": "answer", "strict": True, "schema": prompt.schema}
        body["text"] = {"format": {"type": "json_schema", **named}}
    elif prompt.as_json:
        body["text"] = {"format": {"type": "json_object"}}
    return with_parameters(body, prompt.parameters, {"max_tokens": ("max_output_tokens",)})


def _taken(payload: JsonObject) -> Taken:
    items = as_dicts(payload.get("output"))
    for place, item in enumerate(items):
        if item.get("type") in _OURS and not as_str(item.get("call_id")):
            items[place] = {**item, "call_id": as_str(item.get("id")) or f"call_{place}"}
    return tuple(read_call(item) for item in items if item.get("type") in _OURS), tuple(items)


def _results(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple(
        {"type": "function_call_output", "call_id": call.id, "output": result_text(call)} for call in calls
    )


OPENAI_RESPONSES = ModelApi(
    name="OpenAI Responses",
    base_url="https://api.openai.com/v1",
    base_url_env="OPENAI_BASE_URL",
    key_env=("OPENAI_API_KEY",),
    path=lambda model, stream: "/responses",
    body=_body,
    answers=lambda payload: isinstance(payload.get("output"), list),
    taken=_taken,
    results=_results,
    speaks=lambda event: event.get("type") == "response.output_text.delta",
)
