# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp==2.3.0", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""The MCP package's own spans of a client and its server: which tool was called and whether it failed, nothing else."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tracing import export_spans, run_traced

export_spans()

from mcp import Client
from mcp_servers import server
from model_server import ANSWER, CALLS


async def agent(question: str) -> str:
    async with Client(server) as client:
        for _, name, arguments in CALLS:
            await client.call_tool(name, arguments)
    return ANSWER


if __name__ == "__main__":
    run_traced("mcp", agent, "names")
