"""`answerkey people` and `answerkey sites`: who may use a dashboard that others can reach, and what may send to it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import flag, with_store
from answerkey.cli.outcome import Answer, answers

if TYPE_CHECKING:
    from answerkey.store.people import People, Sites
    from answerkey.store.sql import SqlStore


def _people(store: "SqlStore") -> "People":
    from answerkey.store.people import People

    return People(store)


def _sites(store: "SqlStore") -> "Sites":
    from answerkey.store.people import Sites

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
@flag(
    "--role",
    "viewer looks, reviewer also judges replies, admin also names baselines and deletes.",
    type=click.Choice(["viewer", "reviewer", "admin"]),
    default="viewer",
    show_default=True,
)
@with_store(create=True)
def add_person(name: str, role: str, store: "SqlStore") -> None:
    """Give someone access: their token is shown once; they sign in with it, and their programs send it.

    \b
    Example:
      answerkey people add ann --role reviewer
    """
    from answerkey.store.people import ROLES

    chosen = next(known for known in ROLES if known == role)
    _show_once(_people(store).add(name, chosen), f"token of {name} ({role})")


@sites.command("add")
@click.argument("name")
@with_store(create=True)
def add_site(name: str, store: "SqlStore") -> None:
    """Let a site send: its key is shown once. It may add and do nothing else, so that it can stand in a public page.

    \b
    Example:
      answerkey sites add shop
    """
    _show_once(_sites(store).add(name), f"key of {name}")


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
    @with_store()
    @answers
    def list_all(store: "SqlStore") -> Answer:
        found = known(store).all()
        lines = [
            f"{one.name:<24} {getattr(one, 'role', '').ljust(11) if group is people else ''}{one.created_at[:10]}"
            for one in found
        ]
        return Answer({str(group.name): found}, "\n".join(lines) or nobody)

    @group.command("rm", help=f"{removed}\n\n\b\nExample:\n  answerkey {group.name} rm {example}")
    @click.argument("name")
    @with_store()
    def remove(name: str, store: "SqlStore") -> None:
        known(store).remove(name)
        click.echo(f"removed: {name}")


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
@with_store()
def sign_out(name: str, store: "SqlStore") -> None:
    """End all sessions of someone, as after a lost laptop; their token stays good.

    \b
    Example:
      answerkey people sign-out ann
    """
    ended = _people(store).sign_out_everywhere(name)
    click.echo(f"signed out: {name}, {ended} session{'' if ended == 1 else 's'}")
