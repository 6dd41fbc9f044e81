"""JSON Lines: one object per reply."""

from collections.abc import Iterable
from typing import BinaryIO

from answerkey.model.run import Run
from answerkey.model.trial import Trial
from answerkey.report.result_rows import encode, row_document

__all__ = ["write_jsonl", "write_jsonl_rows"]


def write_jsonl(run: Run, file: BinaryIO) -> None:
    """Write a run's results."""
    write_jsonl_rows(run.results, file)


def write_jsonl_rows(results: Iterable[Trial], file: BinaryIO) -> None:
    """Write results as they come."""
    for result in results:
        file.write(encode(row_document(result)) + b"\n")
