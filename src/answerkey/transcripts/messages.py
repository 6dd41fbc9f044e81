"""Messages and parts of every format, read by their own type names; and the reply of a conversation.

The exchange that answers the question is chosen, the last text of the assistant taken, and results are matched to calls.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from answerkey.model.reply import (
    Evidence,
    Failure,
    Json,
    JsonObject,
    Message,
    Part,
    Reply,
    Role,
    Source,
    ToolCall,
    Usage,
)
from answerkey.transcripts.fields import (
    UNNAMED,
    add_usage,
    ranked,
    read_call,
    read_citation,
    read_result,
    read_source,
    read_sources,
    read_usage,
)
from answerkey.transcripts.json_values import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    by_word,
    pick,
    safe_text,
    spoken_text,
    words,
)

# How a part is read.
PartWord = Literal["text", "call", "result", "hosted", "ui-call", "source", "step", "thought", "aside"]


class _MessageWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `message_words.json`: a new format is a word or two in it.

    No word means two things, so that a message is read by its own fields, without guessing first which format it is in.
    """

    # The values of `role`, in small letters.
    roles: dict[Role, list[str]]
    # The values of `type`, of `kind`, and the classes of messages that have no role: of LangChain, the Claude Agent SDK (as
    # objects and as lines), Pydantic AI and AutoGen, where the source of a TextMessage names the speaker.
    message_types: dict[Role, list[str]]
    # The values of a part's `type`, `kind`, `part_kind` or `block_type`, and the classes of parts. Asides are what is shown or
    # sent along, and what is arranged between a model and its host.
    parts: dict[PartWord, list[str]]
    # Of parts that have no type, the field that they hold (Gemini, Bedrock, A2A, Haystack), in this order.
    keyed_parts: dict[PartWord, list[str]]


_WORDS = msgspec.json.decode(Path(__file__).with_name("message_words.json").read_bytes(), type=_MessageWords)
_ROLES = by_word(_WORDS.roles)
_MESSAGE_TYPES = by_word(_WORDS.message_types)
# How the items of a message's content are read where they do not say it themselves.
_ITEMS: dict[str, PartWord] = {"ToolCallRequestEvent": "call", "ToolCallExecutionEvent": "result"}
_PARTS = by_word(_WORDS.parts)
KEYED_PARTS = by_word(_WORDS.keyed_parts)


def part_word(kind: str) -> PartWord | None:
    """How a part that calls itself `kind` is read; None if it is unknown."""
    word = _PARTS.get(kind)
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


_CONTENTS = words("content parts blocks contents items tool_calls toolCalls toolInvocations function_call")
_KINDS = ("type", "part_kind", "kind", "block_type", "content_type", "$type")
_TEXTS = ("text", "content", "refusal", "value")
_CALL_LISTS = ("tool_calls", "toolCalls", "toolInvocations")
_CALL_FIELDS = frozenset({*_CALL_LISTS, "function_call"})
_USAGES = ("usage", "usage_metadata", "models_usage", "metadata", "response_metadata", "cost")
# Where a message, and a part, has what was thought.
_MESSAGE_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_THOUGHTS = ("thinking", "text", "reasoning", "content", "summary", "reasoningText")
_MAX_NAME_LENGTH = 60


def looks_like_messages(items: object) -> bool:
    """Whether a list is one of messages, in any dialect: all but a few odd ones are."""
    if not isinstance(items, list) or not items:
        return False
    known = 0
    for item in items:
        if not isinstance(item, dict):
            return False
        if is_message(item) or (type(item.get("role")) is str and type(item.get("text")) is str):
            known += 1
        elif "role" not in item and _kind(item) is None:
            return False
    return known > 0


def with_roles(items: Json) -> list[Json]:
    """Plain messages that name their speaker by another word than `role`; empty if they are not that."""
    messages = as_dicts(items)
    if not messages or len(messages) < len(as_list(items)):
        return []
    for name in ("sender", "from", "author", "speaker"):
        roles = [_ROLES.get(str(item.get(name)).lower()) for item in messages]
        if all(roles) and all(type(item.get("text", item.get("content"))) is str for item in messages):
            return [{**item, "role": role} for item, role in zip(messages, roles, strict=True)]
    return []


# The names under which a payload or a row may have a transcript.
TRANSCRIPT_NAMES = ("messages", "history", "chat_history", "conversation", "transcript")


def transcripts_in(payload: Mapping[str, Json]) -> Iterator[list[Json]]:
    """The transcripts under the usual names, with the role as the word for who speaks."""
    for name in TRANSCRIPT_NAMES:
        items = payload.get(name)
        if messages := as_list(items) if looks_like_messages(items) else with_roles(items):
            yield messages


def is_message(item: JsonObject) -> bool:
    """Whether an object is a message, or an item of the Responses API that is equivalent to one."""
    if type(item.get("role")) is str:
        return not item.keys().isdisjoint(_CONTENTS)
    item = unwrap_message(item)
    kind = _kind(item)
    if kind in _MESSAGE_TYPES:
        return not item.keys().isdisjoint(_CONTENTS) or "role" in item or "total_cost_usd" in item
    if kind is None or kind == item.get("$type"):
        # A class of that name alone: an event of a stream may be called like a part.
        return False
    return part_word(kind) in ("call", "result", "hosted") and "function" not in item


def has_known_kind(item: JsonObject) -> bool:
    """Whether an object calls itself a message or a part of one."""
    kind = _kind(item)
    return kind is not None and (kind in _MESSAGE_TYPES or part_word(kind) is not None)


def read_messages(items: object) -> list[Message]:
    """The messages of a list, each read by what it says of itself."""
    return [read_message(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def read_message(item: JsonObject) -> Message:
    """One message; what is not understood of it is kept as an unread part."""
    role = _role(item)
    if role is None:
        item = unwrap_message(item)
        role = _role(item)
    return _by_type(item) if role is None else _by_role(item, role, None)


def _role(item: JsonObject) -> Role | None:
    given = item.get("role")
    return (_ROLES.get(given) or _ROLES.get(given.lower())) if type(given) is str else None


def _by_role(item: JsonObject, role: Role, items: PartWord | None) -> Message:
    return _tool_message(item, items) if role == "tool" else _spoken_message(item, role, items)


def unread(kind: str, raw: Json) -> Part:
    """A part that was not understood, by the name that it gives itself."""
    return Part("unread", text=safe_text(kind[:_MAX_NAME_LENGTH]), raw=raw)


def unwrap_message(item: JsonObject) -> JsonObject:
    """A message out of its serialisation: LangChain's constructor and {type, data}, Claude's lines, agents' items."""
    kwargs, path = item.get("kwargs"), item.get("id")
    if isinstance(kwargs, dict) and isinstance(path, list) and "lc" in item:
        return {**kwargs, "type": path[-1] if path and isinstance(path[-1], str) else None}
    for name in ("data", "message", "raw_item"):
        inner = item.get(name)
        if isinstance(inner, dict) and "content" not in item:
            return {**inner, "type": item["type"]} if name == "data" and "type" in item else inner
    return item


def _kind(item: JsonObject) -> str | None:
    for name in _KINDS:
        kind = item.get(name)
        if type(kind) is str and kind:
            return kind
    return None


def _by_type(item: JsonObject) -> Message:
    """A message that has no role, or an unusual one."""
    given, kind = item.get("role"), _kind(item)
    known = _MESSAGE_TYPES.get(kind or "")
    if kind is not None and known is not None:
        if kind in ("ResultMessage", "result"):
            # The last of Claude's: what was said last, and what all of it used.
            said = as_str(item.get("result"))
            return Message("assistant", (Part("text", text=safe_text(said)),) if said else ())
        return _by_role(item, "user" if item.get("source") == "user" else known, _ITEMS.get(kind))
    if kind is not None and "role" not in item:
        part = read_part(item)
        return Message("tool" if part.kind == "result" else "assistant", (part,), None, None)
    # An unknown role: most likely the chatbot, but that is not certain.
    message = _spoken_message(item, "assistant", None)
    odd = unread(f"role {given}" if isinstance(given, str) else "a message without a role", item)
    return msgspec.structs.replace(message, parts=(*message.parts, odd))


def _spoken_message(item: JsonObject, role: Role, items: PartWord | None) -> Message:
    content = item.get("content")
    if content is None and type(item.get("text")) is str:
        content = item["text"]
    only_text = type(content) is str and "parts" not in item
    if type(content) is str and only_text:
        parts = [Part("text", content if content.isascii() else safe_text(content))]
    else:
        parts = _parts(item, content, items)
    if role == "assistant":
        _add_calls(parts, item)
        thought = next((text for name in _MESSAGE_THOUGHTS if (text := as_str(item.get(name)))), None)
        if thought is not None:
            parts.append(Part("thought", safe_text(thought)))
        if item.get("refusal") is not None and not any(part.kind == "text" for part in parts):
            parts.append(Part("text", as_str(item["refusal"])))
        if "annotations" in item:
            parts += _cited(item["annotations"])
        usage = None if item.keys().isdisjoint(_USAGES) else _usage(item)
        has_place = not only_text or not item.keys().isdisjoint(_CALL_FIELDS)
        return Message(role, tuple(parts), usage, as_str(item.get("id")), has_place)
    if role == "user" and any(part.kind == "result" for part in parts):
        # A user message that only brings results is a tool's.
        if not any(part.kind == "text" for part in parts):
            role = "tool"
    elif item.get("kind") == "request" and not any(part.kind == "text" for part in parts):
        # Pydantic AI's first request may hold the instructions only.
        role = "system"
    return Message(role, tuple(parts))


def _parts(item: JsonObject, content: Json, items: PartWord | None) -> list[Part]:
    """The parts of a message whose content is more than a string."""
    listed = item.get("parts")
    given = listed if isinstance(listed, list) else pick(item, "content", "blocks", "contents", "items")
    if given is None:
        return []
    if not isinstance(given, list):
        said = spoken_text(given)
        return [unread(_kind(as_dict(given)) or "content", given)] if said is None else [Part("text", said)]
    parts: list[Part] = []
    for one in given:
        if isinstance(one, str):
            parts.append(Part("text", safe_text(one)))
        elif not isinstance(one, dict):
            parts.append(unread(f"a part that is {type(one).__name__}", one))
        elif one.get("type") == "step-start":
            # What was said before the last step was not yet the answer.
            parts = [Part("aside", part.text) if part.kind == "text" else part for part in parts]
        else:
            parts.append(read_part(one, items))
    if type(content) is str and content and not any(part.kind == "text" for part in parts):
        parts.append(Part("text", safe_text(content)))
    return parts


def _add_calls(parts: list[Part], item: JsonObject) -> None:
    """Add the calls that are beside the content; some formats have them in both fields."""
    made: list[Json] = []
    for name in _CALL_LISTS:
        if name in item:
            made += as_list(item[name])
    if "invalid_tool_calls" in item:
        unreadable = "the call's arguments could not be read"
        for call in as_dicts(item["invalid_tool_calls"]):
            made.append({**call, "error": call.get("error") or unreadable})
    if "function_call" in item and isinstance(item["function_call"], dict):
        made.append(item["function_call"])
    if not made and "additional_kwargs" in item:
        # LangChain's messages of older versions keep the provider's own form.
        made = as_list(as_dict(item["additional_kwargs"]).get("tool_calls"))
    if not made:
        return
    calls = [_invocation(call) if "state" in as_dict(call) else read_call(call) for call in made]
    known = {part.call.id for part in parts if part.kind == "call" and part.call is not None}
    parts += [Part("call", None, call) for call in calls if call.id is None or call.id not in known]


def _tool_message(item: JsonObject, items: PartWord | None) -> Message:
    """A tool's message: its parts are results, or it is one itself."""
    content = item.get("content")
    if type(content) is not str:
        found = [part for part in _parts(item, content, items) if part.kind == "result"]
        if found:
            return Message("tool", tuple(found))
    sources = _documents(item["artifact"]) if item.get("artifact") is not None else ()
    return Message("tool", (Part("result", None, read_result(item), sources),))


def read_part(item: JsonObject, otherwise: PartWord | None = None) -> Part:
    """One part, by its type or by the field that it holds; `otherwise` for one that says neither."""
    kind = _kind(item)
    if kind is None or (kind not in _PARTS and kind == item.get("$type")):
        name = next((key for key in KEYED_PARTS if item.get(key) is not None), None)
        if name is not None:
            return _keyed_part(name, item)
        if kind is None and "tool_kwargs" in item:
            # LlamaIndex's serialisation leaves the type out.
            return _call(item)
        if otherwise is None and kind is None:
            return unread("a part without a type", item)
    word = part_word(kind) if kind is not None else otherwise
    match word or otherwise:
        case "text":
            return _text(item)
        case "call":
            return _call(item)
        case "result":
            return Part("result", None, read_result(item), _search_results(item))
        case "hosted":
            return _hosted(str(kind), item)
        case "ui-call":
            return Part("call", None, _ui_call(str(kind), item))
        case "source":
            given = as_dict(item.get("source")) or item
            title = pick(given, "title", "filename")
            return Part("aside", None, None, (read_source({**given, "title": title}, None),))
        case "thought":
            return _thought(item)
        case None:
            return unread(str(kind), item)
        case _:
            return Part("aside")


def _call(item: JsonObject) -> Part:
    return Part("call", None, read_call({name: value for name, value in item.items() if value is not None}))


def _text(item: JsonObject) -> Part:
    said = next((value for name in _TEXTS if (value := item.get(name)) is not None), None)
    if item.get("thought") is True:
        return Part("thought", as_str(said))
    if type(said) is not str:
        said = spoken_text(as_dict(said).get("value", said)) if said is not None else None
    notes = item.get("citations") or item.get("annotations")
    sources = tuple([read_citation(note) for note in as_dicts(notes)]) if notes else ()
    return Part("text", None if said is None else safe_text(said), None, sources)


def _thought(item: JsonObject) -> Part:
    """What was thought: a text, or a list of them; what is held back, or is only a signature, says nothing."""
    told = [as_str(spoken_text(_unthought(item[name]))) for name in _THOUGHTS if item.get(name)]
    return Part("thought", next((text for text in told if text), None))


def _unthought(value: Json) -> Json:
    """Parts without their type, by which they would not count as said."""
    if isinstance(value, list):
        return [{**one, "type": "text"} if isinstance(one, dict) else one for one in value]
    return value


def _keyed_part(name: str, item: JsonObject) -> Part:
    value = item[name]
    inner = as_dict(value)
    match KEYED_PARTS[name]:
        case "text":
            return _text(item)
        case "thought":
            return _thought(inner)
        case "call":
            if name.lower().startswith("executable"):
                return Part("call", None, ToolCall(name="code_execution", arguments=inner))
            return _call(inner)
        case "result":
            if name.lower().startswith("code"):
                failed = None if inner.get("outcome") in (None, "OUTCOME_OK") else str(inner["outcome"])
                ran = {"name": "code_execution", "output": inner.get("output"), "error": failed}
                return Part("result", None, read_result(ran))
            return Part("result", None, read_result(_gemini_result(inner)))
        case _:
            return Part("aside")


def _gemini_result(inner: JsonObject) -> JsonObject:
    """Gemini's result: an object that holds what was brought, or the error."""
    response = inner.get("response")
    if not isinstance(response, dict):
        return inner
    # `result` may also be one field of several that the tool itself gave.
    brought = response["result"] if response.keys() == {"result"} else response.get("output", response)
    return {**inner, "response": brought, "status": None, "error": response.get("error")}


def _hosted(kind: str, item: JsonObject) -> Part:
    """A call of a tool that the provider runs itself; what it found are sources."""
    action, results = as_dict(item.get("action")), item.get("results")
    given = {**action, "queries": item.get("queries"), "code": item.get("code"), "sources": None}
    call: JsonObject = {
        "name": kind.removesuffix("_call"),
        "id": pick(item, "call_id", "id"),
        "arguments": {name: part for name, part in given.items() if part is not None},
        "status": item.get("status"),
    }
    if results is not None:
        call["result"] = results
    return Part("call", None, read_call(call), (*read_sources(results), *read_sources(action.get("sources"))))


def _invocation(item: Json) -> ToolCall:
    # A result that is undefined in JavaScript has no field.
    return read_call(
        {"result": None, **item} if isinstance(item, dict) and item.get("state") == "result" else item
    )


def _ui_call(kind: str, part: JsonObject) -> ToolCall:
    """A call in a UI message of the AI SDK, with what came of it by then."""
    if isinstance(part.get("toolInvocation"), dict):
        return _invocation(part["toolInvocation"])
    state = part.get("state")
    call: JsonObject = {
        "name": as_str(part.get("toolName")) or kind.removeprefix("tool-"),
        "id": part.get("toolCallId"),
        "input": pick(part, "input", "rawInput"),
    }
    if state in ("output-available", "output-error") or part.get("output") is not None:
        call["output"] = part.get("output")
    if state == "output-error":
        call["error"] = part.get("errorText") or True
    elif state == "output-denied":
        call["error"] = "the call was denied"
    return read_call(call)


def _cited(notes: Json) -> list[Part]:
    cited = [as_dict(note.get("url_citation")) for note in as_dicts(notes)]
    pages = [note for note in cited if as_str(note.get("url"))]
    return [
        Part("aside", None, None, (read_citation(note, rank),)) for rank, note in enumerate(pages, start=1)
    ]


def _search_results(item: JsonObject) -> tuple[Source, ...]:
    """The search results in what a tool brought."""
    content = item.get("content")
    if type(content) is not list:
        return ()
    return read_sources(
        [one for one in as_dicts(content) if one.get("type") in ("search_result", "web_search_result")]
    )


def _documents(value: object) -> tuple[Source, ...]:
    """Documents that a retriever tool put beside its text."""
    if isinstance(value, dict):
        value = value.get("documents", [value] if "page_content" in value else None)
    return ranked(read_sources([item for item in as_list(value) if _is_document(item)]))


def _is_document(item: object) -> bool:
    if isinstance(item, list) and len(item) == 2:
        item = item[0]
    item = as_dict(item)
    return "page_content" in item or "page_content" in as_dict(item.get("kwargs"))


def _usage(item: JsonObject) -> Usage | None:
    given = pick(item, "usage", "usage_metadata", "models_usage")
    if given is None:
        beside = as_dict(item.get("metadata"))
        given = pick(beside, "usage", "totalUsage") or as_dict(item.get("response_metadata")).get(
            "token_usage"
        )
    return read_usage(given) if given is not None else None


# Conversations to replies.


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
