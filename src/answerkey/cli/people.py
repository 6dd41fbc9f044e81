"""`answerkey people`: who may use a dashboard that others can reach."""

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["people"]


@click.group()
def people() -> None:
    """Say who may use a dashboard that others can reach.

    \b
    Examples:
      answerkey people add ann --role reviewer
      answerkey people list
      answerkey people rm ann
    """


@people.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "reviewer", "admin"]),
    default="viewer",
    show_default=True,
    help="viewer looks, reviewer also judges replies, admin also names baselines and deletes.",
)
@store_flag
def add(name: str, role: str, store: str | None) -> int:
    """Give someone access: their token is shown once; they sign in with it, and their programs send it.

    \b
    Example:
      answerkey people add ann --role reviewer
    """
    from answerkey.store.people import ROLES, People

    chosen = next(known for known in ROLES if known == role)
    with opened_store(store, create=True) as opened:
        token = People(opened).add(name, chosen)
    click.echo(token)
    click.echo(f"the token of {name} ({role}); it is not shown again", err=True)
    return 0


@people.command("list")
@store_flag
@json_flag
def list_people(store: str | None, as_json: bool) -> int:
    """Show who has access; their tokens are not kept.

    \b
    Example:
      answerkey people list
    """
    from answerkey.store.people import People

    with opened_store(store) as opened:
        everyone = People(opened).all()
    if as_json:
        print_document({"people": everyone})
        return 0
    for person in everyone:
        click.echo(f"{person.name:<24} {person.role:<10} {person.created_at[:10]}")
    if not everyone:
        click.echo("nobody yet; `answerkey people add NAME` gives someone access")
    return 0


@people.command("rm")
@click.argument("name")
@store_flag
def remove(name: str, store: str | None) -> int:
    """Take someone's access away from the next request on, wherever they are signed in.

    \b
    Example:
      answerkey people rm ann
    """
    from answerkey.store.people import People

    with opened_store(store) as opened:
        People(opened).remove(name)
    click.echo(f"removed: {name}")
    return 0


@people.command()
@click.argument("name")
@store_flag
def sign_out(name: str, store: str | None) -> int:
    """End all sessions of someone, as after a lost laptop; their token stays good.

    \b
    Example:
      answerkey people sign-out ann
    """
    from answerkey.store.people import People

    with opened_store(store) as opened:
        ended = People(opened).sign_out_everywhere(name)
    click.echo(f"signed out: {name}, {ended} session{'' if ended == 1 else 's'}")
    return 0
