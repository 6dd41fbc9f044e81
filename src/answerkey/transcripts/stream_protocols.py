"""The protocols of streams: events of model APIs and agent frameworks, assembled into documents.

Each function returns the document, and whether the stream's own mark of its end was seen: None where it has no such mark, so that
only the transport can show that nothing is missing.
"""

from collections.abc import Hashable

from answerkey.model.reply import Json, JsonObject
from answerkey.transcripts.fields import read_arguments
from answerkey.transcripts.json_values import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    at,
    either,
    pick,
    spoken_text,
)
from answerkey.transcripts.messages import is_message, read_message, unwrap_message


class Growing:
    """Objects in the order in which a stream began them, found by a key; some of their fields grow by pieces."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, JsonObject] = {}
        self._pieces: dict[tuple[Hashable, str], list[str]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._parts

    def part(self, key: Hashable, /, **fields: Json) -> JsonObject:
        """The object of a key; created with these fields if it is new."""
        return self._parts.setdefault(key, fields)

    def grow(self, key: Hashable, field: str, piece: object) -> None:
        """Append text to a field; other values are ignored."""
        if isinstance(piece, str):
            self._pieces.setdefault((key, field), []).append(piece)

    def forget(self, key: Hashable, field: str) -> None:
        """Drop the pieces of a field that arrived whole."""
        self._pieces.pop((key, field), None)

    def finished(self) -> list[JsonObject]:
        """All objects with their complete fields."""
        for (key, field), pieces in self._pieces.items():
            if key in self._parts:
                begun = self._parts[key].get(field)
                self._parts[key][field] = "".join([begun, *pieces] if isinstance(begun, str) else pieces)
        self._pieces.clear()
        return list(self._parts.values())


# The streams of model APIs, put together into the documents that would have come whole.


_LONGEST_NAME = 1000
CHAT_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed")


def openai_chat(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The completion of the chunks, and whether it has a finish reason."""
    growing, calls = Growing(), _Calls()
    message = growing.part("message", role="assistant", content=None)
    document: JsonObject = {"object": "chat.completion"}
    finish: str | None = None
    for event in events:
        document["id"] = document.get("id") or event.get("id")
        if isinstance(event.get("usage"), dict):
            document["usage"] = event["usage"]
        if event.get("error"):
            document["error"] = event["error"]
        for choice in first_choice(event):
            # Some gateways end with a whole message in place of a delta.
            delta = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
            for part in CHAT_TEXTS:
                growing.grow("message", part, delta.get(part))
            for fragment in as_dicts(delta.get("tool_calls")):
                calls.add(fragment)
            finish = as_str(choice.get("finish_reason")) or finish
    growing.finished()
    if made := calls.finished():
        message["tool_calls"] = [*made]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return document, finish is not None


def first_choice(event: JsonObject) -> list[JsonObject]:
    """The choice of index 0, which gateways may leave out: a model may be asked for several answers."""
    return [choice for choice in as_dicts(event.get("choices")) if not choice.get("index")][:1]


class _Calls:
    """Calls out of fragments: by id if that was seen, a new call if its id is new, else by index, else the last one."""

    def __init__(self) -> None:
        self._functions = Growing()
        self._calls: list[JsonObject] = []
        self._at_id: dict[str, int] = {}
        self._at_index: dict[str, int] = {}

    def add(self, fragment: JsonObject) -> None:
        identity, index = as_str(fragment.get("id")), fragment.get("index")
        if identity is not None:
            place = self._at_id.get(identity)
        else:
            last = len(self._calls) - 1 if self._calls else None
            place = last if index is None else self._at_index.get(str(index))
        if place is None:
            place = len(self._calls)
            self._calls.append({"id": identity or f"call_{place}", "index": index, "type": "function"})
        if "extra_content" in fragment:
            # Gemini's signature of what it thought, which it wants back.
            self._calls[place]["extra_content"] = fragment["extra_content"]
        if identity is not None:
            self._at_id[identity] = place
        if index is not None:
            self._at_index[str(index)] = place
        function = as_dict(fragment.get("function"))
        begun = self._functions.part(place, name="", arguments="")
        name, arguments = function.get("name"), function.get("arguments")
        so_far = str(begun["name"])
        # A name may come in pieces, or be sent again with every fragment.
        if isinstance(name, str) and name != so_far and len(so_far) < _LONGEST_NAME:
            begun["name"] = so_far + name
        if isinstance(arguments, dict):
            begun["arguments"] = arguments
        else:
            self._functions.grow(place, "arguments", arguments)

    def finished(self) -> list[JsonObject]:
        functions = self._functions.finished()
        return [{**call, "function": function} for call, function in zip(self._calls, functions, strict=True)]


def openai_responses(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The response that a stream's last event brings, or what of it arrived before the stream broke off."""
    items: list[Json] = []
    said: list[str] = []
    document: JsonObject = {"object": "response"}
    for event in events:
        kind = event.get("type")
        if kind in RESPONSE_ENDS and isinstance(response := event.get("response"), dict):
            return response, True
        if kind == "response.created":
            document["id"] = at(event, "response", "id")
        elif kind == "response.output_item.done":
            items.append(event.get("item"))
            said = []
        elif kind == "response.output_text.delta":
            said.append(as_str(event.get("delta")) or "")
        elif kind == "error":
            document["error"] = {"code": event.get("code"), "message": event.get("message")}
    if text := "".join(said):
        spoken: JsonObject = {"type": "output_text", "text": text}
        items.append({"type": "message", "role": "assistant", "content": [spoken]})
    return {**document, "output": items}, False


def anthropic(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The message that blocks make which start, grow and stop, and whether its own stop was seen."""
    message: JsonObject = {"type": "message", "role": "assistant"}
    blocks = Growing()
    finished = False
    for event in events:
        kind, index, delta = event.get("type"), str(event.get("index")), as_dict(event.get("delta"))
        if kind == "message_start":
            message.update(as_dict(event.get("message")))
        elif kind == "content_block_start":
            blocks.part(index, **as_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            block = blocks.part(index, type="text")
            for field in ("text", "thinking", "signature"):
                blocks.grow(index, field, delta.get(field))
            blocks.grow(index, "input", delta.get("partial_json"))
            if "citation" in delta:
                as_list(block.setdefault("citations", [])).append(delta["citation"])
        elif kind == "message_delta":
            message.update(delta)
            message["usage"] = {**as_dict(message.get("usage")), **as_dict(event.get("usage"))}
        elif kind == "message_stop":
            finished = True
        elif kind == "error":
            message["error"] = event.get("error") or True
    message["content"] = [*_with_arguments(blocks.finished())]
    return message, finished


def _with_arguments(calls: list[JsonObject]) -> list[JsonObject]:
    """Calls with the text of their arguments parsed; text that is not an object stays text."""
    for call in calls:
        if isinstance(call.get("input"), str):
            arguments, odd = read_arguments(call["input"])
            call["input"] = odd if arguments is None else arguments
    return calls


def bedrock(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The same for ConverseStream, whose events are named by the field that they hold."""
    blocks, calls = Growing(), Growing()
    document: JsonObject = {}
    for event in events:
        for name, value in event.items():
            told = as_dict(value)
            index = str(told.get("contentBlockIndex"))
            if name == "contentBlockStart" and (started := as_dict(at(told, "start", "toolUse"))):
                blocks.part(index, toolUse=calls.part(index, **{**started, "input": ""}))
            elif name == "contentBlockDelta":
                delta = as_dict(told.get("delta"))
                begun: JsonObject = {"text": ""} if "text" in delta else {"reasoningContent": {}}
                blocks.part(index, **begun)
                blocks.grow(index, "text", delta.get("text"))
                calls.grow(index, "input", at(delta, "toolUse", "input"))
            elif name in ("messageStop", "metadata"):
                document.update(told)
    _with_arguments(calls.finished())
    document["output"] = {"message": {"role": "assistant", "content": [*blocks.finished()]}}
    return document, bool(document.get("stopReason"))


def gemini(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """One response from several, which each carry some parts."""
    parts: list[Json] = []
    document: JsonObject = {}
    first: JsonObject = {}
    # Events with the reason why the response ends: some gateways write it into every one.
    reasons = 0
    for event in events:
        document.update({name: value for name, value in event.items() if value is not None})
        for candidate in as_dicts(event.get("candidates"))[:1]:
            parts += as_dicts(at(candidate, "content", "parts"))
            first.update({name: value for name, value in candidate.items() if value is not None})
            reasons += bool(either(candidate, "finishReason"))
    document["candidates"] = [{**first, "content": {"role": "model", "parts": parts}}]
    return document, None if reasons > 1 else reasons == 1


def ollama(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One document from messages that each carry a piece; the last one has the counts."""
    growing = Growing()
    whole = growing.part("message", role="assistant", content="")
    calls: list[Json] = []
    document: JsonObject = {}
    for event in events:
        document.update(event)
        message = as_dict(event.get("message"))
        growing.grow("message", "content", message.get("content", event.get("response")))
        growing.grow("message", "thinking", message.get("thinking"))
        calls += as_list(message.get("tool_calls"))
    document.pop("response", None)
    growing.finished()
    document["message"] = {**whole, "tool_calls": calls} if calls else whole
    return document, document.get("done") is True


# The streams of agent frameworks and their protocols, put together into messages or into the result of the run.


# What an event of the AI SDK on a tool's call brings, and the state that the call is in then.
_CALL_EVENTS = {
    "tool-input-available": ("input", "input", "input-available"),
    "tool-call": ("input", "input", "input-available"),
    "tool-output-available": ("output", "output", "output-available"),
    "tool-result": ("output", "output", "output-available"),
    "tool-output-error": ("errorText", "errorText", "output-error"),
    "tool-input-error": ("errorText", "errorText", "output-error"),
    "tool-error": ("error", "errorText", "output-error"),
    "tool-output-denied": ("errorText", "errorText", "output-denied"),
}
_MASTRA_NAMES = {"input": "args", "output": "result"}
_SOURCES = ("source", "source-url", "source-document")


def ai_sdk(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The UI message that the AI SDK's events build (those of its UI stream and of fullStream), and whether it was finished."""
    message: JsonObject = {"role": "assistant"}
    parts = Growing()
    text = 0
    finished = False
    for number, given in enumerate(events):
        # Mastra has the same events with their fields in a payload.
        event = {**given, **as_dict(given.get("payload"))}
        kind = given.get("type")
        if kind == "start":
            message["id"] = event.get("messageId")
        elif kind == "start-step":
            parts.part(number, type="step-start")
        elif kind == "text-delta":
            parts.part(("text", text), type="text", text="")
            parts.grow(("text", text), "text", event.get("delta", event.get("textDelta", event.get("text"))))
            continue
        elif kind == "error":
            message["error"] = event.get("errorText") or event.get("error") or True
        elif kind == "finish":
            finished = True
            usage = pick(event, "totalUsage", "usage") or at(event, "output", "usage")
            message["metadata"] = as_dict(event.get("messageMetadata")) or {"usage": usage}
        elif isinstance(kind, str) and kind in _SOURCES:
            parts.part(number, **event)
        elif isinstance(kind, str) and kind.startswith("tool-"):
            _sdk_call(parts, kind, event)
        # What follows anything but a delta is another text.
        text = number
    message["parts"] = [*parts.finished()]
    return message, finished


def _sdk_call(parts: Growing, kind: str, event: JsonObject) -> None:
    identity = as_str(event.get("toolCallId")) or as_str(event.get("id"))
    if kind not in _CALL_EVENTS and kind != "tool-input-start":
        return
    part = parts.part(
        ("call", identity), type="dynamic-tool", toolCallId=identity, toolName=None, state="input-streaming"
    )
    part["toolName"] = as_str(event.get("toolName")) or part["toolName"]
    if kind in _CALL_EVENTS:
        brought, field, part["state"] = _CALL_EVENTS[kind]
        given = event.get(brought, event.get(_MASTRA_NAMES.get(brought, "")))
        if kind == "tool-result" and event.get("isError") is True:
            field, part["state"] = "errorText", "output-error"
        part[field] = as_dict(given).get("message", given) if field == "errorText" else given


def ai_sdk_lines(lines: list[tuple[str, Json]]) -> tuple[JsonObject, bool]:
    """The same for the `CODE:JSON` lines of version 4, from (code, value) pairs."""
    return ai_sdk([event for code, value in lines for event in _events_of_line(code, value)])


def _events_of_line(code: str, value: Json) -> list[JsonObject]:
    """A line of version 4 as the events of version 5 that say the same."""
    item = as_dict(value)
    match code:
        case "0":
            return [{"type": "text-delta", "delta": value}]
        case "3":
            return [{"type": "error", "errorText": value}]
        case "9":
            return [{**item, "type": "tool-input-available", "input": item.get("args")}]
        case "a":
            return [{**item, "type": "tool-output-available", "output": item.get("result")}]
        case "f":
            return [{"type": "start", "messageId": item.get("messageId")}, {"type": "start-step"}]
        case "h":
            return [{"type": "source", "source": item}]
        case "d":
            return [{"type": "finish", "messageMetadata": {"usage": item.get("usage")}}]
        case _:
            return []


def ag_ui(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The messages that AG-UI's events build; a snapshot of them takes the place of what came before."""
    messages = Growing()
    document: JsonObject = {}
    finished = False
    for number, event in enumerate(events):
        kind = event.get("type")
        said, call = as_str(either(event, "messageId")), as_str(either(event, "toolCallId"))
        if kind in ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"):
            messages.part(("text", said), role=event.get("role") or "assistant", content="", id=said)
            messages.grow(("text", said), "content", event.get("delta"))
        elif kind in ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"):
            begun = messages.part(("call", call), type="function_call", call_id=call, name=None, arguments="")
            begun["name"] = as_str(either(event, "toolCallName")) or begun["name"]
            messages.grow(("call", call), "arguments", event.get("delta"))
        elif kind == "TOOL_CALL_RESULT":
            messages.part(number, role="tool", tool_call_id=call, content=event.get("content"))
        elif kind == "MESSAGES_SNAPSHOT":
            messages = Growing()
            for place, message in enumerate(as_dicts(event.get("messages"))):
                messages.part(("snapshot", place), **message)
        elif kind == "RUN_ERROR":
            document["error"] = {"code": event.get("code"), "message": event.get("message")}
        elif kind == "RUN_FINISHED":
            finished = True
    return {**document, "messages": [*messages.finished()]}, finished or "error" in document


def langgraph(events: list[Json]) -> tuple[JsonObject, bool | None]:
    """The messages that a graph's stream brings, in any of its modes; chunks of one message are put together."""
    messages, calls = Growing(), Growing()
    # The calls of messages that have come in chunks only.
    made: dict[Hashable, dict[str, JsonObject]] = {}
    begun = 0
    # Whether the last message has ended: a chunk of it has LangChain's mark or the model's reason. Older versions mark nothing.
    has_ended: bool | None = True
    is_graph = any(isinstance(event, list) for event in events)
    is_chunk = False
    for number, event in enumerate(events):
        for place, item in enumerate(map(unwrap_message, _event_messages(event))):
            identity, content = item.get("id"), item.get("content")
            is_chunk = str(item.get("type")).endswith("Chunk")
            # Chunks without an id are of one message until another kind of message comes.
            begun = begun if is_chunk else number + 1
            key: Hashable = (
                identity if isinstance(identity, str) else ("chunks", begun) if is_chunk else (number, place)
            )
            if not is_chunk or _is_last_chunk(item):
                has_ended = True
            elif content or item.get("tool_call_chunks") or key not in messages:
                has_ended = False if "chunk_position" in item else None
            if not is_chunk:
                # A whole message, or one again that an update brings after its chunks.
                messages.part(key).update(item)
                messages.forget(key, "content")
                made.pop(key, None)
                continue
            message = messages.part(key, **{**item, "content": "", "tool_calls": []})
            said = [part.get("text") for part in as_dicts(content)]
            for text in [content] if isinstance(content, str) else said:
                messages.grow(key, "content", text)
            if isinstance(item.get("usage_metadata"), dict):
                message["usage_metadata"] = item["usage_metadata"]
            for position, piece in enumerate(as_dicts(item.get("tool_call_chunks"))):
                index = str(position if piece.get("index") is None else piece["index"])
                call = calls.part((key, index), name=None, id=None, args="")
                call |= {name: call[name] or piece.get(name) for name in ("name", "id")}
                calls.grow((key, index), "args", piece.get("args"))
                made.setdefault(key, {})[index] = call
    calls.finished()
    found = messages.finished()
    for key, called in made.items():
        message = messages.part(key)
        message["tool_calls"] = [*as_list(message.get("tool_calls")), *called.values()]
    # A graph continues after a model's calls, a model does not.
    continues = bool(found) and (is_graph or not is_chunk) and not is_closing_answer(found[-1])
    return {"messages": [*found]}, None if has_ended and continues else has_ended


def is_closing_answer(message: Json) -> bool:
    """Whether a message is an answer with which a run ends: the assistant's, without a call."""
    read = read_message(unwrap_message(as_dict(message)))
    return read.role == "assistant" and not any(part.kind in ("call", "unread") for part in read.parts)


def _is_last_chunk(item: JsonObject) -> bool:
    return item.get("chunk_position") == "last" or "finish_reason" in as_dict(item.get("response_metadata"))


def _event_messages(event: Json) -> list[JsonObject]:
    """The messages in an event: of a node's update, of a state, or a pair of a message and its metadata."""
    if isinstance(event, dict):
        if isinstance(event.get("data"), (dict, list)) and "ns" in event:
            return _event_messages(event["data"])
        if is_message(event):
            return [event]
        holders = [event, *event.values()]
        return [item for held in holders for item in as_dicts(as_dict(held).get("messages"))]
    pair = as_list(event)
    if len(pair) == 2 and isinstance(pair[0], dict):
        return [pair[0]] if is_message(pair[0]) else []
    # (mode, event), with the namespace of a subgraph before them.
    return _event_messages(pair[-1]) if pair and isinstance(pair[-1], (dict, list)) else []


def adk(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """The messages of an ADK run: the contents of its events, without pieces of a text that come whole later."""
    document: JsonObject = {}
    messages: list[Json] = []
    for event in events:
        content = as_dict(event.get("content"))
        if event.get("partial") is not True and content:
            role = "user" if event.get("author") == "user" else content.get("role") or "model"
            messages.append({**content, "role": role, "usage_metadata": either(event, "usageMetadata")})
        if message := either(event, "errorMessage"):
            document["error"] = {"code": either(event, "errorCode"), "message": message}
    if events[-1].get("partial") is True:
        return {**document, "messages": messages}, False
    # In pieces, a text that is whole may be followed by calls of the same response.
    in_pieces = any(event.get("partial") is True for event in events)
    answers = bool(messages) and is_closing_answer(messages[-1])
    return {**document, "messages": messages}, True if answers and not in_pieces else None


def llama_index(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The messages of a LlamaIndex agent: its calls, their results and its outputs; without an output, the pieces of text."""
    messages: list[Json] = []
    pieces: list[str] = []
    finished = False
    for event in events:
        if "tool_kwargs" in event:
            name, identity = event.get("tool_name"), event.get("tool_id")
            output = as_dict(event.get("tool_output"))
            if not output:
                call = {"name": name, "id": identity, "arguments": event["tool_kwargs"]}
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            else:
                brought = pick(output, "content", "raw_output", "blocks")
                failed = output.get("is_error") is True
                messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": identity,
                        "name": name,
                        "content": brought,
                        "is_error": failed,
                    }
                )
            pieces = []
        elif isinstance(message := event.get("response"), dict):
            messages.append({"content": None, **message, "role": "assistant", "additional_kwargs": None})
            pieces, finished = [], True
        else:
            # `response` has all of the text so far, `delta` what is new.
            pieces.append(as_str(event.get("delta")) or "")
    if text := "".join(pieces):
        messages.append({"role": "assistant", "content": text})
    return {"messages": messages}, finished


def agent_framework(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """The response that the updates of Microsoft's Agent Framework make: texts and arguments grow until the role changes."""
    parts = Growing()
    messages: list[Json] = []
    document: JsonObject = {"type": "agent_response", "messages": messages}
    place, role = 0, None
    # Whether the last message has ended; not every model says why it ends, and calls are followed by their results.
    has_ended: bool | None = None
    says_why = any(event.get("finish_reason") for event in events)
    for event in events:
        place, role = place + (event.get("role") != role), event.get("role")
        document["response_id"] = event.get("response_id") or document.get("response_id")
        for content in as_dicts(event.get("contents")):
            kind = content.get("type")
            if kind == "usage":
                # The last one counts all steps.
                document["usage_details"] = content.get("usage_details")
                continue
            has_ended = False if says_why else None
            grown = {"text": "text", "function_call": "arguments"}.get(str(kind), "")
            key: Hashable = (place, str(kind), as_str(content.get("call_id")))
            is_new = key not in parts
            part = parts.part(key, **{**content, **({grown: ""} if grown else {})})
            parts.grow(key, grown, content.get(grown))
            if is_new:
                messages.append({"role": role, "contents": [part]})
        if reason := event.get("finish_reason"):
            has_ended = None if reason == "tool_calls" else True
    parts.finished()
    return document, has_ended


def strands(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The messages of a Strands run, which come whole between the pieces; each event also has the agent with its history."""
    whole = [as_dict(event.get("message")) for event in events]
    messages: list[Json] = [message for message in whole if "role" in message]
    return {"type": "agent_response", "messages": messages}, "result" in events[-1]


def semantic_kernel(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """The message that the pieces of Semantic Kernel's stream make; only its text is in them."""
    items = [item for event in events for item in as_dicts(at(event, "message", "items"))]
    text = "".join(said for item in items if isinstance(said := item.get("text"), str))
    others: list[Json] = [item for item in items if "text" not in item]
    content: JsonObject = {"content_type": "text", "text": text}
    message: JsonObject = {"content_type": "message", "role": "assistant", "items": [*others, content]}
    reasons = [at(event, "message", "finish_reason") for event in events]
    return {"message": message}, ("stop" in reasons) if any(reasons) else None


def message_stream(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """A stream of whole messages (Claude's SDK, AutoGen); a result at its end that has them all is the reply."""
    last = events[-1]
    if isinstance(last.get("messages"), list):
        return last, True
    if all(event.keys() == {"role", "content"} and event["role"] == "assistant" for event in events):
        # Message by message, or one in pieces: none of it is left out.
        return {"answer": "".join(spoken_text(event["content"]) or "" for event in events)}, None
    # Claude's SDK ends with what it cost.
    return {"messages": [*events]}, True if "total_cost_usd" in last else None


def openai_agents(events: list[JsonObject]) -> tuple[JsonObject, bool | None]:
    """The items that a run made; the model's own events say the same once more."""
    items = [
        at(event, "item", "raw_item") for event in events if event.get("type") == "run_item_stream_event"
    ]
    models = [as_dict(event.get("data")) for event in events if event.get("type") == "raw_response_event"]
    has_ended: bool | None = None
    if models:
        # The run ends with a response that asks for nothing more; its items come within it or after it.
        output = as_dicts(at(models[-1], "response", "output"))
        asks = any(str(item.get("type")).endswith("_call") for item in output)
        has_ended = None if asks else models[-1].get("type") in RESPONSE_ENDS
    return {"messages": [item for item in items if isinstance(item, dict)]}, has_ended


def pydantic_ai(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The result at the end of a run, or without it the messages of its calls and texts."""
    ends = [event.get("result") for event in events if event.get("event_kind") == "agent_run_result"]
    for result in reversed(ends):
        if isinstance(result, dict):
            return result, True
    parts = Growing()
    begun = 0
    for number, event in enumerate(events):
        kind, part = event.get("event_kind"), as_dict(event.get("part"))
        if kind == "part_start" and part.get("part_kind") in ("text", "thinking"):
            begun = number
            parts.part(begun, **part)
        elif kind == "part_delta":
            parts.grow(begun, "content", at(event, "delta", "content_delta"))
        elif kind in ("function_tool_call", "function_tool_result"):
            parts.part(number, **(part or as_dict(event.get("result"))))
    messages: list[Json] = [{"kind": "response", "parts": [part]} for part in parts.finished()]
    return {"messages": messages}, False


def smolagents(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The steps of a run and its final answer."""
    steps: list[Json] = [event for event in events if "step_number" in event]
    finals = [event for event in events if event.get("$type") == "FinalAnswerStep"]
    return {"steps": steps, "output": finals[-1].get("output") if finals else None}, bool(finals)
