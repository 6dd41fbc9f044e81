"""Formats whose rows are cases with named fields: DeepEval, Ragas, Inspect, LangSmith, Langfuse, OpenAI evals, BFCL, tau2,
any table or list of questions, and answerkey's own JSON Lines and CSV. Imports first, then exports.
"""

import ast
import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.conversion import (
    Files,
    Losses,
    RowPosition,
    TableExport,
    TableImport,
    as_list,
    as_text,
    case_notes,
    check_cases,
    encode_rows,
    expected_call,
    numbered_rows,
    read_alternatives,
    read_expected_calls,
    read_input,
    read_output,
    row_position,
    single_arguments,
)
from answerkey.datasets.golden_sets import parse_question, question_row
from answerkey.errors import InputError, MissingExtraError
from answerkey.model.judgement import read_check_rubric
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Exported, Imported
from answerkey.text.normalise import for_csv
from answerkey.transcripts.fields import read_call
from answerkey.transcripts.files import read_text
from answerkey.transcripts.row_files import open_rows
from answerkey.transcripts.tables import read_columns, split_cells


def _tool_names(value: Any, losses: Losses) -> list[str]:
    return [call.name for call in map(read_call, as_list(value))]


def _document_ids(value: Any, losses: Losses) -> list[Json]:
    return [str(document) for document in as_list(value)]


def _texts_as_sources(value: Any, losses: Losses) -> list[Json]:
    return [{"text": as_text(text)} for text in as_list(value)]


def _as_string(value: Any, losses: Losses) -> str:
    return str(value)


_TABLES = tomllib.loads(Path(__file__).with_name("import_tables.toml").read_text("utf-8"))


def _importer(name: str, **readers: Callable[[Any, Losses], Any]) -> TableImport:
    """The importer of a format of `import_tables.toml`, with readers for its fields."""
    usual = {
        "id": _as_string,
        "question": read_input,
        "reference_answer": read_output,
        "answer": read_output,
    }
    return TableImport(name=name, readers={**usual, **readers}, **_TABLES[name])


import_deepeval = _importer(
    "deepeval", expected_tools=read_expected_calls, tools_used=_tool_names, sources=_texts_as_sources
)


def _rubrics(value: Any, losses: Losses) -> list[Json] | None:
    rubric = as_text(value)
    if isinstance(value, dict):
        rubric = "; ".join(f"{name}: {text}" for name, text in value.items())
    return [{"rubric": rubric}] if rubric else None


def _conversation(value: Any, losses: Losses) -> Json:
    """A multi-turn sample is a transcript."""
    return value if isinstance(value, list) else None


import_ragas = _importer(
    "ragas",
    expected_tools=read_expected_calls,
    relevant_documents=_document_ids,
    checks=_rubrics,
    sources=_texts_as_sources,
    messages=_conversation,
)
import_inspect = _importer("inspect", expected_keywords=read_alternatives)
import_langsmith = _importer("langsmith")
import_langfuse = _importer("langfuse")
OPENAI_EVALS = _importer("openai_evals", expected_keywords=read_alternatives)


def import_hf(paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
    """Any table (Hugging Face Parquet, CSV, Excel, JSON) whose columns are recognised or mapped."""
    losses = Losses()
    cases: list[tuple[RowPosition, JsonObject]] = []
    guesses: list[str] = []
    for path in paths:
        file = open_rows(path, "records", fields)
        rows, column_guesses = read_columns(list(file.rows), "questions", path)
        guesses += [*file.guesses, *column_guesses]
        for number, (line, row) in enumerate(rows, start=1):
            losses.position = row_position(path, line, number)
            case = {**row, "reference_answer": read_output(row.get("reference_answer"), losses) or None}
            if isinstance(row.get("id"), int | float):
                case["id"] = str(row["id"])
            cases.append(
                (losses.position, {name: value for name, value in case.items() if value is not None})
            )
    imported = check_cases(cases, losses, "a table")
    read_as = (f"read as: {'; '.join(guesses)}",) if guesses else ()
    return msgspec.structs.replace(imported, notes=(*read_as, *imported.notes))


def import_bfcl(paths: Sequence[Path]) -> Imported:
    """Question files with their possible answers: given too, or in `possible_answer/` beside them."""
    answer_paths = [path.parent / "possible_answer" / path.name for path in paths]
    answer_paths = [path for path in answer_paths if path.is_file() and path not in paths]
    questions: list[tuple[RowPosition, JsonObject]] = []
    answers: dict[str, Json] = {}
    for position, row in numbered_rows([*paths, *answer_paths]):
        if "ground_truth" in row:
            answers[str(row.get("id"))] = row["ground_truth"]
        elif isinstance(row.get("question"), list):
            questions.append((position, row))
        else:
            message = f"{position}: has neither 'question' (a list of turns) nor 'ground_truth'"
            raise InputError(message, path=position.path)
    losses = Losses()
    cases = []
    for position, row in questions:
        losses.position = position
        cases.append((position, _bfcl_case(row, answers.get(str(row.get("id"))), losses)))
    return check_cases(cases, losses, "BFCL")


def _bfcl_case(row: dict[str, Any], truth: Any, losses: Losses) -> JsonObject:
    identity = str(row.get("id"))
    case: JsonObject = {"id": identity, "category": identity.rstrip("0123456789-_")}
    if row.get("function"):
        case["functions"] = [function.get("name") for function in row["function"]]
    for name in set(row) - {"id", "question", "function"}:
        losses.add(f"'{name}'")
    texts = [read_input(messages, losses) or "" for messages in row["question"]]
    if len(texts) == 1:
        return {**case, "question": texts[0], **_bfcl_expectations(truth, identity, losses)}
    steps = truth if isinstance(truth, list) and len(truth) == len(texts) else [None] * len(texts)
    case["turns"] = [
        {"question": text, **_bfcl_expectations(step, identity, losses)}
        for text, step in zip(texts, steps, strict=True)
        if text
    ]
    return case


def _bfcl_expectations(truth: Any, identity: str, losses: Losses) -> JsonObject:
    """Expected calls: {function: {argument: [acceptable values, "" if it is optional]}}, or call expressions."""
    if truth is None:
        if "irrelevance" in identity:
            return {"tools": "none"}
        losses.add("what is expected: there is no possible answer")
        return {}
    calls: list[Json] = []
    for call in as_list(truth):
        if isinstance(call, str):
            calls.append(_call_expression(call, losses))
        elif isinstance(call, dict):
            calls += [{"name": name, "arguments": arguments} for name, arguments in call.items()]
    return {"expected_tools": calls} if calls else {}


def _call_expression(text: str, losses: Losses) -> Json:
    """A call such as `cd(folder='document')`, parsed but never run."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError(text)
        arguments = {str(part.arg): ast.literal_eval(part.value) for part in call.keywords}
    except (SyntaxError, ValueError):
        losses.add(f"the arguments of {text.partition('(')[0]!r}")
        return text.partition("(")[0]
    if call.args:
        losses.add("arguments without a name")
    return expected_call(ast.unparse(call.func), arguments)


def _scenario(value: Any, losses: Losses) -> str | None:
    """Why the user calls; the rest of the scenario is for the simulated user."""
    if isinstance(value, dict):
        losses.add("the rest of the user's scenario: the question is why the user calls")
        return as_text(value.get("reason_for_call") or value.get("task_instructions"))
    return as_text(value)


def _actions(value: Any, losses: Losses) -> list[Json]:
    calls: list[Json] = []
    for action in value:
        if action.get("requestor", "assistant") != "assistant":
            losses.add("actions of the user")
            continue
        arguments, compared = action.get("arguments") or {}, action.get("compare_args")
        if compared is not None:
            arguments = {name: argument for name, argument in arguments.items() if name in compared}
        calls.append(expected_call(action["name"], arguments))
    return calls


def _texts(value: Any, losses: Losses) -> list[Json]:
    return [as_text(part) for part in value]


def _assertions(value: Any, losses: Losses) -> list[Json]:
    return [{"rubric": as_text(assertion)} for assertion in value]


import_tau2 = _importer(
    "tau2",
    question=_scenario,
    persona=lambda value, losses: as_text(value),
    expected_tools=_actions,
    expected_keywords=_texts,
    checks=_assertions,
)


# Lists in Markdown or plain text: one question a bullet or line, headings as categories.

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
_BULLET = re.compile(r"(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+)")
# What makes up the emphasis and code of Markdown around a whole question.
_EMPHASIS = '*_`"“”'


def import_list(paths: Sequence[Path]) -> Imported:
    """The questions of the files. In a file with bullets only these are questions, otherwise every line is one."""
    losses = Losses()
    cases: list[tuple[RowPosition, JsonObject]] = []
    for path in paths:
        lines = [line.strip() for line in read_text(path).splitlines()]
        first = next(filter(None, lines), "")
        if first == "[" or first.startswith(("{", "[{", "<")):
            raise InputError(
                "is not a list of questions in Markdown or text; import it as its own format", path=path
            )
        has_bullets = any(map(_BULLET.match, lines))
        category = ""
        for number, line in enumerate(lines, start=1):
            heading, bullet = _HEADING.match(line), _BULLET.match(line)
            if heading:
                category = heading[1].strip(_EMPHASIS)
            text = (bullet[1] if bullet else "" if has_bullets or heading else line).strip().strip(_EMPHASIS)
            if text:
                case: JsonObject = {"question": text}
                cases.append(
                    (row_position(path, number, number), case | ({"category": category} if category else {}))
                )
    return check_cases(cases, losses, "a list")


# Exports.


def export_jsonl(questions: QuestionSet) -> Exported:
    """One object a line in answerkey's canonical form, which reads back as the same set."""
    lines = (msgspec.json.encode(question_row(question)) + b"\n" for question in questions)
    return Exported(files={"questions.jsonl": lines}, count=len(questions))


def export_csv(questions: QuestionSet) -> Exported:
    """One row a question; lists and objects are JSON in a cell, and cells that a spreadsheet would run get an apostrophe."""
    rows = [question_row(question) for question in questions]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [{name: _csv_cell(value) for name, value in row.items()} for row in rows]
    changed: dict[str, list[str]] = {}
    for question, row, written in zip(questions, rows, cells, strict=True):
        for name in _changed_by_csv(question, row, written):
            changed.setdefault(name, []).append(question.id)
    notes = tuple(
        f"{name!r} of {len(ids)} question(s) reads back differently from CSV, for example of {ids[0]!r}"
        for name, ids in changed.items()
    )
    return Exported(files={"questions.csv": _csv_lines(names, cells)}, count=len(questions), notes=notes)


def _csv_lines(names: list[str], rows: list[dict[str, str]]) -> Iterator[bytes]:
    for cells in (names, *([row.get(name, "") for name in names] for row in rows)):
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        yield line.getvalue().encode()


def _csv_cell(value: Json) -> str:
    return for_csv(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _changed_by_csv(question: Question, row: JsonObject, cells: dict[str, str]) -> list[str]:
    """The fields that read back differently, found by reading the cells."""
    try:
        again = parse_question(split_cells({name: cell for name, cell in cells.items() if cell != ""}))
    except ValueError:
        return ["everything"]
    if again.content_hash == question.content_hash:
        return []
    second = question_row(again)
    return [name for name in {**row, **second} if row.get(name) != second.get(name)]


def export_hf(questions: QuestionSet) -> Exported:
    """One Parquet file with a column per field; a column with values of several types holds JSON."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    rows = [question_row(question) for question in questions]
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        # In a column of objects, every object would get the fields of all of them.
        has_objects = any(isinstance(part, dict) for cell in cells for part in as_list(cell))
        try:
            columns[name] = _json_cells(cells) if has_objects else pyarrow.array(cells)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            columns[name] = _json_cells(cells)
    content = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(columns), content)
    return Exported(files={"questions.parquet": [content.getvalue().to_pybytes()]}, count=len(rows))


def _json_cells(cells: Sequence[Json]) -> list[str | None]:
    return [None if cell is None else msgspec.json.encode(cell).decode() for cell in cells]


def _calls(question: Question, arguments: str, losses: Losses) -> list[JsonObject]:
    """Expected calls with one value for each argument, under the tool's name for arguments."""
    return [
        {"name": tool.name, arguments: single_arguments(tool.arguments or {}, losses)}
        for tool in question.expected_tools
    ]


_EXPORTS = msgspec.json.decode(Path(__file__).with_name("export_tables.json").read_bytes())

# Goldens for `EvaluationDataset.add_goldens_from_json_file`.
export_deepeval = TableExport(
    **_EXPORTS["deepeval"],
    writers={
        "expected_tools": lambda question, losses: list(_calls(question, "input_parameters", losses)) or None
    },
)
# Single-turn samples for `EvaluationDataset.from_jsonl`.
export_ragas = TableExport(
    **_EXPORTS["ragas"],
    writers={"relevant_documents": lambda question, losses: list(question.relevant_documents) or None},
)
# Samples for `json_dataset`.
export_inspect = TableExport(
    file="samples.jsonl",
    made_of=("id", "question", "reference_answer"),
    make=lambda question, row, losses: {
        "id": question.id,
        "input": question.question,
        "target": question.reference_answer or "",
        # For own scorers only: Inspect's do not use them, so they are listed as lost too.
        "metadata": {
            **case_notes(row),
            **{name: row[name] for name in ("expected_tools", "expected_keywords") if name in row},
        },
    },
    notes_in="metadata",
)
# Examples for `Client.create_examples`.
export_langsmith = TableExport(**_EXPORTS["langsmith"])
# Dataset items for the API (`create_dataset_item`).
export_langfuse = TableExport(**_EXPORTS["langfuse"])
# Samples of the evals repository for its match, includes and model-graded evals.
export_openai_evals = TableExport(
    **_EXPORTS["openai_evals"],
    writers={"question": lambda question, losses: [{"role": "user", "content": question.question}]},
)


def _bfcl_row(question: Question, row: JsonObject, losses: Losses) -> Json:
    truth: list[Json] = [
        {
            tool.name: {
                name: as_list(expected)
                for name, expected in (tool.arguments or {}).items()
                if not isinstance(expected, dict)
            }
        }
        for tool in question.expected_tools
    ]
    return {"id": question.id, "question": question.question, "ground_truth": truth}


def _bfcl_files(rows: list[Any]) -> Files:
    questions: list[Json] = [
        {"id": row["id"], "question": [[{"role": "user", "content": row["question"]}]], "function": []}
        for row in rows
    ]
    answers: list[Json] = [
        {"id": row["id"], "ground_truth": row["ground_truth"]} for row in rows if row["ground_truth"]
    ]
    return {
        "BFCL_questions.json": encode_rows(".jsonl", questions),
        "possible_answer/BFCL_questions.json": encode_rows(".jsonl", answers),
    }


# Questions and possible answers; a case that expects no tool has no answer.
export_bfcl = TableExport(
    make=_bfcl_row,
    made_of=("id", "question", "expected_tools", "tools"),
    write=_bfcl_files,
    note="'function' is empty: a golden set names tools but does not describe them",
)


def _tau2_task(question: Question, row: JsonObject, losses: Losses) -> Json:
    actions: list[Json] = [
        {"action_id": f"{question.id}_{number}", **call}
        for number, call in enumerate(_calls(question, "arguments", losses))
    ]
    texts: list[Json] = [keyword for keyword in question.expected_keywords if isinstance(keyword, str)]
    if len(texts) < len(question.expected_keywords):
        losses.add("a keyword that is not plain text")
    rubrics: list[Json] = [
        read_check_rubric(check.expected).question for check in question.checks if check.kind == "rubric"
    ]
    if len(rubrics) < len(question.checks):
        losses.add("a check that is not a rubric")
    return {
        "id": question.id,
        "user_scenario": {"persona": question.persona, "instructions": question.question},
        "evaluation_criteria": {
            "actions": actions,
            "communicate_info": texts,
            "nl_assertions": rubrics,
            "reward_basis": ["ACTION", "COMMUNICATE"],
        },
    }


# Tasks of a domain: the question as the user's instructions.
export_tau2 = TableExport(
    file="tasks.json",
    make=_tau2_task,
    made_of=("id", "question", "persona", "expected_tools", "expected_keywords", "checks"),
)
