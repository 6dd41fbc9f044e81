"""`answerkey serve`: the dashboard, its API, and where feedback and production replies are sent to."""

import sys
from functools import partial
from socket import socket
from threading import Event, Thread
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import opened_store, store_flag
from answerkey.config import load_settings
from answerkey.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["serve"]


@click.command()
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
@click.option(
    "--public-url",
    metavar="URL",
    help="The address that people use, as https://dash.example.com: that of the proxy in front.",
)
@click.option(
    "--trust-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy that is believed about where visitors come from, as 127.0.0.1 or 10.0.0.0/8.",
)
@click.option("--require-token", is_flag=True, help="Ask who it is on loopback too.")
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
) -> int:
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
    from answerkey.cli.listening import listening_on
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
    return 0


def _serve_on(listening: socket, app: "Starlette") -> None:
    """Serve until somebody stops it, with what goes on beside the pages."""
    import uvicorn

    from answerkey.server.housekeeping import keep_house
    from answerkey.server.warming import warm_up

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
