"""Logs with several replies a question: how they count, what was planned, how they are numbered, kept, compared and rescored."""

import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.comparison.columns import columns_from_run
from answerkey.runs.api import score_replies
from answerkey.runs.logs import LogScoring

GOLDEN = [
    {"id": name, "question": f"What about {name}?", "expected_keywords": ["alpha", "beta"]} for name in "abc"
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def reply(name: str, answer: str = "alpha beta", **fields: Any) -> dict[str, Any]:
    return {"id": name, "answer": answer, "tools_used": [], **fields}


def inline(*, numbered: bool = True) -> list[dict[str, Any]]:
    """Two questions with three replies each, trial by trial, of which the first is right."""
    answers = ["alpha beta", "alpha", "nothing of it"]
    return [
        {**question, **reply(question["id"], answer)} | ({"trial": number} if numbered else {})
        for number, answer in enumerate(answers, start=1)
        for question in GOLDEN[:2]
    ]


@pytest.mark.parametrize("numbered", [True, False])
def test_identical_logs_do_not_differ(command: Any, write_rows: Any, numbered: bool) -> None:
    for name in ("x", "y"):
        write_rows(f"{name}.jsonl", *inline(numbered=numbered))
        scored = command("score", f"{name}.jsonl", "--name", name, "--json").document
        assert (scored["run"]["repeat"], scored["summary"]["questions"]) == (3, 2)
    compared = command("compare", "x", "y", "--json").document
    assert compared["verdict"] == "no clear difference"
    for side in ("base", "candidate"):
        assert (compared[side]["questions"], compared[side]["score"]) == (2, scored["summary"]["score"])


def test_replies_are_of_one_question_whatever_the_run_says_of_its_repeats(write_rows: Any) -> None:
    run = score_replies(write_rows("x.jsonl", *inline()))
    # In the order of the log the trials of a question do not stand beside each other.
    assert [trial.id for trial in run.results] == ["a", "b"] * 3
    columns = columns_from_run(run)
    assert (columns.ids, columns.replies) == (["a", "b"], 6)
    assert columns.scores.tolist() == pytest.approx([run.score, run.score], abs=1e-6)
    assert [len(scores) for _, scores in columns.trials()] == [3, 3]


@pytest.mark.parametrize("golden", [True, False])
def test_rescoring_keeps_every_reply_and_changes_nothing(command: Any, write_rows: Any, golden: bool) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    told = inline() if not golden else [reply(row["id"], row["answer"]) for row in inline()]
    write_rows("x.jsonl", *told, "{broken", reply("a", trial=-1) | {"question": "?"}, *told[:1])
    given = ["--questions", "golden.jsonl"] if golden else []
    scored = command("score", "x.jsonl", *given, "--name", "x", "--json").document
    shown = command("show", "x", "--json").document
    again = command("rescore", "x", "--json").document
    assert len(again["results"]) == 7
    assert again["results"] == shown["results"] == scored["results"]
    assert again["run"]["repeat"] == scored["run"]["repeat"] == 4
    # Seven replies, two bad rows, and in the golden set a question that nobody answered.
    assert scored["summary"]["planned"] == (10 if golden else 9)
    assert again["summary"] == shown["summary"]
    assert shown["summary"] == scored["summary"]


def test_uneven_numbers_of_replies_are_not_missing(command: Any, write_rows: Any) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    write_rows("x.jsonl", *(reply("a") for _ in range(5)), reply("b", trial=1_000_000_000))
    arguments = ("score", "x.jsonl", "--questions", "golden.jsonl", "--json")
    for name in ((), ("--name", "x")):
        document = command(*arguments, *name).document
        assert (document["summary"]["planned"], document["run"]["repeat"]) == (7, 5)
        assert document["summary"]["coverage"] == pytest.approx(6 / 7, abs=1e-6)
        assert not any("resume" in line for line in document["warnings"])
        assert any("1 of them questions without a reply" in line for line in document["warnings"])
    write_rows("golden.jsonl", *GOLDEN[:2])
    assert command(*arguments).document["summary"]["coverage"] == 1
    done = command("resume", "x")
    assert done.code == 2
    assert "recorded log" in done.err


def test_questions_beside_the_golden_set_are_kept_and_not_taken_for_its_own(
    command: Any, write_rows: Any
) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    own = {"id": "z", "question": "What else?", "expected_keywords": ["alpha"]}
    write_rows("x.jsonl", own | reply("z"), reply("a"), own | reply("z"))
    document = command("score", "x.jsonl", "--questions", "golden.jsonl", "--name", "x", "--json").document
    assert document["summary"]["planned"] == 5
    again = command("rescore", "x", "--json").document
    assert again["summary"] == document["summary"]


@pytest.mark.parametrize("kept", ["trials", "lines"])
def test_replies_without_a_number_get_the_lowest_that_are_free(write_rows: Any, kept: Any) -> None:
    log = [
        reply("a", trial=0),
        reply("a", trial=1),
        reply("a"),
        reply("a", trial=3),
        reply("b", trial=2),
        reply("b"),
    ]
    run = score_replies(write_rows("x.jsonl", *log), how=LogScoring(results=kept))
    if kept == "trials":
        numbers = [trial.number for trial in run.results]
    else:
        lines = b"".join(run.results.lines()).splitlines()  # type: ignore[attr-defined]
        numbers = [json.loads(line)["trial"] for line in lines]
    # 0 is a number as any other; replies without one get the lowest free ones.
    assert numbers == [0, 1, 2, 3, 2, 1]
    stored = score_replies("x.jsonl", name="x")
    assert [(trial.id, trial.number) for trial in stored.results] == [
        *(("a", number) for number in (0, 1, 2, 3)),
        *(("b", number) for number in (1, 2)),
    ]
    assert not any("trial number" in line for line in run.warnings)


def test_a_number_that_stands_twice_is_told_and_no_reply_lost(command: Any, write_rows: Any) -> None:
    told = [
        ("a", 1, "alpha beta"),
        ("a", 1, "alpha"),
        ("a", 2, "beta"),
        ("a", 1, "no"),
        ("b", 7, "alpha beta"),
    ]
    log = [GOLDEN["ab".index(name)] | reply(name, answer, trial=number) for name, number, answer in told]
    write_rows("x.jsonl", *log)
    for name in ((), ("--name", "x")):
        document = command("score", "x.jsonl", "--json", *name).document
        (warning,) = document["warnings"]
        assert "2 replies (1 questions: a) share a trial number with another reply" in warning
    assert [(row["trial"], row["reply"]["text"]) for row in document["results"]] == [
        *((1, "alpha beta"), (2, "beta"), (3, "alpha"), (4, "no")),
        (7, "alpha beta"),
    ]
    again = command("rescore", "x", "--json").document
    assert again["results"] == document["results"]


def test_rows_of_an_earlier_scoring_that_are_named_among_the_logs_are_reported(
    command: Any, folder: Path, write_rows: Any
) -> None:
    (folder / "logs").mkdir()
    golden = write_rows(
        "golden.jsonl", *({"id": name, "question": f"Tell me {name}."} for name in ("a", "b"))
    )
    write_rows("logs/october.jsonl", *inline())
    score = ("score", "logs/october.jsonl", "--questions", golden)
    command(*score, "-o", "logs/scored.jsonl")
    warnings = command(*score, "logs/scored.jsonl", "--json").document["warnings"]
    assert any("logs/scored.jsonl: rows that answerkey wrote itself" in line for line in warnings)
    assert any(
        "6 replies (2 questions: a, b) share a trial number with another reply" in line for line in warnings
    )
    # By itself such a file is a log like any other.
    alone = command("score", "logs/scored.jsonl", "--questions", golden, "--json").document
    assert not any("wrote itself" in line or "trial number" in line for line in alone["warnings"])
    # Without what was expected, every reply would be right.
    refused = command("score", "logs/scored.jsonl")
    assert refused.code == 2
    assert "--questions" in refused.err


def test_the_worst_of_a_log_are_replies(command: Any, write_rows: Any) -> None:
    write_rows("x.jsonl", *(row for _ in range(6) for row in inline(numbered=False)))
    assert "Worst replies (10 of the 24 that lost points)" in command("score", "x.jsonl").out


def test_a_negative_trial_is_refused(write_rows: Any) -> None:
    run = score_replies(write_rows("x.jsonl", reply("a"), reply("a", trial=-1)))
    (reason,) = run.summary.unscored
    assert "a whole number from 0 to" in reason


def test_many_different_values_in_blocks_are_added_up_whatever_their_order(
    command: Any, write_rows: Any
) -> None:
    """The questions of a block share their values and slices as long as there are few different ones; here there are not."""
    rows = [
        reply(
            f"q{number % 6000}",
            "alpha",
            question="?",
            category=f"c{number % 300}",
            expected_keywords=["alpha", "beta"][: 1 + number % 2],
            usage={"cost": number / 1000},
        )
        for number in range(9000)
    ]
    write_rows("x.jsonl", *rows)
    write_rows("y.jsonl", *reversed(rows))
    there, back = (command("score", file, "--json").document for file in ("x.jsonl", "y.jsonl"))
    assert there["summary"] == back["summary"]
    assert there["summary"]["questions"] == 6000
    # The mean over questions; those up to 2,999 were answered twice.
    costs = [(n + n + 6000) / 2000 if n < 3000 else n / 1000 for n in range(6000)]
    assert there["summary"]["cost"]["question"] == pytest.approx(sum(costs) / 6000)
    assert there["summary"]["score"] == pytest.approx((1.0 + 0.8) / 2)
    assert {part["category"]: part["questions"] for part in there["categories"]} == {
        f"c{number}": 20 for number in range(300)
    }
