"""What happens to a finished run on the command line: gates, files, the terminal or JSON, the exit code."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from answerkey.run import Run, run_header

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["conclude", "print_json"]


def conclude(
    run: Run,
    *,
    outputs: Sequence[Path],
    as_json: bool,
    gates: Sequence[str] = (),
    baseline: str | None = None,
    store: "SqlStore | None" = None,
) -> int:
    """Judge the gates, write the reports, show the run; returns the exit code."""
    if gates:
        from answerkey.gate import evaluate_gates

        comparison = None
        run = msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, run_header(run), comparison)))
    from answerkey.report.writers import write_reports

    write_reports(run, outputs)
    if as_json:
        print_json(run)
    else:
        from answerkey.report.terminal import print_report

        print_report(run)
    return 0 if all(gate.passed for gate in run.gates) else 1


def print_json(run: Run) -> None:
    """The run document on stdout, streamed."""
    from answerkey.report.json_ import write_json

    write_json(run, sys.stdout.buffer)
    sys.stdout.buffer.flush()
