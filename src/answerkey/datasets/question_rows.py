"""Questions as rows: the canonical form of a golden set's line, which reads back as the same question."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.question import Check, ExpectedTool, Question
from answerkey.text.keyword import Alternatives, Keyword, NumberKeyword

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
            row[name] = [_check(check) for check in value]
        elif name not in _APART:
            row[name] = msgspec.to_builtins(value)
    return row


def _tool(tool: ExpectedTool) -> Json:
    return tool.name if tool.arguments is None else {"name": tool.name, "arguments": tool.arguments}


def _check(check: Check) -> Json:
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
