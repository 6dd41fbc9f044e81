"""Exports a golden set to other evaluation tools: a table of fields per format; what has no place is listed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.datasets.question_rows import question_row
from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.graded_rubric import read_check_rubric
from answerkey.model.json_value import Json, JsonObject
from answerkey.model.question import Question, QuestionSet
from answerkey.protocols import Exported

__all__ = [
    "Lose",
    "export_bfcl",
    "export_deepeval",
    "export_hf",
    "export_inspect",
    "export_langfuse",
    "export_langsmith",
    "export_openai_evals",
    "export_ragas",
    "export_tau2",
    "exported_cases",
    "plain_arguments",
]

# What a golden case says of how a reply is graded; everything else of it is a note that most tools can hold.
_GRADED = (
    *("expected_tools", "forbidden_tools", "tools", "expected_keywords", "forbidden_keywords", "checks"),
    *("reference_answer", "relevant_documents", "turns"),
)


# Told what of the present question has no place.
Lose = Callable[[str], None]


def exported_cases(
    questions: QuestionSet,
    make: Callable[[Question, JsonObject, Lose], Json],
    carried: Sequence[str],
    write: Callable[[list[Json]], Mapping[str, Iterable[bytes]]],
    *,
    kept_as_notes: bool = True,
) -> Exported:
    """The questions that a tool can ask, each made by `make`, and what of them it cannot hold."""
    made: list[Json] = []
    lost: dict[str, list[str]] = {}
    for question in questions:

        def lose(what: str, identity: str = question.id) -> None:
            lost.setdefault(what, []).append(identity)

        if question.turns:
            lose("a conversation of several turns")
            continue
        row = question_row(question)
        made.append(make(question, row, lose))
        for name in row:
            if name not in carried and (name in _GRADED or not kept_as_notes):
                lose(repr(name))
    if not made:
        raise UsageError(
            "every question is a conversation, which this format cannot hold; there is nothing to export"
        )
    notes = tuple(
        f"not carried over: {what} of {len(ids)} question(s): {', '.join(ids)}" for what, ids in lost.items()
    )
    return Exported(files=write(made), count=len(made), notes=notes)


def _lines(name: str) -> Callable[[list[Json]], Mapping[str, Iterable[bytes]]]:
    return lambda made: {name: [msgspec.json.encode(row) + b"\n" for row in made]}


def _document(name: str) -> Callable[[list[Json]], Mapping[str, Iterable[bytes]]]:
    return lambda made: {name: [msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"]}


def _notes(row: JsonObject, *carried: str) -> JsonObject:
    """What a tool has no field for and can hold as metadata."""
    apart = {"question", "id", "reference_answer", *_GRADED, *carried}
    return {name: value for name, value in row.items() if name not in apart}


def expected_calls(question: Question, arguments: str, lose: Lose) -> list[Json]:
    """Expected calls as most tools have them: one value for each argument."""
    return [
        {"name": tool.name, arguments: plain_arguments(tool.arguments or {}, lose)}
        for tool in question.expected_tools
    ]


def plain_arguments(arguments: Mapping[str, Any], lose: Lose) -> JsonObject:
    """The first acceptable value of each argument; conditions are left out."""
    found: JsonObject = {}
    for name, wanted in arguments.items():
        if isinstance(wanted, dict) or (isinstance(wanted, list) and len(wanted) != 1):
            lose(f"the choice in the argument {name!r}")
        if isinstance(wanted, list) and wanted:
            found[name] = wanted[0]
        elif not isinstance(wanted, list | dict):
            found[name] = wanted
    return found


def export_deepeval(questions: QuestionSet) -> Exported:
    """Goldens for `EvaluationDataset.add_goldens_from_json_file`."""
    return exported_cases(
        questions,
        lambda question, row, lose: {
            "input": question.question,
            "expected_output": question.reference_answer,
            "expected_tools": expected_calls(question, "input_parameters", lose) or None,
            "additional_metadata": {"id": question.id, **_notes(row)},
        },
        ("id", "question", "reference_answer", "expected_tools"),
        _document("goldens.json"),
    )


def export_ragas(questions: QuestionSet) -> Exported:
    """Single-turn samples for `EvaluationDataset.from_jsonl`."""

    def make(question: Question, row: JsonObject, lose: Lose) -> Json:
        sample: JsonObject = {"user_input": question.question, "reference": question.reference_answer or ""}
        if question.relevant_documents:
            sample["reference_context_ids"] = list(question.relevant_documents)
        if question.persona:
            sample["persona_name"] = question.persona
        return sample

    carried = ("question", "reference_answer", "relevant_documents", "persona")
    return exported_cases(questions, make, carried, _lines("samples.jsonl"), kept_as_notes=False)


def export_inspect(questions: QuestionSet) -> Exported:
    """Samples for `json_dataset`."""
    return exported_cases(
        questions,
        lambda question, row, lose: {
            "id": question.id,
            "input": question.question,
            "target": question.reference_answer or "",
            "metadata": {
                **_notes(row),
                **{name: row[name] for name in ("expected_tools", "expected_keywords") if name in row},
            },
        },
        ("id", "question", "reference_answer"),
        _lines("samples.jsonl"),
    )


def export_langsmith(questions: QuestionSet) -> Exported:
    """Examples for `Client.create_examples`."""
    return exported_cases(
        questions,
        lambda question, row, lose: {
            "inputs": {"question": question.question},
            "outputs": {"answer": question.reference_answer} if question.reference_answer else {},
            "metadata": {"id": question.id, **_notes(row)},
        },
        ("id", "question", "reference_answer"),
        _lines("examples.jsonl"),
    )


def export_langfuse(questions: QuestionSet) -> Exported:
    """Dataset items, as the API takes them (`create_dataset_item`)."""
    return exported_cases(
        questions,
        lambda question, row, lose: {
            "id": question.id,
            "input": {"question": question.question},
            "expectedOutput": question.reference_answer,
            "metadata": _notes(row),
        },
        ("id", "question", "reference_answer"),
        _lines("items.jsonl"),
    )


def export_openai_evals(questions: QuestionSet) -> Exported:
    """Samples of the evals repository for its match, includes and model-graded evals."""
    return exported_cases(
        questions,
        lambda question, row, lose: {
            "input": [{"role": "user", "content": question.question}],
            "ideal": question.reference_answer or "",
        },
        ("question", "reference_answer"),
        _lines("samples.jsonl"),
        kept_as_notes=False,
    )


def export_bfcl(questions: QuestionSet) -> Exported:
    """Questions and possible answers; a case that expects no tool has none."""

    def make(question: Question, row: JsonObject, lose: Lose) -> Json:
        truth: list[Json] = [
            {
                tool.name: {
                    name: wanted if isinstance(wanted, list) else [wanted]
                    for name, wanted in (tool.arguments or {}).items()
                    if not isinstance(wanted, dict)
                }
            }
            for tool in question.expected_tools
        ]
        return {"id": question.id, "question": question.question, "ground_truth": truth}

    def write(made: list[Any]) -> Mapping[str, Iterable[bytes]]:
        asked = [
            {"id": row["id"], "question": [[{"role": "user", "content": row["question"]}]], "function": []}
            for row in made
        ]
        answers = [
            {"id": row["id"], "ground_truth": row["ground_truth"]} for row in made if row["ground_truth"]
        ]
        lines = {"BFCL_questions.json": asked, "possible_answer/BFCL_questions.json": answers}
        return {name: [msgspec.json.encode(row) + b"\n" for row in rows] for name, rows in lines.items()}

    exported = exported_cases(
        questions, make, ("id", "question", "expected_tools", "tools"), write, kept_as_notes=False
    )
    note = "'function' is empty: a golden set names tools but does not describe them"
    return msgspec.structs.replace(exported, notes=(*exported.notes, note))


def export_tau2(questions: QuestionSet) -> Exported:
    """Tasks of a domain: the question as the user's instructions."""

    def make(question: Question, row: JsonObject, lose: Lose) -> Json:
        actions: list[Json] = [
            {"action_id": f"{question.id}_{number}", **call}  # type: ignore[dict-item]
            for number, call in enumerate(expected_calls(question, "arguments", lose))
        ]
        told: list[Json] = [word for word in question.expected_keywords if isinstance(word, str)]
        if len(told) < len(question.expected_keywords):
            lose("a keyword that is no plain text")
        rubrics: list[Json] = [
            read_check_rubric(check.expected).question for check in question.checks if check.kind == "rubric"
        ]
        if len(rubrics) < len(question.checks):
            lose("a check that is no rubric")
        return {
            "id": question.id,
            "user_scenario": {"persona": question.persona, "instructions": question.question},
            "evaluation_criteria": {
                "actions": actions,
                "communicate_info": told,
                "nl_assertions": rubrics,
                "reward_basis": ["ACTION", "COMMUNICATE"],
            },
        }

    carried = ("id", "question", "persona", "expected_tools", "expected_keywords", "checks")
    return exported_cases(questions, make, carried, _document("tasks.json"), kept_as_notes=False)


def export_hf(questions: QuestionSet) -> Exported:
    """One Parquet file with a column a field; a column whose values are of several types holds JSON."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    rows = [question_row(question) for question in questions]
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        # Objects would all get the fields of any of them.
        typed = not any(
            isinstance(part, dict) for cell in cells for part in (cell if isinstance(cell, list) else [cell])
        )
        try:
            columns[name] = pyarrow.array(cells) if typed else _as_json(cells)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            columns[name] = _as_json(cells)
    content = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(columns), content)
    return Exported(files={"questions.parquet": [content.getvalue().to_pybytes()]}, count=len(rows))


def _as_json(cells: Sequence[Json]) -> list[str | None]:
    return [None if cell is None else msgspec.json.encode(cell).decode() for cell in cells]
