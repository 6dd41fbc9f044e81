"""How a command goes and ends: its progress, a run's files, the terminal or JSON, the exit code, and what signals do to it."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from inspect import signature
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from answerkey.cli.flags import json_flag, output_flag
from answerkey.config import Settings, load_settings
from answerkey.errors import TargetUnreachableError
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.plugins import load_object
from answerkey.runs.progress import NoProgress, Progress, RunningScore

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress


def ends_with_run(doing: str) -> Callable[[Callable[..., Run]], Callable[..., Any]]:
    """For commands that return a run, which is then shown: adds `-o` and `--json`, gives `settings` and `progress`."""

    def add(command: Callable[..., Run]) -> Callable[..., Any]:
        @wraps(command)
        def shown(*args: Any, outputs: Sequence[Path], as_json: bool, **given: Any) -> int:
            from answerkey.report.files import check_output

            settings = load_settings()
            for path in outputs:
                check_output(path, _files_read(settings, **given))
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


def _files_read(
    settings: Settings, questions: Path | None = None, target: str | None = None, **_others: object
) -> list[Path]:
    """The golden set and the recorded replies that a command reads."""
    read = [] if questions is None else [questions]
    if questions is None and settings.questions is not None:
        read.append(settings.folder / settings.questions)
    kind, _colon, rest = (target or settings.target or "").partition(":")
    configured = settings.targets.get(kind) if not rest else None
    if kind == "replay" and rest:
        read.append(Path(rest))
    elif isinstance(configured, dict) and configured.get("replay"):
        read.append(settings.folder / str(configured["replay"]))
    return read


class Answer(NamedTuple):
    """What a command found."""

    # What `--json` prints.
    document: object
    # What people read: the text, or what prints it.
    text: str | Callable[[], object]
    code: int = 0


def answers(command: Callable[..., Answer]) -> Callable[..., Any]:
    """For commands that return an Answer: adds `--json`, and shows it; one with a parameter `quiet` is told of it."""
    asks = "quiet" in signature(command).parameters

    @wraps(command)
    def shown(*args: Any, as_json: bool, **given: Any) -> int:
        answer = command(*args, **given, **({"quiet": as_json} if asks else {}))
        if as_json:
            print_document(answer.document)
        elif callable(answer.text):
            answer.text()
        else:
            click.echo(answer.text)
        return answer.code

    return json_flag(shown)


def conclude(run: Run, *, outputs: Sequence[Path], as_json: bool) -> int:
    """Write the reports and show the run; returns the exit code."""
    if outputs:
        from answerkey.report.files import write_reports

        write_reports(run, outputs)
    if as_json:
        print_run_document(run)
    else:
        print_run(run)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from answerkey.report.markdown_file import write_to_github

        # Standard output belongs to the document; GitHub reads commands from either stream.
        write_to_github(run, sys.stderr if as_json else sys.stdout)
    if run.misconfigured:
        print(f"answerkey: {next(iter(run.summary.unscored))}", file=sys.stderr)  # noqa: T201  # one line, as errors have
        return TargetUnreachableError.exit_code
    return 0 if run.passed else 1


def gates_with(fail_on: str | None, gates: Sequence[str]) -> tuple[str, ...]:
    """The gates of a comparison: --fail-on is one, so that it too fails on an unreliable judge and on missing scores."""
    return tuple(dict.fromkeys((*gates, *(["no regression"] if fail_on else []))))


def verdict_code(verdict: str, fail_on: str | None, gates: Sequence[GateResult]) -> int:
    """The exit code of a comparison: 1 for a gate that failed and 4 for an inconclusive one, where asked for."""
    if not all(result.passed for result in gates):
        return 1
    return 4 if fail_on == "inconclusive" and verdict == "no clear difference" else 0


def print_gates(gates: Sequence[GateResult]) -> None:
    """A line for each gate of a comparison."""
    from answerkey.report.wording import gate_words

    for result in gates:
        click.echo(f"gate {'passed' if result.passed else 'FAILED'}: {gate_words(result)}")


def print_run(run: Run, *, worst: int = 10) -> None:
    """The run's report on the terminal, with its comparison where it has one."""
    from answerkey.report.terminal import print_report

    print_report(run, worst=worst)
    if run.comparison is not None:
        from answerkey.report.terminal_texts import print_comparison

        print_comparison(run.comparison)


def print_run_document(run: Run) -> None:
    """The run document on stdout, streamed."""
    from answerkey.report.row_files import write_json

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


_SECONDS_BETWEEN = 0.1
# Cells of a log's bar, at least: numbers say more.
_LEAST_BAR = 1
# What the report takes longest to load.
_FOR_THE_REPORT = ("answerkey.report.terminal", "rich.console", "rich.table", "rich.columns")


def progress_for_terminal(*, quiet: bool = False, doing: str = "asking") -> Progress:
    """A bar if a person is watching, else silence."""
    if quiet:
        return NoProgress()
    return _Bar(doing) if sys.stderr.isatty() else _Unseen()


class _Unseen(NoProgress):
    """Nobody watches, but a report will be printed: what that needs is loaded while the chatbot thinks."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        Thread(target=_load, name="answerkey-report", daemon=True).start()


def _load() -> None:
    for module in _FOR_THE_REPORT:
        load_object(module)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Bar:
    """A bar with the score so far."""

    def __init__(self, doing: str, console: "Console | None" = None) -> None:
        self._doing, self._console = doing, console
        self._shown_at = 0.0
        self._bar: RichProgress | None = None
        self._task: Any = None
        # Whether it is a log, whose replies nobody has counted, that is scored.
        self._is_log = False
        self._before = 0
        self._begun = 0.0

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._before, self._begun = done, monotonic()
        self._console = self._console or Console(stderr=True)
        self._is_log = planned is None
        note = TextColumn("{task.fields[note]}", markup=False)
        # How many replies a log has is estimated anew at every step, from which rich's column cannot tell the time left.
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
        # A log is graded faster than a person can read.
        if self._bar is None or monotonic() - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = monotonic()
        errors = f" · {running.errors} errors" if running.errors else ""
        score = "" if running.score is None else f"score {running.score:.1%}{errors}"
        if self._is_log:
            total = None if running.expected is None else max(running.expected, running.done)
            note = self._log_note(running.done, total, score)
            self._bar.update(self._task, total=total, completed=running.done, note=note)
        else:
            self._bar.update(self._task, completed=self._before + running.done, note=score)

    def _log_note(self, done: int, total: int | None, score: str) -> str:
        """How far a log is, how fast and for how long yet; what has no room is left out, first the speed, then the score."""
        taken, new = max(monotonic() - self._begun, 1e-3), done - self._before
        count, left = f"{done:,}", ""
        if total is not None:
            count += f" of {total:,}"
            left = f"{_clock(taken * (total - done) / new)} left" if new else ""
        width = self._console.width if self._console is not None else 80
        room = width - len(self._doing) - _LEAST_BAR - 2
        rate = f"{new / taken:,.0f} a second"
        for parts in ((count, score, rate, left), (count, score, left)):
            note = " · ".join(filter(None, parts))
            if len(note) <= room:
                return note
        return " · ".join(filter(None, (count, left)))

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
