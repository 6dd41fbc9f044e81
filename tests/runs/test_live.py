"""Runs from question to document: asked, stored, interrupted, resumed, edited, rescored."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey.errors import InterruptedRunError, TargetUnreachableError
from run_documents import stripped

ROWS = [
    {"id": "a", "question": "Capital of France?", "category": "geo", "expected_keywords": ["Paris"]},
    {"id": "b", "question": "Capital of Peru?", "category": "geo", "expected_keywords": ["Lima"]},
    {"id": "c", "question": "Two and two?", "category": "sums", "expected_keywords": ["4"], "tags": ["easy"]},
]
ANSWERS = {"Capital of France?": "Paris.", "Capital of Peru?": "I think it is Cusco.", "Two and two?": "4"}


def know(body: dict[str, Any]) -> dict[str, Any]:
    return {"answer": ANSWERS.get(body["question"], "No idea."), "tools_used": []}


def test_a_run_is_graded_kept_and_found_again(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(know)
    document = command(
        "run", write_rows("g.jsonl", *ROWS), "--target", bot.url, "--name", "first", "--json"
    ).document
    assert document["schema"] == 1
    assert document["run"]["status"] == "complete"
    assert document["summary"]["score"] == pytest.approx((1 + 0.6 + 1) / 3)
    assert [result["score"] for result in document["results"]] == [1.0, 0.6, 1.0]
    assert {part["category"]: part["score"] for part in document["categories"]} == {"geo": 0.8, "sums": 1.0}
    assert command("show", "first", "--json").document == document


def test_repeats_make_one_question(command: Any, chatbot: Callable[..., Any], write_rows: Any) -> None:
    said = iter(["Lima", "Cusco", "Lima"])
    bot = chatbot(lambda body: {"answer": next(said), "tools_used": []})
    document = command(
        "run",
        write_rows("g.jsonl", ROWS[1]),
        "--target",
        bot.url,
        "--repeat",
        3,
        "--concurrency",
        1,
        "--json",
    ).document
    assert [(result["trial"], result["score"]) for result in document["results"]] == [
        (1, 1.0),
        (2, 0.6),
        (3, 1.0),
    ]
    assert document["summary"]["questions"] == 1
    assert document["summary"]["replies"] == 3
    assert document["summary"]["score"] == pytest.approx(2.6 / 3)


def test_conversations_go_turn_by_turn(command: Any, chatbot: Callable[..., Any], write_rows: Any) -> None:
    bot = chatbot(know)
    row = {
        "id": "talk",
        "turns": [
            {"question": "Capital of France?", "expected_keywords": ["Paris"]},
            {"question": "Capital of Peru?", "expected_keywords": ["Lima"]},
        ],
    }
    (result,) = command("run", write_rows("g.jsonl", row), "--target", bot.url, "--json").document["results"]
    assert [turn["score"] for turn in result["turns"]] == [1.0, 0.6]
    assert result["score"] == 0.8
    assert len({body["conversation_id"] for body in bot.asked}) == 1


def test_an_edited_question_is_asked_again_alone(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(know)
    command("run", write_rows("g.jsonl", *ROWS), "--target", bot.url, "--name", "r")
    bot.asked.clear()
    edited = [ROWS[0], {**ROWS[1], "question": "Capital of Peru, please?"}, ROWS[2]]
    write_rows("g.jsonl", *edited)
    document = command("resume", "r", "--accept-changes", "--json").document
    assert [body["question"] for body in bot.asked] == ["Capital of Peru, please?"]
    assert document["results"][1]["question"] == "Capital of Peru, please?"
    assert document["summary"]["coverage"] == 1.0


def test_edited_expectations_are_scored_again_without_asking(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(know)
    command("run", write_rows("g.jsonl", *ROWS), "--target", bot.url, "--name", "r")
    bot.asked.clear()
    write_rows("g.jsonl", ROWS[0], {**ROWS[1], "expected_keywords": ["Cusco"]}, ROWS[2])
    document = command("resume", "r", "--accept-changes", "--json").document
    assert bot.asked == []
    assert document["summary"]["score"] == 1.0


def test_rescoring_asks_nothing_and_changes_only_scores(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(lambda body: {"answer": "It is $1,000.", "tools_used": []})
    row = {"id": "m", "question": "How much?", "expected_keywords": ["1000"]}
    first = command("run", write_rows("g.jsonl", row), "--target", bot.url, "--json").document
    bot.asked.clear()
    literal = command("rescore", "latest", "--match", "literal", "--json").document
    assert (first["summary"]["score"], literal["summary"]["score"]) == (1.0, 0.6)
    assert literal["run"]["match"] == "literal"
    assert bot.asked == []
    assert (
        command("rescore", "latest", "--match", "standard", "--json").document["summary"] == first["summary"]
    )


def test_a_scored_log_gives_the_same_document_as_the_live_run(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    golden = write_rows("g.jsonl", *ROWS)
    live = command("run", golden, "--target", chatbot(know).url, "--json").document
    log = [{"id": row["id"], **know(row)} for row in reversed(ROWS)]
    scored = command("score", write_rows("log.jsonl", *log), "--questions", golden, "--json").document
    by_id = {result["id"]: result for result in scored["results"]}
    for result in live["results"]:
        assert stripped(by_id[result["id"]])["components"] == stripped(result)["components"]
    for part in (
        "score",
        "grade",
        "interval",
        "components",
        "passed",
        "pass_rate",
        "grades",
        "errors",
        "coverage",
    ):
        assert scored["summary"][part] == live["summary"][part]


def test_interrupting_keeps_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    stuck = asyncio.Event()

    async def bot(question: str) -> str:
        asked.append(question)
        if len(asked) == 4:
            stuck.set()
            await asyncio.sleep(30)
        return "yes"

    questions = [{"id": f"q{n}", "question": f"Q{n}?"} for n in range(10)]

    async def interrupted() -> None:
        task = asyncio.create_task(ak.evaluate_async(questions, bot, concurrency=1))
        await stuck.wait()
        task.cancel()
        await task

    with pytest.raises(InterruptedRunError, match="answerkey resume"):
        asyncio.run(interrupted())
    from answerkey.store import open_store

    with open_store() as store:
        info = store.find_run("latest")
        assert info.status == "interrupted"
        run = store.load_run(info)
        assert run.summary.coverage == 0.3
        assert len(list(run.results)) == 3


def test_ctrl_c_exits_130_and_says_how_to_go_on(
    chatbot: Callable[..., Any], write_rows: Any, tmp_path: Path
) -> None:
    async def slow(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.2)
        return {"answer": "yes", "tools_used": []}

    bot = chatbot(slow)
    golden = write_rows("g.jsonl", *({"id": f"q{n}", "question": f"Q{n}?"} for n in range(100)))
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", "run", str(golden), "--target", bot.url, "--concurrency", "1"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while len(bot.asked) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "answerkey resume" in err
    assert "Traceback" not in err


def test_the_python_interface_in_a_running_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def notebook() -> ak.Run:
        return ak.evaluate(ROWS, lambda question: know({"question": question}), repeat=2)

    run = asyncio.run(notebook())
    assert run.summary.score == pytest.approx((1 + 0.6 + 1) / 3)
    assert run.summary.grade == "B"
    assert run.to_dict()["summary"]["replies"] == 6
    assert json.dumps(run.to_dict())
    assert run.info.repeat == 2


def test_filters_and_samples(command: Any, chatbot: Callable[..., Any], write_rows: Any) -> None:
    bot, golden = chatbot(know), write_rows("g.jsonl", *ROWS)

    def ids(*flags: object) -> list[str]:
        return [
            r["id"] for r in command("run", golden, "--target", bot.url, "--json", *flags).document["results"]
        ]

    assert ids("--where", "category=geo") == ["a", "b"]
    assert ids("--where", "category!=geo") == ["c"]
    assert ids("--where", "tag=easy") == ["c"]
    assert ids("--where", "category=geo", "--where", "id=b,c") == ["b"]
    assert ids("--sample", 2, "--seed", 7) == ids("--sample", 2, "--seed", 7)
    assert len(ids("--sample", 2, "--seed", 7)) == 2


def test_an_unreachable_target_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetUnreachableError):
        ak.evaluate(ROWS, "http://127.0.0.1:9/chat")
    assert list(tmp_path.iterdir()) == []


def test_questions_that_expect_nothing_are_counted(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bare = [
        {"id": "x", "question": "How are you?"},
        {"id": "y", "question": "And now?", "checks": [{"max_words": 3}]},
    ]
    known = {"id": "z", "question": "Capital of France?", "reference_answer": "Paris"}
    bot = chatbot(know)
    document = command(
        "run", write_rows("g.jsonl", *ROWS, *bare, known), "--target", bot.url, "--json"
    ).document
    assert document["summary"]["expecting_nothing"] == 2
    assert any(line.startswith("2 of 6 questions expect nothing") for line in document["warnings"])
