"""Flags that several commands share, the values behind them, and the store that a command works on."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.config import Settings, load_settings
from answerkey.errors import ConfigError, UsageError
from answerkey.model.options import JudgeSettings, Options, Scoring
from answerkey.model.prices import Price

if TYPE_CHECKING:
    from answerkey.judge.configured_judge import Judge
    from answerkey.store.sql import SqlStore

__all__ = [
    "FILE",
    "AskingFlags",
    "JudgeFlags",
    "asking_flags",
    "budget_flag",
    "fail_on_flag",
    "gate_flag",
    "json_flag",
    "judge_flags",
    "map_flag",
    "margin_flag",
    "match_flag",
    "opened_store",
    "output_flag",
    "port_flag",
    "print_read_as",
    "questions_argument",
    "scoring_for",
    "store_flag",
]

FILE = click.Path(path_type=Path)

questions_argument = click.argument("questions", required=False, type=FILE)
json_flag = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
store_flag = click.option(
    "--store",
    metavar="URL",
    help="Where runs are kept: a file or postgresql://… (default .answerkey/answerkey.db).",
)
match_flag = click.option(
    "--match",
    type=click.Choice(["literal", "standard", "smart"]),
    help="How keywords are found in replies; [scoring] match_threshold says how sure smart must be.",
)
gate_flag = click.option(
    "--gate", "gates", multiple=True, metavar="EXPR", help='A condition, as "score >= 0.85".'
)
fail_on_flag = click.option(
    "--fail-on",
    type=click.Choice(["regression", "inconclusive"]),
    help="Exit 1 if the second is worse; with inconclusive also 4 if there is no clear difference.",
)
margin_flag = click.option(
    "--margin",
    type=float,
    metavar="M",
    help="A difference within ± M does not matter (0.02 is two points): then two runs can be the same.",
)
budget_flag = click.option(
    "--budget",
    type=float,
    metavar="SUM",
    help="Ask nothing more once replies and their judging have cost so much; resume goes on.",
)
output_flag = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    help="Write a report too: .html .md .comment.md .json .jsonl .csv .parquet .junit.xml; may be given several times.",
)


def _read_map_flag(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    from answerkey.transcripts.field_map import read_map

    return read_map(value)


map_flag = click.option(
    "--map",
    "fields",
    multiple=True,
    metavar="FIELD=JMESPATH",
    callback=_read_map_flag,
    help="Where the rows have a field, as answer=response.text, or the name of a column; may be given several times.",
)


def print_read_as(read_as: str) -> None:
    """Say what was guessed of a file, beside what the command prints."""
    if read_as:
        from answerkey.text.sanitise import for_terminal

        click.echo(for_terminal(f"read as: {read_as}"), err=True)


def opened_store(url: str | None, *, create: bool = False) -> "SqlStore":
    """The store that a command works on: `--store`, the environment's, the configured or the default one."""
    from answerkey.evaluation.stored import open_configured_store

    return open_configured_store(load_settings(), url, create=create)


def scoring_for(settings: Settings, match: str | None) -> Scoring:
    """The configured scoring, with the matching mode of the command line."""
    return settings.scoring if match is None else msgspec.structs.replace(settings.scoring, match=match)


def _bundle(
    argument: str, flags: type[msgspec.Struct], options: Sequence[Callable[..., Any]], prefix: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a command these options; they arrive as one argument, a struct of `flags`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **given: Any) -> Any:
            values = {name: given.pop(prefix + name) for name in flags.__struct_fields__}
            return command(*args, **given, **{argument: flags(**values)})

        for option in reversed(options):
            collected = option(collected)
        return collected

    return add


def _read_by(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that reads what was given; what was not given stays None."""
    return lambda context, parameter, value: None if value in (None, ()) else read(value)


def port_flag(flag: str, port: int, text: str) -> Callable[..., Any]:
    """An option with a port, which may also stand without one."""

    def read(given: str) -> int:
        if not given.isdecimal():
            raise UsageError(
                f"{flag} {given!r} is no port; write {flag}={port}, or the golden set before {flag}"
            )
        return int(given)

    return click.option(
        flag,
        is_flag=False,
        flag_value=str(port),
        metavar="[PORT]",
        callback=_read_by(read),
        help=f"{text} ({port}).",
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
        from answerkey.judge.configured_judge import Judge

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


# The flags of commands that can ask a judge.
judge_flags = _bundle(
    "judge",
    JudgeFlags,
    (
        click.option(
            "--judge",
            "judge_model",
            multiple=True,
            metavar="MODEL",
            callback=_read_by(_read_models),
            help="Let a model grade the replies too; several make a panel; local needs no key; none switches it off.",
        ),
        click.option("--judge-base-url", metavar="URL", help="An OpenAI-compatible endpoint (OpenAI's own)."),
        click.option(
            "--judge-concurrency",
            type=click.IntRange(min=1),
            metavar="N",
            help="Judge calls under way at once (as many as questions).",
        ),
        click.option(
            "--judge-budget", type=float, metavar="SUM", help="Stop judging when this much has been spent."
        ),
        click.option(
            "--judge-price",
            "judge_prices",
            metavar="IN/OUT",
            callback=_read_by(_read_price),
            help="What the judge costs per million tokens, as 0.15/0.60.",
        ),
        click.option(
            "--judge-rubric",
            metavar="R",
            callback=_read_by(_read_rubric),
            help="standard, correctness, or a rubric file.",
        ),
    ),
    prefix="judge_",
)


class AskingFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of the asking; None: as the configuration has it."""

    repeat: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    rate: float | None = None
    where: tuple[str, ...] | None = None
    sample: int | None = None
    seed: int | None = None
    match: str | None = None

    def options(self, settings: Settings, **more: Any) -> Options:
        """The options of a run: the configuration's, with the command line's on top."""
        given = msgspec.structs.asdict(self)
        return settings.options(scoring=scoring_for(settings, given.pop("match")), **given, **more)


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


# The flags of commands that ask a chatbot.
asking_flags = _bundle(
    "asking",
    AskingFlags,
    (
        click.option("--repeat", type=int, metavar="K", help="Ask every question so often."),
        click.option("--concurrency", type=int, metavar="N", help="Questions under way at once (10)."),
        click.option(
            "--timeout", type=float, metavar="S", help="Seconds for one attempt at one question (60)."
        ),
        click.option(
            "--retries",
            type=int,
            metavar="N",
            help="Further attempts after 429, 503 or a refused connection (3).",
        ),
        click.option(
            "--rate",
            metavar="R/s",
            callback=_read_by(_read_rate),
            help="Questions begun per second at most, as 5/s or 300/min.",
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="FIELD=VALUE",
            callback=_read_by(tuple),
            help="Only these questions, as category=tax.",
        ),
        click.option("--sample", type=int, metavar="N", help="Only so many questions, drawn at random."),
        click.option("--seed", type=int, metavar="S", help="Seed of the draw, and of the order in ab."),
        match_flag,
    ),
)
