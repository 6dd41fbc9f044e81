"""A target's settings out of its `[targets.NAME]` table: a wrong one is named with the one that was probably meant."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import TypeVar

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.protocols import TargetContext

__all__ = ["TARGET_FORMS", "read_settings", "refuse_other_settings"]

# How the built-in kinds are written on the command line.
TARGET_FORMS = (
    "demo, http://…, python:module:callable, file.py:callable, cmd:PROGRAM, "
    "openai:MODEL, openai-responses:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, replay:FILE"
)

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


def read_settings(context: TargetContext, model: type[_Settings]) -> _Settings:
    """The settings of one kind of target."""
    if context.name is None and not all(str(value).strip() for value in context.settings.values()):
        kind = next(iter(context.settings))
        raise UsageError(f"the target '{kind}:' is incomplete; write one of {TARGET_FORMS}")
    refuse_other_settings(context, model.__struct_encode_fields__)
    try:
        return msgspec.convert(dict(context.settings), model)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_where(context)} {str(error).replace('`$.', '`')}") from None
    except ConfigError as error:
        raise ConfigError(f"{_where(context)} {error}") from None


def refuse_other_settings(context: TargetContext, known: Collection[str]) -> None:
    """Refuse settings that this kind of target does not have."""
    for key in context.settings:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"{_where(context)} unknown setting {key!r}; {hint}")


def _where(context: TargetContext) -> str:
    return f"[targets.{context.name}]" if context.name else "the target"
