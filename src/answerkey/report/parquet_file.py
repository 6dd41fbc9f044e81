"""Parquet for analysts: one row per reply, nested as in the run document, written in batches of bounded size."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet

from answerkey.model.result_rows import encode, row_document
from answerkey.model.run import Run
from answerkey.model.trial import Trial
from answerkey.text.sanitise import without_surrogates

# A batch is written when it has so many rows or characters of reply.
_ROWS = 2_000
_CHARACTERS = 8_000_000


def write_parquet(run: Run, file: BinaryIO) -> None:
    """Write a run's results."""
    metrics = tuple(run.summary.metrics)
    schema = _schema(tuple(run.info.weights), metrics)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        batch: list[dict[str, Any]] = []
        characters = 0
        for result in run.results:
            row = _row(result, metrics)
            batch.append(row)
            characters += len(row["reply"]["text"] or "")
            if len(batch) >= _ROWS or characters >= _CHARACTERS:
                writer.write_table(_table(batch, schema))
                batch, characters = [], 0
        if batch:
            writer.write_table(_table(batch, schema))


def _table(batch: list[dict[str, Any]], schema: Any) -> Any:
    try:
        return pyarrow.Table.from_pylist(batch, schema=schema)
    except UnicodeEncodeError:
        # Rare, so that only a batch which needs it pays for it.
        return pyarrow.Table.from_pylist(without_surrogates(batch), schema=schema)


def _schema(components: Sequence[str], metrics: Sequence[str]) -> Any:
    text, number, texts = pyarrow.string(), pyarrow.float64(), pyarrow.list_(pyarrow.string())
    error = _struct(kind=text, message=text)
    component = _struct(score=number, weight=number, reason=text, found=texts, missing=texts, extra=texts)
    call = _struct(name=text, arguments=text, result=text, error=text, start_ms=number, duration_ms=number)
    source = _struct(id=text, title=text, uri=text, text=text, score=number)
    reply = _struct(
        text=text,
        tools_used=texts,
        tool_calls=pyarrow.list_(call),
        sources=pyarrow.list_(source),
        error=error,
        latency_ms=number,
    )
    fields = {
        "id": text,
        "trial": pyarrow.int32(),
        "question": text,
        "category": text,
        "score": number,
        "grade": text,
        "passed": pyarrow.bool_(),
        "components": pyarrow.struct([(name, component) for name in components]),
        "error": error,
        "reply": reply,
    }
    if "checks" in (*components, *metrics):
        check = _struct(name=text, kind=text, score=number, weight=number, reason=text)
        fields["checks"] = pyarrow.list_(check)
    if metrics:
        # A struct without fields cannot be written.
        fields["metrics"] = pyarrow.struct([(name, number) for name in metrics])
    return pyarrow.schema(fields)


def _struct(**fields: Any) -> Any:
    return pyarrow.struct(list(fields.items()))


def _row(result: Trial, metrics: Sequence[str]) -> dict[str, Any]:
    row = row_document(result)
    reply = row["reply"]
    reply["tool_calls"] = [
        {**call, "arguments": _json(call.get("arguments")), "result": _json(call.get("result"))}
        for call in reply["tool_calls"]
    ]
    found = row["components"].get("checks") or row.get("findings", {}).get("checks") or {}
    row["checks"] = found.get("checks")
    row["metrics"] = {name: row["metrics"].get(name) for name in metrics}
    return row


def _json(value: object) -> str | None:
    """Values of any shape share one column, as JSON."""
    return None if value is None else encode(value).decode()
