"""Rows of recorded replies: which question and trial a row is of, and the reply to each turn in it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Evidence, Reply, Timings, ToolCall
from answerkey.transcripts.conversation import Asked, exchanges_of
from answerkey.transcripts.documents import read_transcript
from answerkey.transcripts.fields.reply_names import TEXT_NAMES
from answerkey.transcripts.fields.tool_calls import read_calls
from answerkey.transcripts.json_shapes import as_dict
from answerkey.transcripts.message_reading import looks_like_messages, read_messages
from answerkey.transcripts.payloads import EVIDENCE
from answerkey.transcripts.reply_mapping import ReplyMapping, reply_from_payload

__all__ = ["PLAIN_REPLY_FIELDS", "plain_reply", "question_in_row", "reply_in_row"]

# What a plain row has of its reply.
PLAIN_REPLY_FIELDS = frozenset({"answer", "tools_used", "latency_ms", "error"})

_REPLY_NAMES = frozenset({*TEXT_NAMES, "error", "tools_used", "tool_calls", "messages"})
_ASKED = ("question", "input", "query", "user_input", "prompt")


def question_in_row(row: Mapping[str, Json]) -> str | None:
    """What was asked, where the row says it: by name, in a LangSmith run's inputs, or as the first user message."""
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


def plain_reply(row: Mapping[str, Any]) -> Reply | None:
    """The reply of a row that has only PLAIN_REPLY_FIELDS of it; None where something in it must be looked at.

    Nothing else than `reply_from_payload` gives, in a fifth of the time: a log has millions of such rows.
    """
    text, used, latency = row["answer"], row.get("tools_used"), row.get("latency_ms")
    if row.get("error"):
        return None
    if text is not None and (type(text) is not str or not text.isascii() or "\0" in text):
        return None
    calls: tuple[ToolCall, ...] = ()
    if used:
        if type(used) is not list or len(used) > _MOST_CALLS:
            return None
        try:
            calls = _calls(tuple(used))
        except TypeError:
            # Objects, which tell more than names.
            return None
    elif used is not None and used != []:
        return None
    timings = _NOT_TIMED
    if latency is not None:
        if type(latency) is int:
            latency = float(latency)
        if type(latency) is not float or not 0.0 <= latency < _LONGEST:
            return None
        timings = Timings(latency_ms=latency)
    return Reply(text=text, tool_calls=calls, timings=timings, evidence=EVIDENCE[used is not None, False])


@lru_cache(maxsize=10_000)
def _calls(names: tuple[str, ...]) -> tuple[ToolCall, ...]:
    if not all(type(name) is str and name.isascii() and "\0" not in name for name in names):
        raise TypeError
    return read_calls(list(names))


_NOT_TIMED = Timings()
_LONGEST = 1e15
_MOST_CALLS = 20
