"""Conversations to replies: choose the exchange, take the assistant's last text, and match results to calls."""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal

import msgspec

from answerkey.model.reply import Evidence, Failure, Message, Part, Reply, Source, ToolCall, Usage
from answerkey.transcripts.fields import UNNAMED, add_usage

_MAX_UNREAD = 20


class QuestionContext(msgspec.Struct, frozen=True, gc=False):
    """The question that a payload replies to; it selects the exchange in a transcript."""

    question: str | None = None
    # 0 for the first turn.
    turn: int = 0
    # The golden case has turns, or the conversation is in a later one.
    in_turns: bool = False
    # A recorded row: `id` is the question's, and a missing turn has no reply.
    recorded: bool = False


NO_CONTEXT = QuestionContext()


def split_exchanges(messages: Sequence[Message]) -> list[tuple[list[str], list[Message]]]:
    """(user texts, following messages) of each exchange, in order; consecutive user messages are one exchange."""
    exchanges: list[tuple[list[str], list[Message]]] = []
    for message in messages:
        if message.role == "user":
            if not exchanges or any(after.role != "system" for after in exchanges[-1][1]):
                exchanges.append(([], []))
            exchanges[-1][0].append((message.text or "").strip())
            if any(part.kind == "result" for part in message.parts) and len(exchanges) > 1:
                # It also has the results of earlier calls.
                results = tuple([part for part in message.parts if part.kind == "result"])
                exchanges[-2][1].append(Message("tool", results))
        elif exchanges:
            exchanges[-1][1].append(message)
        elif message.role != "system":
            # The transcript begins in the middle, before any user message.
            exchanges.append(([], [message]))
    return exchanges


def select_exchange(messages: Sequence[Message], context: QuestionContext) -> Sequence[Message] | None:
    """The messages that answer the question; None if a recorded conversation has no such turn.

    If the question equals a user message, the exchange that follows it; in turns, the one of that turn; otherwise all.
    """
    if context.question is None and not context.in_turns:
        return messages
    question = (context.question or "").strip()
    exchanges = split_exchanges(messages)
    matching = [number for number, (said, _) in enumerate(exchanges) if question and question in said]
    if matching:
        # The same text may occur twice; then the number of the turn decides.
        return exchanges[context.turn if context.turn in matching else matching[-1]][1]
    if context.in_turns and (context.turn < len(exchanges) or context.recorded):
        return exchanges[context.turn][1] if context.turn < len(exchanges) else None
    return messages


def shows_every_call(messages: Iterable[Message]) -> bool:
    """Whether a conversation would show a tool call if there was one; only then is a call that is not in it not made.

    It does if it has a call or a result anywhere. Without any it must begin with the user, since earlier calls may have been left
    out, and the assistant's messages must have a place for calls: logs often keep only what was said.
    """
    begins_with_user = has_place = False
    for message in messages:
        if message.role == "user":
            begins_with_user = True
        has_place = has_place or message.has_place_for_calls
        if any(part.kind in ("call", "result") for part in message.parts):
            return True
    return begins_with_user and has_place


def reply_of(messages: Sequence[Message], *, shows_calls: bool | None = None) -> Reply:
    """The reply of messages: every call in order; the text is the last one of the assistant.

    `shows_calls`: whether a call would be in them if there was one; by default the messages themselves decide.
    """
    if shows_calls is None:
        shows_calls = shows_every_call(messages)
    text = response_id = None
    usage: Usage | None = None
    calls = _CallMatcher()
    sources: list[Source] = []
    unread: list[Part] = []
    thoughts: list[str] = []
    for batch, message in enumerate(messages):
        spoken: list[str] = []
        called = False
        for part in message.parts:
            if part.kind == "text":
                if part.text is not None:
                    spoken.append(part.text)
            elif part.kind == "call" and part.call is not None:
                called = True
                calls.open(part.call, batch)
            elif part.kind == "result" and part.call is not None:
                calls.close(part.call)
            elif part.kind == "unread":
                unread.append(part)
            elif part.kind == "thought" and part.text:
                thoughts.append(part.text)
            if part.sources:
                sources += part.sources
        if message.role == "assistant":
            said = "".join(spoken)
            # Formats that always have a text leave it empty beside calls.
            if spoken and (not called or said.strip()):
                text = said
            response_id = message.id or response_id
            if message.usage is not None:
                usage = add_usage(usage, message.usage)
    return Reply(
        text=text,
        tool_calls=tuple(calls.made),
        sources=tuple(sources),
        usage=usage,
        evidence=_evidence("transcript", shows_calls, bool(sources), unread),
        response_id=response_id,
        reasoning="\n\n".join(thoughts) or None,
    )


def response_of(messages: Sequence[Message], failure: Failure | None = None) -> Reply:
    """The reply of a single response: all its texts. Without a call, earlier calls cannot be ruled out."""
    one = Message("assistant", tuple([part for message in messages for part in message.parts]))
    reply = reply_of([one])
    usage = next((message.usage for message in messages if message.usage is not None), None)
    unread = [part for part in one.parts if part.kind == "unread"]
    return msgspec.structs.replace(
        reply,
        failure=failure,
        usage=usage,
        evidence=_evidence("response", bool(reply.tool_calls), reply.evidence.sources_observed, unread),
        response_id=next((message.id for message in messages if message.id), None),
    )


def with_evidence(reply: Reply, **changes: object) -> Reply:
    """The reply with changed fields of its evidence."""
    return msgspec.structs.replace(reply, evidence=msgspec.structs.replace(reply.evidence, **changes))


def _evidence(
    kind: Literal["response", "transcript", "log"], tools: bool, sources: bool, unread: list[Part]
) -> Evidence:
    """How the reply was observed. An unread part may have been a call, so then no call is ruled out."""
    if not unread:
        return _plain_evidence(kind, tools, sources)
    names = dict.fromkeys(part.text or "" for part in unread)
    return Evidence(
        kind=kind,
        completeness="partial",
        tools_observed=False,
        sources_observed=sources,
        unread=tuple(names)[:_MAX_UNREAD],
    )


@cache
def _plain_evidence(kind: Literal["response", "transcript", "log"], tools: bool, sources: bool) -> Evidence:
    return Evidence(kind=kind, tools_observed=tools, sources_observed=sources)


class _CallMatcher:
    """Matches results to calls: to the newest open call with its id, else with its name, else to the newest call.

    Of parallel calls (made in the matching message) the first is taken.
    """

    def __init__(self) -> None:
        self.made: list[ToolCall] = []
        # By what a result may name: the indices of open calls, grouped by message, the newest last.
        self._open: dict[tuple[str, str | None], list[tuple[int, deque[int]]]] = {}
        self._closed: set[int] = set()
        self._ids: set[str] = set()

    def open(self, call: ToolCall, batch: int) -> None:
        index = len(self.made)
        self.made.append(call)
        if call.id is not None:
            self._ids.add(call.id)
        if call.result_seen:
            return
        keys = [("name", call.name), ("any", None)]
        for key in [("id", call.id), *keys] if call.id is not None else [*keys, ("no id", call.name)]:
            groups = self._open.setdefault(key, [])
            if not groups or groups[-1][0] != batch:
                groups.append((batch, deque()))
            groups[-1][1].append(index)

    def close(self, result: ToolCall) -> None:
        index = self._index_of(result)
        if index is None:
            if result.name != UNNAMED and result.id not in self._ids:
                # A result whose call was cut off still shows that the tool was used.
                self._closed.add(len(self.made))
                self.made.append(result)
            return
        self._closed.add(index)
        call = self.made[index]
        self.made[index] = msgspec.structs.replace(
            call,
            result=result.result,
            result_seen=True,
            error=result.error or call.error,
            duration_ms=call.duration_ms if result.duration_ms is None else result.duration_ms,
        )

    def _index_of(self, result: ToolCall) -> int | None:
        """The index of the call that a result belongs to."""
        if result.id is not None:
            index = self._newest(("id", result.id))
            # Some formats give the result an id and the call none.
            return self._newest(("no id", result.name)) if index is None else index
        return self._newest(("any", None) if result.name == UNNAMED else ("name", result.name))

    def _newest(self, key: tuple[str, str | None]) -> int | None:
        groups = self._open.get(key, [])
        while groups:
            indices = groups[-1][1]
            while indices:
                index = indices[0]
                if index not in self._closed:
                    return index
                indices.popleft()
            groups.pop()
        return None
