"""ModelApi: the differences between providers' APIs, as a row of small functions; nothing here sends anything.

One step is `address`, `headers` and `body` on the way there; on the way back the payload (or the document that a stream
makes, `transcripts.streams`) goes through `read_step`. Histories stay in the API's own form, so that what a provider
wants back unchanged (signatures of thoughts, ids) goes back unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec

from answerkey.model.reply import Failure, Json, JsonObject, Reply, ToolCall
from answerkey.transcripts.fields import failure_message, read_call, read_failure
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, at, json_text, read_number
from answerkey.transcripts.payloads import reply_from_payload

# Parameters that each API names differently; others are sent unchanged.
Place = tuple[str, ...]
Speaker = Literal["user", "assistant"]
# The calls that the caller must run, and the part of the answer that is sent back in the next step.
Taken = tuple[tuple[ToolCall, ...], tuple[JsonObject, ...]]


class ToolSpec(msgspec.Struct, frozen=True):
    """The description of a tool for a model."""

    name: str
    description: str
    # The JSON Schema of its arguments.
    parameters: JsonObject


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The request of one step."""

    model: str
    # In the API's own format, oldest first.
    messages: Sequence[JsonObject]
    system: str | None = None
    tools: Sequence[ToolSpec] = ()
    stream: bool = False
    # `temperature`, `max_tokens`, `seed`, `top_p` and `stop` are renamed for the API.
    parameters: Mapping[str, Json] = {}
    # The JSON Schema of the answer; None: any text or JSON.
    schema: JsonObject | None = None
    as_json: bool = False
    # Number of most likely tokens to return at each position of the answer, with probabilities; None: none.
    likeliest: int | None = None


class AnswerToken(msgspec.Struct, frozen=True):
    """One token of an answer."""

    # Its bytes in the answer; a character may be split.
    octets: bytes
    # The token and its alternatives → probability.
    probabilities: dict[str, float]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one step."""

    # Text, calls, reasoning and usage; a failure if the turn cannot continue.
    reply: Reply
    # The calls that the caller must run; those that the provider ran are in the reply only.
    calls: tuple[ToolCall, ...] = ()
    # The part that is sent back in the next step, in the API's own format.
    history: tuple[JsonObject, ...] = ()
    # It paused, and continues when its message is sent back.
    paused: bool = False


def bearer(key: str | None) -> dict[str, str]:
    """The headers with the key, for most APIs."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def _plain_message(speaker: Speaker, text: str) -> JsonObject:
    return {"role": speaker, "content": text}


class ModelApi(NamedTuple):
    """One provider's API."""

    name: str
    base_url: str
    # Environment variables of the base address and of the key, the first that is set.
    base_url_env: str
    key_env: tuple[str, ...]
    # Model and whether it streams → path after the base address.
    path: Callable[[str, bool], str]
    body: Callable[[Prompt], JsonObject]
    # Whether a payload is an answer of this API.
    answers: Callable[[JsonObject], bool]
    # The calls of an answer that we must run, and the part that is sent back.
    read_calls: Callable[[JsonObject], Taken]
    # Results of calls, as messages.
    results: Callable[[Sequence[ToolCall]], tuple[JsonObject, ...]]
    # Whether an event of a stream contains text of the answer.
    speaks: Callable[[JsonObject], bool]
    # Key, if any → headers.
    headers: Callable[[str | None], dict[str, str]] = bearer
    # Role and text → message.
    write_message: Callable[[Speaker, str], JsonObject] = _plain_message
    # The usual parameters that it does not support.
    without: frozenset[str] = frozenset()
    # The tokens of an answer with probabilities; None: the API has none.
    tokens: Callable[[JsonObject], tuple[AnswerToken, ...]] | None = None


def read_step(api: ModelApi, payload: Json) -> Step:
    """Read the step in an API's answer; any other payload is a failure."""
    document = as_dict(payload)
    if not api.answers(document):
        failure = read_failure(document.get("error"))
        message = (
            f"the reply is not an answer of the {api.name} API: {failure_message(json_text(payload), 200)}"
        )
        return Step(reply=Reply(failure=failure or Failure("malformed", message)))
    reply = reply_from_payload(document)
    if reply.failure is None and document.get("error"):
        reply = msgspec.structs.replace(reply, failure=read_failure(document["error"]))
    calls, history = api.read_calls(document)
    return Step(reply=reply, calls=calls, history=history, paused=document.get("stop_reason") == "pause_turn")


def answer_token(token: JsonObject, likeliest: Sequence[JsonObject], *, logarithm: str) -> AnswerToken:
    """A token with its alternatives; `logarithm` is the API's name of the log probability."""
    octets = token.get("bytes")
    try:
        said = bytes(octets) if isinstance(octets, list) else None  # type: ignore[arg-type]  # checked by bytes itself
    except (TypeError, ValueError):
        said = None
    text = as_str(token.get("token")) or ""
    told = {
        as_str(one.get("token")) or "": exp(min(0.0, power))
        for one in (token, *likeliest)
        if (power := read_number(one.get(logarithm))) is not None
    }
    return AnswerToken(text.encode("utf-8", "replace") if said is None else said, told)


def with_parameters(
    body: JsonObject, parameters: Mapping[str, Json], paths: Mapping[str, Place]
) -> JsonObject:
    """Add parameters to a body; a table is merged into one that exists."""
    for name, value in parameters.items():
        *outer, last = paths.get(name, (name,))
        holder = body
        for part in outer:
            inner = holder.setdefault(part, {})
            holder = inner if isinstance(inner, dict) else {}
        held = holder.get(last)
        holder[last] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    return body


def result_text(call: ToolCall) -> str:
    """The result of a call, as the model gets it."""
    if call.error is not None:
        return f"Error: {call.error}"
    return call.result if isinstance(call.result, str) else json_text(call.result)


# Anthropic's Messages API.


_VERSION = "2023-06-01"
# The API requires a limit in every request; all recent models support this one.
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


def _read_calls(payload: JsonObject) -> Taken:
    calls: list[ToolCall] = []
    blocks: list[Json] = []
    for place, block in enumerate(as_dicts(payload.get("content"))):
        if block.get("type") == "tool_use":
            call = read_call({**block, "id": as_str(block.get("id")) or f"call_{place}"})
            calls.append(call)
            block = {**block, "id": call.id, "name": call.name, "input": as_dict(block.get("input"))}
        # It rejects messages with an empty text.
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
    read_calls=_read_calls,
    results=_results,
    speaks=lambda event: bool(as_str(as_dict(event.get("delta")).get("text"))),
    without=_WITHOUT,
)


# Google's Gemini API (generateContent).


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


def _body_gemini(prompt: Prompt) -> JsonObject:
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


def _read_gemini_calls(payload: JsonObject) -> Taken:
    parts = as_dicts(at(payload, "candidates", 0, "content", "parts"))
    calls = [read_call(as_dict(part["functionCall"])) for part in parts if "functionCall" in part]
    # Unchanged: the signature of a thought belongs to its part.
    return tuple(calls), ({"role": "model", "parts": [*parts]},) if parts else ()


def _tokens(payload: JsonObject) -> tuple[AnswerToken, ...]:
    told = at(payload, "candidates", 0, "logprobsResult")
    likeliest = as_dicts(at(told, "topCandidates"))
    return tuple(
        answer_token(
            chosen,
            as_dicts(likeliest[place].get("candidates")) if place < len(likeliest) else (),
            logarithm="logProbability",
        )
        for place, chosen in enumerate(as_dicts(at(told, "chosenCandidates")))
    )


def _results_gemini(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
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
    body=_body_gemini,
    write_message=lambda speaker, text: {
        "role": "model" if speaker == "assistant" else "user",
        "parts": [{"text": text}],
    },
    answers=lambda payload: bool(as_dicts(payload.get("candidates"))) or "promptFeedback" in payload,
    read_calls=_read_gemini_calls,
    results=_results_gemini,
    speaks=lambda event: any(
        as_str(part.get("text")) and part.get("thought") is not True
        for part in as_dicts(at(event, "candidates", 0, "content", "parts"))
    ),
    tokens=_tokens,
)


# Ollama's own API (/api/chat).


_PLACES_OLLAMA_CHAT = {name: ("options", name) for name in ("temperature", "seed", "top_p", "stop")}
_PLACES_OLLAMA_CHAT["max_tokens"] = ("options", "num_predict")


def _body_ollama_chat(prompt: Prompt) -> JsonObject:
    # It streams by default.
    body: JsonObject = {**_chat(prompt), "stream": prompt.stream}
    if prompt.schema is not None:
        body["format"] = prompt.schema
    elif prompt.as_json:
        body["format"] = "json"
    if prompt.likeliest is not None:
        body |= {"logprobs": True, "top_logprobs": prompt.likeliest}
    return with_parameters(body, prompt.parameters, _PLACES_OLLAMA_CHAT)


def _read_ollama_chat_calls(payload: JsonObject) -> Taken:
    message = as_dict(payload.get("message"))
    made = as_dicts(message.get("tool_calls"))
    kept: JsonObject = {"role": "assistant", "content": message.get("content") or ""}
    if made:
        kept["tool_calls"] = [
            # Its templates require arguments to be an object.
            {**item, "function": {**function, "arguments": as_dict(function.get("arguments"))}}
            for item in made
            if (function := as_dict(item.get("function")))
        ]
        if as_str(message.get("thinking")):
            kept["thinking"] = message["thinking"]
    return tuple(read_call(item) for item in made), (kept,)


def _results_ollama_chat(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple({"role": "tool", "tool_name": call.name, "content": result_text(call)} for call in calls)


OLLAMA = ModelApi(
    name="Ollama",
    base_url="http://127.0.0.1:11434",
    base_url_env="OLLAMA_HOST",
    # Only Ollama's own cloud has keys.
    key_env=("OLLAMA_API_KEY",),
    path=lambda model, stream: "/api/chat",
    body=_body_ollama_chat,
    answers=lambda payload: isinstance(payload.get("message"), dict),
    read_calls=_read_ollama_chat_calls,
    results=_results_ollama_chat,
    speaks=lambda event: bool(as_str(at(event, "message", "content"))),
    tokens=lambda payload: read_logprobs(payload.get("logprobs")),
)


# OpenAI's Chat Completions, which most servers of open models speak as well.


# Reasoning fields that servers require back during a turn.
_THOUGHTS = ("reasoning_content", "reasoning_details")


def _chat(prompt: Prompt) -> JsonObject:
    """Model, messages and tools in the format of Chat Completions and Ollama."""
    system: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: JsonObject = {"model": prompt.model, "messages": [*system, *prompt.messages]}
    if prompt.tools:
        body["tools"] = [
            {"type": "function", "function": msgspec.structs.asdict(tool)} for tool in prompt.tools
        ]
    return body


def read_logprobs(listed: Json) -> tuple[AnswerToken, ...]:
    """Tokens in the format of Chat Completions and Ollama."""
    return tuple(
        answer_token(one, as_dicts(one.get("top_logprobs")), logarithm="logprob") for one in as_dicts(listed)
    )


def _body_openai_chat(prompt: Prompt) -> JsonObject:
    body = _chat(prompt)
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


def _read_openai_chat_calls(payload: JsonObject) -> Taken:
    message = as_dict(at(payload, "choices", 0, "message"))
    calls: list[ToolCall] = []
    sent_back: list[Json] = []
    made = as_dicts(message.get("tool_calls"))
    if not made and as_dict(message.get("function_call")):
        # Old servers have a single call in a field of its own.
        made = [{"function": message["function_call"]}]
    for place, item in enumerate(made):
        # A result needs the id of its call, which not every server sends.
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


def _results_openai_chat(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple({"role": "tool", "tool_call_id": call.id, "content": result_text(call)} for call in calls)


OPENAI_CHAT = ModelApi(
    name="OpenAI chat",
    base_url="https://api.openai.com/v1",
    base_url_env="OPENAI_BASE_URL",
    key_env=("OPENAI_API_KEY",),
    path=lambda model, stream: "/chat/completions",
    body=_body_openai_chat,
    answers=lambda payload: bool(as_dicts(payload.get("choices"))),
    read_calls=_read_openai_chat_calls,
    results=_results_openai_chat,
    speaks=lambda event: bool(as_str(at(event, "choices", 0, "delta", "content"))),
    tokens=lambda payload: read_logprobs(at(payload, "choices", 0, "logprobs", "content")),
)


# OpenAI's Responses API, without state on the server: every step sends all items.


_OURS = ("function_call", "custom_tool_call")


def _body_openai_responses(prompt: Prompt) -> JsonObject:
    body: JsonObject = {"model": prompt.model, "input": [*prompt.messages]}
    if prompt.system:
        body["instructions"] = prompt.system
    if prompt.tools:
        # Strict, its default, accepts few schemas.
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


def _read_openai_responses_calls(payload: JsonObject) -> Taken:
    items = as_dicts(payload.get("output"))
    for place, item in enumerate(items):
        if item.get("type") in _OURS and not as_str(item.get("call_id")):
            items[place] = {**item, "call_id": as_str(item.get("id")) or f"call_{place}"}
    return tuple(read_call(item) for item in items if item.get("type") in _OURS), tuple(items)


def _results_openai_responses(calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    return tuple(
        {"type": "function_call_output", "call_id": call.id, "output": result_text(call)} for call in calls
    )


OPENAI_RESPONSES = ModelApi(
    name="OpenAI Responses",
    base_url="https://api.openai.com/v1",
    base_url_env="OPENAI_BASE_URL",
    key_env=("OPENAI_API_KEY",),
    path=lambda model, stream: "/responses",
    body=_body_openai_responses,
    answers=lambda payload: isinstance(payload.get("output"), list),
    read_calls=_read_openai_responses_calls,
    results=_results_openai_responses,
    speaks=lambda event: event.get("type") == "response.output_text.delta",
)


# APIs by their names in the configuration.


KNOWN_APIS: dict[str, ModelApi] = {
    "openai": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}
