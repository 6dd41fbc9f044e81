"""Exports a golden set as promptfoo tests: a list for `tests: file://tests.yaml`."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.datasets.golden_sets import parse_question, question_row
from answerkey.datasets.import_benchmarks import MOST_GRADE
from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.judgement import read_check_rubric
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Exported
from answerkey.text.normalise import Keyword, NumberKeyword, PatternKeyword, for_csv
from answerkey.transcripts.tables import split_cells

# Exports a golden set's relevance judgements: TREC qrels, or a BEIR dataset without its corpus.


_CARRIED_EXPORT_QRELS = ("id", "question", "relevant_documents")


def export_trec(questions: QuestionSet) -> Exported:
    """`qrels.txt` ("query 0 document grade") and the questions as `queries.tsv` (id, tab, text)."""
    judged, notes = _judged(questions)
    return Exported(
        files={
            "qrels.txt": (
                f"{question.id} 0 {document} {grade}\n".encode()
                for question, grades in judged
                for document, grade in grades.items()
            ),
            "queries.tsv": (
                f"{question.id}\t{' '.join(question.question.split())}\n".encode() for question, _ in judged
            ),
        },
        count=len(judged),
        notes=notes,
    )


def export_beir(questions: QuestionSet) -> Exported:
    """`qrels/test.tsv` and `queries.jsonl`, as a BEIR dataset has them."""
    judged, notes = _judged(questions)
    return Exported(
        files={
            "qrels/test.tsv": _beir_judgements(judged),
            "queries.jsonl": (
                msgspec.json.encode({"_id": question.id, "text": question.question}) + b"\n"
                for question, _ in judged
            ),
        },
        count=len(judged),
        notes=(*notes, "there is no corpus.jsonl: a golden set names documents but does not hold them"),
    )


_Judged = list[tuple[Question, dict[str, int]]]


def _beir_judgements(judged: _Judged) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for question, grades in judged:
        for document, grade in grades.items():
            yield f"{question.id}\t{document}\t{grade}\n".encode()


def _judged(questions: QuestionSet) -> tuple[_Judged, tuple[str, ...]]:
    """The questions with judgements that qrels can hold, and what was left out."""
    left_out: Counter[str] = Counter()
    judged: _Judged = []
    for question in questions:
        if _has_spaces(question.id) or not question.relevant_documents:
            reason = (
                "their ids have spaces" if question.relevant_documents else "they have no relevant_documents"
            )
            left_out[f"questions were left out: {reason}"] += 1
            continue
        grades: dict[str, int] = {}
        for document, grade in question.relevant_documents.items():
            if _has_spaces(document):
                left_out["judgements were left out: their documents' ids have spaces, which part a line"] += 1
            elif not grade.is_integer() or grade > MOST_GRADE:
                left_out[f"judgements were left out: qrels have whole grades up to {MOST_GRADE}"] += 1
            else:
                grades[document] = int(grade)
        if grades:
            judged.append((question, grades))
        for name in question_row(question):
            if name not in _CARRIED_EXPORT_QRELS:
                left_out[f"questions have {name!r}, which is not carried over"] += 1
    if not judged:
        raise UsageError("no question has relevant_documents that qrels can hold; there is nothing to export")
    return judged, tuple(f"{count} {what}" for what, count in left_out.items())


def _has_spaces(name: str) -> bool:
    return name.split() != [name]


# Exports a golden set as rows: `jsonl` carries everything, `csv` what cells can hold.


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
        again = parse_question(split_cells({name: cell for name, cell in written.items() if cell != ""}))
    except ValueError:
        return ["everything"]
    if again.content_hash == question.content_hash:
        return []
    second = question_row(again)
    return [name for name in {**row, **second} if row.get(name) != second.get(name)]


# Exports a golden set to other evaluation tools: a table of fields per format; what has no place is listed.


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
