"""`answerkey sites`: the chat pages and servers that may send feedback and production replies."""

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["sites"]


@click.group()
def sites() -> None:
    """Say which sites may send feedback and production replies.

    \b
    Examples:
      answerkey sites add shop
      answerkey sites list
      answerkey sites rm shop
    """


@sites.command()
@click.argument("name")
@store_flag
def add(name: str, store: str | None) -> int:
    """Let a site send: its key is shown once. It may add and do nothing else, so that it can stand in a public page.

    \b
    Example:
      answerkey sites add shop
    """
    from answerkey.store.sites import Sites

    with opened_store(store, create=True) as opened:
        key = Sites(opened).add(name)
    click.echo(key)
    click.echo(f"the key of {name}; it is not shown again", err=True)
    return 0


@sites.command("list")
@store_flag
@json_flag
def list_sites(store: str | None, as_json: bool) -> int:
    """Show which sites may send; their keys are not kept.

    \b
    Example:
      answerkey sites list
    """
    from answerkey.store.sites import Sites

    with opened_store(store) as opened:
        known = Sites(opened).all()
    if as_json:
        print_document({"sites": known})
        return 0
    for site in known:
        click.echo(f"{site.name:<24} {site.created_at[:10]}")
    if not known:
        click.echo("no site yet; `answerkey sites add NAME` makes a key")
    return 0


@sites.command("rm")
@click.argument("name")
@store_flag
def remove(name: str, store: str | None) -> int:
    """Make a site's key worthless from the next request on; what it sent stays.

    \b
    Example:
      answerkey sites rm shop
    """
    from answerkey.store.sites import Sites

    with opened_store(store) as opened:
        Sites(opened).remove(name)
    click.echo(f"removed: {name}")
    return 0
