"""From whatever a chatbot gives back to a Reply: the usual names, the known formats, or JMESPath expressions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.conversation import NOT_ASKED, Asked, with_evidence
from answerkey.transcripts.documents import streamed
from answerkey.transcripts.failures import failure_from_exception, failure_message, not_text
from answerkey.transcripts.fields.content_text import type_in_words
from answerkey.transcripts.payloads import read_named, read_payload
from answerkey.transcripts.plain_json import admit_reply, as_builtin, as_json, plain_reply
from answerkey.transcripts.streams.whole_stream import assemble_events

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult

_NOTHING = Reply()
# What an item of a stream may be once it is plain; anything else nobody knows.
_READABLE = (dict, list, str, int, float)
# The expressions whose name is not that of the reply's field.
_FIELDS = {"error": "failure", "cost": "usage"}


class Streamed(list[object]):
    """What a generator brought, item by item."""


class ReplyMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a chatbot's reply has its parts: JMESPath expressions; a part without one is found by its usual name."""

    text: str | None = None
    tool_calls: str | None = None
    sources: str | None = None
    error: str | None = None
    usage: str | None = None
    cost: str | None = None
    latency_ms: str | None = None
    first_byte_ms: str | None = None
    conversation_id: str | None = None
    response_id: str | None = None
    trace_id: str | None = None

    def __post_init__(self) -> None:
        for name, expression in self.expressions().items():
            _compiled(name, expression)

    def expressions(self) -> dict[str, str]:
        """The parts that have an expression."""
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: expression for name, expression in given if expression is not None}


def reply_from_payload(
    payload: object, *, mapping: ReplyMapping | None = None, asked: Asked = NOT_ASKED
) -> Reply:
    """The Reply in what a chatbot gave back to what was `asked`; never raises on its contents."""
    if mapping is not None and isinstance(payload, (dict, list)):
        return admit_reply(_mapped(payload, mapping, asked))
    return admit_reply(read_payload(payload, asked))


def reply_from_object(
    value: object, *, mapping: ReplyMapping | None = None, asked: Asked = NOT_ASKED
) -> Reply:
    """The same for a Python object, which may hold anything: what comes out can be written as JSON."""
    if isinstance(value, Streamed):
        return _reply_from_stream(value, mapping, asked)
    reply = reply_from_payload(as_builtin(value), mapping=mapping, asked=asked)
    return plain_reply(reply) if reply.tool_calls or reply.sources else reply


def _reply_from_stream(items: Streamed, mapping: ReplyMapping | None, asked: Asked) -> Reply:
    """The reply that a generator's items make: pieces of text, or events and messages of any SDK."""
    if all(isinstance(item, str) for item in items):
        return reply_from_payload("".join(map(str, items)), mapping=mapping, asked=asked)
    if all(isinstance(item, bytes) for item in items):
        return reply_from_payload(b"".join(item for item in items if isinstance(item, bytes)))
    plain = [as_builtin(item) for item in items]
    known = [item for item in plain if item is None or isinstance(item, _READABLE)]
    if not known:
        return Reply(failure=not_text("stream", plain[0]))
    payload, whole = assemble_events([as_json(item) for item in known])
    reply = streamed(reply_from_object(payload, mapping=mapping, asked=asked), whole)
    odd = [type_in_words(item) for item in plain if not (item is None or isinstance(item, _READABLE))]
    if not odd:
        return reply
    unread = (*reply.evidence.unread, *dict.fromkeys(odd))
    return with_evidence(reply, completeness="partial", tools_observed=False, unread=unread)


def reply_from_exception(error: BaseException) -> Reply:
    """A chatbot's exception as a reply: its failure, and the calls made before it if the exception carries them."""
    calls = getattr(error, "tool_calls", None)
    seen = {"tool_calls": calls} if isinstance(calls, (list, tuple)) else {}
    return msgspec.structs.replace(
        reply_from_object({"answer": None, **seen}), failure=failure_from_exception(error)
    )


@lru_cache(maxsize=256)
def _compiled(name: str, expression: str) -> "ParsedResult":
    import jmespath

    try:
        return jmespath.compile(expression)
    except ValueError as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", None))
        wrong = failure_message(str(error)) if position is None else f"error at position {position + 1}"
        raise ConfigError(f"reply.{name} = {expression!r} is not a JMESPath expression: {wrong}") from None


def _mapped(payload: object, mapping: ReplyMapping, asked: Asked) -> Reply:
    """A reply whose parts are where the configuration says, and under their usual names where it says nothing."""
    base = reply_from_payload(payload, asked=asked)
    found: JsonObject = {}
    for name, expression in mapping.expressions().items():
        try:
            found[name] = _compiled(name, expression).search(payload)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"reply.{name} = {expression!r} cannot be applied to the reply: {error}"
            return msgspec.structs.replace(base, failure=Failure("malformed", failure_message(message)))
    # What an expression is given for is what it finds, even if that is nothing; the rest is the reply's own.
    fields = {_FIELDS.get(name, name) for name in found} - {"latency_ms", "first_byte_ms"}
    if "text" in found and base.failure is not None and base.failure.kind == "malformed":
        fields.add("failure")
    base = msgspec.structs.replace(base, **{field: getattr(_NOTHING, field) for field in fields})
    base = with_evidence(
        base,
        tools_observed=base.evidence.tools_observed and "tool_calls" not in found,
        sources_observed=base.evidence.sources_observed and "sources" not in found,
    )
    reply = read_named(found, asked, base=base)
    if reply.text is None and reply.failure is None and mapping.text is not None:
        # Of one reply it is the chatbot's; where it is so of all, the expression is at fault.
        message = f"reply.text = {mapping.text!r} finds nothing in the reply"
        return msgspec.structs.replace(reply, failure=Failure("null", failure_message(message)))
    return reply


_SEEN: ContextVar[list[str] | None] = ContextVar("raw replies", default=None)


@contextmanager
def watch_raw() -> Iterator[list[str]]:
    """The list that everything is noted in which targets get while the body runs, in their tasks too."""
    seen: list[str] = []
    before = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(before)


def is_watched() -> bool:
    """Whether anybody looks."""
    return _SEEN.get() is not None


def note_raw(text: Callable[[], str]) -> None:
    """Note what came back, as text and without secrets; it is written down only if anybody looks."""
    seen = _SEEN.get()
    if seen is not None:
        seen.append(text())
