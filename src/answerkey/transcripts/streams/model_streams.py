"""The streams of model APIs, put together into the documents that would have come whole."""

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.fields.tool_calls import read_arguments
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, at, pick
from answerkey.transcripts.streams.pieces import Growing

_LONGEST_NAME = 1000
_CHAT_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def openai_chat(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The completion that chunks make, and whether it was told to be finished."""
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
        for choice in as_dicts(event.get("choices"))[:1]:
            # Some gateways end with a whole message in place of a delta.
            delta = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
            for part in _CHAT_TEXTS:
                growing.grow("message", part, delta.get(part))
            for fragment in as_dicts(delta.get("tool_calls")):
                calls.add(fragment)
            finish = as_str(choice.get("finish_reason")) or finish
    growing.finished()
    if made := calls.finished():
        message["tool_calls"] = [*made]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return document, finish is not None


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
        if kind in _ENDS and isinstance(response := event.get("response"), dict):
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
    """Calls whose arguments have grown as text, which they stay where they are no object."""
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


def gemini(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One response from several, which each carry some parts."""
    parts: list[Json] = []
    document: JsonObject = {}
    first: JsonObject = {}
    for event in events:
        document.update({name: value for name, value in event.items() if value is not None})
        for candidate in as_dicts(event.get("candidates"))[:1]:
            parts += as_dicts(at(candidate, "content", "parts"))
            first.update({name: value for name, value in candidate.items() if value is not None})
    document["candidates"] = [{**first, "content": {"role": "model", "parts": parts}}]
    return document, bool(pick(first, "finishReason", "finish_reason"))


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
