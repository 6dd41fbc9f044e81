"""Rows of recorded replies: which question and trial a row is of, and the reply to each turn in it."""

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Evidence, Reply
from answerkey.transcripts.conversation import Asked, exchanges_of
from answerkey.transcripts.documents import read_transcript
from answerkey.transcripts.fields.content_text import TEXT_NAMES
from answerkey.transcripts.json_shapes import as_dict
from answerkey.transcripts.message_reading import looks_like_messages, read_messages
from answerkey.transcripts.payloads import NAMES_READ, SOURCE_NAMES
from answerkey.transcripts.plain_json import decode_json
from answerkey.transcripts.reply_mapping import ReplyMapping, reply_from_payload

_REPLY_NAMES = frozenset({*TEXT_NAMES, "error", "tools_used", "tool_calls", "messages"})
# Names of a reply's fields that hold no reply by themselves.
_BESIDE = frozenset(
    {
        *("turns", "tools", "usage", "tokens", "tokenUsage", "token_usage", "usage_metadata", "cost"),
        *(
            "latency_ms",
            "latencyMs",
            "first_byte_ms",
            "ttft_ms",
            "conversation_id",
            "response_id",
            "trace_id",
        ),
    }
)
_ASKED = ("question", "input", "query", "user_input", "prompt")


# What tables and exports write as JSON in a text, and what must come of it.
_AS_JSON_TEXT: dict[str, type] = {
    **dict.fromkeys(("messages", "contents", "replies", *SOURCE_NAMES), list),
    "usage": dict,
}


def read_json_texts(row: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row with its lists and objects that were written as JSON in a text."""
    read: dict[str, Json] = {}
    for name, kind in _AS_JSON_TEXT.items():
        text = row.get(name)
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            # What is no JSON is what it says.
            with suppress(ValueError, RecursionError):
                value = decode_json(text)
                if isinstance(value, kind):
                    read[name] = value
    return {**row, **read} if read else row


def check_messages(row: Mapping[str, Json]) -> None:
    """Raise ValueError where a row's only reply would be in `messages`, and these are a text that holds none."""
    if not isinstance(row.get("messages"), str):
        return
    others = NAMES_READ & (row.keys() - {"messages", *_BESIDE})
    if not others and not looks_like_messages(read_json_texts(row).get("messages")):
        raise ValueError("'messages' is a text that holds no list of messages; write them as a JSON list")


def question_in_row(row: Mapping[str, Json]) -> str | None:
    """What was asked, where the row says it: by name, in a LangSmith run's inputs, or as the first user message."""
    row = read_json_texts(row)
    for holder in (row, as_dict(row.get("inputs")), as_dict(row.get("vars"))):
        for name in _ASKED:
            if isinstance(holder.get(name), str):
                return str(holder[name])
    if looks_like_messages(row.get("messages")):
        said = [text for texts, _ in exchanges_of(read_messages(row["messages"])) for text in texts]
        return next(filter(None, said), None)
    return None


def reply_in_row(
    row: Mapping[str, Json],
    question: str,
    turn: int = 0,
    mapping: ReplyMapping | None = None,
    *,
    in_turns: bool = False,
) -> Reply | None:
    """The reply to a turn (0 is the first); None if the row has no such turn."""
    row = read_json_texts(row)
    asked = Asked(question, turn, in_turns or turn > 0, recorded=True)
    for name in ("replies", "turns"):
        parts = row.get(name)
        if isinstance(parts, list) and any(_tells_a_reply(part) for part in parts):
            return _reply(parts[turn], asked, mapping) if turn < len(parts) else None
    if asked.in_turns and mapping is None and looks_like_messages(row.get("messages")):
        # What the row says beside them is not said of this turn.
        return read_transcript(row["messages"], asked)
    return _reply(row, asked, mapping) if turn == 0 else None


def _tells_a_reply(part: object) -> bool:
    """Whether an entry is a reply; a row's `turns` may as well be the questions and expectations of a conversation."""
    return isinstance(part, str) or not _REPLY_NAMES.isdisjoint(as_dict(part))


def _reply(part: object, asked: Asked, mapping: ReplyMapping | None) -> Reply:
    """A reply; one that answerkey wrote itself says how it was observed."""
    reply = reply_from_payload(part, mapping=mapping, asked=asked)
    evidence = as_dict(as_dict(part).get("reply")).get("evidence", as_dict(part).get("evidence"))
    if isinstance(evidence, dict):
        try:
            return msgspec.structs.replace(reply, evidence=msgspec.convert(evidence, Evidence))
        except msgspec.ValidationError:
            return reply
    return reply
