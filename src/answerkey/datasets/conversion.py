"""Conversion between golden sets and the files of other tools: a table of fields per format, in both directions.

What has no counterpart in the other format is never dropped silently: `Losses` lists it with its rows.

People's verdicts are read from other tools' exports: Langfuse scores, LangSmith feedback, Phoenix annotations, plain JSON Lines.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, intended_field, parse_question, question_row
from answerkey.errors import InputError, UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, read_value
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Exported, Imported
from answerkey.text.dates import read_moment
from answerkey.transcripts.fields import UNNAMED, read_call
from answerkey.transcripts.json_values import as_dict, as_str, decode_cell
from answerkey.transcripts.row_files import finder, open_rows, read_rows

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
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        with suppress(ValueError):
            return decode_cell(cell)
    return cell


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


def last_user_text(messages: Sequence[JsonObject], losses: Losses) -> str | None:
    """The text of a chat's last user message; None if there is none. The rest of the chat is listed as lost."""
    asked = [message for message in messages if _role(message) in ("user", "human")]
    if not asked:
        return None
    if any(_role(message) in ("system", "developer") for message in messages):
        losses.add("a system message")
    if len(asked) > 1 or any(message.get("role") == "assistant" for message in messages):
        losses.add("the conversation before the last question")
    content = asked[-1].get("content")
    if not isinstance(content, list | dict):
        return as_text(content)
    parts = as_list(content)
    texts = [part if isinstance(part, str) else as_str(as_dict(part).get("text")) for part in parts]
    if not all(texts):
        losses.add("the pictures or files of a message")
    return "\n".join(text for text in texts if text)


def read_input(value: Any, losses: Losses) -> str | None:
    """What the user asks: a text, the user's last message, or the likeliest entry of an object."""
    if _are_messages(value):
        return last_user_text(value, losses)
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


# Verdicts of programs are not people's, and a text is none: these marks leave them out.
_NOT_PEOPLE = frozenset({"EVAL", "LLM", "CODE", "MODEL", "AUTO_EVAL", "TEXT"})
# What a verdict is about and what else was said with it, kept as it is.
_KEPT = ("name", "key", "label", "document_position", "metadata")


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How values of the export become numbers from 0 to 1."""

    low: float = 0.0
    high: float = 1.0
    # Whether the user gave the range: otherwise a 1 may be a thumb up or the lowest of five stars.
    stated: bool = False
    positive: frozenset[str] = frozenset()
    negative: frozenset[str] = frozenset()
    # Scores that are wanted, by their names, with the range of each; None: that of all. Empty: whatever there is.
    scores: dict[str, tuple[float, float] | None] = {}

    def of_score(self, name: str | None) -> "Scale":
        ends = self.scores.get(name or "")
        if ends is None:
            return self
        return msgspec.structs.replace(self, low=ends[0], high=ends[1], stated=True)

    def value(self, raw: object) -> float:
        """The verdict; raises UsageError on a value that is none."""
        if isinstance(raw, str):
            if raw in self.positive:
                return 1.0
            if raw in self.negative:
                return 0.0
        number = _number(raw)
        if number is not None and (self.low, self.high) != (0.0, 1.0):
            if not self.low <= number <= self.high:
                raise UsageError(f"value {number:g} is not within the scale {self.low:g}-{self.high:g}")
            return (number - self.low) / (self.high - self.low)
        try:
            return read_value(raw)
        except UsageError as error:
            raise UsageError(
                f"{error}; name another range with --scale 1-5, or labels with --positive and --negative"
            ) from None


class _Format(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A format of `feedback_formats.toml`, where its fields are explained."""

    value: tuple[str, ...]
    marks: tuple[str, ...] = ()
    id_scope: tuple[str, ...] = ()
    id: tuple[str, ...] = ("id",)
    columns: bool = False
    texts: dict[str, tuple[str, ...]]


@cache
def _formats() -> dict[str, _Format]:
    import tomllib  # needed once there is feedback

    text = Path(__file__).with_name("feedback_formats.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, _Format])


def read_feedback(path: Path, format_name: str, scale: Scale | None = None) -> Iterator[Feedback | None]:
    """Every verdict of an export; None for a record that is not a person's verdict (a program's, or only text) or not of
    a score that is wanted. What could be read in two ways is refused."""
    form, scale = _formats()[format_name], scale or Scale()
    seen = _Seen()
    for line, row in read_rows(path):
        try:
            raw = _record_value(row, form, scale)
            if raw is not None:
                seen.note(raw, scale)
            if form.columns and (raw is not None or not scale.scores):
                yield plain_feedback(row, scale)
            else:
                yield None if raw is None else _verdict(row, form, scale, raw)
        except UsageError as error:
            raise InputError(str(error), path=path, line=line) from None
    if seen.numbers == {1.0}:
        raise InputError(
            "every number is 1: thumbs up, or the lowest of several stars? say --scale 0-1 or --scale 1-5",
            path=path,
        )


def plain_feedback(row: Mapping[str, Json], scale: Scale) -> Feedback:
    """One object under answerkey's own names."""
    form = _formats()["jsonl"]
    raw = _record_value(row, form, scale)
    if raw is None:
        raise UsageError('there is no "value"; give "up", "down" or a number from 0 to 1')
    verdict = _verdict(row, form, scale, raw)
    if not (verdict.response_id or verdict.trace_id or verdict.conversation_id or verdict.question):
        raise UsageError(
            "nothing says which reply it is about: give response_id, trace_id, conversation_id or question"
        )
    return verdict


class _RecordValue(NamedTuple):
    """The value that a record holds."""

    value: Json
    # What it is a value of: the score's name, or its column.
    score: str | None
    # Whether the export itself says that it is a yes or no.
    boolean: bool = False


class _Seen:
    """What an export has held so far, to see whether it can be read in two ways."""

    def __init__(self) -> None:
        self._scores: dict[str, None] = {}
        # Numbers without a stated range.
        self.numbers: set[float] = set()

    def note(self, raw: _RecordValue, scale: Scale) -> None:
        """Raise UsageError if there are two scores and none was chosen."""
        if raw.score is not None and not scale.scores:
            self._scores[raw.score] = None
        if len(self._scores) > 1:
            one, other = self._scores
            raise UsageError(
                f"there are scores {one!r} and {other!r}; say which counts with --score {one!r}, "
                f"or what range each has with --score {one!r}=1-5 --score {other!r}=0-1"
            )
        number = _number(raw.value)
        if number is not None and not raw.boolean and not scale.of_score(raw.score).stated:
            self.numbers.add(number)


def _record_value(row: Mapping[str, Json], form: _Format, scale: Scale) -> _RecordValue | None:
    kinds = {str(_field(row, name)).upper() for name in form.marks}
    if kinds & _NOT_PEOPLE:
        return None
    name = _text(row, "name", "key") if not form.columns or scale.scores else None
    if form.columns:
        columns = [column for column in scale.scores or form.value if _field(row, column) is not None]
        if name in scale.scores and not columns:
            columns = [column for column in form.value if _field(row, column) is not None]
        if len(columns) > 1:
            raise UsageError(
                f"{columns[0]} and {columns[1]} both hold a verdict; say which counts with --score {columns[0]}"
            )
        if not columns:
            return None
        return _RecordValue(
            _field(row, columns[0]), columns[0] if columns[0] in scale.scores or not name else name
        )
    if scale.scores and name not in scale.scores:
        return None
    # A category of Langfuse has a number as well, which means nothing.
    labels = ("stringValue", "string_value") if "CATEGORICAL" in kinds else ()
    value = _first(row, *labels, *form.value)
    return None if value is None else _RecordValue(value, name, "BOOLEAN" in kinds)


def _verdict(row: Mapping[str, Json], form: _Format, scale: Scale, raw: _RecordValue) -> Feedback:
    texts: dict[str, Any] = {field: _text(row, *names) for field, names in form.texts.items()}
    comment = texts.pop("comment") or ""
    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"comment has {len(comment):,} characters; at most {COMMENT_LIMIT:,} are kept")
    key = _key(row, form)
    return Feedback(
        id=hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        created_at=_moment(_text(row, "created_at", "timestamp", "createdAt", "time")),
        # A yes or no has no scale, whatever that of the numbers beside it is.
        value=read_value(raw.value) if raw.boolean else scale.of_score(raw.score).value(raw.value),
        source="import",
        comment=comment,
        **texts,
        question=_text(row, "question"),
        category=_text(row, "category"),
        idempotency_key=key,
        metadata={name: row[name] for name in _KEPT if row.get(name)},
    )


def _key(row: Mapping[str, Json], form: _Format) -> str:
    """By what the verdict is known again: a file imported twice must not count twice."""
    identity = _text(row, *form.id)
    if identity is None:
        content = msgspec.json.encode(dict(row), order="sorted")
        return "row:" + hashlib.blake2b(content, digest_size=12).hexdigest()
    scope = [_text(row, part[1:]) if part[0] == "$" else part for part in form.id_scope]
    return ":".join([part or "" for part in scope] + [identity])


def _field(row: Mapping[str, Json], name: str) -> Json:
    outer, _, inner = name.partition(".")
    found = row.get(outer)
    if not inner:
        return found
    return found.get(inner) if isinstance(found, dict) else None


def _first(row: Mapping[str, Json], *names: str) -> Json:
    return next((found for name in names if (found := _field(row, name)) is not None), None)


def _text(row: Mapping[str, Json], *names: str) -> str | None:
    found = _first(row, *names)
    if found is None or found == "":
        return None
    if isinstance(found, dict | list):
        if names[0] != "correction":
            raise UsageError(f"{names[0]}: expected text")
        return msgspec.json.encode(found, order="sorted").decode()
    return str(found).replace("\x00", "")


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    try:
        return float(raw)
    except (TypeError, ValueError):
        return None


def _moment(raw: str | None) -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds") if raw is None else read_moment(raw)
