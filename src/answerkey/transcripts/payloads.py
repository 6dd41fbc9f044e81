"""From what a chatbot gives back, or raises, to a Reply: the usual names, known formats, or JMESPath expressions."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import (
    ErrorKind,
    Evidence,
    Failure,
    Json,
    JsonObject,
    Reply,
    Source,
    Timings,
    ToolCall,
    Usage,
)
from answerkey.protocols import RetryableError
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import (
    NOT_TEXT_REMEDY,
    classify_error,
    failure_message,
    kind_of_class_name,
    kind_of_status,
    looks_like_calls,
    not_text,
    read_calls,
    read_failure,
    read_sources,
    read_usage,
)
from answerkey.transcripts.formats import (
    FORMAT_MARKS,
    has_reply_names,
    read_document,
    read_list,
    read_transcript,
    streamed,
)
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    admit_reply,
    as_builtin,
    as_json,
    either,
    json_text,
    pick,
    plain_reply,
    read_duration,
    safe_text,
    spellings,
    spoken_text,
    type_in_words,
)
from answerkey.transcripts.messages import (
    NO_CONTEXT,
    TRANSCRIPT_NAMES,
    QuestionContext,
    transcripts_in,
    with_evidence,
)
from answerkey.transcripts.streams import are_stream_events, assemble_events, event_name, protocol_of

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult


SOURCE_NAMES = (
    *("sources", "documents", "contexts"),
    *("retrieved_documents", "retrieved_contexts", "source_documents"),
)
_PASSAGES = frozenset({"contexts", "retrieved_contexts"})
_SOURCE_NAMES = frozenset(SOURCE_NAMES)
_FIRST_BYTES = spellings("first_byte_ms ttft_ms")
_TIMINGS = frozenset({*spellings("latency_ms latency_s"), *_FIRST_BYTES})
IDENTITIES = ("conversation_id", "response_id", "trace_id")
_USAGES = spellings("usage tokens token_usage usage_metadata")
_COSTS = frozenset({*_USAGES, "cost"})
# Names that mean the same beside a format's own fields; the others (`output`, `content`, …) are the format's.
_OWN_NAMES = frozenset(
    {
        *("answer", "response", "text", "tools_used", "toolsUsed", "tool_calls", "intermediate_steps"),
        *SOURCE_NAMES,
        *("error", "usage", "cost", *_TIMINGS),
        *IDENTITIES,
    }
)
# Names of a reply's fields that hold no reply by themselves.
BESIDE_NAMES = frozenset({"turns", "tools", *_COSTS, *_TIMINGS, *IDENTITIES})
# Where a reply may be wrapped when none of its own names is there.
_WRAPPERS = ("data", "result", "outputs")
# Every name at the top of a payload that is looked at.
NAMES_READ = _OWN_NAMES.union(
    TEXT_NAMES, FORMAT_MARKS, TRANSCRIPT_NAMES, _WRAPPERS, _USAGES, {"toolCalls", "replies", "turns", "tools"}
)
_DEEPEST = 4

_NOTHING = Reply()
EVIDENCE = {
    (tools, sources): Evidence(tools_observed=tools, sources_observed=sources)
    for tools in (False, True)
    for sources in (False, True)
}


def read_payload(payload: object, context: QuestionContext) -> Reply:
    """The Reply in a payload; `context` says to what. In a recorded one `id` is the question's, elsewhere the reply's own."""
    if type(payload) is dict:
        # The common case first: a million recorded replies go this way.
        if payload.keys().isdisjoint(FORMAT_MARKS):
            return read_named(payload, context, 0)
        return _recognised(payload, context, 0)
    return _other(payload, context)


def read_named(
    payload: JsonObject, context: QuestionContext, depth: int = 0, base: Reply = _NOTHING
) -> Reply:
    """A reply under the usual names; what has none of them is taken from `base`."""
    get = payload.get
    text = base.text
    has_text = False
    odd: Failure | None = None
    for name in TEXT_NAMES:
        if name in payload:
            has_text = True
            given = payload[name]
            if given is None or type(given) is str:
                text = given
                if name == "message" and given and _says_it_failed(payload):
                    text, odd = None, read_failure(given)
            elif base is _NOTHING:
                return _unusual(payload, name, context, depth)
            else:
                text = spoken_text(given)
                odd = not_text(name, given) if text is None else None
            break
    error = get("error")
    failure = read_failure(error) if error else odd
    calls, tools_observed = _calls(payload)
    told_sources = None if payload.keys().isdisjoint(_SOURCE_NAMES) else _sources(payload)
    sources_observed, sources = told_sources is not None, told_sources or ()

    if base is _NOTHING:
        observed = tools_observed or sources_observed
        if not (has_text or failure) and not (observed and context.recorded):
            found = _without_text(payload, context, depth)
            # Calls and sources may be beside a text that is elsewhere.
            return read_named(payload, context, depth, found) if observed else found
        evidence = EVIDENCE[tools_observed, sources_observed]
    else:
        evidence = base.evidence
        if not tools_observed:
            tools_observed, calls = evidence.tools_observed, base.tool_calls
        elif base.tool_calls and not any(call.arguments is not None or call.result_seen for call in calls):
            calls = _named_calls(calls, base.tool_calls)
        if not sources_observed:
            sources_observed, sources = evidence.sources_observed, base.sources
        evidence = msgspec.structs.replace(
            evidence, tools_observed=tools_observed, sources_observed=sources_observed
        )
    response_id = get("response_id")
    if response_id is None and not context.recorded:
        response_id = get("id")
    return Reply(
        text=text if text is None or text.isascii() else safe_text(text),
        tool_calls=calls,
        sources=sources,
        failure=failure or base.failure,
        timings=base.timings if payload.keys().isdisjoint(_TIMINGS) else _timings(payload, base.timings),
        usage=base.usage if payload.keys().isdisjoint(_COSTS) else _usage(payload) or base.usage,
        evidence=evidence,
        conversation_id=base.conversation_id
        if "conversation_id" not in payload
        else _identity(payload["conversation_id"]) or base.conversation_id,
        response_id=base.response_id if response_id is None else _identity(response_id) or base.response_id,
        trace_id=base.trace_id
        if "trace_id" not in payload
        else _identity(payload["trace_id"]) or base.trace_id,
        finish=base.finish,
        reasoning=base.reasoning,
    )


def _named_calls(names: tuple[ToolCall, ...], recorded: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls that mere names beside a transcript mean: the transcript says more of them."""
    listed, known = {call.name for call in names}, {call.name for call in recorded}
    return (
        *[call for call in recorded if call.name in listed],
        *[call for call in names if call.name not in known],
    )


def _says_it_failed(payload: JsonObject) -> bool:
    """Whether a body with a message is an error's: `{"success": false, "message": …}` without data."""
    return (payload.get("success") is False or payload.get("ok") is False) and not payload.get("data")


def _calls(payload: JsonObject) -> tuple[tuple[ToolCall, ...], bool]:
    """The tool calls, and whether the payload says anything about them."""
    get = payload.get
    names = get("tools_used", get("toolsUsed"))
    calls = get("tool_calls", get("toolCalls", get("intermediate_steps")))
    # Objects say more than names; a list of mere names, or an empty one, does not overrule `tools_used`.
    chosen = calls if names is None or (calls and looks_like_calls(calls)) else names
    return read_calls(chosen) if chosen else (), names is not None or calls is not None


def _sources(payload: JsonObject) -> tuple[Source, ...] | None:
    """The sources in the payload; None if it has no field for them."""
    for name in SOURCE_NAMES:
        if name in payload:
            found = payload[name]
            return None if found is None else read_sources(found, passages=name in _PASSAGES)
    return None


def _usage(payload: JsonObject) -> Usage | None:
    for name in _USAGES:
        if name in payload:
            return read_usage(payload[name], payload.get("cost"))
    return read_usage(None, payload["cost"]) if "cost" in payload else None


def _timings(payload: JsonObject, base: Timings) -> Timings:
    """The timings in the payload; others are those of `base`."""
    latency = either(payload, "latencyMs")
    if latency is None and (seconds := read_duration(either(payload, "latencyS"))) is not None:
        latency = 1000 * seconds
    first = pick(payload, *_FIRST_BYTES)
    if latency is None and first is None:
        return base
    latency, first = read_duration(latency), read_duration(first)
    return Timings(
        latency_ms=base.latency_ms if latency is None else latency,
        first_byte_ms=base.first_byte_ms if first is None else first,
    )


def _identity(value: object) -> str | None:
    if value is None or type(value) is str:
        return value if not value or value.isascii() else safe_text(value)
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
    )


def _recognised(payload: JsonObject, context: QuestionContext, depth: int) -> Reply:
    """A reply with a format's mark: read as that, with the usual names on top where both are there."""
    found = read_document(payload, context)
    return (
        read_named(payload, context, depth) if found is None else _with_names(found, payload, context, depth)
    )


def _with_names(reply: Reply, payload: JsonObject, context: QuestionContext, depth: int) -> Reply:
    """A format's reply with the fields beside it under the usual names."""
    names = {name: part for name, part in payload.items() if name in _OWN_NAMES}
    for name in ("text", "response"):
        if not isinstance(names.get(name, ""), str):
            # Read by the format already, or a configuration, which the Responses API has under `text`.
            del names[name]
    if isinstance(answer := names.get("answer"), list):
        names["answer"] = _whole_text(answer) or answer
    if reply.evidence.kind != "transcript" or payload.keys().isdisjoint({"messages", "contents"}):
        # In a response these names are the format's own, and were read as it means them.
        names.pop("tool_calls", None)
        if reply.usage is not None:
            names.pop("usage", None)
    if "id" in payload and not context.recorded and reply.response_id is None:
        names["id"] = payload["id"]
    return read_named(names, context, depth, reply) if names else reply


def _unusual(payload: JsonObject, name: str, context: QuestionContext, depth: int) -> Reply:
    """A text field that is not text: a format, a reply inside a reply, content parts, or an odd type."""
    found = read_document(payload, context)
    if found is not None:
        return _with_names(found, payload, context, depth)
    value = payload[name]
    if isinstance(value, dict) and depth < _DEEPEST and has_reply_names(value):
        found = _recognised(value, context, depth + 1)
    else:
        inner = _known_list(value, context) if isinstance(value, list) else None
        text = _whole_text(value)
        found = inner or Reply(text=text, failure=None if text is not None else not_text(name, value))
    rest = {key: part for key, part in payload.items() if key != name}
    return read_named(rest, context, depth, found)


def _whole_text(value: Json) -> str | None:
    """The text of a whole reply: strings in a list are a line each, unless a space where two meet shows pieces of one."""
    if isinstance(value, list):
        texts = [item for item in value if isinstance(item, str)]
        are_pieces = any(text[-1:].isspace() or after[:1].isspace() for text, after in pairwise(texts))
        if len(texts) == len(value) and not are_pieces:
            value = "\n".join(filter(None, texts)) or value
    return spoken_text(value)


def _without_text(payload: JsonObject, context: QuestionContext, depth: int) -> Reply:
    """None of the usual names: a format, a reply inside a wrapper, or nothing that can be read."""
    found = read_document(payload, context) or _other_transcript(payload, context)
    if found is not None:
        return found
    if depth < _DEEPEST:
        for name in _WRAPPERS:
            inner = payload.get(name)
            if isinstance(inner, dict):
                return _recognised(inner, context, depth + 1)
            if isinstance(inner, str):
                return read_named({**payload, "answer": inner}, context, depth)
    names = ", ".join(str(name) for name in list(payload)[:8]) or "no field at all"
    message = (
        f"the reply has no text under answer, response, text, output, message or messages (it has: {names})"
    )
    return Reply(
        failure=Failure("malformed", failure_message(message)), timings=_timings(payload, _NOTHING.timings)
    )


def _other_transcript(payload: JsonObject, context: QuestionContext) -> Reply | None:
    """A transcript under another name or with other words for the speaker, if it has the answer."""
    for messages in transcripts_in(payload):
        reply = read_transcript(messages, context)
        if reply is not None and reply.text is not None:
            return reply
    return None


# Neither the configured expression nor the usual names find a text.
_UNMAPPED = lazy(r"reply\.text = .* finds nothing in the reply|the reply has no text under ")


def is_unmapped(failure: Failure) -> bool:
    """Whether a reply failed because nothing was found where its text should be, which is a matter of the mapping."""
    return failure.kind in ("null", "malformed") and _UNMAPPED.match(failure.message) is not None


def is_never_text(failure: Failure) -> bool:
    """Whether a reply has an object in place of its text. Of one reply that is the chatbot's, of all a matter of the mapping."""
    return failure.kind == "malformed" and NOT_TEXT_REMEDY in failure.message


def _other(payload: object, context: QuestionContext) -> Reply:
    """A payload that is not a plain dict."""
    if payload is None:
        return Reply()
    if isinstance(payload, str):
        return Reply(text=safe_text(payload))
    if isinstance(payload, Reply):
        return payload
    if isinstance(payload, list):
        return _list(payload, context)
    if isinstance(payload, (bool, int, float)):
        return Reply(text=json_text(payload))
    if isinstance(payload, bytes):
        try:
            return Reply(text=payload.decode())
        except UnicodeDecodeError:
            message = f"the reply is {len(payload)} bytes that are not UTF-8 text"
            return Reply(failure=Failure("malformed", message))
    plain = as_builtin(payload)
    if isinstance(plain, dict):
        return _recognised(plain, context, 0)
    return Reply(failure=not_text(None, payload)) if plain is payload else _other(plain, context)


def _known_list(items: list[Json], context: QuestionContext) -> Reply | None:
    """A list of messages, of parts, or of the events of a stream; None if it is none of them."""
    streams = are_stream_events(items)
    found = None if streams else read_list(items, context)
    if found is not None:
        return found
    if not streams and all(protocol_of(item) is None for item in items if isinstance(item, dict)):
        return None
    # Who hands over a list has its end; in a log nothing says that its stream was not cut off.
    payload, whole = assemble_events(items, closed=not context.recorded)
    return streamed(read_payload(payload, context), whole)


def _list(items: list[Json], context: QuestionContext) -> Reply:
    """A bare list: one that is known, or texts."""
    found = _known_list(items, context)
    if found is not None:
        return found
    if all(isinstance(item, dict) and "type" not in item for item in items):
        # Messages one after another, not the parts of one: 900 and 50 are not 90050.
        said = [spoken_text(item) for item in items]
        text = "\n".join(part for part in said if part) if any(said) else None
    else:
        text = _whole_text(items)
    return Reply(text=text, failure=not_text(None, items) if text is None else None)


# From whatever a chatbot gives back to a Reply: the usual names, the known formats, or JMESPath expressions.


# What an item of a stream may be once it is plain; anything else is unknown.
_READABLE = (dict, list, str, int, float)
# The expressions whose name is not that of the reply's field.
_FIELDS = {"error": "failure", "cost": "usage"}
# Parts of which each event of a stream may bring some.
_LISTS = ("tool_calls", "sources")


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
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: expression for name, expression in given if expression is not None}


def reply_from_payload(
    payload: object, *, mapping: ReplyMapping | None = None, context: QuestionContext = NO_CONTEXT
) -> Reply:
    """The Reply in what a chatbot gave back to what was `context`; never raises on its contents."""
    if mapping is not None and isinstance(payload, (dict, list)):
        return admit_reply(_mapped(payload, mapping, context))
    return admit_reply(read_payload(payload, context))


def reply_from_object(
    value: object, *, mapping: ReplyMapping | None = None, context: QuestionContext = NO_CONTEXT
) -> Reply:
    """The same for a Python object, which may hold anything: what comes out can be written as JSON."""
    if isinstance(value, Streamed):
        return _reply_from_stream(value, mapping, context)
    reply = reply_from_payload(as_builtin(value), mapping=mapping, context=context)
    return plain_reply(reply) if reply.tool_calls or reply.sources else reply


def _reply_from_stream(items: Streamed, mapping: ReplyMapping | None, context: QuestionContext) -> Reply:
    """The reply that a generator's items make: pieces of text, or events and messages of any SDK."""
    if all(isinstance(item, str) for item in items):
        return reply_from_payload("".join(map(str, items)), mapping=mapping, context=context)
    if all(isinstance(item, bytes) for item in items):
        return reply_from_payload(b"".join(item for item in items if isinstance(item, bytes)))
    plain = [as_builtin(item) for item in items]
    known = [item for item in plain if item is None or isinstance(item, _READABLE)]
    if not known:
        return Reply(failure=not_text("stream", plain[0]))
    payload, whole = assemble_events([as_json(item) for item in known])
    reply = streamed(reply_from_object(payload, mapping=mapping, context=context), whole)
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


def _mapped(payload: object, mapping: ReplyMapping, context: QuestionContext) -> Reply:
    """A reply whose parts are where the configuration says, and under their usual names where it says nothing."""
    base = reply_from_payload(payload, context=context)
    found: JsonObject = {}
    for name, expression in mapping.expressions().items():
        try:
            found[name] = _compiled(name, expression).search(payload)
        except (TypeError, ValueError) as error:
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
    reply = read_named(found, context, base=base)
    if reply.text is None and reply.failure is None and mapping.text is not None:
        # Of one reply it is the chatbot's; where it is so of all, the expression is at fault.
        message = f"reply.text = {mapping.text!r} finds nothing in the reply"
        return msgspec.structs.replace(reply, failure=Failure("null", failure_message(message)))
    return reply


def map_events(
    events: Sequence[Json], names: Sequence[str], mappings: Mapping[str, ReplyMapping]
) -> JsonObject:
    """The parts of a reply that the events of a stream have: texts are joined, calls and sources collected, the last of
    anything else counts."""
    lists: dict[str, list[Json]] = {
        part: [] for mapping in mappings.values() for part in mapping.expressions() if part in _LISTS
    }
    texts: list[str] = []
    document: JsonObject = {}
    for event, sent_name in zip_longest(events, names, fillvalue=""):
        name = event_name(event, sent_name)
        mapping = mappings.get(name)
        for part, expression in mapping.expressions().items() if mapping else ():
            try:
                value = _compiled(part, expression).search(event)
            except (TypeError, ValueError) as error:
                document["error"] = f"events.{name}.{part} = {expression!r} cannot be applied: {error}"
                continue
            if value is None:
                continue
            if part == "text":
                texts.append(spoken_text(value) or "")
            elif part in _LISTS:
                lists[part] += value if isinstance(value, list) else [value]
            else:
                document[part] = value
    if texts:
        document["text"] = "".join(texts)
    return {**document, **lists}


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
    return _SEEN.get() is not None


def note_raw(text: Callable[[], str]) -> None:
    """Note what came back, as text and without secrets; it is written down only if anybody looks."""
    seen = _SEEN.get()
    if seen is not None:
        seen.append(text())


# Failures from what a chatbot raises.


# Frames and characters of a traceback.
_MOST_FRAMES = 10
_MOST_TRACEBACK = 4000
_PACKAGE_FOLDER = str(Path(__file__).parents[1]) + os.sep
_SECRET_NAME = lazy(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6
# An OperationalError that says one of these is about the statement, not about reaching the database.
_STATEMENT_ERRORS = ("no such", "syntax error", "near ", "has no column", "ambiguous", "does not exist")


def failure_from_exception(exc: BaseException, redact: Callable[[str], str] = str) -> Failure:
    """The failure that an exception of the chatbot amounts to."""
    if isinstance(exc, RetryableError):
        return exc.failure
    text = exception_text(exc)
    message = f"{type(exc).__name__}: {text}" if text else type(exc).__name__
    masked = _mask_environment(redact(message))
    return Failure(_error_kind(exc), failure_message(masked), redact(_own_frames(exc)))


def _own_frames(exc: BaseException) -> str:
    """The innermost frames of an exception in code that is not answerkey's, as a traceback writes them."""
    import traceback

    frames = [
        frame
        for frame in traceback.extract_tb(exc.__traceback__)
        if not frame.filename.startswith(_PACKAGE_FOLDER)
    ]
    here = str(Path.cwd()) + os.sep
    for frame in frames:
        frame.filename = frame.filename.removeprefix(here)
    lines = traceback.format_list(frames[-_MOST_FRAMES:])
    if len(frames) > _MOST_FRAMES:
        lines.insert(0, f"  … {len(frames) - _MOST_FRAMES} outer frames\n")
    # A source line may hold anything, and a path may be a terminal's control sequence.
    text = "".join(char for char in "".join(lines) if char == "\n" or char.isprintable())
    return _mask_environment(safe_text(text)[:_MOST_TRACEBACK].rstrip())


def _mask_environment(text: str) -> str:
    """A text without the values of environment variables that are named like secrets."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, f"${{{name}}}")
    return text


def exception_text(exc: BaseException) -> str:
    """What an exception says; empty if asking it raises another one."""
    try:
        return str(exc)
    except Exception:  # noqa: BLE001  # the chatbot's own class
        return ""


def retryable_from_exception(exc: BaseException) -> RetryableError | None:
    """The same as a RetryableError if the chatbot was turned away: 429, 503 or a refused connection."""
    if isinstance(exc, RetryableError):
        return exc
    if isinstance(exc, ConnectionRefusedError) or _status(exc) in (429, 503):
        return RetryableError(failure_from_exception(exc), _retry_after(exc))
    return None


def _error_kind(exc: BaseException, depth: int = 0) -> ErrorKind:
    if isinstance(exc, MemoryError):
        return "memory"
    if isinstance(exc, TimeoutError):
        return "timeout"
    names = [cls.__name__ for cls in type(exc).__mro__ if cls not in (Exception, BaseException, object)]
    status = _status(exc)
    if status == 429:
        return "rate_limit"
    for name in names:
        if kind := kind_of_class_name(name):
            return kind
    if isinstance(exc, ConnectionError):
        return "connection"
    text = exception_text(exc)
    # Every database driver has these two names, and they mostly mean that the database could not be had.
    if "OperationalError" in names or "InterfaceError" in names:
        return "exception" if any(part in text.lower() for part in _STATEMENT_ERRORS) else "connection"
    if status is not None and status >= 400:
        return kind_of_status(status)
    kind_in_text = classify_error(text)
    if kind_in_text == "exception" and exc.__cause__ is not None and depth < 5:
        return _error_kind(exc.__cause__, depth + 1)
    return kind_in_text


def _status(exc: BaseException) -> int | None:
    """The HTTP status that an exception of an HTTP client or SDK carries."""
    for holder in (exc, getattr(exc, "response", None)):
        for name in ("status_code", "status", "code"):
            try:
                value: object = getattr(holder, name, None)
            except Exception:  # noqa: BLE001, S112  # a property of the chatbot's own class
                continue
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
                return value
    return None


def _retry_after(exc: BaseException) -> float | None:
    for holder in (exc, getattr(exc, "response", None)):
        get = getattr(getattr(holder, "headers", None), "get", None)
        if callable(get):
            try:
                return max(0.0, float(get("Retry-After") or get("retry-after")))
            except (TypeError, ValueError):
                continue
    return None
