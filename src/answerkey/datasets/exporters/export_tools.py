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

# What a golden case says of how a reply is graded; everything else of it is a note that most tools can hold.
_GRADED = (
    *("expected_tools", "forbidden_tools", "tools", "expected_keywords", "forbidden_keywords", "checks"),
    *("reference_answer", "relevant_documents", "turns"),
)


# Told what of the present question has no place.
Lose = Callable[[str], None]
Files = Mapping[str, Iterable[bytes]]


class CaseExport(msgspec.Struct, frozen=True, kw_only=True):
    """An exporter that makes something of each question, and lists what of it the tool cannot hold."""

    # What is written: a JSON object a line, or a document, by its ending; or whatever `write` makes of it.
    file: str = ""
    write: Callable[[list[Any]], Files] | None = None
    make: Callable[[Question, JsonObject, Lose], Json]
    # The fields that `make` takes care of.
    carried: Sequence[str]
    # Whether all that is no expectation has a place as well.
    keeps_notes: bool = True
    # What is always missing.
    note: str = ""

    def __call__(self, questions: QuestionSet) -> Exported:
        """Export the questions that the tool can ask."""
        made: list[Json] = []
        lost: dict[str, list[str]] = {}
        for question in questions:

            def lose(what: str, identity: str = question.id) -> None:
                lost.setdefault(what, []).append(identity)

            if question.turns:
                lose("a conversation of several turns")
                continue
            row = question_row(question)
            made.append(self.make(question, row, lose))
            for name in row:
                if name not in self.carried and (name in _GRADED or not self.keeps_notes):
                    lose(repr(name))
        if not made:
            raise UsageError(
                "every question is a conversation, which this format cannot hold; there is nothing to export"
            )
        notes = [
            f"not carried over: {what} of {len(ids)} question(s): {', '.join(ids)}"
            for what, ids in lost.items()
        ]
        files = {self.file: _written(self.file, made)} if self.write is None else self.write(made)
        return Exported(files=files, count=len(made), notes=(*notes, *filter(None, [self.note])))


def _written(file: str, made: Sequence[Json]) -> list[bytes]:
    if file.endswith(".jsonl"):
        return [msgspec.json.encode(row) + b"\n" for row in made]
    return [msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"]


def _notes(row: JsonObject) -> JsonObject:
    """What a tool has no field for and can hold as metadata."""
    apart = {"question", "id", *_GRADED}
    return {name: value for name, value in row.items() if name not in apart}


def _expected_calls(question: Question, arguments: str, lose: Lose) -> list[Json]:
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


def _ragas(question: Question, row: JsonObject, lose: Lose) -> Json:
    sample: JsonObject = {"user_input": question.question, "reference": question.reference_answer or ""}
    if question.relevant_documents:
        sample["reference_context_ids"] = list(question.relevant_documents)
    if question.persona:
        sample["persona_name"] = question.persona
    return sample


def _bfcl(question: Question, row: JsonObject, lose: Lose) -> Json:
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


def _bfcl_files(made: list[Any]) -> Files:
    asked = [
        {"id": row["id"], "question": [[{"role": "user", "content": row["question"]}]], "function": []}
        for row in made
    ]
    answers = [{"id": row["id"], "ground_truth": row["ground_truth"]} for row in made if row["ground_truth"]]
    lines = {"BFCL_questions.json": asked, "possible_answer/BFCL_questions.json": answers}
    return {name: _written(".jsonl", rows) for name, rows in lines.items()}


def _tau2(question: Question, row: JsonObject, lose: Lose) -> Json:
    actions: list[Json] = [
        {"action_id": f"{question.id}_{number}", **call}  # type: ignore[dict-item]
        for number, call in enumerate(_expected_calls(question, "arguments", lose))
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


_BASIC = ("id", "question", "reference_answer")
# Goldens for `EvaluationDataset.add_goldens_from_json_file`.
export_deepeval = CaseExport(
    file="goldens.json",
    make=lambda question, row, lose: {
        "input": question.question,
        "expected_output": question.reference_answer,
        "expected_tools": _expected_calls(question, "input_parameters", lose) or None,
        "additional_metadata": {"id": question.id, **_notes(row)},
    },
    carried=(*_BASIC, "expected_tools"),
)
# Single-turn samples for `EvaluationDataset.from_jsonl`.
export_ragas = CaseExport(
    file="samples.jsonl",
    make=_ragas,
    carried=("question", "reference_answer", "relevant_documents", "persona"),
    keeps_notes=False,
)
# Samples for `json_dataset`.
export_inspect = CaseExport(
    file="samples.jsonl",
    make=lambda question, row, lose: {
        "id": question.id,
        "input": question.question,
        "target": question.reference_answer or "",
        "metadata": {
            **_notes(row),
            **{name: row[name] for name in ("expected_tools", "expected_keywords") if name in row},
        },
    },
    carried=_BASIC,
)
# Examples for `Client.create_examples`.
export_langsmith = CaseExport(
    file="examples.jsonl",
    make=lambda question, row, lose: {
        "inputs": {"question": question.question},
        "outputs": {"answer": question.reference_answer} if question.reference_answer else {},
        "metadata": {"id": question.id, **_notes(row)},
    },
    carried=_BASIC,
)
# Dataset items, as the API takes them (`create_dataset_item`).
export_langfuse = CaseExport(
    file="items.jsonl",
    make=lambda question, row, lose: {
        "id": question.id,
        "input": {"question": question.question},
        "expectedOutput": question.reference_answer,
        "metadata": _notes(row),
    },
    carried=_BASIC,
)
# Samples of the evals repository for its match, includes and model-graded evals.
export_openai_evals = CaseExport(
    file="samples.jsonl",
    make=lambda question, row, lose: {
        "input": [{"role": "user", "content": question.question}],
        "ideal": question.reference_answer or "",
    },
    carried=("question", "reference_answer"),
    keeps_notes=False,
)
# Questions and possible answers; a case that expects no tool has none.
export_bfcl = CaseExport(
    make=_bfcl,
    carried=("id", "question", "expected_tools", "tools"),
    write=_bfcl_files,
    keeps_notes=False,
    note="'function' is empty: a golden set names tools but does not describe them",
)
# Tasks of a domain: the question as the user's instructions.
export_tau2 = CaseExport(
    file="tasks.json",
    make=_tau2,
    carried=("id", "question", "persona", "expected_tools", "expected_keywords", "checks"),
    keeps_notes=False,
)


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
