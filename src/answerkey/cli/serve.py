"""`answerkey serve`: the dashboard, its API, and where feedback and production replies are sent to."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import flag, opened_store, store_flag
from answerkey.config import load_settings
from answerkey.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette


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

    from answerkey.server.housekeeping import keep_house, warm_up

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
