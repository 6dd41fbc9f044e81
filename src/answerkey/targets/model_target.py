"""The targets `openai:`, `anthropic:`, `gemini:` and `ollama:`: a model behind its provider's API, with a loop over tools.

`ModelTurn` is one turn of a conversation: ask the model, run the tools that it calls, repeat until it answers. Its state
outlives an attempt: a step that fails with 429, 5xx or a broken connection is retried by the engine, and earlier steps are not
repeated.
"""

import asyncio
import inspect
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from answerkey.config import Secrets, safe_url, settings_hash
from answerkey.errors import ConfigError
from answerkey.model.reply import Evidence, Failure, Json, JsonObject, Reply, Source, Timings, ToolCall, Usage
from answerkey.protocols import Ask, BaseTarget, RetryableError, TargetContext
from answerkey.providers import KNOWN_APIS, ModelApi, Prompt, Step, ToolSpec, read_step
from answerkey.targets.http_client import Endpoint, HttpClient, Response, read_endpoint
from answerkey.targets.http_target import read_error
from answerkey.targets.python_target import WorkerThreads, load_callable
from answerkey.targets.resolve import PerConversation, read_settings
from answerkey.targets.sessions import (
    FAILURES,
    ConnectionSettings,
    McpClient,
    McpError,
    TargetSession,
    is_refused,
    retry_after_seconds,
)
from answerkey.text.normalise import decode_text
from answerkey.transcripts.fields import add_usage, failure_message, read_failure
from answerkey.transcripts.json_values import admit_reply, as_dict, decode_json, decode_strict_json
from answerkey.transcripts.streams import STREAM_KINDS, EventReader, assemble_events, decode_event

if TYPE_CHECKING:
    from answerkey.fault_points import FaultScope as _FaultScope

# What a model thought, in its text: servers of open models leave it there, some without the first mark.
_THOUGHT = re.compile(r"\s*(?:<think>)?(.*)</think>\s*", re.DOTALL)
_CUT_OFF = "the call was cut off at the model's limit of tokens"


class TimedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One answered step; times are on the clock of time.perf_counter."""

    step: Step
    # Start of the request that was answered, first word of the answer, last byte.
    started: float
    first_word: float | None = None
    ended: float
    # Requests that were lost with a reused connection and sent again.
    resent: int = 0


class ModelTurn:
    """The messages, calls and usage of one turn so far."""

    def __init__(self, api: ModelApi, turn: int, history: Sequence[JsonObject], question: str) -> None:
        self.turn = turn
        self.finished = False
        self._history = history
        # In the API's own format: sent with the next step, and the history of later turns.
        self.messages: list[JsonObject] = [*history, api.write_message("user", question)]
        self._api = api
        self._calls: list[ToolCall] = []
        # Calls that have started and not ended.
        self._running: tuple[ToolCall, ...] = ()
        self._sources: list[Source] = []
        self._thoughts: list[str] = []
        self._usage: Usage | None = None
        self._steps = 0
        self._worked_ms = 0.0
        # The part of it from earlier attempts.
        self._before_ms = 0.0
        self._first_word_ms: float | None = None
        self._resent = 0
        # Its last text.
        self._text: str | None = None

    def before(self, turn: int) -> Sequence[JsonObject]:
        """The messages before a turn, which is this one (asked again) or a later one."""
        return self.messages if self.turn < turn else self._history if self.turn == turn else []

    async def run(
        self,
        ask_step: Callable[[Sequence[JsonObject]], Awaitable[TimedStep]],
        call: Callable[[ToolCall], Awaitable[ToolCall]],
        most_steps: int,
    ) -> Reply:
        """Continue the turn to its reply; raises RetryableError for a step that may be retried."""
        while self._steps < most_steps:
            try:
                timed = await ask_step(self.messages)
            except RetryableError as error:
                error.so_far = self._reply(Reply(), self._worked_ms - self._before_ms)
                self._before_ms = self._worked_ms
                raise
            step = timed.step
            self._note(timed)
            if step.reply.failure is not None or not (step.calls or step.paused):
                return self._end(step.reply)
            if step.reply.finish == "length" and step.calls:
                self._calls += [msgspec.structs.replace(one, error=_CUT_OFF) for one in step.calls]
                return self._end(Reply(failure=Failure("malformed", _CUT_OFF), finish="length"))
            began = time.perf_counter()
            self._running = step.calls
            done = await asyncio.gather(*(call(one) for one in step.calls))
            self._running = ()
            self._worked_ms += 1000 * (time.perf_counter() - began)
            self._calls += done
            self.messages += [*step.history, *(self._api.results(done) if done else ())]
        message = f"the model still called tools after {most_steps} turns"
        return self._end(Reply(failure=Failure("exception", message)))

    def _note(self, timed: TimedStep) -> None:
        """Count a step that was answered."""
        step, reply = timed.step, timed.step.reply
        self._steps += 1
        self._resent += timed.resent
        if timed.first_word is not None:
            self._first_word_ms = self._worked_ms + 1000 * (timed.first_word - timed.started)
        self._worked_ms += 1000 * (timed.ended - timed.started)
        self._usage = add_usage(self._usage, reply.usage)
        self._sources += reply.sources
        text = reply.text
        thought = _THOUGHT.match(text) if text else None
        if text is not None and thought is not None:
            self._thoughts.append(thought[1].strip())
            text = text[thought.end() :]
        if reply.reasoning:
            self._thoughts.append(reply.reasoning)
        if text is not None and (not step.calls or text.strip()):
            self._text = text
        # Calls that the provider made itself; a name without id or result is not a call.
        ours = {one.name for one in step.calls}
        hosted = [one for one in reply.tool_calls if one.name not in ours]
        self._calls += [one for one in hosted if one.id is not None or one.result_seen]
        if not step.calls and not step.paused:
            self.messages += step.history

    def so_far(self) -> Reply:
        """The calls and usage until now; ends the turn."""
        self.finished = True
        return msgspec.structs.replace(self._reply(Reply(), 0.0), timings=Timings())

    def _end(self, last: Reply) -> Reply:
        """The reply of the whole turn, from its last step."""
        self.finished = True
        return self._reply(last, self._worked_ms)

    def _reply(self, last: Reply, worked_ms: float) -> Reply:
        """All that was seen, with what the last step says of itself."""
        return msgspec.structs.replace(
            last,
            text=self._text,
            tool_calls=(*self._calls, *self._running),
            sources=tuple(self._sources),
            usage=self._usage,
            reasoning="\n\n".join(self._thoughts) or None,
            # The loop is ours, so no call means no call; what was not understood in the last step stays said.
            evidence=Evidence(
                kind="transcript",
                tools_observed=True,
                sources_observed=bool(self._sources),
                completeness=last.evidence.completeness,
                unread=last.evidence.unread,
            ),
            timings=Timings(
                latency_ms=worked_ms, first_byte_ms=self._first_word_ms, attempts=1 + self._resent
            ),
        )


# Tools that a model may call while it is under test: Python callables, HTTP endpoints, MCP servers, fixed results.


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
# What of a tool's answer is sent to the model and kept.
_LONGEST_RESULT = 200_000
_ANY_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a target's `tools`: exactly one of `python`, `url`, `result` and `mcp`, and what it needs."""

    # Of a server's tools, each has its own.
    name: str = ""
    # Both are taken from a Python callable's docstring and signature if they are not given.
    description: str = ""
    parameters: dict[str, Any] | None = None
    # "module:callable" or "file.py:callable", called with the arguments by name.
    python: str | None = None
    # Gets the arguments as a JSON object by POST; its answer is the result.
    url: str | None = None
    # Always this.
    result: Any = msgspec.UNSET
    # All tools of an MCP server: a program with its arguments, or an http(s) address.
    mcp: str | None = None
    # Of a server's tools only these; empty: all.
    only: list[str] = []
    # Sent to `url` and to a server's address; `env` is for a server's program.
    headers: dict[str, str] = {}
    env: dict[str, str] = {}

    def __post_init__(self) -> None:
        ways = [self.python is not None, self.url is not None, self.result is not msgspec.UNSET]
        where = f"the tool {self.name!r}" if self.name else "a tool"
        if sum([*ways, self.mcp is not None]) != 1:
            raise ConfigError(f"{where} needs exactly one of python, url, result and mcp")
        if self.mcp is None and not self.name:
            raise ConfigError("a tool needs a name")
        if self.mcp is None and self.only:
            raise ConfigError(f"{where} has `only`, which is for mcp")


class Tool:
    """A tool that can be called."""

    def __init__(self, spec: ToolSpec, run: Callable[[JsonObject], Awaitable[object]]) -> None:
        self.spec = spec
        self._run = run

    async def call(self, request: ToolCall) -> ToolCall:
        """Run a call; an error becomes part of the call, which the model gets."""
        began = time.perf_counter()
        result: object = None
        error: str | None = None
        if request.arguments is None and request.arguments_text is not None:
            error = f"the arguments are not a JSON object: {request.arguments_text}"
        else:
            try:
                result = await self._run(request.arguments or {})
            except McpError as raised:
                error = str(raised)
            except Exception as raised:  # noqa: BLE001  # a tool may raise anything; the model gets the error
                error = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
        return msgspec.structs.replace(
            request,
            result=result,
            result_seen=True,
            error=None if error is None else failure_message(error),
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )


class ToolBox:
    """All tools of a target, and the MCP servers of some."""

    def __init__(self, settings: Sequence[ToolSettings], secrets: Secrets, folder: Path | None) -> None:
        self._settings = settings
        self._secrets = secrets
        self._folder = folder
        self._servers: list[McpClient] = []
        self.tools: dict[str, Tool] = {}

    async def open(self, threads: WorkerThreads, client: HttpClient) -> None:
        """Make the tools and open the servers."""
        for one in self._settings:
            if one.mcp is not None:
                for tool in await self._from_server(one, one.mcp, client):
                    self._add(tool)
            elif one.python is not None:
                self._add(_python_tool(one, one.python, threads, self._folder))
            elif one.url is not None:
                self._add(_http_tool(one, one.url, client, self._secrets))
            else:
                self._add(_fixed_tool(one))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers))

    def _add(self, tool: Tool) -> None:
        if tool.spec.name in self.tools:
            raise ConfigError(f"two tools have the same name: {tool.spec.name}")
        self.tools[tool.spec.name] = tool

    async def _from_server(self, settings: ToolSettings, address: str, client: HttpClient) -> list[Tool]:
        where = f"the MCP server {address!r}"
        server = McpClient(
            self._secrets.expand(address, where),
            client,
            display_name=address,
            env=self._secrets.expand(settings.env, f"{where} env"),
            headers=self._secrets.expand(settings.headers, f"{where} headers"),
            folder=None if self._folder is None else str(self._folder),
        )
        self._servers.append(server)
        specs = {spec.name: spec for spec in await server.open()}
        missing = next((name for name in settings.only if name not in specs), None)
        if missing is not None:
            raise ConfigError(f"{where} has no tool {missing!r}; there are {', '.join(sorted(specs))}")
        return [Tool(specs[name], partial(server.call, name)) for name in (settings.only or specs)]


def _spec(settings: ToolSettings, described: str = "", schema: JsonObject = _ANY_ARGUMENTS) -> ToolSpec:
    parameters = schema if settings.parameters is None else settings.parameters
    return ToolSpec(settings.name, settings.description or described, parameters)


def _python_tool(settings: ToolSettings, reference: str, threads: WorkerThreads, folder: Path | None) -> Tool:
    function = load_callable(reference, folder)[0]

    async def run(arguments: JsonObject) -> object:
        result = await threads.run(lambda: function(**arguments))
        return _plain(await result if inspect.isawaitable(result) else result)

    return Tool(_spec(settings, inspect.getdoc(function) or "", _schema_of(function)), run)


def _http_tool(settings: ToolSettings, url: str, client: HttpClient, secrets: Secrets) -> Tool:
    where = f"the tool {settings.name!r}"
    try:
        endpoint = read_endpoint(secrets.expand(url, f"{where} url"))
    except ValueError:
        raise ConfigError(f"{where}: url is not an http:// or https:// address") from None
    own = secrets.expand(settings.headers, f"{where} headers")
    headers = {"Content-Type": "application/json", **own}

    async def run(arguments: JsonObject) -> object:
        content = msgspec.json.encode(arguments)
        async with await client.request("POST", endpoint, headers=headers, body=content) as response:
            body = (await response.read(_LONGEST_RESULT)).decode("utf-8", "replace")
            if response.status >= 300:
                raise RuntimeError(f"HTTP {response.status}: {failure_message(body, 200)}")
        try:
            return decode_strict_json(body)
        except ValueError:
            return body

    return Tool(_spec(settings), run)


def _fixed_tool(settings: ToolSettings) -> Tool:
    async def run(arguments: JsonObject) -> object:
        return settings.result

    return Tool(_spec(settings), run)


def _schema_of(function: Callable[..., object]) -> JsonObject:
    """A JSON schema of a callable's parameters, from their annotations."""
    properties: JsonObject = {}
    required: list[Json] = []
    for part in inspect.signature(function, eval_str=False).parameters.values():
        if part.kind in (part.VAR_POSITIONAL, part.VAR_KEYWORD):
            continue
        kind = _TYPES.get(part.annotation) or {kind.__name__: name for kind, name in _TYPES.items()}.get(
            str(part.annotation)
        )
        properties[part.name] = {"type": kind} if kind else {}
        if part.default is part.empty:
            required.append(part.name)
    return {"type": "object", "properties": properties, "required": required}


def _plain(result: object) -> Json:
    """A tool's result as JSON."""
    try:
        plain: Json = msgspec.json.decode(msgspec.json.encode(result))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(result)[:_LONGEST_RESULT]
    return plain


_MOST_BYTES = 16 * 1024 * 1024
# Statuses after which a step is retried; a step has no side effects.
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504, 529))


class ModelSettings(
    ConnectionSettings, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The settings of a model of any provider."""

    # Address of the API; default: the provider's environment variable, or its public address.
    base_url: str | None = None
    # Default: the provider's environment variable; a local server may need none.
    api_key: str | None = None
    system: str | None = None
    tools: list[ToolSettings] = []
    # Maximum steps before the model must answer.
    max_turns: int = 10
    # Stream the answer, so that the time to the first word is known.
    stream: bool = False
    # Further fields of the request: temperature, seed, max_tokens, …
    parameters: dict[str, Any] = {}
    headers: dict[str, str] = {}


def _settings_of(kind: str) -> type[ModelSettings]:
    """The settings of a provider's models, with the model under the name of the kind; OpenAI's have `api`."""
    which = [("api", Literal["chat", "responses"], "chat")] if kind == "openai" else []
    made = msgspec.defstruct(
        f"{kind} settings",
        [("model", str, msgspec.field(name=kind)), *which],
        bases=(ModelSettings,),
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
    )
    return cast("type[ModelSettings]", made)


def make_model_target(rest: str, context: TargetContext) -> "ModelTarget":
    """The factory of all kinds of models."""
    kind = next(kind for kind in KNOWN_APIS if kind in context.settings)
    settings = read_settings(context, _settings_of(kind))
    by = "openai-responses" if getattr(settings, "api", None) == "responses" else kind
    return ModelTarget(KNOWN_APIS[by], kind, str(context.settings[kind]), settings, context=context)


class ModelTarget(BaseTarget):
    """A model with tools as a chatbot."""

    model: str

    def __init__(
        self,
        api: ModelApi,
        kind: str,
        model: str,
        settings: ModelSettings,
        *,
        context: TargetContext | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        if settings.max_turns < 1:
            raise ConfigError(f"max_turns = {settings.max_turns}: must be at least 1")
        context = context or TargetContext(settings={})
        self.name = context.name or f"{kind}:{model}"
        self.takes_faults = bool(settings.tools)
        # Its price is found by the model.
        self.model = model
        self.base_url = settings.base_url or os.environ.get(api.base_url_env) or api.base_url
        self.fingerprint = settings_hash(
            kind, msgspec.structs.replace(settings, base_url=safe_url(self.base_url), api_key=None)
        )
        # Identify the versions of its instructions and of the tools that it is given.
        self.prompt_hash = None if settings.system is None else settings_hash("system", settings.system)[:10]
        self.tools_hash = settings_hash("tools", settings.tools)[:10] if settings.tools else None
        self.settings = settings
        self._api = api
        # `stream` may also be written among the parameters.
        self._stream = settings.stream or settings.parameters.get("stream") is True
        self._secrets = secrets or Secrets()
        self._concurrency = context.concurrency
        self._turns: PerConversation[ModelTurn] = PerConversation(context.concurrency)
        self._tools = ToolBox(settings.tools, self._secrets, context.folder)
        self._session = TargetSession(
            self.name,
            self._secrets,
            tls=settings.tls_in(context.folder),
            most_bytes=_MOST_BYTES,
        )

    async def __aenter__(self) -> "ModelTarget":
        settings, where = self.settings, f"target {self.name}:"
        base = self._full_address(str(self._secrets.expand(self.base_url, f"{where} base_url")))
        self._endpoint = self._read_endpoint(base)
        headers = {"User-Agent": "answerkey", "Content-Type": "application/json"}
        headers.update(self._api.headers(self._key(base)))
        headers.update(self._secrets.expand(settings.headers, f"{where} headers"))
        self._threads = WorkerThreads(self._concurrency)
        await self._session.open(self._endpoint, safe_url(base), headers)
        try:
            await self._tools.open(self._threads, self._session.client)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def check_reachable(self) -> bool:
        """Connect to the model's API, without its tools."""
        base = self._full_address(str(self._secrets.expand(self.base_url, f"target {self.name}: base_url")))
        await self._session.open(self._read_endpoint(base), safe_url(base), {})
        await self._session.close()
        return True

    async def __aexit__(self, *exc: object) -> None:
        await self._tools.close()
        await self._session.close()
        self._threads.close()

    def _full_address(self, base: str) -> str:
        """The base address with a scheme; accepts `host:port` as in OLLAMA_HOST, and the path of the API or its first part."""
        if "://" not in base:
            base = f"http://{base}" + ("" if ":" in base else f":{urlsplit(self._api.base_url).port or 80}")
        base, mark, query = base.partition("?")
        path = self._api.path(self.model, False)
        first = "/" + path.split("/")[1]
        return base.rstrip("/").removesuffix(path).removesuffix(first) + mark + query

    def _read_endpoint(self, base: str) -> Endpoint:
        shown = f"target {self.name}: base_url {safe_url(base)!r}"
        if not base.startswith(("http://", "https://")):
            raise ConfigError(f"{shown} is not an http:// or https:// address")
        # Azure's address has a query, api-version.
        base, mark, query = base.partition("?")
        address = base + self._api.path(self.model, self._stream)
        try:
            return read_endpoint(address + ("&" if mark and "?" in address else mark) + query)
        except ValueError:
            raise ConfigError(f"{shown} is not a valid address") from None

    def _key(self, base: str) -> str | None:
        if self.settings.api_key is not None:
            key = self._secrets.expand(self.settings.api_key, f"target {self.name}: api_key")
            if key == self.settings.api_key:
                self._secrets.add("api_key", key)
            return str(key)
        names = self._api.key_env
        found = next((name for name in names if name in os.environ), None)
        if found is None and not (names and base == self._api.base_url and base.startswith("https:")):
            return None
        return str(self._secrets.expand("${" + (found or names[0]) + "}", f"target {self.name}"))

    async def ask(self, ask: Ask) -> Reply:
        """Ask the model and run the tools that it calls until it answers; a retry continues from the failed step."""
        turn = self._turns.get(ask.conversation_id)
        if turn is None or turn.finished or turn.turn != ask.turn:
            turn = ModelTurn(self._api, ask.turn, turn.before(ask.turn) if turn else [], ask.question)
            self._turns.set(ask.conversation_id, turn)
        call: Callable[[ToolCall], Awaitable[ToolCall]] = self._call
        scope: _FaultScope | None = None
        if ask.fault is not None:
            from answerkey.fault_points import FaultScope  # only runs of `faults` need it

            scope = FaultScope(ask.fault)
            call = partial(self._call_faulted, scope)
        reply = await turn.run(
            lambda messages: self._step(messages, ask.traceparent), call, self.settings.max_turns
        )
        if scope is not None and scope.record is not None:
            reply = msgspec.structs.replace(reply, fault=scope.record)
        return self._secrets.redact_reply(admit_reply(reply))

    async def so_far(self, ask: Ask) -> Reply | None:
        """What was done in a turn that timed out."""
        turn = self._turns.get(ask.conversation_id)
        if turn is None or turn.turn != ask.turn:
            return None
        return self._secrets.redact_reply(admit_reply(turn.so_far()))

    async def _step(self, messages: Sequence[JsonObject], traceparent: str | None) -> TimedStep:
        """Send one request; raises RetryableError if it may be retried."""
        prompt = Prompt(
            model=self.model,
            messages=messages,
            system=self.settings.system,
            tools=[tool.spec for tool in self._tools.tools.values()],
            stream=self._stream,
            parameters={name: value for name, value in self.settings.parameters.items() if name != "stream"},
        )
        body = json.dumps(self._api.body(prompt)).encode()
        begun = time.perf_counter()
        try:
            headers = self._session.headers | ({"traceparent": traceparent} if traceparent else {})
            async with await self._session.client.request(
                "POST", self._endpoint, headers=headers, body=body, most_bytes=_MOST_BYTES
            ) as response:
                step, first_word = await self._read(response)
        except FAILURES as error:
            if isinstance(error, ConnectionError) and not is_refused(error):
                message = failure_message(self._secrets.redact(f"the connection broke: {error}"))
                raise RetryableError(Failure("connection", message)) from error
            failed = Step(reply=self._session.failure_reply(error))
            return TimedStep(step=failed, started=begun, ended=time.perf_counter())
        return TimedStep(
            step=step,
            started=response.begun,
            first_word=first_word,
            ended=response.last_byte,
            resent=int(response.resent),
        )

    async def _read(self, response: Response) -> tuple[Step, float | None]:
        """The step in a response, and the time of its first word if it was streamed."""
        if response.status >= 300:
            return Step(reply=await self._refusal(response)), None
        kind = STREAM_KINDS.get(response.content_type)
        if kind is not None:
            return await self._read_stream(response, EventReader(kind))
        raw = await response.read(_MOST_BYTES)
        try:
            payload: Json = decode_json(decode_text(raw)[0])
        except ValueError as error:
            message = failure_message(f"the reply is not valid JSON: {error}")
            return Step(reply=Reply(failure=Failure("malformed", message))), None
        return read_step(self._api, payload), None

    async def _read_stream(self, response: Response, reader: EventReader) -> tuple[Step, float | None]:
        """A streamed step; raises RetryableError if the stream is incomplete."""
        events: list[Json] = []
        first_word: float | None = None
        async for chunk in response.chunks():
            for event in map(decode_event, reader.feed(chunk)):
                events.append(event)
                if first_word is None and self._api.speaks(as_dict(event)):
                    first_word = response.last_byte
            if reader.done:
                # Some servers keep the connection open after the last event.
                break
        events += map(decode_event, reader.feed(b"", last=True))
        payload, whole = assemble_events(events, done=reader.done)
        if not whole:
            failure = read_failure(as_dict(payload).get("error"))
            raise RetryableError(failure or Failure("connection", "the stream broke off"))
        return read_step(self._api, payload), first_word

    async def _refusal(self, response: Response) -> Reply:
        """The reply of an error status; raises RetryableError if the step may be retried."""
        try:
            reply = await read_error(response, self._secrets)
        except RetryableError as error:
            if "insufficient_quota" in error.failure.message:
                # Waiting does not help.
                return Reply(failure=error.failure)
            raise
        if reply.failure is not None and response.status in _RETRIED:
            wait = retry_after_seconds(response.headers.get("retry-after"))
            raise RetryableError(reply.failure, wait)
        return reply

    async def _call(self, request: ToolCall) -> ToolCall:
        tool = self._tools.tools.get(request.name)
        if tool is None:
            return msgspec.structs.replace(
                request, error=f"there is no tool {request.name!r}", result_seen=True
            )
        return await tool.call(request)

    async def _call_faulted(self, scope: "_FaultScope", request: ToolCall) -> ToolCall:
        """Run a call; the one that the fault is planned for brings what it plants."""
        is_due = scope.is_due(request.name)
        done = await self._call(request)
        return scope.on_call(done) if is_due else done
