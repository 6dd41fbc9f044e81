"""How a command runs and ends: progress, signals, report files, the terminal or JSON, and the exit code."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click
import msgspec

from answerkey.cli.flags import json_flag, output_flag
from answerkey.config import Settings, load_settings
from answerkey.errors import TargetUnreachableError, UsageError
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.runs.progress import Progress, RunningScore

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress


class Answer(NamedTuple):
    """The result of a command."""

    # What `--json` prints.
    document: object
    # What people read, or a function that prints it.
    text: str | Callable[[], object]
    code: int = 0
    # Printed to stderr after the result, as errors are.
    error: str = ""


def answers(command: Callable[..., Answer]) -> Callable[..., Any]:
    """Add `--json` to a command that returns an Answer, and print it; a parameter `quiet` says whether it is JSON."""
    wants_quiet = "quiet" in signature(command).parameters

    @wraps(command)
    def printed(*args: Any, as_json: bool, **values: Any) -> int:
        if wants_quiet:
            values["quiet"] = as_json
        if as_json:
            with reserved_stdout(for_document=True) as stdout:
                answer = command(*args, **values)
                _write_document(answer.document, stdout)
        else:
            answer = command(*args, **values)
            if callable(answer.text):
                answer.text()
            else:
                click.echo(answer.text)
        if answer.error:
            _print_error(answer.error)
        return answer.code

    return json_flag(printed)


def ends_with_run(doing: str) -> Callable[[Callable[..., Run]], Callable[..., Any]]:
    """Add `-o` and `--json` to a command that returns a run, and print it; the command gets `settings` and `progress`.

    A command with several `targets` is called once with each, as `target`, and the runs are ranked.
    """

    def add(command: Callable[..., Run]) -> Callable[..., Any]:
        @wraps(command)
        def printed(*args: Any, outputs: Sequence[Path], as_json: bool, **values: Any) -> int:
            from answerkey.report.files import check_output

            settings = load_settings()
            targets = values.pop("targets", None)
            if targets is not None and len(targets) > 1:
                progress = progress_for_terminal(quiet=as_json, doing=doing)
                make_run = partial(command, *args, settings=settings, progress=progress)
                return _conclude_ranking(make_run, targets, values, outputs=outputs, as_json=as_json)
            if targets is not None:
                values["target"] = targets[0] if targets else None
            for path in outputs:
                check_output(path, _input_files(settings, **values))
            if outputs:
                # Stored with the run, so that `resume` writes what the interrupted command would have written.
                stored = [str(path.absolute()) for path in outputs]
                settings = msgspec.structs.replace(settings, run={**settings.run, "outputs": stored})
            progress = progress_for_terminal(quiet=as_json, doing=doing)
            return conclude(
                lambda: command(*args, settings=settings, progress=progress, **values),
                outputs=outputs,
                as_json=as_json,
            )

        return output_flag(json_flag(printed))

    return add


def _input_files(
    settings: Settings, questions: Path | None = None, target: str | None = None, **_others: object
) -> list[Path]:
    """The golden set and the recorded replies that a command reads."""
    files = [] if questions is None else [questions]
    if questions is None and settings.questions is not None:
        files.append(settings.folder / settings.questions)
    kind, _colon, rest = (target or settings.target or "").partition(":")
    configured = settings.targets.get(kind) if not rest else None
    if kind == "replay" and rest:
        files.append(Path(rest))
    elif isinstance(configured, dict) and configured.get("replay"):
        files.append(settings.folder / str(configured["replay"]))
    return files


def conclude(make_run: Callable[[], Run], *, outputs: Sequence[Path] = (), as_json: bool = False) -> int:
    """Make a run, write its reports, print it; returns the exit code."""
    with interruptible(), reserved_stdout(for_document=as_json) as stdout:
        run = make_run()
        if as_json:
            _write_reports(run, outputs)
            print_run_document(run, stdout)
    if not as_json:
        # With the real stdout in place, to which -o /dev/stdout writes.
        _write_reports(run, outputs)
        print_run(run)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from answerkey.report.markdown_file import write_to_github

        # GitHub reads commands from either stream; with --json, stdout has only the document.
        write_to_github(run, sys.stderr if as_json else sys.stdout)
    _notify(run)
    if run.misconfigured:
        _print_error(next(iter(run.summary.unscored)))
        return TargetUnreachableError.exit_code
    return 0 if run.passed else 1


def _conclude_ranking(
    make_run: Callable[..., Run],
    targets: Sequence[str],
    values: dict[str, Any],
    *,
    outputs: Sequence[Path],
    as_json: bool,
) -> int:
    """Make a run of each target, then print and write their ranking; returns the exit code."""
    from answerkey.comparison.run_ranking import rank
    from answerkey.report.sheets import check_sheet_output, ranking_sheet, scores_in, write_sheet
    from answerkey.report.terminal_texts import print_ranking

    for path in outputs:
        check_sheet_output(path)
    if len(set(targets)) < len(targets):
        raise UsageError("two targets are the same; name different targets")
    name, runs = values.pop("name", None), []
    with interruptible(), reserved_stdout(for_document=as_json) as stdout:
        for number, target in enumerate(targets, start=1):
            run = make_run(target=target, name=name and f"{name}-{number}", **values)
            if run.misconfigured:
                raise TargetUnreachableError(f"target {target}: {next(iter(run.summary.unscored))}")
            runs.append(run)
        gates = {run.id: run.gates for run in runs}
        ranking = rank(runs)
        ranked = tuple(msgspec.structs.replace(one, gates=gates[one.id]) for one in ranking.runs)
        ranking = msgspec.structs.replace(ranking, runs=ranked)
        document = msgspec.to_builtins(ranking)
        if as_json:
            _write_document(document, stdout)
    for path in outputs:
        write_sheet(ranking_sheet(ranking, scores_in(path)), document, path)
    if not as_json:
        print_ranking(ranking)
    for run in runs:
        _notify(run)
    return 0 if all(run.passed for run in runs) else 1


def _notify(run: Run) -> None:
    settings = load_settings().notify
    if settings.configured:
        from answerkey.report.notify import run_notice, send_notice

        if (notice := run_notice(run, settings)) is not None:
            for problem in send_notice(notice, settings):
                _print_error(problem)


def _write_reports(run: Run, outputs: Sequence[Path]) -> None:
    paths = outputs or [Path(path) for path in run.info.options.outputs]
    if paths:
        from answerkey.report.files import write_reports

        write_reports(run, paths)


def gates_with(fail_on: str | None, gates: Sequence[str]) -> tuple[str, ...]:
    """The gates of a comparison. --fail-on adds one, so that an unreliable judge or missing scores fail it too."""
    return tuple(dict.fromkeys((*gates, *(["no regression"] if fail_on else []))))


def verdict_code(verdict: str, fail_on: str | None, gates: Sequence[GateResult]) -> int:
    """The exit code of a comparison: 1 if a gate failed, 4 if it is inconclusive and --fail-on asks for that."""
    if not all(result.passed for result in gates):
        return 1
    return 4 if fail_on == "inconclusive" and verdict == "no clear difference" else 0


def print_gates(gates: Sequence[GateResult]) -> None:
    """Print a line for each gate of a comparison."""
    from answerkey.report.wording import gate_words

    for result in gates:
        click.echo(f"gate {'passed' if result.passed else 'FAILED'}: {gate_words(result)}")


def print_run(run: Run, *, worst: int = 10) -> None:
    """Print the run's report on the terminal, with its comparison if it has one."""
    from answerkey.report.terminal import print_report

    print_report(run, worst=worst)
    if run.comparison is not None:
        from answerkey.report.terminal_texts import print_comparison

        print_comparison(run.comparison, causes=False)
    if not run.passed:
        from answerkey.report.terminal import make_console
        from answerkey.report.terminal_texts import print_failed_gates

        print_failed_gates(run, make_console())


def print_run_document(run: Run, stdout: BinaryIO | None = None) -> None:
    """Stream the run document to stdout."""
    from answerkey.model.result_rows import write_json

    stream = stdout or sys.stdout.buffer
    write_json(run, stream)
    stream.flush()


def print_document(document: object) -> None:
    """Print one JSON document on stdout."""
    _write_document(document, sys.stdout.buffer)


def _write_document(document: object, stream: BinaryIO) -> None:
    from answerkey.model.result_rows import encode

    stream.write(encode(document) + b"\n")
    stream.flush()


def _print_error(message: str) -> None:
    click.echo(f"answerkey: {message}", err=True)


@contextmanager
def reserved_stdout(*, for_document: bool) -> Iterator[BinaryIO]:
    """Yield the real stdout, and send whatever else is printed meanwhile to stderr.

    This includes what native code, threads and child processes print: scorers, libraries and clusters must not disturb
    the one document of `--json`. After the document, nothing of them may follow until the process ends.
    """
    before = sys.stdout
    before.flush()
    try:
        own = os.dup(before.fileno())
        is_process_stdout = before.fileno() == 1
    except (OSError, ValueError):
        # A stream in memory.
        with redirect_stdout(sys.stderr):
            yield before.buffer
        return
    with redirect_stdout(sys.stderr), os.fdopen(own, "wb") as stream:
        saved = os.dup(1)
        with suppress(OSError):
            os.dup2(2, 1)
        try:
            yield stream
        finally:
            if not (for_document and is_process_stdout):
                os.dup2(saved, 1)
            os.close(saved)


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that the run can be resumed; an ignored signal (nohup) stays ignored."""
    before = {}
    # Windows has no SIGHUP, and only the main thread may set handlers.
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
        # A background job of a shell.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


_SECONDS_BETWEEN_UPDATES = 0.1
# Width of a log's bar, at least: the numbers beside it say more.
_SHORTEST_BAR = 1


def progress_for_terminal(*, quiet: bool = False, doing: str = "asking") -> Progress:
    """A progress bar if stderr is a terminal, else nothing."""
    return ProgressBar(doing) if sys.stderr.isatty() and not quiet else Progress()


class ProgressBar(Progress):
    """A bar with the score so far."""

    def __init__(self, doing: str, console: "Console | None" = None) -> None:
        self._doing, self._console = doing, console
        self._updated_at = 0.0
        self._bar: RichProgress | None = None
        self._task: Any = None
        # Whether this is a log, whose number of replies is an estimate.
        self._is_log = False
        self._done_before = 0
        self._started_at = 0.0

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._done_before, self._started_at = done, monotonic()
        self._console = self._console or Console(stderr=True)
        self._is_log = planned is None
        note = TextColumn("{task.fields[note]}", markup=False)
        # The estimate of a log's length changes with every update, which rich's own column for the time left cannot handle.
        live = (BarColumn(), MofNCompleteColumn(), note, TimeRemainingColumn())
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            *((BarColumn(bar_width=None), note) if self._is_log else live),
            console=self._console,
            transient=True,
            refresh_per_second=5,
            expand=self._is_log,
        )
        self._task = self._bar.add_task(self._doing, total=planned, completed=done, note="")
        self._bar.start()

    def advance(self, running: RunningScore) -> None:
        # A log is graded faster than anyone can read.
        if self._bar is None or monotonic() - self._updated_at < _SECONDS_BETWEEN_UPDATES:
            return
        self._updated_at = monotonic()
        errors = f" · {running.errors} errors" if running.errors else ""
        score = "" if running.score is None else f"score {running.score:.1%}{errors}"
        if self._is_log:
            total = None if running.expected is None else max(running.expected, running.done)
            note = self._log_note(running.done, total, score)
            self._bar.update(self._task, total=total, completed=running.done, note=note)
        else:
            self._bar.update(self._task, completed=self._done_before + running.done, note=score)

    def _log_note(self, done: int, total: int | None, score: str) -> str:
        """Count, score, speed and time left; where they do not fit, without the speed, then without the score."""
        seconds, new = max(monotonic() - self._started_at, 1e-3), done - self._done_before
        count, left = f"{done:,}", ""
        if total is not None:
            count += f" of {total:,}"
            left = f"{_clock(seconds * (total - done) / new)} left" if new else ""
        width = self._console.width if self._console is not None else 80
        room = width - len(self._doing) - _SHORTEST_BAR - 2
        rate = f"{new / seconds:,.0f} a second"
        for parts in ((count, score, rate, left), (count, score, left)):
            note = " · ".join(filter(None, parts))
            if len(note) <= room:
                return note
        return " · ".join(filter(None, (count, left)))

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
