"""`answerkey serve`, `users` and `store`: the dashboard, who may use it, and the store behind it."""

import socket
import sys
from collections.abc import Iterator
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
    from answerkey.store.sql import SqlStore
    from answerkey.store.users import Role


@click.command()
@flag("--host ADDRESS", "Address to listen on (default 127.0.0.1); other than loopback, users need tokens.")
@flag("--port N", "Port (default 8765); 0 picks a free one.", type=int)
@flag(
    "--allow-host NAME", "Also accept requests to this host name (repeatable).", "allow_hosts", multiple=True
)
@flag(
    "--allow-origin ORIGIN",
    "Accept feedback from this web page, e.g. https://chat.example.com (repeatable).",
    "allow_origins",
    multiple=True,
)
@flag(
    "--public-url URL",
    "Public address, if a proxy is in front, e.g. https://dash.example.com.",
)
@flag(
    "--trust-proxy ADDRESS",
    "Trust client addresses forwarded by this proxy, e.g. 127.0.0.1 or 10.0.0.0/8 (repeatable).",
    multiple=True,
)
@flag("--allow-run", "Let admins start runs of configured targets and save golden questions.", is_flag=True)
@flag("--drafts FILE", "Drafts of `answerkey draft` to accept or reject at /golden.", type=FILE)
@flag("--require-token", "Require sign-in on loopback too.", is_flag=True)
@store_flag
def serve(
    host: str | None,
    port: int | None,
    allow_hosts: tuple[str, ...],
    allow_origins: tuple[str, ...],
    public_url: str | None,
    trust_proxy: tuple[str, ...],
    allow_run: bool,
    drafts: Path | None,
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
    from answerkey.store.users import Users

    if drafts is not None and not (drafts.is_file() and drafts.suffix == ".jsonl"):
        raise UsageError(
            f"--drafts {drafts}: no such .jsonl file; write it with: answerkey draft LOG -o {drafts.stem}.jsonl"
        )
    settings = load_settings()
    served = server_settings(
        settings.server,
        host=host,
        port=port,
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
        public_url=public_url,
        trust_proxy=trust_proxy,
        allow_run=allow_run,
        drafts=None if drafts is None else str(drafts.resolve()),
        require_token=require_token,
    )
    opener = partial(opened_store, store, create=True)
    # Fail now, not on the first page, if the store cannot be used.
    with opener() as opened:
        users = [user for user in Users(opened).all() if user.role != "site"]
    if served.needs_token and not users:
        raise UsageError(
            f"{served.public_url or served.host} is reachable from other machines, but there are no users yet; "
            "add one: answerkey users add NAME --role admin"
        )
    with listening_on(served.host, served.port) as (listening, address):
        where = f"{served.public_origin}, listening on {address}" if served.public_origin else address
        click.echo(f"answerkey dashboard on {where} (Ctrl-C stops it)")
        sys.stdout.flush()
        bound = msgspec.structs.replace(served, port=listening.getsockname()[1])
        _serve_on(listening, create_app(opener, bound, settings, store))


def _serve_on(listening: socket.socket, app: "Starlette") -> None:
    """Serve until stopped, with background maintenance."""
    import uvicorn

    from answerkey.server.app import warm_up
    from answerkey.server.background import run_maintenance_loop

    Thread(target=warm_up, args=(app,), daemon=True).start()
    stopped = Event()
    Thread(target=run_maintenance_loop, args=(app, stopped), daemon=True).start()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        stopped.set()
        app.state.jobs.close()
        app.state.holder.close()


@contextmanager
def listening_on(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket and its address for a browser; port 0 picks a free one."""
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
        name = f"[{host}]" if ":" in host else host
        yield listening, f"http://{name}:{listening.getsockname()[1]}"


# `answerkey users`: people who sign in, and sites that send feedback and replies.


@click.group()
def users() -> None:
    """Manage dashboard users and the keys of sites.

    \b
    Examples:
      answerkey users add ann --role reviewer
      answerkey users add shop --role site
      answerkey users list
      answerkey users rm ann
    """


@users.command("add")
@click.argument("name")
@flag(
    "--role",
    "viewer: read; reviewer: also review replies; admin: also set baselines and delete; "
    "site: only send feedback and replies.",
    type=click.Choice(["viewer", "reviewer", "admin", "site"]),
    default="viewer",
    show_default=True,
)
@with_store(create=True)
def add_user(name: str, role: "Role", store: "SqlStore") -> None:
    """Add a user and print their token once; it signs them in, in the browser and in programs.

    A site's key can only add feedback and replies, so a public page may contain it.

    \b
    Examples:
      answerkey users add ann --role reviewer
      answerkey users add shop --role site
    """
    _add_user(store, name, role)


def _add_user(store: "SqlStore", name: str, role: "Role") -> None:
    from answerkey.store.users import Users

    click.echo(Users(store).add(name, role))
    secret = f"key of {name}" if role == "site" else f"token of {name} ({role})"
    click.echo(f"the {secret}; it is not shown again", err=True)


def _list_command(key: str, roles: tuple[str, ...]) -> click.Command:
    """A `list` of the users with these roles; `key` is its name in JSON."""

    @click.command("list")
    @with_store()
    @answers
    def list_users(store: "SqlStore") -> Answer:
        """List users; their tokens are not stored.

        \b
        Example:
          answerkey users list
        """
        from answerkey.store.users import Users

        listed = [user for user in Users(store).all() if user.role in roles]
        lines = [f"{user.name:<24} {user.role:<11}{user.created_at[:10]}" for user in listed]
        return Answer({key: listed}, "\n".join(lines) or "no users yet; add one: answerkey users add NAME")

    return list_users


users.add_command(_list_command("users", ("viewer", "reviewer", "admin", "site")))


@users.command("rm")
@click.argument("name")
@with_store()
def remove_user(name: str, store: "SqlStore") -> None:
    """Remove a user; their token, key and sessions are revoked at once, and what they sent is kept.

    \b
    Example:
      answerkey users rm ann
    """
    from answerkey.store.users import Users

    Users(store).remove(name)
    click.echo(f"removed: {name}")


@users.command()
@click.argument("name")
@with_store()
def sign_out(name: str, store: "SqlStore") -> None:
    """End all sessions of a user, e.g. after a lost laptop; their token stays valid.

    \b
    Example:
      answerkey users sign-out ann
    """
    from answerkey.store.users import Users

    ended = Users(store).sign_out_everywhere(name)
    click.echo(f"signed out: {name}, {ended} session{'' if ended == 1 else 's'}")


# The old names of `users`, undocumented.
people = click.Group(
    "people",
    commands={
        "add": add_user,
        "list": _list_command("people", ("viewer", "reviewer", "admin")),
        "rm": remove_user,
        "sign-out": sign_out,
    },
)
sites = click.Group("sites", commands={"list": _list_command("sites", ("site",)), "rm": remove_user})


@sites.command("add")
@click.argument("name")
@with_store(create=True)
def add_site(name: str, store: "SqlStore") -> None:
    """Add a user with the role site."""
    _add_user(store, name, "site")


# `answerkey store`


@click.group()
def store() -> None:
    """Check, back up and copy the store of runs.

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
    """Read every row of a store and list those that are damaged; exits with code 1 if there are any.

    \b
    Examples:
      answerkey store check
      answerkey store check postgresql://team@db/answerkey --json
    """
    from answerkey.store.maintenance import check_store
    from answerkey.text.normalise import one_line

    with opened_store(url) as opened:
        result = check_store(opened)
    lines = [one_line(finding, 400) for finding in result.findings]
    for path in result.journals:
        lines.append(f"journal {path}: replies of an interrupted run; `answerkey resume` stores them")
    for path in result.lost_journals:
        lines.append(
            f"journal {path}: replies of a run that is missing from the store; each line is a checksum and a reply as JSON"
        )
    rows = f"runs: {result.rows['runs']:,}, replies: {result.rows['replies']:,}"
    if result.sound:
        lines.append(f"{result.store}: sound; {rows}")
    else:
        lines.append(f"{result.store}: damaged; readable: {rows}")
        lines.append(
            f"copy the sound rows to a new store: answerkey store copy --salvage NEW --store {result.store}"
        )
    document = {**msgspec.to_builtins(result), "sound": result.sound}
    return Answer(document, "\n".join(lines), 0 if result.sound else 1)


@store.command("backup")
@click.argument("file", type=FILE)
@with_store()
@answers
def backup(file: Path, store: "SqlStore") -> Answer:
    """Copy a store into a new SQLite FILE and check the copy; runs may write meanwhile.

    \b
    Example:
      answerkey store backup runs-2026-11.db
    """
    from answerkey.store.maintenance import back_up

    return _copy_answer(back_up(store, file))


@store.command("copy")
@click.argument("to")
@flag("--salvage", "Copy the sound rows of a damaged store.", is_flag=True)
@with_store()
@answers
def copy(to: str, salvage: bool, store: "SqlStore") -> Answer:
    """Copy a store into an empty one, in SQLite or PostgreSQL.

    \b
    Examples:
      answerkey store copy postgresql://team@db/answerkey
      answerkey store copy --salvage rescued.db --store damaged.db
    """
    from answerkey.store.maintenance import copy_store

    with opened_store(to, create=True) as target:
        return _copy_answer(copy_store(store, target, salvage=salvage))


def _copy_answer(copied: "StoreCopy") -> Answer:
    summary = f"{copied.store}: runs: {copied.rows['runs']:,}, replies: {copied.rows['replies']:,}"
    left_out = [f"left out: {rows:,} damaged rows of {table}" for table, rows in copied.left_out.items()]
    return Answer(copied, "\n".join([summary, *left_out]))
