"""Secrets: `${ENV}` in settings becomes its value when a target opens, and its value becomes `${ENV}` in all that is kept."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from answerkey.errors import ConfigError

__all__ = ["Secrets", "safe_url", "settings_hash"]

_TELLING = re.compile(r"key|token|secret|passw|pwd|auth|sig|credential", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Shorter values are not secrets, and replacing them would garble ordinary text.
_SHORTEST = 4
_SHORTEST_IN_REPLIES = 8


class Secrets:
    """Expands references to environment variables and removes their values from text again."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        # How a value may appear in text → the reference to put there instead; longest first.
        self._seen: dict[str, str] = {}
        # The same for values that went into headers or addresses: those are removed from replies as well.
        self._private: dict[str, str] = {}

    def expand(self, value: Any, where: str, *, private: bool = False) -> Any:
        """`value` with every `${NAME}` and `${NAME:-default}` in its strings replaced; `where` names the setting in errors."""
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: self._value(match, where, private), value)
        if isinstance(value, Mapping):
            return {key: self.expand(part, where, private=private) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.expand(part, where, private=private) for part in value]
        return value

    def add(self, name: str, value: str) -> None:
        """Keep a value out of everything that is kept, as if it had come from `${name}` in a header."""
        self._hide(value, "${" + name + "}", private=True)

    def redact(self, text: str) -> str:
        """A message without the value of any variable that was expanded."""
        for value, reference in self._seen.items():
            text = text.replace(value, reference)
        return text

    def redact_reply(self, body: str) -> str:
        """What a chatbot sent, without the values that were sent to it as credentials."""
        for value, reference in self._private.items():
            body = body.replace(value, reference)
        return body

    def _hide(self, value: str, reference: str, private: bool) -> None:
        forms = dict.fromkeys((value, quote(value, safe=""), json.dumps(value)[1:-1]), reference)
        if len(value) >= _SHORTEST:
            self._seen = _longest_first(self._seen | forms)
        if private and len(value) >= _SHORTEST_IN_REPLIES:
            self._private = _longest_first(self._private | forms)

    def _value(self, match: re.Match[str], where: str, private: bool) -> str:
        name, default = match[1], match[2]
        value = self._environ.get(name)
        if value is None:
            if default is not None:
                return default
            raise ConfigError(
                f"{where} needs the environment variable {name}, which is not set: export {name}=… first",
            )
        self._hide(value, "${" + name + "}" if private else match[0], private)
        return value


def _longest_first(forms: dict[str, str]) -> dict[str, str]:
    return dict(sorted(forms.items(), key=lambda item: -len(item[0])))


def safe_url(url: str) -> str:
    """An address without user and password, and without the values of parameters that look like keys."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return url.rpartition("@")[2] if "@" in url else url
    query = "&".join(_safe_parameter(part) for part in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def _safe_parameter(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals or not _TELLING.search(name) or (value.startswith("${") and value.endswith("}")):
        return part
    return f"{name}=***"


def settings_hash(kind: str, settings: object) -> str:
    """Hash of a target's settings as the user wrote them, with `${ENV}` unexpanded."""
    content = msgspec.json.encode([kind, settings], order="deterministic")
    return hashlib.blake2b(content, digest_size=16).hexdigest()
