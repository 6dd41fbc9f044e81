# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp==2.3.0"]
# ///
"""MCP: the result of a tool that is a chatbot, by its Python names and as it is sent."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from mcp import types
from model_server import ANSWER
from recording import case, record

RESULT = types.CallToolResult(content=[types.TextContent(type="text", text=ANSWER)])


@case("nothing")
def result(question: str) -> Any:
    return RESULT


@case("nothing")
def sent_result(question: str) -> Any:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "result": RESULT.model_dump(by_alias=True, mode="json", exclude_none=True),
    }


if __name__ == "__main__":
    record("mcp")
