"""`answerkey people` and `answerkey sites`: who may use a dashboard that others can reach, and what may send to it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

if TYPE_CHECKING:
    from answerkey.store.people import People
    from answerkey.store.sites import Sites
    from answerkey.store.sql import SqlStore

__all__ = ["people", "sites"]


def _people(store: "SqlStore") -> "People":
    from answerkey.store.people import People

    return People(store)


def _sites(store: "SqlStore") -> "Sites":
    from answerkey.store.sites import Sites

    return Sites(store)


@click.group()
def people() -> None:
    """Say who may use a dashboard that others can reach.

    \b
    Examples:
      answerkey people add ann --role reviewer
      answerkey people list
      answerkey people rm ann
    """


@click.group()
def sites() -> None:
    """Say which sites may send feedback and production replies.

    \b
    Examples:
      answerkey sites add shop
      answerkey sites list
      answerkey sites rm shop
    """


@people.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "reviewer", "admin"]),
    default="viewer",
    show_default=True,
    help="viewer looks, reviewer also judges replies, admin also names baselines and deletes.",
)
@store_flag
def add_person(name: str, role: str, store: str | None) -> int:
    """Give someone access: their token is shown once; they sign in with it, and their programs send it.

    \b
    Example:
      answerkey people add ann --role reviewer
    """
    from answerkey.store.people import ROLES

    chosen = next(known for known in ROLES if known == role)
    with opened_store(store, create=True) as opened:
        _show_once(_people(opened).add(name, chosen), f"token of {name} ({role})")
    return 0


@sites.command("add")
@click.argument("name")
@store_flag
def add_site(name: str, store: str | None) -> int:
    """Let a site send: its key is shown once. It may add and do nothing else, so that it can stand in a public page.

    \b
    Example:
      answerkey sites add shop
    """
    with opened_store(store, create=True) as opened:
        _show_once(_sites(opened).add(name), f"key of {name}")
    return 0


def _show_once(secret: str, what: str) -> None:
    click.echo(secret)
    click.echo(f"the {what}; it is not shown again", err=True)


def _add_list_and_rm(
    group: click.Group,
    known: "Callable[[SqlStore], People | Sites]",
    *,
    example: str,
    listed: str,
    removed: str,
    nobody: str,
) -> None:
    """The commands that are the same for whatever has a name and a secret."""

    @group.command("list", help=f"{listed}\n\n\b\nExample:\n  answerkey {group.name} list")
    @store_flag
    @json_flag
    def list_all(store: str | None, as_json: bool) -> int:
        with opened_store(store) as opened:
            found = known(opened).all()
        if as_json:
            print_document({str(group.name): found})
            return 0
        for one in found:
            role = getattr(one, "role", "").ljust(11) if group is people else ""
            click.echo(f"{one.name:<24} {role}{one.created_at[:10]}")
        if not found:
            click.echo(nobody)
        return 0

    @group.command("rm", help=f"{removed}\n\n\b\nExample:\n  answerkey {group.name} rm {example}")
    @click.argument("name")
    @store_flag
    def remove(name: str, store: str | None) -> int:
        with opened_store(store) as opened:
            known(opened).remove(name)
        click.echo(f"removed: {name}")
        return 0


_add_list_and_rm(
    people,
    _people,
    example="ann",
    listed="Show who has access; their tokens are not kept.",
    removed="Take someone's access away from the next request on, wherever they are signed in.",
    nobody="nobody yet; `answerkey people add NAME` gives someone access",
)
_add_list_and_rm(
    sites,
    _sites,
    example="shop",
    listed="Show which sites may send; their keys are not kept.",
    removed="Make a site's key worthless from the next request on; what it sent stays.",
    nobody="no site yet; `answerkey sites add NAME` makes a key",
)


@people.command()
@click.argument("name")
@store_flag
def sign_out(name: str, store: str | None) -> int:
    """End all sessions of someone, as after a lost laptop; their token stays good.

    \b
    Example:
      answerkey people sign-out ann
    """
    with opened_store(store) as opened:
        ended = _people(opened).sign_out_everywhere(name)
    click.echo(f"signed out: {name}, {ended} session{'' if ended == 1 else 's'}")
    return 0
