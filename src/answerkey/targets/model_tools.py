"""Tools that a model may call while it is under test: a Python callable, an HTTP endpoint or a fixed result."""

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ToolSpec
from answerkey.targets.http_client import Endpoint, HttpClient, read_endpoint
from answerkey.targets.python_target import load_callable
from answerkey.targets.secrets import Secrets
from answerkey.targets.worker_threads import WorkerThreads
from answerkey.transcripts.failures import failure_message

__all__ = ["Tool", "ToolSettings", "make_tools"]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
# What of a tool's answer is sent to the model and kept.
_LONGEST_RESULT = 200_000


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a target's `tools`: its name and schema, and exactly one of `python`, `url` and `result`."""

    name: str
    # Both are taken from a Python callable's docstring and signature if they are not given.
    description: str = ""
    parameters: dict[str, Any] | None = None
    # "module:callable" or "file.py:callable", called with the arguments by name.
    python: str | None = None
    # Gets the arguments as a JSON object by POST; its answer is the result.
    url: str | None = None
    headers: dict[str, str] = {}
    # Always this.
    result: Any = msgspec.UNSET


class Tool:
    """A tool, ready to be called."""

    def __init__(self, settings: ToolSettings, secrets: Secrets, start: Path | None = None) -> None:
        where = f"the tool {settings.name!r}"
        ways = [settings.python is not None, settings.url is not None, settings.result is not msgspec.UNSET]
        if sum(ways) != 1:
            raise ConfigError(f"{where} needs exactly one of python, url and result")
        self.name = settings.name
        self._result = settings.result
        self._function: Callable[..., object] | None = None
        if settings.python is not None:
            self._function = load_callable(settings.python, start)[0]
        self._url: Endpoint | None = None
        if settings.url is not None:
            try:
                self._url = read_endpoint(secrets.expand(settings.url, f"{where} url"))
            except ValueError:
                raise ConfigError(f"{where}: url is not an http:// or https:// address") from None
        self._headers = {
            "Content-Type": "application/json",
            **secrets.expand(settings.headers, f"{where} headers"),
        }
        described = settings.description or (inspect.getdoc(self._function) or "" if self._function else "")
        schema = settings.parameters
        if schema is None:
            schema = _schema_of(self._function) if self._function else {"type": "object", "properties": {}}
        self.spec = ToolSpec(settings.name, described, schema)

    async def call(self, wanted: ToolCall, threads: WorkerThreads, client: HttpClient) -> ToolCall:
        """Make a call that a model wants; an error is the call's, for the model to deal with."""
        began = time.perf_counter()
        result: object = None
        error: str | None = None
        if wanted.arguments is None and wanted.arguments_text is not None:
            error = f"the arguments are not a JSON object: {wanted.arguments_text}"
        else:
            try:
                result = await self._run(wanted.arguments or {}, threads, client)
            except Exception as raised:  # noqa: BLE001  # a tool may raise anything, and the model is told
                error = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
        return msgspec.structs.replace(
            wanted,
            result=result,
            result_seen=error is None,
            error=None if error is None else failure_message(error),
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )

    async def _run(self, arguments: JsonObject, threads: WorkerThreads, client: HttpClient) -> object:
        function = self._function
        if function is not None:
            result = await threads.run(lambda: function(**arguments))
            return _plain(await result if inspect.isawaitable(result) else result)
        if self._url is None:
            return self._result
        content = msgspec.json.encode(arguments)
        async with await client.request("POST", self._url, headers=self._headers, body=content) as response:
            body = (await response.read(_LONGEST_RESULT)).decode("utf-8", "replace")
            if response.status >= 300:
                raise RuntimeError(f"HTTP {response.status}: {failure_message(body, 200)}")
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
            return body


def make_tools(settings: list[ToolSettings], secrets: Secrets, start: Path | None = None) -> dict[str, Tool]:
    """The tools by name; `start` is where the paths of Python files start from."""
    tools = {one.name: Tool(one, secrets, start) for one in settings}
    if len(tools) != len(settings):
        raise ConfigError("two tools have the same name")
    return tools


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
    """A tool's result in types that JSON has."""
    try:
        plain: Json = msgspec.json.decode(msgspec.json.encode(result))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(result)[:_LONGEST_RESULT]
    return plain
