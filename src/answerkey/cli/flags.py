"""Flags that several commands share, and the values behind them."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.config import Settings
from answerkey.errors import ConfigError, UsageError
from answerkey.model.options import JudgePrices, JudgeSettings, Options, Scoring

if TYPE_CHECKING:
    from answerkey.judge.configured_judge import Judge
    from answerkey.store.sql import SqlStore

__all__ = [
    "AskingFlags",
    "JudgeFlags",
    "asking_flags",
    "json_flag",
    "judge_flags",
    "match_flag",
    "output_flag",
    "parse_price",
    "parse_rate",
    "scoring_for",
    "store_flag",
    "store_opener",
]

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
    help="How keywords are found in replies; [scoring] embeddings = true lets smart find synonyms.",
)
output_flag = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write a report too: .html .md .json .jsonl .csv .parquet .junit.xml; may be given several times.",
)


class JudgeFlags(msgspec.Struct, frozen=True):
    """What the command line says of the judge."""

    models: tuple[str, ...] = ()
    base_url: str | None = None
    budget: float | None = None
    price: str | None = None
    rubric: str | None = None
    concurrency: int | None = None

    def settings(self, base: JudgeSettings) -> JudgeSettings:
        """The judge of the configuration (or of a run), with what the command line says on top."""
        changes: dict[str, Any] = {}
        if self.models:
            none = self.models == ("none",)
            changes["model"] = () if none else self.models[0] if len(self.models) == 1 else self.models
        if self.base_url is not None:
            changes["base_url"] = self.base_url
        if self.budget is not None:
            changes["budget"] = self.budget
        if self.concurrency is not None:
            changes["concurrency"] = self.concurrency
        if self.price is not None:
            changes["prices"] = parse_price(self.price)
        if self.rubric is not None:
            named = Path(self.rubric).suffix in (".toml", ".json")
            # On the command line a path starts from here, in the configuration from its file.
            changes["rubric"] = str(Path(self.rubric).absolute()) if named else self.rubric
        if not changes:
            return base
        try:
            return msgspec.structs.replace(base, **changes)
        except ConfigError as error:
            raise UsageError(str(error).replace("[judge] ", "--judge-").replace("_", "-")) from None

    def pair_judge(self, settings: Settings) -> "Judge | None":
        """The judge that compares pairs of replies: only one that the command line names, since it costs."""
        if not self.models or self.models == ("none",):
            return None
        from answerkey.judge.configured_judge import Judge

        return Judge(self.settings(settings.judge), folder=settings.folder)


def judge_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags of commands that can ask a judge; they arrive as one `judge` argument."""

    @wraps(command)
    def collected(
        *args: Any,
        judges: tuple[str, ...],
        judge_base_url: str | None,
        judge_budget: float | None,
        judge_price: str | None,
        judge_rubric: str | None,
        judge_concurrency: int | None,
        **others: Any,
    ) -> Any:
        flags = JudgeFlags(judges, judge_base_url, judge_budget, judge_price, judge_rubric, judge_concurrency)
        return command(*args, judge=flags, **others)

    for option in (
        click.option("--judge-rubric", metavar="R", help="standard, correctness, or a rubric file."),
        click.option(
            "--judge-price", metavar="IN/OUT", help="What the judge costs per million tokens, as 0.15/0.60."
        ),
        click.option(
            "--judge-budget", type=float, metavar="SUM", help="Stop judging when this much has been spent."
        ),
        click.option(
            "--judge-concurrency",
            type=click.IntRange(min=1),
            metavar="N",
            help="Judge calls under way at once (as many as questions).",
        ),
        click.option("--judge-base-url", metavar="URL", help="An OpenAI-compatible endpoint (OpenAI's own)."),
        click.option(
            "--judge",
            "judges",
            multiple=True,
            metavar="MODEL",
            help="Let a model grade the replies too; several make a panel; local needs no key; none switches it off.",
        ),
    ):
        collected = option(collected)
    return collected


def parse_price(text: str) -> JudgePrices:
    """Prices per million tokens from "0.15/0.60", input before output."""
    first, _, second = text.partition("/")
    try:
        prices = JudgePrices(input=float(first), output=float(second))
    except ValueError:
        prices = JudgePrices(input=-1.0, output=-1.0)
    if not (prices.input >= 0 and prices.output >= 0):
        raise UsageError(f"--judge-price {text!r}: write input/output per million tokens, as 0.15/0.60")
    return prices


def scoring_for(settings: Settings, match: str | None) -> Scoring:
    """The configured scoring, with the matching mode of the command line."""
    return settings.scoring if match is None else msgspec.structs.replace(settings.scoring, match=match)


def store_opener(settings: Settings, url: str | None, *, create: bool = False) -> "Callable[[], SqlStore]":
    """Opens the store that a command works on: `--store`, the environment, the configuration or the default."""
    from answerkey.evaluation.stored import open_configured_store

    return lambda: open_configured_store(settings, url, create=create)


def parse_rate(text: str | None) -> float | None:
    """Questions per second from "5", "5/s" or "300/min"."""
    if text is None:
        return None
    number, _, unit = text.partition("/")
    seconds = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}.get(unit.strip())
    try:
        rate = float(number) / seconds if seconds else 0.0
    except ValueError:
        rate = 0.0
    if not rate > 0:
        raise UsageError(f"--rate {text!r}: write it as 5/s or 300/min")
    return rate


class AskingFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of the asking; None: as the configuration has it."""

    repeat: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    rate: str | None = None
    where: tuple[str, ...] = ()
    sample: int | None = None
    seed: int | None = None
    match: str | None = None

    def options(self, settings: Settings, **more: Any) -> Options:
        """The options of a run: the configuration's, with the command line's on top."""
        plain = msgspec.structs.asdict(self)
        match = plain.pop("match")
        return settings.options(
            **plain | {"rate": parse_rate(self.rate), "where": self.where or None},
            scoring=scoring_for(settings, match),
            **more,
        )


def asking_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags; they arrive as one `asking` argument."""

    @wraps(command)
    def collected(*args: Any, **given: Any) -> Any:
        flags = {name: given.pop(name) for name in AskingFlags.__struct_fields__}
        return command(*args, asking=AskingFlags(**flags), **given)

    for option in (
        match_flag,
        click.option("--seed", type=int, metavar="S", help="Seed of the draw, and of the order in ab."),
        click.option("--sample", type=int, metavar="N", help="Only so many questions, drawn at random."),
        click.option(
            "--where", multiple=True, metavar="FIELD=VALUE", help="Only these questions, as category=tax."
        ),
        click.option("--rate", metavar="R/s", help="Questions begun per second at most, as 5/s or 300/min."),
        click.option(
            "--retries",
            type=int,
            metavar="N",
            help="Further attempts after 429, 503 or a refused connection (3).",
        ),
        click.option(
            "--timeout", type=float, metavar="S", help="Seconds for one attempt at one question (60)."
        ),
        click.option("--concurrency", type=int, metavar="N", help="Questions under way at once (10)."),
        click.option("--repeat", type=int, metavar="K", help="Ask every question so often."),
    ):
        collected = option(collected)
    return collected
