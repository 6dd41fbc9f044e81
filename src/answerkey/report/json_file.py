"""JSON files: the run document, and JSON Lines with one object per reply. Both are streamed."""

from typing import BinaryIO

from answerkey.model.result_rows import encode, row_document
from answerkey.model.run import LoggedResults, Run
from answerkey.model.run_document import result_document, run_header

__all__ = ["write_json", "write_jsonl"]


def write_json(run: Run, file: BinaryIO) -> None:
    """Write the run document; memory does not grow with the number of results."""
    # The header is an object: its closing brace makes room for the results.
    file.write(encode(run_header(run))[:-1])
    file.write(b',"results":[')
    separator = b"\n"
    for result in run.results:
        file.write(separator)
        file.write(encode(result_document(result)))
        separator = b",\n"
    file.write(b"\n]}\n")


def write_jsonl(run: Run, file: BinaryIO) -> None:
    """Write one object per result; those of a log may be on their lines already."""
    if isinstance(run.results, LoggedResults) and run.results.lines is not None:
        file.writelines(run.results.lines())
        return
    for result in run.results:
        file.write(encode(row_document(result)) + b"\n")
