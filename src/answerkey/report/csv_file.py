"""CSV for spreadsheets: one row per reply, flat columns first, then the nested fields as JSON.

Text that a spreadsheet would run as a formula gets an apostrophe before it (`answerkey.text.sanitise.for_csv`).
"""

import csv
import io
from collections.abc import Sequence
from typing import BinaryIO

from answerkey.model.result_rows import encode, row_document
from answerkey.model.run import Run
from answerkey.model.trial import Trial
from answerkey.report.losses import losses_of
from answerkey.text.sanitise import for_csv

__all__ = ["write_csv"]

_FIRST = ("id", "trial", "category", "question", "score", "grade", "passed")
_LAST = (
    "lost_points",
    "error_kind",
    "error_message",
    "latency_ms",
    "tools_used",
    "reply",
    "components",
    "error",
    "metrics",
)


def write_csv(run: Run, file: BinaryIO) -> None:
    """Write a run's results; its components are the columns between the score and the reasons."""
    components = tuple(run.info.weights)
    # The byte order mark is what makes Excel read UTF-8; other readers skip it ("utf-8-sig").
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        write = csv.writer(text).writerow
        write([*_FIRST, *components, *_LAST])
        for result in run.results:
            write([_cell(value) for value in _values(result, components)])
    finally:
        # The file stays the caller's to close.
        text.detach()


def _values(result: Trial, components: Sequence[str]) -> list[object]:
    row = row_document(result)
    reply, error = row["reply"], row["error"] or {}
    parts = row["components"]
    return [
        *(row[name] for name in _FIRST),
        *(parts[name]["score"] if name in parts else None for name in components),
        "; ".join(str(loss) for loss in losses_of(result.scorecard)),
        error.get("kind"),
        error.get("message"),
        reply["latency_ms"],
        ", ".join(reply["tools_used"]),
        reply["text"],
        encode(parts).decode(),
        encode(row["error"]).decode(),
        encode(row["metrics"]).decode(),
    ]


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return for_csv(value) if isinstance(value, str) else value
