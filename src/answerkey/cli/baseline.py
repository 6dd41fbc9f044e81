"""`answerkey baseline`: names for runs to compare with."""

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["baseline"]


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
@store_flag
def set_(name: str, run: str, store: str | None) -> int:
    """Call a run NAME; a name that is taken moves to this run.

    \b
    Example:
      answerkey baseline set production latest
    """
    from answerkey.text.sanitise import one_line

    with opened_store(store) as opened:
        info = opened.name_baseline(name, run)
    click.echo(f"{one_line(name, 60)} is run {info.id} ({one_line(info.name, 60)})")
    return 0


@baseline.command("list")
@store_flag
@json_flag
def list_(store: str | None, as_json: bool) -> int:
    """List baselines.

    \b
    Example:
      answerkey baseline list --json
    """
    from answerkey.text.sanitise import one_line

    with opened_store(store) as opened:
        names = dict(sorted(opened.baselines().items()))
    if as_json:
        print_document({"baselines": names})
        return 0
    for name, run_id in names.items():
        click.echo(f"{one_line(name, 60)}  {run_id}")
    if not names:
        click.echo("no baselines yet; answerkey baseline set NAME RUN makes one")
    return 0


@baseline.command("remove")
@click.argument("name")
@store_flag
def remove(name: str, store: str | None) -> int:
    """Forget a baseline's name; the run stays.

    \b
    Example:
      answerkey baseline remove production
    """
    from answerkey.errors import UnknownNameError

    with opened_store(store) as opened:
        if not opened.remove_baseline(name):
            raise UnknownNameError(f"no baseline {name!r}; answerkey baseline list shows them")
    return 0
