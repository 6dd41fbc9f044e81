"""The real service on loopback, in a thread."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from answerkey_demo import Chatbot, open_chatbot
from answerkey_demo.service import FeedbackLog, create_app


class Service:
    """A running service and a small client for it."""

    def __init__(self, chatbot: Chatbot, log: FeedbackLog, feedback_url: str | None = None) -> None:
        self.log = log
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(create_app(chatbot, log, feedback_url=feedback_url), log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the service did not start")
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=300)

    def send(
        self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, dict(response.headers), response.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        status, _, answer = self.send(path, body, {"content-type": "application/json"})
        return status, json.loads(answer)


@pytest.fixture(scope="session")
def service(bot: Chatbot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The default variant as a service."""
    running = Service(bot, FeedbackLog(tmp_path_factory.mktemp("feedback") / "feedback.db"))
    yield running
    running.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts another service: a variant, a harness to pass feedback to."""
    running: list[Service] = []

    def begin(variant: str = "default", feedback_url: str | None = None) -> Service:
        log = FeedbackLog(tmp_path / f"feedback-{len(running)}.db")
        running.append(Service(open_chatbot(variant), log, feedback_url))
        return running[-1]

    yield begin
    for one in running:
        one.stop()
