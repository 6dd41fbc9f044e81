"""Evidence taken apart: tool results of any shape become leaves with their paths, and tables where there are any."""

import ast
import csv
import io
import json
import re
from functools import lru_cache
from typing import Any

import msgspec

__all__ = ["Leaf", "Table", "flatten", "key_words"]

# More than this is not looked at: a tool that returns a whole database must not stall the scoring.
_MOST_LEAVES = 20_000
_MOST_ROWS = 5_000


class Leaf(msgspec.Struct, frozen=True):
    """One value in the evidence."""

    # Where it stands: "tool_calls[0].result.rows[2].amount".
    where: str
    # The nearest name above it ("amount"), "" if there is none.
    key: str
    value: str | int | float | bool | None


class Table(msgspec.Struct, frozen=True):
    """A list of records."""

    where: str
    # Each record's leaves by their path within the record.
    rows: tuple[dict[str, Leaf], ...]


def flatten(value: Any, where: str) -> tuple[list[Leaf], list[Table]]:
    """The leaves and tables of a JSON value; texts that hold JSON, CSV or a Markdown table are read as that."""
    leaves: list[Leaf] = []
    tables: list[Table] = []
    _walk(value, where, "", leaves, tables, 0)
    return leaves, tables


@lru_cache(maxsize=4096)
def key_words(key: str) -> tuple[str, ...]:
    """The words of a name: "monthly_rent" and "monthlyRent" give monthly, rent."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key)
    return tuple(word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word)


def _walk(value: Any, where: str, key: str, leaves: list[Leaf], tables: list[Table], depth: int) -> None:
    if len(leaves) >= _MOST_LEAVES or depth > 40:
        return
    if isinstance(value, str):
        parsed = _parsed(value) if depth < 20 else None
        if parsed is not None:
            _walk(parsed, where, key, leaves, tables, depth + 20)
            return
        leaves.append(Leaf(where, key, value))
    elif isinstance(value, dict):
        if (series := _series(value)) is not None:
            _records(series, where, leaves, tables, depth)
            return
        for name, inner in _with_rows(value).items():
            _walk(inner, f"{where}.{name}", str(name), leaves, tables, depth + 1)
    elif isinstance(value, list | tuple):
        first = len(leaves)
        if value and all(isinstance(row, dict) for row in value):
            _records(value, where, leaves, tables, depth)
        elif (unnamed := _rows_without_names(value)) is not None:
            _records(unnamed, where, leaves, tables, depth)
        else:
            for number, inner in enumerate(value):
                _walk(inner, f"{where}[{number}]", key, leaves, tables, depth + 1)
            if value and not any(isinstance(row, dict | list | tuple) for row in value):
                rows = tuple({key or "value": leaf} for leaf in leaves[first:][:_MOST_ROWS])
                tables.append(Table(where, rows))
    elif value is None or isinstance(value, bool | int | float):
        leaves.append(Leaf(where, key, value))


_MOST_COLUMNS = 12


def _rows_without_names(value: "list[Any] | tuple[Any, ...]") -> list[dict[str, Any]] | None:
    """[[2024, 18600], [2025, 23250]] as records; a first row of texts above figures names the columns."""
    if len(value) < 2 or not all(isinstance(row, list | tuple) for row in value):
        return None
    width = len(value[0])
    if not 2 <= width <= _MOST_COLUMNS or any(
        len(row) != width or any(isinstance(cell, dict | list | tuple) for cell in row) for row in value
    ):
        return None
    rows = list(value)
    if all(isinstance(cell, str) for cell in rows[0]) and not all(isinstance(cell, str) for cell in rows[1]):
        return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    names = [
        "year"
        if all(isinstance(row[at], int) and 1900 <= row[at] <= 2100 for row in rows)
        else f"column {at + 1}"
        for at in range(width)
    ]
    return [dict(zip(names, row, strict=True)) for row in rows]


_SERIES_KEY = re.compile(
    r"(?:19|20)\d\d(?:[-/ ]?(?:Q[1-4]|H[12]|\d{1,2}(?:-\d{1,2})?))?|[A-Z][a-z]{2,8}(?: (?:19|20)\d\d)?"
)


def _series(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """{"2024-01": 2, "2024-02": 5, …} as the list of records that it is."""
    if len(value) < 2 or not all(
        isinstance(name, str) and _SERIES_KEY.fullmatch(name) and isinstance(inner, int | float)
        for name, inner in value.items()
    ):
        return None
    if any(isinstance(inner, bool) for inner in value.values()):
        return None
    return [{"when": name, "value": inner} for name, inner in value.items()]


def _records(
    rows: "list[dict[str, Any]] | tuple[dict[str, Any], ...]",
    where: str,
    leaves: list[Leaf],
    tables: list[Table],
    depth: int,
) -> None:
    table: list[dict[str, Leaf]] = []
    for number, row in enumerate(rows):
        first = len(leaves)
        place = f"{where}[{number}]"
        _walk(row, place, "", leaves, tables, depth + 1)
        if number < _MOST_ROWS:
            table.append({leaf.where[len(place) :].lstrip("."): leaf for leaf in leaves[first:]})
    tables.append(Table(where, tuple(table)))


def _with_rows(value: dict[str, Any]) -> dict[str, Any]:
    """{"columns": […], "rows": [[…]]} with its rows as records."""
    columns, rows = value.get("columns"), value.get("rows", value.get("data"))
    if (
        isinstance(columns, list)
        and isinstance(rows, list)
        and rows
        and all(isinstance(row, list) and len(row) == len(columns) for row in rows)
    ):
        names = [
            str(column.get("name", "")) if isinstance(column, dict) else str(column) for column in columns
        ]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        return {**{k: v for k, v in value.items() if k not in ("columns", "rows", "data")}, "rows": records}
    return value


def _parsed(text: str) -> Any:
    stripped = text.strip()
    if not 2 < len(stripped) < 2_000_000:
        return None
    if stripped[0] in "[{" and stripped[-1] in "]}":
        return _json(stripped)
    lines = stripped.split("\n")
    if len(lines) >= 2 and all("|" in line for line in lines[:3]):
        return _markdown(lines)
    for sign in (",", ";", "\t"):
        if len(lines) >= 2 and all(line.count(sign) == lines[0].count(sign) > 0 for line in lines):
            return _comma_table(stripped, sign)
    return _figure_lines(lines) if 2 <= len(lines) <= _MOST_ROWS else None


_LINE_FIGURE = re.compile(r"(?<![\w.,/:-])[-+]?[$€£]?\d[\d,]*(?:\.\d+)?(?![\w/:-]|[.,]\d)%?")
_LONGEST_LINE = 160


def _figure_lines(lines: list[str]) -> Any:
    """A ledger in plain text, each line with its words and its last figure: "2024-01-09 snow removal 85.00"."""
    rows = []
    for line in lines:
        line = line.strip()
        if not line:
            continue
        found = list(_LINE_FIGURE.finditer(line))
        # Prose has lines without a figure, or ends them with a point; a ledger has the figure last.
        if (
            not found
            or len(line) > _LONGEST_LINE
            or found[-1].end() != len(line)
            or found[-1][0].endswith("%")
        ):
            return None
        rows.append({"line": line, "value": found[-1][0]})
    return rows if len(rows) > 1 else None


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if len(text) > 100_000:
            return None
        try:
            # Python tools print their results this way.
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return value if isinstance(value, dict | list) else None


def _markdown(lines: list[str]) -> Any:
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if "|" in line]
    cells = [row for row in cells if not all(re.fullmatch(r":?-{2,}:?", cell) for cell in row)]
    if len(cells) < 2 or any(len(row) != len(cells[0]) for row in cells) or len(cells[0]) < 2:
        return None
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def _comma_table(text: str, sign: str) -> Any:
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True, delimiter=sign))
    except csv.Error:
        return None
    header = rows[0]
    # A header names things: short cells without digits. Prose with commas has neither.
    if any(len(cell) > 40 or re.search(r"\d", cell) or not cell.strip() for cell in header) or len(rows) < 2:
        return None
    if any(len(row) != len(header) for row in rows) or len(header) < 2 or text.rstrip().endswith("."):
        return None
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]
