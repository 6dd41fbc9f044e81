"""Values that several tools write in the same few ways: what was asked, what is right, which tools are called."""

from typing import Any

import msgspec

from answerkey.datasets.importers.foreign_rows import Losses
from answerkey.model.json_value import Json
from answerkey.transcripts.fields.tool_calls import UNNAMED, read_call

_ASKED = ("question", "query", "input", "prompt", "user_input", "text", "message", "content")
_ANSWERED = (
    *("answer", "output", "reference", "expected", "expected_output"),
    *("response", "text", "content", "result"),
)


def as_text(value: Any) -> str | None:
    """A value as text: as it is, the text of message parts, or JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "".join(str(part["text"]) for part in value)
    return msgspec.json.encode(value).decode()


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, dict) and ("role" in part or "type" in part) for part in value)
    )


def _from_user(message: dict[str, Any]) -> bool:
    return message.get("role", message.get("type")) in ("user", "human")


def asked(value: Any, losses: Losses) -> str | None:
    """What the user asks: a text, the user's message, or the likeliest entry of an object."""
    if _is_messages(value):
        said = [message for message in value if _from_user(message)]
        if any(message.get("role", message.get("type")) == "system" for message in value):
            losses.add("a system message")
        if len(said) > 1 or any(message.get("role") == "assistant" for message in value):
            losses.add("the conversation before the last question")
        return as_text(said[-1].get("content")) if said else None
    if isinstance(value, dict):
        if "messages" in value:
            return asked(value["messages"], losses)
        name = next((name for name in _ASKED if isinstance(value.get(name), str)), None)
        if name is None:
            name = next(iter(value)) if len(value) == 1 else None
        for other in value:
            if other != name:
                losses.add(f"the input {other!r}")
        return as_text(value[name]) if name is not None else None
    return as_text(value)


def last_said(value: Any, losses: Losses) -> str | None:
    """The answer in what a tool calls an output: a text, an object's likeliest entry, the last message, the first of several."""
    if _is_messages(value):
        return as_text(value[-1].get("content"))
    if isinstance(value, list):
        return as_text(value[0]) if value else None
    if isinstance(value, dict):
        if "messages" in value:
            return last_said(value["messages"], losses)
        name = next((name for name in _ANSWERED if isinstance(value.get(name), str)), None)
        return as_text(value if name is None and len(value) != 1 else value[name or next(iter(value))])
    return as_text(value)


def any_of(value: Any, losses: Losses) -> Json:
    """Several answers of which any is right, as one keyword with alternatives; a single one is a reference only."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(option, str) for option in value):
        return None
    return [list(dict.fromkeys(option for option in value if option.strip()))]


def expected_calls(value: Any, losses: Losses) -> list[Json] | None:
    """Calls that a good reply makes, with the arguments that are said."""
    calls: list[Json] = []
    for call in map(read_call, value if isinstance(value, list) else [value]):
        if call.name == UNNAMED:
            losses.add("a call without a name")
        elif call.arguments:
            exact = {key: exactly(held) for key, held in call.arguments.items()}
            calls.append({"name": call.name, "arguments": exact})
        else:
            calls.append(call.name)
    return calls or None


def exactly(value: Any) -> Json:
    """An argument that must be just this: a list alone would mean any of its items, an object a condition."""
    return [value] if isinstance(value, list | dict) else value


def tool_names(value: Any, losses: Losses) -> list[str]:
    """The names of the calls that were made."""
    return [call.name for call in map(read_call, value if isinstance(value, list) else [value])]
