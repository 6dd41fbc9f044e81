"""Golden sets: rows of any format become Questions, and what does not fit is refused with file and line."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, TypeVar, cast

import msgspec

from answerkey.datasets.check_rows import is_limit, parse_checks
from answerkey.errors import InputError
from answerkey.model.question import (
    GROUP_FIELDS,
    UNCATEGORISED,
    ExpectedTool,
    Question,
    QuestionSet,
    question_id,
)
from answerkey.text.keyword import Alternatives, Keyword, NumberKeyword, PatternKeyword
from answerkey.text.patterns import check_pattern
from answerkey.transcripts.fields.content_text import type_in_words
from answerkey.transcripts.file_bytes import STANDARD_INPUT, shown_path
from answerkey.transcripts.row_files import Row, open_rows
from answerkey.transcripts.table_columns import split_cells

EXPECTATION_FIELDS = frozenset(
    {
        *("expected_tools", "forbidden_tools", "tools", "expected_keywords", "expected_content"),
        *("forbidden_keywords", "reference_answer", "relevant_documents", "checks"),
    }
)
_NOTES = frozenset({"id", "question", "category", "group", "context", "persona", "tags", "weight", "turns"})
_KNOWN = EXPECTATION_FIELDS | _NOTES
# Names that others give to a field, as they read without case and underscores, and fields of a reply that look like a
# question's but are their own.
_OTHER_NAMES = {
    **dict.fromkeys(
        ("keyword", "keywords", "keywordsexpected", "requiredkeywords", "mustcontain", "expectedcontents"),
        "expected_keywords",
    ),
    **dict.fromkeys(("tool", "requiredtools", "toolsexpected"), "expected_tools"),
    **dict.fromkeys(
        ("reference", "expectedanswer", "expectedoutput", "goldanswer", "groundtruth"), "reference_answer"
    ),
}
_REPLY_FIELDS = frozenset({"contexts", "tool_calls", "tools_used"})
# How alike a name must be to a known one to be taken for a slip.
_ALIKE = 0.85
_Item = TypeVar("_Item")
# Of the many questions that have none: one for all.
_NOTHING: dict[str, Any] = {}


def read_questions(
    path: str | Path, *, name: str | None = None, fields: Mapping[str, str] | None = None
) -> QuestionSet:
    """Read a golden set from a file, or from standard input for "-"; `fields` says where it has its fields."""
    path = Path(path)
    file = open_rows(path, "questions", fields)
    questions = parse_questions(file.rows, shown_path(path))
    if not questions:
        raise InputError("holds no question", path=shown_path(path))
    typed = path == STANDARD_INPUT
    return QuestionSet(
        questions=tuple(questions),
        name=name or ("stdin" if typed else path.stem),
        path=None if typed else str(path.resolve()),
        read_as=file.read_as,
    )


def parse_questions(rows: Iterable[Row], path: Path) -> list[Question]:
    """Turn rows into questions; ids must be unique."""
    questions: list[Question] = []
    seen: dict[str, int | None] = {}
    for line, row in rows:
        try:
            question = parse_question(row, line=line)
        except ValueError as error:
            raise InputError(f"{error}{_remedy(row)}", path=path, line=line) from None
        if question.id in seen:
            first = f" (first on line {seen[question.id]})" if seen[question.id] else ""
            what = "duplicate id" if "id" in row else "the same question again"
            raise InputError(
                f"{what} {question.id!r}{first}; give each question its own id", path=path, line=line
            )
        seen[question.id] = line
        questions.append(question)
    return questions


def _remedy(row: Mapping[str, Any]) -> str:
    """Where a row has no question under any name: what it has instead."""
    if not row or "question" in row or "turns" in row:
        return ""
    return f"; it has {', '.join(list(row)[:20])}: say which is the question with --map question=FIELD"


def parse_question(row: Mapping[str, Any], *, line: int | None = None) -> Question:
    """One row as a Question; raises ValueError with what is wrong and what to do."""
    _refuse_near_misses(row)
    turns = _turns(row)
    text = turns[0]["question"] if turns and "question" not in row else _text(row, "question", required=True)
    if not text.strip():
        raise ValueError("'question' is empty; write what the user asks")
    identity = row.get("id")
    if isinstance(identity, int) and not isinstance(identity, bool):
        identity = str(identity)
    if identity is not None and (not isinstance(identity, str) or not identity.strip()):
        raise ValueError("'id' must be non-empty text")
    identity = identity or question_id(text, [str(turn.get("question")) for turn in turns])
    category = intern(_text(row, "category") or UNCATEGORISED)
    metadata = {name: value for name, value in row.items() if name not in _KNOWN}
    return Question(
        id=identity,
        question=text,
        category=category,
        group=_group(row),
        context=_text(row, "context"),
        persona=_text(row, "persona"),
        tags=_texts(row, "tags"),
        weight=_weight(row),
        turns=tuple(
            _turn(turn, number, identity=identity, category=category)
            for number, turn in enumerate(turns, start=1)
        ),
        metadata=metadata or _NOTHING,
        line=line,
        **_expectations(row),
    )


def _refuse_near_misses(row: Mapping[str, Any]) -> None:
    """Refuse a field that is nearly a known one: kept as metadata, it would expect nothing."""
    for name in row:
        if name not in _KNOWN and isinstance(name, str) and (meant := _meant(name)) is not None:
            raise ValueError(
                f"unknown field {name!r}: did you mean {meant!r}? Any other name is kept as a note"
            )


def is_field(name: str) -> bool:
    """Whether a name is a golden set's own, or would be taken for a slip of one."""
    return name in _KNOWN or _meant(name) is not None


@lru_cache(maxsize=1000)
def _meant(name: str) -> str | None:
    """The known field that an unknown one was probably meant to be."""
    plain = "".join(filter(str.isalnum, name)).casefold()
    if name in _REPLY_FIELDS or name in GROUP_FIELDS:
        return None
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    known = {field.replace("_", ""): field for field in _KNOWN}
    close = get_close_matches(plain, known, n=1, cutoff=_ALIKE)
    return known[close[0]] if close else None


def parse_csv_question(row: Mapping[str, Any], *, line: int | None = None) -> Question:
    """The same for a row whose cells are text."""
    return parse_question(split_cells(row), line=line)


def _turns(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    turns = row.get("turns")
    if turns is None:
        return []
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        raise ValueError("'turns' must be a list of objects, each with a 'question'")
    return turns


def _turn(turn: Mapping[str, Any], number: int, *, identity: str, category: str) -> Question:
    try:
        _refuse_near_misses(turn)
        text = _text(turn, "question", required=True)
        if not text.strip():
            raise ValueError("'question' is empty; write what the user asks")
        return Question(id=f"{identity}#{number}", question=text, category=category, **_expectations(turn))
    except ValueError as error:
        raise ValueError(f"turn {number}: {error}") from None


def _expectations(row: Mapping[str, Any]) -> dict[str, Any]:
    if "expected_keywords" in row and "expected_content" in row:
        raise ValueError("has both 'expected_keywords' and 'expected_content', which mean the same; keep one")
    keywords = "expected_content" if "expected_content" in row else "expected_keywords"
    tools = row.get("tools")
    if tools not in (None, "none"):
        raise ValueError("'tools' can only be \"none\" (must use no tool); name tools under 'expected_tools'")
    expected_tools = _items(row, "expected_tools", _tool, _plain_tool)
    if tools == "none" and expected_tools:
        raise ValueError("'tools' is \"none\" but 'expected_tools' names some; keep one")
    return {
        "expected_tools": expected_tools,
        "forbidden_tools": _texts(row, "forbidden_tools"),
        "tools": tools,
        "expected_keywords": _items(row, keywords, _keyword, str),
        "forbidden_keywords": _items(row, "forbidden_keywords", _keyword, str),
        "reference_answer": _text(row, "reference_answer"),
        "relevant_documents": _documents(row),
        "checks": parse_checks(row["checks"]) if row.get("checks") else (),
    }


def _text(row: Mapping[str, Any], field: str, *, required: bool = False) -> Any:
    value = row.get(field)
    if value is None:
        if required:
            raise ValueError(f"has no '{field}'")
        return None
    if not isinstance(value, str):
        raise ValueError(f"'{field}' must be text, not {_kind(value)}")
    return value


def _group(row: Mapping[str, Any]) -> str | None:
    value = row.get("group")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(row, "group")


def _items(
    row: Mapping[str, Any], field: str, read: Callable[[Any, str], _Item], plain: Callable[[str], _Item]
) -> tuple[_Item, ...]:
    """A list's items, each read with its place for messages; where all is plain text, by the quick way."""
    values = row.get(field)
    if values is None:
        return ()
    if not isinstance(values, list):
        raise ValueError(f"'{field}' must be a list, not {_kind(values)}")
    # As it mostly is: then nothing else need be looked at.
    if all(type(value) is str and value and not value.isspace() for value in values):
        return _shared(tuple(map(plain, values)))
    return tuple(read(value, f"'{field}' item {number}") for number, value in enumerate(values, start=1))


@lru_cache(maxsize=1000)
def _shared(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """What many questions expect is in memory once."""
    return items


def _texts(row: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return _items(row, field, _non_empty, str)


def _non_empty(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where} must be non-empty text, not {_kind(value)}")
    return value


def _weight(row: Mapping[str, Any]) -> float:
    value = row.get("weight")
    if value is None and "weight" not in row:
        return 1.0
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("'weight' must be a number") from None
    if not is_limit(value):
        raise ValueError("'weight' must be a number that is not negative")
    return float(value)


def _tool(value: Any, where: str) -> ExpectedTool:
    if isinstance(value, str) and value.strip():
        return ExpectedTool(value)
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a tool's name or an object with 'name', not {_kind(value)}")
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{where} has no 'name'")
    if arguments is not None and not isinstance(arguments, dict):
        raise ValueError(f"{where}: 'arguments' must be an object, not {_kind(arguments)}")
    unknown = sorted(set(value) - {"name", "arguments"})
    if unknown:
        raise ValueError(f"{where} has an unknown field {unknown[0]!r}; use 'name' and 'arguments'")
    _check_arguments(arguments or {}, where)
    return ExpectedTool(name, arguments)


@lru_cache(maxsize=1000)
def _plain_tool(name: str) -> ExpectedTool:
    return ExpectedTool(name)


def _check_arguments(arguments: Mapping[str, Any], where: str) -> None:
    for name, wanted in arguments.items():
        if isinstance(wanted, dict) and set(wanted) == {"regex"}:
            problem = (
                check_pattern(wanted["regex"]) if isinstance(wanted["regex"], str) else "it must be text"
            )
            if problem:
                raise ValueError(f"{where}: argument {name!r} has a bad regular expression: {problem}")


def _keyword(value: Any, where: str) -> Keyword:
    if isinstance(value, list):
        if not value:
            raise ValueError(f"{where} is an empty list of alternatives")
        if any(isinstance(option, list) for option in value):
            raise ValueError(f"{where}: alternatives cannot be nested")
        options = tuple(_keyword(option, where) for option in value)
        return Alternatives(tuple(option for option in options if not isinstance(option, Alternatives)))
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{where} must be text, not {_kind(value)}; put it in quotes")
    if isinstance(value, int | float):
        # YAML and JSON writers leave quotes off numbers; the text is what they mean.
        return msgspec.json.encode(value).decode()
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"{where} is empty, which every reply would contain; remove it")
        return value
    return _special_keyword(value, where)


def _special_keyword(value: Any, where: str) -> Keyword:
    for kind in (NumberKeyword, PatternKeyword):
        if isinstance(value, dict) and kind.__struct_fields__[0] in value:
            try:
                keyword = cast("NumberKeyword | PatternKeyword", msgspec.convert(value, kind))
            except msgspec.ValidationError as error:
                raise ValueError(f"{where}: {error}") from None
            if isinstance(keyword, PatternKeyword):
                problem = check_pattern(keyword.regex)
                if problem:
                    raise ValueError(
                        f"{where}: the regular expression {keyword.regex!r} is not valid: {problem}"
                    )
            elif not keyword.tolerance >= 0:
                raise ValueError(f"{where}: 'tolerance' must not be negative")
            return keyword
    raise ValueError(
        f'{where} must be text, a list of alternatives, {{"number", "tolerance"}} or {{"regex"}}, not {_kind(value)}'
    )


def _documents(row: Mapping[str, Any]) -> dict[str, float]:
    value = row.get("relevant_documents")
    if value is None:
        return _NOTHING
    if isinstance(value, dict):
        for name, relevance in value.items():
            if not is_limit(relevance):
                raise ValueError(
                    f"'relevant_documents': the grade of {name!r} must be a number that is not negative"
                )
        return {name: float(relevance) for name, relevance in value.items()}
    return dict.fromkeys(_texts(row, "relevant_documents"), 1.0)


def _kind(value: Any) -> str:
    return "empty text" if isinstance(value, str) and not value.strip() else type_in_words(value)
