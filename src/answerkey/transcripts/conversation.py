"""Transcripts in one shape: what was said and called in a conversation, split into the replies to each user message."""

import json
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from answerkey.model.reply import Evidence, Failure, Reply, Source, ToolCall, Usage
from answerkey.transcripts.fields.usage import add_usage

__all__ = [
    "Message",
    "Role",
    "ToolResult",
    "error_in_result",
    "exchanges_of",
    "replies_of",
    "reply_of",
    "response_of",
]


# Who speaks; dialects with other names are read into these.
Role = Literal["user", "assistant", "tool", "system"]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call, as a later message tells it."""

    # The call it belongs to; None: the format has no ids.
    call_id: str | None = None
    name: str | None = None
    result: object = None
    error: str | None = None
    duration_ms: float | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of any format."""

    role: Role
    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
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


def reply_of(messages: Sequence[Message], failure: Failure | None = None) -> Reply:
    """The reply that the messages after one user message make."""
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    sources: list[Source] = []
    usage: Usage | None = None
    said: str | None = None
    final: str | None = None
    response_id: str | None = None
    for message in messages:
        calls += message.calls
        results += message.results
        sources += message.sources
        usage = add_usage(usage, message.usage)
        if message.role == "assistant":
            said = message.text
            response_id = message.id or response_id
            final = None if message.calls else message.text
    return Reply(
        text=final if final is not None else said,
        tool_calls=_joined(calls, results),
        sources=tuple(sources),
        failure=failure,
        usage=usage,
        evidence=Evidence(kind="transcript", tools_observed=True, sources_observed=bool(sources)),
        response_id=response_id,
    )


def response_of(
    message: Message, *, failure: Failure | None = None, tools_observed: bool | None = None
) -> Reply:
    """The reply that a single response makes. Without a call in it, calls made earlier cannot be ruled out."""
    return Reply(
        text=message.text,
        tool_calls=_joined(message.calls, message.results),
        sources=message.sources,
        failure=failure,
        usage=message.usage,
        evidence=Evidence(
            tools_observed=bool(message.calls) if tools_observed is None else tools_observed,
            sources_observed=bool(message.sources),
        ),
        response_id=message.id,
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


def _joined(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> tuple[ToolCall, ...]:
    """The calls with what came of them: matched by id, else by name, else in order."""
    if not results:
        return tuple(calls)
    joined = list(calls)
    waiting = [index for index, call in enumerate(joined) if not call.result_seen]
    by_id = {joined[index].id: index for index in reversed(waiting) if joined[index].id is not None}
    for result in results:
        index = by_id.pop(result.call_id, None) if result.call_id is not None else None
        if index is None:
            open_calls = [place for place in waiting if result.call_id is None or joined[place].id is None]
            index = next((place for place in open_calls if joined[place].name == result.name), None)
            if index is None and result.name is None:
                index = next(iter(open_calls), None)
        if index is None:
            if result.name is None:
                continue
            # A result whose call was cut off still shows that the tool was used.
            joined.append(ToolCall(name=result.name, id=result.call_id))
            index = len(joined) - 1
        elif index in waiting:
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
