"""Ollama's own API (/api/chat)."""

from collections.abc import Sequence

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ModelApi, Prompt, Taken, result_text, with_parameters
from answerkey.providers.openai_chat import function_tool, tokens_told
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at

_PLACES = {name: ("options", name) for name in ("temperature", "seed", "top_p", "stop")}
_PLACES["max_tokens"] = ("options", "num_predict")


def _body(prompt: Prompt) -> JsonObject:
    system: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    # It streams unless it is told not to.
    messages: list[Json] = [*system, *prompt.messages]
    body: JsonObject = {"model": prompt.model, "messages": messages, "stream": prompt.stream}
    if prompt.tools:
        body["tools"] = [function_tool(tool) for tool in prompt.tools]
    if prompt.schema is not None:
        body["format"] = prompt.schema
    elif prompt.as_json:
        body["format"] = "json"
    if prompt.likeliest is not None:
        body |= {"logprobs": True, "top_logprobs": prompt.likeliest}
    return with_parameters(body, prompt.parameters, _PLACES)


def _taken(payload: JsonObject) -> Taken:
    message = as_dict(payload.get("message"))
    made = as_dicts(message.get("tool_calls"))
    kept: JsonObject = {"role": "assistant", "content": message.get("content") or ""}
    if made:
        kept["tool_calls"] = [
            # Its templates want arguments that are an object.
            {**item, "function": {**function, "arguments": as_dict(function.get("arguments"))}}
            for item in made
            if (function := as_dict(item.get("function")))
        ]
        if as_str(message.get("thinking")):
            kept["thinking"] = message["thinking"]
    return tuple(read_call(item) for item in made), (kept,)


def _results(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple({"role": "tool", "tool_name": call.name, "content": result_text(call)} for call in calls)


OLLAMA = ModelApi(
    name="Ollama",
    base_url="http://127.0.0.1:11434",
    base_url_env="OLLAMA_HOST",
    # Only Ollama's own cloud has keys.
    key_env=("OLLAMA_API_KEY",),
    path=lambda model, stream: "/api/chat",
    body=_body,
    answers=lambda payload: isinstance(payload.get("message"), dict),
    taken=_taken,
    results=_results,
    speaks=lambda event: bool(as_str(at(event, "message", "content"))),
    tokens=lambda payload: tokens_told(payload.get("logprobs")),
)
