"""`answerkey store`: check, back up and copy where runs are kept."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import FILE, json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

if TYPE_CHECKING:
    from answerkey.store.copying import StoreCopy

__all__ = ["store"]


@click.group()
def store() -> None:
    """Check, back up and copy where runs are kept.

    \b
    Examples:
      answerkey store check
      answerkey store backup runs-2026-11.db
      answerkey store copy postgresql://team@db/answerkey
    """


@store.command("check")
@click.argument("url", required=False)
@json_flag
def check(url: str | None, as_json: bool) -> int:
    """Read every row of a store, and say which cannot be read or does not say what was written; exit 1 if any.

    \b
    Examples:
      answerkey store check
      answerkey store check postgresql://team@db/answerkey --json
    """
    from answerkey.store.checking import check_store
    from answerkey.text.sanitise import one_line

    with opened_store(url) as opened:
        found = check_store(opened)
    if as_json:
        print_document({**msgspec.to_builtins(found), "sound": found.sound})
        return 0 if found.sound else 1
    for finding in found.findings:
        click.echo(one_line(finding, 400))
    for path in found.journals:
        click.echo(f"journal {path}: replies of an interrupted run, which `answerkey resume` stores")
    rows = f"runs: {found.rows['runs']:,}, replies: {found.rows['replies']:,}"
    if found.sound:
        click.echo(f"{found.store}: sound; {rows}")
        return 0
    click.echo(f"{found.store}: damaged; can be read: {rows}")
    click.echo(f"copy what is sound to a new store: answerkey store copy --salvage NEW --store {found.store}")
    return 1


@store.command("backup")
@click.argument("file", type=FILE)
@store_flag
@json_flag
def backup(file: Path, store: str | None, as_json: bool) -> int:
    """Copy a store, also while runs write to it, into a new SQLite FILE, and check that.

    \b
    Example:
      answerkey store backup runs-2026-11.db
    """
    from answerkey.store.copying import back_up

    with opened_store(store) as opened:
        return _tell(back_up(opened, file), as_json)


@store.command("copy")
@click.argument("to")
@click.option("--salvage", is_flag=True, help="Of a damaged store, copy the rows that are sound.")
@store_flag
@json_flag
def copy(to: str, salvage: bool, store: str | None, as_json: bool) -> int:
    """Copy a store into an empty one, of SQLite or PostgreSQL: the same runs with the same documents.

    \b
    Examples:
      answerkey store copy postgresql://team@db/answerkey
      answerkey store copy --salvage rescued.db --store damaged.db
    """
    from answerkey.store.copying import copy_store

    with opened_store(store) as source, opened_store(to, create=True) as target:
        return _tell(copy_store(source, target, salvage=salvage), as_json)


def _tell(copied: "StoreCopy", as_json: bool) -> int:
    if as_json:
        print_document(copied)
        return 0
    click.echo(f"{copied.store}: runs: {copied.rows['runs']:,}, replies: {copied.rows['replies']:,}")
    for table, rows in copied.left_out.items():
        click.echo(f"left out: {rows:,} damaged rows of {table}")
    return 0
