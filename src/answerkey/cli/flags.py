"""Flags that several commands share, the values behind them, and the store that a command works on."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.config import Settings, load_settings
from answerkey.errors import ConfigError, UsageError
from answerkey.model.options import JudgeSettings, Options, Price, Scoring

if TYPE_CHECKING:
    from answerkey.judge.session import Judge
    from answerkey.store.sql import SqlStore

FILE = click.Path(path_type=Path)
# What adds something to a command.
Adds = Callable[[Callable[..., Any]], Callable[..., Any]]


def flag(declared: str, text: str, name: str | None = None, **more: Any) -> Adds:
    """An option, declared as its help shows it, as "--repeat K"; `name` is the parameter's, where that is another."""
    words = declared.replace(",", "").split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    return click.option(*names, *([] if name is None else [name]), metavar=metavar, help=text, **more)


def reserve_stdout() -> bool:
    """Keep standard output for the document: what native code, threads and child processes write goes to stderr.

    Ray's native code writes to file descriptor 1 until the process ends, which `redirect_stdout` cannot prevent. Returns True.
    """
    try:
        if sys.stdout.fileno() != 1:
            return True
        sys.stdout.flush()
        document = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
    except (OSError, ValueError):
        # Closed, or not a file (a notebook's, a test's).
        return True
    sys.stdout = TextIOWrapper(document, encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    return True


questions_argument = click.argument("questions", required=False, type=FILE)
json_flag = flag(
    "--json",
    "Print one JSON document on stdout and nothing else.",
    "as_json",
    is_flag=True,
    callback=lambda context, parameter, as_json: reserve_stdout() if as_json else False,
)
store_flag = flag(
    "--store URL", "Where runs are kept: a file or postgresql://… (default .answerkey/answerkey.db)."
)
match_flag = flag(
    "--match",
    "How keywords are found in replies; [scoring] match_threshold says how sure smart must be.",
    type=click.Choice(["literal", "standard", "smart"]),
)
gate_flag = flag("--gate EXPR", 'A condition, as "score >= 0.85".', "gates", multiple=True)
fail_on_flag = flag(
    "--fail-on",
    "Exit 1 if the second is worse; with inconclusive also 4 if there is no clear difference.",
    type=click.Choice(["regression", "inconclusive"]),
)
margin_flag = flag(
    "--margin M",
    "A difference within ± M does not matter (0.02 is two points): then two runs can be the same.",
    type=float,
)
budget_flag = flag(
    "--budget SUM",
    "Ask nothing more once replies and their judging have cost so much; resume goes on.",
    type=float,
)
output_flag = flag(
    "-o, --output",
    "Write a report too: .html .md .comment.md .json .jsonl .csv .xlsx .parquet .junit.xml; may be given several times.",
    "outputs",
    multiple=True,
    type=FILE,
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
    "Where the rows have a field, as answer=response.text, or the name of a column; may be given several times.",
    "fields",
    multiple=True,
    callback=_read_map_flag,
)


def print_read_as(read_as: str) -> None:
    """Say what was guessed of a file, beside what the command prints."""
    if read_as:
        from answerkey.text.normalise import for_terminal

        click.echo(for_terminal(f"read as: {read_as}"), err=True)


def opened_store(url: str | None, *, create: bool = False) -> "SqlStore":
    """The store that a command works on: `--store`, the environment's, the configured or the default one."""
    from answerkey.runs.stored import open_configured_store

    return open_configured_store(load_settings(), url, create=create)


def with_store(*, create: bool = False) -> Adds:
    """For commands that work on a store: adds `--store`, and gives it open as `store`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def opened(*args: Any, store: str | None, **given: Any) -> Any:
            with opened_store(store, create=create) as found:
                return command(*args, store=found, **given)

        return store_flag(opened)

    return add


def scoring_for(settings: Settings, match: str | None) -> Scoring:
    """The configured scoring, with the matching mode of the command line."""
    return settings.scoring if match is None else msgspec.structs.replace(settings.scoring, match=match)


def _read_by(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that reads what was given; what was not given stays None."""
    return lambda context, parameter, value: None if value in (None, ()) else read(value)


def port_flag(name: str, port: int, text: str) -> Adds:
    """An option with a port, which may also stand without one."""

    def read(given: str) -> int:
        if not given.isdecimal():
            raise UsageError(
                f"{name} {given!r} is no port; write {name}={port}, or the golden set before {name}"
            )
        return int(given)

    return flag(
        f"{name} [PORT]",
        f"{text} ({port}).",
        is_flag=False,
        flag_value=str(port),
        callback=_read_by(read),
    )


class JudgeFlags(msgspec.Struct, frozen=True):
    """What the command line says of the judge, under the names of `[judge]`; None: nothing."""

    # Empty: judging is switched off.
    model: str | tuple[str, ...] | None = None
    base_url: str | None = None
    concurrency: int | None = None
    budget: float | None = None
    prices: Price | None = None
    rubric: str | None = None

    def settings(self, base: JudgeSettings) -> JudgeSettings:
        """The judge of the configuration (or of a run), with what the command line says on top."""
        given = msgspec.structs.asdict(self)
        changes = {name: value for name, value in given.items() if value is not None}
        try:
            return msgspec.structs.replace(base, **changes) if changes else base
        except ConfigError as error:
            raise UsageError(str(error).replace("[judge] ", "--judge-").replace("_", "-")) from None

    def pair_judge(self, settings: Settings) -> "Judge | None":
        """The judge that compares pairs of replies: only one that the command line names, since it costs."""
        if not self.model:
            return None
        from answerkey.judge.session import Judge

        return Judge(self.settings(settings.judge), folder=settings.folder, prices=settings.prices)


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
        message = f"--judge-price {text!r}: write input/output per million tokens, as 0.15/0.60"
        raise UsageError(message) from None


def _read_rubric(name: str) -> str:
    """On the command line a path starts from here, in the configuration from its file."""
    return str(Path(name).absolute()) if Path(name).suffix in (".toml", ".json") else name


_JUDGE_FLAGS = (
    flag(
        "--judge MODEL",
        "Let a model grade the replies too; several make a panel; local needs no key; none switches it off.",
        "judge_model",
        multiple=True,
        callback=_read_by(_read_models),
    ),
    flag("--judge-base-url URL", "An OpenAI-compatible endpoint (OpenAI's own)."),
    flag(
        "--judge-concurrency N",
        "Judge calls under way at once (as many as questions).",
        type=click.IntRange(min=1),
    ),
    flag("--judge-budget SUM", "Stop judging when this much has been spent.", type=float),
    flag(
        "--judge-price IN/OUT",
        "What the judge costs per million tokens, as 0.15/0.60.",
        "judge_prices",
        callback=_read_by(_read_price),
    ),
    flag("--judge-rubric R", "standard, correctness, or a rubric file.", callback=_read_by(_read_rubric)),
)


def judge_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """For commands that can ask a judge: adds its flags, which arrive as `judge`."""

    @wraps(command)
    def collected(*args: Any, **given: Any) -> Any:
        flags = {name: given.pop(f"judge_{name}") for name in JudgeFlags.__struct_fields__}
        return command(*args, judge=JudgeFlags(**flags), **given)

    return _with_flags(collected, _JUDGE_FLAGS)


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
    flag("--repeat K", "Ask every question so often.", type=int),
    flag("--concurrency N", "Questions under way at once (10).", type=int),
    flag("--timeout S", "Seconds for one attempt at one question (60).", type=float),
    flag("--retries N", "Further attempts after 429, 503 or a refused connection (3).", type=int),
    flag(
        "--rate R/s", "Questions begun per second at most, as 5/s or 300/min.", callback=_read_by(_read_rate)
    ),
    flag(
        "--where FIELD=VALUE",
        "Only these questions, as category=tax.",
        multiple=True,
        callback=_read_by(tuple),
    ),
    flag("--sample N", "Only so many questions, drawn at random.", type=int),
    flag("--seed S", "Seed of the draw, and of the order in ab.", type=int),
    match_flag,
    budget_flag,
    margin_flag,
    store_flag,
    port_flag(
        "--traces", 4318, "Receive the chatbot's OpenTelemetry spans and read its tool calls from them"
    ),
    port_flag("--proxy", 4319, "Record what passes between the chatbot and its models and MCP servers"),
)


def asking_flags(name_help: str, *more: Adds) -> Adds:
    """For commands that ask a chatbot: adds these flags and `more`, called as fields of Options, which arrive as `options`.

    Gives the command the `settings` that these stand on, too, and `judge`.
    """
    named = flag("--name N", name_help)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, match: str | None, judge: JudgeFlags, **given: Any) -> Any:
            settings = given.pop("settings", None) or load_settings()
            fields = {"map": given.pop("fields", None)}
            fields |= {name: given.pop(name) for name in Options.__struct_fields__ if name in given}
            # What may be given several times and was not given at all stays as it is configured.
            chosen = {name: None if value in ((), {}) else value for name, value in fields.items()}
            options = settings.options(scoring=scoring_for(settings, match), **chosen)
            return command(*args, options=options, judge=judge, settings=settings, **given)

        return _with_flags(judge_flags(collected), (named, *more, *_ASKING_FLAGS))

    return add


def _with_flags(command: Callable[..., Any], flags: Sequence[Adds]) -> Callable[..., Any]:
    for flag in reversed(flags):
        command = flag(command)
    return command
