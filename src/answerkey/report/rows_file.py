"""One row per reply: the run document in JSON, JSON Lines, and CSV for spreadsheets; all are streamed.

A table that people open has flat columns first, then the nested fields as JSON.
"""

from typing import BinaryIO

from answerkey.model.result_rows import encode, row_document
from answerkey.model.run import LoggedResults, Run, RunInfo
from answerkey.model.run_document import result_document, run_header
from answerkey.model.trial import Trial
from answerkey.report.losses import losses_of
from answerkey.report.table import Column, write_table

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


def write_csv(run: Run, file: BinaryIO) -> None:
    """Write one flat row per result."""
    columns = [Column(name=name, title=name) for name in flat_columns(run.info)]
    file.writelines(write_table(columns, (flat_row(result, run.info) for result in run.results), "csv"))


def flat_columns(info: RunInfo) -> list[str]:
    """The columns' names; a run's components stand between the score and the reasons."""
    return [*_FIRST, *info.weights, *_LAST]


def flat_row(result: Trial, info: RunInfo) -> list[object]:
    """A value for each column."""
    row = row_document(result)
    reply, error = row["reply"], row["error"] or {}
    parts = row["components"]
    return [
        *(row[name] for name in _FIRST),
        *(parts[name]["score"] if name in parts else None for name in info.weights),
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
