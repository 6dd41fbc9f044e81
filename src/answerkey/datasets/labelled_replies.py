"""Labelled replies from a file: component scores with a person's verdict, one object a line."""

import json
from collections.abc import Iterator
from pathlib import Path

from answerkey.errors import InputError, UsageError
from answerkey.model.feedback import read_value

__all__ = ["LabelledReply", "read_labelled"]

_VERDICTS = ("verdict", "feedback", "rating", "label", "value")

LabelledReply = tuple[str, dict[str, float], float]


def read_labelled(path: Path) -> Iterator[LabelledReply]:
    """(question, components, verdict) of each line.

    Components are numbers, or objects with a `score` as in the rows that `answerkey score -o x.jsonl` writes.
    """
    try:
        file = path.open(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    with file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _read(line, path, number)
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text; save the file as UTF-8", path=path) from None


def _read(line: str, path: Path, number: int) -> LabelledReply:
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise InputError("not a JSON object; write one object a line", path=path, line=number) from None
    if not isinstance(row, dict):
        raise InputError("not a JSON object; write one object a line", path=path, line=number)
    name = next((name for name in _VERDICTS if row.get(name) is not None), None)
    if name is None:
        raise InputError(
            "has no verdict; give one as 'verdict': true, false or 0 to 1", path=path, line=number
        )
    try:
        verdict = read_value(row[name])
    except UsageError as error:
        raise InputError(str(error), path=path, line=number) from None
    given = row.get("components")
    if not isinstance(given, dict):
        raise InputError("has no 'components': {name: score}", path=path, line=number)
    components: dict[str, float] = {}
    for component, value in given.items():
        score: object = value.get("score") if isinstance(value, dict) else value
        if score is None:
            continue
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise InputError(f"component {component!r} is no score between 0 and 1", path=path, line=number)
        components[component] = float(score)
    return str(row.get("id", row.get("question", number))), components, verdict
