"""Exports a golden set as promptfoo tests: a list for `tests: file://tests.yaml`."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from answerkey.datasets.exporters.export_tools import CaseExport, Files, Lose, plain_arguments
from answerkey.model.graded_rubric import read_check_rubric
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.question import Question
from answerkey.text.keyword import Keyword, NumberKeyword, PatternKeyword

_CHECKS: dict[str, Callable[[Any], JsonObject]] = {
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
_CARRIED = (
    *("id", "question", "expected_tools", "forbidden_tools", "expected_keywords", "forbidden_keywords"),
    *("reference_answer", "checks"),
)


def _test(question: Question, row: JsonObject, lose: Lose) -> Json:
    assertions: list[Json] = [found for word in question.expected_keywords for found in _contains(word, "")]
    assertions += [found for word in question.forbidden_keywords for found in _contains(word, "not-")]
    for tool in question.expected_tools:
        value: JsonObject = {"name": tool.name, "args": plain_arguments(tool.arguments or {}, lose)}
        kind = "trajectory:tool-args-match" if tool.arguments else "trajectory:tool-used"
        assertions.append({"type": kind, "value": value if tool.arguments else tool.name})
    assertions += [{"type": "not-trajectory:tool-used", "value": name} for name in question.forbidden_tools]
    if question.reference_answer:
        assertions.append({"type": "factuality", "value": question.reference_answer})
    for check in question.checks:
        if check.kind not in _CHECKS:
            lose(f"the check {check.kind!r}")
            continue
        named = {"metric": check.name} if check.name != check.kind else {}
        weight = {"weight": check.weight} if check.weight != 1 else {}
        assertions.append({**_CHECKS[check.kind](check.expected), **named, **weight})
    if any(isinstance(word, NumberKeyword) for word in question.expected_keywords):
        lose("the tolerance of a number")
    notes = {name: value for name, value in row.items() if name not in (*_CARRIED, "turns")}
    return {
        "description": question.id,
        "vars": {"question": question.question},
        "assert": assertions,
        "metadata": {"id": question.id, **msgspec.to_builtins(notes)},
    }


def _write(made: list[Any]) -> Files:
    import yaml

    return {"tests.yaml": [yaml.safe_dump(made, allow_unicode=True, sort_keys=False).encode()]}


def _contains(keyword: Keyword, prefix: str) -> list[Json]:
    """A keyword as assertions; alternatives that are no plain text become one pattern."""
    if isinstance(keyword, str):
        return [{"type": f"{prefix}icontains", "value": keyword}]
    if isinstance(keyword, NumberKeyword):
        return [{"type": f"{prefix}icontains", "value": f"{keyword.number:g}"}]
    if isinstance(keyword, PatternKeyword):
        return [{"type": f"{prefix}regex", "value": keyword.regex}]
    texts: list[Json] = [option for option in keyword.options if isinstance(option, str)]
    if len(texts) == len(keyword.options):
        return [{"type": f"{prefix}icontains-any", "value": texts}]
    options = [_pattern(option) for option in keyword.options]
    return [{"type": f"{prefix}regex", "value": "|".join(options)}]


def _pattern(option: str | NumberKeyword | PatternKeyword) -> str:
    if isinstance(option, PatternKeyword):
        return f"(?:{option.regex})"
    return re.escape(option if isinstance(option, str) else f"{option.number:g}")


# Tests with the question as the variable `question`; keywords, checks and calls are assertions.
export_promptfoo = CaseExport(make=_test, carried=_CARRIED, write=_write)
