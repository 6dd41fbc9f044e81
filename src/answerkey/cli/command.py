"""What commands share: options, each declared once, and how a command runs and ends.

A command ends with its progress, signals, report files, the terminal or JSON, and the exit code.
"""

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
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from answerkey.config import Settings, load_settings
from answerkey.errors import ConfigError, TargetUnreachableError, UsageError
from answerkey.model.options import JudgeSettings, Options, Price, Scoring
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.protocols import Progress, RunningScore

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from answerkey.judge.session import Judge
    from answerkey.store.sql import SqlStore


FILE = click.Path(path_type=Path)
# A decorator of command functions.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def flag(declared: str, text: str, name: str | None = None, **more: Any) -> Decorator:
    """Declare an option the way its help shows it, e.g. "--repeat K"; `name` is the parameter, if it differs."""
    words = declared.replace(",", "").split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    return click.option(*names, *([] if name is None else [name]), metavar=metavar, help=text, **more)


questions_argument = click.argument("questions", required=False, type=FILE)


def inputs_argument(name: str) -> Decorator:
    """One or more files, folders, patterns and addresses."""

    def read(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[Path, ...]:
        from answerkey.transcripts.files import input_path

        return tuple(map(input_path, value))

    return click.argument(
        name, nargs=-1, required=True, type=click.Path(), metavar=f"{name.upper()}...", callback=read
    )


json_flag = flag("--json", "Print one JSON document on stdout and nothing else.", "as_json", is_flag=True)
store_flag = flag("--store URL", "Store: a file or postgresql://… (default .answerkey/answerkey.db).")
match_flag = flag(
    "--match",
    "How keywords are matched; [scoring] match_threshold sets how sure smart must be.",
    type=click.Choice(["literal", "standard", "smart"]),
)
gate_flag = flag(
    "--gate EXPR", 'Fail unless this holds, e.g. "score >= 0.85" (repeatable).', "gates", multiple=True
)
fail_on_flag = flag(
    "--fail-on",
    "regression: exit 1 if the candidate is worse; inconclusive: also exit 4 if there is no clear difference.",
    type=click.Choice(["regression", "inconclusive"]),
)
margin_flag = flag("--margin M", "Treat differences within ±M as equivalent (0.02 = 2 points).", type=float)
budget_flag = flag(
    "--budget SUM", "Stop when replies and judging have cost SUM; `resume` continues.", type=float
)
output_flag = flag(
    "-o, --output",
    "Write a report: .html .md .comment.md .json .jsonl .csv .xlsx .parquet .junit.xml "
    ".otlp.json .langfuse.json .mlflow.json (repeatable).",
    "outputs",
    multiple=True,
    type=FILE,
)
ray_address_flag = flag(
    "--ray-address HOST:PORT", "Ray address (default: the cluster of this machine, or a local one)."
)


def _read_map_flag(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    if not value:
        return {}
    from answerkey.transcripts.row_files import read_map

    return read_map(value)


map_flag = flag(
    "--map FIELD=JMESPATH",
    "Map a field to a JMESPath or column, e.g. answer=response.text (repeatable).",
    "fields",
    multiple=True,
    callback=_read_map_flag,
)


def print_read_as(read_as: str) -> None:
    """Print to stderr how a file's format was guessed."""
    if read_as:
        from answerkey.text.normalise import for_terminal

        click.echo(for_terminal(f"read as: {read_as}"), err=True)


def opened_store(url: str | None, *, create: bool = False) -> "SqlStore":
    """Open the store: `--store`, else the environment's, else the configured or the default one."""
    from answerkey.runs.stored import open_configured_store

    return open_configured_store(load_settings(), url, create=create)


def with_store(*, create: bool = False) -> Decorator:
    """Add `--store` to a command, and pass it the open store as `store`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_open_store(*args: Any, store: str | None, **values: Any) -> Any:
            with opened_store(store, create=create) as opened:
                return command(*args, store=opened, **values)

        return store_flag(with_open_store)

    return add


def scoring_for(settings: Settings, match: str | None) -> Scoring:
    """The configured scoring, with `--match` applied."""
    return settings.scoring if match is None else msgspec.structs.replace(settings.scoring, match=match)


def option(declared: str, text: str, name: str | None = None, **more: Any) -> Any:
    """A field of a struct that holds an option's value; its default is the declaration of the option, see `grouped`."""
    return shared(flag(declared, text, name, **more))


def shared(declared: Decorator) -> Any:
    """The same for an option that several commands have."""
    return declared


def grouped(kind: type[msgspec.Struct], name: str, *, prefix: str = "") -> Decorator:
    """Add the options of a struct to a command, and pass their values to it as one parameter called `name`.

    The options' own parameters are called like the fields, with `prefix` before them.
    """
    fields, flags = kind.__struct_fields__, kind.__struct_defaults__

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **values: Any) -> Any:
            chosen = {field: values.pop(prefix + field) for field in fields}
            return command(*args, **{name: kind(**chosen)}, **values)

        return _with_flags(collected, flags)

    return add


def _read_by(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that parses its value; an option that was not used stays None."""
    return lambda context, parameter, value: None if value in (None, ()) else read(value)


def port_flag(name: str, port: int, text: str) -> Decorator:
    """An option whose port may be left out."""

    def read(value: str) -> int:
        if not value.isdecimal():
            raise UsageError(
                f"{name}: {value!r} is not a port; write {name}={port}, or put the golden set before {name}"
            )
        return int(value)

    return flag(
        f"{name} [PORT]",
        f"{text} (default port {port}).",
        is_flag=False,
        flag_value=str(port),
        callback=_read_by(read),
    )


def _read_models(names: tuple[str, ...]) -> str | tuple[str, ...]:
    if names == ("none",):
        return ()
    return names[0] if len(names) == 1 else names


def _read_price(text: str) -> Price:
    """Prices per million tokens from "0.15/0.60", input before output."""
    first, _, second = text.partition("/")
    try:
        return Price(input=float(first), output=float(second))
    except (ValueError, ConfigError):
        message = f"--judge-price {text!r}: write input/output per million tokens, e.g. 0.15/0.60"
        raise UsageError(message) from None


def _read_rubric(name: str) -> str:
    """Paths on the command line are relative to the current folder, not to the configuration."""
    return str(Path(name).absolute()) if Path(name).suffix in (".toml", ".json") else name


class JudgeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's options, under the names of `[judge]`; None: not given."""

    # Empty: judging is disabled.
    model: str | tuple[str, ...] | None = option(
        "--judge MODEL",
        "Also grade with this model (repeatable: a panel); local needs no key, none disables judging.",
        "judge_model",
        multiple=True,
        callback=_read_by(_read_models),
    )
    base_url: str | None = option("--judge-base-url URL", "OpenAI-compatible endpoint (default: OpenAI).")
    concurrency: int | None = option(
        "--judge-concurrency N",
        "Maximum concurrent judge calls (default: as --concurrency).",
        type=click.IntRange(min=1),
    )
    budget: float | None = option("--judge-budget SUM", "Stop judging when it has cost SUM.", type=float)
    prices: Price | None = option(
        "--judge-price IN/OUT",
        "Judge price per million tokens, e.g. 0.15/0.60.",
        "judge_prices",
        callback=_read_by(_read_price),
    )
    rubric: str | None = option(
        "--judge-rubric R",
        "Rubric: standard, correctness, or a file.",
        callback=_read_by(_read_rubric),
    )

    def settings(self, base: JudgeSettings) -> JudgeSettings:
        """The settings of the configuration (or of a run), overridden by the options given."""
        changes = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        try:
            return msgspec.structs.replace(base, **changes) if changes else base
        except ConfigError as error:
            raise UsageError(str(error).replace("[judge] ", "--judge-").replace("_", "-")) from None

    def pair_judge(self, settings: Settings) -> "Judge | None":
        """The judge that compares pairs of replies; only with `--judge`, since it costs."""
        if not self.model:
            return None
        from answerkey.judge.session import Judge

        return Judge(self.settings(settings.judge), folder=settings.folder, prices=settings.prices)


# For commands that can use a judge; its options arrive as `judge`.
judge_flags = grouped(JudgeFlags, "judge", prefix="judge_")


def _read_rate(text: str) -> float:
    """Questions per second from "5", "5/s" or "300/min"."""
    number, _, unit = text.partition("/")
    seconds = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}.get(unit.strip())
    try:
        rate = float(number) / seconds if seconds else 0.0
    except ValueError:
        rate = 0.0
    if not rate > 0:
        raise UsageError(f"--rate {text!r}: write it as 5/s or 300/min")
    return rate


_ASKING_FLAGS = (
    flag("--repeat K", "Ask each question K times.", type=int),
    flag("--concurrency N", "Maximum concurrent questions (default 10).", type=int),
    flag("--timeout S", "Timeout of one attempt in seconds (default 60).", type=float),
    flag("--retries N", "Retries after 429, 503 or a refused connection (default 3).", type=int),
    flag("--rate R/s", "Maximum questions per second, e.g. 5/s or 300/min.", callback=_read_by(_read_rate)),
    flag(
        "--where FIELD=VALUE",
        "Use only matching questions, e.g. category=tax (repeatable).",
        multiple=True,
        callback=_read_by(tuple),
    ),
    flag("--sample N", "Use a random sample of N questions.", type=int),
    flag("--seed S", "Random seed for sampling and for `ab` order.", type=int),
    match_flag,
    budget_flag,
    margin_flag,
    store_flag,
    port_flag(
        "--traces", 4318, "Receive the chatbot's OpenTelemetry spans and read its tool calls from them"
    ),
    port_flag("--proxy", 4319, "Record the chatbot's traffic with model APIs and MCP servers"),
)


def asking_flags(name_help: str, *more: Decorator) -> Decorator:
    """For commands that ask a chatbot: add these options and `more`, named as fields of Options.

    The command gets them as `options`, and also `settings` and `judge`.
    """
    named = flag("--name N", name_help)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, match: str | None, judge: JudgeFlags, **values: Any) -> Any:
            settings = values.pop("settings", None) or load_settings()
            given = {"map": values.pop("fields", None)}
            given |= {name: values.pop(name) for name in Options.__struct_fields__ if name in values}
            # A repeatable option that was not used must not override the configuration.
            chosen = {name: None if value in ((), {}) else value for name, value in given.items()}
            options = settings.options(scoring=scoring_for(settings, match), **chosen)
            return command(*args, options=options, judge=judge, settings=settings, **values)

        return _with_flags(judge_flags(collected), (named, *more, *_ASKING_FLAGS))

    return add


def _with_flags(command: Callable[..., Any], flags: Sequence[Decorator]) -> Callable[..., Any]:
    for flag in reversed(flags):
        command = flag(command)
    return command


class Answer(msgspec.Struct, frozen=True):
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
                with until_closed(stdout):
                    _write_document(answer.document, stdout)
        else:
            answer = command(*args, **values)
            with until_closed(sys.stdout):
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
            from answerkey.report.result_files import check_output

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
            with until_closed(stdout):
                print_run_document(run, stdout)
    if not as_json:
        # With the real stdout in place, to which -o /dev/stdout writes.
        _write_reports(run, outputs)
        with until_closed(sys.stdout):
            print_run(run)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from answerkey.report.documents import write_to_github

        # GitHub reads commands from either stream; with --json, stdout has only the document.
        commands = sys.stderr if as_json else sys.stdout
        with until_closed(commands):
            write_to_github(run, commands)
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
            with until_closed(stdout):
                _write_document(document, stdout)
    for path in outputs:
        write_sheet(ranking_sheet(ranking, scores_in(path)), document, path)
    if not as_json:
        with until_closed(sys.stdout):
            print_ranking(ranking)
    for run in runs:
        _notify(run)
    return 0 if all(run.passed for run in runs) else 1


def _notify(run: Run) -> None:
    settings = load_settings().notify
    if settings.configured:
        from answerkey.report.wording import run_notice, send_notice

        if (notice := run_notice(run, settings)) is not None:
            for problem in send_notice(notice, settings):
                _print_error(problem)


def _write_reports(run: Run, outputs: Sequence[Path]) -> None:
    paths = outputs or [Path(path) for path in run.info.options.outputs]
    if paths:
        from answerkey.report.result_files import write_reports

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
        from answerkey.report.layout import make_console
        from answerkey.report.terminal_texts import print_failed_gates

        print_failed_gates(run, make_console())


def print_run_document(run: Run, stdout: BinaryIO | None = None) -> None:
    from answerkey.model.run_document import write_json

    stream = stdout or sys.stdout.buffer
    write_json(run, stream)
    stream.flush()


def print_document(document: object) -> None:
    _write_document(document, sys.stdout.buffer)


def _write_document(document: object, stream: BinaryIO) -> None:
    from answerkey.model.run_document import encode

    stream.write(encode(document) + b"\n")
    stream.flush()


def _print_error(message: str) -> None:
    click.echo(f"answerkey: {message}", err=True)


@contextmanager
def until_closed(stream: IO[Any]) -> Iterator[None]:
    """Print until the reader (head, less) closes the pipe: the exit code says how the command ended all the same."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        with Path(os.devnull).open("wb") as nothing:
            # For what is still buffered, or printed later.
            os.dup2(nothing.fileno(), stream.fileno())


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
# Width of a bar, at least: the numbers beside it say more.
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
        # None: a log, whose number of replies is an estimate that changes.
        self._planned: int | None = None
        self._done_before = 0
        self._started_at = 0.0

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._planned, self._done_before, self._started_at = planned, done, monotonic()
        self._console = self._console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[note]}", markup=False),
            console=self._console,
            transient=True,
            refresh_per_second=5,
            expand=True,
        )
        self._task = self._bar.add_task(self._doing, total=planned, completed=done, note="")
        self._bar.start()

    def advance(self, running: RunningScore) -> None:
        # A log is graded faster than anyone can read.
        if self._bar is None or monotonic() - self._updated_at < _SECONDS_BETWEEN_UPDATES:
            return
        self._updated_at = monotonic()
        done, total = running.done, running.expected
        if self._planned is not None:
            done, total = self._done_before + done, self._planned
        total = None if total is None else max(total, done)
        errors = f" · {running.errors} errors" if running.errors else ""
        score = "" if running.score is None else f"score {running.score:.1%}{errors}"
        self._bar.update(self._task, total=total, completed=done, note=self._note(done, total, score))

    def _note(self, done: int, total: int | None, score: str) -> str:
        """Count, score, speed of a log and time left; where they do not fit, without the speed, then without the score."""
        seconds, new = max(monotonic() - self._started_at, 1e-3), done - self._done_before
        count, left = f"{done:,}", ""
        if total is not None:
            count += f" of {total:,}"
            left = f"{_clock(seconds * (total - done) / new)} left" if new else ""
        width = self._console.width if self._console is not None else 80
        room = width - len(self._doing) - _SHORTEST_BAR - 2
        rate = f"{new / seconds:,.0f} a second" if self._planned is None else ""
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
