"""A small MCP server that answers as the protocol's own package does (2.3.0), with quirks that real ones have.

`python mcp_server.py QUIRK` speaks over its pipes; `serve_mcp(QUIRK)` over HTTP.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["serve_mcp"]

SCHEMA = {"properties": {"sql": {"title": "Sql", "type": "string"}}, "required": ["sql"], "type": "object"}
TOOLS = [
    {"name": "query_database", "description": "Runs a query.", "inputSchema": SCHEMA},
    {"name": "search", "description": "Searches.", "inputSchema": {"type": "object"}},
    {"name": "picture", "inputSchema": {"type": "object"}},
]


def answer(message: dict[str, Any], quirk: str) -> dict[str, Any]:
    """What a server answers to a request."""
    method, params = message["method"], message.get("params", {})
    stateless = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if quirk == "stateless" and not stateless:
        return {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"]}}}
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}}
    if method == "tools/list":
        if quirk == "pages":
            place = int(params.get("cursor", "0"))
            more = {"nextCursor": str(place + 1)} if place + 1 < len(TOOLS) else {}
            return {"result": {"tools": [TOOLS[place]], **more}}
        return {"result": {"tools": TOOLS}}
    if params["name"] == "query_database":
        said = f"442300 for {params['arguments']['sql']}"
        content = [{"type": "text", "text": said}]
        return {"result": {"content": content, "isError": False, "structuredContent": {"result": said}}}
    if params["name"] == "picture":
        return {"result": {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}}
    return {"result": {"content": [{"type": "text", "text": "index offline"}], "isError": True}}


def main(quirk: str) -> None:
    """Speak over the pipes."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if quirk == "silent":
            sys.exit("out of licences")
        if quirk == "noisy":
            print("starting up …\n[1, 2]\n{not json")
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))
        if quirk == "dies" and message["method"] == "tools/call":
            sys.exit("disk full")
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message, quirk)}), flush=True)


def serve_mcp(quirk: str, seen: list[dict[str, str]]) -> tuple[str, ThreadingHTTPServer]:
    """Speak over HTTP, in a thread; the headers of each request are kept in `seen`."""
    sessions: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({name.lower(): value for name, value in self.headers.items()})
            given = self.headers.get("Mcp-Session-Id")
            if message["method"] == "initialize" and quirk != "stateless":
                given = f"s{sum('mcp-session-id' not in one for one in seen) - 1}"
                sessions.add(given)
            elif given is not None and given not in sessions:
                return self.reply(404, "application/json", b'{"detail": "no such session"}')
            if "id" not in message:
                return self.reply(202, "application/json", b"")
            found = {"jsonrpc": "2.0", "id": message["id"], **answer(message, quirk)}
            if quirk == "forgets" and message["method"] == "tools/list":
                sessions.clear()
            more = {"Mcp-Session-Id": given} if given else {}
            if quirk == "json":
                return self.reply(200, "application/json", json.dumps(found).encode(), more)
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
            events = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in (note, found))
            status = 400 if "error" in found else 200
            if status == 400:
                return self.reply(400, "application/json", json.dumps(found).encode())
            return self.reply(status, "text/event-stream", events.encode(), more)

        def do_DELETE(self) -> None:
            sessions.discard(self.headers.get("Mcp-Session-Id", ""))
            self.reply(200, "application/json", b"")

        def reply(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **(more or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/mcp", server


if __name__ == "__main__":
    main(sys.argv[1])
