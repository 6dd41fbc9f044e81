"""Conversations to replies: choose the exchange, take the assistant's last text, and match results to calls."""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal

import msgspec

from answerkey.model.reply import Evidence, Failure, Message, Part, Reply, Role, Source, ToolCall, Usage
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


# The words of the formats: their names for roles, messages and the parts of a message.
#
# A new format is a row or two here. No word means two things, so that a message is read by its own fields, without
# guessing first which format it is in.


# How a part is read: see message_reading.
PartWord = Literal["text", "call", "result", "hosted", "ui-call", "source", "step", "thought", "aside"]

# The values of `role`.
ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "ROLE_USER", "USER", "HUMAN"), "user"),
    **dict.fromkeys(("assistant", "model", "ai", "bot", "agent", "ROLE_AGENT", "ASSISTANT"), "assistant"),
    **dict.fromkeys(("chatbot", "CHATBOT", "tool-call", "MODEL", "AI"), "assistant"),
    **dict.fromkeys(("tool", "function", "TOOL", "tool-response", "ipython"), "tool"),
    **dict.fromkeys(("system", "developer", "SYSTEM", "activity"), "system"),
}


# The values of `type`, of `kind`, and the classes of messages that have no role.
MESSAGE_TYPES: dict[str, Role] = {
    # LangChain.
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk", "function", "FunctionMessage"), "tool"),
    **dict.fromkeys(("system", "SystemMessage", "SystemMessageChunk", "remove", "RemoveMessage"), "system"),
    # Claude Agent SDK, as objects and as lines.
    **dict.fromkeys(("UserMessage", "user"), "user"),
    **dict.fromkeys(("AssistantMessage", "assistant"), "assistant"),
    **dict.fromkeys(("ResultMessage", "result"), "assistant"),
    **dict.fromkeys(("StreamEvent", "stream_event", "RateLimitEvent", "rate_limit_event"), "system"),
    **dict.fromkeys(("TaskStartedMessage", "TaskProgressMessage", "TaskNotificationMessage"), "system"),
    # Pydantic AI.
    **dict.fromkeys(("request", "ModelRequest"), "user"),
    **dict.fromkeys(("response", "ModelResponse"), "assistant"),
    # AutoGen: the source of a TextMessage names the speaker.
    **dict.fromkeys(
        ("TextMessage", "MultiModalMessage", "ToolCallSummaryMessage", "HandoffMessage"), "assistant"
    ),
    "ToolCallRequestEvent": "assistant",
    "ToolCallExecutionEvent": "tool",
    **dict.fromkeys(
        ("ThoughtEvent", "MemoryQueryEvent", "ModelClientStreamingChunkEvent", "StopMessage"), "system"
    ),
    **dict.fromkeys(("SelectSpeakerEvent", "SelectorEvent", "UserInputRequestedEvent"), "system"),
}

# How the items of a message's content are read where they do not say it themselves.
ITEMS: dict[str, PartWord] = {"ToolCallRequestEvent": "call", "ToolCallExecutionEvent": "result"}

# The values of a part's `type`, `kind`, `part_kind` or `block_type`, and the classes of parts.
PARTS: dict[str, PartWord] = {
    **dict.fromkeys(("text", "output_text", "input_text", "refusal", "TextBlock", "user-prompt"), "text"),
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use", "ToolUseBlock"), "call"),
    **dict.fromkeys(("ServerToolUseBlock", "tool_call", "tool-call", "builtin-tool-call"), "call"),
    **dict.fromkeys(("server_tool_call", "function_call", "custom_tool_call", "mcp_call"), "call"),
    **dict.fromkeys(("FunctionCall", "tool_call_block", "invalid_tool_call"), "call"),
    **dict.fromkeys(("tool_result", "tool-result", "tool-error", "ToolResultBlock"), "result"),
    **dict.fromkeys(("ServerToolResultBlock", "tool_call_response", "server_tool_call_response"), "result"),
    **dict.fromkeys(("tool-return", "builtin-tool-return", "retry-prompt"), "result"),
    **dict.fromkeys(("FunctionExecutionResult", "function_call_output", "custom_tool_call_output"), "result"),
    **dict.fromkeys(("tool-invocation", "dynamic-tool"), "ui-call"),
    **dict.fromkeys(("source", "source-url", "source-document", "search_result"), "source"),
    "step-start": "step",
    # Thoughts.
    **dict.fromkeys(("reasoning", "thinking", "redacted_thinking", "ThinkingBlock", "thought"), "thought"),
    **dict.fromkeys(("reasoning_text", "summary_text"), "thought"),
    # What is shown or sent along.
    **dict.fromkeys(
        ("image", "image_url", "input_image", "image_file", "input_file", "file", "audio"), "aside"
    ),
    **dict.fromkeys(("input_audio", "output_audio", "video", "document", "media", "blob", "uri"), "aside"),
    **dict.fromkeys(("container_upload", "image-url", "binary", "custom-source", "resource_link"), "aside"),
    # What is arranged between a model and its host.
    **dict.fromkeys(("system-prompt", "instruction", "item_reference", "mcp_list_tools"), "aside"),
    **dict.fromkeys(("compaction", "reasoning-file"), "aside"),
    **dict.fromkeys(("mcp_approval_request", "mcp_approval_response", "input_json_delta"), "aside"),
    **dict.fromkeys(("tool-approval-request", "tool-approval-response", "tool_call_chunk"), "aside"),
}
# Parts that have no type: the field that they hold says what they are (Gemini, Bedrock, A2A).
KEYED_PARTS: dict[str, PartWord] = {
    **dict.fromkeys(("functionCall", "function_call", "toolUse", "toolCall", "tool_call"), "call"),
    **dict.fromkeys(("functionResponse", "function_response", "toolResult"), "result"),
    **dict.fromkeys(("toolResponse", "tool_response"), "result"),
    **dict.fromkeys(("executableCode", "executable_code"), "call"),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result"), "result"),
    "text": "text",
    "reasoningContent": "thought",
    # Haystack.
    "tool_call_result": "result",
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), "aside"),
    **dict.fromkeys(("image", "document", "video", "cachePoint", "guardContent", "thought"), "aside"),
    **dict.fromkeys(("thoughtSignature", "thought_signature", "file", "raw", "url"), "aside"),
}


def part_word(kind: str) -> PartWord | None:
    """How a part that calls itself `kind` is read; None if it is unknown."""
    word = PARTS.get(kind)
    if word is not None:
        return word
    if kind.endswith(("_tool_result", "_call_output")):
        return "result"
    if kind.endswith("_call"):
        # A hosted tool of the Responses API: the item is called after it.
        return "hosted"
    if kind.startswith("tool-"):
        # The AI SDK's UI messages: the part is called after the tool.
        return "ui-call"
    return "aside" if kind.startswith("data-") else None
