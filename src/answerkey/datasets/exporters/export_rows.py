"""Exports a golden set as rows: `jsonl` carries everything, `csv` what cells can hold."""

import csv
import io
from collections.abc import Iterator

import msgspec

from answerkey.datasets.golden_sets import parse_csv_question
from answerkey.datasets.question_rows import question_row
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.question import Question, QuestionSet
from answerkey.protocols import Exported
from answerkey.text.sanitise import for_csv


def export_jsonl(questions: QuestionSet) -> Exported:
    """One object a line, in answerkey's own canonical form: it reads back as the same set."""
    lines = (msgspec.json.encode(question_row(question)) + b"\n" for question in questions)
    return Exported(files={"questions.jsonl": lines}, count=len(questions))


def export_csv(questions: QuestionSet) -> Exported:
    """One row a question; lists and objects are cells of JSON, and what a spreadsheet would run gets an apostrophe."""
    rows = [question_row(question) for question in questions]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
    return Exported(
        files={"questions.csv": _lines(names, cells)},
        count=len(questions),
        notes=_changes(questions, rows, cells),
    )


def _lines(names: list[str], rows: list[dict[str, str]]) -> Iterator[bytes]:
    for cells in (names, *([row.get(name, "") for name in names] for row in rows)):
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        yield line.getvalue().encode()


def _cell(value: Json) -> str:
    return for_csv(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _changes(questions: QuestionSet, rows: list[JsonObject], cells: list[dict[str, str]]) -> tuple[str, ...]:
    """What reads back differently, found by reading it back."""
    changed: dict[str, list[str]] = {}
    for question, row, written in zip(questions, rows, cells, strict=True):
        for name in _differences(question, row, written):
            changed.setdefault(name, []).append(question.id)
    return tuple(
        f"{name!r} of {len(ids)} question(s) reads back differently from CSV, for example of {ids[0]!r}"
        for name, ids in changed.items()
    )


def _differences(question: Question, row: JsonObject, written: dict[str, str]) -> list[str]:
    try:
        again = parse_csv_question({name: cell for name, cell in written.items() if cell != ""})
    except ValueError:
        return ["everything"]
    if again.content_hash == question.content_hash:
        return []
    second = question_row(again)
    return [name for name in {**row, **second} if row.get(name) != second.get(name)]
