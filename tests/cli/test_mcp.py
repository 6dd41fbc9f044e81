"""The MCP server over standard input and output, with a real client, through the loop that docs/agents.md shows."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = [
    {"id": f"q{i}", "question": f"What is {i}?", "expected_tools": ["look"], "expected_keywords": [str(i)]}
    for i in range(10, 22)
]
BROKEN = """
print("a chatbot that prints")
def answer(question):
    number = question.split()[-1].rstrip("?")
    return {"answer": f"It is {number}" if int(number) < 20 else "Who knows", "tools_used": ["look"]}
"""


@pytest.fixture
def project(tmp_path: Path, write_rows: Callable[..., Path]) -> Path:
    write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BROKEN)
    (tmp_path / "answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
    return tmp_path


def talk(folder: Path, conversation: Callable[[Any], Any]) -> Any:
    """Start the server as an agent does, and have a conversation with it."""
    from mcp import Client, StdioServerParameters

    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSWERKEY_")}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "answerkey", "mcp"], cwd=str(folder), env=environment
    )

    async def run() -> Any:
        async with Client(server) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 120))


async def call(client: Any, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def test_an_agent_fixes_a_chatbot_until_its_gates_pass(project: Path) -> None:
    async def loop(client: Any) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {
            "run_set",
            "list_failures",
            "read_case",
            "compare_runs",
            "ask_question",
            "propose_case",
        }
        before = await call(client, "run_set", name="before", gates=["score >= 0.99"])
        assert before["gates_passed"] is False
        assert before["failed"] == ["q20", "q21"]
        listed = await call(client, "list_failures")
        assert listed["failed"] == 2
        assert listed["failures"][0]["reasons"] == ["missing keywords: 20 (−0.40)"]
        case = await call(client, "read_case", id="q20")
        assert case["case"]["expected_keywords"] == ["20"]
        assert case["trials"][0]["reply"]["text"] == "Who knows"

        (project / "bot.py").write_text(BROKEN.replace("< 20", "< 99"))
        gates = ["score >= 0.99", "no regression", "broken == 0"]
        after = await call(client, "run_set", baseline="before", confirm=2, gates=gates)
        assert after["gates_passed"] is True
        assert after["failed"] == []
        compared = await call(client, "compare_runs", base="before")
        assert {flip["id"] for flip in compared["flips"]} == {"q20", "q21"}
        assert compared["difference"]["mean"] > 0

    talk(project, loop)


def test_a_question_a_proposal_a_prompt_and_a_mistake(project: Path) -> None:
    golden = (project / "golden.jsonl").read_text()

    async def loop(client: Any) -> None:
        asked = await call(client, "ask_question", question="q11")
        assert asked["read"]["text"] == "answer"
        assert asked["scorecard"]["score"] == 1.0
        given = {"question": "What is the fee?", "expected_keywords": ["fee", "120"], "why": "users ask"}
        proposed = await call(client, "propose_case", **given)
        assert "echo" in " ".join(finding["code"] for finding in proposed["findings"])
        prompt = await client.get_prompt("fix_until_gates_pass", {"gates": "score >= 0.8"})
        assert "score >= 0.8" in prompt.messages[0].content.text
        wrong = await client.call_tool("list_failures", {"run": "nosuch"})
        assert wrong.is_error
        assert "`answerkey run` makes it" in wrong.content[0].text

    talk(project, loop)
    assert json.loads((project / "golden-proposed.jsonl").read_text())["question"] == "What is the fee?"
    assert (project / "golden.jsonl").read_text() == golden


def test_tool_calls_start_no_program_and_read_no_file_outside(project: Path) -> None:
    (project / "sub").mkdir()
    (project.parent / "outside.jsonl").write_text('{"question": "secret line"}\n')
    marker = project / "PWNED"

    async def loop(client: Any) -> None:
        for tool, arguments in (
            ("run_set", {"target": f"cmd:touch {marker}"}),
            ("ask_question", {"question": "q11", "target": f"cmd:touch {marker}"}),
            ("run_set", {"target": "sub/../other.py:bot"}),
            ("run_set", {"questions": "../outside.jsonl"}),
            ("run_set", {"questions": "/etc/passwd"}),
            ("list_failures", {"limit": -1}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error, (tool, arguments)
            assert "secret" not in refused.content[0].text
            assert "root:" not in refused.content[0].text
        assert (await call(client, "run_set", target="demo", questions="golden.jsonl"))["questions"] == 12

    talk(project, loop)
    assert not marker.exists()


def test_long_replies_are_cut(project: Path) -> None:
    (project / "bot.py").write_text(
        "def answer(question): return {'answer': 'x' * 3_000_000, 'tools_used': []}"
    )

    async def loop(client: Any) -> None:
        asked = await call(client, "ask_question", question="q11")
        assert asked["reply"]["text"].endswith("(2980000 more characters)")

    talk(project, loop)
