"""`answerkey ask` on real servers and functions: what came back, how it was read, what would read more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

NESTED = {
    "status": "ok",
    "data": {
        "turns": [
            {"sender": "user", "text": "Where is it?"},
            {"sender": "bot", "text": "It is at 900 S 9th St."},
        ],
        "trace": {"steps": [{"kind": "llm"}, {"tool_id": "query_database", "params": {"sql": "SELECT 1"}}]},
    },
    "meta": {"tokens": {"input": 3, "output": 5}},
}


def test_each_part_is_shown_with_its_place(command: Callable[..., Any], chatbot: Callable[..., Any]) -> None:
    bot = chatbot(lambda body: {"answer": "At 900 S 9th St.", "tool_calls": [{"name": "look"}], "debug": 7})
    asked = command("ask", "Where is it?", "--target", bot.url, "--json")
    assert asked.code == 0
    document = asked.document
    assert document["raw"]["debug"] == 7
    assert document["reply"]["text"] == "At 900 S 9th St."
    assert document["read"] == {"text": "answer", "tool_calls": "tool_calls[].name"}
    assert document["unread"] == ["debug"]
    assert document["proposed"] == {}
    assert document["scorecard"] is None
    shown = command("ask", "Where is it?", "--target", bot.url).out
    assert "At 900 S 9th St.  from answer" in shown
    assert "sources are not observed" in shown


def test_a_mapping_is_proposed_where_the_usual_names_fail_and_it_works(
    command: Callable[..., Any], chatbot: Callable[..., Any], tmp_path: Path
) -> None:
    bot = chatbot(lambda body: NESTED)
    asked = command("ask", "Where is it?", "--target", bot.url)
    assert asked.code == 3
    assert "map the text under" in asked.err
    proposed = asked.out.partition("[targets.NAME.reply]")[2]
    settings = f'target = "mine"\n[targets.mine]\nurl = "{bot.url}"\n[targets.mine.reply]\n{proposed}'
    (tmp_path / "answerkey.toml").write_text(settings)
    document = command("ask", "Where is it?", "--json").document
    assert document["reply"]["text"] == "It is at 900 S 9th St."
    assert document["reply"]["tool_calls"][0]["arguments"] == {"sql": "SELECT 1"}
    assert document["read"]["text"] == "data.turns[?sender=='bot'] | [-1].text"


def test_a_case_of_the_golden_set_is_scored(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    golden = write_rows(
        "golden.jsonl", {"id": "where", "question": "Where?", "expected_keywords": ["Montrose"]}
    )
    Path("bot.py").write_text("def answer(question):\n    return {'answer': question + ' In Montrose.'}\n")
    for named in ("where", "Where?"):
        asked = command("ask", named, "--target", "bot.py:answer", "--questions", golden, "--json")
        assert asked.document["scorecard"]["components"]["response_quality"]["score"] == 1.0
        assert asked.document["raw"] == {"answer": "Where? In Montrose."}


def test_a_refused_field_is_named(command: Callable[..., Any], chatbot: Callable[..., Any]) -> None:
    wrong = {
        "detail": [{"type": "missing", "loc": ["body", "message"], "msg": "Field required", "input": {}}]
    }
    bot = chatbot(lambda body: web.json_response(wrong, status=422))
    asked = command("ask", "Where?", "--target", bot.url)
    assert asked.code == 3
    assert "HTTP 422: body.message: Field required; check the target's body" in asked.err


def test_a_run_whose_replies_have_no_readable_text_is_the_mappings_fault(
    command: Callable[..., Any], chatbot: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    golden = write_rows(
        "golden.jsonl", {"question": "Where?", "expected_keywords": ["9th"]}, {"question": "Why?"}
    )
    run = command("run", golden, "--target", chatbot(lambda body: NESTED).url, "--json")
    assert run.code == 3
    assert run.document["summary"]["score"] is None
    assert run.document["summary"]["harness"] == {"mapping": 2}
    assert "`answerkey ask` shows the reply" in run.err


def test_a_secret_that_is_echoed_is_not_shown(
    command: Callable[..., Any], chatbot: Callable[..., Any], monkeypatch: Any, tmp_path: Path
) -> None:
    bot = chatbot(lambda body: {"answer": "fine", "echo": body["key"]})
    monkeypatch.setenv("BOT_KEY", "s3cr3t-value")
    (tmp_path / "answerkey.toml").write_text(
        f'target = "t"\n[targets.t]\nurl = "{bot.url}"\nbody = {{q = "{{{{question}}}}", key = "${{BOT_KEY}}"}}\n'
    )
    asked = command("ask", "Hello")
    assert asked.code == 0
    assert "s3cr3t-value" not in asked.out + asked.err
