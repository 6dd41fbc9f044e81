"""A table's columns as answerkey's fields: headers as people write them, and cells that hold several values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from answerkey.errors import InputError
from answerkey.model.json_value import JsonObject
from answerkey.model.question import Question

# What the rows of a file are for: a golden set, recorded replies, or something whose fields are not answerkey's.
Purpose = Literal["questions", "replies", "records"]

_QUESTION_FIELDS = (*Question.__struct_fields__[:-2], "expected_content")
_REPLY_FIELDS = (
    *("answer", "tools_used", "tool_calls", "sources", "error", "latency_ms", "usage", "cost", "trial"),
    *("messages", "replies", "conversation_id", "response_id", "trace_id"),
)
FIELDS_OF: Mapping[Purpose, Sequence[str]] = {
    "questions": _QUESTION_FIELDS,
    "replies": (*_QUESTION_FIELDS, *_REPLY_FIELDS),
    "records": (),
}
# What others call a field, without case, spaces and underscores.
_ASKED = ("query", "prompt", "userinput", "input", "userquestion", "userquery", "userprompt", "questions")
_EXPECTED_ANSWER = (
    *("reference", "expectedanswer", "expectedoutput", "goldanswer", "groundtruth", "idealanswer"),
    *("correctanswer", "referenceanswers", "ideal"),
)
_COMMON_NAMES = {
    **dict.fromkeys(_ASKED, "question"),
    **dict.fromkeys(_EXPECTED_ANSWER, "reference_answer"),
    **dict.fromkeys(("keywords", "keyword", "mustcontain", "expectedkeyword"), "expected_keywords"),
    **dict.fromkeys(("requiredtools", "expectedtool"), "expected_tools"),
    **dict.fromkeys(("questionid", "caseid", "testid"), "id"),
    **dict.fromkeys(("topic", "categories"), "category"),
}
_OTHER_NAMES: Mapping[Purpose, Mapping[str, str]] = {
    "questions": {**_COMMON_NAMES, "answer": "reference_answer", "tools": "expected_tools", "tool": "expected_tools"},
    "replies": {
        **_COMMON_NAMES,
        **dict.fromkeys(("response", "reply", "output", "botanswer", "actualoutput"), "answer"),
        "tools": "tools_used",
    },
    "records": {},
}  # fmt: skip
# Fields that hold lists.
_LIST_FIELDS = (
    *("expected_tools", "forbidden_tools", "expected_keywords", "expected_content", "forbidden_keywords"),
    *("tags", "relevant_documents", "checks", "tools_used"),
)
# Fields that can only be written as JSON.
_JSON_FIELDS = ("turns", "tool_calls", "usage", "messages", "replies", "sources")
# The first of these that a column has in a cell parts all its cells; a comma between digits may belong to a number.
_PARTED_BY = {
    "semicolons": re.compile(";"),
    "line breaks": re.compile(r"\r?\n"),
    "bars": re.compile(r"\|"),
    "commas": re.compile(r",(?!\d{3}(?!\d))|(?<!\d),"),
}


def refuse(error: InputError, row: object = None) -> None:
    """What is done with a bad row where a file must be right."""
    raise error


def plain_name(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return "".join(filter(str.isalnum, name)).casefold()


def read_columns(
    rows: Sequence[tuple[int | None, JsonObject]],
    purpose: Purpose,
    path: Path,
    bad: Callable[[InputError, object], None] = refuse,
) -> tuple[list[tuple[int | None, JsonObject]], list[str]]:
    """The rows under answerkey's names with their lists parted, and what was guessed; those that cannot be read go to `bad`."""
    names = dict.fromkeys(name for _, row in rows for name in row)
    fields = _fields(names, purpose)
    said = [f"column {name!r} as {field}" for name, field in fields.items() if name != field]
    renamed = [(line, {fields.get(name, name): cell for name, cell in row.items()}) for line, row in rows]
    separators = {}
    for name in _LIST_FIELDS:
        cells = [cell for _, row in renamed if isinstance(cell := row.get(name), str)]
        separators[name] = _separator(cells)
        if separators[name] not in ("", "semicolons"):
            said.append(f"{name} parted at {separators[name]}")
    read = []
    for line, row in renamed:
        try:
            read.append((line, split_cells(row, separators)))
        except ValueError as error:
            bad(InputError(str(error), path=path, line=line), row)
    return read, said


def _fields(names: Iterable[str], purpose: Purpose) -> dict[str, str]:
    """Column → field; a column that is called like the field goes before one that others call so."""
    listed = set(FIELDS_OF[purpose])
    if listed.isdisjoint({"tools_used", "tool_calls"} & set(names)) and "expected_tools" not in names:
        # People call it so; as a field of answerkey's, it would only say "none".
        listed.discard("tools")
    known = {plain_name(field): field for field in FIELDS_OF[purpose] if field in listed}
    fields: dict[str, str] = {name: name for name in names if name in listed}
    for table in (known, _OTHER_NAMES[purpose]):
        for name in names:
            field = table.get(plain_name(name))
            if field is not None and name not in fields and field not in fields.values():
                fields[name] = field
    return fields


def _separator(cells: Iterable[str]) -> str:
    """What parts the cells of a column; empty: nothing does."""
    plain = [cell for cell in cells if cell.lstrip()[:1] not in ("[", "{")]
    return next((name for name, pattern in _PARTED_BY.items() if any(map(pattern.search, plain))), "")


def split_cells(row: Mapping[str, object], separators: Mapping[str, str] | None = None) -> JsonObject:
    """A row with its cells of text as lists and objects; raises ValueError for a cell that is not valid JSON."""
    cells: JsonObject = dict(row)  # type: ignore[arg-type]
    for field in (*_LIST_FIELDS, *_JSON_FIELDS):
        cell = cells.get(field)
        if not isinstance(cell, str):
            continue
        if cell.lstrip()[:1] in ("[", "{"):
            try:
                cells[field] = msgspec.json.decode(cell)
            except msgspec.DecodeError as error:
                raise ValueError(f"'{field}' is not valid JSON: {error}") from None
            except RecursionError:
                raise ValueError(f"'{field}' is nested too deeply") from None
        elif field in _LIST_FIELDS:
            cells[field] = list(split_cell(cell, (separators or {}).get(field) or "semicolons"))
    if cells.get("expected_tools") in (["none"], ["None"]):
        # "none" is how a table says that no tool is to be used.
        del cells["expected_tools"]
        cells["tools"] = "none"
    return cells


def split_cell(cell: str, separator: str) -> list[str]:
    """The values in one cell."""
    return [part.strip() for part in _PARTED_BY[separator].split(cell) if part.strip()]
