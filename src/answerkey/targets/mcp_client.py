"""McpClient: the tools of a Model Context Protocol server, over the pipes of a program or over HTTP.

It is written by hand because three requests are all that is needed, and the package `mcp` (2.3) cannot do them as strictly: it
reads a program's line of any length into memory, does not report why a program ended, and rejects answers of servers that lack a
field. It also takes 1.1 CPU s to import, more than a run of 1,000 questions.
"""

import asyncio
import contextlib
import json
import shlex
from collections.abc import Mapping

from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.reply import Json, JsonObject
from answerkey.providers import ToolSpec
from answerkey.targets.command_target import Child, start_child
from answerkey.targets.http_client import Endpoint, HttpClient, Response, read_endpoint
from answerkey.targets.http_session import FAILURES
from answerkey.text.normalise import decode_text
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, decode_json, spoken_text
from answerkey.transcripts.streams import STREAM_KINDS, EventReader

# The newest protocol version with a handshake, which all servers support, and the next one, which some require.
_HANDSHAKE = "2025-11-25"
_STATELESS = "2026-07-28"
_UNSUPPORTED_VERSION = -32022
_METHOD_NOT_FOUND = -32601
# Our own: the session has expired, so the request was not looked at.
_EXPIRED = "session"
# Seconds to start, initialize and list the tools.
_OPENING_S = 60.0
_LONGEST_MESSAGE = 16 * 1024 * 1024
_MOST_PAGES = 100
_CLIENT_INFO: JsonObject = {"name": "answerkey", "version": "1"}


class McpError(Exception):
    """A server refused a request, failed or has ended."""

    def __init__(self, message: str, code: object = None) -> None:
        super().__init__(failure_message(message))
        self.code = code


class McpClient:
    """One server: `python server.py` is started and uses pipes, `https://…` uses HTTP."""

    def __init__(
        self,
        address: str,
        client: HttpClient,
        *,
        display_name: str,
        env: Mapping[str, str],
        headers: Mapping[str, str],
        folder: str | None,
    ) -> None:
        # In errors: the address may contain secrets.
        self._display_name = display_name
        self._wire: _Pipes | _Http
        if address.startswith(("http://", "https://")):
            try:
                self._wire = _Http(client, read_endpoint(address), headers)
            except ValueError:
                raise ConfigError(f"mcp = {display_name!r} is not a valid address") from None
        else:
            try:
                words = shlex.split(address)
            except ValueError as error:
                raise ConfigError(f"mcp = {display_name!r} cannot be split into words: {error}") from None
            if not words:
                raise ConfigError("mcp names no program and no address")
            self._wire = _Pipes(words, env, folder)
        self._last_id = 0
        # Sent with every request to a server without a handshake.
        self._meta: JsonObject | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> list[ToolSpec]:
        """Reach the server and list its tools."""
        try:
            async with asyncio.timeout(_OPENING_S):
                await self._initialize()
                return await self._list()
        except (McpError, *FAILURES, UsageError) as error:
            why = f"no answer within {_OPENING_S:g} s" if isinstance(error, TimeoutError) else str(error)
            await self.close()
            raise TargetUnreachableError(
                failure_message(f"the MCP server {self._display_name!r} cannot be used: {why}")
            ) from error

    async def close(self) -> None:
        """Close the connection or end the program."""
        await self._wire.close()

    async def call(self, name: str, arguments: JsonObject) -> Json:
        """Call a tool; raises McpError if it fails. A server that has ended, or whose session has expired, is opened again."""
        asked: JsonObject = {"name": name, "arguments": arguments}
        for _ in range(2):
            async with self._opening:
                if not self._wire.open:
                    await self._initialize()
            try:
                return result_of(await self._request("tools/call", asked))
            except McpError as error:
                if error.code != _EXPIRED:
                    raise
        raise McpError("its sessions expire at once")

    async def _initialize(self) -> None:
        await self._wire.start()
        hello: JsonObject = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT_INFO}
        try:
            answer = await self._request("initialize", hello)
        except McpError as error:
            if error.code not in (_UNSUPPORTED_VERSION, _METHOD_NOT_FOUND):
                raise
            self._wire.version = _STATELESS
            prefix = "io.modelcontextprotocol/"
            self._meta = {
                f"{prefix}protocolVersion": _STATELESS,
                f"{prefix}clientInfo": _CLIENT_INFO,
                f"{prefix}clientCapabilities": {},
            }
            return
        self._wire.version = as_str(answer.get("protocolVersion")) or _HANDSHAKE
        await self._wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _list(self) -> list[ToolSpec]:
        tools: list[ToolSpec] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            answer = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            for tool in as_dicts(answer.get("tools")):
                name = as_str(tool.get("name"))
                if name is not None:
                    described = as_str(tool.get("description")) or as_str(tool.get("title")) or ""
                    schema = as_dict(tool.get("inputSchema")) or {"type": "object", "properties": {}}
                    tools.append(ToolSpec(name, described, schema))
            cursor = as_str(answer.get("nextCursor"))
            if cursor is None:
                return tools
        raise McpError(f"its list of tools has more than {_MOST_PAGES} pages")

    async def _request(self, method: str, params: JsonObject) -> JsonObject:
        self._last_id += 1
        if self._meta is not None:
            params = {**params, "_meta": self._meta}
        message: JsonObject = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        answer = await self._wire.ask(message, self._last_id)
        error = answer.get("error")
        if error is not None:
            told = as_dict(error)
            raise McpError(as_str(told.get("message")) or str(error), told.get("code"))
        return as_dict(answer.get("result"))


def result_of(answer: JsonObject) -> Json:
    """The result of a tool; raises McpError if the tool failed."""
    content = answer.get("content")
    said = spoken_text(content)
    if answer.get("isError") is True:
        raise McpError(said or "the tool failed")
    structured = answer.get("structuredContent")
    if structured is not None:
        # Servers wrap a bare value, since this must be an object.
        only = isinstance(structured, dict) and structured.keys() == {"result"}
        return as_dict(structured)["result"] if only else structured
    return content if said is None else said


class _Pipes:
    """A program that reads and writes one JSON message a line; other lines are ignored."""

    def __init__(self, command: list[str], env: Mapping[str, str], folder: str | None) -> None:
        self._command, self._env, self._folder = command, env, folder
        self._child: Child | None = None
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._reading: asyncio.Task[None] | None = None
        # Used by HTTP only.
        self.version = ""

    @property
    def open(self) -> bool:
        return self._child is not None and self._child.alive and not self._child.stdin.is_closing()

    async def start(self) -> None:
        await self.close()
        self._child = child = await start_child(
            self._command, env=self._env, folder=self._folder, longest_line=_LONGEST_MESSAGE
        )
        self._reading = asyncio.create_task(self._read(child))

    async def close(self) -> None:
        if self._child is not None:
            await self._child.close()
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
        self._child = self._reading = None

    async def send(self, message: JsonObject) -> None:
        if self._child is None:
            raise McpError("it is not running")
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            await self._child.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise McpError("it has ended") from error

    async def ask(self, message: JsonObject, number: int) -> JsonObject:
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self.send(message)
            return await answer
        except asyncio.CancelledError:
            gone: JsonObject = {"requestId": number, "reason": "the question timed out"}
            with contextlib.suppress(McpError):
                await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone})
            raise
        finally:
            self._waiting.pop(number, None)

    async def _read(self, child: Child) -> None:
        why = "it has ended"
        try:
            while line := await child.stdout.readline():
                await self._handle_line(line)
        except ValueError:
            why = f"it wrote a message of more than {_LONGEST_MESSAGE} bytes"
            child.kill()
        else:
            why = (await child.failure()).message
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(McpError(why))

    async def _handle_line(self, line: bytes) -> None:
        message = _message(decode_text(line)[0])
        number = message.get("id")
        if "method" not in message:
            answer = self._waiting.get(number) if isinstance(number, int) else None
            if answer is not None and not answer.done():
                answer.set_result(message)
        elif number is not None:
            # A request by the server: only ping is supported.
            reply: JsonObject = {"jsonrpc": "2.0", "id": number}
            if message["method"] == "ping":
                reply["result"] = {}
            else:
                reply["error"] = {"code": _METHOD_NOT_FOUND, "message": "not offered by this client"}
            with contextlib.suppress(McpError):
                await self.send(reply)


class _Http:
    """A server that receives each message by POST and answers with JSON or a stream of events."""

    def __init__(self, client: HttpClient, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._client, self._endpoint, self._headers = client, endpoint, dict(headers)
        self._session: str | None = None
        self.open = False
        self.version = ""

    async def start(self) -> None:
        self.open, self._session, self.version = True, None, ""

    async def close(self) -> None:
        if self._session is not None:
            # Optional: the server would end the session by itself later.
            with contextlib.suppress(*FAILURES):
                async with asyncio.timeout(1.0), await self._sent("DELETE", None, {}):
                    pass
        self.open, self._session = False, None

    async def send(self, message: JsonObject) -> None:
        async with await self._sent("POST", message, {}) as response:
            if response.status >= 300:
                raise McpError(f"HTTP {response.status} {response.reason}")
            await response.read(_LONGEST_MESSAGE)

    async def ask(self, message: JsonObject, number: int) -> JsonObject:
        named: dict[str, str] = {}
        if self.version == _STATELESS:
            named["Mcp-Method"] = str(message["method"])
            if isinstance(name := as_dict(message["params"]).get("name"), str) and name.isascii():
                named["Mcp-Name"] = name
        session = self._session
        try:
            async with await self._sent("POST", message, named) as response:
                if response.status == 404 and session is not None:
                    # Another call may have opened a new session meanwhile.
                    self.open = self.open and self._session != session
                    raise McpError("the session has expired", _EXPIRED)
                return await self._answer(response, number)
        except FAILURES as error:
            raise McpError(f"{type(error).__name__}: {error}") from error

    async def _sent(self, method: str, message: JsonObject | None, more: Mapping[str, str]) -> Response:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": "answerkey",
            **self._headers,
            **more,
        }
        if self.version:
            headers["MCP-Protocol-Version"] = self.version
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        body = None if message is None else json.dumps(message).encode()
        return await self._client.request(
            method, self._endpoint, headers=headers, body=body, most_bytes=_LONGEST_MESSAGE
        )

    async def _answer(self, response: Response, number: int) -> JsonObject:
        self._session = self._session or response.headers.get("mcp-session-id")
        kind = STREAM_KINDS.get(response.content_type)
        if kind is not None and response.status < 300:
            reader = EventReader(kind)
            async for chunk in response.chunks():
                for event in reader.feed(chunk):
                    message = _message(event)
                    if message.get("id") == number and "method" not in message:
                        return message
            raise McpError("its stream ended without an answer")
        raw = await response.read(_LONGEST_MESSAGE)
        message = _message(decode_text(raw)[0])
        if response.status >= 300 and "error" not in message:
            raise McpError(f"HTTP {response.status} {response.reason}")
        if not message:
            raise McpError("its answer is not a JSON-RPC message; is the address right?")
        return message


def _message(text: str) -> JsonObject:
    """Parse a message; empty if it is not one."""
    try:
        return as_dict(decode_json(text))
    except ValueError:
        return {}
