"""A run in Python and in a notebook: a sequence of results, rows, a DataFrame, short texts, conditions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.errors import UsageError

GOLDEN = [
    {"id": "where", "question": "Where is it?", "expected_keywords": ["900"], "category": "place"},
    {"id": "why", "question": "Why?", "expected_keywords": ["because"]},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> answerkey.Run:
    monkeypatch.chdir(tmp_path)
    return answerkey.evaluate(
        GOLDEN, target=lambda question: f"You will find it at 900 Main Street. <b>{question}</b>", name="mine"
    )


def test_results_are_a_sequence_with_the_documents_names(run: answerkey.Run) -> None:
    first, second = run.results
    document = run.to_dict()["results"][0]
    for name in ("id", "trial", "category", "score", "grade", "passed", "metrics"):
        assert getattr(first, name) == document[name]
    assert first.reply.text == document["reply"]["text"]
    assert first.reply.latency_ms == document["reply"]["latency_ms"]
    assert first.components["response_quality"].score == document["components"]["response_quality"]["score"]
    assert run.results[-1] is second
    assert [trial.id for trial in run.results[:1]] == ["where"]


def test_texts_are_short(run: answerkey.Run) -> None:
    assert repr(run) == f"<Run 'mine' {run.id}: 0.800 B, 2 questions>"
    assert repr(run.results[1]) == "<Trial 'why': 0.600 D>"
    assert repr(run.summary) == "<Summary: 0.800 B, 1 of 2 questions passed>"
    assert all(len(repr(part)) < 200 for part in (run, run.results, run.summary))


def test_rows_and_a_data_frame(run: answerkey.Run) -> None:
    rows = run.rows()
    assert rows[0]["response_quality"] == 1.0
    assert rows[1]["answer"] == "You will find it at 900 Main Street. <b>Why?</b>"
    frame = run.to_pandas()
    assert list(frame["score"]) == [1.0, 0.6]
    assert list(frame.columns) == list(rows[0])


def test_a_notebook_gets_safe_html(run: answerkey.Run) -> None:
    html = run._repr_html_()
    assert "0.800 B" in html
    assert "&lt;b&gt;Why?" in html
    assert "<b>Why?" not in html


def test_conditions_are_evaluated_at_once(run: answerkey.Run) -> None:
    assert run.check("score >= 0.8", "response_quality >= 0.5")
    failed = run.check("score >= 0.9")
    assert not failed
    assert repr(failed) == "<score >= 0.9 failed: score is 0.8>"
    assert failed[0].value == 0.8
    with pytest.raises(UsageError, match="did you mean"):
        run.check("scor >= 0.9")
    with pytest.raises(UsageError, match="--baseline"):
        run.check("no regression")


class Chain:
    """As LangChain's runnables are: not callable."""

    def invoke(self, question: str, config: dict[str, Any] | None = None) -> dict[str, Any]:
        thread = (config or {})["configurable"]["thread_id"]
        return {"answer": f"At 900, {question}", "tools_used": [], "conversation_id": thread}


class AsyncChain(Chain):
    async def ainvoke(self, question: str) -> str:
        return "At 900."


class Executor:
    input_keys = ["input"]  # noqa: RUF012  # as LangChain's executors have it

    def invoke(self, given: dict[str, str]) -> dict[str, str]:
        return {"output": f"At 900, {given['input']}"}


class Agent:
    async def run(self, question: str) -> str:
        return "At 900."


@pytest.mark.parametrize("make", [Chain, AsyncChain, Executor, Agent])
def test_what_runs_is_a_target(
    make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = answerkey.evaluate(GOLDEN[:1], target=make())
    assert run.score == 1.0
    assert make.__name__ in run.info.target


def test_what_does_not_run_is_refused_with_what_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"\.invoke, \.ainvoke or \.run"):
        answerkey.evaluate(GOLDEN, target=object())  # type: ignore[arg-type]
