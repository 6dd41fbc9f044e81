"""JSON Schema: whether a value fits a schema, in time linear in the value, and without fetching anything."""

from functools import lru_cache
from typing import Any

import msgspec


def schema_problem(schema: Any) -> str | None:
    """Why something is no schema; None if it is one."""
    if not isinstance(schema, dict | bool):
        return "must be a JSON Schema, which is an object"
    return _compiled(msgspec.json.encode(schema))[1]


def misfit(value: Any, schema: Any) -> str | None:
    """Where and why a value does not fit a schema; None if it does."""
    validator, problem = _compiled(msgspec.json.encode(schema))
    if validator is None:
        return problem
    for error in validator.iter_errors(value):
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
        return f"{place.lstrip('.') or 'the whole'}: {error.message}"
    return None


@lru_cache(maxsize=1000)
def _compiled(schema: bytes) -> tuple[Any, str | None]:
    try:
        # Only golden sets with such checks need it.
        import jsonschema_rs
    except ImportError:
        return None, "needs an optional dependency: pip install 'answerkey[json-schema]'"
    try:
        # The engine whose time is linear: a schema's `pattern` must not take for ever on some reply.
        made = jsonschema_rs.validator_for(
            msgspec.json.decode(schema),
            pattern_options=jsonschema_rs.RegexOptions(),
            retriever=_refuse,
        )
    except Exception as error:  # noqa: BLE001  # the library has an error of its own for each way to be wrong
        return None, f"is no valid JSON Schema: {str(error).splitlines()[0]}"
    return made, None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched; write the schema out in full")
