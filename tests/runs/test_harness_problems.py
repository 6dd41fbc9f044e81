"""What the harness itself could not do is not charged to the chatbot: unscored, counted, and said."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import answerkey as ak

ROWS = [{"id": f"q{n}", "question": f"Q{n}?", "expected_keywords": ["yes"]} for n in range(4)]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("status", [401, 403, 404, 405, 422])
def test_the_same_configuration_error_everywhere_is_exit_3(
    status: int, command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(lambda body: web.json_response({"detail": "not like this"}, status=status))
    done = command("run", write_rows("g.jsonl", *ROWS), "--target", bot.url, "--json")
    assert done.code == 3
    summary = done.document["summary"]
    assert summary["harness"] == {"configuration": 4}
    assert summary["errors"] == {}
    assert (summary["score"], summary["coverage"]) == (None, 0.0)
    assert f"every reply was HTTP {status}: not like this; check" in done.err
    assert all(result["score"] is None for result in done.document["results"])
    assert done.document["results"][0]["reply"]["error"]["kind"] == "http"
    assert command("show", "latest", "--json").document == done.document


def test_a_sign_in_page_or_a_redirect_everywhere_is_exit_3(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    def page(body: dict[str, Any]) -> web.Response:
        text = f"<!DOCTYPE html><html><head><title>Sign in for {body['question']}</title></head></html>"
        return web.Response(text=text, content_type="text/html")

    def redirect(body: dict[str, Any]) -> web.Response:
        return web.Response(status=302, headers={"Location": "/login"})

    golden = write_rows("g.jsonl", *ROWS)
    for handler, said in (
        (page, "a web page (text/html), titled 'Sign in for Q"),
        (redirect, "redirected to /login"),
    ):
        done = command("run", golden, "--target", chatbot(handler).url, "--json")
        assert done.code == 3
        assert done.document["summary"]["harness"] == {"configuration": 4}
        assert said in done.err
        assert "check that the target's address is the API's, and its headers or login" in done.err


def test_one_that_is_refused_among_others_is_the_chatbots(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    def some(body: dict[str, Any]) -> Any:
        if body["question"] == "Q1?":
            return web.json_response({"detail": "no such thing"}, status=404)
        return {"answer": "yes"}

    document = command("run", write_rows("g.jsonl", *ROWS), "--target", chatbot(some).url, "--json").document
    assert document["summary"]["harness"] == {}
    assert document["summary"]["errors"] == {"http": 1}
    assert document["summary"]["coverage"] == 1.0


def mapped(url: str) -> str:
    return f'[targets.bot]\nurl = "{url}"\n[targets.bot.reply]\ntext = "data.said"\n'


def test_a_mapping_that_finds_nothing_in_any_reply_is_exit_3(
    command: Any, chatbot: Callable[..., Any], write_rows: Any, tmp_path: Path
) -> None:
    bot = chatbot(lambda body: {"answer": "yes"})
    (tmp_path / "answerkey.toml").write_text(mapped(bot.url))
    done = command("run", write_rows("g.jsonl", *ROWS), "--target", "bot", "--json")
    assert done.code == 3
    assert done.document["summary"]["harness"] == {"mapping": 4}
    assert done.document["summary"]["errors"] == {}
    assert "reply.text = 'data.said' finds nothing" in done.err


@pytest.mark.parametrize("always", [True, False])
def test_an_object_for_a_text_in_every_reply_is_exit_3(
    always: bool, command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(lambda body: {"answer": {"a": 1} if always or body["question"] == "Q1?" else "yes"})
    done = command("run", write_rows("g.jsonl", *ROWS), "--target", bot.url, "--json")
    summary = done.document["summary"]
    expected = (3, {"mapping": 4}, {}) if always else (0, {}, {"malformed": 1})
    assert (done.code, summary["harness"], summary["errors"]) == expected
    assert not always or "the reply's answer is an object, not text" in done.err


def test_a_mapping_that_finds_nothing_in_one_reply_is_a_null_reply(
    command: Any, chatbot: Callable[..., Any], write_rows: Any, tmp_path: Path
) -> None:
    bot = chatbot(lambda body: {"data": {"said": None if body["question"] == "Q1?" else "yes"}})
    (tmp_path / "answerkey.toml").write_text(mapped(bot.url))
    document = command("run", write_rows("g.jsonl", *ROWS), "--target", "bot", "--json").document
    assert document["summary"]["errors"] == {"null": 1}
    assert document["summary"]["harness"] == {}


def test_a_scorer_that_crashes_is_the_harness_s_and_a_sleeping_one_is_not_waited_for() -> None:
    awake = threading.Event()

    def picky(question: ak.Question, reply: ak.Reply) -> float:
        if question.id == "q0":
            raise RuntimeError("no model")
        if question.id == "q1":
            awake.wait()
        if question.id == "q2":
            while not awake.is_set():
                pass
        return 1.0

    scoring = ak.Scoring(weights={"response_quality": 0.5, "picky": 0.5})
    try:
        run = ak.evaluate(ROWS, lambda question: "yes", scorers=[picky], scoring=scoring, scoring_seconds=0.2)
    finally:
        awake.set()
    assert run.summary.harness == {"scorer": 1, "too_costly": 2}
    assert run.summary.coverage == 0.25
    assert run.summary.score == 1.0
    assert any("too costly: scoring q1 (trial 1)" in line for line in run.warnings)
    assert any("too costly: scoring q2 (trial 1)" in line for line in run.warnings)


def test_a_password_in_the_address_and_an_authorization_header_are_refused(
    command: Any, chatbot: Callable[..., Any], write_rows: Any, tmp_path: Path
) -> None:
    url = chatbot(lambda body: {"answer": "yes"}).url.replace("http://", "http://bob:hunter22@")
    (tmp_path / "answerkey.toml").write_text(
        f'[targets.bot]\nurl = "{url}"\nheaders = {{ Authorization = "Bearer x" }}\n'
    )
    done = command("run", write_rows("g.jsonl", *ROWS), "--target", "bot")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "keep one of the two" in done.err
    assert "hunter22" not in done.err
