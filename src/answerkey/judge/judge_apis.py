"""JudgeApi: what tells one provider's API from another's, as a row of small functions; nothing here sends anything."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from answerkey.model.reply import Usage
from answerkey.transcripts.fields.usage import read_usage

__all__ = ["JUDGE_APIS", "Answered", "JudgeApi", "Request"]

# Anthropic wants a limit in every request.
_MAX_TOKENS = 4096


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge is asked in one step."""

    model: str
    # A system message, then the user's and the assistant's in turn, each `role` and `content`.
    messages: Sequence[Mapping[str, str]]
    schema: dict[str, Any]
    # How the answer's form is asked for: "json_schema", "json_object", or not at all.
    form: str
    # temperature, seed, max_tokens: those that the model takes.
    parameters: Mapping[str, Any]


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str
    # What it said instead, if it refused.
    refusal: str | None = None
    # "length" if it was cut off, "content_filter" if it was held back.
    finish: str | None = None
    usage: Usage | None = None


class JudgeApi(NamedTuple):
    """One provider's API. `read` raises LookupError, TypeError or AttributeError at what is no answer of it."""

    base_url: str
    # Environment variables of the base address and of the key.
    base_url_env: str
    key_env: str
    path: Callable[[str], str]
    headers: Callable[[str], dict[str, str]]
    body: Callable[[Request], dict[str, Any]]
    read: Callable[[Any], Answered]
    # Parameters that it does not have.
    without: frozenset[str] = frozenset()


def _chat_body(asked: Request) -> dict[str, Any]:
    body: dict[str, Any] = {"model": asked.model, "messages": list(asked.messages), **asked.parameters}
    if asked.form == "json_schema":
        named = {"name": "verdict", "strict": True, "schema": asked.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif asked.form == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def _read_chat(raw: Any) -> Answered:
    choice = raw["choices"][0]
    text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    finish = choice.get("finish_reason")
    return Answered(
        text=_joined(text) if isinstance(text, list) else _text(text),
        refusal=_text(refusal) or None,
        finish=finish if isinstance(finish, str) else None,
        usage=read_usage(raw.get("usage")),
    )


def _messages_body(asked: Request) -> dict[str, Any]:
    system, *rest = asked.messages
    body = {
        "model": asked.model,
        "max_tokens": _MAX_TOKENS,
        "system": system["content"],
        "messages": rest,
        **asked.parameters,
    }
    if asked.form == "json_schema":
        body["output_config"] = {"format": {"type": "json_schema", "schema": asked.schema}}
    return body


def _read_messages(raw: Any) -> Answered:
    stop, used = raw.get("stop_reason"), raw.get("usage") or {}
    usage = read_usage(used)
    if usage is not None:
        # Tokens that its cache had or took are counted apart.
        apart = sum(used.get(f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
        usage = msgspec.structs.replace(usage, input_tokens=(usage.input_tokens or 0) + apart)
    text = _joined(block for block in raw["content"] if block.get("type") == "text")
    return Answered(
        text=text,
        refusal=(text or "it gave no reason") if stop == "refusal" else None,
        finish="length" if stop == "max_tokens" else None,
        usage=usage,
    )


def _gemini_body(asked: Request) -> dict[str, Any]:
    system, *rest = asked.messages
    names = {"max_tokens": "maxOutputTokens"}
    config: dict[str, Any] = {names.get(name, name): value for name, value in asked.parameters.items()}
    if asked.form != "plain":
        config["responseMimeType"] = "application/json"
    if asked.form == "json_schema":
        config["responseJsonSchema"] = asked.schema
    return {
        "systemInstruction": {"parts": [{"text": system["content"]}]},
        "contents": [
            {"role": "model" if one["role"] == "assistant" else "user", "parts": [{"text": one["content"]}]}
            for one in rest
        ],
        "generationConfig": config,
    }


def _read_gemini(raw: Any) -> Answered:
    usage = read_usage(raw.get("usageMetadata"))
    if usage is not None:
        # What it thought is paid for as what it said.
        said = (usage.output_tokens or 0) + (usage.reasoning_tokens or 0)
        usage = msgspec.structs.replace(usage, output_tokens=said)
    blocked = (raw.get("promptFeedback") or {}).get("blockReason")
    if blocked:
        return Answered(text="", refusal=str(blocked), usage=usage)
    candidate = raw["candidates"][0]
    ended = str(candidate.get("finishReason", ""))
    parts = (candidate.get("content") or {}).get("parts") or ()
    text = _joined(part for part in parts if not part.get("thought"))
    finish = "length" if ended == "MAX_TOKENS" else None if ended in ("", "STOP") else "content_filter"
    return Answered(
        text=text, refusal=ended if finish == "content_filter" else None, finish=finish, usage=usage
    )


def _joined(parts: Any) -> str:
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


JUDGE_APIS: dict[str, JudgeApi] = {
    "openai": JudgeApi(
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        lambda model: "/chat/completions",
        lambda key: {"Authorization": f"Bearer {key}"},
        _chat_body,
        _read_chat,
    ),
    "anthropic": JudgeApi(
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        lambda model: "/v1/messages",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        _messages_body,
        _read_messages,
        frozenset(("seed",)),
    ),
    "gemini": JudgeApi(
        "https://generativelanguage.googleapis.com",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_API_KEY",
        lambda model: f"/v1beta/models/{quote(model)}:generateContent",
        lambda key: {"x-goog-api-key": key},
        _gemini_body,
        _read_gemini,
    ),
}
