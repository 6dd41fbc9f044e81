"""A dashboard on a free loopback port, in a thread of the test, and plain HTTP to talk to it."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from answerkey.config import Settings
from answerkey.model.question import Question
from answerkey.server.access import ServerSettings
from answerkey.server.app import create_app


def golden_file(folder: Path, questions: Iterable[Question]) -> str:
    """A golden set in a file, for production replies to be graded by."""
    path = folder / "golden.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, questions)))
    return str(path)


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends exactly the headers it is told to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def request(self, method: str, path: str, *, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, str | bytes):
            body = json.dumps(body)
            sent.setdefault("content-type", "application/json")
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request("POST", path, body=body, **headers)


@contextmanager
def serving(
    opener: Any, configured: Settings | None = None, *, store_url: str | None = None, **settings: Any
) -> Iterator[Client]:
    """A running dashboard; with `bound` it believes to be bound to that host."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    served = msgspec.structs.replace(ServerSettings(**settings), port=port)
    app = create_app(opener, served, configured, store_url)
    # As `answerkey serve` does: what a proxy says is for the gatekeeper to believe.
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # A connection that a browser left open must not keep the test from ending.
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Client(port)
    finally:
        server.should_exit = True
        thread.join()
        app.state.jobs.close()
        app.state.holder.close()
