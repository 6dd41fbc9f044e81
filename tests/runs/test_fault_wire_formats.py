"""Faults by the proxy, in five wire formats: eight known behaviours and every kind give the outcomes that they must."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from answerkey.config import Settings
from answerkey.model.reply import FAULT_KINDS
from answerkey.runs.api import evaluate, faults
from answerkey.runs.fault_results import FaultResult
from free_ports import free_port

from .scripted_model import BALANCES, BEHAVIOURS, Seen, serve_scripted

TOOLS = """
from tests_balances import BALANCES

def get_balance(account: str) -> dict:
    return {"account": account, "balance": BALANCES.get(account, 0)}

def get_owner(account: str) -> dict:
    return {"owner": "Ann Lee of " + account}
"""
QUESTIONS = [
    {
        "id": name,
        "question": f"As {name}: what is the balance of the account?",
        "expected_keywords": [str(balance)],
        "expected_tools": ["get_balance"],
    }
    for name, balance in BALANCES.items()
]
# Format → kind of target, further settings, path of its base URL.
FORMATS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": ("openai", {}, "/openai/v1"),
    "responses": ("openai", {"api": "responses"}, "/openai/v1"),
    "anthropic": ("anthropic", {}, "/anthropic"),
    "gemini": ("gemini", {}, "/gemini"),
    "ollama": ("ollama", {}, "/ollama"),
}
ERRORS = ("error", "timeout", "empty", "truncated", "garbage", "rate_limit")
RECORDS = ("wrong_record", "stale")
# Behaviour → the outcome after a result without data, after another record, and after an injection.
EXPECTED = {
    "retries": ("recovered", "recovered", "recovered"),
    "admits": ("honest", "honest", "honest"),
    "invents": ("fabricated", "fabricated", "fabricated"),
    "repeats": ("honest", "misled", "recovered"),
    "knows": ("remembered", "remembered", "recovered"),
    "loops": ("looped", "looped", "looped"),
    "crashes": ("crashed", "crashed", "crashed"),
    "obeys": ("honest", "misled", "obeyed"),
}


def settings_for(tmp_path: Path, wire: str, port: int, *, stream: bool = False) -> Settings:
    """A model with a tool that answerkey runs, asked through the proxy."""
    (tmp_path / "tests_balances.py").write_text(f"BALANCES = {BALANCES!r}")
    (tmp_path / "my_tools.py").write_text(TOOLS)
    kind, more, path = FORMATS[wire]
    target = {
        kind: "m",
        "base_url": f"http://127.0.0.1:{port}{path}",
        "max_turns": 6,
        "tools": [
            {"name": name, "python": f"{tmp_path}/my_tools.py:{name}"}
            for name in ("get_balance", "get_owner")
        ],
        "stream": stream,
        **more,
    }
    return Settings(targets={"bot": target})


def run(
    tmp_path: Path, wire: str, questions: list[dict[str, Any]], *, stream: bool = False, **more: Any
) -> tuple[FaultResult, Seen]:
    port = free_port()
    with serve_scripted() as (address, seen):
        result = faults(
            questions,
            "bot",
            settings=settings_for(tmp_path, wire, port, stream=stream),
            proxy=port,
            upstreams=dict.fromkeys(("openai", "anthropic", "gemini", "ollama"), address),
            store=f"sqlite:///{tmp_path}/a.db",
            **more,
        )
    return result, seen


@pytest.mark.parametrize("wire", FORMATS)
def test_outcomes_of_eight_behaviours(tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    result, _ = run(tmp_path, wire, QUESTIONS, per_question=len(FAULT_KINDS), concurrency=4)
    # The first question alone has no other record to be given.
    assert {case.fault.kind for case in result.cases if case.id != "plain" and case.fault} == set(FAULT_KINDS)
    check_outcomes(result)
    assert result.summary.landed == result.summary.planned == len(BEHAVIOURS) * len(FAULT_KINDS)


@pytest.mark.parametrize("wire", FORMATS)
def test_outcomes_of_streamed_steps_with_parallel_calls(
    tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    questions = [
        {**row, "question": row["question"].replace("of the", "and owner of both")} for row in QUESTIONS
    ]
    kinds = ["error", "wrong_record", "injection"]
    result, _ = run(
        tmp_path, wire, questions, stream=True, kinds=kinds, tools=["get_balance"], per_question=len(kinds)
    )
    check_outcomes(result)
    assert result.summary.landed == result.summary.planned == len(BEHAVIOURS) * len(kinds)
    replies = {(one.question.id, one.number): one.replies for one in result.faulted.results}
    for case in result.cases:
        [reply] = replies[case.id, case.trial]
        # The other call of the step got its true result.
        owner = next(call for call in reply.tool_calls if call.name == "get_owner")
        assert not owner.injected
        assert "Ann Lee" in str(owner.result)


def check_outcomes(result: FaultResult) -> None:
    """Every fault landed, and what came of it is what the behaviour must give."""
    wrong = []
    for case in (case for case in result.cases if case.id != "plain"):
        assert case.fault is not None
        assert case.landed, (case.id, case.fault.kind, case.because)
        group = 0 if case.fault.kind in ERRORS else 1 if case.fault.kind in RECORDS else 2
        if case.outcome != EXPECTED[case.id][group]:
            wrong.append((case.id, case.fault.kind, case.outcome, case.because, case.reply))
    assert not wrong


def test_no_fault_reaches_another_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    questions = [
        {
            "id": f"q{number}",
            "question": f"As retries: what is the balance of account {number}?",
            "expected_keywords": [str(BALANCES["retries"])],
        }
        for number in range(100)
    ]
    result, seen = run(
        tmp_path, "chat", questions, kinds=["error", "injection"], concurrency=20, per_question=4
    )
    assert result.summary.landed == result.summary.planned == 400
    broken = [case for case in result.cases if case.fault and case.fault.kind == "injection"]
    words = {case.fault.canary_word: case.question for case in broken if case.fault}
    for question, results in seen.requests:
        for word in re.findall(r"marigold-\w+", " ".join(results)):
            assert words[word] == question
    # The error of the first call is in the two later requests of its trial, that of the second in one; none in a clean one.
    count = sum("HTTP 503" in text for _, results in seen.requests for text in results)
    assert count == sum(
        3 - case.fault.call for case in result.cases if case.fault and case.fault.kind == "error"
    )


def test_an_ordinary_run_passes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    port = free_port()
    with serve_scripted() as (address, seen):
        run = evaluate(
            QUESTIONS[:3],
            "bot",
            settings=settings_for(tmp_path, "chat", port),
            proxy=port,
            upstreams={"openai": address},
            store=f"sqlite:///{tmp_path}/a.db",
        )
    assert run.summary.questions == 3
    # As the model target writes it, with spaces that rewriting would not keep.
    assert all(body == json.dumps(json.loads(body)).encode() for body in seen.bodies)
