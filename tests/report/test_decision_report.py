"""A run against its baseline in every report: verdict, difference with its interval, flips with both replies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.config import load_settings
from answerkey.runs.stored import open_configured_store
from server.serving import serving

GOLDEN = [{"id": f"q{i}", "question": f"What is {i}?", "expected_keywords": [str(i)]} for i in range(20, 40)]
BOT = """
def before(question):
    number = int(question.split()[-1].rstrip("?"))
    return {"answer": f"It is {number}, <i>surely</i>." if number != 39 else "Perhaps.", "tools_used": []}


def after(question):
    number = int(question.split()[-1].rstrip("?"))
    return {"answer": f"It is {number}." if number >= 30 else "No | idea.", "tools_used": []}
"""

BROKEN_ONCE = """

def bad(question):
    return {"answer": "No.", "tools_used": []} if "25" in question else before(question)
"""


@pytest.fixture
def decided(command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path) -> Any:
    golden = write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT)
    assert command("run", golden, "--target", "bot.py:before", "--name", "base").code == 0
    return command(
        *("run", golden, "--target", "bot.py:after", "--name", "candidate", "--baseline", "base"),
        *("-o", "report.html", "-o", "report.md", "-o", "report.json"),
    )


def test_the_report_of_a_run_with_a_baseline_decides(decided: Any, tmp_path: Path) -> None:
    assert decided.code == 1
    for name, before, after in (
        ("report.html", "It is 25, &lt;i&gt;surely&lt;/i&gt;.", "No | idea."),
        ("report.md", "It is 25, &lt;i&gt;surely&lt;/i&gt;.", "No \\| idea."),
    ):
        text = (tmp_path / name).read_text()
        assert "worse: -18.0 points (95% interval" in text
        assert "10 worse (10 broken), 1 fixed" in text
        for said in (before, after, "q25: What is 25?", "Perhaps.", "missing 25"):
            assert said in text, (name, said)
    flips = json.loads((tmp_path / "report.json").read_text())["comparison"]["flips"]
    fixed = next(flip for flip in flips if flip["kind"] == "fixed")
    assert (fixed["reply_from"], fixed["reply_to"]) == ("Perhaps.", "It is 39.")
    assert fixed["because"] == "0 of 1 keywords found; missing 39"


def test_the_decision_comes_first_then_causes_then_questions(decided: Any, tmp_path: Path) -> None:
    page = (tmp_path / "report.html").read_text()
    order = ("no regression", "than the baseline base", "Why points were lost", "What was scored")
    order += ("Against the baseline:",)
    order += ("Passed, speed, cost and errors", "Changed questions:", 'id="questions"', "By category")
    body = page.partition("<main>")[2]
    places = [body.index(words) for words in order]
    assert places == sorted(places)
    reason = body.index("lost points: the reply does not say")
    assert body.index("Why points were lost") < reason < body.index("What was scored")


def test_a_failed_gate_and_its_reason_come_before_the_grade(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    report = (tmp_path / "report.md").read_text()
    compared = command("compare", "base", "candidate", "--fail-on", "regression").out
    alone = command(
        "run", "golden.jsonl", "--target", "bot.py:after", "--gate", "score >= 0.9", "-o", "alone.md"
    )
    rows = [{"id": case["id"], "answer": "No idea."} for case in GOLDEN]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    scored = command("score", "log.jsonl", "--questions", "golden.jsonl", "--gate", "score >= 0.9")
    for text, gate, cause, figure in (
        (decided.out, "no regression", "20.0 of 20.0 lost points: the reply does not say", "  0.800"),
        (report, "no regression", "20.0 of 20.0 lost points: the reply does not say", "0.800"),
        (compared, "no regression", "20.0 of 20.0 lost points: the reply does not say", "-18.0 points"),
        (alone.out, "score >= 0.9", "20.0 of 20.0 lost points: the reply does not say", "  0.800"),
        ((tmp_path / "alone.md").read_text(), "score &gt;= 0.9", "20.0 of 20.0 lost points", "· 0.800"),
        (scored.out, "score >= 0.9", "40.0 of 40.0 lost points: the reply does not say", "  0.600"),
    ):
        assert -1 < text.find(gate) < text.find(cause) < text.find(figure), text[:600]
    passed = command("run", "golden.jsonl", "--target", "bot.py:after", "--gate", "score >= 0.1").out
    assert -1 < passed.find("  0.800") < passed.find("20.0 of 20.0 lost points") < passed.find("score >= 0.1")
    assert "FAILED" not in passed


def test_plan_says_why_its_figure_is_not_that_of_compare(decided: Any, command: Callable[..., Any]) -> None:
    assert decided.code == 1
    shown = command("plan", "base", "candidate").out
    assert "`compare` has its own from the width of its interval" in " ".join(shown.split())


def test_the_terminal_lists_what_got_worse_once_and_ends_with_the_gates(decided: Any) -> None:
    assert sum(line.startswith("  broken ") for line in decided.out.splitlines()) == 10
    end = decided.out.partition("Changed questions:")[2]
    assert "broken" in end
    assert end.rstrip().endswith("no regression: worse")


def test_a_comparison_file_has_both_replies(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    assert command("compare", "base", "candidate", "-o", "compared.html", "-o", "compared.md").code == 0
    for name in ("compared.html", "compared.md"):
        text = (tmp_path / name).read_text()
        assert "base replied" in text
        assert "Perhaps." in text


def test_a_stored_run_is_held_against_its_baseline_anew(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    files = ("again.html", "again.md", "again.json", "again.comment.md")
    assert command("report", "candidate", *(part for name in files for part in ("-o", name))).code == 0
    for name in ("html", "md", "json"):
        assert (tmp_path / f"again.{name}").read_text() == (tmp_path / f"report.{name}").read_text()
    assert "worse -18.0 points" in " ".join(command("show", "candidate").out.split())
    comment = (tmp_path / "again.comment.md").read_text()
    assert comment.startswith("<!-- answerkey ")
    for said in (
        "### 🔴 worse: -18.0 points",
        "❌ no regression failed",
        "10 worse (10 broken), 1 fixed, 10 of them",
    ):
        assert said in comment
    command("runs", "rm", "base", "--yes")
    assert command("report", "candidate", "-o", "again.md").code == 0
    assert "baseline of this run cannot be evaluated any more: no run" in (tmp_path / "again.md").read_text()


def test_what_was_confirmed_stays_with_the_run(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    asked = ("run", "golden.jsonl", "--target", "bot.py:after", "--baseline", "base", "--confirm", "2")
    live = json.loads(command(*asked, "--gate", "broken == 0", "--json").out)
    stored = json.loads(command("show", "--json").out)
    assert stored["gates"] == live["gates"] == [{"gate": "broken == 0", "passed": False, "value": 10}]
    assert stored["comparison"] == live["comparison"]


@pytest.fixture
def confirmed(command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path) -> None:
    """Runs `good`, `other` with the same replies, and `bad`, whose single lower score was confirmed against `good`."""
    golden = write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT + BROKEN_ONCE)
    for name in ("good", "other"):
        assert command("run", golden, "--target", "bot.py:before", "--name", name).code == 0
    asked = ("run", golden, "--target", "bot.py:bad", "--name", "bad", "--baseline", "good", "--confirm", "3")
    assert command(*asked, "-o", "bad.html").code == 1


def test_a_confirmed_verdict_is_that_of_every_comparison_of_the_two_runs(
    confirmed: None, command: Callable[..., Any], tmp_path: Path
) -> None:
    shown = json.loads(command("show", "bad", "--json").out)["comparison"]
    found = command("compare", "good", "bad", "--fail-on", "regression", "--json")
    compared = json.loads(found.out)
    assert found.code == 1
    for document in (shown, compared):
        assert (document["verdict"], document["broken"], document["regression"]) == ("worse", 1, True)
        assert document["confirmation"]["times"] == 3
    assert (
        " worse  1 question confirmed broken; mean: no clear difference"
        in command("compare", "good", "bad").out
    )
    card = (tmp_path / "bad.html").read_text().partition('id="decision-title"')[2].partition("</section>")[0]
    assert "Worse" in card
    assert "the baseline good: 1 question confirmed broken; mean" in " ".join(card.split())
    assert "No clear difference" not in card


def test_a_confirmation_against_another_run_does_not_count(
    confirmed: None, command: Callable[..., Any]
) -> None:
    for pair in (("other", "bad"), ("bad", "good")):
        found = command("compare", *pair, "--fail-on", "regression", "--json")
        document = json.loads(found.out)
        assert found.code == 0
        assert (document["verdict"], document["confirmation"]) == ("no clear difference", None)
    assert "whether that is chance: answerkey run --baseline" in command("compare", "other", "bad").out


def test_the_dashboard_gives_the_confirmed_verdict(confirmed: None, command: Callable[..., Any]) -> None:
    compared = json.loads(command("compare", "good", "bad", "--json").out)
    base, candidate = compared["base"]["id"], compared["candidate"]["id"]
    settings = load_settings()
    with serving(lambda: open_configured_store(settings, None)) as client:
        pages = ("/", f"/runs/{candidate}", f"/compare?base={base}&run={candidate}")
        for page in pages:
            text = client.get(page).text
            assert ">Worse<" in text, page
            assert "1 question confirmed broken" in text, page
            # The home page has the other experiment too.
            if page != "/":
                assert "No clear difference" not in text, page


def test_why_says_what_was_asked_again(confirmed: None, command: Callable[..., Any]) -> None:
    said = " ".join(command("why", "good", "bad").out.split())
    assert "--confirm asked 1 changed question 3 or more times again: 1 confirmed broken or worse" in said
    assert "was asked once" not in said
    assert "each question was asked once" in " ".join(command("why", "other", "bad").out.split())


def test_the_runs_before_are_the_trend(decided: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    asked = ("run", "golden.jsonl", "--target", "bot.py:after", "-o", "trend.html", "-o", "trend.md")
    command(*asked, "--name", "later", "-o", "trend.comment.md")
    for name in ("trend.html", "trend.md"):
        trend = (tmp_path / name).read_text().partition("Earlier runs")[2]
        # Another chatbot's run is none of them.
        assert trend.index("candidate (") < trend.index("later (")
        assert "base (" not in trend
        # As everywhere: a percentage on a page, a fraction in a text.
        assert ("80% B" in trend) == name.endswith("html")
        assert ("0.800 B" in trend) == name.endswith("md")
    assert "this one: 0.800 → 0.800" in (tmp_path / "trend.comment.md").read_text()


def test_the_job_summary_says_it_once(
    command: Callable[..., Any], decided: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    command("run", "golden.jsonl", "--target", "bot.py:after", "--baseline", "base")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.count("🔴 worse: -18.0 points") == 1
    assert "candidate (" in summary.partition("Earlier runs")[2]


def test_a_run_that_is_scored_anew_keeps_its_baseline(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    done = command("rescore", "candidate", "--match", "literal", "-o", "anew.md")
    assert done.code == 1, done.err
    assert "no regression failed" in (tmp_path / "anew.md").read_text()
    assert "worse: -18.0 points" in (tmp_path / "anew.md").read_text()
    assert command("report", "candidate", "-o", "again.md").code == 0
    assert "worse: -18.0 points" in (tmp_path / "again.md").read_text()
