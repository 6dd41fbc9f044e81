"""Golden sets: rows of any file format become Questions, and back. One table names every field with its reader.

A row that does not fit is refused with file, line, field and remedy.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

import msgspec

from answerkey.datasets.expectations import (
    BareKind,
    ListError,
    expectation_value,
    is_number_from_zero,
    is_text,
    kind_in_words,
    parse_checks,
    parse_expectation,
    read_list,
)
from answerkey.errors import InputError, InputErrors, nearest_name
from answerkey.model.question import (
    GROUP_FIELDS,
    UNCATEGORISED,
    Check,
    Expectation,
    ExpectedTool,
    Question,
    QuestionSet,
    RowFunction,
    question_id,
)
from answerkey.model.reply import Json, JsonObject
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.text.normalise import check_pattern
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import says_no_tool
from answerkey.transcripts.files import STANDARD_INPUT, shown_path
from answerkey.transcripts.row_files import RowFile, ValuePath, open_rows

# Reading a file.


# Truth source → the fields in which rows name one of its functions.
RowFunctions = Mapping[str, RowFunction]
# Reads the value of a field, which is named in messages by the second argument.
FieldReader = Callable[[Any, str], Any]


class LoadedQuestions(msgspec.Struct, frozen=True):
    """What could be read of a golden set, and everything that could not."""

    questions: QuestionSet
    problems: list[InputError]

    @property
    def error(self) -> InputError | None:
        """All problems as one error; None without any."""
        if len(self.problems) > 1:
            return InputErrors(self.problems)
        return self.problems[0] if self.problems else None


def read_questions(
    path: str | Path,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    registry: ScorerRegistry = scorers,
    functions: RowFunctions | None = None,
) -> QuestionSet:
    """Read a golden set from a file, or from standard input for "-". Raises one error with all problems of the file.

    `fields` maps fields to JMESPath expressions or columns. `registry` has the scorers that checks may name.
    `functions` are the fields in which rows name a function that computes what they expect, by truth source.
    """
    loaded = load_questions(path, name=name, fields=fields, registry=registry, functions=functions)
    if loaded.error is not None:
        raise loaded.error
    return loaded.questions


def load_questions(
    path: str | Path,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    registry: ScorerRegistry = scorers,
    functions: RowFunctions | None = None,
) -> LoadedQuestions:
    """Read what can be read of a golden set, and list all problems. Raises InputError for a file that cannot be opened."""
    path = Path(path)
    problems: list[InputError] = []
    file = open_rows(path, "questions", fields, lambda error, row: problems.append(error))
    questions = _parse_rows(file, shown_path(path), registry, functions or {}, problems)
    if not questions and not problems:
        problems.append(InputError("has no questions", path=shown_path(path)))
    problems.sort(key=lambda problem: problem.line or 0)
    is_stdin = path == STANDARD_INPUT
    return LoadedQuestions(
        QuestionSet(
            questions=tuple(questions),
            name=name or ("stdin" if is_stdin else path.stem),
            path=None if is_stdin else str(path.resolve()),
            read_as=file.read_as,
            notes=tuple(file.notes),
        ),
        problems,
    )


def _parse_rows(
    file: RowFile,
    path: Path,
    registry: ScorerRegistry,
    functions: RowFunctions,
    problems: list[InputError],
) -> list[Question]:
    """The questions of a file; ids must be unique."""
    questions: list[Question] = []
    seen: dict[str, int | None] = {}
    nameless = 0
    for number, (line, row) in enumerate(file.rows, start=1):
        # Formats without lines count their rows.
        where = "" if line is not None else f"question {number}: "
        try:
            row = with_functions(row, functions) if functions else row
            question = parse_question(row, line=line, registry=registry)
        except RowError as error:
            if row and "question" not in row and "turns" not in row:
                nameless += 1
                if nameless == 1:
                    problems.append(InputError(where + _unnamed_question(error, row), path=path, line=line))
                continue
            for problem in error.problems:
                problems.append(
                    InputError(where + problem.message, path=path, line=file.locate(line, problem.path))
                )
            continue
        if question.id in seen:
            first = f" (first on line {seen[question.id]})" if seen[question.id] else ""
            what = "duplicate id" if "id" in row else "duplicate question"
            message = f"{where}{what} {question.id!r}{first}; give each question its own id"
            problems.append(InputError(message, path=path, line=line))
            continue
        seen[question.id] = line
        questions.append(question)
    if nameless > 1:
        problems.append(InputError(f"{nameless - 1} more rows have no 'question'", path=path))
    return questions


def with_functions(row: JsonObject, functions: RowFunctions) -> JsonObject:
    """A row whose own fields name a function, with that function as an essential expectation."""
    for source, fields in functions.items():
        name = row.get(fields.function)
        if name is None:
            continue
        arguments = row.get(fields.args) if fields.args else None
        if not isinstance(name, str):
            message = f"{fields.function!r} must be the name of a function of [truth.{source}]"
            raise RowError(FieldProblem(message, (fields.function,)))
        if not isinstance(arguments, dict | None):
            message = f"{fields.args!r} must be an object with the function's arguments"
            raise RowError(FieldProblem(message, (str(fields.args),)))
        listed = row.get("expected_keywords")
        computed: JsonObject = {"python": name, "from": source, "must": True}
        if arguments:
            computed["args"] = arguments
        rest = {field: value for field, value in row.items() if field not in (fields.function, fields.args)}
        row = {**rest, "expected_keywords": [*(listed if isinstance(listed, list) else ()), computed]}
    return row


def _unnamed_question(error: "RowError", row: Mapping[str, Any]) -> str:
    names = ", ".join(list(row)[:20])
    return f"{error}; it has {names}: say which is the question with --map question=FIELD"


class FieldProblem(msgspec.Struct, frozen=True):
    """What is wrong with a field of a row."""

    message: str
    # The field and, in a list, the item's number from 1.
    path: ValuePath


class RowError(ValueError):
    """A row that is not a question: all its problems."""

    def __init__(self, *problems: FieldProblem) -> None:
        self.problems = problems
        super().__init__("; ".join(problem.message for problem in problems))


def parse_question(
    row: Mapping[str, Any], *, line: int | None = None, registry: ScorerRegistry = scorers
) -> Question:
    """Parse one row. Raises RowError, a ValueError, with each field, what is wrong and the remedy."""
    values, problems = _read_fields(row, QUESTION_FIELDS, registry)
    turns: list[Question] = []
    for number, turn_row in enumerate(values.pop("turns", ()), start=1):
        turn_values, turn_problems = _read_fields(turn_row, TURN_FIELDS, registry)
        if "question" not in turn_values and "question" not in turn_row:
            turn_problems.append(FieldProblem("has no 'question'", ()))
        problems += [
            FieldProblem(f"turn {number}: {problem.message}", ("turns", number, *problem.path))
            for problem in turn_problems
        ]
        if not problems:
            # Its id and category are set below.
            turns.append(Question(id="", **turn_values))
    is_absent = "question" not in row and "turns" not in row
    is_null = not problems and "question" not in values and not turns
    if is_absent or is_null:
        problems.append(FieldProblem("has no 'question'", ()))
    if problems:
        raise RowError(*problems)
    text = values.pop("question", None) or turns[0].question
    identity = values.pop("id", None) or question_id(text, [turn.question for turn in turns])
    category = values.pop("category", UNCATEGORISED)
    return Question(
        id=identity,
        question=text,
        category=category,
        turns=tuple(
            msgspec.structs.replace(turn, id=f"{identity}#{number}", category=category)
            for number, turn in enumerate(turns, start=1)
        ),
        metadata={name: value for name, value in row.items() if name not in QUESTION_FIELDS} or _NO_VALUES,
        line=line,
        **values,
    )


def _read_fields(
    row: Mapping[str, Any], fields: Mapping[str, FieldReader], registry: ScorerRegistry
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Attribute of Question → value, for every field of the row that has a value; and what is wrong with the others."""
    values: dict[str, Any] = {}
    problems: list[FieldProblem] = []
    for name, value in row.items():
        read = fields.get(name)
        try:
            if read is None:
                _refuse_near_miss(name)
            elif name == "checks":
                values[name] = parse_checks(value, registry) if value else ()
            elif value is not None or name == "weight":
                attribute = _SYNONYMS.get(name, name)
                if attribute in values:
                    raise ValueError(f"has both {attribute!r} and {name!r}, which mean the same; keep one")
                values[attribute] = read(value, f"'{name}'")
        except ListError as error:
            problems += [FieldProblem(message, (name, number)) for number, message in error.items]
        except ValueError as error:
            problems.append(FieldProblem(str(error), (name,)))
    further = [expectation for name in row if name in _KEYWORD_KINDS for expectation in values.pop(name, ())]
    if further:
        values["expected_keywords"] = (*values.get("expected_keywords", ()), *further)
    if values.get("tools") == "none" and values.get("expected_tools"):
        message = "'tools' is \"none\" but 'expected_tools' names some; keep one"
        problems.append(FieldProblem(message, ("tools",)))
    return values, problems


# Unknown fields.

# Names that other tools use, without case and underscores.
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
# Fields of a reply whose names are similar to a question's.
_REPLY_FIELDS = frozenset({"contexts", "tool_calls", "tools_used"})
_MIN_SIMILARITY = 0.85
_LIKE_EXPECTATION = lazy(r"(?i:expected|expects?|validation|accept)(?:[_\W]|(?<=[a-z])[A-Z])")


def _refuse_near_miss(name: object) -> None:
    """Refuse a field that is nearly a known one or looks like an expectation: as a note, it would silently expect nothing."""
    meant = intended_field(name) if isinstance(name, str) else None
    if meant is not None and meant != name:
        raise ValueError(f"unknown field {name!r}: did you mean {meant!r}? Any other name is kept as a note")
    if isinstance(name, str) and _LIKE_EXPECTATION.match(name):
        raise ValueError(
            f"unknown field {name!r} looks like an expectation, and would score nothing; map it "
            f"(--map expected_keywords={name}), name it under [truth.NAME] rows if it names a function that computes the "
            "answer, or rename it if it is a note"
        )


# Names that say "expectation" also in a row of a log, where "tool" and "reference" are the chatbot's and the business's own.
_ONLY_EXPECTATIONS = frozenset(_OTHER_NAMES) - {"tool", "reference"}
_VALIDATIONS = frozenset({"validationkeywords", "validationparams", "validationtype"})


@lru_cache(maxsize=1000)
def misnamed_expectation(name: str) -> str | None:
    """The expectation that a field of a logged row is meant as, under a name that is not read; None for any other field."""
    if name in QUESTION_FIELDS or _is_reply_name(name):
        return None
    plain = "".join(filter(str.isalnum, name)).casefold()
    if plain in _VALIDATIONS:
        return "expected_keywords"
    meant = intended_field(name)
    is_meant = plain in _ONLY_EXPECTATIONS or (plain.startswith("expected") and meant in EXPECTATION_FIELDS)
    return meant if is_meant else None


def _is_reply_name(name: str) -> bool:
    return name in _REPLY_FIELDS or name in GROUP_FIELDS


@lru_cache(maxsize=1000)
def intended_field(name: str) -> str | None:
    """The field of a name, also if it is misspelt; None for a note."""
    if name in QUESTION_FIELDS:
        return name
    if _is_reply_name(name):
        return None
    plain = "".join(filter(str.isalnum, name)).casefold()
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    known = {field.replace("_", ""): field for field in QUESTION_FIELDS}
    close = nearest_name(plain, known, _MIN_SIMILARITY)
    return known[close] if close else None


# Readers: one for each kind of field. They get the value and the field's name for messages, and raise ValueError.

_NO_VALUES: dict[str, Any] = {}  # shared by the many questions without any
_TEXT = {str}


def _are_texts(value: Any) -> bool:
    """Whether it is a list of texts of which none is blank; most lists are, so it is looked at in one go."""
    return isinstance(value, list) and {*map(type, value)} <= _TEXT and all(map(str.strip, value))


def read_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text, not {kind_in_words(value)}")
    return value


def read_question_text(value: Any, where: str) -> str:
    """Text that is not blank, as the chatbot is asked."""
    if not read_text(value, where).strip():
        raise ValueError(f"{where} is empty; write what the user asks")
    return str(value)


def read_non_empty_text(value: Any, where: str) -> str:
    """Text that is not blank."""
    if not is_text(value):
        raise ValueError(f"{where} must be non-empty text, not {kind_in_words(value)}")
    return str(value)


def read_id(value: Any, where: str) -> str:
    """A text or whole number that is not blank."""
    return read_non_empty_text(read_group(value, where) if isinstance(value, int) else value, where)


def read_group(value: Any, where: str) -> str:
    """A text or whole number."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_integer else read_text(value, where)


def read_category(value: Any, where: str) -> str:
    """A text; blank means no category."""
    return intern(read_text(value, where) or UNCATEGORISED)


def read_weight(value: Any, where: str) -> float:
    """A number from 0 up, also as text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"{where} must be a number, not {value[:40]!r}") from None
    if not is_number_from_zero(value):
        raise ValueError(f"{where} must be a number that is not negative")
    return float(value)


@lru_cache(maxsize=1000)
def _shared(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal lists of many questions are in memory once."""
    return items


def read_texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts that are not blank."""
    return _shared(read_list(value, where, read_non_empty_text))


def read_turns(value: Any, where: str) -> list[Mapping[str, Any]]:
    """A list of objects that is not empty."""
    if not isinstance(value, list) or not value or not all(isinstance(turn, dict) for turn in value):
        raise ValueError(f"{where} must be a list of objects, each with a 'question'")
    return value


def _reader_of_word(word: str, remedy: str) -> Callable[[Any, str], str]:
    """A reader of a field that can only be one word."""

    def read(value: Any, where: str) -> str:
        if value != word:
            raise ValueError(f'{where} can only be "{word}"{remedy}')
        return word

    return read


def read_documents(value: Any, where: str) -> dict[str, float]:
    """Document id → grade; a list of ids has grade 1."""
    if not isinstance(value, dict):
        return dict.fromkeys(read_texts(value, where), 1.0)
    for name, relevance in value.items():
        if not is_number_from_zero(relevance):
            raise ValueError(f"{where}: the grade of {name!r} must be a number that is not negative")
    return {name: float(relevance) for name, relevance in value.items()}


def read_expected_tools(value: Any, where: str) -> tuple[ExpectedTool, ...]:
    """A list of names, or of objects with name and arguments."""
    if says_no_tool(value):
        raise ValueError(
            f'{where} names no tool; write "tools": "none" if a good reply calls none, else leave it out'
        )
    if _are_texts(value):
        return _tools_by_name(tuple(value))
    return read_list(value, where, _read_tool)


@lru_cache(maxsize=1000)
def _tools_by_name(names: tuple[str, ...]) -> tuple[ExpectedTool, ...]:
    return tuple(map(ExpectedTool, names))


def _read_tool(value: Any, where: str) -> ExpectedTool:
    if is_text(value):
        return ExpectedTool(value)
    if not isinstance(value, dict):
        raise ValueError(
            f"{where} must be a tool's name or an object with 'name', not {kind_in_words(value)}"
        )
    name, arguments = value.get("name"), value.get("arguments")
    if not is_text(name):
        raise ValueError(f"{where} has no 'name'")
    if arguments is not None and not isinstance(arguments, dict):
        raise ValueError(f"{where}: 'arguments' must be an object, not {kind_in_words(arguments)}")
    unknown = sorted(set(value) - {"name", "arguments"})
    if unknown:
        raise ValueError(f"{where} has an unknown field {unknown[0]!r}; use 'name' and 'arguments'")
    for argument, expected in (arguments or {}).items():
        if isinstance(expected, dict) and set(expected) == {"regex"}:
            pattern = expected["regex"]
            problem = check_pattern(pattern) if isinstance(pattern, str) else "it must be text"
            if problem:
                raise ValueError(f"{where}: argument {argument!r} has a bad regular expression: {problem}")
    return ExpectedTool(name, arguments)


def read_expectations(value: Any, where: str) -> tuple[Expectation, ...]:
    """A list of expectations of the text."""
    if _are_texts(value):
        return _shared(tuple(value))
    return read_list(value, where, parse_expectation)


def _reader_of(bare: BareKind) -> Callable[[Any, str], tuple[Expectation, ...]]:
    """A reader of expectations whose kind the field's name gives; one of them needs no list."""

    def read(value: Any, where: str) -> tuple[Expectation, ...]:
        values = value if isinstance(value, list) else [value]
        return read_list(values, where, lambda item, item_path: parse_expectation(item, item_path, bare))

    return read


# Also as German, French and Spanish tables have them.
_TRUTH_WORDS = {
    **dict.fromkeys(("true", "yes", "y", "1", "wahr", "ja", "vrai", "oui", "verdadero", "sí"), True),
    **dict.fromkeys(("false", "no", "n", "0", "falsch", "nein", "faux", "non", "falso"), False),
}


def read_answerable(value: Any, where: str) -> bool:
    """true or false, also as the text of a cell."""
    if isinstance(value, str):
        value = _TRUTH_WORDS.get(value.strip().casefold(), value)
    if not isinstance(value, bool):
        raise ValueError(f"{where} must be true or false, not {kind_in_words(value)}")
    return value


# The table of fields.

_SYNONYMS = {"expected_content": "expected_keywords", "expected_sources": "relevant_documents"}
# Fields whose values are added to expected_keywords.
_KEYWORD_KINDS = frozenset({"expected_numbers", "expected_dates", "expected_entities", "accept_regex"})
_EXPECTATIONS: dict[str, FieldReader] = {
    "expected_tools": read_expected_tools,
    "forbidden_tools": read_texts,
    "tools": _reader_of_word("none", " (must use no tool); name tools under 'expected_tools'"),
    "expected_keywords": read_expectations,
    "expected_content": read_expectations,
    "expected_numbers": _reader_of("number"),
    "expected_dates": _reader_of("date"),
    "expected_entities": _reader_of("text"),
    "accept_regex": _reader_of("regex"),
    "forbidden_keywords": read_expectations,
    "answerable": read_answerable,
    "reference_answer": read_text,
    "also_right": read_texts,
    "relevant_documents": read_documents,
    "expected_sources": read_documents,
    # `_read_fields` also passes the registry of scorers.
    "checks": lambda value, _: parse_checks(value),
}
TURN_FIELDS: dict[str, FieldReader] = {"question": read_question_text, **_EXPECTATIONS}
QUESTION_FIELDS: dict[str, FieldReader] = {
    "question": read_question_text,
    "id": read_id,
    "category": read_category,
    "group": read_group,
    "context": read_text,
    "persona": read_text,
    "tags": read_texts,
    "weight": read_weight,
    "severity": _reader_of_word("critical", "; leave it out for any other question"),
    "turns": read_turns,
    **_EXPECTATIONS,
}
EXPECTATION_FIELDS = frozenset(_EXPECTATIONS)


def question_schema() -> dict[str, Any]:
    """The JSON Schema of one question, for editors; fields that it does not name are notes."""
    schema: dict[str, Any] = msgspec.json.decode(
        Path(__file__).with_name("question.schema.json").read_bytes()
    )
    return schema


# Writing: the canonical row of a question, which reads back as the same question.

_BLANK = Question(id="", question="")


def question_row(question: Question) -> JsonObject:
    """A question as a row of a golden set; fields with their default value are left out."""
    row = _row_fields(question)
    if question.turns:
        # The id and category of a turn are those of its conversation.
        row["turns"] = [
            {name: value for name, value in _row_fields(turn).items() if name not in ("id", "category")}
            for turn in question.turns
        ]
    return {**row, **msgspec.to_builtins(question.metadata)}


def _row_fields(question: Question) -> JsonObject:
    row: JsonObject = {}
    for name in Question.__struct_fields__:
        value = getattr(question, name)
        if name in ("line", "metadata", "turns") or value == getattr(_BLANK, name):
            continue
        if name == "expected_tools":
            row[name] = [
                tool.name if tool.arguments is None else {"name": tool.name, "arguments": tool.arguments}
                for tool in value
            ]
        elif name in ("expected_keywords", "forbidden_keywords"):
            row[name] = [expectation_value(expectation) for expectation in value]
        elif name == "checks":
            row[name] = [_check_value(check) for check in value]
        else:
            row[name] = msgspec.to_builtins(value)
    return row


def _check_value(check: Check) -> Json:
    row: JsonObject = {check.kind: msgspec.to_builtins(check.expected)}
    if check.name != check.kind:
        row["name"] = check.name
    if check.weight != 1:
        row["weight"] = check.weight
    return row
