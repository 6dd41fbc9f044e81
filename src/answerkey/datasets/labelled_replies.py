"""Labelled replies from a file: component scores with a person's verdict, one object a line."""

from collections.abc import Iterator
from pathlib import Path

from answerkey.errors import InputError, UsageError
from answerkey.model.feedback import read_value
from answerkey.model.json_value import JsonObject
from answerkey.transcripts.row_files import read_rows

_VERDICTS = ("verdict", "feedback", "rating", "label", "value")

LabelledReply = tuple[str, dict[str, float], float]


def read_labelled(path: Path) -> Iterator[LabelledReply]:
    """(question, components, verdict) of each row.

    Components are numbers, or objects with a `score` as in the rows that `answerkey score -o x.jsonl` writes.
    """
    for number, (line, row) in enumerate(read_rows(path), start=1):
        try:
            question = str(row.get("id", row.get("question", line or number)))
            verdict = _verdict(row)
            yield question, _components(row), verdict
        except UsageError as error:
            raise InputError(str(error), path=path, line=line) from None


def _verdict(row: JsonObject) -> float:
    given = next((row[name] for name in _VERDICTS if row.get(name) is not None), None)
    if given is None:
        raise UsageError("has no verdict; give one as 'verdict': true, false or 0 to 1")
    return read_value(given)


def _components(row: JsonObject) -> dict[str, float]:
    given = row.get("components")
    if not isinstance(given, dict):
        raise UsageError("has no 'components': {name: score}")
    components: dict[str, float] = {}
    for component, value in given.items():
        score = value.get("score") if isinstance(value, dict) else value
        if score is None:
            continue
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise UsageError(f"component {component!r} is no score between 0 and 1")
        components[component] = float(score)
    return components
