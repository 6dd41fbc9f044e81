"""What a run says of its answer key, and critical questions: through the real command."""

import json
from pathlib import Path
from typing import Any

import pytest

QUESTIONS: list[dict[str, Any]] = [
    {"id": "rent", "question": "What was the rent in May?", "expected_keywords": ["rent", "May", "1420"]},
    {
        "id": "deposit",
        "severity": "critical",
        "question": "What is the deposit of unit 3?",
        "expected_keywords": [{"number": 900, "must": True}],
    },
    {
        "id": "lease",
        "severity": "critical",
        "question": "When does the lease of unit 3 end?",
        "expected_keywords": [{"date": "2025-03-31", "must": True}],
    },
    {"id": "agent", "question": "Who is the agent?", "expected_keywords": ["Ann Lee"]},
    {"id": "tax", "question": "What is the tax for 2024?", "expected_keywords": ["tax", "2024", "3810"]},
]
BOT = """
REPLIES = {"deposit": "The deposit is $950.", "lease": "It ends on March 31, 2025.", "agent": ""}

def answer(question):
    texts = [text for word, text in REPLIES.items() if word in question]
    return {"answer": texts[0] if texts else "About: " + question, "tools_used": ["db"]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rows = [row | {"expected_tools": ["db"]} for row in QUESTIONS]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
    return tmp_path


def test_a_run_says_what_its_key_is_worth(answerkey: Any, project: Path) -> None:
    done = answerkey("run", "--json")
    summary = json.loads(done.stdout)["summary"]
    assert summary["strength"] | {"low": 0, "high": 0} == {
        "value": 0.6,
        "low": 0,
        "high": 0,
        "questions": 5,
        "strong": 3,
    }
    assert summary["floor"]["bot"] == "calls every tool and repeats the question"
    # Two of three keywords are words of the question, twice; the others expect what no bot knows.
    assert summary["floor"]["value"] == pytest.approx((2 * (0.6 + 0.4 * 2 / 3) + 3 * 0.6) / 5, abs=1e-6)
    assert json.loads(answerkey("audit", "--json").stdout)["strength"] == summary["strength"]
    shown = answerkey("show", "latest").stdout
    assert "a bot that knows no answer scores 0.706 (it calls every tool and repeats the question)" in shown
    assert "key strength 60%" in shown
    assert "2 of 5 questions let a wrong reply pass" in shown


def test_gates_on_the_key(answerkey: Any, project: Path) -> None:
    good = answerkey("run", "--gate", "strength >= 0.5", "--gate", "floor <= 0.75")
    assert good.returncode == 0, good.stdout
    bad = answerkey("run", "--json", "--gate", "strength >= 0.9", "--gate", "floor <= 0.6")
    assert bad.returncode == 1
    values = [(gate["passed"], gate["value"]) for gate in json.loads(bad.stdout)["gates"]]
    assert values == [(False, 0.6), (False, pytest.approx(0.706666667))]


def test_a_key_that_a_trivial_bot_passes_is_in_the_headline(answerkey: Any, project: Path) -> None:
    rows = [
        {
            "id": str(number),
            "question": f"Which papers mention the lien of lot {number}?",
            "expected_keywords": ["lien", "lot"],
        }
        for number in range(6)
    ]
    (project / "weak.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = answerkey("run", "weak.jsonl", "-o", "weak.md", "-o", "weak.html")
    assert (
        "A — but a bot that knows no answer scores 1.000 (it calls no tool and repeats the question)"
        in done.stdout
    )
    assert "but a bot that knows no answer" in (project / "weak.md").read_text().splitlines()[0]
    assert "Excellent" not in done.stdout


def test_a_small_set_or_a_scorer_of_the_user_is_not_measured(answerkey: Any, project: Path) -> None:
    few = answerkey("run", "--where", "category=uncategorised", "--sample", "2", "--json")
    assert json.loads(few.stdout)["summary"]["strength"] is None
    (project / "own.py").write_text("def polite(question, reply):\n    return 'please' in reply.text\n")
    with (project / "answerkey.toml").open("a") as configuration:
        configuration.write(
            '[scorers.polite]\npython = "own.py:polite"\nweight = 0.2\n'
            "[scoring.weights]\ntool_usage = 0.4\nresponse_quality = 0.4\n"
        )
    own = answerkey("run", "--json")
    assert json.loads(own.stdout)["summary"]["floor"] is None


def test_a_critical_question_fails_by_a_single_wrong_reply(answerkey: Any, project: Path) -> None:
    good = {"id": "deposit", "answer": "The deposit is $900.", "tools_used": ["db"]}
    rows = [good, good | {"answer": "It is $900."}, good | {"answer": "It is $950."}]
    (project / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = answerkey(
        "score", "log.jsonl", "--questions", "golden.jsonl", "--gate", "critical_failures == 0", "--json"
    )
    assert done.returncode == 1
    summary = json.loads(done.stdout)["summary"]
    assert (summary["critical_failures"], summary["critical_failed"]) == (1, ["deposit"])
    assert summary["score"] > 0.8


def test_critical_questions_come_first_in_every_report(answerkey: Any, project: Path) -> None:
    done = answerkey(
        "run", "--gate", "critical_failures == 0", "-o", "r.md", "-o", "r.html", "-o", "r.junit.xml"
    )
    assert done.returncode == 1
    # The agent's question has a lower score.
    banner = "1 of 2 critical questions failed: deposit"
    assert f"CRITICAL  {banner}" in done.stdout
    listed = done.stdout.split("Questions that lost points")[1]
    assert listed.index("CRITICAL deposit") < listed.index("agent")
    assert banner in (project / "r.md").read_text().splitlines()[0]
    page = (project / "r.html").read_text()
    assert f"{banner}." in page
    assert page.index("What is the deposit") < page.index("Who is the agent")
    junit = (project / "r.junit.xml").read_text()
    assert junit.index('name="deposit"') < junit.index('name="rent"')
    assert "CRITICAL: score 0.600" in junit
    shown = json.loads(answerkey("show", "latest", "--json").stdout)["summary"]
    assert (shown["critical"], shown["critical_failures"], shown["critical_failed"]) == (2, 1, ["deposit"])


def test_critical_failures_of_a_log(answerkey: Any, project: Path) -> None:
    replies = [
        {"id": "deposit", "answer": "$950.", "tools_used": ["db"]},
        {"id": "lease", "answer": "On 2025-03-31.", "tools_used": ["db"]},
    ]
    (project / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in replies))
    done = answerkey("score", "log.jsonl", "--questions", "golden.jsonl", "--json")
    summary = json.loads(done.stdout)["summary"]
    assert (summary["critical_failures"], summary["critical_failed"]) == (1, ["deposit"])
    assert summary["strength"]["questions"] == 5


def test_a_log_lists_its_worst_replies_with_line_and_text(answerkey: Any, project: Path) -> None:
    rows = [
        {"id": "deposit", "answer": answer, "tools_used": ["db"]} for answer in ("It is $950.", "It is $9.")
    ]
    (project / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = answerkey("score", "log.jsonl", "--questions", "golden.jsonl")
    assert "deposit  line 1  What is the deposit" in done.stdout
    assert "“It is $9.”" in done.stdout


def test_a_gate_on_each_question_of_a_log_needs_no_name(answerkey: Any, project: Path) -> None:
    rows = [{"id": "deposit", "answer": "It is $950.", "tools_used": ["db"]}]
    (project / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = answerkey(
        "score", "log.jsonl", "--questions", "golden.jsonl", "--gate", "every question >= 0.7", "--json"
    )
    assert done.returncode == 1
    [gate] = json.loads(done.stdout)["gates"]
    assert not gate["passed"]


def test_what_has_no_score_is_not_praised(answerkey: Any, project: Path) -> None:
    few = [{"id": name, "question": f"{name}?", "expected_keywords": ["900"]} for name in ("a", "b")]
    rows = [{"id": name, "answer": "It is $900.", "tools_used": ["db"]} for name in ("a", "nobody")]
    for file, written in (("few.jsonl", few), ("log.jsonl", rows)):
        (project / file).write_text("".join(json.dumps(row) + "\n" for row in written))
    done = answerkey("score", "log.jsonl", "--questions", "few.jsonl", "-o", "r.md")
    page = (project / "r.md").read_text()
    assert "but only 33.3% of what was planned has a score" in done.stdout
    assert "but only 33.3% of what was planned has a score" in page
    assert "Excellent" not in done.stdout + page
