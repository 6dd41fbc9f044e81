"""Secrets: `${ENV}` in settings becomes its value when a target opens, and its value becomes `${ENV}` in all that is kept."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import Failure, Reply, Source, ToolCall

_TELLING = re.compile(r"key|token|secret|passw|pwd|auth|sig|credential", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Shorter values are not secrets, and replacing them would garble ordinary text: they are left as they are.
_SHORTEST = 4
# Minimum bytes of a value that is also searched inside longer base64 ("user:password"), at each of the three offsets.
_SHORTEST_INSIDE_BASE64 = 8


class Secrets:
    """Expands references to environment variables and removes their values from text again."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        # How a value may appear in text → the reference to put there instead.
        self._forms: dict[str, str] = {}
        # Any of the forms, the longest first.
        self._pattern: re.Pattern[str] | None = None

    def expand(self, value: Any, where: str) -> Any:
        """`value` with every `${NAME}` and `${NAME:-default}` in its strings replaced; `where` names the setting in errors."""
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: self._value(match, where), value)
        if isinstance(value, Mapping):
            return {key: self.expand(part, where) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.expand(part, where) for part in value]
        return value

    def add(self, name: str, value: str) -> None:
        """Keep a value out of everything that is kept, as if it had come from `${name}`."""
        if len(value) < _SHORTEST:
            return
        self._forms.update(dict.fromkeys(_forms_of(value), "${" + name + "}"))
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """A text without the value of any variable that was expanded."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._forms[match[0]], text)

    def redact_message(self, message: str) -> str:
        """The same of a message, and without the beginning of a value where the message was cut short."""
        return self.redact(self._without_cut_secret(message[:-1]) + "…" if message[-1:] == "…" else message)

    def _without_cut_secret(self, text: str) -> str:
        for form in sorted(self._forms, key=len, reverse=True):
            for length in range(min(len(form) - 1, len(text)), 0, -1):
                if text.endswith(form[:length]):
                    return text[:-length]
        return text

    def redact_reply(self, reply: Reply) -> Reply:
        """What a chatbot sent, without the values that were sent to it: in its text, its calls, its sources and its ids."""
        if self._pattern is None:
            return reply
        written = msgspec.json.encode(reply).decode()
        if "…" not in written and self._pattern.search(written) is None:
            return reply
        calls = self._redact_json(msgspec.to_builtins(reply.tool_calls))
        sources = self._redact_json(msgspec.to_builtins(reply.sources))
        failure = reply.failure
        return msgspec.structs.replace(
            reply,
            text=self._redact_json(reply.text),
            tool_calls=msgspec.convert(calls, tuple[ToolCall, ...]),
            sources=msgspec.convert(sources, tuple[Source, ...]),
            failure=None
            if failure is None
            else Failure(failure.kind, self.redact_message(failure.message), self.redact(failure.traceback)),
            conversation_id=self._redact_json(reply.conversation_id),
            response_id=self._redact_json(reply.response_id),
            trace_id=self._redact_json(reply.trace_id),
            reasoning=self._redact_json(reply.reasoning),
        )

    def _redact_json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            # Where a secret is a name of ours ("text"), a struct must still be read from this; only names inside it change.
            return {
                name if name in _FIELDS else self.redact(name): self._redact_json(part)
                for name, part in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self._redact_json(part) for part in value]
        return value

    def _value(self, match: re.Match[str], where: str) -> str:
        name, default = match[1], match[2]
        value = self._environ.get(name)
        if value is None:
            if default is not None:
                return default
            raise ConfigError(
                f"{where} needs the environment variable {name}, which is not set: export {name}=… first",
            )
        self.add(name, value)
        return value


_FIELDS = frozenset({*ToolCall.__struct_fields__, *Source.__struct_fields__})


def _forms_of(value: str) -> set[str]:
    """A value as it is, and as addresses, JSON, HTML and base64 write it."""
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in quoted}
    import html  # slow to load, and most targets have no secret

    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value)}
    return {value, *quoted, *lower, *escaped, *_base64_forms(value.encode("utf-8", "surrogateescape"))}


def _base64_forms(value: bytes) -> set[str]:
    whole = base64.b64encode(value).decode()
    forms = {whole, whole.rstrip("=")}
    if len(value) >= _SHORTEST_INSIDE_BASE64:
        for before in range(3):
            # The characters at the edges depend on the neighbouring bytes; those between depend on the value only.
            text = base64.b64encode(b"\0" * before + value).decode()
            forms.add(text[-(-before * 8 // 6) : (before + len(value)) * 8 // 6])
    return forms | {form.replace("+", "-").replace("/", "_") for form in forms}


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
