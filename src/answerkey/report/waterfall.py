"""When each tool call of a reply ran, as bars under one clock that starts when the question was sent."""

from collections.abc import Sequence

import msgspec

from answerkey.model.reply import ToolCall
from answerkey.report.value_wording import milliseconds
from answerkey.text.sanitise import one_line


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One call under the clock; its place and length are shares of the whole time."""

    name: str
    start: float
    length: float
    # False: it stands after the one before only because it must stand somewhere.
    start_known: bool
    failed: bool
    # When it began and how long it took, as far as that is known.
    words: str


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one reply, and how long all of it took."""

    bars: tuple[Bar, ...]
    whole_ms: float
    # As shares of the whole; None: not known.
    answered: float | None
    first_byte: float | None
    first_byte_ms: float | None


def waterfall_of(
    calls: Sequence[ToolCall], latency_ms: float | None, first_byte_ms: float | None
) -> Waterfall | None:
    """The calls at the times at which they began; None where no time of any is known."""
    if not any(call.start_ms is not None or call.duration_ms is not None for call in calls):
        return None
    placed, end = [], 0.0
    for call in calls:
        start = end if call.start_ms is None else call.start_ms
        end = start + (call.duration_ms or 0.0)
        placed.append((call, start, end))
    whole = max(latency_ms or 0.0, first_byte_ms or 0.0, *(end for _, _, end in placed))
    if whole <= 0:
        return None
    return Waterfall(
        bars=tuple(
            Bar(
                name=one_line(call.name, 120),
                start=start / whole,
                length=(end - start) / whole,
                start_known=call.start_ms is not None,
                failed=bool(call.error),
                words=_words(call),
            )
            for call, start, end in placed
        ),
        whole_ms=whole,
        answered=None if latency_ms is None else latency_ms / whole,
        first_byte=None if first_byte_ms is None else first_byte_ms / whole,
        first_byte_ms=first_byte_ms,
    )


def _words(call: ToolCall) -> str:
    began = "start not known" if call.start_ms is None else f"after {milliseconds(call.start_ms)}"
    took = "how long not known" if call.duration_ms is None else f"took {milliseconds(call.duration_ms)}"
    return f"{began}, {took}"
