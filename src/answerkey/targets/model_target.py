"""The targets `openai:`, `anthropic:`, `gemini:` and `ollama:`: a model behind its provider's API, with a loop over tools."""

import json
import os
import time
from collections.abc import Sequence
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply, ToolCall
from answerkey.protocols import Ask, RetryableError, TargetContext
from answerkey.providers.known_apis import KNOWN_APIS
from answerkey.providers.model_api import ModelApi, Prompt, Step, read_step
from answerkey.targets.http_client import Endpoint, Response, read_endpoint
from answerkey.targets.http_reply import read_error, retry_after_seconds
from answerkey.targets.http_session import FAILURES, TargetSession, UnderWay, is_refused
from answerkey.targets.model_tools import ToolBox, ToolSettings
from answerkey.targets.model_turn import ModelTurn, TimedStep
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.targets.worker_threads import WorkerThreads
from answerkey.text.sanitise import decode_text
from answerkey.transcripts.failures import failure_message, read_failure
from answerkey.transcripts.json_shapes import as_dict
from answerkey.transcripts.plain_json import admit_reply, decode_json
from answerkey.transcripts.streams.event_reader import STREAM_KINDS, EventReader
from answerkey.transcripts.streams.whole_stream import assemble_events, decode_event

_MOST_BYTES = 16 * 1024 * 1024
# What a provider says when it may do better in a moment; a step has no effect of its own, so it can be made again.
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504, 529))


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a model under test, whatever its provider."""

    # Where the API is; by default what the provider's environment variable says, or its own address.
    base_url: str | None = None
    # By default from the provider's environment variable; a local server may need none.
    api_key: str | None = None
    system: str | None = None
    tools: list[ToolSettings] = []
    # How often the model may call tools before it must answer.
    max_turns: int = 10
    # Whether the answer is streamed, which times its first word.
    stream: bool = False
    # Further fields of the request: temperature, seed, max_tokens, …
    parameters: dict[str, Any] = {}
    headers: dict[str, str] = {}
    verify_tls: bool = True
    ca_file: str | None = None


def _settings_of(kind: str) -> type[ModelSettings]:
    """The settings of a provider's models: the name of one stands under the kind; OpenAI's may say which of its two APIs."""
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
    """The factory of all these kinds."""
    kind = next(kind for kind in KNOWN_APIS if kind in context.settings)
    settings = read_settings(context, _settings_of(kind))
    by = "openai-responses" if getattr(settings, "api", None) == "responses" else kind
    return ModelTarget(KNOWN_APIS[by], kind, str(context.settings[kind]), settings, context=context)


class ModelTarget:
    """A model with tools as a chatbot."""

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
        # What its price is found by.
        self.model = model
        self.base_url = settings.base_url or os.environ.get(api.base_url_env) or api.base_url
        self.fingerprint = settings_hash(
            kind, msgspec.structs.replace(settings, base_url=safe_url(self.base_url), api_key=None)
        )
        # By which versions of its instructions are told apart.
        self.prompt_hash = None if settings.system is None else settings_hash("system", settings.system)[:10]
        self.settings = settings
        self._api = api
        # Some write it among the parameters.
        self._stream = settings.stream or settings.parameters.get("stream") is True
        self._secrets = secrets or Secrets()
        self._concurrency = context.concurrency
        self._turns: UnderWay[ModelTurn] = UnderWay(context.concurrency)
        self._tools = ToolBox(settings.tools, self._secrets, context.folder)
        self._session = TargetSession(
            self.name,
            self._secrets,
            verify_tls=settings.verify_tls,
            ca_file=settings.ca_file,
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

    async def __aexit__(self, *exc: object) -> None:
        await self._tools.close()
        await self._session.close()
        self._threads.close()

    def _full_address(self, base: str) -> str:
        """The base address; `host:port`, as OLLAMA_HOST has it, is one too, and what the paths begin with may be at its end."""
        if "://" not in base:
            base = f"http://{base}" + ("" if ":" in base else f":{urlsplit(self._api.base_url).port or 80}")
        first = "/" + self._api.path(self.model, False).split("/")[1]
        return base.rstrip("/").removesuffix(first)

    def _read_endpoint(self, base: str) -> Endpoint:
        shown = f"target {self.name}: base_url {safe_url(base)!r}"
        if not base.startswith(("http://", "https://")):
            raise ConfigError(f"{shown} is not an http:// or https:// address")
        try:
            return read_endpoint(base + self._api.path(self.model, self._stream))
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
        """Ask the model, run the tools that it calls, and go on until it answers; asked again, from where it stood."""
        turn = self._turns.get(ask.conversation_id)
        if turn is None or turn.finished or turn.turn != ask.turn:
            turn = ModelTurn(self._api, ask.turn, turn.before(ask.turn) if turn else [], ask.question)
            self._turns.keep(ask.conversation_id, turn)
        reply = await turn.go_on(
            lambda messages: self._step(messages, ask.traceparent), self._call, self.settings.max_turns
        )
        return self._secrets.redact_reply(admit_reply(reply))

    def so_far(self, ask: Ask) -> Reply | None:
        """What was done of a turn that was given up."""
        turn = self._turns.get(ask.conversation_id)
        if turn is None or turn.turn != ask.turn:
            return None
        return self._secrets.redact_reply(admit_reply(turn.so_far()))

    async def _step(self, messages: Sequence[JsonObject], traceparent: str | None) -> TimedStep:
        """One request; raises RetryableError if it may be made again."""
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
            async with await self._session.request(
                "POST", self._endpoint, body=body, traceparent=traceparent
            ) as response:
                step, first_word = await self._read(response)
        except FAILURES as error:
            if isinstance(error, ConnectionError) and not is_refused(error):
                message = failure_message(self._secrets.redact(f"the connection broke: {error}"))
                raise RetryableError(Failure("connection", message)) from error
            failed = Step(reply=self._session.failed(error))
            return TimedStep(step=failed, begun=begun, ended=time.perf_counter())
        return TimedStep(
            step=step,
            begun=response.begun,
            first_word=first_word,
            ended=response.last_byte,
            resent=int(response.resent),
        )

    async def _read(self, response: Response) -> tuple[Step, float | None]:
        """The step in a response, and when its first word came if it was streamed."""
        if response.status >= 300:
            return Step(reply=await self._refusal(response)), None
        kind = STREAM_KINDS.get(response.content_type)
        if kind is not None:
            return await self._read_stream(response, EventReader(kind))
        raw = await response.read(_MOST_BYTES)
        try:
            payload: Json = decode_json(decode_text(raw)[0])
        except (ValueError, RecursionError) as error:
            message = failure_message(f"the reply is not valid JSON: {error}")
            return Step(reply=Reply(failure=Failure("malformed", message))), None
        return read_step(self._api, payload), None

    async def _read_stream(self, response: Response, reader: EventReader) -> tuple[Step, float | None]:
        """A streamed step. One that ends before its end was only half said, and is made again like one that was refused."""
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
            raise RetryableError(failure or Failure("connection", "the stream broke off before its end"))
        return read_step(self._api, payload), first_word

    async def _refusal(self, response: Response) -> Reply:
        """The reply of a status that is not success; raises RetryableError if the step may be made again."""
        try:
            reply = await read_error(response, self._secrets)
        except RetryableError as error:
            if "insufficient_quota" in error.failure.message:
                # Nobody pays in the next minute.
                return Reply(failure=error.failure)
            raise
        if reply.failure is not None and response.status in _RETRIED:
            wait = retry_after_seconds(response.headers.get("retry-after"))
            raise RetryableError(reply.failure, wait)
        return reply

    async def _call(self, wanted: ToolCall) -> ToolCall:
        tool = self._tools.tools.get(wanted.name)
        if tool is None:
            return msgspec.structs.replace(
                wanted, error=f"there is no tool {wanted.name!r}", result_seen=True
            )
        return await tool.call(wanted)
