"""Spans of a chatbot that runs in this process: if it uses OpenTelemetry's SDK, what it records is seen as it ends.

Nothing is imported that the chatbot has not imported itself, and no provider is set in its place.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from answerkey.observe.merging import Observation
from answerkey.observe.span import Event, Span, read_traceparent
from answerkey.observe.trace_reading import read_trace

_SDK = "opentelemetry.sdk.trace"


class Collected:
    """The spans of one question."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        # Those that have begun and not ended.
        self.under_way = 0

    def observation(self) -> Observation:
        """What they tell."""
        zero = min((span.start_ns for span in self.spans), default=0)
        lacks = [f"{self.under_way} spans have not ended"] if self.under_way else []
        return read_trace(self.spans, zero_ns=zero, missing=lacks).observation


# What is being collected, by trace id.
_COLLECTING: dict[int, Collected] = {}
# The providers that are watched; they live as long as the process.
_WATCHED: list[Any] = []


@contextmanager
def in_process_spans(traceparent: str | None) -> Iterator[Collected]:
    """Call a chatbot within a question's trace, and collect what it records."""
    collected = Collected()
    ids = read_traceparent(traceparent)
    if ids is None or _SDK not in sys.modules:
        yield collected
        return
    context: Any = sys.modules["opentelemetry.context"]
    trace: Any = sys.modules["opentelemetry.trace"]
    _watch(trace.get_tracer_provider())
    trace_id = int(ids[0], 16)
    caller = trace.SpanContext(trace_id, int(ids[1], 16), is_remote=True, trace_flags=trace.TraceFlags(1))
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(caller)))
    _COLLECTING[trace_id] = collected
    try:
        yield collected
    finally:
        del _COLLECTING[trace_id]
        context.detach(token)


def _watch(provider: Any) -> None:
    """Have a provider tell of its spans; one that is not the SDK's (none was set up) has none to tell of."""
    if any(one is provider for one in _WATCHED) or not hasattr(provider, "add_span_processor"):
        return
    _WATCHED.append(provider)
    sdk: Any = sys.modules[_SDK]

    class Watcher(sdk.SpanProcessor):  # type: ignore[misc]  # known at run time only
        """Takes note of the spans of questions under way."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.under_way += 1

        def on_end(self, span: Any) -> None:
            collected = _COLLECTING.get(span.get_span_context().trace_id)
            if collected is not None:
                collected.under_way -= 1
                collected.spans.append(_read(span))

    provider.add_span_processor(Watcher())


def _read(span: Any) -> Span:
    own, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
    return Span(
        trace_id=f"{own.trace_id:032x}",
        span_id=f"{own.span_id:016x}",
        parent_id="" if parent is None else f"{parent.span_id:016x}",
        name=span.name,
        scope="" if scope is None else scope.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        attributes=_plain(span.attributes),
        events=[Event(event.name, _plain(event.attributes)) for event in span.events],
        status=span.status.status_code.value,
        status_message=span.status.description or "",
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()
    }
