"""Ports for servers that a test starts by number."""

import os
import socket
from itertools import count

# Below the ports that systems give to clients, so that none of those takes one first, and above those of Ray.
_FIRST, _OF_A_WORKER = 20_100, 1_200
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
_numbers = count(os.getpid() % _OF_A_WORKER)


def free_port() -> int:
    """A port that nobody listens on, and that no other worker of the tests is given."""
    while True:
        port = _FIRST + _worker * _OF_A_WORKER + next(_numbers) % _OF_A_WORKER
        with socket.socket() as probe:
            # As servers do: a connection that has just ended does not keep a port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
