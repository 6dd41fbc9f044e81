"""Sessions with servers: the connections of a target over HTTP, and the tools of a Model Context Protocol server.

Of a connection: opening it, TLS, logging in, cookies, and what its errors mean. An MCP server is reached over the pipes of a
program or over HTTP.

The MCP client is written by hand because three requests are all that is needed, and the package `mcp` (2.3) cannot do them as
strictly: it reads a program's line of any length into memory, does not report why a program ended, and rejects answers of
servers that lack a field. It also takes 1.1 CPU s to import, more than a run of 1,000 questions.
"""

import asyncio
import contextlib
import errno
import shlex
import ssl
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Secrets
from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.reply import Failure, Json, JsonObject, Reply
from answerkey.protocols import RetryableError
from answerkey.providers import ToolSpec
from answerkey.targets.http_client import (
    Endpoint,
    HttpClient,
    NotHttpError,
    ReplyTooLargeError,
    Response,
    TlsSettings,
    make_tls,
    read_endpoint,
)
from answerkey.text.normalise import decode_text
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.json_values import (
    as_dict,
    as_dicts,
    as_str,
    decode_json,
    encode_json,
    read_number,
    spoken_text,
    too_large,
)
from answerkey.transcripts.payloads import failure_from_exception
from answerkey.transcripts.streams import STREAM_KINDS, EventReader

if TYPE_CHECKING:
    from answerkey.targets.command_target import Child

_LONGEST_REPLY = 1024 * 1024
_PREFLIGHT_S = 10.0
# Time for a server's alert after a handshake.
_REFUSAL_S = 2.0
_MEGABYTE = 1024 * 1024
# What a request may raise because of the server or the network.
FAILURES = (ReplyTooLargeError, NotHttpError, OSError, EOFError, ValueError)
# Errors of this machine, which say nothing about the chatbot.
_LOCAL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME.login]`; `${ENV}` is expanded in url, headers and body."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    # Sent as JSON.
    body: dict[str, Any] = {}
    # JMESPath of the token in the reply; None: the login only sets cookies.
    token: str | None = None
    # The header that carries the token, and the text before it.
    header: str = "Authorization"
    prefix: str = "Bearer "


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of connections that chatbots and models share."""

    tls: TlsSettings | None = None
    # The same as `verify` and `ca_file` in `tls`.
    verify_tls: bool = True
    ca_file: str | None = None

    def tls_in(self, folder: Path | None) -> TlsSettings:
        """The settings of TLS with their files in the folder of relative paths."""
        tls = self.tls or TlsSettings()
        paths = {"ca_file": tls.ca_file or self.ca_file, "cert_file": tls.cert_file, "key_file": tls.key_file}
        files = {name: path and str((folder or Path()) / path) for name, path in paths.items()}
        return msgspec.structs.replace(tls, verify=tls.verify and self.verify_tls, **files)


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header, which holds seconds or a date."""
    if not value:
        return None
    seconds = read_number(value)
    if seconds is not None:
        return max(0.0, seconds)
    from email.utils import parsedate_to_datetime  # few servers send a date

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


class TargetSession:
    """The connections and headers of one target, and the replies that its errors become."""

    def __init__(
        self,
        name: str,
        secrets: Secrets,
        *,
        tls: TlsSettings,
        most_bytes: int,
        reuse: bool = True,
    ) -> None:
        # In errors.
        self._name = name
        self._secrets = secrets
        self._tls_settings = tls
        self.most_bytes = most_bytes
        self._reuse = reuse
        self._client: HttpClient | None = None
        # None: not open, or not over TLS.
        self.tls: ssl.SSLContext | None = None
        self.headers: dict[str, str] = {}
        # Whether it has replied at all, so that the address is right.
        self.answered = False
        # What is wrong with the setup of the connection, where it was looked for; empty for nothing.
        self._problem: str | None = None

    async def open(self, endpoint: Endpoint, display_url: str, headers: Mapping[str, str]) -> None:
        """Open it; raises TargetUnreachableError if nothing answers at the address, which errors show as `display_url`."""
        for header, value in headers.items():
            if any(char in header + value for char in "\r\n\0"):
                raise ConfigError(f"target {self._name}: the header {header!r} has a line break in it")
            if header.lower() == "authorization" and endpoint.authorization is not None:
                raise ConfigError(
                    f"target {self._name}: the address has a user and password and the headers an Authorization; "
                    "keep one of the two"
                )
        self.headers = dict(headers)
        self.tls = self._make_tls() if endpoint.tls else None
        await _preflight(endpoint, display_url, self.tls)
        self._client = HttpClient(tls=self.tls, reuse=self._reuse)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def client(self) -> HttpClient:
        """The client, which does not send the target's headers by itself."""
        if self._client is None:
            raise UsageError("the target is not open: use it in `async with`")
        return self._client

    def failure_reply(self, error: Exception) -> Reply:
        """The reply for one of FAILURES; raises RetryableError if the server did not work on the question."""
        if isinstance(error, ReplyTooLargeError):
            return too_large(self.most_bytes / _MEGABYTE)
        if isinstance(error, NotHttpError):
            return Reply(failure=Failure("malformed", failure_message(self._secrets.redact(str(error)))))
        if isinstance(error, OSError) and error.errno in _LOCAL:
            message = failure_message(f"out of sockets, ports or memory on this machine: {error}")
            raise RetryableError(Failure("local_resources", message)) from error
        if isinstance(error, ssl.SSLError):
            # The client's own verdict, or the server's about the client's certificate; the chatbot was not asked.
            return Reply(failure=Failure("configuration", tls_problem(error)))
        if is_refused(error):
            message = failure_message(self._secrets.redact(f"{self._name}: connection refused"))
            raise RetryableError(Failure("connection", message)) from error
        failure = failure_from_exception(error, self._secrets.redact)
        if isinstance(error, OSError) and failure.kind == "exception":
            # Names that do not resolve, unreachable networks.
            failure = Failure("connection", failure.message)
        return Reply(failure=failure)

    async def setup_problem(self, endpoint: Endpoint) -> Reply | None:
        """The reply where the first request failed since the connection is set up wrongly, which its error need not show.

        Asked for http, servers that speak TLS answer 400 or close the connection; those that want a client certificate
        send an alert, which may be lost with the connection.
        """
        if self.answered:
            return None
        if self._problem is None:
            if endpoint.tls:
                self._problem = await _tls_refusal(endpoint, self.tls)
            elif await _speaks_tls(endpoint):
                self._problem = f"{self._name}: the server speaks TLS; write https:// in the address"
            else:
                self._problem = ""
        return Reply(failure=Failure("configuration", self._problem)) if self._problem else None

    def _make_tls(self) -> ssl.SSLContext:
        settings, where = self._tls_settings, f"target {self._name}:"
        password = self._secrets.expand(settings.key_password, f"{where} key_password")
        settings = msgspec.structs.replace(settings, key_password=password)
        files = {name: getattr(settings, name) for name in ("ca_file", "cert_file", "key_file")}
        for name, path in files.items():
            if path is not None and not Path(path).is_file():
                raise ConfigError(f"{where} {name} {path} cannot be used: there is no such file")
        try:
            return make_tls(settings)
        except (OSError, ValueError) as error:
            used = ", ".join(f"{name} {path}" for name, path in files.items() if path is not None)
            raise ConfigError(failure_message(f"{where} {used} cannot be used: {error}")) from None


# Reasons of OpenSSL for bytes that are not TLS, and the alerts of a server that wants another client certificate.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_CLIENT_CERTIFICATE = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")


def tls_problem(error: ssl.SSLError) -> str:
    """What is wrong with a TLS connection, and its remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = failure_message(error.verify_message)
        return (
            f"the server's certificate is not trusted ({why}); name its authority with ca_file under "
            "[targets.NAME.tls], or for a test server set verify = false"
        )
    reason = error.reason or str(error)
    if any(mark in reason for mark in _NOT_TLS):
        return "the server does not speak TLS at this port; write http:// in the address"
    if any(mark in reason for mark in _CLIENT_CERTIFICATE):
        return (
            f"the server refused the connection ({reason.lower().replace('_', ' ')}); "
            "give a client certificate with cert_file and key_file under [targets.NAME.tls]"
        )
    return failure_message(f"TLS failed ({reason}); check the address and [targets.NAME.tls]")


def is_refused(error: BaseException) -> bool:
    """Whether nothing listens; for a name with several addresses the error combines one for each."""
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)
    )


async def _connection_error(
    endpoint: Endpoint, tls: ssl.SSLContext | None, seconds: float, *, reads: bool = False
) -> Exception | None:
    """What a new connection fails with, with `reads` also before a request is sent; None if it does not."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
            try:
                if reads and not await reader.read(1):
                    return ConnectionResetError("the server closed the connection")
            finally:
                writer.close()
    except (OSError, UnicodeError) as error:
        return error
    return None


async def _speaks_tls(endpoint: Endpoint) -> bool:
    """Whether a server completes a TLS handshake, or ends it with an alert of TLS."""
    # A server of plain HTTP may wait for the rest of what it takes for a request.
    error = await _connection_error(endpoint, make_tls(TlsSettings(verify=False)), _REFUSAL_S)
    return error is None or (isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""))


async def _tls_refusal(endpoint: Endpoint, tls: ssl.SSLContext | None) -> str:
    """Why a server ends a connection after the handshake, as one without a client certificate; empty if it does not."""
    error = await _connection_error(endpoint, tls, _REFUSAL_S, reads=True)
    if isinstance(error, ssl.SSLError):
        return tls_problem(error)
    if error is None or isinstance(error, (TimeoutError, ConnectionRefusedError)):
        # It waits for a request, or is gone.
        return ""
    return (
        "the server ends the connection after the TLS handshake, before a request; if it wants a client certificate, "
        "give cert_file and key_file under [targets.NAME.tls]"
    )


async def _preflight(endpoint: Endpoint, display_url: str, tls: ssl.SSLContext | None) -> None:
    """Stop before the first question if nothing listens at the address, or TLS fails."""
    error = await _connection_error(endpoint, tls, _PREFLIGHT_S)
    if isinstance(error, ssl.SSLError):
        raise TargetUnreachableError(f"{display_url}: {tls_problem(error)}")
    if isinstance(error, TimeoutError):
        raise TargetUnreachableError(
            f"{display_url} does not answer: no connection within {_PREFLIGHT_S:g} s; is the address right?"
        )
    if error is not None:
        reason = "connection refused" if is_refused(error) else failure_message(str(error))
        raise TargetUnreachableError(
            f"nothing answers at {display_url} ({reason}); is the chatbot running and the address right?"
        )


class Login:
    """Logs in, and again when the token or cookies have expired."""

    def __init__(self, settings: LoginSettings, name: str, secrets: Secrets, session: TargetSession) -> None:
        self._settings = settings
        self._where = f"[targets.{name}.login]"
        self._secrets = secrets
        self._session = session
        self._lock = asyncio.Lock()
        # Number of logins.
        self.count = 0
        self.cookies: dict[str, str] = {}
        expand = secrets.expand
        try:
            self._endpoint: Endpoint = read_endpoint(expand(settings.url, f"{self._where} url"))
        except ValueError:
            raise ConfigError(f"{self._where} url is not an http:// or https:// address") from None
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers |= expand(settings.headers, f"{self._where} headers")
        self._body = msgspec.json.encode(expand(settings.body, f"{self._where} body"))

    async def log_in(self, seen: int) -> None:
        """Log in, unless another question has done so since `count` was `seen`."""
        async with self._lock:
            if self.count > seen:
                return
            content = await self._send()
            if self._settings.token is not None:
                token = self._find(content)
                self._secrets.add("LOGIN_TOKEN", token)
                self._session.headers[self._settings.header] = f"{self._settings.prefix}{token}"
            self.count += 1

    async def _send(self) -> bytes:
        try:
            async with await self._session.client.request(
                self._settings.method.upper(), self._endpoint, headers=self._headers, body=self._body
            ) as response:
                content = await response.read(_LONGEST_REPLY)
                self.cookies |= read_cookies(response.set_cookies)
        except (OSError, ValueError) as error:
            reason = failure_message(self._secrets.redact(str(error)))
            raise TargetUnreachableError(f"{self._where} cannot log in: {reason}; check its url") from None
        if response.status >= 300:
            reason = failure_message(self._secrets.redact(content.decode("utf-8", "replace")), 200)
            raise TargetUnreachableError(
                f"{self._where} cannot log in: HTTP {response.status}: {reason or response.reason}; check its url and body"
            )
        return content

    def _find(self, content: bytes) -> str:
        import jmespath  # few targets have a login

        expression = self._settings.token or ""
        try:
            token = jmespath.search(expression, decode_json(content.decode("utf-8", "replace")))
        except ValueError as error:
            raise ConfigError(
                f"{self._where} token = {expression!r}: {failure_message(str(error))}"
            ) from None
        if not isinstance(token, str) or not token or any(char in token for char in "\r\n\0"):
            raise TargetUnreachableError(
                f"{self._where} token = {expression!r} finds no token in the reply; correct the expression"
            )
        return token


def read_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name → value of `Set-Cookie` headers; empty for a cookie that is deleted."""
    cookies: dict[str, str] = {}
    for line in lines:
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            expired = any(part.replace(" ", "").lower() == "max-age=0" for part in attributes)
            cookies[name.strip()] = "" if expired else value.strip()
    return cookies


def cookie_header(*jars: Mapping[str, str] | None) -> dict[str, str]:
    """The header Cookie; of two cookies with the same name the later is sent."""
    joined = {name: value for cookies in jars for name, value in (cookies or {}).items()}
    text = "; ".join(f"{name}={value}" for name, value in joined.items() if value)
    return {"Cookie": text} if text else {}


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
        from answerkey.targets.command_target import start_child  # few chatbots are programs

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
            self._child.stdin.write(encode_json(message) + b"\n")
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

    async def _read(self, child: "Child") -> None:
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
        body = None if message is None else encode_json(message)
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
