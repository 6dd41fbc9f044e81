"""Conversion between golden sets and the files of other tools: a table of fields per format, in both directions.

What has no counterpart in the other format is never dropped silently: `Losses` lists it with its rows.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, intended_field, parse_question, question_row
from answerkey.errors import InputError, UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Exported, Imported
from answerkey.transcripts.fields import UNNAMED, read_call
from answerkey.transcripts.json_values import decode_strict_json
from answerkey.transcripts.row_files import finder, open_rows

# Fields of a reply; a row with one of these is a recorded reply with its expectations inline.
_REPLY_FIELDS = frozenset(
    {"answer", "tools_used", "tool_calls", "messages", "sources", "error", "latency_ms"}
)
_BLANK: tuple[Any, ...] = (None, "", [], {})
_MAX_LISTED = 20  # rows that a note names


class RowPosition(msgspec.Struct, frozen=True):
    """The position of a row: its line, its number if the format has no lines, or the id of its question."""

    kind: str  # "line", "item" or "question"
    name: str
    path: Path = Path()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def row_position(path: Path, line: int | None, number: int) -> RowPosition:
    """The position of a row in a file."""
    return RowPosition("item", str(number), path) if line is None else RowPosition("line", str(line), path)


class Losses:
    """What could not be converted, with the rows that had it."""

    def __init__(self) -> None:
        self._positions: dict[str, dict[RowPosition, None]] = {}
        self.position = RowPosition("item", "0")  # of the current row

    def add(self, what: str) -> None:
        """Something in the current row has no counterpart."""
        self._positions.setdefault(what, {})[self.position] = None

    def notes(self) -> tuple[str, ...]:
        """One note for each thing: "not carried over: 'choices' (lines 3, 4; tests.csv item 1)"."""
        files = {position.path for positions in self._positions.values() for position in positions}
        return tuple(
            f"not carried over: {what} ({_listed(positions, with_file=len(files) > 1)})"
            for what, positions in self._positions.items()
        )


def _listed(positions: Iterable[RowPosition], *, with_file: bool) -> str:
    groups: dict[str, list[str]] = {}
    for position in positions:
        group = f"{position.path.name} {position.kind}" if with_file else position.kind
        groups.setdefault(group, []).append(position.name)
    parts = []
    for group, names in groups.items():
        more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
        parts.append(f"{group}{'s' if len(names) > 1 else ''} {', '.join(names[:_MAX_LISTED])}{more}")
    return "; ".join(parts)


# Importing.


class TableImport(msgspec.Struct, frozen=True, kw_only=True):
    """An importer, declared by where a tool's rows have the fields of a golden set."""

    name: str
    # Field → JMESPath expressions; the first that finds a value counts.
    fields: Mapping[str, Sequence[str]]
    # Field → reader of its value, which returns None if it cannot be read.
    readers: Mapping[str, Callable[[Any, Losses], Any]] = {}
    # Objects whose other entries become notes under their own names.
    spread: Sequence[str] = ()
    # Fields without meaning for a golden set: neither notes nor losses.
    ignored: Sequence[str] = ()
    # Fields that mean something and have no counterpart.
    lost: Sequence[str] = ()

    def __call__(self, paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
        """Import the rows of the files; `fields` (from --map) overrides the table."""
        losses = Losses()
        return check_cases(self.cases(numbered_rows(paths), losses, fields), losses, self.name)

    def cases(
        self,
        rows: Iterable[tuple[RowPosition, JsonObject]],
        losses: Losses,
        fields: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[RowPosition, JsonObject]]:
        """Each row as a golden case."""
        given = fields or {}
        table = {**self.fields, **{field: (expression,) for field, expression in given.items()}}
        readers = {field: read for field, read in self.readers.items() if field not in given}
        finders = {field: [finder(path) for path in expressions] for field, expressions in table.items()}
        used = {expression for expressions in table.values() for expression in expressions}
        for position, row in rows:
            losses.position = position
            case: JsonObject = {}
            for field, find_values in finders.items():
                value = next((value for find in find_values if (value := find(row)) not in _BLANK), None)
                if value is not None and field in readers:
                    value = readers[field](value, losses)
                if value not in _BLANK:
                    case[field] = value
            yield position, {**self._notes(row, used, losses), **case}

    def _notes(self, row: JsonObject, used: set[str], losses: Losses) -> JsonObject:
        """What the table does not name: kept as notes, or listed as lost."""
        notes: JsonObject = {}
        entries = dict(row)
        for container in self.spread:
            inner = entries.pop(container, None)
            if isinstance(inner, dict):
                entries |= {name: value for name, value in inner.items() if f"{container}.{name}" not in used}
            elif inner not in _BLANK and container not in used:
                entries[container] = inner
        for name, value in entries.items():
            if name in used or name in self.ignored or value in _BLANK:
                continue
            if name in self.lost:
                losses.add(f"'{name}'")
            else:
                # Under a name of a golden set it would mean something else.
                is_taken = intended_field(name) is not None or name in _REPLY_FIELDS
                notes[f"{self.name}_{name}" if is_taken else name] = value
        return notes


def numbered_rows(paths: Iterable[Path]) -> Iterator[tuple[RowPosition, JsonObject]]:
    """Every row of the files with its position."""
    for path in paths:
        file = open_rows(path)
        for number, (line, row) in enumerate(file.rows, start=1):
            cells = {name: _parse_cell(cell) for name, cell in row.items()} if file.is_table else row
            yield row_position(path, line, number), cells


def _parse_cell(cell: Json) -> Json:
    """The list or object in a table's cell, written as JSON or Python; any other cell unchanged."""
    if not isinstance(cell, str) or cell[:1] not in ("[", "{"):
        return cell
    try:
        return decode_strict_json(cell)
    except ValueError:
        pass
    try:
        value: Json = ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return cell
    return value


def check_cases(cases: Iterable[tuple[RowPosition, JsonObject]], losses: Losses, name: str) -> Imported:
    """The rows, each checked as a golden case, with notes on what was lost."""
    rows: list[JsonObject] = []
    first: dict[str, RowPosition] = {}
    for position, row in cases:
        try:
            question = parse_question({key: value for key, value in row.items() if key not in _REPLY_FIELDS})
        except ValueError as error:
            remedy = ""
            if "has no" in str(error):
                remedy = f"; it has {', '.join(list(row)[:20])}: say where it is with --map"
            raise InputError(f"{position}: {error}{remedy}", path=position.path) from None
        if "answer" not in row and "messages" not in row and question.id in first:
            raise InputError(f"{position}: has the id or wording of {first[question.id]}", path=position.path)
        first[question.id] = position
        rows.append(row)
    if not rows:
        raise InputError(f"no rows of {name} in the files")
    has_replies = any(not _REPLY_FIELDS.isdisjoint(row) for row in rows)
    bare = sum(EXPECTATION_FIELDS.isdisjoint(row) and not row.get("turns") for row in rows)
    notes = losses.notes()
    if bare:
        notes += (f"{bare} of {len(rows)} rows expect nothing of a reply: add keywords or tools",)
    return Imported(rows=rows, kind="replies" if has_replies else "questions", notes=notes)


# Exporting.

Files = Mapping[str, Iterable[bytes]]
# Fields that say how a reply is graded; all others are notes, which most tools can hold as metadata.
_GRADED = (
    *("expected_tools", "forbidden_tools", "tools", "expected_keywords", "forbidden_keywords", "checks"),
    *("reference_answer", "relevant_documents", "turns"),
)


class TableExport(msgspec.Struct, frozen=True, kw_only=True):
    """An exporter, declared by where a tool's rows have the fields of a golden set; lists what the tool cannot hold."""

    # The file: a JSON object a line, or a document, by its suffix. Other formats have `write`.
    file: str = ""
    write: Callable[[list[Any]], Files] | None = None
    # Field → its name in the exported row, or "object.name"; the value is that of `question_row`, or what `writers` makes of it.
    fields: Mapping[str, str] = {}
    writers: Mapping[str, Callable[[Question, Losses], Json]] = {}
    # The row of a question without any of the fields.
    template: Mapping[str, Json] = {}
    # The object that holds all notes; empty: notes are lost.
    notes_in: str = ""
    # Makes the whole row of formats that a table cannot describe, out of these fields.
    make: Callable[[Question, JsonObject, Losses], Json] | None = None
    made_of: Sequence[str] = ()
    # A note on what the export always lacks.
    note: str = ""

    def __call__(self, questions: QuestionSet) -> Exported:
        """Export the questions that the format can hold."""
        exported: list[Json] = []
        losses = Losses()
        for question in questions:
            losses.position = RowPosition("question", question.id)
            if question.turns:
                losses.add("a conversation of several turns")
                continue
            row = question_row(question)
            if self.make is not None:
                exported.append(self.make(question, row, losses))
            else:
                exported.append(self._row(question, row, losses))
            for name in row:
                is_note = name not in _GRADED and self.notes_in
                if name not in self.fields and name not in self.made_of and not is_note:
                    losses.add(repr(name))
        if not exported:
            raise UsageError(
                "every question is a conversation, which this format cannot hold; there is nothing to export"
            )
        files = {self.file: encode_rows(self.file, exported)} if self.write is None else self.write(exported)
        notes = losses.notes() + ((self.note,) if self.note else ())
        return Exported(files=files, count=len(exported), notes=notes)

    def _row(self, question: Question, row: JsonObject, losses: Losses) -> JsonObject:
        exported: dict[str, Any] = deepcopy(dict(self.template))
        for field, path in self.fields.items():
            value = self.writers[field](question, losses) if field in self.writers else row.get(field)
            if value is not None:
                outer, _, inner = path.partition(".")
                if inner:
                    exported.setdefault(outer, {})[inner] = value
                else:
                    exported[outer] = value
        if self.notes_in:
            exported.setdefault(self.notes_in, {}).update(case_notes(row))
        return exported


def case_notes(row: JsonObject) -> JsonObject:
    """The fields of a golden case that a tool can hold as metadata."""
    return {name: value for name, value in row.items() if name not in ("question", "id", *_GRADED)}


def encode_rows(file: str, rows: Sequence[Json]) -> list[bytes]:
    """JSON Lines, or one JSON document, by the suffix of the file."""
    if file.endswith(".jsonl"):
        return [msgspec.json.encode(row) + b"\n" for row in rows]
    return [msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n"]


def single_arguments(arguments: Mapping[str, Any], losses: Losses) -> JsonObject:
    """One value for each argument, as most tools have them: the first acceptable one; conditions are left out."""
    values: JsonObject = {}
    for name, expected in arguments.items():
        if isinstance(expected, dict) or (isinstance(expected, list) and len(expected) != 1):
            losses.add(f"the choice in the argument {name!r}")
        if isinstance(expected, list) and expected:
            values[name] = expected[0]
        elif not isinstance(expected, list | dict):
            values[name] = expected
    return values


# Readers of values that several tools write in the same few ways.

_INPUT_NAMES = ("question", "query", "input", "prompt", "user_input", "text", "message", "content")
_OUTPUT_NAMES = (
    *("answer", "output", "reference", "expected", "expected_output"),
    *("response", "text", "content", "result"),
)


def as_text(value: Any) -> str | None:
    """A value as text: unchanged, the text of message parts, or JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "".join(str(part["text"]) for part in value)
    return msgspec.json.encode(value).decode()


def as_list(value: Any) -> list[Any]:
    """A list unchanged, any other value as a list of one."""
    return value if isinstance(value, list) else [value]


def _role(message: dict[str, Any]) -> object:
    return message.get("role", message.get("type"))


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, dict) and ("role" in part or "type" in part) for part in value)
    )


def read_input(value: Any, losses: Losses) -> str | None:
    """What the user asks: a text, the user's last message, or the likeliest entry of an object."""
    if _are_messages(value):
        by_user = [message for message in value if _role(message) in ("user", "human")]
        if any(_role(message) == "system" for message in value):
            losses.add("a system message")
        if len(by_user) > 1 or any(message.get("role") == "assistant" for message in value):
            losses.add("the conversation before the last question")
        return as_text(by_user[-1].get("content")) if by_user else None
    if isinstance(value, dict):
        if "messages" in value:
            return read_input(value["messages"], losses)
        name = next((name for name in _INPUT_NAMES if isinstance(value.get(name), str)), None)
        if name is None:
            name = next(iter(value)) if len(value) == 1 else None
        for other in value:
            if other != name:
                losses.add(f"the input {other!r}")
        return as_text(value[name]) if name is not None else None
    return as_text(value)


def read_output(value: Any, losses: Losses) -> str | None:
    """The answer: a text, the last message, the first of several, or the likeliest entry of an object."""
    if _are_messages(value):
        return as_text(value[-1].get("content"))
    if isinstance(value, list):
        return as_text(value[0]) if value else None
    if isinstance(value, dict):
        if "messages" in value:
            return read_output(value["messages"], losses)
        name = next((name for name in _OUTPUT_NAMES if isinstance(value.get(name), str)), None)
        if name is None and len(value) == 1:
            name = next(iter(value))
        return as_text(value if name is None else value[name])
    return as_text(value)


def read_alternatives(value: Any, losses: Losses) -> Json:
    """Several right answers as one keyword with alternatives; None for a single one, which is a reference only."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(option, str) for option in value):
        return None
    return [list(dict.fromkeys(option for option in value if option.strip()))]


def read_expected_calls(value: Any, losses: Losses) -> list[Json] | None:
    """Expected tool calls, with their arguments if there are any."""
    calls: list[Json] = []
    for call in map(read_call, as_list(value)):
        if call.name == UNNAMED:
            losses.add("a call without a name")
        else:
            calls.append(expected_call(call.name, call.arguments))
    return calls or None


def expected_call(name: str, arguments: Mapping[str, Any] | None) -> Json:
    """An expected tool as a golden set has it, whose arguments must be exactly these."""
    # A list would mean any of its items, and an object a condition.
    exact: JsonObject = {}
    for key, value in (arguments or {}).items():
        exact[key] = [value] if isinstance(value, list | dict) else value
    return {"name": name, "arguments": exact} if exact else name
