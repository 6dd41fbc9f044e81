"""Options that several commands share, each declared once, and how their values reach a command."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
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
    """A field of a dataclass that holds an option's value; see `grouped`."""
    return shared(flag(declared, text, name, **more))


def shared(declared: Decorator) -> Any:
    """The same for an option that several commands have."""
    return field(default=None, metadata={"flag": declared})


def grouped(kind: type, name: str, *, prefix: str = "") -> Decorator:
    """Add the options of a dataclass to a command, and pass their values to it as one parameter called `name`.

    The options' own parameters are called like the fields, with `prefix` before them.
    """
    declared = fields(kind)
    flags = [one.metadata["flag"] for one in declared]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **values: Any) -> Any:
            chosen = {one.name: values.pop(prefix + one.name) for one in declared}
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


@dataclass(frozen=True, kw_only=True)
class JudgeFlags:
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
        changes = {name: value for name, value in vars(self).items() if value is not None}
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
