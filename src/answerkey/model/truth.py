"""Truth: settings of the data that expectations are computed from, and what was computed for a run."""

import datetime
from typing import Any, TypeAlias

import msgspec

# A computed value. None: the data has none.
TruthValue: TypeAlias = int | float | str | datetime.date | None


class RowFunction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of golden rows that name a function and its arguments: `rows = {function = "…", args = "…"}`."""

    function: str
    args: str | None = None


class TruthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One source of truth, `[truth.NAME]`: exactly one of url, files, document, python."""

    # sqlite:///path or postgresql://…
    url: str = ""
    # Table → CSV, Parquet or JSON file, or a pattern of several.
    files: dict[str, str] = {}
    # A YAML, JSON or TOML file.
    document: str = ""
    # A Python file.
    python: str = ""
    # With `python`: golden rows that name a function in fields of their own.
    rows: RowFunction | None = None
    # Longest time of one query, in seconds.
    timeout: float = 10.0
    # Most values of one expression.
    max_rows: int = 10_000


class WorldCondition(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from"}
):
    """One precondition, `[[world]]`: a value of a truth source or of a web address, and what it must be."""

    name: str
    # `> 0`, `>= 10`, `== "ready"`.
    expect: str
    source: str = ""
    # Exactly one of these.
    sql: str = ""
    fact: str = ""
    python: str = ""
    get: str = ""
    # With `get`: the JMESPath of the value in the JSON that the address returns.
    value: str = ""


class ComputedKey(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What an expectation was computed to be, for one question of one run."""

    # Of the question.
    id: str
    source: str
    expression: str
    # One value, a list of several, or None where there was none.
    value: Any
    # How many values the source gave.
    rows: int
    # How long the source took.
    ms: float


class WorldCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a precondition came to."""

    name: str
    value: Any
    expect: str
    holds: bool


class RunTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What was computed before the first question of a run. The values are in its questions, with their expressions."""

    # Expectations that were computed.
    computed: int = 0
    # ISO 8601.
    computed_at: str = ""
    world: tuple[WorldCheck, ...] = ()
