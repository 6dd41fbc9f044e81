"""`answerkey baseline`: names for runs to compare with."""

from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import with_store
from answerkey.cli.outcome import Answer, answers

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


@click.group()
def baseline() -> None:
    """Name runs that others are compared with.

    \b
    Examples:
      answerkey baseline set production latest
      answerkey run golden.jsonl --baseline production --gate "no regression"
      answerkey baseline list
    """


@baseline.command("set")
@click.argument("name")
@click.argument("run", default="latest")
@with_store()
def set_(name: str, run: str, store: "SqlStore") -> None:
    """Call a run NAME; a name that is taken moves to this run.

    \b
    Example:
      answerkey baseline set production latest
    """
    from answerkey.text.sanitise import one_line

    info = store.name_baseline(name, run)
    click.echo(f"{one_line(name, 60)} is run {info.id} ({one_line(info.name, 60)})")


@baseline.command("list")
@with_store()
@answers
def list_(store: "SqlStore") -> Answer:
    """List baselines.

    \b
    Example:
      answerkey baseline list --json
    """
    from answerkey.text.sanitise import one_line

    names = dict(sorted(store.baselines().items()))
    lines = [f"{one_line(name, 60)}  {run_id}" for name, run_id in names.items()]
    nothing = "no baselines yet; answerkey baseline set NAME RUN makes one"
    return Answer({"baselines": names}, "\n".join(lines) or nothing)


@baseline.command("remove")
@click.argument("name")
@with_store()
def remove(name: str, store: "SqlStore") -> None:
    """Forget a baseline's name; the run stays.

    \b
    Example:
      answerkey baseline remove production
    """
    from answerkey.errors import UnknownNameError

    if not store.remove_baseline(name):
        raise UnknownNameError(f"no baseline {name!r}; answerkey baseline list shows them")
