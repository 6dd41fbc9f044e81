"""What happens to a finished run on the command line: gates, files, the terminal or JSON, the exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from answerkey.model.run import Run

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
    comparison = None
    if gates or baseline is not None:
        from answerkey.comparison.judging import judge_run
        from answerkey.gate import check_gates

        found = None if baseline is None or store is None else store.find_run(baseline)
        run, comparison = judge_run(run, check_gates(gates, baseline), baseline=found, store=store)
    from answerkey.report.files import write_reports

    write_reports(run, outputs)
    if as_json:
        print_json(run)
    else:
        from answerkey.report.terminal import print_report

        print_report(run)
        if comparison is not None:
            from answerkey.report.comparison_text import flips_shown, print_comparison
            from answerkey.store.score_rows import question_texts

            questions = {} if store is None else question_texts(store, run.info, flips_shown(comparison))
            print_comparison(comparison, questions=questions)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from answerkey.report.github import tell_github

        # Standard output belongs to the document; GitHub reads commands from either stream.
        tell_github(run, comparison, sys.stderr if as_json else sys.stdout)
    return 0 if all(gate.passed for gate in run.gates) else 1


def print_json(run: Run) -> None:
    """The run document on stdout, streamed."""
    from answerkey.report.json_file import write_json

    write_json(run, sys.stdout.buffer)
    sys.stdout.buffer.flush()
