"""How another tool's rows become a golden set's: a table of fields per format, and a list of what is left behind."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, is_field, parse_question
from answerkey.errors import InputError
from answerkey.model.reply import Json, JsonObject
from answerkey.protocols import Imported
from answerkey.transcripts.fields import UNNAMED, read_call
from answerkey.transcripts.json_values import decode_strict_json
from answerkey.transcripts.row_files import finder, open_rows
from answerkey.transcripts.tables import read_columns

# Fields of a reply; a row with one of these is a recorded reply with its expectations inline.
_REPLY_FIELDS = frozenset(
    {"answer", "tools_used", "tool_calls", "messages", "sources", "error", "latency_ms"}
)
_NOTHING: tuple[Any, ...] = (None, "", [], {})


class Place(msgspec.Struct, frozen=True):
    """Where a row stands: its line, or its number where the format has no lines."""

    path: Path
    line: int | None
    number: int

    def __str__(self) -> str:
        return f"line {self.line}" if self.line is not None else f"item {self.number}"


class Losses:
    """What could not be carried over, with where it stood."""

    def __init__(self) -> None:
        self._places: dict[str, dict[Place, None]] = {}
        self.place = Place(Path(), None, 0)

    def add(self, what: str) -> None:
        """Something in the present row has no counterpart."""
        self._places.setdefault(what, {})[self.place] = None

    def notes(self) -> tuple[str, ...]:
        """A line for each thing, with every place."""
        files = {place.path for places in self._places.values() for place in places}
        return tuple(
            f"not carried over: {what} ({_listed(places, with_file=len(files) > 1)})"
            for what, places in self._places.items()
        )


def _listed(places: Iterable[Place], *, with_file: bool) -> str:
    """Places by file and kind: "lines 3, 4; tests.csv item 1"."""
    groups: dict[str, list[str]] = {}
    for place in places:
        kind, number = str(place).split()
        groups.setdefault(f"{place.path.name} {kind}" if with_file else kind, []).append(number)
    return "; ".join(
        f"{group}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" for group, numbers in groups.items()
    )


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """An importer by where a tool has what a golden set holds."""

    name: str
    # Field → JMESPath expressions, of which the first that finds something counts.
    fields: Mapping[str, Sequence[str]]
    # Field → how its value is read; None means that it cannot be.
    readers: Mapping[str, Callable[[Any, Losses], Any]] = {}
    # Objects whose other entries are kept as notes under their own names.
    spread: Sequence[str] = ()
    # What is of the tool's own book-keeping: neither kept nor missed.
    unneeded: Sequence[str] = ()
    # What means something and has no counterpart.
    lost: Sequence[str] = ()

    def __call__(self, paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
        """Import the rows of the files by the table; `fields` goes before it."""
        losses = Losses()
        table = {**self.fields, **{field: (expression,) for field, expression in (fields or {}).items()}}
        readers = {field: read for field, read in self.readers.items() if field not in (fields or ())}
        compiled = {field: [finder(path) for path in found_at] for field, found_at in table.items()}
        used = {expression for found_at in table.values() for expression in found_at}
        found: list[tuple[Place, JsonObject]] = []
        for place, row in numbered_rows(paths):
            losses.place = place
            taken: JsonObject = {}
            for field, expressions in compiled.items():
                value = next((value for find in expressions if (value := find(row)) not in _NOTHING), None)
                if value is not None and field in readers:
                    value = readers[field](value, losses)
                if value not in _NOTHING:
                    taken[field] = value
            found.append((place, {**_notes(row, self, used, losses), **taken}))
        return finish(found, losses, self.name)


def numbered_rows(paths: Iterable[Path]) -> Iterator[tuple[Place, JsonObject]]:
    """Every row of the files with its place."""
    for path in paths:
        file = open_rows(path)
        for number, (line, row) in enumerate(file.rows, start=1):
            held = {name: _held(cell) for name, cell in row.items()} if file.is_table else row
            yield Place(path, line, number), held


def _held(cell: Json) -> Json:
    """The list or object that a table's cell holds, as JSON or as Python writes it; any other cell is its text."""
    if not isinstance(cell, str) or cell[:1] not in ("[", "{"):
        return cell
    try:
        value = decode_strict_json(cell)
    except ValueError:
        try:
            value = ast.literal_eval(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return cell
    return value


def _notes(row: JsonObject, form: Format, used: set[str], losses: Losses) -> JsonObject:
    """What the table does not name: kept as notes, or listed as lost."""
    notes: JsonObject = {}
    entries = dict(row)
    for container in form.spread:
        held = entries.pop(container, None)
        if isinstance(held, dict):
            entries.update({name: value for name, value in held.items() if f"{container}.{name}" not in used})
        elif held not in _NOTHING and container not in used:
            entries[container] = held
    for name, value in entries.items():
        if name in used or name in form.unneeded or value in _NOTHING:
            continue
        if name in form.lost:
            losses.add(f"'{name}'")
        else:
            # Under a name of answerkey's it would mean something else.
            notes[f"{form.name}_{name}" if is_field(name) or name in _REPLY_FIELDS else name] = value
    return notes


def finish(found: Iterable[tuple[Place, JsonObject]], losses: Losses, name: str) -> Imported:
    """The rows, each checked as a golden case, and what was left behind."""
    rows: list[JsonObject] = []
    first: dict[str, Place] = {}
    for place, row in found:
        try:
            question = parse_question({key: value for key, value in row.items() if key not in _REPLY_FIELDS})
        except ValueError as error:
            remedy = (
                f"; it has {', '.join(list(row)[:20])}: say where it is with --map"
                if "has no" in str(error)
                else ""
            )
            raise InputError(f"{place}: {error}{remedy}", path=place.path) from None
        if "answer" not in row and "messages" not in row and question.id in first:
            raise InputError(f"{place}: has the id or wording of {first[question.id]}", path=place.path)
        first[question.id] = place
        rows.append(row)
    if not rows:
        raise InputError(f"holds nothing that {name} would hold")
    replies = any(not _REPLY_FIELDS.isdisjoint(row) for row in rows)
    bare = sum(EXPECTATION_FIELDS.isdisjoint(row) and not row.get("turns") for row in rows)
    expects_nothing = (
        (f"{bare} of {len(rows)} rows expect nothing of a reply: add keywords or tools",) if bare else ()
    )
    return Imported(
        rows=rows, kind="replies" if replies else "questions", notes=(*losses.notes(), *expects_nothing)
    )


# Values that several tools write in the same few ways: what was asked, what is right, which tools are called.


_ASKED = ("question", "query", "input", "prompt", "user_input", "text", "message", "content")
_ANSWERED = (
    *("answer", "output", "reference", "expected", "expected_output"),
    *("response", "text", "content", "result"),
)


def as_text(value: Any) -> str | None:
    """A value as text: as it is, the text of message parts, or JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "".join(str(part["text"]) for part in value)
    return msgspec.json.encode(value).decode()


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, dict) and ("role" in part or "type" in part) for part in value)
    )


def _from_user(message: dict[str, Any]) -> bool:
    return message.get("role", message.get("type")) in ("user", "human")


def asked(value: Any, losses: Losses) -> str | None:
    """What the user asks: a text, the user's message, or the likeliest entry of an object."""
    if _is_messages(value):
        said = [message for message in value if _from_user(message)]
        if any(message.get("role", message.get("type")) == "system" for message in value):
            losses.add("a system message")
        if len(said) > 1 or any(message.get("role") == "assistant" for message in value):
            losses.add("the conversation before the last question")
        return as_text(said[-1].get("content")) if said else None
    if isinstance(value, dict):
        if "messages" in value:
            return asked(value["messages"], losses)
        name = next((name for name in _ASKED if isinstance(value.get(name), str)), None)
        if name is None:
            name = next(iter(value)) if len(value) == 1 else None
        for other in value:
            if other != name:
                losses.add(f"the input {other!r}")
        return as_text(value[name]) if name is not None else None
    return as_text(value)


def last_said(value: Any, losses: Losses) -> str | None:
    """The answer in what a tool calls an output: a text, an object's likeliest entry, the last message, the first of several."""
    if _is_messages(value):
        return as_text(value[-1].get("content"))
    if isinstance(value, list):
        return as_text(value[0]) if value else None
    if isinstance(value, dict):
        if "messages" in value:
            return last_said(value["messages"], losses)
        name = next((name for name in _ANSWERED if isinstance(value.get(name), str)), None)
        return as_text(value if name is None and len(value) != 1 else value[name or next(iter(value))])
    return as_text(value)


def any_of(value: Any, losses: Losses) -> Json:
    """Several answers of which any is right, as one keyword with alternatives; a single one is a reference only."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(option, str) for option in value):
        return None
    return [list(dict.fromkeys(option for option in value if option.strip()))]


def expected_calls(value: Any, losses: Losses) -> list[Json] | None:
    """Calls that a good reply makes, with the arguments that are said."""
    calls: list[Json] = []
    for call in map(read_call, value if isinstance(value, list) else [value]):
        if call.name == UNNAMED:
            losses.add("a call without a name")
        elif call.arguments:
            exact = {key: exactly(held) for key, held in call.arguments.items()}
            calls.append({"name": call.name, "arguments": exact})
        else:
            calls.append(call.name)
    return calls or None


def exactly(value: Any) -> Json:
    """An argument that must be just this: a list alone would mean any of its items, an object a condition."""
    return [value] if isinstance(value, list | dict) else value


def tool_names(value: Any, losses: Losses) -> list[str]:
    """The names of the calls that were made."""
    return [call.name for call in map(read_call, value if isinstance(value, list) else [value])]


# Imports what is a row a case with named fields: DeepEval, Ragas, Inspect, LangSmith, Langfuse, OpenAI evals, any table.


def _document_ids(value: Any, losses: Losses) -> list[Json]:
    return [str(document) for document in value] if isinstance(value, list) else [str(value)]


def _texts_as_sources(value: Any, losses: Losses) -> list[Json]:
    return (
        [{"text": as_text(text)} for text in value] if isinstance(value, list) else [{"text": as_text(value)}]
    )


def _identity(value: Any, losses: Losses) -> str:
    return str(value)


_COMMON = {"id": _identity, "question": asked, "reference_answer": last_said, "answer": last_said}

# Goldens or test cases as `EvaluationDataset.save_as` writes them.
import_deepeval = Format(
    name="deepeval",
    fields={
        "id": ("additional_metadata.id", "additionalMetadata.id", "name"),
        "question": ("input",),
        "reference_answer": ("expected_output", "expectedOutput"),
        "expected_tools": ("expected_tools", "expectedTools"),
        "answer": ("actual_output", "actualOutput"),
        "tools_used": ("tools_called", "toolsCalled"),
        "sources": ("retrieval_context", "retrievalContext"),
        "category": ("additional_metadata.category", "additionalMetadata.category"),
    },
    readers={
        **_COMMON,
        "expected_tools": expected_calls,
        "tools_used": tool_names,
        "sources": _texts_as_sources,
    },
    spread=("additional_metadata", "additionalMetadata"),
    lost=("scenario", "expected_outcome", "user_description", "custom_column_key_values"),
)


def _rubrics(value: Any, losses: Losses) -> list[Json] | None:
    levels = (
        "; ".join(f"{name}: {text}" for name, text in value.items())
        if isinstance(value, dict)
        else as_text(value)
    )
    return [{"rubric": levels}] if levels else None


def _conversation(value: Any, losses: Losses) -> Json:
    """A multi-turn sample is a transcript already."""
    return value if isinstance(value, list) else None


# An EvaluationDataset or Testset as `to_jsonl` or `to_csv` writes it.
import_ragas = Format(
    name="ragas",
    fields={
        "question": ("user_input", "question"),
        "reference_answer": ("reference", "ground_truth", "ground_truths[0]"),
        "expected_tools": ("reference_tool_calls",),
        "relevant_documents": ("reference_context_ids",),
        "persona": ("persona_name",),
        "checks": ("rubrics",),
        "answer": ("response", "answer"),
        "sources": ("retrieved_contexts", "contexts"),
        "messages": ("user_input",),
    },
    readers={
        **_COMMON,
        "expected_tools": expected_calls,
        "relevant_documents": _document_ids,
        "checks": _rubrics,
        "sources": _texts_as_sources,
        "messages": _conversation,
    },
    lost=("multi_responses", "reference_topics", "reference_contexts", "retrieved_context_ids"),
)


# Samples of a dataset, or a whole log: then its replies with what they were held against.
import_inspect = Format(
    name="inspect",
    fields={
        "id": ("id",),
        "question": ("input",),
        "reference_answer": ("target",),
        "expected_keywords": ("target",),
        "category": ("metadata.category",),
        "answer": ("output.completion", "output.choices[0].message.content"),
        "messages": ("messages",),
        "trial": ("epoch",),
    },
    readers={**_COMMON, "expected_keywords": any_of},
    spread=("metadata",),
    unneeded=(
        *("output", "scores", "events", "store", "model_usage", "role_usage", "total_time", "uuid"),
        "working_time",
        *("attachments", "timelines", "started_at", "completed_at", "invalidation", "error_retries"),
    ),
    lost=("choices", "sandbox", "files", "setup", "limit", "error"),
)


# Examples of a dataset, as its export writes them.
import_langsmith = Format(
    name="langsmith",
    fields={
        "id": ("metadata.id", "id"),
        "question": ("inputs",),
        "reference_answer": ("outputs", "reference_outputs"),
        "category": ("metadata.category", "split"),
    },
    readers=_COMMON,
    spread=("metadata",),
    unneeded=(
        *("dataset_id", "created_at", "modified_at", "source_run_id", "name", "url", "dataset_name", "runs"),
        "attachments_info",
    ),
    lost=("attachments", "attachment_urls"),
)


# Items of a dataset, as the API and its export give them.
import_langfuse = Format(
    name="langfuse",
    fields={
        "id": ("id",),
        "question": ("input",),
        "reference_answer": ("expectedOutput", "expected_output"),
        "category": ("metadata.category",),
    },
    readers=_COMMON,
    spread=("metadata",),
    unneeded=(
        *("datasetId", "dataset_id", "datasetName", "dataset_name", "createdAt", "created_at", "updatedAt"),
        *("updated_at", "status", "projectId", "mediaReferences", "media_references"),
        *("sourceTraceId", "source_trace_id", "sourceObservationId", "source_observation_id"),
    ),
)


# Samples of the evals repository ({"input", "ideal"}), or a file of the Evals API ({"item": {…}}).
import_openai_evals = Format(
    name="openai_evals",
    fields={
        "id": ("id", "item.id"),
        "question": ("input", "item.input", "item.question", "item.query", "item.prompt"),
        "reference_answer": (
            *("ideal", "item.ideal", "item.expected", "item.reference", "item.answer"),
            *("item.expected_output", "item.ground_truth", "item.correct_label"),
        ),
        "expected_keywords": ("ideal", "item.ideal"),
        "answer": ("sample.output_text", "completion"),
        "category": ("item.category",),
    },
    readers={**_COMMON, "expected_keywords": any_of},
    spread=("item", "metadata"),
    unneeded=("sample",),
)


def import_hf(paths: Sequence[Path], fields: Mapping[str, str] | None = None) -> Imported:
    """Any table – Hugging Face Parquet, CSV, Excel, JSON – whose columns can be told or are mapped."""
    losses = Losses()
    found, said = list[tuple[Place, JsonObject]](), list[str]()
    for path in paths:
        file = open_rows(path, "records", fields)
        rows, guessed = read_columns(list(file.rows), "questions", path)
        said += [*file.guesses, *guessed]
        for number, (line, row) in enumerate(rows, start=1):
            losses.place = Place(path, line, number)
            read = {**row, "reference_answer": last_said(row.get("reference_answer"), losses) or None}
            if isinstance(row.get("id"), int | float):
                read["id"] = str(row["id"])
            found.append((losses.place, {name: value for name, value in read.items() if value is not None}))
    imported = finish(found, losses, "a table")
    read_as = (f"read as: {'; '.join(said)}",) if said else ()
    return Imported(rows=imported.rows, kind=imported.kind, notes=(*read_as, *imported.notes))
