"""The only place that imports by string: names become objects, and what is not installed says how to install it."""

import importlib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from answerkey.errors import MissingExtraError, UnknownNameError

__all__ = ["find_plugin", "load_object", "named"]


def load_object(reference: str, *, feature: str = "", extra: str = "") -> Any:
    """The object behind "module:name"; a missing optional dependency is named with its extra."""
    module, _, name = reference.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if extra and not (error.name or "").startswith("answerkey"):
            raise MissingExtraError(feature or reference, extra) from None
        raise
    return getattr(found, name) if name else found


def named(kind: str, name: str, known: Mapping[str, str], **hints: str) -> Any:
    """The object that a built-in table or an installed plug-in gives a name."""
    if name in known:
        return load_object(known[name], **hints)
    plugin = find_plugin(kind, name)
    if plugin is not None:
        return plugin
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}"
    raise UnknownNameError(f"unknown {kind} {name!r}; {hint}")


def find_plugin(kind: str, name: str) -> Callable[..., Any] | None:
    """What another package registered under the entry point group `answerkey.KINDs`."""
    for point in entry_points(group=f"answerkey.{kind}s", name=name):
        loaded: Callable[..., Any] = point.load()
        return loaded
    return None
