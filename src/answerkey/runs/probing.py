"""Probing a chatbot that nothing is known of: how it takes a question, and where its reply has its parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.config import Settings
from answerkey.model.options import Options
from answerkey.model.reply import Json
from answerkey.runs.asking import Asked, ask_once, read_by
from answerkey.targets.resolve import kind_and_rest
from answerkey.transcripts.json_values import as_dict, as_dicts

# What the configuration that `init` writes calls the chatbot.
TARGET_NAME = "chatbot"
_QUESTION = "{{question}}"
_CONVERSATION = "{{conversation_id}}"
# How others call the question, in the order in which they are tried where the chatbot does not say.
_NAMES = ("message", "query", "prompt", "input", "text", "content", "q", "user_input")
_CONVERSATIONS = ("session", "conversation", "thread", "chat_id", "user")


class Probe(msgspec.Struct, frozen=True):
    """A chatbot as it can be asked: its table in the configuration, and what it gave back to each question."""

    table: dict[str, Any]
    answered: tuple[Asked, ...]


async def probe_target(
    spec: str,
    questions: Sequence[str],
    options: Options,
    *,
    headers: Mapping[str, str],
    reply: Mapping[str, str],
    tell: Callable[[str], None],
) -> Probe:
    """Ask until the first question is taken, map what the usual names do not find, and ask the others.

    `tell` is told of each attempt. `reply` are expressions that the user gives: they are not guessed.
    """
    kind, rest = kind_and_rest(spec)
    table: dict[str, Any] = {kind: rest, **({"headers": dict(headers)} if headers else {})}
    if reply:
        table["reply"] = dict(reply)
    asked = await _ask(table, questions[0], options)
    if kind == "url":
        for body in _other_bodies(asked):
            if not _is_refused(asked):
                break
            tell(f"{_wrong(asked)}; asking once more with {msgspec.json.encode(body).decode()}")
            table["body"] = body
            asked = await _ask(table, questions[0], options)
    proposed = {part: where for part, where in asked.proposed.items() if part not in reply}
    if proposed and kind not in ("demo", "openai"):
        table["reply"] = {**proposed, **reply}
        asked = read_by(asked, table["reply"])
    if asked.misconfigured is not None:
        return Probe(table, (asked,))
    return Probe(table, (asked, *[await _ask(table, question, options) for question in questions[1:]]))


async def _ask(table: dict[str, Any], question: str, options: Options) -> Asked:
    return await ask_once(question, TARGET_NAME, options, Settings(targets={TARGET_NAME: table}))


def _is_refused(asked: Asked) -> bool:
    """Whether the chatbot says that it does not understand the request."""
    return _wrong(asked).startswith(("HTTP 400", "HTTP 422"))


def _wrong(asked: Asked) -> str:
    return "" if asked.reply.failure is None else asked.reply.failure.message


def _other_bodies(first: Asked) -> Iterator[Json]:
    """Bodies to try: the one that the refusal asks for, then those with other names for the question."""
    wanted = _missing_fields(first.raw)
    if wanted:
        yield _body_of(wanted)
    for name in _NAMES:
        yield {name: _QUESTION, "conversation_id": _CONVERSATION}
    yield {"messages": "{{messages}}"}


def _missing_fields(refusal: Json) -> list[str]:
    """The fields that FastAPI says are missing in the body."""
    named = [item.get("loc") for item in as_dicts(as_dict(refusal).get("detail"))]
    inside = (place for place in named if isinstance(place, list) and len(place) > 1 and place[0] == "body")
    return [str(place[1]) for place in inside]


def _body_of(fields: list[str]) -> Json:
    """Every field with something in it: the question, the conversation's id where the name says so."""
    body: dict[str, Json] = {}
    for field in fields:
        is_id = any(name in field.lower() for name in _CONVERSATIONS)
        body[field] = _CONVERSATION if is_id and len(fields) > 1 else _QUESTION
        if field == "messages":
            body[field] = "{{messages}}"
    return body
