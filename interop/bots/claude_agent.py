# /// script
# requires-python = ">=3.11"
# dependencies = ["claude-agent-sdk==0.2.182"]
# ///
"""The Claude Agent SDK: its messages as its own parser makes them, and as the lines that it reads."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from claude_agent_sdk._internal.message_parser import parse_message
from model_server import ANSWER, CALLS
from recording import case, record

IDS = {"session_id": "s1", "uuid": "u1", "parent_tool_use_id": None}
USAGE = {"input_tokens": 11, "output_tokens": 7}


def said(*content: Any) -> Any:
    message = {"role": "assistant", "model": "scripted", "content": [*content], "id": "msg_1", "usage": USAGE}
    return {"type": "assistant", "message": message, **IDS}


def brought(identity: str, content: str, is_error: bool) -> Any:
    block = {"type": "tool_result", "tool_use_id": identity, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, **IDS}


LINES: list[Any] = [
    {"type": "system", "subtype": "init", "session_id": "s1", "tools": ["query_database"], "uuid": "u0"},
    *(said({"type": "tool_use", "id": one, "name": name, "input": given}) for one, name, given in CALLS),
    brought("call_1", "442300", False),
    brought("call_2", "index offline", True),
    said({"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": ANSWER}),
    {
        "type": "result",
        "subtype": "success",
        "duration_ms": 10,
        "duration_api_ms": 9,
        "is_error": False,
        "num_turns": 2,
        "session_id": "s1",
        "total_cost_usd": 0.01,
        "usage": USAGE,
        "result": ANSWER,
        "uuid": "u9",
    },
]


@case()
async def messages(question: str) -> Any:
    for line in LINES:
        yield parse_message(line)


@case()
def message_list(question: str) -> Any:
    return [parse_message(line) for line in LINES]


@case()
def lines(question: str) -> Any:
    return iter(LINES)


if __name__ == "__main__":
    record("claude-agent-sdk")
