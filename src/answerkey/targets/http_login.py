"""What is sent with every request since a server gave it: a login's token and cookies, and the cookies of a conversation."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.targets.http_client import Endpoint, read_endpoint
from answerkey.targets.http_session import TargetSession
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.plain_json import decode_json

_LONGEST_REPLY = 1024 * 1024


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[targets.NAME.login]`; `${ENV}` is expanded in its url, headers and body."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    # Sent as JSON.
    body: dict[str, Any] = {}
    # Where the reply has the token, in JMESPath; None: it only sets cookies.
    token: str | None = None
    # The header that carries the token from then on, and what stands before it.
    header: str = "Authorization"
    prefix: str = "Bearer "


class Login:
    """Logs in, and again when what it was given has run out."""

    def __init__(self, settings: LoginSettings, name: str, secrets: Secrets, session: TargetSession) -> None:
        self._settings = settings
        self._where = f"[targets.{name}.login]"
        self._secrets = secrets
        self._session = session
        self._lock = asyncio.Lock()
        # How often it has logged in.
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
        """Log in, unless somebody has since `count` was `seen`."""
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
            said = failure_message(self._secrets.redact(content.decode("utf-8", "replace")), 200)
            raise TargetUnreachableError(
                f"{self._where} cannot log in: HTTP {response.status}: {said or response.reason}; check its url and body"
            )
        return content

    def _find(self, content: bytes) -> str:
        import jmespath  # only where there is a login

        expression = self._settings.token or ""
        try:
            found = jmespath.search(expression, decode_json(content.decode("utf-8", "replace")))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self._where} token = {expression!r}: {failure_message(str(error))}"
            ) from None
        if not isinstance(found, str) or not found or any(char in found for char in "\r\n\0"):
            raise TargetUnreachableError(
                f"{self._where} token = {expression!r} finds no token in the reply; say where it is"
            )
        return found


def read_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name → value of `Set-Cookie` headers; one that is taken back has an empty value."""
    found: dict[str, str] = {}
    for line in lines:
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            expired = any(part.replace(" ", "").lower() == "max-age=0" for part in attributes)
            found[name.strip()] = "" if expired else value.strip()
    return found


def cookie_header(*kept: Mapping[str, str] | None) -> dict[str, str]:
    """The header that sends them back; of two with one name the later counts."""
    joined = {name: value for cookies in kept for name, value in (cookies or {}).items()}
    text = "; ".join(f"{name}={value}" for name, value in joined.items() if value)
    return {"Cookie": text} if text else {}
