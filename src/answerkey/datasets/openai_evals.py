"""OpenAI Evals: the platform's evals, runs and output items, and the samples of the open-source repository.

An eval has the criteria, a run the prompt and often the data, output items the replies. Any of them may be given, in any order.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from answerkey.datasets.conversion import Losses, RowPosition, check_cases, numbered_rows, row_position
from answerkey.datasets.promptfoo import fill_variables
from answerkey.datasets.table_formats import OPENAI_EVALS
from answerkey.errors import InputError
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Imported
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, decode_json

__all__ = ["import_openai_evals"]

_OUTPUT = "sample.output_text"
_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_ONLY_OUTPUT = re.compile(r"\s*\{\{\s*sample\.output_text\s*\}\}\s*")
# The reply, in a judge's prompt.
_THE_REPLY = "the reply"


class _Export(msgspec.Struct):
    """What the files hold."""

    criteria: list[JsonObject] = []
    # The messages of the run's prompt.
    template: list[JsonObject] = []
    rows: list[tuple[RowPosition, JsonObject]] = []
    # Output items in the form of data rows.
    replies: list[tuple[RowPosition, JsonObject]] = []
    has_platform: bool = False


def import_openai_evals(paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
    """The data of the files as golden cases with the eval's criteria, or as recorded replies if they have output items."""
    losses = Losses()
    export = _Export()
    for path in paths:
        for position, document in _documents(path, losses):
            losses.position = position
            _sort(document, position, export, losses)
    if export.replies:
        _drop_answered(export, losses)
    if export.has_platform and not export.rows:
        raise InputError(
            'has the criteria or a run without its data; give the file with the rows ({"item": …}) or the output items too',
            path=paths[0],
        )
    rows = []
    for position, row in export.rows:
        losses.position = position
        rows.append((position, _with_question(row, export.template, fields, losses)))
    cases: list[tuple[RowPosition, JsonObject]] = []
    read = OPENAI_EVALS.cases(rows, losses, fields)
    for (position, case), (_, row) in zip(read, export.rows, strict=True):
        if export.criteria:
            # The eval says what is right; a column of that name need not.
            for name in ("expected_keywords", "reference_answer"):
                if value := case.pop(name, None):
                    case[f"openai_evals_{name}"] = value
        for criterion in export.criteria:
            _add_criterion(criterion, as_dict(row.get("item")), case, losses)
        cases.append((position, case))
    return check_cases(cases, losses, "openai-evals")


def _documents(path: Path, losses: Losses) -> Iterator[tuple[RowPosition, JsonObject]]:
    """The objects of a file: of a JSON document, of a list in it, or of its lines."""
    try:
        value = decode_json(path.read_bytes()) if path.suffix == ".json" else None
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict) or not _is_platform(value):
        yield from numbered_rows([path])
        return
    listed = as_dicts(value.get("data")) if value.get("object") == "list" else [value]
    for number, document in enumerate(listed, start=1):
        yield row_position(path, None, number), document
    if value.get("has_more"):
        losses.position = row_position(path, None, len(listed))
        losses.add("the further pages of the list (has_more): export them too")


def _is_platform(document: JsonObject) -> bool:
    known = ("eval", "eval.run", "eval.run.output_item", "list")
    return document.get("object") in known or "testing_criteria" in document or "data_source" in document


def _sort(document: JsonObject, position: RowPosition, export: _Export, losses: Losses) -> None:
    """Add what a document holds."""
    if "testing_criteria" in document:
        export.has_platform = True
        export.criteria += as_dicts(document["testing_criteria"])
    elif "data_source" in document:
        export.has_platform = True
        _add_run(as_dict(document["data_source"]), position, export, losses)
    elif "datasource_item" in document:
        export.replies.append((position, _output_item(document)))
    else:
        export.rows.append((position, document))


def _drop_answered(export: _Export, losses: Losses) -> None:
    """Take the output items instead of the data that they answer; data without one is listed."""
    answered = [row["item"] for _, row in export.replies]
    for position, row in export.rows:
        if row.get("item") not in answered:
            losses.position = position
            losses.add("a row of the data that has no output item")
    export.rows = export.replies


def _add_run(source: JsonObject, position: RowPosition, export: _Export, losses: Losses) -> None:
    messages = as_dict(source.get("input_messages"))
    if template := as_dicts(messages.get("template")):
        export.template = template
    elif messages:
        losses.add(f"the prompt of a run by {messages.get('type')!r}")
    data = as_dict(source.get("source"))
    content = as_dicts(data.get("content"))
    export.rows += [(position, row) for row in content]
    if not content and data:
        held = data.get("id") or data.get("type")
        losses.add(f"the data of a run in {held!r}: download it and give it too")


def _output_item(document: JsonObject) -> JsonObject:
    """An item with its reply, in the form of a data row."""
    sample = as_dict(document.get("sample"))
    output = as_dicts(sample.get("output"))
    said = [as_str(message.get("content")) for message in output]
    results: list[Json] = [
        {name: result.get(name) for name in ("name", "passed", "score")}
        for result in as_dicts(document.get("results"))
    ]
    row: JsonObject = {
        "item": document["datasource_item"],
        "sample": {
            "output_text": next((text for text in reversed(said) if text), None),
            "output_tools": [*(call for message in output for call in as_dicts(message.get("tool_calls")))],
            "error": _error(sample),
            "usage": sample.get("usage"),
            "finish_reason": sample.get("finish_reason"),
            # The prompt that was sent.
            "input": sample.get("input"),
        },
        "openai_evals_model": sample.get("model"),
        "openai_evals_results": results,
    }
    return row


def _error(sample: JsonObject) -> str | None:
    error = as_dict(sample.get("error"))
    return as_str(error.get("message")) or as_str(error.get("code"))


def _with_question(
    row: JsonObject, template: list[JsonObject], fields: Mapping[str, str] | None, losses: Losses
) -> JsonObject:
    """The row with the user's words of its prompt, or of the run's, as its input."""
    sent = as_dicts(as_dict(row.get("sample")).get("input"))
    prompt = sent or template
    asked = [message for message in prompt if message.get("role") == "user"]
    if not asked or "question" in (fields or {}) or not isinstance(row.get("item"), dict):
        return row
    others = {as_str(message.get("role")) or "?" for message in prompt if message is not asked[-1]}
    for role in sorted(others):
        losses.add(f"the {role} message of the prompt: give it to the chatbot")
    words = _text(asked[-1].get("content"))
    if not sent:
        words, unfilled = _filled(words, as_dict(row["item"]))
        if unfilled:
            losses.add(f"{unfilled} in the prompt, which the item lacks")
    return {**row, "input": words} if words.strip() else row


def _text(content: Json) -> str:
    """The text of a message's content, which may be one part or several."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else as_str(as_dict(part).get("text")) for part in parts]
    return "\n".join(text for text in texts if text)


def _filled(text: str, item: JsonObject) -> tuple[str, str]:
    """The text with the item's values, and the first variable that has none, or the empty text."""
    filled: str = fill_variables(text, {"item": item, "sample": {"output_text": _THE_REPLY}})
    unfilled = next((found for found in _VARIABLE.findall(text) if found in filled), "")
    return filled, unfilled


# Criteria.


def _add_criterion(criterion: JsonObject, item: JsonObject, case: JsonObject, losses: Losses) -> None:
    kind = as_str(criterion.get("type")) or "?"
    carry = _CRITERIA.get(kind)
    problem = carry(criterion, item, case) if carry else f"of the type {kind!r}: write it as a scorer"
    if problem:
        name = as_str(criterion.get("name"))
        losses.add(f"the criterion {name!r}, {problem}" if name else f"a criterion {problem}")


def _string_check(criterion: JsonObject, item: JsonObject, case: JsonObject) -> str | None:
    operation = criterion.get("operation")
    if problem := _problem_of_input(criterion):
        return problem
    reference, unfilled = _filled(_text(criterion.get("reference")), item)
    if unfilled:
        return f"whose reference {unfilled} the item lacks"
    if operation == "eq":
        _append(case, "checks", {"equals": reference})
        case.setdefault("reference_answer", reference)
    elif operation in ("like", "ilike"):
        _append(case, "expected_keywords", reference)
    else:
        return f"whose operation is {operation!r}"
    return None


def _problem_of_input(criterion: JsonObject) -> str | None:
    """Why the input of a criterion is not the reply; None if it is."""
    text = _text(criterion.get("input"))
    if _ONLY_OUTPUT.fullmatch(text):
        return None
    return "whose input is more than the reply" if _OUTPUT in text else "which does not look at the reply"


def _text_similarity(criterion: JsonObject, item: JsonObject, case: JsonObject) -> str | None:
    reference, unfilled = _filled(_text(criterion.get("reference")), item)
    metric = f"its metric {criterion.get('evaluation_metric')!r} and threshold"
    if problem := _problem_of_input(criterion):
        return problem
    if unfilled:
        return f"whose reference {unfilled} the item lacks"
    if case.setdefault("reference_answer", reference) != reference:
        return f"a second reference answer, {metric}"
    return f"{metric}: it is the reference answer"


def _model(criterion: JsonObject, item: JsonObject, case: JsonObject) -> str | None:
    messages = as_dicts(criterion.get("input"))
    template = "\n".join(filter(None, (_text(message.get("content")) for message in messages)))
    wording, unfilled = _filled(template, item)
    if unfilled:
        return f"whose prompt has {unfilled}, which the item lacks"
    passing = [str(label) for label in criterion.get("passing_labels") or ()]  # type: ignore[union-attr]
    if passing:
        wording += f"\nIt passes if the label is {' or '.join(passing)}."
    if not wording.strip():
        return "which has no prompt"
    named = {"name": criterion["name"]} if criterion.get("name") else {}
    _append(case, "checks", {"rubric": wording.strip(), **named})
    settings = "labels" if criterion.get("type") == "label_model" else "scale, threshold"
    return f"its {settings} and model {criterion.get('model')!r}: the judge grades the rubric"


def _append(case: JsonObject, field: str, value: Json) -> None:
    listed = case.setdefault(field, [])
    if isinstance(listed, list):
        listed.append(value)


# Type of a criterion → how it is carried over; what it returns is what could not be.
_CRITERIA: dict[str, Callable[[JsonObject, JsonObject, JsonObject], str | None]] = {
    "string_check": _string_check,
    "text_similarity": _text_similarity,
    "score_model": _model,
    "label_model": _model,
}
