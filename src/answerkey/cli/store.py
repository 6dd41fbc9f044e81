"""`answerkey store`: check, back up and copy where runs are kept."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import FILE, flag, opened_store, with_store
from answerkey.cli.outcome import Answer, answers

if TYPE_CHECKING:
    from answerkey.store.copying import StoreCopy
    from answerkey.store.sql import SqlStore


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
@answers
def check(url: str | None) -> Answer:
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
    lines = [one_line(finding, 400) for finding in found.findings]
    for path in found.journals:
        lines.append(f"journal {path}: replies of an interrupted run, which `answerkey resume` stores")
    rows = f"runs: {found.rows['runs']:,}, replies: {found.rows['replies']:,}"
    if found.sound:
        lines.append(f"{found.store}: sound; {rows}")
    else:
        lines.append(f"{found.store}: damaged; can be read: {rows}")
        lines.append(
            f"copy what is sound to a new store: answerkey store copy --salvage NEW --store {found.store}"
        )
    document = {**msgspec.to_builtins(found), "sound": found.sound}
    return Answer(document, "\n".join(lines), 0 if found.sound else 1)


@store.command("backup")
@click.argument("file", type=FILE)
@with_store()
@answers
def backup(file: Path, store: "SqlStore") -> Answer:
    """Copy a store, also while runs write to it, into a new SQLite FILE, and check that.

    \b
    Example:
      answerkey store backup runs-2026-11.db
    """
    from answerkey.store.copying import back_up

    return _told(back_up(store, file))


@store.command("copy")
@click.argument("to")
@flag("--salvage", "Of a damaged store, copy the rows that are sound.", is_flag=True)
@with_store()
@answers
def copy(to: str, salvage: bool, store: "SqlStore") -> Answer:
    """Copy a store into an empty one, of SQLite or PostgreSQL: the same runs with the same documents.

    \b
    Examples:
      answerkey store copy postgresql://team@db/answerkey
      answerkey store copy --salvage rescued.db --store damaged.db
    """
    from answerkey.store.copying import copy_store

    with opened_store(to, create=True) as target:
        return _told(copy_store(store, target, salvage=salvage))


def _told(copied: "StoreCopy") -> Answer:
    said = f"{copied.store}: runs: {copied.rows['runs']:,}, replies: {copied.rows['replies']:,}"
    left_out = [f"left out: {rows:,} damaged rows of {table}" for table, rows in copied.left_out.items()]
    return Answer(copied, "\n".join([said, *left_out]))
