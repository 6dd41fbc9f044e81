"""Files of OpenAI Evals, TREC and BEIR.

OpenAI Evals: the platform's evals, runs and output items, and the samples of the open-source repository. An eval has the
criteria, a run the prompt and often the data, output items the replies. Any of them may be given, in any order.

TREC and BEIR: relevance judgements (qrels), runs and queries, each mistake named with its line. qrels are `query iteration
document grade` (TREC) or a table `query-id corpus-id score` with a header (BEIR); a run is `query Q0 document rank score tag`.
Any white space separates fields. The rank column is not used: as in trec_eval, the order of a run is that of its scores.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from answerkey.datasets.conversion import (
    Losses,
    RowPosition,
    check_cases,
    last_user_text,
    numbered_rows,
    row_position,
)
from answerkey.datasets.golden_sets import question_row
from answerkey.datasets.promptfoo import fill_variables
from answerkey.datasets.table_formats import OPENAI_EVALS
from answerkey.errors import InputError, UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Exported, Imported
from answerkey.text.normalise import count
from answerkey.transcripts.files import read_text
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, decode_json
from answerkey.transcripts.row_files import read_rows

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
    if "question" in (fields or {}) or not isinstance(row.get("item"), dict):
        return row
    words = last_user_text(prompt, losses) or ""
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


# Query id → document id → grade.
Qrels = dict[str, dict[str, int]]
# Query id → document id → score.
TrecRun = dict[str, dict[str, float]]

# trec_eval keeps a table of all grades up to the largest one: a typing error in a grade must not fill the memory.
MAX_GRADE = 1000

_Value = TypeVar("_Value", int, float)


def read_qrels(path: str | Path) -> Qrels:
    """Relevance judgements of a TREC or BEIR file. A grade of 0 or less says that the document is not relevant."""
    columns = 0

    def judgement(fields: list[str]) -> tuple[str, str, int] | None:
        nonlocal columns
        if not columns:
            columns = 3 if len(fields) == 3 else 4
            if _is_beir_header(fields):
                return None
        if len(fields) != columns:
            wanted = "'query iteration document grade'" if columns == 4 else "'query-id corpus-id score'"
            raise ValueError(
                f"{len(fields)} fields where a judgement has {columns}: {wanted}; correct or remove the line"
            )
        return fields[0], fields[-2], _grade(fields[-1])

    return _by_query(
        Path(path),
        judgement,
        twice="is judged twice for query {!r}; remove one of the lines",
        empty="no judgement in it; a qrels file has lines 'query iteration document grade'",
    )


def read_trec_run(path: str | Path) -> TrecRun:
    """A retrieval run: what was found for each query, with scores."""

    def retrieved(fields: list[str]) -> tuple[str, str, float]:
        if len(fields) not in (5, 6):
            raise ValueError(
                f"{len(fields)} fields where a run has 6: 'query Q0 document rank score tag'; correct or remove the line"
            )
        try:
            score = float(fields[4])
        except ValueError:
            score = nan
        if isnan(score):
            raise ValueError(f"score {fields[4]!r} is not a number; correct or remove the line")
        return fields[0], fields[2], score

    return _by_query(
        Path(path),
        retrieved,
        twice="is retrieved twice for query {!r}; keep its best line",
        empty="no line in it; a run has lines 'query Q0 document rank score tag'",
    )


def _by_query(
    path: Path, read: Callable[[list[str]], tuple[str, str, _Value] | None], *, twice: str, empty: str
) -> dict[str, dict[str, _Value]]:
    """Query id → document id → value, from a line's fields each; None: the line is a header."""
    found: dict[str, dict[str, _Value]] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        try:
            record = read(fields) if (fields := line.split()) else None
            if record is not None:
                query, document, value = record
                documents = found.setdefault(query, {})
                if document in documents:
                    raise ValueError(f"document {document!r} {twice.format(query)}")
                documents[document] = value
        except ValueError as error:
            raise InputError(str(error), path=path, line=number) from None
    if not found:
        raise InputError(empty, path=path)
    return found


def read_queries(path: str | Path) -> dict[str, str]:
    """Query id → text, from BEIR's `queries.jsonl`, a table `id<TAB>text` or TREC topics (`<num>`, `<title>`)."""
    path = Path(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return dict(_json_records(path))
    text = read_text(path)
    if "<top>" in text[:4096].lower():
        return _topics(text, path)
    queries: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        identifier, tab, query = line.rstrip("\r").partition("\t")
        if not tab or not query.strip():
            raise InputError("expected a query id, a tab and the query's text", path=path, line=number)
        queries[identifier.strip()] = query.strip()
    return queries


def read_beir_corpus_ids(path: str | Path) -> set[str]:
    """The ids of the documents of BEIR's `corpus.jsonl`."""
    return {identifier for identifier, _ in _json_records(Path(path), need_text=False)}


def file_kind(path: str | Path) -> str:
    """What a file holds, by its first line: `qrels`, `run`, `queries` or `corpus`."""
    path = Path(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return "corpus" if "corpus" in path.name.lower() else "queries"
    for line in read_text(path).split("\n"):
        if not line.strip():
            continue
        fields = line.split()
        if fields[0].startswith("<"):
            return "queries"
        if len(fields) in (5, 6) and fields[1].upper() == "Q0":
            return "run"
        if line.count("\t") == 1:
            return "queries"
        if _is_beir_header(fields) or len(fields) == 4 or (len(fields) == 3 and _whole(fields[2])):
            return "qrels"
        return "run" if len(fields) in (5, 6) else "unknown"
    return "unknown"


def _whole(written: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]+", written))


def _is_beir_header(fields: list[str]) -> bool:
    return [field.lower() for field in fields] == ["query-id", "corpus-id", "score"]


def _grade(written: str) -> int:
    if not _whole(written):
        raise ValueError(f"grade {written!r} is not a whole number; correct or remove the line")
    grade = int(written) if len(written) < 9 else MAX_GRADE + 1
    if grade > MAX_GRADE:
        raise ValueError(f"grade {written} is above {MAX_GRADE}; use smaller grades")
    return grade


def _json_records(path: Path, *, need_text: bool = True) -> Iterator[tuple[str, str]]:
    for line, record in read_rows(path):
        identifier, words = record.get("_id", record.get("id")), record.get("text")
        if not isinstance(identifier, str | int) or (need_text and not isinstance(words, str)):
            raise InputError('expected an object such as {"_id": "1", "text": "…"}', path=path, line=line)
        yield str(identifier), words if isinstance(words, str) else ""


def _topics(text: str, path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for part in re.split(r"(?i)<top>", text)[1:]:
        number = re.search(r"(?i)<num>\s*(?:Number:)?\s*([^\s<]+)", part)
        title = re.search(r"(?is)<title>\s*(?:Topic:)?\s*(.*?)\s*(?=<|\Z)", part)
        if number is None or title is None or not title[1]:
            line = text[: text.index(part)].count("\n") + 1
            raise InputError("a topic without <num> or <title>", path=path, line=line)
        queries[number[1].lstrip("0") or number[1]] = " ".join(title[1].split())
    return queries


# Imports TREC files and BEIR datasets: qrels become a golden set, a run becomes recorded replies.


# Which judgements of a dataset are taken when its folder is given.
_SPLITS = ("test", "dev", "train")


def import_trec(paths: Sequence[Path]) -> Imported:
    """Qrels, a run, and queries, in any order; which is which shows in the files.

    Qrels alone give a golden set; a run gives recorded replies, with the judgements inline if qrels are given too.
    """
    found = [(file_kind(path), path) for path in paths]
    for kind, path in found:
        if kind not in ("qrels", "run", "queries"):
            raise InputError(
                "is neither qrels, a run nor queries; see docs/retrieval.md for the formats", path=path
            )
    files = _by_kind(found)
    if "qrels" not in files and "run" not in files:
        raise UsageError("no qrels and no run among the files: there is nothing to import")
    queries = read_queries(files["queries"]) if "queries" in files else {}
    qrels = read_qrels(files["qrels"]) if "qrels" in files else {}
    if "run" in files:
        run = read_trec_run(files["run"])
        return Imported(rows=_replies(run, qrels, queries), kind="replies", notes=_notes(run, qrels, queries))
    return Imported(rows=_questions(qrels, queries), kind="questions", notes=_notes(qrels, qrels, queries))


def import_beir(paths: Sequence[Path]) -> Imported:
    """A dataset's folder, or its files: qrels (.tsv), queries.jsonl and, to check the ids, corpus.jsonl."""
    notes: list[str] = []
    given = [_folder(path, notes) if path.is_dir() else [(file_kind(path), path)] for path in paths]
    files = _by_kind([one for found in given for one in found])
    if "qrels" not in files:
        raise UsageError("no judgements among the files; give the folder, or its qrels/test.tsv")
    if "queries" not in files:
        raise UsageError("no queries among the files; give the folder, or its queries.jsonl")
    qrels, queries = read_qrels(files["qrels"]), read_queries(files["queries"])
    absent = [query for query in qrels if query not in queries]
    if absent:
        raise InputError(
            f"query {absent[0]!r} of {files['qrels']} is not in it ({len(absent)} are missing)",
            path=files["queries"],
        )
    if "corpus" in files:
        corpus = read_beir_corpus_ids(files["corpus"])
        unknown = {document for documents in qrels.values() for document in documents} - corpus
        if unknown:
            notes.append(
                f"{len(unknown)} judged documents are not in the corpus, for example {min(unknown)!r}"
            )
    return Imported(rows=_questions(qrels, queries), kind="questions", notes=tuple(notes))


def _by_kind(kinds: Sequence[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for kind, path in kinds:
        if kind in files:
            raise UsageError(f"{files[kind]} and {path} are both {kind}; import them one at a time")
        files[kind] = path
    return files


def _folder(folder: Path, notes: list[str]) -> list[tuple[str, Path]]:
    for split in _SPLITS:
        judged = folder / "qrels" / f"{split}.tsv"
        if judged.is_file():
            if split != _SPLITS[0]:
                notes.append(f"took {judged}, as there is no qrels/test.tsv")
            found = [("qrels", judged)]
            break
    else:
        raise InputError("has no qrels/test.tsv, dev.tsv or train.tsv", path=folder)
    for kind in ("queries", "corpus"):
        file = folder / f"{kind}.jsonl"
        if file.is_file():
            found.append((kind, file))
    return found


def _relevance(documents: dict[str, int]) -> JsonObject:
    """Judgements as a golden set holds them: a negative grade means "not judged", so it is left out."""
    return {document: grade for document, grade in documents.items() if grade >= 0}


def _questions(qrels: Qrels, queries: dict[str, str]) -> Iterator[JsonObject]:
    """Judgements as rows of a golden set; a query without a text is its id."""
    for query, documents in qrels.items():
        judged = _relevance(documents)
        yield {"id": query, "question": queries.get(query, query), "relevant_documents": judged}


def _replies(run: TrecRun, qrels: Qrels, queries: dict[str, str]) -> Iterator[JsonObject]:
    for query, scores in run.items():
        # trec_eval's order: by score, and equal scores by the greater id.
        order = sorted(sorted(scores, reverse=True), key=lambda document: -scores[document])
        row: JsonObject = {"id": query, "question": queries.get(query, query)}
        if query in qrels:
            row["relevant_documents"] = _relevance(qrels[query])
        row["sources"] = [
            {"id": document, "rank": rank, "score": scores[document]}
            for rank, document in enumerate(order, start=1)
        ]
        yield row


def _notes(listed: dict[str, Any], qrels: Qrels, queries: dict[str, str]) -> tuple[str, ...]:
    notes = []
    wordless = sum(query not in queries for query in listed)
    if wordless:
        notes.append(
            f"{count(wordless, 'query has', 'queries have')} no text here, so the question is the id; add the queries' file"
        )
    negative = sum(grade < 0 for documents in qrels.values() for grade in documents.values())
    if negative:
        notes.append(
            f"{count(negative, 'judgement')} with a negative grade left out, which means 'not judged'"
        )
    unjudged = sum(query not in qrels for query in listed) if qrels else 0
    if unjudged:
        notes.append(f"{unjudged} queries of the run have no judgements")
    return tuple(notes)


# Exports.


class _Judged(NamedTuple):
    """A question with the judgements that qrels can hold."""

    question: Question
    grades: dict[str, int]


def export_trec(questions: QuestionSet) -> Exported:
    """`qrels.txt` ("query 0 document grade") and the questions as `queries.tsv` (id, tab, text)."""
    judged, notes = _judged_questions(questions)
    qrels = (
        f"{question.id} 0 {document} {grade}\n".encode()
        for question, grades in judged
        for document, grade in grades.items()
    )
    queries = (f"{question.id}\t{' '.join(question.question.split())}\n".encode() for question, _ in judged)
    return Exported(files={"qrels.txt": qrels, "queries.tsv": queries}, count=len(judged), notes=notes)


def export_beir(questions: QuestionSet) -> Exported:
    """`qrels/test.tsv` and `queries.jsonl`, as a BEIR dataset has them."""
    judged, notes = _judged_questions(questions)
    queries = (
        msgspec.json.encode({"_id": question.id, "text": question.question}) + b"\n" for question, _ in judged
    )
    return Exported(
        files={"qrels/test.tsv": _beir_judgements(judged), "queries.jsonl": queries},
        count=len(judged),
        notes=(*notes, "there is no corpus.jsonl: a golden set names documents but does not hold them"),
    )


def _beir_judgements(judged: list[_Judged]) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for question, grades in judged:
        for document, grade in grades.items():
            yield f"{question.id}\t{document}\t{grade}\n".encode()


def _judged_questions(questions: QuestionSet) -> tuple[list[_Judged], tuple[str, ...]]:
    """The questions with judgements that qrels can hold, and notes on the rest."""
    losses = Losses()
    judged: list[_Judged] = []
    for question in questions:
        losses.position = RowPosition("question", question.id)
        if not question.relevant_documents:
            losses.add("questions without relevant_documents")
            continue
        if _has_spaces(question.id):
            losses.add("questions whose ids have spaces")
            continue
        grades: dict[str, int] = {}
        for document, grade in question.relevant_documents.items():
            if _has_spaces(document):
                losses.add("judgements of documents whose ids have spaces")
            elif not grade.is_integer() or grade > MAX_GRADE:
                losses.add(f"judgements that are not whole grades up to {MAX_GRADE}")
            else:
                grades[document] = int(grade)
        if grades:
            judged.append(_Judged(question, grades))
        for name in question_row(question):
            if name not in ("id", "question", "relevant_documents"):
                losses.add(repr(name))
    if not judged:
        raise UsageError("no question has relevant_documents that qrels can hold; there is nothing to export")
    return judged, losses.notes()


def _has_spaces(name: str) -> bool:
    return name.split() != [name]
