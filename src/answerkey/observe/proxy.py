"""The recording proxy: forwards requests to model APIs and MCP servers, and reads the messages and calls in them."""

import asyncio
import hashlib
import os
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import FaultRecord, Message, Part, Reply, ToolCall, Usage
from answerkey.observe.observations import (
    Gap,
    MalformedError,
    Observation,
    join_calls,
    read_traceparent,
    same_tool,
)
from answerkey.observe.observers import unpacked
from answerkey.observe.trace_reading import new_results
from answerkey.protocols import Ask
from answerkey.providers import KNOWN_APIS
from answerkey.transcripts.fields import add_usage, read_arguments, read_result
from answerkey.transcripts.formats import read_document
from answerkey.transcripts.json_values import as_dict, as_str, decode_strict_json
from answerkey.transcripts.messages import NO_CONTEXT, read_messages, reply_of
from answerkey.transcripts.streams import STREAM_KINDS, EventReader, assemble_events

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, web
    from yarl import URL

    from answerkey.observe.observations import ConversationFaults, ToolAnswer


# Paths of model APIs; others (lists of models, embeddings) call no tool.
_MODEL_PATHS = re.compile(
    r"(/completions|/responses|/v1/messages|/api/chat|/api/generate|:generateContent|:streamGenerateContent)$"
)


# Fields of a request that offer tools.
_TOOL_OFFERS = ("tools", "functions", "toolConfig", "mcp_servers")
# Fields of a request with a system prompt, beside its messages.
_SYSTEM_PROMPTS = ("system", "instructions", "systemInstruction", "system_instruction")
_NO_TOOLS_OFFERED = "calls that an agent writes as text (no request offered tools to the model)"
# Attempts that timed out and are remembered.
_MOST_TIMED_OUT = 200
# Conversations with faults that are remembered.
_MOST_FAULTED = 4096


class ModelRequest(NamedTuple):
    """A request to a model."""

    messages: list[Message]
    # Ids that it refers to: the previous response, and the calls since the last thing that the user said.
    ids: frozenset[str]
    # Whether it lists tools that the model may call.
    offers_tools: bool
    # Whether nothing of the assistant is in it: it begins a conversation.
    is_start: bool
    # Hashes of the system prompt and of the tools that it offers, if it begins a conversation and has them.
    prompt_hash: str | None = None
    tools_hash: str | None = None


class McpCall(NamedTuple):
    """A call of a tool on an MCP server."""

    call: ToolCall
    # The id of the request, which its answer repeats.
    request_id: Any
    traceparent: str | None


class SeenResponse(NamedTuple):
    """A forwarded response: status, relevant headers, and body."""

    status: int
    content_type: str
    encoding: str
    body: bytes
    # False: it was cut off, or too large to store.
    whole: bool


def read_request(path: str, body: bytes) -> ModelRequest | McpCall | Literal["unread"] | None:
    """The request if it can lead to a tool call; None if it cannot, `unread` if it could not be read."""
    is_model = _MODEL_PATHS.search(path) is not None
    try:
        payload = decode_strict_json(body) if body else None
    except ValueError:
        return "unread" if is_model else None
    if isinstance(payload, list) and any("jsonrpc" in as_dict(one) for one in payload):
        return "unread"
    given = as_dict(payload)
    if given.get("jsonrpc") == "2.0":
        return _mcp_call(given) if given.get("method") == "tools/call" else None
    if not is_model:
        return None
    said = next((given[name] for name in ("messages", "input", "contents", "prompt") if name in given), None)
    if isinstance(said, str):
        said = [{"role": "user", "content": said}]
    messages = read_messages(said)
    if not messages:
        return "unread"
    last = max((place for place, one in enumerate(messages) if one.role == "user" and one.text), default=0)
    ids = [part.call.id for message in messages[last:] for part in message.parts if part.call is not None]
    previous = as_str(given.get("previous_response_id"))
    is_start = previous is None and all(message.role in ("system", "user") for message in messages)
    offers = [given[name] for name in _TOOL_OFFERS if given.get(name)]
    prompts = [given[name] for name in _SYSTEM_PROMPTS if given.get(name)]
    prompts += [message.text for message in messages if message.role == "system"]
    return ModelRequest(
        messages,
        frozenset(one for one in (*ids, previous) if one),
        offers_tools=bool(offers),
        is_start=is_start,
        prompt_hash=_hash_of(prompts) if is_start else None,
        tools_hash=_hash_of(offers) if is_start else None,
    )


def _hash_of(parts: Sequence[Any]) -> str | None:
    """A short hash of what a request has; None: nothing. The order of tools says nothing."""
    if not parts:
        return None
    listed = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    encoded = sorted(msgspec.json.encode(one, order="deterministic") for one in listed)
    return hashlib.blake2b(b"\n".join(encoded), digest_size=5).hexdigest()


def _mcp_call(payload: dict[str, Any]) -> McpCall | Literal["unread"]:
    parameters = as_dict(payload.get("params"))
    name = as_str(parameters.get("name"))
    if name is None:
        return "unread"
    arguments, arguments_text = read_arguments(parameters.get("arguments", {}))
    traceparent = as_str(as_dict(parameters.get("_meta")).get("traceparent"))
    return McpCall(
        ToolCall(name=name, arguments=arguments, arguments_text=arguments_text),
        payload.get("id"),
        traceparent,
    )


def read_response(seen: SeenResponse) -> tuple[Reply | None, bool]:
    """The message of a model, whole or streamed, and whether all of it was understood; of a cut-off one, what arrived."""
    events, over = _events(seen)
    if not events:
        return None, False
    # A response without a stream is one event, and complete.
    payload, whole = (events[0], True) if over and len(events) == 1 else assemble_events(events, done=over)
    reply = read_document(as_dict(payload), NO_CONTEXT)
    return reply, reply is not None and whole and seen.whole and not reply.evidence.unread


def mcp_result(seen: SeenResponse, request_id: Any) -> dict[str, Any] | None:
    """The result of a tool call in the answer of an MCP server; None if it was not seen."""
    for event in _events(seen)[0]:
        answer = as_dict(event)
        if answer.get("id") != request_id or not ("result" in answer or "error" in answer):
            continue
        if "error" in answer:
            message = as_str(as_dict(answer["error"]).get("message")) or "the call failed"
            return {"result": None, "error": message}
        result = as_dict(answer["result"])
        read = read_result({"content": result.get("content"), "isError": result.get("isError", False)})
        return {"result": result.get("structuredContent") or read.result, "error": read.error}
    return None


def _events(seen: SeenResponse) -> tuple[list[Any], bool]:
    """The JSON of a response, or of each event of a stream; and whether it marks its own end."""
    try:
        body = unpacked(seen.body, seen.encoding)
    except MalformedError:
        body = None
    if body is None:
        return [], False
    kind = STREAM_KINDS.get(seen.content_type.partition(";")[0].strip().lower())
    try:
        if kind is None:
            whole = decode_strict_json(body)
            # Gemini streams a list unless events are requested.
            return (whole, False) if isinstance(whole, list) else ([whole], True)
        reader = EventReader(kind)
        texts = reader.feed(body, last=True)
        if not seen.whole:
            # The last event may be cut off.
            texts = texts[:-1]
        return [decode_strict_json(text) for text in texts], reader.done
    except ValueError:
        return [], False


# ExchangeBook: which question each request to a model belongs to, and its response.
#
# A request belongs to the question whose trace id it carries, in `traceparent` or in the proxy's path; else to the only one whose
# text is its first user message as a whole (in a later turn, a later one) and whose calls it continues. A part of a message, the
# system prompt and tool results say nothing: a sub-agent may be asked what another question asks. Where several could have sent
# it, every one of them is only partially observed. An attempt that timed out may still be at work, so it stays a candidate.


class _Attempt:
    """One attempt at a question, and the requests that it sent."""

    def __init__(self, ask: Ask) -> None:
        self.text = _one_line(ask.question)
        self.turn = ask.turn
        self.begun = time.monotonic()
        self.exchanges: list[Exchange] = []
        self.gaps: list[Gap] = []
        # Requests that this or another attempt sent.
        self.unclear: list[Exchange] = []
        self.pending: set[Exchange] = set()
        self.idle = asyncio.Event()
        # Ids that later requests may refer to: responses and calls.
        self.ids: set[str] = set()
        # Conversations with tools that began with its text, and whether another attempt was there to begin one of them.
        self.conversations = 0
        self.had_company = False
        # Whether a conversation came with its trace.
        self.is_traced = False
        # It timed out, and may still be at work.
        self.timed_out = False
        # What is planted in its conversation; None: it is not of a run of `faults`.
        self.faults: ConversationFaults | None = None

    @property
    def is_contested(self) -> bool:
        """Whether one of the conversations with its text may be a sub-agent's of another question.

        Of an attempt that timed out, or whose own carries its trace, the only one may be.
        """
        return self.had_company and self.conversations + self.timed_out + self.is_traced > 1

    def position(self, users: Sequence[str]) -> int | None:
        """Index of the user message that is its text; None if there is none."""
        if self.turn == 0:
            return 0 if users[0] == self.text else None
        return max((number for number, said in enumerate(users) if said == self.text), default=None)

    def may_have_asked_for(self, call: ToolCall) -> bool:
        return any(
            made.arguments == call.arguments and same_tool(made.name, call.name)
            for one in (*self.exchanges, *self.unclear)
            for made in one.calls
        )


class Exchange:
    """A request and its response."""

    def __init__(
        self, request: ModelRequest | McpCall | Literal["unread"], span_id: str | None, by_trace: bool
    ) -> None:
        self.request = request
        # The attempts that could have sent it; it belongs to one only if there is only one.
        self.senders: list[_Attempt] = []
        self.by_trace = by_trace
        # Ids by which a trace knows the same model call.
        self.ids = {span_id} if span_id else set[str]()
        self.begun = self.ended = time.monotonic()
        self.calls: tuple[ToolCall, ...] = ()
        self.usage: Usage | None = None

    @property
    def faults(self) -> "ConversationFaults | None":
        """What is planted in its conversation; None unless it is certain whose it is."""
        one = self.senders[0] if len(self.senders) == 1 else None
        return None if one is None or (one.is_contested and not self.by_trace) else one.faults

    @property
    def begins_with_tools(self) -> bool:
        """Whether it is the first request of a conversation in which tools can be called."""
        request = self.request
        return (
            isinstance(request, ModelRequest)
            and request.is_start
            and (request.offers_tools or bool(self.calls))
        )

    def gap(self, text: str) -> Gap:
        return Gap(text, frozenset(self.ids))


class ExchangeBook:
    """The running questions and their requests."""

    def __init__(self, *, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._open: dict[str, _Attempt] = {}
        self._timed_out: deque[_Attempt] = deque(maxlen=_MOST_TIMED_OUT)
        # Conversation id → what is planted in it, the most recently asked last.
        self._faults: OrderedDict[str, ConversationFaults] = OrderedDict()
        # Number of requests: matched, ambiguous, of no question, unreadable.
        self.counts: Counter[str] = Counter()

    def open(self, ask: Ask) -> None:
        """Start to match the requests of a question."""
        ids = read_traceparent(ask.traceparent)
        if ids is not None:
            self._open[ids[0]] = attempt = _Attempt(ask)
            if ask.fault is not None or ask.conversation_id in self._faults:
                attempt.faults = self._begin_faulted(ask)

    def _begin_faulted(self, ask: Ask) -> "ConversationFaults":
        from answerkey.observe.observations import ConversationFaults  # only runs of `faults` need it

        faults = self._faults.setdefault(ask.conversation_id, ConversationFaults())
        self._faults.move_to_end(ask.conversation_id)
        if len(self._faults) > _MOST_FAULTED:
            self._faults.popitem(last=False)
        is_here = ask.fault is not None and ask.fault.turn == ask.turn
        faults.begin_turn(ask.fault if is_here else None)
        return faults

    def fault_record(self, ask: Ask) -> FaultRecord | None:
        """What became of the fault of a question that is still open; None: nothing was planned for it here."""
        one = self._attempt(ask.traceparent)
        if one is None or one.faults is None or ask.fault is None or ask.fault.turn != ask.turn:
            return None
        if one.is_contested and not all(exchange.by_trace for exchange in one.exchanges):
            return FaultRecord(fault=ask.fault, reason="another conversation began with the same question")
        if one.faults.record is not None:
            return one.faults.record
        if one.unclear:
            reason = "requests could have been made by several questions; pass traceparent on, or use --concurrency 1"
            return FaultRecord(fault=ask.fault, reason=reason)
        if not one.exchanges:
            return FaultRecord(fault=ask.fault, reason="nothing of the question passed the proxy")
        return one.faults.missed()

    @property
    def plants_faults(self) -> bool:
        """Whether it is of a run of `faults`."""
        return bool(self._faults)

    def rewrite(self, exchange: "Exchange", body: bytes) -> bytes:
        """The body of a request with the faults of its conversation; as it came if there are none."""
        faults = exchange.faults
        if faults is None or not isinstance(exchange.request, ModelRequest):
            return body
        # It is not read again: the record of the fault says what the model got.
        return faults.rewrite(body)

    def tool_faults(self, *, trace_id: str | None, traceparent: str | None) -> "ConversationFaults | None":
        """What is planted in the conversation that calls an HTTP tool; None where it cannot be known which one does."""
        ids = read_traceparent(traceparent)
        named = [self._open[one] for one in (trace_id, ids and ids[0]) if one in self._open]
        attempts = named[:1] or (
            [*self._open.values()] if len(self._open) == 1 and not self._timed_out else []
        )
        return attempts[0].faults if attempts else None

    def give_up(self, traceparent: str | None) -> None:
        """An attempt timed out; the chatbot may still work on it."""
        if (one := self._attempt(traceparent)) is not None:
            one.timed_out = True

    def _attempt(self, traceparent: str | None) -> _Attempt | None:
        """The open attempt of a traceparent."""
        ids = read_traceparent(traceparent)
        return None if ids is None else self._open.get(ids[0])

    def begin(
        self,
        request: ModelRequest | McpCall | Literal["unread"],
        *,
        trace_id: str | None,
        traceparent: str | None,
    ) -> Exchange:
        """Match a request; `trace_id` is the one in the proxy's path."""
        inner = request.traceparent if isinstance(request, McpCall) else None
        carried = [ids for given in (traceparent, inner) if (ids := read_traceparent(given)) is not None]
        named = [self._open[one] for one in (trace_id, *(ids[0] for ids in carried)) if one in self._open]
        exchange = Exchange(request, carried[0][1] if carried else None, bool(named))
        if named:
            exchange.senders = named[:1]
        elif trace_id is None:
            # Otherwise the path has the id of a question that has ended.
            exchange.senders = self._possible_senders(request)
        for one in exchange.senders:
            one.pending.add(exchange)
            one.idle.clear()
        return exchange

    def _possible_senders(self, request: ModelRequest | McpCall | Literal["unread"]) -> list[_Attempt]:
        running = list(self._open.values())
        attempts = [*running, *self._timed_out]
        if isinstance(request, McpCall):
            return [one for one in attempts if one.may_have_asked_for(request.call)] or running
        if not isinstance(request, ModelRequest):
            return running
        continued = [one for one in attempts if one.ids & request.ids]
        users = [
            text
            for message in request.messages
            if message.role == "user" and (text := _one_line(message.text))
        ]
        if not users:
            return continued
        places = [(place, one) for one in attempts if (place := one.position(users)) is not None]
        last = max((place for place, _ in places), default=0)
        found = [one for place, one in places if place == last]
        if not found:
            # A question that runs alone may be in a template.
            found = [one for one in attempts if one.text and any(one.text in said for said in users)]
            return found if len(running) == 1 and running[0] in found else []
        if request.ids and len(attempts) > 1:
            # It continues calls: those of one of them, or of another conversation with the same text.
            return [one for one in found if one in continued]
        return found

    def end(self, exchange: Exchange, seen: SeenResponse | None) -> None:
        """Read its response; None if there was none."""
        exchange.ended = time.monotonic()
        for one in exchange.senders:
            one.pending.discard(exchange)
            if not one.pending:
                one.idle.set()
        owner = exchange.senders[0] if len(exchange.senders) == 1 else None
        if seen is None or seen.status >= 400:
            # Without a message there are no calls.
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
                owner.gaps.append(exchange.gap("a model's answer that was unreadable or cut off"))
            if exchange.begins_with_tools:
                self._count_conversation(owner, exchange)
            return
        if exchange.begins_with_tools:
            self._count_unclear_conversation(exchange)
        affected = exchange.senders or list(self._open.values())
        for one in affected:
            one.unclear.append(exchange)
        if understood and not exchange.calls:
            # No tool was called, whichever question it was.
            return
        self.counts["ambiguous" if exchange.senders else "of no question"] += 1
        made = f"{len(exchange.senders)} questions could have sent"
        text = f"a request that {made if exchange.senders else 'no question could be found for'}"
        for one in affected:
            one.gaps.append(exchange.gap(text))

    def _count_unclear_conversation(self, exchange: Exchange) -> None:
        """Note a conversation that several attempts could have begun, or whose first message ends with a question.

        The latter is a template around the question; then a conversation that begins with the bare question may be another's.
        """
        said = [_one_line(one.text) for one in exchange.request.messages if one.role == "user"]  # type: ignore[union-attr]
        attempts = [*self._open.values(), *self._timed_out]
        templated = [one for one in attempts if one.text and said and said[-1].endswith(one.text)]
        for one in exchange.senders or templated:
            one.conversations += 1
            one.had_company = one.had_company or len(attempts) > 1

    def _count_conversation(self, owner: _Attempt, exchange: Exchange) -> None:
        """Note that a conversation began with a question's text. If two did, one may be a sub-agent's of another question."""
        others = [one for one in (*self._open.values(), *self._timed_out) if one is not owner]
        if exchange.by_trace:
            owner.is_traced = True
        else:
            owner.conversations += 1
            owner.had_company = owner.had_company or bool(others)
        if owner.is_contested and owner.conversations:
            self.counts["ambiguous"] += 1
            for one in (owner, *others):
                one.gaps.append(Gap("one of two conversations that began with the same question"))

    def _read(self, exchange: Exchange, seen: SeenResponse, owner: _Attempt | None) -> bool:
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
        reply, understood = read_response(seen)
        if reply is None or isinstance(request, str):
            return False
        start = None if owner is None else _milliseconds(owner.begun, exchange.ended)
        exchange.calls = tuple(msgspec.structs.replace(call, start_ms=start) for call in reply.tool_calls)
        exchange.usage = reply.usage
        if reply.response_id:
            exchange.ids.add(reply.response_id)
        if owner is not None:
            owner.ids.update(
                one for one in (reply.response_id, *(call.id for call in reply.tool_calls)) if one
            )
            if owner.faults is not None:
                for call in exchange.calls:
                    owner.faults.note_call(call.name, call.id)
        return understood

    async def settle(self, traceparent: str | None) -> None:
        """Wait for the pending requests of a question, at most for a quiet period."""
        one = self._attempt(traceparent)
        if one is not None and one.pending:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._quiet_s):
                    await one.idle.wait()

    def close(self, traceparent: str | None, *, is_retried: bool = False) -> Observation | None:
        """The observation of a question; None if it sent no request. An attempt that is retried is not counted."""
        ids = read_traceparent(traceparent)
        one = None if ids is None else self._open.pop(ids[0], None)
        if one is None:
            return None
        if one.timed_out:
            self._timed_out.append(one)
        gaps = [*one.gaps, *(exchange.gap("the answer to a pending request") for exchange in one.pending)]
        if not one.exchanges and not gaps:
            self.counts["questions without a request"] += not is_retried
            return None
        own = [exchange for exchange in one.exchanges if exchange.by_trace or not one.is_contested]
        in_order = sorted(own, key=lambda exchange: exchange.begun)
        messages: list[Message] = []
        usage: Usage | None = None
        offered = False
        for exchange in in_order:
            if isinstance(exchange.request, ModelRequest):
                offered = offered or exchange.request.offers_tools or bool(exchange.calls)
                messages += new_results(exchange.request.messages)
                messages.append(
                    Message("assistant", tuple(Part("call", None, call) for call in exchange.calls))
                )
                usage = usage if exchange.usage is None else add_usage(usage, exchange.usage)
        requests = (one.request for one in in_order)
        first = next((one for one in requests if isinstance(one, ModelRequest) and one.is_start), None)
        served = [call for one in in_order if isinstance(one.request, McpCall) for call in one.calls]
        if in_order and not messages:
            gaps.append(Gap("the calls of models, of which none passed the proxy"))
        return Observation(
            kind="proxy",
            tool_calls=join_calls(reply_of(messages).tool_calls, served),
            usage=usage,
            shows_calls=offered,
            unable="" if offered else _NO_TOOLS_OFFERED,
            gaps=tuple(gaps),
            known=frozenset(identity for exchange in in_order for identity in exchange.ids),
            first_request=(first.prompt_hash, first.tools_hash) if first is not None else None,
        )

    def warnings(self) -> list[str]:
        """Warnings for the reader of the run."""
        texts = {
            "questions without a request": "question(s) sent nothing through the proxy: is the chatbot's base URL the proxy's?",
            "ambiguous": "request(s) could have been made by several questions and were not used; pass traceparent on, "
            "or use --concurrency 1",
            "of no question": "request(s) with calls belong to no question that could be found and were not used; pass "
            "traceparent on, or use --concurrency 1",
        }
        return [f"proxy: {self.counts[name]} {text}" for name, text in texts.items() if self.counts[name]]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _milliseconds(first: float, second: float) -> float:
    return round(max(0.0, second - first) * 1000, 3)


# The web application. It forwards headers, which contain keys, and never stores them.


_MOST_REQUEST = 64 * 1024 * 1024
# Bytes of a response that are read; the rest is only forwarded.
_MOST_STORED = 16 * 1024 * 1024
# Hop-by-hop headers, and those that the client writes itself.
_NOT_PASSED_ON = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "accept-encoding"),
    }
)
# APIs with their own path.
_KNOWN = {name: KNOWN_APIS[name] for name in ("openai", "anthropic", "gemini", "ollama")}
_ATTEMPT = re.compile(r"^/trace/([0-9a-fA-F]{32})(?=/)")


class Upstreams:
    """The upstream server of each path of the proxy."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._bases: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        for name, api in _KNOWN.items():
            url = addresses.get(name) or os.environ.get(api.base_url_env) or api.base_url
            parts = urlsplit(url if "://" in url else f"http://{url}")
            # The path of a base URL (/v1) is also part of the base URL for the chatbot.
            self._bases[name], self._paths[name] = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for name, url in addresses.items():
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and parts.netloc
            if not is_address or not re.fullmatch(r"[\w.-]+", name):
                raise ConfigError(f"upstreams: {name} needs a plain name and an http:// or https:// address")
            if name not in _KNOWN:
                self._bases[name] = url.rstrip("/")

    def environment(self, address: str) -> dict[str, str]:
        """Environment variables by which SDKs use the proxy."""
        return {api.base_url_env: f"{address}/{name}{self._paths[name]}" for name, api in _KNOWN.items()}

    def find(self, path: str) -> str | None:
        """The upstream address of a path; None if there is none."""
        name, _, rest = path.removeprefix("/").partition("/")
        base = self._bases.get(name)
        return None if base is None else f"{base}/{rest}" if rest else base


def proxy_app(book: ExchangeBook, upstreams: Upstreams) -> "web.Application":
    import aiohttp  # 200 ms that only runs with an observer need
    import yarl
    from aiohttp import web

    kept = web.AppKey("session", aiohttp.ClientSession)

    async def session(app: web.Application):  # type: ignore[no-untyped-def]  # a context of aiohttp's own form
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        # Bodies stay compressed.
        async with aiohttp.ClientSession(
            auto_decompress=False, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        ) as opened:
            app[kept] = opened
            yield

    async def handle(request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path
        attempt = _ATTEMPT.match(path)
        path = path[attempt.end() :] if attempt else path
        url = upstreams.find(path)
        if url is None:
            return web.json_response({"error": {"message": "the proxy has nothing at this path"}}, status=404)
        body = await request.read()
        read = read_request(path, body) if request.method == "POST" else None
        exchange = None
        if read is not None:
            trace_id = attempt.group(1).lower() if attempt else None
            exchange = book.begin(read, trace_id=trace_id, traceparent=request.headers.get("traceparent"))
            body = book.rewrite(exchange, body)
        query = request.rel_url.raw_query_string
        target = yarl.URL(f"{url}?{query}" if query else url, encoded=True)
        if book.plants_faults and (read is None or isinstance(read, McpCall)):
            answer = await _break_tool(request, app[kept], target, body, book, exchange)
            if answer is not None:
                return answer
        return await _pass_on(request, app[kept], target, body, book, exchange)

    app = web.Application(client_max_size=_MOST_REQUEST, handler_args={"auto_decompress": False})
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


def _passed_headers(request: "web.Request", encodings: str) -> list[tuple[str, str]]:
    passed = [(name, value) for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON]
    return [*passed, ("Accept-Encoding", encodings)]


async def _pass_on(
    request: "web.Request",
    session: "ClientSession",
    url: "URL",
    body: bytes,
    book: ExchangeBook,
    exchange: Exchange | None,
) -> "web.StreamResponse":
    import aiohttp
    from aiohttp import web

    # Request only encodings that can be read here.
    headers = _passed_headers(request, "gzip, deflate")
    seen: SeenResponse | None = None
    try:
        async with session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            given = answer.headers
            passed = [(name, value) for name, value in given.items() if name.lower() not in _HELD_BACK]
            response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=passed)
            length = given.get("Content-Length")
            if length is not None and length.isdecimal():
                response.content_length = int(length)
            await response.prepare(request)
            kept = bytearray()
            whole = False
            try:
                whole = await _stream(answer, response, kept)
            finally:
                kind, encoding = given.get("Content-Type", ""), given.get("Content-Encoding", "")
                seen = SeenResponse(answer.status, kind, encoding, bytes(kept), whole)
            await response.write_eof()
            return response
    except aiohttp.ClientError as error:
        if seen is not None:
            # One side broke off: so does the proxy, without a traceback on standard error.
            if request.transport is not None:
                request.transport.close()
            return response
        text = f"the proxy cannot reach {urlsplit(str(url)).netloc}: {type(error).__name__}"
        return web.json_response({"error": {"message": text}}, status=502)
    finally:
        if exchange is not None:
            book.end(exchange, seen)


async def _break_tool(
    request: "web.Request",
    session: "ClientSession",
    url: "URL",
    body: bytes,
    book: ExchangeBook,
    exchange: Exchange | None,
) -> "web.StreamResponse | None":
    """The broken answer of an MCP server or HTTP tool; None if this call is not to be broken."""
    from aiohttp import web

    from answerkey.observe.observations import broken_answer, needs_true_answer

    path = request.rel_url.raw_path
    attempt = _ATTEMPT.match(path)
    tool = path[attempt.end() if attempt else 0 :].split("/")[1]
    request_id = None
    if exchange is None:
        trace_id = attempt.group(1).lower() if attempt else None
        faults = book.tool_faults(trace_id=trace_id, traceparent=request.headers.get("traceparent"))
    else:
        faults = exchange.faults
        if isinstance(exchange.request, McpCall):
            tool, request_id = exchange.request.call.name, exchange.request.request_id
    fault = None if faults is None else faults.due(tool)
    if faults is None or fault is None:
        return None
    true_answer = b""
    if needs_true_answer(fault):
        # Uncompressed, so that it can be read.
        headers = _passed_headers(request, "identity")
        async with session.request(request.method, url, headers=headers, data=body or None) as answer:
            true_answer = await answer.read()
    broken, planted = broken_answer(fault, true_answer, request_id)
    faults.land(planted)
    if exchange is not None:
        seen = SeenResponse(broken.status, "application/json", "", broken.body, broken.cut is None)
        book.end(exchange, seen)
    await asyncio.sleep(broken.delay_s)
    if broken.cut is None:
        return web.Response(status=broken.status, body=broken.body, content_type="application/json")
    return await _send_cut(request, broken)


async def _send_cut(request: "web.Request", broken: "ToolAnswer") -> "web.StreamResponse":
    """Send the beginning of an answer, and close the connection."""
    from aiohttp import web

    response = web.StreamResponse(status=broken.status, headers={"Content-Type": "application/json"})
    response.content_length = len(broken.body)
    await response.prepare(request)
    await response.write(broken.body[: broken.cut])
    if request.transport is not None:
        request.transport.close()
    return response


_HELD_BACK = _NOT_PASSED_ON - {"accept-encoding"}


async def _stream(answer: "ClientResponse", response: "web.StreamResponse", stored: bytearray) -> bool:
    """Forward each chunk as it arrives; whether all of it was also stored."""
    whole = True
    async for piece in answer.content.iter_any():
        await response.write(piece)
        if len(stored) + len(piece) <= _MOST_STORED:
            stored += piece
        else:
            whole = False
    return whole
