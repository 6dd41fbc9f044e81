"""From whatever a chatbot gives back to a Reply: the usual names, the known formats, or JMESPath expressions."""

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.admission import admit_reply, plain_reply
from answerkey.transcripts.failures import failure_from_exception, failure_message
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.payloads import read_named, read_payload
from answerkey.transcripts.plain_json import as_builtin

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult

__all__ = ["ReplyMapping", "reply_from_exception", "reply_from_object", "reply_from_payload"]


_NOTHING = Reply()
# The expressions whose name is not that of the reply's field.
_FIELDS = {"error": "failure", "cost": "usage"}


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
    payload: object, *, mapping: ReplyMapping | None = None, recorded: bool = False
) -> Reply:
    """The Reply in what a chatbot gave back; never raises on its contents.

    In a recorded reply `id` is the question's, elsewhere the reply's own.
    """
    if mapping is not None and isinstance(payload, (dict, list)):
        return admit_reply(_mapped(payload, mapping, recorded))
    return admit_reply(read_payload(payload, recorded))


def reply_from_object(value: object, *, mapping: ReplyMapping | None = None) -> Reply:
    """The same for a Python object, which may hold anything: what comes out can be written as JSON."""
    reply = reply_from_payload(as_builtin(value), mapping=mapping)
    return plain_reply(reply) if reply.tool_calls or reply.sources else reply


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
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.compile(expression)
    except JMESPathError as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", None))
        wrong = failure_message(str(error)) if position is None else f"error at position {position + 1}"
        raise ConfigError(f"reply.{name} = {expression!r} is not a JMESPath expression: {wrong}") from None


def _mapped(payload: object, mapping: ReplyMapping, recorded: bool) -> Reply:
    """A reply whose parts are where the configuration says, and under their usual names where it says nothing."""
    from jmespath.exceptions import JMESPathError

    base = reply_from_payload(payload, recorded=recorded)
    found: JsonObject = {}
    for name, expression in mapping.expressions().items():
        try:
            found[name] = _compiled(name, expression).search(payload)
        except (JMESPathError, TypeError, ValueError, RecursionError) as error:
            message = f"reply.{name} = {expression!r} cannot be applied to the reply: {error}"
            return msgspec.structs.replace(base, failure=Failure("malformed", failure_message(message)))
    # What an expression is given for is what it finds, even if that is nothing; the rest is the reply's own.
    fields = {_FIELDS.get(name, name) for name in found} - {"latency_ms", "first_byte_ms"}
    if "text" in found:
        found["text"] = read_text(found["text"])
        if base.failure is not None and base.failure.kind == "malformed":
            fields.add("failure")
    seen = base.evidence
    evidence = msgspec.structs.replace(
        seen,
        tools_observed=seen.tools_observed and "tool_calls" not in found,
        sources_observed=seen.sources_observed and "sources" not in found,
    )
    cleared = {field: getattr(_NOTHING, field) for field in fields}
    reply = read_named(found, recorded, base=msgspec.structs.replace(base, evidence=evidence, **cleared))
    if reply.text is None and reply.failure is None and mapping.text is not None:
        # Of one reply it is the chatbot's; where it is so of all, the expression is at fault.
        message = f"reply.text = {mapping.text!r} finds nothing in the reply"
        return msgspec.structs.replace(reply, failure=Failure("null", failure_message(message)))
    return reply
