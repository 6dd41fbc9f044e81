"""The first hour: nested request bodies, and questions before there is a golden set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web


def nested(body: dict[str, Any]) -> Any:
    """What FastAPI does with {"input": {"text": str}, "session": str}."""
    problems = []
    if "input" not in body:
        problems.append({"type": "missing", "loc": ["body", "input"], "msg": "Field required"})
    elif not isinstance(body["input"], dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        problems.append({"type": "model_attributes_type", "loc": ["body", "input"], "msg": message})
    elif "text" not in body["input"]:
        problems.append({"type": "missing", "loc": ["body", "input", "text"], "msg": "Field required"})
    if "session" not in body:
        problems.append({"type": "missing", "loc": ["body", "session"], "msg": "Field required"})
    if problems:
        return web.json_response({"detail": problems}, status=422)
    return {"answer": f"You asked: {body['input']['text']}", "tools_used": []}


def configured_body() -> Any:
    return msgspec.toml.decode(Path("answerkey.toml").read_bytes())["targets"]["chatbot"]["body"]


def test_init_finds_a_nested_body_from_what_the_refusals_say(
    command: Any, chatbot: Callable[..., Any]
) -> None:
    done = command("init", "--target", chatbot(nested).url, "--no-run")
    assert done.code == 0, done.err
    assert configured_body() == {"input": {"text": "{{question}}"}, "session": "{{conversation_id}}"}


def test_init_takes_a_body(command: Any, chatbot: Callable[..., Any]) -> None:
    bot = chatbot(lambda body: {"answer": body["input"]["text"], "tools_used": []})
    given = '{"input": {"text": "{question}"}, "lang": "en"}'
    assert command("init", "--target", bot.url, "--body", given, "--no-run").code == 0
    assert configured_body() == {"input": {"text": "{{question}}"}, "lang": "en"}
    assert bot.asked[0]["input"] == {"text": "What can you help me with?"}


@pytest.mark.parametrize(
    ("body", "message"),
    [("{text", "--body is not valid JSON"), ('{"text": "hello"}', "has no place for the question")],
)
def test_a_wrong_body_is_one_line(command: Any, body: str, message: str) -> None:
    done = command("init", "--target", "http://127.0.0.1:1/chat", "--body", body)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err
    assert not Path("answerkey.toml").exists()


def test_ask_works_before_the_golden_set_is_written(command: Any) -> None:
    Path("bot.py").write_text("def answer(question):\n    return 'It costs 310.'\n")
    Path("answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
    done = command("ask", "What does bike 3 cost?")
    assert done.code == 0
    assert "It costs 310." in done.out
    # A golden set that was named on the command line must exist.
    assert command("ask", "x", "--questions", "nowhere.jsonl").code == 2


@pytest.mark.parametrize("golden", ["golden.yaml", "golden.jsonl"])
def test_init_adds_what_an_existing_configuration_lacks(command: Any, golden: str) -> None:
    Path("bot.py").write_text(
        "def answer(question):\n    return {'answer': 'Bike 3 costs 310.', 'tools_used': ['find']}\n"
    )
    named = "" if golden == "golden.yaml" else f'questions = "{golden}"\n'
    own = f"{named}target = 'bot.py:answer'\n\n[scoring]\nmatch = 'smart'\n"
    Path("answerkey.toml").write_text(own)
    done = command("init", "--question", "What does it cost?", "--no-run")
    assert done.code == 0, done.err
    assert golden in done.out
    assert Path(".github/workflows/answerkey.yml").exists()
    text = Path("answerkey.toml").read_text()
    assert text.endswith(own)
    assert ("+questions = " in done.out) == (not named)
    assert command("lint").code in (0, 1)
    graded = command("run", "--json").document
    assert graded["results"][0]["components"]["tool_usage"]["score"] == 1.0
    # Once more: nothing is missing.
    again = command("init", "--no-run")
    assert "wrote: nothing" in again.out
    assert Path("answerkey.toml").read_text() == text
