"""ExchangeBook: which question under way each request to a model belongs to, and what came of it.

A request belongs to the question whose trace it carries, in `traceparent` or in the proxy's path; else to the only one
under way whose text stands in it; else to the only one whose calls it goes on from. Otherwise it is nobody's, and every
question that could have made it is only partly observed.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from answerkey.model.message import Message, Part
from answerkey.model.reply import ToolCall, Usage
from answerkey.observe.exchange_reading import McpCall, ModelRequest, SeenResponse, mcp_result, read_response
from answerkey.observe.merging import Observation, join_calls
from answerkey.observe.span import read_traceparent
from answerkey.observe.trace_reading import new_results
from answerkey.protocols import Ask
from answerkey.transcripts.conversation import reply_of
from answerkey.transcripts.fields.usage import add_usage


class _UnderWay:
    """A question under way, and what was seen of it."""

    def __init__(self, ask: Ask) -> None:
        self.text = _plain(ask.question)
        self.begun = time.monotonic()
        self.exchanges: list[Exchange] = []
        self.lacks: list[str] = []
        # Requests that it may have made, or another question.
        self.unclear: list[Exchange] = []
        self.pending = 0
        self.idle = asyncio.Event()
        # What later requests may refer to: responses and calls.
        self.ids: set[str] = set()

    def asked_calls(self) -> list[ToolCall]:
        return [call for one in self.exchanges for call in one.calls]


class Exchange:
    """A request and its response."""

    def __init__(
        self, request: ModelRequest | McpCall | Literal["unread"], might: Sequence[_UnderWay]
    ) -> None:
        self.request = request
        # The questions that could have made it; it belongs to one only if that is the only one.
        self.might = might
        self.begun = self.ended = time.monotonic()
        self.calls: tuple[ToolCall, ...] = ()
        self.usage: Usage | None = None


class ExchangeBook:
    """The questions under way, and what passes through the proxy for them."""

    def __init__(self, *, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._open: dict[str, _UnderWay] = {}
        # Requests by what became of them: matched, ambiguous, of no question, not understood.
        self.counts: Counter[str] = Counter()

    def open(self, ask: Ask) -> None:
        """Begin to look out for a question's requests."""
        ids = read_traceparent(ask.traceparent)
        if ids is not None:
            self._open[ids[0]] = _UnderWay(ask)

    def begin(
        self,
        request: ModelRequest | McpCall | Literal["unread"],
        *,
        trace_id: str | None,
        traceparent: str | None,
    ) -> Exchange:
        """A request has come; `trace_id` is the one in the proxy's path."""
        inner = request.traceparent if isinstance(request, McpCall) else None
        exchange = Exchange(request, self._might_be_of(request, trace_id, (traceparent, inner)))
        for one in exchange.might:
            one.pending += 1
            one.idle.clear()
        return exchange

    def _might_be_of(
        self, request: ModelRequest | McpCall | str, trace_id: str | None, traceparents: Sequence[str | None]
    ) -> list[_UnderWay]:
        carried = [ids[0] for given in traceparents if (ids := read_traceparent(given)) is not None]
        named = [one for one in (trace_id, *carried) if one is not None]
        known = [self._open[one] for one in named if one in self._open]
        if known:
            return known[:1]
        under_way = list(self._open.values())
        if trace_id is not None:
            # The path names a question that is not under way any more.
            return []
        if isinstance(request, McpCall):
            same = [one for one in under_way if _asked_for(one, request.call)]
            return same or under_way
        if not isinstance(request, ModelRequest):
            return under_way
        found = _standing_in(under_way, request.messages)
        if len(found) != 1:
            found = [one for one in found or under_way if one.ids & request.ids] or found
        return found

    def end(self, exchange: Exchange, seen: SeenResponse | None) -> None:
        """Its response has passed; None if none came."""
        exchange.ended = time.monotonic()
        for one in exchange.might:
            one.pending -= 1
            if not one.pending:
                one.idle.set()
        owner = exchange.might[0] if len(exchange.might) == 1 else None
        if seen is None or seen.status >= 400:
            # Nothing was said, so nothing is called for it.
            if owner is not None and isinstance(exchange.request, McpCall):
                exchange.calls = (
                    msgspec.structs.replace(exchange.request.call, error="the server could not be asked"),
                )
                owner.exchanges.append(exchange)
            return
        understood = self._read(exchange, seen, owner)
        if owner is not None:
            self.counts["matched"] += 1
            owner.exchanges.append(exchange)
            if not understood:
                owner.lacks.append("a model's answer that was not understood or cut off")
            return
        for one in exchange.might or self._open.values():
            one.unclear.append(exchange)
        if understood and not exchange.calls:
            # Whosever it was, nothing was called.
            return
        self.counts["ambiguous" if exchange.might else "of no question"] += 1
        made = f"{len(exchange.might)} questions could have made"
        for one in exchange.might or self._open.values():
            one.lacks.append(f"a request that {made if exchange.might else 'no question could be found for'}")

    def _read(self, exchange: Exchange, seen: SeenResponse, owner: _UnderWay | None) -> bool:
        request = exchange.request
        if isinstance(request, McpCall):
            result = mcp_result(seen, request.request_id)
            start = None if owner is None else _milliseconds(owner.begun, exchange.begun)
            call = msgspec.structs.replace(
                request.call, start_ms=start, duration_ms=_milliseconds(exchange.begun, exchange.ended)
            )
            if result is not None:
                call = msgspec.structs.replace(call, **result, result_seen=True)
            exchange.calls = (call,)
            return result is not None
        reply = read_response(seen)
        if reply is None or isinstance(request, str):
            return False
        start = None if owner is None else _milliseconds(owner.begun, exchange.ended)
        exchange.calls = tuple(msgspec.structs.replace(call, start_ms=start) for call in reply.tool_calls)
        exchange.usage = reply.usage
        if owner is not None:
            owner.ids.update(
                one for one in (reply.response_id, *(call.id for call in reply.tool_calls)) if one
            )
        return True

    async def settle(self, traceparent: str | None) -> None:
        """Wait for requests that a question still has under way, for as long as a quiet period."""
        ids = read_traceparent(traceparent)
        one = None if ids is None else self._open.get(ids[0])
        if one is not None and one.pending:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._quiet_s):
                    await one.idle.wait()

    def close(self, traceparent: str | None) -> Observation | None:
        """What was seen of a question; None if nothing passed for it."""
        ids = read_traceparent(traceparent)
        one = None if ids is None else self._open.pop(ids[0], None)
        if one is None:
            return None
        lacks = [*one.lacks, *(["the answer to a request that was still under way"] if one.pending else [])]
        if not one.exchanges and not lacks:
            self.counts["questions without a request"] += 1
            return None
        in_order = sorted(one.exchanges, key=lambda exchange: exchange.begun)
        messages: list[Message] = []
        usage: Usage | None = None
        for exchange in in_order:
            if isinstance(exchange.request, ModelRequest):
                messages += new_results(exchange.request.messages)
                messages.append(
                    Message("assistant", tuple(Part("call", None, call) for call in exchange.calls))
                )
                usage = usage if exchange.usage is None else add_usage(usage, exchange.usage)
        served = [call for one in in_order if isinstance(one.request, McpCall) for call in one.calls]
        if in_order and not messages:
            lacks.append("the calls of models, of which none passed the proxy")
        return Observation(
            kind="proxy",
            tool_calls=join_calls(reply_of(messages).tool_calls, served),
            usage=usage,
            complete=not lacks,
            missing=tuple(dict.fromkeys(lacks)),
            models=_models(one),
        )

    def warnings(self) -> list[str]:
        """What a reader of the run must know."""
        told = {
            "questions without a request": "question(s) sent nothing through the proxy: is the chatbot's base URL the proxy's?",
            "ambiguous": "request(s) could have been made by several questions and were not used; pass traceparent on, "
            "or use --concurrency 1",
            "of no question": "request(s) with calls belong to no question that could be found and were not used",
        }
        return [f"proxy: {self.counts[name]} {text}" for name, text in told.items() if self.counts[name]]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _milliseconds(first: float, second: float) -> float:
    return round(max(0.0, second - first) * 1000, 3)


def _models(one: _UnderWay) -> int:
    """How many calls of models a question made or may have made."""
    models = sum(not isinstance(made.request, McpCall) for made in (*one.exchanges, *one.unclear))
    # A tool is called on a server because a model asked for it.
    return models + one.pending or int(bool(one.unclear))


def _asked_for(one: _UnderWay, call: ToolCall) -> bool:
    return any(
        made.arguments == call.arguments and (made.name == call.name or made.name.endswith(f"__{call.name}"))
        for made in one.asked_calls()
    )


def _standing_in(under_way: Sequence[_UnderWay], messages: Sequence[Message]) -> list[_UnderWay]:
    """The questions whose text stands in what the user says. One that stands only within a longer one's does not."""
    said = [_plain(message.text or "") for message in messages if message.role == "user"]
    # In a conversation, what was said last decides.
    for text in (said[-1:], said, [_plain(message.text or "") for message in messages]):
        rest = "\n".join(text)
        found: list[_UnderWay] = []
        for length in sorted({len(one.text) for one in under_way if one.text}, reverse=True):
            same = [one for one in under_way if len(one.text) == length and one.text in rest]
            found += same
            for one in same:
                rest = rest.replace(one.text, "\n")
        if found:
            return found
    return []
