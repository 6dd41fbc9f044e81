"""Checks of a golden case: read strictly, so that a slip is refused before anything is asked."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite
from pathlib import Path
from sys import intern
from typing import Any, TypeGuard, TypeVar, cast

import msgspec

from answerkey.errors import InputError
from answerkey.model.judgement import read_check_rubric
from answerkey.model.question import (
    CHECK_KINDS,
    GROUP_FIELDS,
    UNCATEGORISED,
    Check,
    ExpectedTool,
    Question,
    QuestionSet,
    question_id,
)
from answerkey.model.reply import Json, JsonObject
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.text.differences import schema_problem
from answerkey.text.language import LANGUAGES
from answerkey.text.normalise import Alternatives, Keyword, NumberKeyword, PatternKeyword, check_pattern
from answerkey.transcripts.files import STANDARD_INPUT, shown_path
from answerkey.transcripts.json_values import type_in_words
from answerkey.transcripts.row_files import Row, open_rows
from answerkey.transcripts.tables import split_cells

# Of every check, whatever its kind.
_COMMON = frozenset({"weight", "name"})


def parse_checks(value: Any, registry: ScorerRegistry = scorers) -> tuple[Check, ...]:
    """The `checks` of a golden case; raises ValueError with what is wrong and what to do."""
    if not isinstance(value, list):
        raise ValueError('\'checks\' must be a list of checks such as {"contains": "please"}')
    return tuple(
        _check(part, f"'checks' item {number}", registry) for number, part in enumerate(value, start=1)
    )


def _check(part: Any, where: str, registry: ScorerRegistry) -> Check:
    if isinstance(part, str):
        part = {part: {}}
    if not isinstance(part, dict):
        raise ValueError(f'{where} must be an object such as {{"contains": "please"}}')
    kinds = [key for key in part if key not in _COMMON]
    if len(kinds) != 1:
        found = f"has {' and '.join(map(repr, kinds))}" if kinds else "says not what to check"
        raise ValueError(f"{where} {found}; give it exactly one kind, such as 'contains'")
    kind = kinds[0]
    expected = part[kind]
    if kind in _EXPECTED:
        fits, wanted = _EXPECTED[kind]
        problem = fits(expected)
        if problem is not True:
            raise ValueError(f"{where}: {kind!r} {problem or wanted}")
    else:
        expected = _arguments(kind, expected, where, registry)
    name, weight = part.get("name", kind), part.get("weight", 1.0)
    if not _is_text(name):
        raise ValueError(f"{where}: 'name' must be non-empty text")
    if not is_limit(weight) or not weight:
        raise ValueError(f"{where}: 'weight' must be a number above 0")
    return Check(kind, expected, name, float(weight))


def _arguments(kind: str, expected: Any, where: str, registry: ScorerRegistry) -> dict[str, Any]:
    """The arguments of a registered scorer; `true` means none."""
    known = [name for name in registry.names() if name != "checks"]
    if kind not in known:
        close = get_close_matches(kind, [*CHECK_KINDS, *known], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(CHECK_KINDS)}"
        raise ValueError(f"{where}: unknown kind of check {kind!r}; {hint} (or a scorer's name)")
    if expected is True or expected is None:
        return {}
    if not isinstance(expected, dict):
        raise ValueError(f"{where}: the arguments of the scorer {kind!r} must be an object, such as {{}}")
    return expected


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_limit(value: Any) -> TypeGuard[float]:
    """Whether a value is a number from 0 up."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and isfinite(value)


def _are_texts(value: Any) -> bool:
    listed = value if isinstance(value, list) else [value]
    return bool(listed) and all(map(_is_text, listed))


def _is_regex(value: Any) -> bool | str:
    problem = check_pattern(value) if _is_text(value) else None
    return f"{value!r} is not a valid regular expression: {problem}" if problem else _is_text(value)


def _is_language(value: Any) -> bool | str:
    known = ", ".join(sorted(LANGUAGES))
    return value in LANGUAGES or f"{value!r} is none of the languages that can be told apart: {known}"


def _is_reference(value: Any) -> bool:
    place, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return bool(place and name)


def _is_rubric(value: Any) -> bool | str:
    if not isinstance(value, str | dict):
        return "must be text, what a judge should look for, or an object with 'question'"
    try:
        return bool(read_check_rubric(value))
    except ValueError as error:
        return str(error)


_A_LIMIT = (is_limit, "must be a number from 0 up")
# Kind → whether what a check of it expects is right (or what is wrong with it), and what it must be.
_EXPECTED: dict[str, tuple[Callable[[Any], bool | str], str]] = {
    "contains": (_are_texts, "must be text or a list of texts"),
    "equals": (lambda value: value is not None, "must be what the reply should be, not null"),
    "regex": (_is_regex, "must be a regular expression as text"),
    "is_json": (lambda value: isinstance(value, bool), "must be true or false"),
    "json_schema": (lambda value: schema_problem(value) or True, ""),
    "max_latency_ms": _A_LIMIT,
    "max_cost": _A_LIMIT,
    "max_words": _A_LIMIT,
    "language": (_is_language, ""),
    "python": (_is_reference, "must name a function, as in file.py:function"),
    "rubric": (_is_rubric, ""),
}


# Questions as rows: the canonical form of a golden set's line, which reads back as the same question.


_BLANK = Question(id="", question="")
# Not written: where it stood in a file, and what is written in another way.
_APART = ("line", "metadata", "turns")


def question_row(question: Question) -> JsonObject:
    """A question under the names that a golden set has; what it does not say is left out."""
    row = _fields(question)
    if question.turns:
        row["turns"] = [_turn(turn) for turn in question.turns]
    # What was kept of unknown fields goes back to where it stood.
    return {**row, **msgspec.to_builtins(question.metadata)}


def _turn(turn: Question) -> JsonObject:
    """A turn, whose id and category are its conversation's."""
    return {name: value for name, value in _fields(turn).items() if name not in ("id", "category")}


def _fields(question: Question) -> JsonObject:
    row: JsonObject = {}
    for name in Question.__struct_fields__:
        value = getattr(question, name)
        if value == getattr(_BLANK, name):
            continue
        if name == "expected_tools":
            row[name] = [_tool(tool) for tool in value]
        elif name.endswith("_keywords"):
            row[name] = [_keyword(keyword) for keyword in value]
        elif name == "checks":
            row[name] = [_check_question_rows(check) for check in value]
        elif name not in _APART:
            row[name] = msgspec.to_builtins(value)
    return row


def _tool(tool: ExpectedTool) -> Json:
    return tool.name if tool.arguments is None else {"name": tool.name, "arguments": tool.arguments}


def _check_question_rows(check: Check) -> Json:
    row: JsonObject = {check.kind: msgspec.to_builtins(check.expected)}
    if check.name != check.kind:
        row["name"] = check.name
    if check.weight != 1:
        row["weight"] = check.weight
    return row


def _keyword(keyword: Keyword) -> Json:
    if isinstance(keyword, str):
        return keyword
    if isinstance(keyword, Alternatives):
        return [_keyword(option) for option in keyword.options]
    if isinstance(keyword, NumberKeyword):
        return {"number": keyword.number, "tolerance": keyword.tolerance}
    return {"regex": keyword.regex}


# Golden sets: rows of any format become Questions, and what does not fit is refused with file and line.


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
    path: str | Path,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    registry: ScorerRegistry = scorers,
) -> QuestionSet:
    """Read a golden set from a file, or from standard input for "-".

    `fields` maps fields to JMESPath expressions or columns. `registry` has the scorers that checks may name.
    """
    path = Path(path)
    file = open_rows(path, "questions", fields)
    questions = parse_questions(file.rows, shown_path(path), registry)
    if not questions:
        raise InputError("holds no question", path=shown_path(path))
    typed = path == STANDARD_INPUT
    return QuestionSet(
        questions=tuple(questions),
        name=name or ("stdin" if typed else path.stem),
        path=None if typed else str(path.resolve()),
        read_as=file.read_as,
    )


def parse_questions(rows: Iterable[Row], path: Path, registry: ScorerRegistry = scorers) -> list[Question]:
    """Turn rows into questions; ids must be unique."""
    questions: list[Question] = []
    seen: dict[str, int | None] = {}
    for line, row in rows:
        try:
            question = parse_question(row, line=line, registry=registry)
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


def parse_question(
    row: Mapping[str, Any], *, line: int | None = None, registry: ScorerRegistry = scorers
) -> Question:
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
            _turn_golden_sets(turn, number, identity=identity, category=category, registry=registry)
            for number, turn in enumerate(turns, start=1)
        ),
        metadata=metadata or _NOTHING,
        line=line,
        **_expectations(row, registry),
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


def _turn_golden_sets(
    turn: Mapping[str, Any], number: int, *, identity: str, category: str, registry: ScorerRegistry
) -> Question:
    try:
        _refuse_near_misses(turn)
        text = _text(turn, "question", required=True)
        if not text.strip():
            raise ValueError("'question' is empty; write what the user asks")
        expectations = _expectations(turn, registry)
        return Question(id=f"{identity}#{number}", question=text, category=category, **expectations)
    except ValueError as error:
        raise ValueError(f"turn {number}: {error}") from None


def _expectations(row: Mapping[str, Any], registry: ScorerRegistry) -> dict[str, Any]:
    if "expected_keywords" in row and "expected_content" in row:
        raise ValueError("has both 'expected_keywords' and 'expected_content', which mean the same; keep one")
    keywords = "expected_content" if "expected_content" in row else "expected_keywords"
    tools = row.get("tools")
    if tools not in (None, "none"):
        raise ValueError("'tools' can only be \"none\" (must use no tool); name tools under 'expected_tools'")
    expected_tools = _items(row, "expected_tools", _tool_golden_sets, _plain_tool)
    if tools == "none" and expected_tools:
        raise ValueError("'tools' is \"none\" but 'expected_tools' names some; keep one")
    return {
        "expected_tools": expected_tools,
        "forbidden_tools": _texts(row, "forbidden_tools"),
        "tools": tools,
        "expected_keywords": _items(row, keywords, _keyword_golden_sets, str),
        "forbidden_keywords": _items(row, "forbidden_keywords", _keyword_golden_sets, str),
        "reference_answer": _text(row, "reference_answer"),
        "relevant_documents": _documents(row),
        "checks": parse_checks(row["checks"], registry) if row.get("checks") else (),
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


def _tool_golden_sets(value: Any, where: str) -> ExpectedTool:
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


def _keyword_golden_sets(value: Any, where: str) -> Keyword:
    if isinstance(value, list):
        if not value:
            raise ValueError(f"{where} is an empty list of alternatives")
        if any(isinstance(option, list) for option in value):
            raise ValueError(f"{where}: alternatives cannot be nested")
        options = tuple(_keyword_golden_sets(option, where) for option in value)
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


# The JSON Schema of a golden set's line, for editors: what `parse_question` accepts, field by field.


def _text_question_schema(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _list_of(items: Any, description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


def _only(required: str, **properties: Any) -> dict[str, Any]:
    """An object that has these fields and no others."""
    more = {"required": [required], "additionalProperties": False}
    return {"type": "object", "properties": properties, **more}


_NAMES = {"type": "string", "minLength": 1}
_PATTERN = _only("regex", regex={"type": "string"})
_NUMBER = _only("number", number={"type": "number"}, tolerance={"type": "number", "minimum": 0})
_ONE_KEYWORD = [{"type": ["string", "number"], "minLength": 1}, _NUMBER, _PATTERN]
_KEYWORD = {"anyOf": [*_ONE_KEYWORD, {"type": "array", "minItems": 1, "items": {"anyOf": _ONE_KEYWORD}}]}
_TOOL = {
    "anyOf": [
        _NAMES,
        _only(
            "name",
            name=_NAMES,
            arguments={
                "type": ["object", "null"],
                "description": 'Argument → a value, a list of acceptable values, {"regex"} or {"ignore": true}.',
            },
        ),
    ]
}
_CHECK = {
    "anyOf": [
        _NAMES,
        {
            "type": "object",
            "description": f"One of {', '.join(CHECK_KINDS)} or a scorer's name, with what it expects.",
            "properties": {"weight": {"type": "number", "exclusiveMinimum": 0}, "name": _NAMES},
            "minProperties": 1,
        },
    ]
}
_EXPECTATIONS: dict[str, Any] = {
    "expected_tools": _list_of(_TOOL, "Tools that a good reply calls."),
    "forbidden_tools": _list_of(_NAMES, "Tools that it must not call."),
    "tools": {"enum": ["none", None], "description": '"none": it must call no tool.'},
    "expected_keywords": _list_of(_KEYWORD, "What a good reply says; a list is alternatives."),
    "expected_content": _list_of(_KEYWORD, "Another name of expected_keywords."),
    "forbidden_keywords": _list_of(_KEYWORD, "What it must not say."),
    "reference_answer": {"type": ["string", "null"], "description": "A full answer."},
    "relevant_documents": {
        "description": "Ids of documents, or id → grade.",
        "anyOf": [
            {"type": "array", "items": _NAMES},
            {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        ],
    },
    "checks": _list_of(_CHECK, "Further conditions."),
}


def question_schema() -> dict[str, Any]:
    """The schema of one question; fields that it does not name are notes."""
    asked: dict[str, Any] = {"type": "string", "pattern": r"\S", "description": "What the user asks."}
    turn: dict[str, Any] = {
        "type": "object",
        "properties": {"question": asked, **_EXPECTATIONS},
        "required": ["question"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A question of an answerkey golden set",
        "type": "object",
        "properties": {
            "question": asked,
            "id": {"type": ["string", "integer"], "minLength": 1, "description": "A stable id."},
            "category": _text_question_schema("The slice that it is reported in."),
            "group": {
                "type": ["string", "integer"],
                "description": "The template or family: the unit of analysis.",
            },
            "context": _text_question_schema("A note."),
            "persona": _text_question_schema("Who asks."),
            "tags": _list_of(_NAMES, "Further slices."),
            "weight": {
                "type": ["number", "string"],
                "description": "A note; the means weigh every question alike.",
            },
            "turns": {"type": "array", "minItems": 1, "items": turn, "description": "A conversation."},
            **_EXPECTATIONS,
        },
        "anyOf": [{"required": ["question"]}, {"required": ["turns"]}],
    }
