"""From what the user writes to a Target: the spec forms of `--target`, names from the configuration, live callables."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from answerkey.errors import ConfigError, UnknownNameError, UsageError
from answerkey.plugins import targets
from answerkey.protocols import Target
from answerkey.targets.mapping import ReplyMapping
from answerkey.targets.safe_names import safe_url, settings_hash
from answerkey.targets.secrets import Secrets

__all__ = ["TargetLike", "resolve_target"]

# What callers may hand over as a chatbot.
TargetLike = str | Callable[..., Any] | Target

T = TypeVar("T", bound=msgspec.Struct)

# The setting that says what kind of target a `[targets.NAME]` table is.
_KINDS = ("url", "python", "cmd", "openai", "replay", "demo")
_FORMS = "demo, http://…, python:module:callable, file.py:callable, cmd:PROGRAM, openai:MODEL, replay:FILE"


def resolve_target(
    spec: TargetLike,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    concurrency: int = 10,
    secrets: Secrets | None = None,
    folder: Path | None = None,
) -> Target:
    """The target behind a spec.

    `settings` is the configuration's `[targets]` table, `folder` where its relative paths start from.
    """
    if isinstance(spec, Target) and not isinstance(spec, type):
        return spec
    build = _Builder(concurrency, secrets or Secrets(), folder or Path())
    if not isinstance(spec, str):
        if not callable(spec):
            raise UsageError(
                f"a target is a callable, a Target or one of {_FORMS}; not a {type(spec).__name__}"
            )
        return build.live(spec)
    known = settings or {}
    if spec in known:
        return build.from_table(spec, known[spec])
    found = build.from_spec(spec)
    if found is not None:
        return found
    close = get_close_matches(spec, [*known, "demo"], n=1)
    names = f"; the configuration has {', '.join(sorted(known))}" if known else ""
    hint = f"did you mean {close[0]!r}?" if close else f"write one of {_FORMS}{names}"
    raise UnknownNameError(f"unknown target {safe_url(spec)!r}; {hint}")


class _Builder:
    """Makes each kind of target; its modules are imported when they are wanted."""

    def __init__(self, concurrency: int, secrets: Secrets, folder: Path) -> None:
        self._concurrency = concurrency
        self._secrets = secrets
        self._folder = folder

    def live(self, function: Callable[..., Any]) -> Target:
        """A callable of the caller's."""
        from answerkey.targets.python import PythonTarget

        return PythonTarget(function, concurrency=self._concurrency)

    def from_spec(self, spec: str) -> Target | None:
        """One of the spec forms; None if it is none."""
        kind, colon, rest = spec.partition(":")
        if kind in ("http", "https") and colon:
            return self._http({"url": spec}, None)
        if kind in ("python", "cmd", "openai", "replay") and colon:
            if not rest.strip():
                raise UsageError(f"the target {spec!r} is incomplete; write one of {_FORMS}")
            return self._make(kind, {kind: rest}, None)
        if kind == "demo":
            return self._make("demo", {"demo": rest}, None)
        place, colon, name = spec.rpartition(":")
        if colon and place.endswith(".py") and name.isidentifier():
            return self._make("python", {"python": spec}, None)
        return self._plugin(kind, rest)

    def _plugin(self, kind: str, rest: str) -> Target | None:
        """A kind of target that another package brings: an entry point of the group `answerkey.targets`."""
        make = targets.find(kind) if kind.isidentifier() else None
        if make is None:
            return None
        made = make(rest)
        if not isinstance(made, Target):
            raise UsageError(
                f"the plug-in for the target {kind!r} gave a {type(made).__name__}, which is no Target"
            )
        return made

    def from_table(self, name: str, table: Mapping[str, Any]) -> Target:
        """A `[targets.NAME]` table."""
        kinds = [kind for kind in _KINDS if kind in table]
        if len(kinds) != 1:
            wrong = f"has {' and '.join(kinds)}" if kinds else "says of no kind what it is"
            raise ConfigError(f"[targets.{name}] {wrong}; give it exactly one of {', '.join(_KINDS)}")
        return self._make(kinds[0], table, name)

    def _make(self, kind: str, table: Mapping[str, Any], name: str | None) -> Target:
        make: Callable[[Mapping[str, Any], str | None], Target] = getattr(
            self, f"_{'http' if kind == 'url' else kind}"
        )
        return make(table, name)

    def _start(self, name: str | None) -> Path | None:
        """Where relative paths start: in the configuration from its folder, on the command line from where the user is."""
        return self._folder if name and self._folder != Path() else None

    def _http(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.http import HttpSettings, HttpTarget

        settings = _read_table(table, HttpSettings, name)
        return HttpTarget(settings, name=name, concurrency=self._concurrency, secrets=self._secrets)

    def _python(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.python import PythonTarget, load_callable

        settings = _read_table(table, _PythonSettings, name)
        function, source = load_callable(settings.python, self._start(name))
        return PythonTarget(
            function,
            name=name or f"python:{settings.python}",
            fingerprint=settings_hash("python", [settings, source]),
            mapping=settings.reply,
            concurrency=self._concurrency,
        )

    def _cmd(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.command import CommandSettings, CommandTarget

        settings = _read_table(table, CommandSettings, name)
        start = self._start(name)
        if start is not None:
            settings = msgspec.structs.replace(settings, folder=str(start / (settings.folder or "")))
        return CommandTarget(settings, name=name, concurrency=self._concurrency, secrets=self._secrets)

    def _replay(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.replay import ReplaySettings, ReplayTarget

        return ReplayTarget(_read_table(table, ReplaySettings, name), name=name, folder=self._start(name))

    def _openai(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.openai import OpenAISettings, OpenAITarget

        settings = _read_table(table, OpenAISettings, name)
        return OpenAITarget(
            settings,
            name=name,
            concurrency=self._concurrency,
            secrets=self._secrets,
            folder=self._start(name),
        )

    def _demo(self, table: Mapping[str, Any], name: str | None) -> Target:
        from answerkey.targets.demo import DemoTarget

        settings = _read_table(table, _DemoSettings, name)
        return DemoTarget(settings.demo or None, name=name)


class _PythonSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    python: str
    reply: ReplyMapping | None = None


class _DemoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # The variant; empty: the chatbot as it should be.
    demo: str = ""


def _read_table(table: Mapping[str, Any], model: type[T], name: str | None) -> T:
    """A table as the settings of its kind; a wrong setting is named with the one that was probably meant."""
    where = f"[targets.{name}]" if name else "the target"
    fields = model.__struct_fields__
    for key in table:
        if key not in fields:
            close = get_close_matches(key, fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(fields))}"
            raise ConfigError(f"{where} unknown setting {key!r}; {hint}")
    try:
        return msgspec.convert(dict(table), model)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} {str(error).replace('`$.', '`')}") from None
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None
