"""What happens to a finished run on the command line: files, the terminal or JSON, the exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from answerkey.model.run import Run

__all__ = ["conclude", "print_json"]


def conclude(run: Run, *, outputs: Sequence[Path], as_json: bool) -> int:
    """Write the reports and show the run; returns the exit code."""
    if outputs:
        from answerkey.report.files import write_reports

        write_reports(run, outputs)
    if as_json:
        print_json(run)
    else:
        from answerkey.report.terminal import print_report

        print_report(run)
        if run.comparison is not None:
            from answerkey.report.comparison_text import print_comparison

            print_comparison(run.comparison)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from answerkey.report.github import write_to_github

        # Standard output belongs to the document; GitHub reads commands from either stream.
        write_to_github(run, sys.stderr if as_json else sys.stdout)
    return 0 if run.passed else 1


def print_json(run: Run) -> None:
    """The run document on stdout, streamed."""
    from answerkey.report.json_file import write_json

    write_json(run, sys.stdout.buffer)
    sys.stdout.buffer.flush()
