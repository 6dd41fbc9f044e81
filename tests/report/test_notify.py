"""Notifications to real servers on loopback, and what happens when one is away."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from answerkey.config import load_settings
from answerkey.errors import ConfigError


class Webhook(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.received: list[tuple[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Receiving)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Receiving(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, json.loads(body)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Mailbox(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def __init__(self) -> None:
        self.messages: list[str] = []
        super().__init__(("127.0.0.1", 0), _Mail)


class _Mail(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        while line := self.rfile.readline().decode().strip().upper():
            if line == "DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
                self.server.messages.append("\n".join(lines))
            if line == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            self.wfile.write(b"250 ok\r\n")


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    yield from _served(Webhook())


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    yield from _served(Mailbox())


def _served(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


BOT = """
def reply(question):
    return "The rent is <!channel> 100."
"""


def configure(folder: Path, notify: str) -> None:
    (folder / "bot.py").write_text(BOT)
    rows = [{"question": "What is the rent?", "expected_keywords": ["900"]}]
    (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "answerkey.toml").write_text(f'questions = "golden.jsonl"\ntarget = "bot.py:reply"\n{notify}')


def test_a_failed_gate_is_sent_everywhere(
    tmp_path: Path, command: Any, webhook: Webhook, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", webhook.url)
    port = mailbox.server_address[1]
    configure(
        tmp_path,
        '[notify]\nwebhook = "${HOOK}/json"\nslack = "${HOOK}/slack"\n'
        f'[notify.smtp]\nhost = "127.0.0.1"\nport = {port}\ntls = "none"\nfrom = "ci@example.org"\nto = ["team@example.org"]\n',
    )
    assert command("run", "--gate", "score >= 0").code == 0
    assert webhook.received == []
    done = command("run", "--gate", "score >= 0.99")
    assert done.code == 1, done.err
    received = dict(webhook.received)
    assert received["/json"]["events"] == ["gate"]
    [gate, cause] = received["/json"]["lines"]
    assert gate == "score >= 0.99: the value is 0.600"
    assert cause.startswith("40.0 of 40.0 lost points: ")
    assert "score &gt;= 0.99: the value" in received["/slack"]["text"]
    [mail] = mailbox.messages
    assert "Subject: answerkey:" in mail
    assert "score >= 0.99: the value is 0.600" in mail


def test_a_webhook_that_is_away_is_said_and_changes_nothing(
    tmp_path: Path, command: Any, webhook: Webhook
) -> None:
    url = webhook.url
    webhook.shutdown()
    webhook.server_close()
    configure(tmp_path, f'[notify]\nwebhook = "{url}/x"\n')
    done = command("run", "--gate", "score >= 0.99", "--json")
    assert done.code == 1
    assert done.document["gates"][0]["passed"] is False
    assert "[notify] webhook: not sent:" in done.err
    assert command("show", "latest", "--json").document["summary"]["questions"] == 1


def test_satisfaction_has_gates_and_a_bound(
    tmp_path: Path, command: Callable[..., Any], webhook: Webhook
) -> None:
    configure(tmp_path, f'[notify]\nwebhook = "{webhook.url}/x"\nsatisfaction = 0.8\n')
    run = command("run", "--json").document
    identity = run["results"][0]["id"]
    command("feedback", "add", "latest", identity, "down")
    done = command("feedback", "stats", "--gate", "satisfaction >= 0.5", "--json")
    assert done.code == 1
    assert done.document["gates"] == [{"gate": "satisfaction >= 0.5", "passed": False, "value": 0.0}]
    [(_, notice)] = webhook.received
    assert notice["events"] == ["satisfaction", "gate"]
    assert command("feedback", "stats", "--gate", "satisfaction >= 0").code == 0


def test_mistakes_in_the_settings_are_one_line(tmp_path: Path) -> None:
    configure(tmp_path, '[notify]\nwebhok = "http://x"\n')
    with pytest.raises(ConfigError, match=r"unknown setting 'webhok' in \[notify\]; did you mean 'webhook'"):
        load_settings(tmp_path)
    configure(tmp_path, '[notify.smtp]\nhost = "localhost"\nsender = "a@example.com"\nto = []\n')
    with pytest.raises(ConfigError, match=r"'sender' in \[notify.smtp\]; did you mean 'from'"):
        load_settings(tmp_path)
