"""How another tool's rows become a golden set's: a table of fields per format, and a list of what is left behind."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, is_field, parse_question
from answerkey.errors import InputError
from answerkey.model.json_value import Json, JsonObject
from answerkey.protocols import Imported
from answerkey.transcripts.field_map import finder
from answerkey.transcripts.row_files import open_rows

# Fields of a reply; a row with one of these is a recorded reply with its expectations inline.
_REPLY_FIELDS = frozenset(
    {"answer", "tools_used", "tool_calls", "messages", "sources", "error", "latency_ms"}
)
_NOTHING: tuple[Any, ...] = (None, "", [], {})


class Place(msgspec.Struct, frozen=True):
    """Where a row stands: its line, or its number where the format has no lines."""

    path: Path
    line: int | None
    number: int

    def __str__(self) -> str:
        return f"line {self.line}" if self.line is not None else f"item {self.number}"


class Losses:
    """What could not be carried over, with where it stood."""

    def __init__(self) -> None:
        self._places: dict[str, dict[Place, None]] = {}
        self.place = Place(Path(), None, 0)

    def add(self, what: str) -> None:
        """Something in the present row has no counterpart."""
        self._places.setdefault(what, {})[self.place] = None

    def notes(self) -> tuple[str, ...]:
        """A line for each thing, with every place."""
        files = {place.path for places in self._places.values() for place in places}
        return tuple(
            f"not carried over: {what} ({_listed(places, with_file=len(files) > 1)})"
            for what, places in self._places.items()
        )


def _listed(places: Iterable[Place], *, with_file: bool) -> str:
    """Places by file and kind: "lines 3, 4; tests.csv item 1"."""
    groups: dict[str, list[str]] = {}
    for place in places:
        kind, number = str(place).split()
        groups.setdefault(f"{place.path.name} {kind}" if with_file else kind, []).append(number)
    return "; ".join(
        f"{group}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" for group, numbers in groups.items()
    )


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """An importer by where a tool has what a golden set holds."""

    name: str
    # Field → JMESPath expressions, of which the first that finds something counts.
    fields: Mapping[str, Sequence[str]]
    # Field → how its value is read; None means that it cannot be.
    readers: Mapping[str, Callable[[Any, Losses], Any]] = {}
    # Objects whose other entries are kept as notes under their own names.
    spread: Sequence[str] = ()
    # What is of the tool's own book-keeping: neither kept nor missed.
    unneeded: Sequence[str] = ()
    # What means something and has no counterpart.
    lost: Sequence[str] = ()

    def __call__(self, paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
        """Import the rows of the files by the table; `fields` goes before it."""
        losses = Losses()
        table = {**self.fields, **{field: (expression,) for field, expression in (fields or {}).items()}}
        readers = {field: read for field, read in self.readers.items() if field not in (fields or ())}
        compiled = {field: [finder(path) for path in found_at] for field, found_at in table.items()}
        used = {expression for found_at in table.values() for expression in found_at}
        found: list[tuple[Place, JsonObject]] = []
        for place, row in numbered_rows(paths):
            losses.place = place
            taken: JsonObject = {}
            for field, expressions in compiled.items():
                value = next((value for find in expressions if (value := find(row)) not in _NOTHING), None)
                if value is not None and field in readers:
                    value = readers[field](value, losses)
                if value not in _NOTHING:
                    taken[field] = value
            found.append((place, {**_notes(row, self, used, losses), **taken}))
        return finish(found, losses, self.name)


def numbered_rows(paths: Iterable[Path]) -> Iterator[tuple[Place, JsonObject]]:
    """Every row of the files with its place."""
    for path in paths:
        file = open_rows(path)
        for number, (line, row) in enumerate(file.rows, start=1):
            held = {name: _held(cell) for name, cell in row.items()} if file.is_table else row
            yield Place(path, line, number), held


def _held(cell: Json) -> Json:
    """The list or object that a table's cell holds, as JSON or as Python writes it; any other cell is its text."""
    if not isinstance(cell, str) or cell[:1] not in ("[", "{"):
        return cell
    try:
        value: Json = msgspec.json.decode(cell)
    except msgspec.DecodeError:
        try:
            value = ast.literal_eval(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return cell
    return value


def _notes(row: JsonObject, form: Format, used: set[str], losses: Losses) -> JsonObject:
    """What the table does not name: kept as notes, or listed as lost."""
    notes: JsonObject = {}
    entries = dict(row)
    for container in form.spread:
        held = entries.pop(container, None)
        if isinstance(held, dict):
            entries.update({name: value for name, value in held.items() if f"{container}.{name}" not in used})
        elif held not in _NOTHING and container not in used:
            entries[container] = held
    for name, value in entries.items():
        if name in used or name in form.unneeded or value in _NOTHING:
            continue
        if name in form.lost:
            losses.add(f"'{name}'")
        else:
            # Under a name of answerkey's it would mean something else.
            notes[f"{form.name}_{name}" if is_field(name) or name in _REPLY_FIELDS else name] = value
    return notes


def finish(found: Iterable[tuple[Place, JsonObject]], losses: Losses, name: str) -> Imported:
    """The rows, each checked as a golden case, and what was left behind."""
    rows: list[JsonObject] = []
    first: dict[str, Place] = {}
    for place, row in found:
        try:
            question = parse_question({key: value for key, value in row.items() if key not in _REPLY_FIELDS})
        except ValueError as error:
            remedy = (
                f"; it has {', '.join(list(row)[:20])}: say where it is with --map"
                if "has no" in str(error)
                else ""
            )
            raise InputError(f"{place}: {error}{remedy}", path=place.path) from None
        if "answer" not in row and "messages" not in row and question.id in first:
            raise InputError(f"{place}: has the id or wording of {first[question.id]}", path=place.path)
        first[question.id] = place
        rows.append(row)
    if not rows:
        raise InputError(f"holds nothing that {name} would hold")
    replies = any(not _REPLY_FIELDS.isdisjoint(row) for row in rows)
    bare = sum(EXPECTATION_FIELDS.isdisjoint(row) and not row.get("turns") for row in rows)
    expects_nothing = (
        (f"{bare} of {len(rows)} rows expect nothing of a reply: add keywords or tools",) if bare else ()
    )
    return Imported(
        rows=rows, kind="replies" if replies else "questions", notes=(*losses.notes(), *expects_nothing)
    )
