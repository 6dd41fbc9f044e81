"""promptfoo's tests: import of a configuration, test files, tables with `__expected` or eval results; export as tests.yaml."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.conversion import (
    Files,
    Losses,
    RowPosition,
    TableExport,
    as_text,
    check_cases,
    expected_call,
    last_user_text,
    row_position,
    single_arguments,
)
from answerkey.errors import InputError, UsageError
from answerkey.model.judgement import read_check_rubric
from answerkey.model.question import (
    Alternatives,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    Question,
    expected_options,
    expected_text,
)
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Imported
from answerkey.text.normalise import count
from answerkey.transcripts.json_values import as_dict, as_dicts, as_list, decode_json, json_text
from answerkey.transcripts.row_files import open_rows
from answerkey.transcripts.yaml_documents import decode_yaml, encode_yaml

# Prompts: which of a configuration's is the question, and how it reads with a test's variables.

# {{ name }}, {{ name.field }} or {{ name | filter }}.
_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*(\|[^{}]*?)?\s*-?\}\}")
_CODE = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_PROGRAMS = (".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".go", ".sh")
_FILE = "file://"
# A file of text may hold several prompts.
_BETWEEN_PROMPTS = re.compile(r"^---\s*$", re.MULTILINE)
# A variable as a value in YAML, where braces without quotes are an object.
_BARE_VARIABLE = re.compile(r"^(\s*(?:- +)?[\w-]+:\s+)(\{\{[^{}'\n]*\}\})\s*$", re.MULTILINE)
# Filters of a variable that are applied.
_FILTERS: dict[str, Callable[[str], str]] = {
    "dump": json_text,
    "lower": str.lower,
    "safe": str,
    "trim": str.strip,
    "upper": str.upper,
}
# Variables may contain variables.
_MOST_PASSES = 3


class Prompts(msgspec.Struct, frozen=True):
    """The prompts of a configuration, as far as they are text."""

    templates: tuple[str, ...] = ()
    # What is not used, for the list of losses.
    unused: tuple[str, ...] = ()
    # Whether there are prompts, and none of them is a text here.
    is_missing: bool = False

    def template(self, variables: Mapping[str, Any]) -> str:
        """The template that is rendered: the first whose variables a test has; empty if there is none."""
        lacking = [len(_unfilled(fill_variables(one, variables))) for one in self.templates]
        return self.templates[lacking.index(min(lacking))] if lacking else ""

    def question(self, variables: Mapping[str, Any], losses: Losses) -> str:
        """The user's words in the rendered prompt; empty if no prompt is text, or if a variable of it is missing."""
        for lost in self.unused:
            losses.add(lost)
        template = self.template(variables)
        if not template:
            return ""
        if _CODE.search(template):
            losses.add("template code ({% … %}) in a prompt, which was left out")
        filters = {match[2].lstrip("| ").strip() for match in _VARIABLE.finditer(template) if match[2]}
        if filters - _FILTERS.keys():
            losses.add("a filter ({{ name | filter }}) in a prompt")
        # A variable may have quotes, so the user's words are found first; or it may be the whole chat.
        words = _user_words(_CODE.sub("", template).strip(), losses)
        rendered = _user_words(fill_variables(words, variables).strip(), losses)
        if missing := _unfilled(rendered):
            losses.add(
                f"a test whose prompt needs the variable {', '.join(missing)}, which is not in the file"
            )
            return ""
        return rendered


def read_prompts(document: Mapping[str, Any], folder: Path) -> Prompts:
    """The prompts of a configuration in this folder."""
    given = document.get("prompts", document.get("prompt"))
    listed = given if isinstance(given, list) else list(given) if isinstance(given, dict) else [given]
    templates: list[str] = []
    unused: list[str] = []
    for prompt in listed:
        texts = _templates(prompt, folder)
        templates += [text for text in texts or () if text.strip()]
        if texts is None:
            unused.append(f"the prompt {str(_named_text(prompt))[:80]!r}, which is not a text here")
    if len(templates) > 1:
        unused.append(f"{len(templates) - 1} further prompts: the first that fits a test is the question")
    return Prompts(tuple(templates), tuple(unused), is_missing=bool(unused) and not templates)


def _named_text(prompt: Any) -> Any:
    if not isinstance(prompt, dict):
        return prompt
    return next((prompt[name] for name in ("raw", "file", "id", "label") if prompt.get(name)), prompt)


def _templates(prompt: Any, folder: Path) -> list[str] | None:
    """The texts of a prompt, also of a file or of several; None if it is made by a program or missing."""
    text = _named_text(prompt)
    if not isinstance(text, str):
        return [] if text is None else None
    is_path = text.startswith(_FILE) or (
        "\n" not in text and "{" not in text and " " not in text.strip() and Path(text).suffix != ""
    )
    if not is_path:
        return [text]
    texts: list[str] = []
    for path in files_named(text, folder):
        content = _text_of(path)
        if content is None:
            return None
        if path.suffix in (".yaml", ".yml"):
            content = _as_json(content)
        texts += _BETWEEN_PROMPTS.split(content) if path.suffix in (".txt", ".md") else [content]
    return texts or None


def _text_of(path: Path) -> str | None:
    """The text of a file; None for a program, and where there is no text."""
    with suppress(OSError, ValueError):
        return None if path.suffix in _PROGRAMS else path.read_text("utf-8-sig")
    return None


def files_named(name: str, folder: Path) -> list[Path]:
    """The files that a configuration names by a path or a pattern."""
    name = name.removeprefix(_FILE)
    return sorted(folder.glob(name)) if "*" in name and not Path(name).is_absolute() else [folder / name]


def _as_json(content: str) -> str:
    """A prompt in YAML as JSON, which no value of a variable can break."""
    try:
        return msgspec.json.encode(decode_yaml(_BARE_VARIABLE.sub(r"\1'\2'", content))).decode()
    except ValueError:
        return content


def _user_words(rendered: str, losses: Losses) -> str:
    """The last user message of a prompt that is a chat, else the prompt."""
    if rendered[:1] not in ("[", "{"):
        return rendered
    try:
        value = decode_json(rendered)
    except ValueError:
        return rendered
    messages = as_dicts(as_dict(value).get("messages") if isinstance(value, dict) else value)
    asked = last_user_text(messages, losses)
    return rendered if asked is None else asked


def fill_variables(value: Any, variables: Mapping[str, Any]) -> Any:
    """A text or list with its {{variables}} filled in, also those within variables."""
    if isinstance(value, list):
        return [fill_variables(part, variables) for part in value]
    if not isinstance(value, str):
        return value
    for _ in range(_MOST_PASSES):
        filled = _VARIABLE.sub(lambda match: _value_of(match, variables), value)
        if filled == value:
            break
        value = filled
    return value


def _unfilled(text: str) -> list[str]:
    """The names of the variables that a text still has."""
    return list(dict.fromkeys(match[1] for match in _VARIABLE.finditer(text)))


def load_variables(variables: Mapping[str, Any], folder: Path, losses: Losses) -> dict[str, Any]:
    """The variables of a test, with the texts of the files that they name."""
    loaded = dict(variables)
    for name, value in variables.items():
        if not isinstance(value, str) or not value.startswith(_FILE):
            continue
        text = _text_of(folder / value.removeprefix(_FILE))
        if text is None:
            losses.add(f"the text of {value!r}, a variable that is not a text file here")
        else:
            loaded[name] = text
    return loaded


def _value_of(match: re.Match[str], variables: Mapping[str, Any]) -> str:
    found: Any = variables
    for name in match[1].split("."):
        if not isinstance(found, Mapping) or name not in found:
            return match[0]
        found = found[name]
    text = as_text(found) or ""
    return _FILTERS.get((match[2] or "").lstrip("| ").strip(), str)(text)


# Tests.


_ASKED = ("question", "query", "input", "prompt", "message", "user_input", "text", "q")
# A cell of `__expected`: the kind of assertion, its threshold, its value.
_CELL = re.compile(r"^(not-)?([a-z][\w:-]*?)(?:\(([\d.]+)\))?(?:(?:(?<=\w)|(?<=\))):\s*(.*))?$", re.DOTALL)
# What is read of a test and of an assertion; anything else is listed.
_READ = frozenset({"vars", "assert", "metadata", "description", "__description", "__providerOutput"})
_READ_OF_ASSERTION = frozenset({"type", "value", "weight", "metric"})
_CELL_KINDS = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}


def import_promptfoo(paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
    """Every test of the files; each assertion becomes a keyword, a check, a reference, a call, or is listed.

    The question is the rendered prompt, or the variable that `fields` names.
    """
    given = dict(fields or {})
    variable = given.pop("question", "").removeprefix("vars.")
    if given:
        raise UsageError(f"--map {next(iter(given))}: of a promptfoo test only the question can be chosen")
    losses = Losses()
    cases: list[tuple[RowPosition, JsonObject]] = []
    names: set[str] = set()
    rendered = 0
    for path in paths:
        prompts = read_prompts(_document(path), path.parent)
        for position, test in _tests(path, losses):
            losses.position = position
            for case in _cases(test, variable, prompts, path.parent, losses):
                _name_apart(case, names)
                rendered += "prompt" in case
                cases.append((position, case))
    if not cases and (notes := losses.notes()):
        # What ended the tests comes last.
        raise InputError(f"no test could be read; {'; '.join(notes[-2:])}", path=paths[0])
    imported = check_cases(cases, losses, "promptfoo")
    if not rendered:
        return imported
    many = count(rendered, "question is a rendered prompt", "questions are rendered prompts")
    note = f"{many}; --map question=NAME takes a variable instead"
    return msgspec.structs.replace(imported, notes=(*imported.notes, note))


def _name_apart(case: JsonObject, names: set[str]) -> None:
    """Give a second test of the same question an id of its own."""
    name = str(case.get("id") or case.get("question"))
    number = 1
    while name in names:
        number += 1
        name = f"{case.get('id') or case.get('description') or 'test'}-{number}"
    if number > 1:
        case["id"] = name
    names.add(name)


def _tests(path: Path, losses: Losses) -> Iterator[tuple[RowPosition, JsonObject]]:
    """The tests of one file, with what they inherit."""
    document = _document(path)
    inherited = document.get("defaultTest")
    if isinstance(inherited, str):
        inherited = _document(path.parent / inherited.removeprefix(_FILE)) or inherited
    if not isinstance(inherited, dict):
        if inherited:
            losses.position = row_position(path, None, 0)
            losses.add(f"the defaultTest {inherited!r}")
        inherited = {}
    tests: Any = document.get("tests")
    for number, (line, row) in enumerate(_rows(path, document, tests), start=1):
        if "path" not in row or "vars" in row:
            yield row_position(path, line, number), _inherit(row, inherited)
    yield from _tests_elsewhere(path, tests, inherited, losses)
    yield from _scenarios(path, document, inherited, losses)


def _tests_elsewhere(
    path: Path, tests: Any, inherited: Mapping[str, Any], losses: Losses
) -> Iterator[tuple[RowPosition, JsonObject]]:
    """The tests of other files that a configuration names."""
    for other in tests if isinstance(tests, list) else [tests]:
        named = other.get("path") if isinstance(other, dict) and "vars" not in other else other
        if not isinstance(named, str):
            continue
        for target in files_named(named, path.parent) or [Path(named)]:
            if target.suffix in _PROGRAMS or not target.is_file():
                losses.position = row_position(path, None, 0)
                why = "a program makes them" if target.is_file() else "no such file"
                losses.add(f"the tests of {named!r} ({why})")
                continue
            for position, test in _tests(target, losses):
                yield position, _inherit(test, inherited)


def _scenarios(
    path: Path, document: JsonObject, inherited: Mapping[str, Any], losses: Losses
) -> Iterator[tuple[RowPosition, JsonObject]]:
    """Each test of a scenario with each of its configurations."""
    number = 0
    for scenario in as_list(document.get("scenarios")):
        if not isinstance(scenario, dict):
            losses.position = row_position(path, None, 0)
            losses.add(f"the scenario {scenario!r}")
            continue
        for settings in as_dicts(scenario.get("config")) or [{}]:
            for test in as_dicts(scenario.get("tests")) or [{}]:
                number += 1
                yield row_position(path, None, number), _inherit(_inherit(test, settings), inherited)


def _document(path: Path) -> JsonObject:
    """A configuration; empty if the file is a list or a table of tests."""
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return {}
    with suppress(ValueError):
        return as_dict(decode_yaml(_text_of(path) or ""))
    return {}


def _rows(path: Path, document: JsonObject, tests: Any) -> Iterator[tuple[int | None, JsonObject]]:
    if isinstance(tests, str) or (isinstance(tests, list) and any(isinstance(test, str) for test in tests)):
        for test in tests if isinstance(tests, list) else ():
            if isinstance(test, dict):
                yield None, test
        return
    if document.get("scenarios") and not tests:
        return
    if isinstance(tests, dict):
        # One generator or path instead of a list.
        return
    if document and tests is None and "results" not in document:
        why = "give promptfoo's configuration or tests"
        if "redteam" in document:
            why = "promptfoo makes the tests of a red team: give the file of `promptfoo redteam generate`"
        raise InputError(f"has neither 'tests' nor 'results'; {why}", path=path)
    file = open_rows(path)
    for line, row in file.rows:
        if "testCase" in row:
            # A result: the test and the output.
            response = row.get("response")
            said = response.get("output") if isinstance(response, dict) else None
            yield line, {**row["testCase"], "__providerOutput": as_text(said)}  # type: ignore[dict-item]
        else:
            yield line, _from_cells(row) if file.is_table else row


def _from_cells(row: JsonObject) -> JsonObject:
    """A test from a table's row: columns are variables, but for those that begin with two underscores."""
    test: JsonObject = {"vars": {name: cell for name, cell in row.items() if not name.startswith("__")}}
    assertions, metadata = [], dict[str, Any]()
    for name, cell in row.items():
        if name.startswith("__expected"):
            assertions.append(_from_cell(str(cell)))
        elif name.startswith("__metadata:"):
            key = name.partition(":")[2]
            listed = key.endswith("[]")
            metadata[key.removesuffix("[]")] = (
                [part.strip() for part in str(cell).split(",")] if listed else cell
            )
        elif name in ("__description", "__providerOutput"):
            test[name.removeprefix("__") if name == "__description" else name] = cell
        elif name.startswith("__"):
            test[name] = cell
    return {**test, "assert": assertions, "metadata": metadata}  # type: ignore[dict-item]


def _from_cell(cell: str) -> JsonObject:
    match = _CELL.match(cell.strip())
    kind = _CELL_KINDS.get(match[2], match[2]) if match else ""
    if match is None or (kind not in _CARRIED and kind not in _KNOWN):
        return {"type": "equals", "value": cell}
    value: Any = match[4]
    if value is not None and kind.endswith(("-any", "-all")):
        value = [part.strip() for part in value.split(",")]
    found: JsonObject = {"type": (match[1] or "") + kind, "value": value}
    if match[3]:
        found["threshold"] = float(match[3])
    return found


def _inherit(test: JsonObject, default: Mapping[str, Any]) -> JsonObject:
    merged: JsonObject = {**default, **test}
    for name in ("vars", "metadata"):
        if isinstance(default.get(name), dict) and isinstance(test.get(name, {}), dict):
            merged[name] = {**default[name], **test.get(name, {})}  # type: ignore[dict-item]
    if default.get("assert"):
        merged["assert"] = [*default["assert"], *(test.get("assert") or [])]  # type: ignore[misc]
    return merged


def _cases(
    test: JsonObject, variable: str, prompts: Prompts, folder: Path, losses: Losses
) -> Iterator[JsonObject]:
    """One case for each combination of variables that have several values."""
    given = test.get("vars")
    variables = given if isinstance(given, dict) else {}
    if given and not variables:
        losses.add(f"the variables {str(given)[:80]!r}")
    lists = {name: value for name, value in variables.items() if isinstance(value, list)}
    for values in product(*lists.values()):
        chosen = load_variables({**variables, **dict(zip(lists, values, strict=True))}, folder, losses)
        case = _case(test, chosen, variable, prompts, losses)
        if case is not None:
            yield case


def _question_variable(variables: Mapping[str, Any], prompts: Prompts) -> str:
    """The variable that is the question: by its name, or because there is nothing else; empty if there is none."""
    found = next((name for name in _ASKED if name in variables), None)
    is_only = len(variables) == 1 and not prompts.is_missing
    return found or (next(iter(variables)) if is_only else "")


def _case(
    test: JsonObject, variables: Mapping[str, Any], variable: str, prompts: Prompts, losses: Losses
) -> JsonObject | None:
    metadata = test.get("metadata")
    notes = dict(metadata) if isinstance(metadata, dict) else {}
    chosen = variable or _question_variable(variables, prompts)
    value = (as_text(fill_variables(variables.get(chosen), variables)) if chosen else None) or ""
    if variable or not prompts.templates:
        rendered = ""
        prompts.question(variables, losses)
    elif not (rendered := prompts.question(variables, losses)):
        return None
    question = rendered or value
    if not question.strip():
        _no_question(variables, losses)
        return None
    case: JsonObject = {"question": question}
    if rendered and rendered != value.strip():
        # The words beside the variable may be the chatbot's own prompt: both are kept.
        case["prompt"] = prompts.template(variables)
    case |= {name: str(notes.pop(name)) for name in ("id", "category") if name in notes}
    others = {
        name: part
        for name, part in variables.items()
        if ("prompt" in case or name != chosen) and not name.startswith("__")
    }
    extra = {"description": test.get("description"), "vars": others, "promptfoo_metadata": notes}
    case |= {name: part for name, part in extra.items() if part}
    if test.get("__providerOutput") is not None:
        case["answer"] = test["__providerOutput"]
    for name in sorted(test.keys() - _READ):
        if test[name] not in (None, {}, "", []):
            losses.add(f"'{name}' of a test")
    for assertion in as_list(test.get("assert")):
        _assert(assertion, variables, case, losses)
    return case


def _no_question(variables: Mapping[str, Any], losses: Losses) -> None:
    """List a test whose question is not known."""
    if variables:
        names = ", ".join(variables)
        losses.add(
            f"a test with the variables {names}, none of which is called question, and no prompt in the file: say "
            "which with --map question=NAME"
        )
    else:
        losses.add("a test without variables and without a prompt in the file")


def _assert(assertion: Any, variables: Mapping[str, Any], case: JsonObject, losses: Losses) -> None:
    if not isinstance(assertion, dict):
        losses.add(f"the assertion {assertion!r}")
        return
    kind = str(assertion.get("type"))
    if kind == "assert-set":
        if assertion.get("threshold") not in (None, 1):
            losses.add("the threshold of an assert-set: all of its assertions count")
        for part in assertion.get("assert") or ():
            _assert(part, variables, case, losses)
        return
    if assertion.get("transform"):
        # It is said of something made of the reply, which the reply itself need not hold.
        losses.add(f"the assertion {kind!r} with a transform")
        return
    filled = {**assertion, "value": fill_variables(assertion.get("value"), variables)}
    carry = _CARRIED.get(kind)
    problem = carry(filled, case) if carry is not None else f"the assertion {kind!r}"
    if problem:
        losses.add(problem)
    elif assertion.get("weight", 1) != 1 and kind not in _WEIGHTED:
        losses.add(f"the weight of {kind!r}")
    for name in sorted(assertion.keys() - _READ_OF_ASSERTION - {"threshold" if kind in _LIMITS else ""}):
        if assertion[name] is not None and not problem:
            losses.add(f"the {name} of {kind!r}")
    if assertion.get("metric") and not problem and kind not in _WEIGHTED:
        losses.add(f"the metric of {kind!r}")


Carry = Callable[[Mapping[str, Any], JsonObject], str | None]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _add(case: JsonObject, field: str, *items: Any) -> None:
    case.setdefault(field, []).extend(items)  # type: ignore[union-attr]


def _keywords(field: str, read: Callable[[Any], list[Any]]) -> Carry:
    def carry(assertion: Mapping[str, Any], case: JsonObject) -> str | None:
        items = read(assertion.get("value"))
        if not items or str(assertion.get("value")).startswith("file://"):
            return f"the assertion {assertion['type']!r} without a value of its own"
        _add(case, field, *items)
        return None

    return carry


def _check(make: Callable[[Mapping[str, Any]], JsonObject | None]) -> Carry:
    def carry(assertion: Mapping[str, Any], case: JsonObject) -> str | None:
        check = make(assertion)
        if check is None or str(assertion.get("value")).startswith("file://"):
            return f"the assertion {assertion['type']!r} without a value of its own"
        named = {"name": assertion["metric"]} if assertion.get("metric") else {}
        weight = {"weight": assertion["weight"]} if assertion.get("weight", 1) not in (0, 1) else {}
        _add(case, "checks", {**check, **named, **weight})
        return None

    return carry


def _reference(assertion: Mapping[str, Any], case: JsonObject) -> str | None:
    value = as_text(assertion.get("value"))
    if not value:
        return f"the assertion {assertion['type']!r} without a value"
    if case.setdefault("reference_answer", value) != value:
        return f"a second reference answer ({assertion['type']!r})"
    return None


def _equals(assertion: Mapping[str, Any], case: JsonObject) -> str | None:
    _add(case, "checks", {"equals": assertion.get("value")})
    _reference(assertion, case)
    return None


def _tools(assertion: Mapping[str, Any], case: JsonObject) -> str | None:
    value = assertion.get("value")
    steps = value.get("steps", [value]) if isinstance(value, dict) else _listed(value)
    for step in steps:
        name = step.get("name", step.get("tool")) if isinstance(step, dict) else step
        arguments = step.get("args", step.get("arguments")) if isinstance(step, dict) else None
        if not isinstance(name, str):
            return f"the assertion {assertion['type']!r} without a tool's name"
        _add(case, "expected_tools", expected_call(name, arguments if isinstance(arguments, dict) else None))
    return None


def _one(value: Any) -> list[Any]:
    return [] if value in (None, "") else [as_text(value)]


def _pattern(value: Any) -> list[Any]:
    return [{"regex": value}] if isinstance(value, str) and value else []


def _start(value: Any) -> list[Any]:
    return [{"regex": r"^\s*" + re.escape(value)}] if isinstance(value, str) and value else []


def _limit(name: str) -> Carry:
    return _check(
        lambda assertion: {name: assertion["threshold"]} if assertion.get("threshold") is not None else None
    )


def _json_check(assertion: Mapping[str, Any]) -> JsonObject:
    value = assertion.get("value")
    if isinstance(value, str):
        try:
            value = decode_yaml(value)
        except ValueError:
            value = None
    return {"json_schema": value} if isinstance(value, dict) else {"is_json": True}


_RUBRIC = _check(
    lambda assertion: {"rubric": as_text(assertion["value"])} if assertion.get("value") else None
)
_WEIGHTED = ("llm-rubric", "g-eval", "model-graded-closedqa", "is-json", "latency", "cost")
_LIMITS = ("latency", "cost")
_ANY: Callable[[Any], list[Any]] = lambda value: [_listed(value)] if _listed(value) else []  # noqa: E731  # a row of the table
# Kind of assertion → how it is carried over; what it returns is what could not be.
_CARRIED: dict[str, Carry] = {
    **dict.fromkeys(("contains", "icontains"), _keywords("expected_keywords", _one)),
    **dict.fromkeys(("contains-all", "icontains-all"), _keywords("expected_keywords", _listed)),
    **dict.fromkeys(("contains-any", "icontains-any"), _keywords("expected_keywords", _ANY)),
    **dict.fromkeys(("not-contains", "not-icontains"), _keywords("forbidden_keywords", _one)),
    **dict.fromkeys(("not-contains-any", "not-icontains-any"), _keywords("forbidden_keywords", _listed)),
    "regex": _keywords("expected_keywords", _pattern),
    "not-regex": _keywords("forbidden_keywords", _pattern),
    "starts-with": _keywords("expected_keywords", _start),
    "equals": _equals,
    **dict.fromkeys(("similar", "factuality", "model-graded-factuality", "rouge-n", "bleu"), _reference),
    **dict.fromkeys(("llm-rubric", "g-eval", "model-graded-closedqa"), _RUBRIC),
    "is-json": _check(_json_check),
    "latency": _limit("max_latency_ms"),
    "cost": _limit("max_cost"),
    **dict.fromkeys(
        ("trajectory:tool-used", "trajectory:tool-sequence", "trajectory:tool-args-match"), _tools
    ),
}
# Kinds that exist and have no counterpart, so that a cell of a table is not taken for the text itself.
_KNOWN = frozenset(
    {
        *("javascript", "python", "webhook", "contains-json", "contains-sql", "contains-xml", "is-sql"),
        *("is-xml", "levenshtein", "perplexity", "classifier", "moderation", "answer-relevance", "ruby"),
        *("context-recall", "context-relevance", "context-faithfulness", "select-best", "max-score"),
        *("word-count", "is-refusal"),
    }
)


# Export.


_EXPORTED_CHECKS: dict[str, Callable[[Any], JsonObject]] = {
    "equals": lambda expected: {"type": "equals", "value": expected},
    "regex": lambda expected: {"type": "regex", "value": expected},
    "rubric": lambda expected: {"type": "llm-rubric", "value": read_check_rubric(expected).question},
    "is_json": lambda expected: {"type": "is-json"} if expected else {"type": "not-is-json"},
    "json_schema": lambda expected: {"type": "is-json", "value": expected},
    "max_latency_ms": lambda expected: {"type": "latency", "threshold": expected},
    "max_cost": lambda expected: {"type": "cost", "threshold": expected},
    "contains": lambda expected: {
        "type": "icontains-all",
        "value": expected if isinstance(expected, list) else [expected],
    },
}
_EXPORTED = (
    *("id", "question", "expected_tools", "forbidden_tools", "expected_keywords", "forbidden_keywords"),
    *("reference_answer", "checks"),
)


def _exported_test(question: Question, row: JsonObject, losses: Losses) -> Json:
    assertions: list[Json] = [
        assertion
        for word in question.expected_keywords
        for assertion in _keyword_assertions(word, "", losses)
    ]
    assertions += [
        assertion
        for word in question.forbidden_keywords
        for assertion in _keyword_assertions(word, "not-", losses)
    ]
    for tool in question.expected_tools:
        value: JsonObject = {"name": tool.name, "args": single_arguments(tool.arguments or {}, losses)}
        kind = "trajectory:tool-args-match" if tool.arguments else "trajectory:tool-used"
        assertions.append({"type": kind, "value": value if tool.arguments else tool.name})
    assertions += [{"type": "not-trajectory:tool-used", "value": name} for name in question.forbidden_tools]
    if question.reference_answer:
        assertions.append({"type": "factuality", "value": question.reference_answer})
    for check in question.checks:
        if check.kind not in _EXPORTED_CHECKS:
            losses.add(f"the check {check.kind!r}")
            continue
        named = {"metric": check.name} if check.name != check.kind else {}
        weight = {"weight": check.weight} if check.weight != 1 else {}
        assertions.append({**_EXPORTED_CHECKS[check.kind](check.expected), **named, **weight})
    notes = {name: value for name, value in row.items() if name not in (*_EXPORTED, "turns")}
    return {
        "description": question.id,
        "vars": {"question": question.question},
        "assert": assertions,
        "metadata": {"id": question.id, **msgspec.to_builtins(notes)},
    }


def _write_yaml(tests: list[Any]) -> Files:
    return {"tests.yaml": [encode_yaml(tests)]}


def _keyword_assertions(keyword: Expectation, prefix: str, losses: Losses) -> list[Json]:
    """An expectation as assertions; alternatives that are not plain text become one pattern."""
    options = expected_options(keyword)
    texts: list[Json] = [text for text in map(expected_text, options) if text is not None]
    if not isinstance(keyword, str) and keyword.must:
        losses.add("'must'")
    if len(texts) == len(options):
        if isinstance(keyword, Alternatives):
            return [{"type": f"{prefix}icontains-any", "value": texts}]
        return [{"type": f"{prefix}icontains", "value": texts[0]}]
    if isinstance(keyword, NumberExpectation):
        losses.add("the tolerance of a number")
        return [{"type": f"{prefix}icontains", "value": f"{keyword.number:g}"}]
    patterns = [pattern for pattern in map(_option_pattern, options) if pattern is not None]
    if len(patterns) < len(options):
        losses.add("a range, date or computed value")
    return [{"type": f"{prefix}regex", "value": "|".join(patterns)}] if patterns else []


def _option_pattern(option: Expectation) -> str | None:
    if isinstance(option, PatternExpectation):
        return f"(?:{option.regex})"
    text = f"{option.number:g}" if isinstance(option, NumberExpectation) else expected_text(option)
    return None if text is None else re.escape(text)


# Tests with the question as the variable `question`; keywords, checks and calls are assertions.
export_promptfoo = TableExport(make=_exported_test, made_of=_EXPORTED, write=_write_yaml, notes_in="metadata")
