# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp==2.3.0"]
# ///
"""The tools of servers made with the MCP package, called by model targets of every provider; exit 1 if one is seen wrongly."""

import asyncio
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from model_server import serve_model

from answerkey.protocols import Ask
from answerkey.targets.resolve import resolve_target
from recording import QUESTION, problem_with

KINDS = (
    {"openai": "m"},
    {"openai": "m", "api": "responses"},
    {"anthropic": "m"},
    {"gemini": "m"},
    {"ollama": "m"},
)

server = MCPServer("books")


@server.tool()
def query_database(sql: str) -> str:
    """Query the database."""
    return "442300"


@server.tool()
def search_document_content(query: str) -> str:
    """Search the documents."""
    raise ToolError("index offline")


async def ask(place: str, base: str) -> int:
    """The number of providers whose model's calls were seen wrongly."""
    wrong = 0
    for kind in KINDS:
        # One that ends a program and begins another takes seconds: streams are enough over HTTP.
        for stream in (False, True) if place.startswith("http") else (False,):
            table: dict[str, Any] = {**kind, "base_url": base, "stream": stream, "tools": [{"mcp": place}]}
            async with resolve_target("m", settings={"m": table}) as target:
                reply = await target.ask(Ask(question=QUESTION, conversation_id="c"))
            problem = problem_with(reply, "everything")
            wrong += problem is not None
            way = "HTTP" if place.startswith("http") else "pipes"
            said = " ".join([next(iter(kind)), kind.get("api", "")]).strip()
            print(
                f"mcp {version('mcp')} over {way}, {said}{' streamed' if stream else ''}: {problem or 'everything seen'}"
            )
    return wrong


def main() -> int:
    """Both transports."""
    base = serve_model()
    program = f"{sys.executable} {Path(__file__).resolve()} pipes"
    wrong = asyncio.run(ask(program, base))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen(
        [sys.executable, __file__, "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        wrong += asyncio.run(ask(f"http://127.0.0.1:{port}/mcp", base))
    finally:
        child.terminate()
        child.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pipes"]:
            server.run()
        case ["http", port]:
            server.run("streamable-http", port=int(port))
        case _:
            sys.exit(main())
