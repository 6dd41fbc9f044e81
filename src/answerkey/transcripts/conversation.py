"""Transcripts in one shape: what was said and called in a conversation, split into the replies to each user message."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Literal

import msgspec

from answerkey.model.reply import Evidence, Failure, Reply, Source, ToolCall, Usage
from answerkey.transcripts.fields.tool_calls import UNNAMED
from answerkey.transcripts.fields.usage import add_usage

__all__ = [
    "Message",
    "Role",
    "error_in_result",
    "exchanges_of",
    "merged",
    "replies_of",
    "reply_of",
    "response_of",
]


# Who speaks; dialects with other names are read into these.
Role = Literal["user", "assistant", "tool", "system"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of any format, or a part of one."""

    role: Role = "assistant"
    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    # What came of calls, in this message or an earlier one: matched by the id and name that they have in common.
    results: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    id: str | None = None


def exchanges_of(messages: Iterable[Message]) -> list[tuple[str | None, Reply]]:
    """What the user said and the reply to it, in order; messages before the first user message belong to no reply."""
    turns: list[tuple[str | None, list[Message]]] = []
    before: list[Message] = []
    for message in messages:
        if message.role == "user":
            turns.append((message.text, []))
        elif turns:
            turns[-1][1].append(message)
        else:
            before.append(message)
    if not turns:
        return [(None, reply_of(before))] if any(message.role != "system" for message in before) else []
    # Two user messages in a row are one thing said; a last one without an answer is a null reply.
    answered = [turn for turn in turns[:-1] if any(part.role == "assistant" for part in turn[1])]
    return [(said, reply_of(turn)) for said, turn in [*answered, turns[-1]]]


def replies_of(messages: Iterable[Message]) -> list[Reply]:
    """The replies to the user's messages, in order."""
    return [reply for _, reply in exchanges_of(messages)]


def merged(parts: Sequence[Message], role: Role = "assistant") -> Message:
    """One message of several, or of the parts of one: all that they say, call, bring and use, in order."""
    texts = [part.text for part in parts if part.text is not None]
    return Message(
        role=role,
        text="".join(texts) if texts else None,
        calls=tuple([call for part in parts for call in part.calls]),
        results=tuple([result for part in parts for result in part.results]),
        sources=tuple([source for part in parts for source in part.sources]),
        usage=reduce(add_usage, [part.usage for part in parts], None),
    )


def reply_of(messages: Sequence[Message]) -> Reply:
    """The reply that the messages after one user message make: the text is the last thing that the assistant said."""
    text = response_id = None
    for message in messages:
        if message.role == "assistant":
            text, response_id = message.text, message.id or response_id
    evidence = Evidence(
        kind="transcript",
        tools_observed=True,
        sources_observed=any(message.sources for message in messages),
    )
    return _reply(merged(messages), text, response_id, evidence, None)


def response_of(
    message: Message, *, failure: Failure | None = None, tools_observed: bool | None = None
) -> Reply:
    """The reply that a single response makes. Without a call in it, calls made earlier cannot be ruled out."""
    evidence = Evidence(
        tools_observed=bool(message.calls) if tools_observed is None else tools_observed,
        sources_observed=bool(message.sources),
    )
    return _reply(message, message.text, message.id, evidence, failure)


def _reply(
    message: Message, text: str | None, response_id: str | None, evidence: Evidence, failure: Failure | None
) -> Reply:
    return Reply(
        text=text,
        tool_calls=_joined(message.calls, message.results),
        sources=message.sources,
        failure=failure,
        usage=message.usage,
        evidence=evidence,
        response_id=response_id,
    )


def error_in_result(result: object) -> str | None:
    """An error that a tool's result admits by itself, for formats without an error flag."""
    if isinstance(result, str):
        if result.startswith(("Error:", "ERROR:", "ToolException", "Traceback (most recent call last)")):
            return result
        if not result.startswith("{") or ('"error"' not in result and '"isError"' not in result):
            return None
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    if isinstance(result, dict):
        if isinstance(result.get("error"), str) and result["error"]:
            return str(result["error"])
        if (
            result.get("isError") is True
            or result.get("error") is True
            or isinstance(result.get("error"), dict)
        ):
            return json.dumps(result.get("error", result.get("content")), ensure_ascii=False, default=str)
    return None


def _joined(calls: Sequence[ToolCall], results: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls with what came of them: matched by id, else by name, else in order."""
    if not results:
        return tuple(calls)
    joined = list(calls)
    waiting = [index for index, call in enumerate(joined) if not call.result_seen]
    by_id = {joined[index].id: index for index in reversed(waiting) if joined[index].id is not None}
    for result in results:
        index = by_id.pop(result.id, None) if result.id is not None else None
        if index is None:
            open_calls = [place for place in waiting if result.id is None or joined[place].id is None]
            index = next((place for place in open_calls if joined[place].name == result.name), None)
            if index is None and result.name == UNNAMED:
                index = next(iter(open_calls), None)
        if index is None:
            if result.name != UNNAMED:
                # A result whose call was cut off still shows that the tool was used.
                joined.append(result)
            continue
        if index in waiting:
            waiting.remove(index)
        call = joined[index]
        joined[index] = msgspec.structs.replace(
            call,
            result=result.result,
            result_seen=True,
            error=result.error or call.error,
            duration_ms=call.duration_ms if result.duration_ms is None else result.duration_ms,
        )
    return tuple(joined)
