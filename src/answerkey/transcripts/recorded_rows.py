"""Rows of recorded replies: which question and trial a row is of, and the reply to each turn in it."""

from collections.abc import Mapping

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Evidence, Reply
from answerkey.transcripts.conversation import exchanges_of
from answerkey.transcripts.fields.reply_names import TEXT_NAMES
from answerkey.transcripts.json_shapes import as_dict
from answerkey.transcripts.known_formats import looks_like_messages, read_messages
from answerkey.transcripts.reply_mapping import ReplyMapping, reply_from_payload

__all__ = ["question_in_row", "reply_in_row"]

_REPLY_NAMES = frozenset({*TEXT_NAMES, "error", "tools_used", "tool_calls", "messages"})
_ASKED = ("question", "input", "query", "user_input", "prompt")


def question_in_row(row: Mapping[str, Json]) -> str | None:
    """What was asked, where the row says it: by name, in a LangSmith run's inputs, or as the first user message."""
    for holder in (row, as_dict(row.get("inputs")), as_dict(row.get("vars"))):
        for name in _ASKED:
            if isinstance(holder.get(name), str):
                return str(holder[name])
    if looks_like_messages(row.get("messages")):
        return next((said for said, _ in exchanges_of(read_messages(row["messages"])) if said), None)
    return None


def reply_in_row(
    row: Mapping[str, Json], question: str, turn: int, mapping: ReplyMapping | None = None
) -> Reply | None:
    """The reply to a turn (0 is the first); None if the row has no such turn."""
    for name in ("replies", "turns"):
        parts = row.get(name)
        if isinstance(parts, list) and any(_tells_a_reply(part) for part in parts):
            return _reply(parts[turn], mapping) if turn < len(parts) else None
    if mapping is None and looks_like_messages(row.get("messages")):
        found = _in_transcript(row, question, turn)
        if found is not None or turn:
            return found
    return _reply(row, mapping) if turn == 0 else None


def _tells_a_reply(part: object) -> bool:
    """Whether an entry is a reply; a row's `turns` may as well be the questions and expectations of a conversation."""
    return isinstance(part, str) or not _REPLY_NAMES.isdisjoint(as_dict(part))


def _in_transcript(row: Mapping[str, Json], question: str, turn: int) -> Reply | None:
    exchanges = exchanges_of(read_messages(row["messages"]))
    if len(exchanges) < 2:
        return None
    asked = question.strip()
    same = [reply for said, reply in exchanges if (said or "").strip() == asked]
    if same:
        # The same words may have been said twice; then the place in the conversation decides.
        return exchanges[turn][1] if turn < len(exchanges) and exchanges[turn][1] in same else same[-1]
    return exchanges[turn][1] if turn and turn < len(exchanges) else None


def _reply(part: object, mapping: ReplyMapping | None) -> Reply:
    """A reply; one that answerkey wrote itself says how it was observed."""
    reply = reply_from_payload(part, mapping=mapping, recorded=True)
    evidence = as_dict(as_dict(part).get("reply")).get("evidence", as_dict(part).get("evidence"))
    if isinstance(evidence, dict):
        try:
            return msgspec.structs.replace(reply, evidence=msgspec.convert(evidence, Evidence))
        except msgspec.ValidationError:
            return reply
    return reply
