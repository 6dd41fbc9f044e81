"""Streams of a chatbot's own events: each tool call counts, by configuration or without."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.protocols import Ask
from answerkey.targets.http_target import HttpSettings, HttpTarget

from .hostile_server import Connection, serving


@pytest.fixture
def serve_events() -> Iterator[Callable[[str], str]]:
    """Start a chatbot that answers every question with these server-sent events."""
    servers: list[ThreadingHTTPServer] = []

    def start(events: str) -> str:
        class Bot(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body = events.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Bot)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/chat"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


OWN = (
    _event("status", {"phase": "thinking"})
    + _event("step", {"what": "get_product", "with": {"id": 3}, "gave": {"price": 20}})
    + _event("step", {"what": "get_stock", "with": {"id": 3}, "gave": 7})
    + _event("token", {"t": "It costs "})
    + _event("token", {"t": "$20."})
    + _event("end", {"cost": {"in": 10, "out": 3}})
)
EVENTS = """
[targets.shop]
url = "{url}"
[targets.shop.events.token]
text = "t"
[targets.shop.events.step]
tool_calls = "{{name: what, arguments: with, result: gave}}"
[targets.shop.events.end]
usage = "{{input_tokens: cost.in, output_tokens: cost.out}}"
"""
GOLDEN = {
    "id": "price",
    "question": "What does bike 3 cost?",
    "expected_tools": ["get_product", "get_stock"],
    "expected_keywords": ["20"],
}


def test_events_of_ones_own_are_mapped_by_name(
    command: Any, write_rows: Any, serve_events: Any, tmp_path: Path
) -> None:
    (tmp_path / "answerkey.toml").write_text(EVENTS.format(url=serve_events(OWN)))
    done = command("run", write_rows("golden.jsonl", GOLDEN), "--target", "shop", "--json")
    [result] = json.loads(done.out)["results"]
    assert result["score"] == 1.0
    assert result["reply"]["text"] == "It costs $20."
    assert [(call["name"], call["arguments"]) for call in result["reply"]["tool_calls"]] == [
        ("get_product", {"id": 3}),
        ("get_stock", {"id": 3}),
    ]
    assert result["reply"]["tool_calls"][1]["result"] == 7
    assert result["reply"]["usage"]["input_tokens"] == 10
    assert result["reply"]["evidence"]["tools_observed"]


def test_raw_shows_every_event(command: Any, serve_events: Any, tmp_path: Path) -> None:
    (tmp_path / "answerkey.toml").write_text(f'[targets.shop]\nurl = "{serve_events(OWN)}"\n')
    raw = command("ask", "What does bike 3 cost?", "--target", "shop", "--raw").out
    for text in ("get_product", "get_stock", '"event": "step"'):
        assert text in raw


def test_an_expression_reaches_the_events(
    command: Any, write_rows: Any, serve_events: Any, tmp_path: Path
) -> None:
    (tmp_path / "answerkey.toml").write_text(
        f'[targets.shop]\nurl = "{serve_events(OWN)}"\n[targets.shop.reply]\n'
        "text = \"join('', events[?event=='token'].data.t)\"\n"
        "tool_calls = \"events[?event=='step'].data.{name: what, arguments: with}\"\n"
    )
    done = command("run", write_rows("golden.jsonl", GOLDEN), "--target", "shop", "--json")
    assert json.loads(done.out)["summary"]["score"] == 1.0


def test_tool_events_with_usual_names_are_calls_without_configuration(
    command: Any, write_rows: Any, serve_events: Any
) -> None:
    url = serve_events(
        _event("tool", {"name": "get_product", "arguments": {"id": 3}})
        + _event("tool", {"name": "get_stock", "arguments": {"id": 3}})
        + _event("message", {"text": "It costs $20."})
    )
    done = command("run", write_rows("golden.jsonl", GOLDEN), "--target", url, "--json")
    [result] = json.loads(done.out)["results"]
    assert result["reply"]["tools_used"] == ["get_product", "get_stock"]
    assert result["score"] == 1.0


def answered_with(kind: bytes, header: bytes, body: bytes) -> Reply:
    """The reply in these bytes, after which the server hangs up."""

    async def respond(connection: Connection) -> None:
        if await connection.request():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n" + header + b"\r\n\r\n"
            await connection.send(head + body)
            connection.hang_up()

    async def asked() -> Reply:
        async with serving(respond) as url, HttpTarget(HttpSettings(url=url)) as target:
            return await target.ask(Ask(question="What does bike 3 cost?", conversation_id="c"))

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("kind", "header", "body", "completeness"),
    [
        (b"text/plain", b"Content-Length: 13", b"It costs $20.", "complete"),
        (b"text/plain", b"Connection: close", b"It costs $20.", "partial"),
        (b"application/json", b"Connection: close", b'{"answer": "It costs $20."}', "complete"),
    ],
)
def test_a_text_that_ends_with_its_connection_may_be_cut_off(
    kind: bytes, header: bytes, body: bytes, completeness: str
) -> None:
    reply = answered_with(kind, header, body)
    assert (reply.text, reply.evidence.completeness, reply.failure) == ("It costs $20.", completeness, None)


_PIECES = b'{"tools_used": []}\n{"token": "It costs "}\n{"token": "$20."}\n'
_WHOLE_CHUNK = b"%x\r\n%b\r\n" % (len(_PIECES), _PIECES)


@pytest.mark.parametrize(
    ("header", "body", "completeness", "failure"),
    [
        (b"Content-Length: %d" % len(_PIECES), _PIECES, "complete", None),
        (b"Transfer-Encoding: chunked", _WHOLE_CHUNK + b"0\r\n\r\n", "complete", None),
        # The body ends with the connection: one that broke looks the same.
        (b"Connection: close", _PIECES, "partial", None),
        (b"Connection: close", _PIECES + b'{"type": "done"}\n', "complete", None),
        (b"Content-Length: %d" % (len(_PIECES) + 9), _PIECES, "partial", "connection"),
        (b"Transfer-Encoding: chunked", _WHOLE_CHUNK, "partial", "connection"),
    ],
)
def test_a_stream_without_a_mark_of_its_end_is_complete_if_http_says_where_it_ends(
    header: bytes, body: bytes, completeness: str, failure: str | None
) -> None:
    reply = answered_with(b"application/x-ndjson", header, body)
    assert reply.text == "It costs $20."
    assert reply.evidence.completeness == completeness
    assert reply.evidence.tools_observed == (completeness == "complete")
    assert (reply.failure and reply.failure.kind) == failure


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('tool_calls = "{"', "is not a JMESPath expression"),
        ('tool = "x"', "tool"),
    ],
)
def test_a_mapping_that_cannot_work_is_one_line(
    command: Any, write_rows: Any, tmp_path: Path, table: str, message: str
) -> None:
    (tmp_path / "answerkey.toml").write_text(
        f'[targets.shop]\nurl = "http://127.0.0.1:9/"\n[targets.shop.events.step]\n{table}\n'
    )
    done = command("run", write_rows("golden.jsonl", GOLDEN), "--target", "shop")
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
