"""Parquet: one row per reply, nested as in the run document, written in batches."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow
import pyarrow.json
import pyarrow.parquet

from answerkey.model.run import Run
from answerkey.model.run_document import table_lines

# Size of a batch, in bytes of JSON.
_BYTES = 8_000_000


def write_parquet(run: Run, file: BinaryIO) -> None:
    """Write a run's results."""
    metrics = tuple(run.summary.metrics)
    schema = _schema(tuple(run.info.weights), metrics)
    with pyarrow.parquet.ParquetWriter(
        file, schema, compression="zstd", memory_pool=pyarrow.system_memory_pool()
    ) as writer:
        for lines in _batches(run):
            writer.write_table(_table(lines, schema))


def _batches(run: Run) -> Iterator[bytes]:
    """The rows as lines of JSON."""
    batch: list[bytes] = []
    size = 0
    for lines in table_lines(run.results):
        batch.append(lines)
        size += len(lines)
        if size >= _BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


def _table(lines: bytes, schema: Any) -> Any:
    wanted = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    # One block and one thread: other processes are scoring.
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    # pyarrow's own pool keeps the memory of the largest batch and more.
    pool = pyarrow.system_memory_pool()
    table = pyarrow.json.read_json(
        BytesIO(lines), read_options=reading, parse_options=wanted, memory_pool=pool
    )
    return table.select(schema.names).cast(schema)


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
