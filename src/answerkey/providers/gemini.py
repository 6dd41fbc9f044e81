"""Google's Gemini API (generateContent)."""

from collections.abc import Sequence
from urllib.parse import quote

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ModelApi, Prompt, SaidToken, Taken, said_token, with_parameters
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at

_NAMES = {
    "temperature": "temperature",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "top_p": "topP",
    "stop": "stopSequences",
    "schema": "responseJsonSchema",
    "tells_tokens": "responseLogprobs",
    "likeliest": "logprobs",
}
_PLACES = {name: ("generationConfig", here) for name, here in _NAMES.items()}


def _path(model: str, stream: bool) -> str:
    name = model if "/" in model else f"models/{model}"
    return f"/v1beta/{quote(name)}:" + ("streamGenerateContent?alt=sse" if stream else "generateContent")


def _body(prompt: Prompt) -> JsonObject:
    body: JsonObject = {"contents": [*prompt.messages]}
    if prompt.system:
        body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    if prompt.tools:
        declared: list[Json] = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in prompt.tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
    if prompt.schema is not None or prompt.as_json:
        body["generationConfig"] = {"responseMimeType": "application/json"}
    if prompt.schema is not None:
        with_parameters(body, {"schema": prompt.schema}, _PLACES)
    if prompt.likeliest is not None:
        with_parameters(body, {"tells_tokens": True, "likeliest": prompt.likeliest}, _PLACES)
    return with_parameters(body, prompt.parameters, _PLACES)


def _taken(payload: JsonObject) -> Taken:
    parts = as_dicts(at(payload, "candidates", 0, "content", "parts"))
    calls = [read_call(as_dict(part["functionCall"])) for part in parts if "functionCall" in part]
    # As they came: a signature of what was thought belongs to its part.
    return tuple(calls), ({"role": "model", "parts": [*parts]},) if parts else ()


def _tokens(payload: JsonObject) -> tuple[SaidToken, ...]:
    told = at(payload, "candidates", 0, "logprobsResult")
    likeliest = as_dicts(at(told, "topCandidates"))
    return tuple(
        said_token(
            chosen,
            as_dicts(likeliest[place].get("candidates")) if place < len(likeliest) else (),
            logarithm="logProbability",
        )
        for place, chosen in enumerate(as_dicts(at(told, "chosenCandidates")))
    )


def _results(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    parts: list[Json] = []
    for call in calls:
        came: JsonObject = {"output": call.result} if call.error is None else {"error": call.error}
        told: JsonObject = {"name": call.name, "response": came}
        parts.append({"functionResponse": {**told, "id": call.id} if call.id else told})
    return ({"role": "user", "parts": parts},)


GEMINI = ModelApi(
    name="Gemini",
    base_url="https://generativelanguage.googleapis.com",
    base_url_env="GOOGLE_GEMINI_BASE_URL",
    key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    path=_path,
    headers=lambda key: {"x-goog-api-key": key} if key else {},
    body=_body,
    said=lambda speaker, text: {
        "role": "model" if speaker == "assistant" else "user",
        "parts": [{"text": text}],
    },
    answers=lambda payload: bool(as_dicts(payload.get("candidates"))) or "promptFeedback" in payload,
    taken=_taken,
    results=_results,
    speaks=lambda event: any(
        as_str(part.get("text")) and part.get("thought") is not True
        for part in as_dicts(at(event, "candidates", 0, "content", "parts"))
    ),
    tokens=_tokens,
)
