"""The flags of commands that ask questions: which, how often, how fast, and how replies are matched."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
import msgspec

from answerkey.cli.options import match_flag, parse_rate, scoring_for
from answerkey.config import Settings
from answerkey.model.options import Options

__all__ = ["AskingFlags", "asking_flags"]


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
