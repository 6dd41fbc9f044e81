"""CSV for spreadsheets: one flat row per reply.

Text that a spreadsheet would run as a formula gets an apostrophe before it (`answerkey.text.sanitise.for_csv`).
"""

import csv
import io
from typing import BinaryIO

from answerkey.model.run import Run
from answerkey.report.flat_rows import flat_columns, flat_row
from answerkey.text.sanitise import for_csv

__all__ = ["write_csv"]


def write_csv(run: Run, file: BinaryIO) -> None:
    """Write a run's results."""
    # The byte order mark is what makes Excel read UTF-8; other readers skip it ("utf-8-sig").
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        write = csv.writer(text).writerow
        write(flat_columns(run.info))
        for result in run.results:
            write([_cell(value) for value in flat_row(result, run.info)])
    finally:
        # The file stays the caller's to close.
        text.detach()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return for_csv(value) if isinstance(value, str) else value
