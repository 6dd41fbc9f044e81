"""The run document as a file: the header, then the results streamed one to a line."""

from typing import BinaryIO

from answerkey.model.run import Run
from answerkey.model.run_document import result_document, run_header
from answerkey.report.result_rows import encode

__all__ = ["write_json"]


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
