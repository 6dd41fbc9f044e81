"""`answerkey serve`: the dashboard, its API, and where feedback and production replies are sent to."""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import FILE, flag, opened_store, store_flag, with_store
from answerkey.cli.outcome import Answer, answers
from answerkey.config import load_settings
from answerkey.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from answerkey.store.maintenance import StoreCopy
    from answerkey.store.people import People, Sites
    from answerkey.store.sql import SqlStore


@click.command()
@flag("--host ADDRESS", "Where to listen (127.0.0.1). Any other than loopback needs tokens.")
@flag("--port N", "Port (8765); 0 takes a free one.", type=int)
@flag("--allow-host NAME", "A name under which it is addressed.", "allow_hosts", multiple=True)
@flag("--allow-origin ORIGIN", "A chat page that may send feedback.", "allow_origins", multiple=True)
@flag(
    "--public-url URL",
    "The address that people use, as https://dash.example.com: that of the proxy in front.",
)
@flag(
    "--trust-proxy ADDRESS",
    "A proxy that is believed about where visitors come from, as 127.0.0.1 or 10.0.0.0/8.",
    multiple=True,
)
@flag("--require-token", "Ask who it is on loopback too.", is_flag=True)
@store_flag
def serve(
    host: str | None,
    port: int | None,
    allow_hosts: tuple[str, ...],
    allow_origins: tuple[str, ...],
    public_url: str | None,
    trust_proxy: tuple[str, ...],
    require_token: bool,
    store: str | None,
) -> None:
    """Serve the dashboard on this machine; stop it with Ctrl-C.

    \b
    Examples:
      answerkey serve
      answerkey serve --allow-origin https://chat.example.com
      answerkey serve --public-url https://dash.example.com --trust-proxy 127.0.0.1
    """
    try:
        from answerkey.server.app import create_app
        from answerkey.server.settings import server_settings
    except ImportError:
        raise MissingExtraError("the dashboard", "server") from None
    from answerkey.store.people import People

    settings = load_settings()
    served = server_settings(
        settings.server,
        host=host,
        port=port,
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
        public_url=public_url,
        trust_proxy=trust_proxy,
        require_token=require_token,
    )
    opener = partial(opened_store, store, create=True)
    # A store that cannot be used is said here and now, not on the first page.
    with opener() as opened:
        people = People(opened).all()
    if served.needs_token and not people:
        raise UsageError(
            f"{served.public_url or served.host} can be reached by others, and nobody has access yet; "
            "give it to someone: answerkey people add NAME --role admin"
        )
    with listening_on(served.host, served.port) as (listening, address):
        shown = f"{served.public_origin}, listening on {address}" if served.public_origin else address
        click.echo(f"answerkey dashboard on {shown} (Ctrl-C stops it)")
        sys.stdout.flush()
        taken = msgspec.structs.replace(served, port=listening.getsockname()[1])
        _serve_on(listening, create_app(opener, taken, settings))


def _serve_on(listening: socket.socket, app: "Starlette") -> None:
    """Serve until somebody stops it, with what goes on beside the pages."""
    import uvicorn

    from answerkey.server.app import keep_house, warm_up

    Thread(target=warm_up, args=(app,), daemon=True).start()
    stopped = Event()
    Thread(target=keep_house, args=(app, stopped), daemon=True).start()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        stopped.set()
        app.state.holder.close()


@contextmanager
def listening_on(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket and the address that a browser reaches it by; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(128)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port"
            ) from None
        shown = f"[{host}]" if ":" in host else host
        yield listening, f"http://{shown}:{listening.getsockname()[1]}"


# `answerkey people` and `answerkey sites`: who may use a dashboard that others can reach, and what may send to it.


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


# `answerkey store`: check, back up and copy where runs are kept.


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
    from answerkey.store.maintenance import check_store
    from answerkey.text.normalise import one_line

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
    from answerkey.store.maintenance import back_up

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
    from answerkey.store.maintenance import copy_store

    with opened_store(to, create=True) as target:
        return _told(copy_store(store, target, salvage=salvage))


def _told(copied: "StoreCopy") -> Answer:
    said = f"{copied.store}: runs: {copied.rows['runs']:,}, replies: {copied.rows['replies']:,}"
    left_out = [f"left out: {rows:,} damaged rows of {table}" for table, rows in copied.left_out.items()]
    return Answer(copied, "\n".join([said, *left_out]))
