"""Imports what is a row a case with named fields: DeepEval, Ragas, Inspect, LangSmith, Langfuse, OpenAI evals, any table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from answerkey.datasets.importers.foreign_rows import Format, Losses, Place, finish
from answerkey.datasets.importers.foreign_values import (
    any_of,
    as_text,
    asked,
    expected_calls,
    last_said,
    tool_names,
)
from answerkey.model.json_value import Json, JsonObject
from answerkey.protocols import Imported
from answerkey.transcripts.row_files import open_rows
from answerkey.transcripts.table_columns import read_columns


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
