"""What answerkey and the process of a Python chatbot say to each other: length-prefixed JSON over a socket of their own."""

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
    # Where relative paths and modules are looked for.
    folder: str | None
    # Python's search path, as it is in answerkey's own process.
    path: list[str]
    mapping: ReplyMapping | None
    # How many questions may be under way in it at once.
    concurrency: int
    max_reply_mb: float
    # An event loop that stands still for so long is reported.
    patience_s: float
    # Whether what the chatbot gave back is wanted as it was, too.
    with_raw: bool = False


class Question(msgspec.Struct, frozen=True, tag=True):
    """Ask the chatbot."""

    number: int
    ask: Ask


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for this reply any more."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The chatbot is loaded."""

    # Whether a question under way can be stopped without ending the process.
    is_async: bool
    # Whether it is told which conversation a question belongs to, so that it may remember what was said.
    remembers: bool


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The chatbot cannot be loaded, and why."""

    message: str


class Answered(msgspec.Struct, frozen=True, tag=True):
    """A reply."""

    number: int
    reply: Reply
    # What it was read from, where that is wanted.
    raw: str | None = None


class TurnedAway(msgspec.Struct, frozen=True, tag=True):
    """The chatbot was not to be had: a RetryableError."""

    number: int
    failure: Failure
    retry_after: float | None


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """A question that was cancelled has ended."""

    number: int


class Blocked(msgspec.Struct, frozen=True, tag=True):
    """The event loop stands still, in this question if that is known."""

    number: int | None


ToBot = Begin | Question | Cancel
FromBot = Ready | Refused | Answered | TurnedAway | Stopped | Blocked


def encode_frame(message: ToBot | FromBot) -> bytes:
    """A message with its length before it."""
    content = _encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content
