"""`answerkey serve`: the dashboard, its API and the feedback endpoint; and the tokens for those who may use it."""

import sys
from functools import partial
from threading import Thread

import click
import msgspec

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings
from answerkey.errors import MissingExtraError, UsageError

__all__ = ["serve"]


@click.group(invoke_without_command=True)
@click.option(
    "--host", metavar="ADDRESS", help="Where to listen (127.0.0.1). Any other than loopback needs tokens."
)
@click.option("--port", type=int, metavar="N", help="Port (8765); 0 takes a free one.")
@click.option(
    "--allow-host", "allow_hosts", multiple=True, metavar="NAME", help="A name under which it is addressed."
)
@click.option(
    "--allow-origin",
    "allow_origins",
    multiple=True,
    metavar="ORIGIN",
    help="A chat page that may send feedback.",
)
@click.option("--require-token", is_flag=True, help="Ask for a token on loopback too, as behind a proxy.")
@store_flag
@click.pass_context
def serve(
    context: click.Context,
    host: str | None,
    port: int | None,
    allow_hosts: tuple[str, ...],
    allow_origins: tuple[str, ...],
    require_token: bool,
    store: str | None,
) -> int:
    """Serve the dashboard on this machine; stop it with Ctrl-C.

    \b
    Examples:
      answerkey serve
      answerkey serve --allow-origin https://chat.example.com
      answerkey serve token add ann --role annotator
      answerkey serve --host 0.0.0.0 --allow-host dashboard.example.com
    """
    if context.invoked_subcommand is not None:
        return 0
    try:
        import uvicorn

        from answerkey.server.app import create_app
        from answerkey.server.settings import server_settings
        from answerkey.server.warming import warm_up
    except ImportError:
        raise MissingExtraError("the dashboard", "server") from None
    from answerkey.cli.listening import listening_on
    from answerkey.store.tokens import AccessTokens

    settings = load_settings()
    served = server_settings(
        settings.server,
        host=host,
        port=port,
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
        require_token=require_token,
    )
    opener = partial(opened_store, store, create=True)
    # A store that cannot be used is said here and now, not on the first page.
    with opener() as opened:
        tokens = AccessTokens(opened).all()
    if served.needs_token and not tokens:
        raise UsageError(
            f"{served.host} can be reached by others, and there is no token yet; "
            "make one with `answerkey serve token add NAME --role viewer`"
        )
    with listening_on(served.host, served.port) as (listening, address):
        click.echo(f"answerkey dashboard on {address} (Ctrl-C stops it)")
        sys.stdout.flush()
        taken = msgspec.structs.replace(served, port=listening.getsockname()[1])
        app = create_app(opener, taken, settings)
        Thread(target=warm_up, args=(app,), daemon=True).start()
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            app.state.holder.close()
    return 0


@serve.group()
def token() -> None:
    """Make, list and revoke the tokens of a dashboard that others can reach."""


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "annotator", "admin", "sender"]),
    default="viewer",
    show_default=True,
    help="viewer looks, annotator also judges, admin also names baselines, sender only sends feedback.",
)
@store_flag
def add_token(name: str, role: str, store: str | None) -> int:
    """Make a token and show it, once.

    \b
    Example:
      answerkey serve token add ann --role annotator
    """
    from answerkey.store.tokens import ROLES, AccessTokens

    chosen = next(known for known in ROLES if known == role)
    with opened_store(store, create=True) as opened:
        secret = AccessTokens(opened).add(name, chosen)
    click.echo(secret)
    click.echo(f"the token of {name} ({role}); it is not shown again", err=True)
    return 0


@token.command("list")
@store_flag
@json_flag
def list_tokens(store: str | None, as_json: bool) -> int:
    """Show whose tokens there are; the tokens themselves are not kept.

    \b
    Examples:
      answerkey serve token list
    """
    from answerkey.store.tokens import AccessTokens

    with opened_store(store) as opened:
        tokens = AccessTokens(opened).all()
    if as_json:
        print_document({"tokens": tokens})
        return 0
    for one in tokens:
        click.echo(f"{one.name:<24} {one.role:<10} {one.created_at[:16].replace('T', ' ')}")
    if not tokens:
        click.echo("no token yet; `answerkey serve token add NAME` makes one")
    return 0


@token.command("revoke")
@click.argument("name")
@store_flag
def revoke_token(name: str, store: str | None) -> int:
    """Make a token worthless from the next request on.

    \b
    Examples:
      answerkey serve token revoke ann
    """
    from answerkey.store.tokens import AccessTokens

    with opened_store(store) as opened:
        AccessTokens(opened).revoke(name)
    click.echo(f"revoked: {name}")
    return 0
