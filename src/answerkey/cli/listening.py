"""A socket to serve on: it listens before anything is said of it, so that whoever comes at once waits and is not turned away."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from answerkey.errors import UsageError

__all__ = ["listening_on"]


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
