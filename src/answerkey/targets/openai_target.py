"""The target `openai:MODEL`: a model behind any OpenAI-compatible API, with a loop over tools given in the configuration."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Evidence, Failure, Reply, ToolCall, Usage
from answerkey.protocols import Ask, TargetContext
from answerkey.targets.chat_histories import Conversations
from answerkey.targets.http_client import read_endpoint
from answerkey.targets.http_reply import read_error
from answerkey.targets.http_session import TargetSession
from answerkey.targets.model_tools import Tool, ToolSettings, make_tools
from answerkey.targets.secrets import Secrets, safe_url, settings_hash
from answerkey.targets.stopwatch import Stopwatch
from answerkey.targets.table_settings import read_settings
from answerkey.targets.worker_threads import WorkerThreads
from answerkey.text.boundary import decode_text
from answerkey.transcripts.admission import admit_reply
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import json_text
from answerkey.transcripts.fields.usage import add_usage
from answerkey.transcripts.formats import openai_chat
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str
from answerkey.transcripts.plain_json import decode_json

__all__ = ["OpenAISettings", "OpenAITarget", "make_openai_target"]

_DEFAULT_URL = "https://api.openai.com/v1"
_MOST_BYTES = 16 * 1024 * 1024


class OpenAISettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a model under test."""

    # The model's name.
    openai: str
    # Where the API is; `${OPENAI_BASE_URL}` or OpenAI's own if it is not given.
    base_url: str | None = None
    # `${OPENAI_API_KEY}` if it is not given; a local server may need none.
    api_key: str | None = None
    system: str | None = None
    tools: list[ToolSettings] = []
    # How often the model may call tools before it must answer.
    max_turns: int = 10
    # Further fields of the request: temperature, seed, max_tokens, …
    parameters: dict[str, Any] = {}
    headers: dict[str, str] = {}
    verify_tls: bool = True
    ca_file: str | None = None


def make_openai_target(rest: str, context: TargetContext) -> "OpenAITarget":
    """The factory of the kind `openai`."""
    return OpenAITarget(
        read_settings(context, OpenAISettings),
        name=context.name,
        concurrency=context.concurrency,
        folder=context.folder,
    )


class OpenAITarget:
    """A model with tools as a chatbot."""

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        secrets: Secrets | None = None,
        folder: Path | None = None,
    ) -> None:
        if settings.max_turns < 1:
            raise ConfigError(f"max_turns = {settings.max_turns}: must be at least 1")
        self.name = name or f"openai:{settings.openai}"
        base = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL
        # What its price is found by.
        self.model, self.base_url = settings.openai, base
        self.fingerprint = settings_hash(
            "openai", msgspec.structs.replace(settings, base_url=safe_url(base), api_key=None)
        )
        self._settings = settings
        self._secrets = secrets or Secrets()
        self._concurrency = concurrency
        self._folder = folder
        self._conversations = Conversations(concurrency)
        self._tools: dict[str, Tool] = {}
        self._session = TargetSession(
            self.name,
            self._secrets,
            verify_tls=settings.verify_tls,
            ca_file=settings.ca_file,
            most_bytes=_MOST_BYTES,
        )

    async def __aenter__(self) -> "OpenAITarget":
        settings, where = self._settings, f"target {self.name}:"
        base = str(self._secrets.expand(self.base_url, f"{where} base_url")).rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise ConfigError(f"{where} base_url {safe_url(base)!r} is not an http:// or https:// address")
        try:
            self._endpoint = read_endpoint(f"{base}/chat/completions")
        except ValueError:
            raise ConfigError(f"{where} base_url {safe_url(base)!r} is not a valid address") from None
        headers = {"User-Agent": "answerkey", "Content-Type": "application/json"}
        key = self._key(base)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        headers.update(self._secrets.expand(settings.headers, f"{where} headers"))
        self._tools = make_tools(settings.tools, self._secrets, self._folder)
        self._threads = WorkerThreads(self._concurrency)
        await self._session.open(self._endpoint, safe_url(base), headers)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()
        self._threads.close()

    async def ask(self, ask: Ask) -> Reply:
        """Ask the model, run the tools that it calls, and go on until it answers."""
        watch = Stopwatch()
        sent = self._conversations.begin_turn(ask.conversation_id, ask.question, ask.turn)
        calls: list[ToolCall] = []
        reply = await self._session.reply(self._loop(sent, ask, calls))
        self._conversations.end_turn(ask.conversation_id, sent, reply.text)
        reply = msgspec.structs.replace(
            reply,
            tool_calls=tuple(calls),
            evidence=Evidence(kind="transcript", tools_observed=True),
            timings=watch.timings(),
        )
        return self._secrets.redact_reply(admit_reply(reply))

    async def _loop(self, sent: list[dict[str, str]], ask: Ask, calls: list[ToolCall]) -> Reply:
        messages: list[JsonObject] = [{**message} for message in sent]
        if self._settings.system:
            messages.insert(0, {"role": "system", "content": self._settings.system})
        usage: Usage | None = None
        for _ in range(self._settings.max_turns):
            message, step = await self._complete(messages, ask)
            usage = add_usage(usage, step.usage)
            wanted = as_dicts(message.get("tool_calls"))
            if not wanted:
                return msgspec.structs.replace(step, usage=usage)
            messages.append({"role": "assistant", "content": message.get("content"), "tool_calls": [*wanted]})
            done = await asyncio.gather(*(self._call(one) for one in wanted))
            calls += done
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": one.id,
                    "content": f"Error: {one.error}" if one.error else _as_content(one.result),
                }
                for one in done
            ]
        message_text = f"the model still called tools after {self._settings.max_turns} turns"
        return Reply(failure=Failure("exception", message_text), usage=usage)

    async def _complete(self, messages: list[JsonObject], ask: Ask) -> tuple[JsonObject, Reply]:
        """One request: the model's message as it is, and as a reply; no message where there was a failure."""
        body: JsonObject = {
            "model": self._settings.openai,
            "messages": [*messages],
            **self._settings.parameters,
        }
        if self._tools:
            body["tools"] = [tool.definition for tool in self._tools.values()]
        async with await self._session.request(
            "POST", self._endpoint, body=json.dumps(body).encode(), traceparent=ask.traceparent
        ) as response:
            if response.status >= 300:
                return {}, await read_error(response, self._secrets)
            raw = await response.read(_MOST_BYTES)
        try:
            payload = decode_json(decode_text(raw)[0])
        except (ValueError, RecursionError) as error:
            return {}, _malformed(f"the reply is not valid JSON: {error}")
        if not isinstance(payload, dict) or not openai_chat.detect(payload):
            return {}, _malformed("the reply is not a chat completion: it has no choices")
        choice = next(iter(as_dicts(payload.get("choices"))), {})
        return as_dict(choice.get("message")), openai_chat.read(payload)

    async def _call(self, wanted: JsonObject) -> ToolCall:
        function = as_dict(wanted.get("function"))
        name, identity = function.get("name"), as_str(wanted.get("id"))
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return ToolCall(name=str(name), id=identity, error=f"there is no tool {name!r}")
        return await tool.call(function.get("arguments"), identity, self._threads, self._session.client)

    def _key(self, base: str) -> str | None:
        if self._settings.api_key is not None:
            key = self._secrets.expand(self._settings.api_key, f"target {self.name}: api_key")
            if key == self._settings.api_key:
                self._secrets.add("api_key", key)
            return str(key)
        if "OPENAI_API_KEY" in os.environ or base.startswith(_DEFAULT_URL):
            return str(self._secrets.expand("${OPENAI_API_KEY}", f"target {self.name}"))
        return None


def _malformed(message: str) -> Reply:
    return Reply(failure=Failure("malformed", failure_message(message)))


def _as_content(result: object) -> str:
    return result if isinstance(result, str) else json_text(result)
