"""The report `.summary.txt`: a run on one line a question."""

from typing import BinaryIO

from answerkey import Run


def write_summary(run: Run, file: BinaryIO) -> None:
    """Called with the run and the open file of `-o NAME.summary.txt`."""
    file.write(f"{run.info.name}: {run.summary.grade} {run.summary.score}\n".encode())
    for result in run.results:
        file.write(f"{result.question.id}: {result.scorecard.total}\n".encode())
