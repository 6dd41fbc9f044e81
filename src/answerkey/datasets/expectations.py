"""Expectations and checks of a golden set: read from JSON values; expectations written back."""

import datetime
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Literal, TypeGuard, get_args

import msgspec

from answerkey.errors import nearest_name
from answerkey.model.judgement import read_check_rubric
from answerkey.model.question import (
    CHECK_KINDS,
    Alternatives,
    Check,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    Method,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    SingleExpectation,
    TextExpectation,
)
from answerkey.model.reply import Json, JsonObject
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.text.dates import parse_date
from answerkey.text.normalise import LANGUAGES, check_pattern, schema_problem
from answerkey.text.numbers import find_quantities, parse_number
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import type_in_words

# The kind of a value that is not an object: `expected_numbers` has numbers, `expected_keywords` texts.
BareKind = Literal["text", "number", "date", "regex"]
_METHODS: tuple[str, ...] = get_args(Method)
# What an object may have beside its kind.
_OPTIONS: dict[str, frozenset[str]] = {
    "text": frozenset({"must"}),
    "any": frozenset({"must"}),
    "number": frozenset({"must", "tolerance"}),
    "range": frozenset({"must"}),
    "date": frozenset({"must"}),
    "regex": frozenset({"must"}),
    "sql": frozenset({"must", "tolerance", "from", "params", "as", "on_empty"}),
    "fact": frozenset({"must", "tolerance", "from", "as", "on_empty"}),
    "python": frozenset({"must", "tolerance", "from", "args", "as", "on_empty"}),
}
_KINDS = ", ".join(_OPTIONS)


def parse_expectation(value: Any, where: str, bare: BareKind = "text") -> Expectation:
    """Read one expectation.

    Args:
        value: A text, a number, a list of alternatives, or an object with exactly one kind.
        where: The place of the value, for messages.
        bare: What a value that is not an object is.

    Raises:
        ValueError: With the place, what is wrong and the remedy.

    >>> parse_expectation({"number": 3960, "tolerance": "1%"}, "'expected_keywords' item 1")
    NumberExpectation(number=3960.0, tolerance='1%', percent=False, must=False, expression='')
    """
    if isinstance(value, list):
        return Alternatives(_read_options(value, where, bare))
    if not isinstance(value, dict):
        if bare == "number" and len(options := _read_numbers(value, where)) > 1:
            return Alternatives(options)
        return _read_bare(value, where, bare)
    kind = _read_kind(value, where)
    must = _read_choice(value, "must", where, (False, True))
    if kind in _METHODS:
        return _read_computed(value, kind, where, must)
    inner = f"{where}: {kind!r}"
    if kind == "any":
        if not isinstance(value["any"], list):
            raise ValueError(f"{inner} must be a list of alternatives, not {kind_in_words(value['any'])}")
        return Alternatives(_read_options(value["any"], where, bare), must=must)
    single = _READERS[kind](value[kind], inner)
    if isinstance(single, NumberExpectation) and "tolerance" in value:
        single = msgspec.structs.replace(single, tolerance=_read_tolerance(value["tolerance"], where))
    if not must:
        return single
    if isinstance(single, str):
        return TextExpectation(single, must=True)
    return msgspec.structs.replace(single, must=True)


def _read_kind(value: Mapping[str, Any], where: str) -> str:
    kinds = [name for name in value if name in _OPTIONS]
    if len(kinds) != 1:
        problem = f"has {' and '.join(map(repr, kinds))}" if kinds else "has no kind"
        raise ValueError(f"{where} {problem}; give it exactly one of {_KINDS}")
    kind = kinds[0]
    for name in value:
        if name != kind and name not in _OPTIONS[kind]:
            allowed = ", ".join(sorted(_OPTIONS[kind]))
            raise ValueError(f"{where}: {name!r} is not an option of {kind!r}, which has {allowed}")
    return kind


def _read_options(values: list[Any], where: str, bare: BareKind) -> tuple[SingleExpectation, ...]:
    if not values:
        raise ValueError(f"{where} is an empty list of alternatives; remove it")
    options: list[SingleExpectation] = []
    for value in values:
        if isinstance(value, list) or (isinstance(value, dict) and "any" in value):
            raise ValueError(f"{where}: alternatives cannot be nested; put them in one list")
        if isinstance(value, dict) and "must" in value:
            raise ValueError(
                f'{where}: one alternative cannot be essential; write {{"any": […], "must": true}}'
            )
        option = parse_expectation(value, where, bare)
        if isinstance(option, ComputedExpectation):
            raise ValueError(
                f"{where}: a computed value cannot be an alternative; make it an expectation of its own"
            )
        options += option.options if isinstance(option, Alternatives) else [option]
    return tuple(options)


def _read_bare(value: Any, where: str, bare: BareKind) -> SingleExpectation:
    """A value that is not an object, by the kind that its field has."""
    if isinstance(value, datetime.date):
        # TOML, YAML and Excel have dates of their own.
        return DateExpectation(value.isoformat()) if bare == "date" else value.isoformat()
    if bare == "text":
        return _read_text(value, where)
    return _READERS[bare](value, where)


def _read_text(value: Any, where: str) -> str:
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{where} must be text, not {kind_in_words(value)}; put it in quotes")
    if isinstance(value, int | float):
        # YAML and JSON writers leave quotes off numbers; the text is meant.
        return msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        raise ValueError(
            f"{where} must be text, a list of alternatives or an object with one of {_KINDS}, not {kind_in_words(value)}"
        )
    if not value.strip():
        raise ValueError(f"{where} is empty, which every reply would contain; remove it")
    return value


# "1.200" is 1.2 or, as Germans write it, 1200.
_THOUSANDS_OR_DECIMALS = lazy(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,])")


def _possible_numbers(text: str) -> tuple[float, ...]:
    """The numbers that a text may be, which is one amount with or without a unit; empty: it is not one.

    >>> _possible_numbers("120 m²"), _possible_numbers("€1.200"), _possible_numbers("1.200"), _possible_numbers("5-6")
    ((120.0,), (1200.0,), (1.2, 1200.0), ())
    """
    parsed = parse_number(text)
    if parsed is not None and not _THOUSANDS_OR_DECIMALS.search(text):
        return (float(parsed),)
    amounts = find_quantities(text)
    if len(amounts) != 1:
        return ()
    [amount] = amounts
    digits = text[amount.start : amount.end]
    if amount.start or amount.dimension == "clock" or not any(map(str.isdigit, digits)):
        return ()
    if any(map(str.isdigit, text[amount.end :])):
        return ()
    # No price has three decimals.
    return (max(amount.numbers),) if amount.is_money else amount.numbers


def _read_numbers(value: Any, where: str) -> tuple[NumberExpectation, ...]:
    """The numbers that a value may be; "$3,960", "12.5%" and "120 m²" are numbers too. The unit is not compared."""
    if isinstance(value, str):
        text = value.strip()
        percent = text.endswith(("%", "percent", "Prozent"))
        if numbers := _possible_numbers(text):
            return tuple(NumberExpectation(number, percent=percent) for number in numbers)
    elif isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return (NumberExpectation(float(value)),)
    problem = repr(value[:40]) if isinstance(value, str) else kind_in_words(value)
    raise ValueError(
        f'{where} must be a number such as 3960, "12.5%" or "120 m²", not {problem}; write a range as '
        '{"range": [5, 6]} (in a table: 5..6), and a date or time under expected_dates'
    )


def _number(value: Any, where: str) -> NumberExpectation:
    return _read_numbers(value, where)[0]


def _range(value: Any, where: str) -> RangeExpectation:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{where} must be a list of two numbers, the lowest and the highest")
    low, high = (_number(end, where) for end in value)
    if low.number > high.number:
        raise ValueError(
            f"{where}: {low.number:g} is higher than {high.number:g}; write the lower number first"
        )
    return RangeExpectation(low.number, high.number, percent=low.percent or high.percent)


def _date(value: Any, where: str) -> DateExpectation:
    if isinstance(value, datetime.date):
        return DateExpectation(value.isoformat())
    wanted = parse_date(value) if isinstance(value, str) else None
    if wanted is None:
        shown = repr(value[:40]) if isinstance(value, str) else kind_in_words(value)
        raise ValueError(f'{where} must be a date or time such as "2025-03-31" or "18:15", not {shown}')
    day = wanted.date
    if day is not None and day.month and day.day:
        try:
            # A date without a year may be in a leap year.
            datetime.date(day.year or 2000, day.month, day.day)
        except ValueError:
            raise ValueError(f"{where}: there is no day {value!r}") from None
    return DateExpectation(value)


def _pattern(value: Any, where: str) -> PatternExpectation:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where} must be a regular expression as text, not {kind_in_words(value)}")
    if problem := check_pattern(value):
        raise ValueError(f"{where}: the regular expression {value!r} is not valid: {problem}")
    return PatternExpectation(value)


_READERS: dict[str, Callable[[Any, str], SingleExpectation]] = {
    "text": _read_text,
    "number": _number,
    "range": _range,
    "date": _date,
    "regex": _pattern,
}


def _read_tolerance(value: Any, where: str) -> float | str:
    """An absolute difference, or a percentage as text."""
    if is_number_from_zero(value):
        return float(value)
    if isinstance(value, str):
        number = parse_number(value)
        if number is not None and float(number) >= 0:
            return value.strip() if value.rstrip().endswith("%") else float(number)
    raise ValueError(f"{where}: 'tolerance' must be a number from 0 up or a percentage such as \"1%\"")


def _read_choice(value: Mapping[str, Any], name: str, where: str, choices: tuple[Any, ...]) -> Any:
    chosen = value.get(name, choices[0])
    if not any(chosen is choice or (isinstance(chosen, str) and chosen == choice) for choice in choices):
        listed = " or ".join(msgspec.json.encode(choice).decode() for choice in choices)
        raise ValueError(f"{where}: {name!r} must be {listed}")
    return chosen


def _read_computed(value: Mapping[str, Any], method: str, where: str, must: bool) -> ComputedExpectation:
    expression, source = value[method], value.get("from", "")
    if not isinstance(expression, str) or not expression.strip():
        raise ValueError(f"{where}: {method!r} must be text, not {kind_in_words(expression)}")
    if not isinstance(source, str):
        raise ValueError(f"{where}: 'from' must name a source under [truth], not {kind_in_words(source)}")
    arguments = value.get("params", value.get("args", {}))
    if not isinstance(arguments, dict):
        name = "params" if "params" in value else "args"
        raise ValueError(f"{where}: {name!r} must be an object, not {kind_in_words(arguments)}")
    return ComputedExpectation(
        method=method,  # type: ignore[arg-type]  # one of _METHODS
        source=source,
        arguments=arguments,
        several=_read_choice(value, "as", where, ("all", "any")),
        on_empty=_read_choice(value, "on_empty", where, ("error", "abstain")),
        tolerance=_read_tolerance(value.get("tolerance", 0), where),
        must=must,
        expression=expression,
    )


def is_number_from_zero(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number that is not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and isfinite(value)


def kind_in_words(value: Any) -> str:
    """The type of a value, or "empty text".

    >>> kind_in_words(" "), kind_in_words([1])
    ('empty text', 'a list')
    """
    return "empty text" if isinstance(value, str) and not value.strip() else type_in_words(value)


# Writing: the value that reads back as the same expectation.


def expectation_value(expectation: Expectation) -> Json:
    """An expectation as a value of a golden set."""
    if isinstance(expectation, str):
        return expectation
    if isinstance(expectation, Alternatives):
        options: Json = [expectation_value(option) for option in expectation.options]
        return {"any": options, "must": True} if expectation.must else options
    row = _row(expectation)
    if expectation.must:
        row["must"] = True
    return row


def _row(expectation: Expectation) -> JsonObject:
    match expectation:
        case TextExpectation(text=text):
            return {"text": text}
        case NumberExpectation(tolerance=tolerance):
            number = _end(expectation.number, expectation.percent)
            return {"number": number, "tolerance": tolerance} if tolerance else {"number": number}
        case RangeExpectation(low=low, high=high, percent=percent):
            return {"range": [_end(low, percent), _end(high, percent)]}
        case DateExpectation(date=date):
            return {"date": date}
        case PatternExpectation(regex=regex):
            return {"regex": regex}
        case ComputedExpectation():
            return _computed_row(expectation)
    raise TypeError(f"not an expectation: {expectation!r}")


def _end(number: float, percent: bool) -> Json:
    if percent:
        return f"{number:.12g}%"
    return int(number) if number == int(number) else number


def _computed_row(expectation: ComputedExpectation) -> JsonObject:
    row: JsonObject = {expectation.method: expectation.expression}
    if expectation.source:
        row["from"] = expectation.source
    if expectation.arguments:
        row["args" if expectation.method == "python" else "params"] = expectation.arguments
    if expectation.several != "all":
        row["as"] = expectation.several
    if expectation.on_empty != "error":
        row["on_empty"] = expectation.on_empty
    if expectation.tolerance:
        row["tolerance"] = expectation.tolerance
    return row


class ListError(ValueError):
    """Items of a list that cannot be read: (number from 1, message)."""

    def __init__(self, items: list[tuple[int, str]]) -> None:
        self.items = items
        super().__init__("; ".join(message for _, message in items))


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def read_list(value: Any, where: str, read_item: Callable[[Any, str], Any]) -> tuple[Any, ...]:
    """Read each item of a list; raises ListError with every item that cannot be read."""
    if not isinstance(value, list):
        remedy = f"; write {msgspec.json.encode([value]).decode()}" if is_text(value) else ""
        raise ValueError(f"{where} must be a list, not {kind_in_words(value)}{remedy}")
    read: list[Any] = []
    problems: list[tuple[int, str]] = []
    for number, item in enumerate(value, start=1):
        try:
            read.append(read_item(item, f"{where} item {number}"))
        except ValueError as error:
            problems.append((number, str(error)))
    if problems:
        raise ListError(problems)
    return tuple(read)


# Checks.

_CHECK_OPTIONS = frozenset({"weight", "name"})  # of every kind of check


def parse_checks(value: Any, registry: ScorerRegistry = scorers) -> tuple[Check, ...]:
    """Parse `checks`. Raises ValueError with the item, what is wrong and the remedy."""
    if not isinstance(value, list):
        raise ValueError('\'checks\' must be a list of checks such as {"contains": "please"}')
    return read_list(value, "'checks'", lambda item, where: _read_check(item, where, registry))


def _read_check(value: Any, where: str, registry: ScorerRegistry) -> Check:
    if isinstance(value, str):
        value = {value: {}}
    if not isinstance(value, dict):
        raise ValueError(f'{where} must be an object such as {{"contains": "please"}}')
    kinds = [key for key in value if key not in _CHECK_OPTIONS]
    if len(kinds) != 1:
        found = f"has {' and '.join(map(repr, kinds))}" if kinds else "does not say what to check"
        raise ValueError(f"{where} {found}; give it exactly one kind, such as 'contains'")
    kind = kinds[0]
    expected = value[kind]
    if kind in _CHECK_PROBLEMS:
        problem = _CHECK_PROBLEMS[kind](expected)
        if problem:
            raise ValueError(f"{where}: {kind!r} {problem}")
    else:
        expected = _read_scorer_arguments(kind, expected, where, registry)
    name, weight = value.get("name", kind), value.get("weight", 1.0)
    if not is_text(name):
        raise ValueError(f"{where}: 'name' must be non-empty text")
    if not is_number_from_zero(weight) or not weight:
        raise ValueError(f"{where}: 'weight' must be a number above 0")
    return Check(kind, expected, name, float(weight))


def _read_scorer_arguments(kind: str, value: Any, where: str, registry: ScorerRegistry) -> dict[str, Any]:
    """The arguments of a registered scorer; `true` means none."""
    known = [name for name in registry.names() if name != "checks"]
    if kind not in known:
        close = nearest_name(kind, [*CHECK_KINDS, *known])
        hint = f"did you mean {close!r}?" if close else f"there are {', '.join(CHECK_KINDS)}"
        raise ValueError(f"{where}: unknown kind of check {kind!r}; {hint} (or a scorer's name)")
    if value is True or value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where}: the arguments of the scorer {kind!r} must be an object, such as {{}}")
    return value


def _unless(is_valid: Callable[[Any], bool], problem: str) -> Callable[[Any], str | None]:
    return lambda value: None if is_valid(value) else problem


def _is_text_or_texts(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(map(is_text, texts))


def _is_function(value: Any) -> bool:
    module, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return bool(module and name)


def _regex_problem(value: Any) -> str | None:
    if not is_text(value):
        return "must be a regular expression as text"
    problem = check_pattern(value)
    return f"{value!r} is not a valid regular expression: {problem}" if problem else None


def _rubric_problem(value: Any) -> str | None:
    if not isinstance(value, str | dict):
        return "must be text (the criterion for the judge) or an object with 'question'"
    try:
        read_check_rubric(value)
    except ValueError as error:
        return str(error)
    return None


def _language_problem(value: Any) -> str | None:
    if value in LANGUAGES:
        return None
    return f"{value!r} is not a supported language; use one of {', '.join(sorted(LANGUAGES))}"


_LIMIT_PROBLEM = _unless(is_number_from_zero, "must be a number from 0 up")
# Kind of check → a function that says what is wrong with the expected value.
_CHECK_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "contains": _unless(_is_text_or_texts, "must be text or a list of texts"),
    "equals": _unless(lambda value: value is not None, "must be what the reply should be, not null"),
    "regex": _regex_problem,
    "is_json": _unless(lambda value: isinstance(value, bool), "must be true or false"),
    "json_schema": schema_problem,
    "max_latency_ms": _LIMIT_PROBLEM,
    "max_cost": _LIMIT_PROBLEM,
    "max_words": _LIMIT_PROBLEM,
    "language": _language_problem,
    "python": _unless(_is_function, "must name a function, as in file.py:function"),
    "rubric": _rubric_problem,
}
