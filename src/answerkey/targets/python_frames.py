"""Messages between answerkey and the process of a Python chatbot: length-prefixed JSON over a socket."""

import msgspec

from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask
from answerkey.transcripts.payloads import ReplyMapping

LENGTH_BYTES = 4

_encode = msgspec.json.Encoder().encode


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first frame to the process: what to load and how to ask it."""

    # "module:callable" or "file.py:callable".
    reference: str
    # Where relative paths and modules are searched.
    folder: str | None
    # Python's search path of answerkey's process.
    path: list[str]
    mapping: ReplyMapping | None
    # Maximum concurrent questions.
    concurrency: int
    max_reply_mb: float
    # An event loop that is blocked for longer is reported.
    blocked_after_s: float
    # Also send what the chatbot returned, before it is read.
    with_raw: bool = False


class Question(msgspec.Struct, frozen=True, tag=True):
    """Ask the chatbot."""

    number: int
    ask: Ask


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop a question: its reply is not needed any more."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The chatbot is loaded."""

    # Whether a running question can be stopped without ending the process.
    is_async: bool
    # Whether it gets the conversation id, so that it may remember earlier turns.
    remembers: bool


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why the chatbot cannot be loaded."""

    message: str


class Answered(msgspec.Struct, frozen=True, tag=True):
    """A reply."""

    number: int
    reply: Reply
    # What it was read from, if requested.
    raw: str | None = None


class Retry(msgspec.Struct, frozen=True, tag=True):
    """The question may be asked again: a RetryableError."""

    number: int
    failure: Failure
    retry_after: float | None


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """A question that was cancelled has ended."""

    number: int


class Blocked(msgspec.Struct, frozen=True, tag=True):
    """The event loop is blocked, by this question if that is known."""

    number: int | None


ToBot = Begin | Question | Cancel
FromBot = Ready | Refused | Answered | Retry | Stopped | Blocked


def encode_frame(message: ToBot | FromBot) -> bytes:
    """A message, preceded by its length."""
    content = _encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content
