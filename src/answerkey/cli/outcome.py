"""How a command ends: a run's files, the terminal or JSON, the exit code, and what signals do to it."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec

from answerkey.cli.flags import json_flag, output_flag
from answerkey.config import load_settings
from answerkey.errors import TargetUnreachableError
from answerkey.model.run import Run

__all__ = [
    "conclude",
    "ends_with_run",
    "print_document",
    "print_run_document",
    "stopped_like_ctrl_c",
    "verdict_code",
]


def ends_with_run(doing: str) -> Callable[[Callable[..., Run]], Callable[..., Any]]:
    """For commands that return a run, which is then shown: adds `-o` and `--json`, gives `settings` and `progress`."""

    def add(command: Callable[..., Run]) -> Callable[..., Any]:
        @wraps(command)
        def shown(*args: Any, outputs: Sequence[Path], as_json: bool, **given: Any) -> int:
            from answerkey.cli.progress import progress_for_terminal
            from answerkey.report.files import check_output

            settings = load_settings()
            for path in outputs:
                check_output(path)
            if outputs:
                # A run keeps them, so that `resume` can write what an interrupted one was to write.
                kept = [str(path.absolute()) for path in outputs]
                settings = msgspec.structs.replace(settings, run={**settings.run, "outputs": kept})
            progress = progress_for_terminal(quiet=as_json, doing=doing)
            # Own scorers and checks may print; standard output belongs to what is concluded.
            with stopped_like_ctrl_c(), redirect_stdout(sys.stderr):
                run = command(*args, settings=settings, progress=progress, **given)
            written = outputs or [Path(path) for path in run.info.options.outputs]
            return conclude(run, outputs=written, as_json=as_json)

        return output_flag(json_flag(shown))

    return add


def conclude(run: Run, *, outputs: Sequence[Path], as_json: bool) -> int:
    """Write the reports and show the run; returns the exit code."""
    if outputs:
        from answerkey.report.files import write_reports

        write_reports(run, outputs)
    if as_json:
        print_run_document(run)
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
    if run.summary.misconfigured:
        print(f"answerkey: {next(iter(run.summary.unscored))}", file=sys.stderr)  # noqa: T201  # one line, as errors have
        return TargetUnreachableError.exit_code
    return 0 if run.passed else 1


def verdict_code(verdict: str, fail_on: str | None) -> int:
    """The exit code of a comparison: 1 for a regression and 4 for an inconclusive one, where asked for."""
    if fail_on is not None and verdict == "worse":
        return 1
    return 4 if fail_on == "inconclusive" and verdict == "no clear difference" else 0


def print_run_document(run: Run) -> None:
    """The run document on stdout, streamed."""
    from answerkey.report.json_file import write_json

    write_json(run, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def print_document(document: object) -> None:
    """One JSON document on stdout."""
    from answerkey.model.result_rows import encode

    sys.stdout.buffer.write(encode(document) + b"\n")
    sys.stdout.buffer.flush()


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """While the body runs, SIGTERM and SIGHUP end a run resumable with all it has; one that is ignored (nohup) stays so."""
    before = {}
    # Windows has no SIGHUP, and only the main thread may decide.
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a shell's background.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
