"""Reply: what a chatbot gave back, what it did on the way, and how well that could be observed."""

from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from answerkey.model.fault import FaultRecord

_SystemError = Literal["connection", "tool", "timeout", "memory", "rate_limit", "http", "exception"]
_ResponseError = Literal["empty", "null", "error_text", "trace", "malformed", "truncated"]
# Problems of the harness; never charged to the chatbot.
HarnessProblem = Literal[
    "configuration",
    "mapping",
    "login",
    "local_resources",
    "scorer",
    "too_costly",
    "not_faulted",
    "not_recorded",
]
ErrorKind = Literal[_SystemError, _ResponseError]
# Why a model stopped early: its token limit, a refusal, or the provider's filter.
Finish = Literal["length", "refusal", "filter"]
SYSTEM_ERRORS: tuple[ErrorKind, ...] = get_args(_SystemError)
RESPONSE_ERRORS: tuple[ErrorKind, ...] = get_args(_ResponseError)
ERROR_KINDS: tuple[ErrorKind, ...] = SYSTEM_ERRORS + RESPONSE_ERRORS
HARNESS_PROBLEMS: tuple[HarnessProblem, ...] = get_args(HarnessProblem)


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a question did not get an answer."""

    kind: ErrorKind | HarnessProblem
    message: str
    # Innermost frames of the chatbot's code, without values of secrets.
    traceback: str = ""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a tool, in the order in which it was made."""

    name: str
    id: str | None = None
    # None: not observed.
    arguments: dict[str, Any] | None = None
    # The arguments as text, if they are not an object.
    arguments_text: str | None = None
    result: Any = None
    # Whether the result was observed.
    result_seen: bool = False
    error: str | None = None
    # Milliseconds after the question was sent; None: not observed.
    start_ms: float | None = None
    duration_ms: float | None = None
    # The result was replaced on purpose (`faults`).
    injected: bool = False


def result_digest(call: ToolCall) -> str | None:
    """A short hash of what a tool returned, equal for equal results; None if the result was not observed."""
    if not call.result_seen:
        return None
    try:
        encoded = msgspec.json.encode(call.result, order="deterministic")
    except (TypeError, ValueError):
        # Keys of several types, or a lone surrogate.
        encoded = repr(call.result).encode("utf-8", "backslashreplace")
    return blake2b(encoded, digest_size=8).hexdigest()


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that the chatbot retrieved or cites, best first."""

    id: str | None = None
    rank: int | None = None
    score: float | None = None
    text: str | None = None
    title: str | None = None
    uri: str | None = None
    # None: whether the reply cites it is not known.
    cited: bool | None = None
    metadata: dict[str, Any] = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and money spent on a reply."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class Timings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Durations. The latency excludes the harness's own waiting (queue, back-off)."""

    # From sending the question to the end of the reply, in the last attempt.
    latency_ms: float | None = None
    first_byte_ms: float | None = None
    # Wait for a free slot or the rate limit.
    queue_ms: float = 0.0
    # Earlier attempts and the pauses between attempts.
    retry_ms: float = 0.0
    attempts: int = 1


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """How the reply was observed: "no tool was called" differs from "calls could not be observed"."""

    kind: Literal["response", "transcript", "stream", "otel", "proxy", "log"] = "response"
    completeness: Literal["complete", "partial"] = "complete"
    # Whether every tool call could be observed.
    tools_observed: bool = False
    # Whether the reply carried any information on sources.
    sources_observed: bool = False
    # Names of parts that were not understood or are known to be missing.
    unread: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The chatbot's reply to one question."""

    # None: a null reply.
    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    # Error reported by the target; scorers detect errors that only the text shows.
    failure: Failure | None = None
    timings: Timings = Timings()
    usage: Usage | None = None
    evidence: Evidence = Evidence()
    conversation_id: str | None = None
    # The chatbot's id of this reply, for feedback.
    response_id: str | None = None
    trace_id: str | None = None
    # None: it ended normally, or the reason is unknown.
    finish: Finish | None = None
    # The model's reasoning, if returned; not part of the answer.
    reasoning: str | None = None
    # The planned fault, in a run of `faults`.
    fault: FaultRecord | None = None

    @property
    def error(self) -> Failure | None:
        """The failure, under its name in the run document."""
        return self.failure

    @property
    def latency_ms(self) -> float | None:
        """Latency in milliseconds."""
        return self.timings.latency_ms

    @property
    def tools_used(self) -> tuple[str, ...]:
        """The names of the tools called, in order, repeats included."""
        return tuple([call.name for call in self.tool_calls])


# Message and Part: one step of a conversation in the one form that every outside format is read into.


# Roles; other names are mapped to these.
Role = Literal["user", "assistant", "tool", "system"]
# `aside`: neither text nor call (images, step markers); `unread`: not understood.
PartKind = Literal["text", "call", "result", "thought", "aside", "unread"]


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a message: a text, a call, a result, or something that was not understood."""

    kind: PartKind
    # Text or reasoning; of an unread part, its type.
    text: str | None = None
    # A call, or its result: then with the id and name of the call, if known.
    call: ToolCall | None = None
    # Sources that the part cites or returns.
    sources: tuple[Source, ...] = ()
    # An unread part as it came.
    raw: Any = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of any format."""

    role: Role
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    id: str | None = None
    # Whether its format can hold tool calls; a plain text cannot.
    has_place_for_calls: bool = False

    @property
    def text(self) -> str | None:
        """The joined texts; None if there are none."""
        texts = [part.text for part in self.parts if part.kind == "text" and part.text is not None]
        return "".join(texts) if texts else None


# Link: a mention in a reply and its position in the evidence.


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure, date, name, id or quote of a reply."""

    # The text in the reply, and its span.
    text: str
    start: int
    end: int
    # "figure", "date", "time", "id", "quote", "name".
    kind: str
    # Path in the evidence: tool_calls[0].result[2].balance, sources[1].text; empty: not found.
    where: str = ""
    # The text there,
    found: str = ""
    # from which to which character of the value or passage.
    span: tuple[int, int] | None = None
    # What the record is called, in a table.
    row: str = ""
    # Empty: as it is; otherwise "rounded", "as a share", "sum of amount", …
    how: str = ""


# A decoded JSON value. Fields that msgspec decodes use `Any`, since it does not support recursive aliases.
Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
JsonObject: TypeAlias = dict[str, Json]
