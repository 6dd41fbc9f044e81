"""Tools that a model may call while it is under test: Python callables, HTTP endpoints, MCP servers, fixed results."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.providers.model_api import ToolSpec
from answerkey.targets.http_client import HttpClient, read_endpoint
from answerkey.targets.mcp_client import McpClient, McpError
from answerkey.targets.python_target import load_callable
from answerkey.targets.secrets import Secrets
from answerkey.targets.worker_threads import WorkerThreads
from answerkey.transcripts.failures import failure_message

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
    """A tool, ready to be called."""

    def __init__(self, spec: ToolSpec, run: Callable[[JsonObject], Awaitable[object]]) -> None:
        self.spec = spec
        self._run = run

    async def call(self, wanted: ToolCall) -> ToolCall:
        """Make a call that a model wants; an error is the call's, for the model to deal with."""
        began = time.perf_counter()
        result: object = None
        error: str | None = None
        if wanted.arguments is None and wanted.arguments_text is not None:
            error = f"the arguments are not a JSON object: {wanted.arguments_text}"
        else:
            try:
                result = await self._run(wanted.arguments or {})
            except McpError as raised:
                error = str(raised)
            except Exception as raised:  # noqa: BLE001  # a tool may raise anything, and the model is told
                error = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
        return msgspec.structs.replace(
            wanted,
            result=result,
            result_seen=True,
            error=None if error is None else failure_message(error),
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )


class ToolBox:
    """All tools of a target, with the servers that some of them are on."""

    def __init__(self, settings: Sequence[ToolSettings], secrets: Secrets, folder: Path | None) -> None:
        self._settings = settings
        self._secrets = secrets
        self._folder = folder
        self._servers: list[McpClient] = []
        self.tools: dict[str, Tool] = {}

    async def open(self, threads: WorkerThreads, client: HttpClient) -> None:
        """Make the tools, and start or reach the servers."""
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
        """End the servers."""
        await asyncio.gather(*(server.close() for server in self._servers))

    def _add(self, tool: Tool) -> None:
        if tool.spec.name in self.tools:
            raise ConfigError(f"two tools have the same name: {tool.spec.name}")
        self.tools[tool.spec.name] = tool

    async def _from_server(self, settings: ToolSettings, place: str, client: HttpClient) -> list[Tool]:
        where = f"the MCP server {place!r}"
        server = McpClient(
            self._secrets.expand(place, where),
            client,
            shown=place,
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
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
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
    """A tool's result in types that JSON has."""
    try:
        plain: Json = msgspec.json.decode(msgspec.json.encode(result))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(result)[:_LONGEST_RESULT]
    return plain
