"""From what the user writes to a Target: the spec forms of `--target`, names from the configuration, live callables."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path

from answerkey.errors import AnswerkeyError, ConfigError, UnknownNameError, UsageError
from answerkey.model.json_value import Json
from answerkey.plugins import targets
from answerkey.protocols import Target, TargetContext
from answerkey.targets.secrets import safe_url
from answerkey.targets.table_settings import TARGET_FORMS, refuse_other_settings
from answerkey.targets.version import LABELS
from answerkey.transcripts.failures import failure_message

__all__ = ["TargetLike", "kind_and_rest", "resolve_target"]

# What callers may hand over as a chatbot.
TargetLike = str | Callable[..., object] | Target


def resolve_target(
    spec: TargetLike,
    *,
    settings: Mapping[str, Mapping[str, Json]] | None = None,
    concurrency: int = 10,
    folder: Path | None = None,
    configured: str | None = None,
) -> Target:
    """The target behind a spec.

    `settings` is the configuration's `[targets]` table, `configured` its `target`, and `folder` where the relative paths
    of both start from.
    """
    if isinstance(spec, Target) and not isinstance(spec, type):
        return spec
    if not isinstance(spec, str):
        return _live_target(spec, concurrency)
    tables = settings or {}
    start = folder if folder != Path() else None
    if spec in tables:
        kind = _kind_of_table(spec, tables[spec])
        table = tables[spec]
        if kind in targets.built_in():
            table = {name: value for name, value in table.items() if name not in LABELS}
        context = TargetContext(settings=table, name=spec, folder=start, concurrency=concurrency)
    else:
        kind, rest = kind_and_rest(spec)
        place = start if spec == configured else None
        context = TargetContext(settings={kind: rest}, folder=place, concurrency=concurrency)
    if kind not in targets:
        raise _unknown(spec, kind, tables)
    return _make_target(kind, context)


def _live_target(given: object, concurrency: int) -> Target:
    """A callable or an agent of the caller's."""
    # Imported here for start-up: few runs ask a live callable.
    from answerkey.targets.python_target import PythonTarget
    from answerkey.targets.runnables import as_function

    function = as_function(given)
    if function is None:
        raise UsageError(
            f"a target is a callable, an object with .invoke, .ainvoke or .run, a Target or one of {TARGET_FORMS}; "
            f"not a {type(given).__name__}"
        )
    return PythonTarget(function, concurrency=concurrency)


def kind_and_rest(spec: str) -> tuple[str, str]:
    """KIND:REST; an address is of the kind `url`, and `file.py:callable` of the kind `python`."""
    kind, colon, rest = spec.partition(":")
    if kind in ("http", "https", "ws", "wss") and colon:
        return "url", spec
    place, colon, name = spec.rpartition(":")
    if colon and place.endswith(".py") and name.isidentifier() and kind not in targets:
        return "python", spec
    return kind, rest


def _kind_of_table(name: str, table: Mapping[str, Json]) -> str:
    """The kind of a `[targets.NAME]` table: the one setting whose name is a kind's."""
    built_in = targets.built_in()
    # A package's kind may be called like a setting of a built-in one, which is then meant.
    kinds = [kind for kind in built_in if kind in table] or [
        kind for kind in targets.added() if kind in table
    ]
    if len(kinds) != 1:
        wrong = f"has {' and '.join(kinds)}" if kinds else "says of no kind what it is"
        known = ", ".join([*built_in, *targets.added()])
        raise ConfigError(f"[targets.{name}] {wrong}; give it exactly one of {known}")
    return kinds[0]


def _make_target(kind: str, context: TargetContext) -> Target:
    """Call a kind's factory, with the context if it has a parameter for it."""
    make = targets.get(kind)
    given = context.settings[kind]
    rest = given if isinstance(given, str) else ""
    try:
        if "context" in inspect.signature(make).parameters:
            made = make(rest, context=context)
        else:
            refuse_other_settings(context, (kind, *LABELS))
            if not isinstance(given, str):
                raise ConfigError(f"[targets.{context.name}] {kind} must be text")
            made = make(rest)
    except AnswerkeyError:
        raise
    except Exception as error:
        if kind in targets.built_in():
            raise
        # Whatever a package's code raises is its own fault, to be named.
        message = f"the target {kind!r} cannot be made: {type(error).__name__}: {error}"
        raise UsageError(failure_message(message)) from error
    if not isinstance(made, Target):
        raise UsageError(
            f"the plug-in for the target {kind!r} gave a {type(made).__name__}, which is no Target"
        )
    return made


def _unknown(spec: str, kind: str, tables: Mapping[str, object]) -> UnknownNameError:
    names = targets.names()
    close = get_close_matches(spec, [*tables, *names], n=1) or get_close_matches(kind, names, n=1)
    added = "".join(f", {name}:…" for name in targets.added())
    configured = f"; the configuration has {', '.join(sorted(tables))}" if tables else ""
    hint = f"did you mean {close[0]!r}?" if close else f"write one of {TARGET_FORMS}{added}{configured}"
    return UnknownNameError(f"unknown target {safe_url(spec)!r}; {hint}")
