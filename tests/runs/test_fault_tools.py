"""Faults in the answers of an HTTP tool and an MCP server behind the proxy."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import aiohttp
import pytest

from answerkey.observe import observations
from answerkey.runs.api import faults
from answerkey.runs.fault_results import FaultResult
from free_ports import free_port

RECORD = {"account": "A", "balance": 4100}
QUESTIONS = [{"id": "A", "question": "What is the balance of account A?", "expected_keywords": ["4100"]}]


class Tools(BaseHTTPRequestHandler):
    """An HTTP tool and an MCP server."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer: dict[str, Any] = RECORD
        if self.path == "/mcp":
            content = [{"type": "text", "text": json.dumps(RECORD)}]
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": content}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def tools() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tools)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def bot_for(port: int, kind: str) -> Any:
    """A chatbot that calls its tool over HTTP or MCP, with a timeout of its own, and says what came of it."""

    async def bot(question: str) -> dict[str, Any]:
        call: dict[str, Any] = {"name": "get_balance", "arguments": {"account": "A"}}
        if kind == "mcp":
            body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
            body |= {"params": {"name": "get_balance", "arguments": {"account": "A"}}}
            path = "/server"
        else:
            body, path = {"account": "A"}, "/get_balance"
        timeout = aiohttp.ClientTimeout(total=2)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(f"http://127.0.0.1:{port}{path}", json=body) as response,
            ):
                response.raise_for_status()
                found = await response.json()
            if kind == "mcp":
                found = json.loads(found["result"]["content"][0]["text"])
            said = (
                f"The balance is {found['balance']}." if "balance" in found else "There is no record of it."
            )
            return {"answer": said, "tool_calls": [{**call, "result": found}]}
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            said = f"I could not look that up ({type(error).__name__}). Please try again later."
            return {"answer": said, "tool_calls": [{**call, "error": type(error).__name__}]}

    return bot


def run(tmp_path: Path, address: str, way: str, kind: str) -> FaultResult:
    port = free_port()
    return faults(
        QUESTIONS,
        bot_for(port, way),
        kinds=[kind],
        proxy=port,
        upstreams={"server": f"{address}/mcp", "get_balance": f"{address}/balance"},
        store=f"sqlite:///{tmp_path}/a.db",
    )


@pytest.mark.parametrize("way", ["http", "mcp"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("error", {"http": "ClientResponseError", "mcp": "JSONDecodeError"}),
        ("rate_limit", {"http": "ClientResponseError", "mcp": "ClientResponseError"}),
        ("timeout", {"http": "TimeoutError", "mcp": "TimeoutError"}),
        ("truncated", {"http": "ClientPayloadError", "mcp": "ClientPayloadError"}),
        ("garbage", {"http": "JSONDecodeError", "mcp": "JSONDecodeError"}),
        ("empty", {"http": "no record", "mcp": "no record"}),
        ("stale", {"http": "3731", "mcp": "3731"}),
    ],
)
def test_answers_of_tools_are_broken_on_the_way(
    tmp_path: Path, tools: str, way: str, kind: str, said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "HANG_S", 3.0)
    result = run(tmp_path, tools, way, kind)
    [case] = result.cases
    assert case.landed, case.because
    assert case.outcome == ("misled" if kind == "stale" else "honest"), (case.reply, case.because)
    assert said[way] in (case.reply or "")
    assert result.clean.summary.score == 1.0
