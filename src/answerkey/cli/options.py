"""Flags that several commands share, and the values behind them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from answerkey.config import Scoring, Settings
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = [
    "json_flag",
    "match_flag",
    "output_flag",
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
    "--match", type=click.Choice(["literal", "standard", "smart"]), help="How keywords are found in replies."
)
output_flag = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write a report too: .html .md .json .jsonl .csv .parquet .junit.xml; may be given several times.",
)


def scoring_for(settings: Settings, match: str | None) -> Scoring:
    """The configured scoring, with the matching mode of the command line."""
    import msgspec

    return settings.scoring if match is None else msgspec.structs.replace(settings.scoring, match=match)


def store_opener(settings: Settings, url: str | None, *, create: bool = False) -> "Callable[[], SqlStore]":
    """Opens the store that a command works on: `--store`, the environment, the configuration or the default."""
    import os

    from answerkey.store import open_store

    chosen = url or os.environ.get("ANSWERKEY_STORE") or settings.store
    folder = None if url or os.environ.get("ANSWERKEY_STORE") else settings.folder
    return lambda: open_store(chosen, folder=folder, create=create)


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
