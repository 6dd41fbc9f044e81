"""One row per reply: the run document in JSON, JSON Lines, and CSV for spreadsheets; all are streamed.

A table that people open has flat columns first, then the nested fields as JSON.
"""

from typing import BinaryIO

from answerkey.model.result_rows import encode, result_lines
from answerkey.model.run import Run, RunInfo
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
    before = b"\n"
    for lines in result_lines(run.results):
        # No line of JSON has a break in it.
        file.write(before + lines[:-1].replace(b"\n", b",\n"))
        before = b",\n"
    file.write(b"\n]}\n")


def write_jsonl(run: Run, file: BinaryIO) -> None:
    """Write one object per result."""
    file.writelines(result_lines(run.results))


def write_csv(run: Run, file: BinaryIO) -> None:
    """Write one flat row per result."""
    columns = [Column(name=name, title=name) for name in flat_columns(run.info)]
    file.writelines(write_table(columns, (flat_row(result, run.info) for result in run.results), "csv"))


def flat_columns(info: RunInfo) -> list[str]:
    """The columns' names; a run's components stand between the score and the reasons."""
    return [*_FIRST, *info.weights, *_LAST]


def flat_row(result: Trial, info: RunInfo) -> list[object]:
    """A value for each column."""
    row = result_document(result)
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
