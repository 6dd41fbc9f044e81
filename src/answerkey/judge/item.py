"""Item: what a judge gets to see of one reply, cut to size and hashed into the judgement's key."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.keyword import describe_keyword

# Of a conversation, the judge sees so many earlier turns.
_EARLIER_TURNS = 10


class Item(msgspec.Struct, frozen=True, dict=True):
    """Fields of text and JSON that reach the judge as data, by name."""

    fields: dict[str, Any]
    # Whether there was more evidence than is shown.
    evidence_cut: bool = False

    @cached_property
    def hash(self) -> str:
        """Changes with anything that the judge sees."""
        return blake2b(msgspec.json.encode(self.fields, order="deterministic"), digest_size=16).hexdigest()


def item_of(
    question: Question,
    reply: Reply,
    *,
    earlier: Sequence[tuple[str, str | None]] = (),
    context: str | None = None,
    max_chars: int = 20_000,
    for_claims: bool = False,
) -> Item:
    """What is shown of one reply; `earlier` are the conversation's turns before it.

    `for_claims`: to have its claims checked, for which the reference answer is no evidence that the chatbot had, but a tool
    that found nothing is.
    """
    fields = _asked(question, earlier, context, max_chars)
    if not for_claims:
        fields.update(_expected(question, max_chars))
    fields["reply"] = _cut(reply.text or "", max_chars)
    seen, cut = _seen(reply, max_chars, empty_results=for_claims)
    return Item({**fields, **seen}, cut)


def pair_of(question: Question, first: Reply, second: Reply, *, max_chars: int = 20_000) -> Item:
    """What is shown of two replies to the same question, in this order."""
    replies = {"reply_1": _cut(first.text or "", max_chars), "reply_2": _cut(second.text or "", max_chars)}
    asked = _asked(question, (), question.context, max_chars)
    return Item({**asked, **_expected(question, max_chars), **replies})


def _asked(
    question: Question, earlier: Sequence[tuple[str, str | None]], context: str | None, max_chars: int
) -> dict[str, Any]:
    fields: dict[str, Any] = {"question": _cut(question.question, max_chars)}
    if context:
        fields["context"] = _cut(context, max_chars)
    if earlier:
        fields["conversation_so_far"] = [
            {"user": _cut(asked, max_chars), "chatbot": _cut(answered or "", max_chars)}
            for asked, answered in earlier[-_EARLIER_TURNS:]
        ]
    return fields


def _expected(question: Question, max_chars: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if question.reference_answer:
        fields["reference_answer"] = _cut(question.reference_answer, max_chars)
    if question.expected_keywords:
        fields["expected_facts"] = [describe_keyword(keyword) for keyword in question.expected_keywords]
    if question.forbidden_keywords:
        fields["must_not_say"] = [describe_keyword(keyword) for keyword in question.forbidden_keywords]
    return fields


def _seen(reply: Reply, max_chars: int, *, empty_results: bool) -> tuple[dict[str, Any], bool]:
    """Sources and tool results, as far as there is room for them, and whether there was too little."""
    found: list[tuple[str, dict[str, Any], str, str]] = [
        ("sources", {"title": source.title or source.id or ""}, "text", source.text)
        for source in reply.sources
        if source.text
    ]
    for call in reply.tool_calls:
        if call.result is not None or call.error or (empty_results and call.result_seen):
            result = call.error or call.result
            text = result if isinstance(result, str) else _json(result)
            found.append(("tool_results", {"tool": call.name}, "error" if call.error else "result", text))
    fields: dict[str, Any] = {}
    room = max_chars
    for kind, named, field, text in found:
        if room > 0:
            fields.setdefault(kind, []).append({**named, field: _cut(text, room)})
        room -= len(text)
    return fields, room < 0


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return str(value)


def _cut(text: str, most: int) -> str:
    # A lone surrogate cannot be sent as UTF-8.
    text = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most} characters left out]"
