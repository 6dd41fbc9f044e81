"""Settings from `answerkey.toml` or `[tool.answerkey]` in pyproject.toml, strictly validated, and secrets in them.

`${ENV}` in settings becomes its value when a target opens, and its value becomes `${ENV}` in all that is stored.
"""

import os
import re
from collections.abc import Mapping
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

import msgspec

from answerkey.errors import (
    ConfigError,
    UsageError,
    explain_validation,
    nearest_name,
    types_at,
    validation_parts,
)
from answerkey.model.options import (
    ErrorSettings,
    GroundedSettings,
    JudgeSettings,
    Options,
    Price,
    Scoring,
    ToolSettings,
)
from answerkey.model.question import RowFunction, TruthSettings, WorldCondition
from answerkey.model.reply import Failure, Reply, Source, ToolCall
from answerkey.model.scorecard import DEFAULT_WEIGHTS
from answerkey.plugins import RegistryLayer, scorers
from answerkey.text.patterns import blake2b, lazy

DEFAULT_STORE = ".answerkey/answerkey.db"


class ScorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a custom scorer, `[scorers.NAME]`."""

    # Reference to it, e.g. "checks.py:polite"; None: it is registered under this name.
    python: str | None = None
    # Its weight in the score, added to `[scoring.weights]`; None: it is a metric outside the score.
    weight: float | None = None
    # Whether higher or lower is better, if the scorer itself does not say.
    direction: Literal["higher", "lower"] | None = None
    # All other keys of the table: the scorer's arguments.
    arguments: dict[str, Any] = {}


# What a notification can be about.
NoticeEvent = Literal["gate", "regression", "satisfaction", "errors"]


class SmtpSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}
):
    """A mail server, `[notify.smtp]`."""

    host: str
    sender: str
    to: list[str]
    port: int = 587
    # Encryption of the connection: from its beginning, after a command, or none.
    tls: Literal["always", "starttls", "none"] = "starttls"
    # `${ENV}` is replaced.
    user: str = ""
    password: str = ""


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notifications, `[notify]`."""

    # Gets the notice as JSON; `${ENV}` is replaced.
    webhook: str = ""
    # A Slack-compatible webhook, which gets {"text": …}.
    slack: str = ""
    smtp: SmtpSettings | None = None
    on: tuple[NoticeEvent, ...] = ("gate", "regression", "satisfaction", "errors")
    # `feedback stats` and `serve` notify if satisfaction is lower.
    satisfaction: float | None = None

    @property
    def configured(self) -> bool:
        """Whether there is a recipient."""
        return bool(self.webhook or self.slack or self.smtp)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A configuration file."""

    # Default golden set and target of `run`.
    questions: str | None = None
    target: str | None = None
    # Field mapping of the golden set, as in `--map`: question = "Prompt".
    map: dict[str, str] = {}
    store: str | None = None
    run: dict[str, Any] = {}
    scoring: Scoring = Scoring()
    # Custom scorers by name.
    scorers: dict[str, ScorerSettings] = {}
    targets: dict[str, dict[str, Any]] = {}
    # Gates of every run: a plain list, or {expressions = ["score >= 0.85"], latency_factor = 1.5}.
    gates: list[str] | dict[str, Any] = []
    judge: JudgeSettings = JudgeSettings()
    # Prices of models, or of targets by name: "gpt-4o-mini" = {input = 0.15, output = 0.60}.
    prices: dict[str, Price] = {}
    server: dict[str, Any] = {}
    # Sources that expectations are computed from, by name, and preconditions on the data.
    truth: dict[str, TruthSettings] = {}
    world: list[WorldCondition] = []
    notify: NotifySettings = NotifySettings()
    # The configuration file itself.
    path: str | None = None

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to."""
        return Path(self.path).parent if self.path else Path()

    @cached_property
    def scorer_registry(self) -> RegistryLayer[Any]:
        """The process-wide scorers and those of this configuration."""
        references = {name: own.python for name, own in self.scorers.items() if own.python is not None}
        return scorers.layer(references, self.folder)

    @property
    def row_functions(self) -> dict[str, RowFunction]:
        """Truth source → the fields in which golden rows name one of its functions."""
        return {name: source.rows for name, source in self.truth.items() if source.rows is not None}

    @property
    def gate_expressions(self) -> tuple[str, ...]:
        """The gates as expressions, in either form that the file may use."""
        if isinstance(self.gates, list):
            return tuple(self.gates)
        listed = self.gates.get("expressions", [])
        return tuple(str(expression) for expression in listed)

    @property
    def _gate_options(self) -> dict[str, Any]:
        """Options of a run that are configured under `[gates]`."""
        factor = self.gates.get("latency_factor") if isinstance(self.gates, dict) else None
        return {} if factor is None else {"latency_factor": factor}

    def options(self, **overrides: Any) -> Options:
        """The Options of `[run]` with overrides; an override of None is ignored."""
        used = {name: value for name, value in overrides.items() if value is not None}
        try:
            base = msgspec.convert({**self._gate_options, **self.run, **_plain(used)}, Options)
        except msgspec.ValidationError as error:
            raise ConfigError(_explain(error, self.path, "[run]", Options)) from None
        return msgspec.structs.replace(
            base,
            scoring=used.get("scoring", self.scoring),
            judge=used.get("judge", self.judge),
            gates=base.gates or self.gate_expressions,
            map=base.map or self.map,
            prices=base.prices or self.prices,
        )


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in ("scoring", "judge")}


def load_settings(folder: Path | None = None) -> Settings:
    """The nearest configuration file at or above a folder, or the defaults if there is none."""
    start = (folder or Path.cwd()).resolve()
    from_environment = os.environ.get("ANSWERKEY_CONFIG")
    if from_environment:
        return _read(Path(from_environment), _parse(Path(from_environment)))
    for directory in (start, *start.parents):
        own = directory / "answerkey.toml"
        if own.is_file():
            return _read(own, _parse(own))
        project = directory / "pyproject.toml"
        if project.is_file():
            section = _parse(project).get("tool", {}).get("answerkey")
            if section is not None:
                return _read(project, section)
    return Settings()


def _parse(path: Path) -> dict[str, Any]:
    import tomllib  # only where there is a file to read

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read(path: Path, section: Mapping[str, Any]) -> Settings:
    if "path" in section:
        raise ConfigError(f"{path}: unknown setting 'path'")
    try:
        settings = msgspec.convert({**_with_scoring(_with_scorers(section)), "path": str(path)}, Settings)
        # A scorer whose name is in use is an error of the file, not of the first run.
        _ = settings.scorer_registry
        return settings
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(error, str(path), "", Settings)) from None
    except UsageError as error:
        raise ConfigError(f"{path}: {error}") from None


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file."""
    models = (Settings, Options, GroundedSettings, ToolSettings, ErrorSettings)
    _, defined = msgspec.json.schema_components(models, ref_template="#/$defs/{name}")
    shape = defined.pop("Settings")
    fields = {name: field for name, field in shape["properties"].items() if name != "path"}
    # Sections that the file has at another level than Settings.
    fields |= {"run": {"$ref": "#/$defs/Options"}, "grounded": {"$ref": "#/$defs/GroundedSettings"}}
    fields["tools"] = {"$ref": "#/$defs/ToolSettings"}
    fields["errors"] = {"$ref": "#/$defs/ErrorSettings"}
    fields["scorers"] = {"type": "object", "additionalProperties": {"type": "object"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "answerkey.toml",
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
        "$defs": defined,
    }


def _with_scorers(section: Mapping[str, Any]) -> dict[str, Any]:
    """Move each scorer's free keys to `arguments`, and its weight to `[scoring.weights]`."""
    tables = section.get("scorers", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError("[scorers] must have one table per scorer, e.g. [scorers.polite]")
    own = set(ScorerSettings.__struct_fields__) - {"arguments"}
    split = {
        name: {
            **{key: value for key, value in table.items() if key in own},
            "arguments": {key: value for key, value in table.items() if key not in own},
        }
        for name, table in tables.items()
    }
    weights = {name: table["weight"] for name, table in tables.items() if table.get("weight") is not None}
    if not weights:
        return {**section, "scorers": split}
    scoring = section.get("scoring", {})
    listed = scoring.get("weights", DEFAULT_WEIGHTS)
    both = next((name for name in weights if name in listed), None)
    if both is not None:
        raise ConfigError(
            f"[scoring.weights] {both} and [scorers.{both}] weight are the same setting; keep one"
        )
    joined = {**listed, **weights}
    numbers = [weight for weight in joined.values() if isinstance(weight, int | float)]
    if len(numbers) == len(joined) and abs(fsum(numbers) - 1) > 1e-9:
        places = " and ".join(f"[scorers.{name}] weight" for name in weights)
        raise ConfigError(
            f"[scoring.weights] ({fsum(listed.values()):g}) and {places} ({fsum(weights.values()):g}) "
            f"add up to {fsum(numbers):g}; change them so that they add up to 1"
        )
    return {**section, "scorers": split, "scoring": {**scoring, "weights": joined}}


# Section of the file → its field in Scoring, which is stored with each run.
_OF_SCORING = {"errors": "errors", "grounded": "grounded", "match": "matching", "tools": "tools"}


def _with_scoring(section: dict[str, Any]) -> dict[str, Any]:
    """Move `[errors]`, `[grounded]`, `[match]` and `[tools]` into `[scoring]`."""
    moved = {inside: section[name] for name, inside in _OF_SCORING.items() if name in section}
    if not moved:
        return section
    rest = {name: value for name, value in section.items() if name not in _OF_SCORING}
    return {**rest, "scoring": {**rest.get("scoring", {}), **moved}}


def _explain(error: msgspec.ValidationError, path: str | None, section: str, model: Any) -> str:
    """What is wrong, under the names that sections have in the file; for an unknown setting, the likely one."""
    where = f"{path}: " if path else ""
    message, field = validation_parts(error)
    if "unknown field" in message:
        name = message.split("`")[1]
        struct = next(one for one in types_at(model, field) if hasattr(one, "__struct_fields__"))
        inside = re.sub(r"\[\d+\]", "", _name_in_file(field)) or section.strip("[]")
        # A field may have another name in the file.
        names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
        if struct is Settings:
            names |= {section: section for section in _OF_SCORING}
            del names["path"]
        close = nearest_name(name, [*names, *names.values()])
        known = ", ".join(sorted(names.values()))
        hint = f"; did you mean {names.get(close, close)!r}?" if close else f"; known: {known}"
        return f"{where}unknown setting {name!r}{f' in [{inside}]' if inside else ''}{hint}"
    return f"{where}{section + ' ' if section else ''}{_name_in_file(explain_validation(error, model))}"


def _name_in_file(field: str) -> str:
    """A field of Settings under its name in the file: `[match]` is `scoring.matching`."""
    for name, inside in _OF_SCORING.items():
        field = re.sub(rf"^scoring\.{inside}\b", name, field)
    return field


_TELLING = lazy(r"key|token|secret|passw|pwd|auth|sig|credential", re.IGNORECASE)
_REFERENCE = lazy(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
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
    # Slow to load, and most targets have no secret.
    import html
    import json

    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value)}
    return {value, *quoted, *lower, *escaped, *_base64_forms(value.encode("utf-8", "surrogateescape"))}


def _base64_forms(value: bytes) -> set[str]:
    import base64

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
    return blake2b(content, digest_size=16).hexdigest()
