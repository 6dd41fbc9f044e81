"""Runs with a judge, through the command line and the Python interface, on real stores and processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.model.options import Price, Scoring
from answerkey.model.scorecard import details, reason
from answerkey.store import open_store
from answerkey.store.feedback import SqlJudgements

from .judging import ScriptedJudge, command, run_document

BOT = """
def answer(question):
    if "number 3 " in question:
        return None
    return f"The answer to {question!r} is Montrose." if "even" in question else f"I do not know {question}"
"""

# The same, but each question that it is asked leaves a letter in a file.
NOTING_BOT = f"""{BOT}
answered = answer

def answer(question):
    with open("asked", "a") as file:
        file.write("x")
    return answered(question)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    # Calls are counted here; test_own_canaries.py has these canaries.
    (tmp_path / "answerkey.toml").write_text("[judge]\nown_canaries = false\n")
    write_questions(tmp_path, 20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_questions(folder: Path, count: int) -> None:
    lines = [
        {
            "id": f"q{number}",
            "question": f"Question number {number} which is {'odd' if number % 2 else 'even'}?",
            "reference_answer": "It is in Montrose.",
            "expected_keywords": ["answer", "Montrose"],
        }
        for number in range(count)
    ]
    (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, lines)))


def asked(scripted: ScriptedJudge, model: str = "good") -> list[str]:
    return ["run", "golden.jsonl", "--target", "bot.py:answer", *judged_by(scripted, model)]


def judged_by(scripted: ScriptedJudge, *models: str) -> list[str]:
    flags = [part for model in models for part in ("--judge", model)]
    return [*flags, "--judge-base-url", scripted.base_url]


def test_a_judge_is_reported_beside_the_components(project: Path, scripted: ScriptedJudge) -> None:
    document = run_document(*asked(scripted))
    assert set(document["summary"]["components"]) == {"tool_usage", "response_quality", "error_handling"}
    # 10 even questions: both facts, 1.0. 9 odd ones: "answer" and "Montrose" missing, 0. One null reply: 0.
    assert document["summary"]["metrics"]["judge"] == 0.5
    assert document["judge"]["judged"] == 20
    assert document["judge"]["reliable"] is True
    assert document["warnings"] == []
    first = document["results"][0]
    assert first["metrics"]["judge_accuracy"] == 1.0
    assert first["findings"]["judge"]["judges"][0]["model"] == "good"
    shown = json.loads(command("show", "latest", "--json").stdout)
    assert shown["judge"] == document["judge"]


@pytest.mark.parametrize(
    ("quality", "even", "odd"),
    [("judge", 1.0, 0.0), ({"judge": 0.5, "keywords": 0.5}, 1.0, 0.0), ("keywords", 1.0, 0.0)],
)
def test_a_judge_can_be_the_response_quality(
    project: Path, scripted: ScriptedJudge, quality: Any, even: float, odd: float
) -> None:
    run = answerkey.evaluate(
        "golden.jsonl", "bot.py:answer", scoring=Scoring(quality=quality), judge=scripted.settings()
    )
    values = [result.scorecard.components["response_quality"].value for result in run.results]
    assert values[0] == even
    assert values[1] == odd


def test_a_blend_weighs_both(project: Path, scripted: ScriptedJudge) -> None:
    scoring = Scoring(quality={"judge": 0.75, "keywords": 0.25})
    run = answerkey.evaluate(
        "golden.jsonl", "bot.py:answer", scoring=scoring, judge=scripted.settings("lenient")
    )
    result = list(run.results)[1]
    quality = result.scorecard.components["response_quality"]
    assert quality.value == 0.75
    assert (details(quality)["keywords"], details(quality)["judge"]) == (0.0, 1.0)
    assert details(quality)["missing"] == ["answer", "Montrose"]


def test_an_unjudged_reply_is_unscored_and_counts_against_the_coverage(
    project: Path, scripted: ScriptedJudge
) -> None:
    run = answerkey.evaluate(
        "golden.jsonl", "bot.py:answer", scoring=Scoring(quality="judge"), judge=scripted.settings("prose")
    )
    results = list(run.results)
    card = results[0].scorecard
    assert card.components["response_quality"].value is None
    assert "not judged: the judge answered in prose" in reason(card.components["response_quality"])
    assert card.components["tool_usage"].value == 1.0
    assert card.total is None
    assert card.metrics["judge"] is None
    # The null reply was not put to the judge: it is worth nothing.
    assert sum(run.summary.unscored.values()) == 19
    assert all(reason.startswith("response_quality: not judged") for reason in run.summary.unscored)
    assert run.info.judge.unscored == 19
    assert any("19 of 20 replies were not judged (unreadable)" in line for line in run.warnings)
    assert run.summary.coverage == 0.05
    # Nothing else is lost.
    assert run.summary.components["error_handling"] == 0.95


def test_quality_by_a_judge_without_one_is_one_line(project: Path) -> None:
    (project / "answerkey.toml").write_text('[scoring]\nquality = "judge"\n')
    ended = command("run", "golden.jsonl", "--target", "bot.py:answer", check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "answerkey: the scoring makes a judge part of the score; set --judge MODEL or [judge] model\n"
    )


def test_the_configuration_names_judge_and_rubric(project: Path, scripted: ScriptedJudge) -> None:
    (project / "mine.toml").write_text(
        '[[criteria]]\nname = "kindness"\nweight = 70\nquestion = "Is it kind?"\n'
        '[[criteria]]\nname = "brevity"\nweight = 30\nquestion = "Is it short?"\n'
    )
    (project / "answerkey.toml").write_text(
        f'[judge]\nmodel = "good"\nbase_url = "{scripted.base_url}"\nrubric = "mine.toml"\nsamples = 3\n'
        "own_canaries = false\n"
    )
    document = run_document("run", "golden.jsonl", "--target", "bot.py:answer")
    assert document["judge"]["rubric"]["weights"] == {"kindness": 0.7, "brevity": 0.3}
    assert document["summary"]["metrics"]["judge_kindness"] == 0.5
    assert document["judge"]["samples"] == 3
    assert document["judge"]["calls"] == 3 * (19 + 4)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("modell = 'x'", "unknown setting 'modell' in [judge]; did you mean 'model'?"),
        ("model = 'x'\nsamples = 0", "[judge] samples = 0: must be at least 1"),
        ("model = 'x'\ntemperature = 3.0", "[judge] temperature = 3: must be between 0 and 2"),
        ("model = 'x'\nrubric = 'nice'", "unknown rubric 'nice'; there are correctness, pairwise, standard"),
        ("model = 'x'\nrubric = 'no.toml'", "no.toml: cannot be read: No such file or directory"),
        ("model = 'x'\nrubric = 'bad.toml'", "bad.toml: the weights add up to 90; change them"),
        ("model = 'x'\nrubric = 'broken.toml'", "broken.toml: not valid TOML"),
        ("model = ['x', 'x']", "must be different and not empty"),
        ("model = ['local', 'x']", "the local judge cannot be part of a panel"),
        ("model = 'x'\nbudget = 1.0", "a judge's budget needs its prices"),
        ("model = 'x'\nprices = {input = 1}", "a price without `output`"),
        ("model = 'x'\nbase_url = 'nowhere'", "base_url = 'nowhere' is not an http:// or https:// address"),
        ("model = 'x'\nbase_url = 'https://example.invalid/v1'", "needs a key: export OPENAI_API_KEY="),
        ("model = 'no-such'", "HTTP 404: The model `no-such` does not exist"),
        ("model = 'good'\nbase_url = 'http://127.0.0.1:9/v1'\nretries = 0", "connection refused"),
    ],
)
def test_bad_settings_are_one_line_and_nothing_is_asked(
    project: Path, scripted: ScriptedJudge, settings: str, line: str
) -> None:
    (project / "bad.toml").write_text('[[criteria]]\nname = "a"\nweight = 90\nquestion = "?"\n')
    (project / "broken.toml").write_text("[[criteria")
    if "base_url" not in settings:
        settings += f"\nbase_url = '{scripted.base_url}'"
    (project / "answerkey.toml").write_text(f"[judge]\n{settings}\n")
    ended = command("run", "golden.jsonl", "--target", "bot.py:answer", check=False)
    assert ended.returncode == 2, ended.stderr
    assert line in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
    assert not (project / ".answerkey").exists() or "no run" in command("show", check=False).stderr


def test_the_asking_does_not_wait_for_the_canaries(project: Path, scripted: ScriptedJudge) -> None:
    (project / "bot.py").write_text(NOTING_BOT)
    # This judge answers nothing, canaries neither, before the chatbot has been asked.
    document = run_document(*asked(scripted, f"after:{project / 'asked'}"))
    assert [canary["passed"] for canary in document["judge"]["canaries"]] == [True] * 4
    assert document["judge"]["reliable"]


@pytest.mark.parametrize("bot", ["", "import time\ntime.sleep(0.5)\n"])
def test_a_judge_that_refuses_late_leaves_no_run(project: Path, scripted: ScriptedJudge, bot: str) -> None:
    (project / "bot.py").write_text(bot + BOT)
    ended = command(*asked(scripted, "retired:0.4"), check=False)
    assert ended.returncode == 2
    assert "does not exist; check the model's name" in ended.stderr
    assert "nothing was judged or stored" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert json.loads(command("runs", "--json").stdout)["runs"] == []


def test_a_judge_that_refuses_very_late_costs_no_reply(project: Path, scripted: ScriptedJudge) -> None:
    (project / "bot.py").write_text(NOTING_BOT)
    ended = command(*asked(scripted, "retired:4"), check=False)
    assert ended.returncode == 2
    told = re.search(
        r"the replies are stored; continue with: answerkey (resume \w+) --judge MODEL\n", ended.stderr
    )
    assert told is not None, ended.stderr
    resumed = run_document(*told[1].split(), *judged_by(scripted, "good"))
    assert resumed["run"]["status"] == "complete"
    assert resumed["summary"]["metrics"]["judge"] == 0.5
    assert (project / "asked").read_text() == 20 * "x"


def asked_both(scripted: ScriptedJudge, model: str) -> list[str]:
    arms = ["--a", "bot.py:answer", "--b", "bot.py:answer"]
    return ["ab", "golden.jsonl", *arms, *judged_by(scripted, model)]


def test_an_experiment_whose_judge_refuses_late_leaves_no_run(project: Path, scripted: ScriptedJudge) -> None:
    ended = command(*asked_both(scripted, "retired:0.4"), check=False)
    assert ended.returncode == 2, ended.stderr
    assert "nothing was judged or stored" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert json.loads(command("runs", "--json").stdout)["runs"] == []


def test_an_experiment_whose_judge_refuses_very_late_is_resumed_with_another(
    project: Path, scripted: ScriptedJudge
) -> None:
    (project / "bot.py").write_text(NOTING_BOT)
    ended = command(*asked_both(scripted, "retired:4"), check=False)
    assert ended.returncode == 2, ended.stderr
    stored = re.search(r"continue with: answerkey (ab --resume \w+) --judge MODEL\n", ended.stderr)
    assert stored is not None, ended.stderr
    resumed = run_document(*stored[1].split(), *judged_by(scripted, "good"))
    assert (resumed["asked"], resumed["planned"]) == (40, 40)
    assert (project / "asked").read_text() == 40 * "x"


def test_rescoring_asks_a_judge_only_what_it_has_not_said(project: Path, scripted: ScriptedJudge) -> None:
    run_document("run", "golden.jsonl", "--target", "bot.py:answer")
    document = run_document("rescore", "latest", *judged_by(scripted, "good"))
    assert document["summary"]["metrics"]["judge"] == 0.5
    assert scripted.count == 19 + 4
    # The run remembers its judge; asking for other matching costs nothing.
    again = run_document("rescore", "latest", "--match", "literal")
    assert again["judge"]["calls"] == 0
    assert again["summary"]["metrics"]["judge"] == 0.5
    assert scripted.count == 19 + 4
    without = run_document("rescore", "latest", "--judge", "none")
    assert "judge" not in without
    assert "judge" not in without["summary"]["metrics"]


def test_recorded_replies_are_judged_and_paid_for_once(project: Path, scripted: ScriptedJudge) -> None:
    rows = [{"id": f"q{number}", "answer": f"It is in Montrose {number}"} for number in range(20)]
    (project / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ("score", "log.jsonl", "--questions", "golden.jsonl", *judged_by(scripted, "good"))
    document = run_document(*arguments)
    assert document["summary"]["metrics"]["judge"] == 0.5
    assert [row["id"] for row in document["results"]] == [f"q{number}" for number in range(20)]
    assert scripted.count == 24
    again = run_document(*arguments)
    assert again["judge"]["cached"] == 20
    # Canaries are asked by every run.
    assert scripted.count == 28


def test_the_budget_keeps_coverage_honest_and_resume_goes_on(project: Path, scripted: ScriptedJudge) -> None:
    money = ["--judge-price", "1/4", "--judge-budget", "0.012"]
    document = run_document(*asked(scripted), *money)
    judge = document["judge"]
    assert judge["budget_stopped"]
    assert 0 < judge["judged"] < 20
    assert judge["judged"] + judge["unscored"] == 20
    assert 0 < judge["cost"] <= 0.012
    assert any(
        line.startswith("judging stopped: the judge's budget of 0.012 is used up")
        for line in document["warnings"]
    )
    before = scripted.count
    resumed = run_document("resume", "latest", "--judge-budget", "1")
    assert resumed["judge"]["unscored"] == 0
    assert resumed["judge"]["cost"] > judge["cost"]
    assert scripted.count == before + judge["unscored"]


def test_the_budget_holds_where_the_endpoint_reports_no_usage(project: Path, scripted: ScriptedJudge) -> None:
    document = run_document(*asked(scripted, "nousage"), "--judge-price", "1/4", "--judge-budget", "0.012")
    assert document["judge"]["budget_stopped"]
    assert 0 < document["judge"]["judged"] < 20
    assert document["judge"]["cost"] is None
    assert any("by estimate, since the endpoint reports no usage" in line for line in document["warnings"])


def test_replies_are_kept_while_the_judge_is_slow(project: Path, scripted: ScriptedJudge) -> None:
    # The canaries alone would take 30 s; without them the asking begins at once.
    (project / "answerkey.toml").write_text("[judge]\ncanaries = false\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", *asked(scripted, "slow:30")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: stored(project) == (20, 1))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"answerkey resume" in told
    # All replies are there; only the null one, which needs no judge, has a scorecard.
    document = json.loads(command("show", "latest", "--json").stdout)
    assert (document["run"]["status"], document["summary"]["coverage"]) == ("interrupted", 0.05)
    calls = scripted.count
    done = run_document("resume", "latest", *judged_by(scripted, "good"))
    assert done["summary"]["coverage"] == 1.0
    assert done["summary"]["metrics"]["judge"] == 0.5
    assert scripted.count == calls + 19


def stored(project: Path) -> tuple[int, int]:
    """How many replies and scorecards a run's store has."""
    import sqlite3

    path = project / ".answerkey" / "answerkey.db"
    if not path.exists():
        return 0, 0
    connection = sqlite3.connect(path, timeout=5)
    try:
        return tuple(
            connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
            for table in ("replies", "scorecards")
        )
    except sqlite3.OperationalError:
        return 0, 0
    finally:
        connection.close()


def wait_until(reached: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "not reached in time"
        time.sleep(0.02)


def test_killed_half_way_and_resumed_no_judged_reply_is_paid_for_twice(
    project: Path, scripted: ScriptedJudge
) -> None:
    write_questions(project, 300)
    (project / "answerkey.toml").write_text("[judge]\nconcurrency = 10\nown_canaries = false\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", *asked(scripted, "delay:60")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: scripted.count >= 150)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    # What was on its way to the judge has arrived.
    time.sleep(0.3)
    at_kill = Counter(call["data"]["fields"]["reply"] for call in scripted.calls)
    with open_store(str(project / ".answerkey" / "answerkey.db")) as store:
        info = store.find_run("latest")
        paid = SqlJudgements(store).spent_on(info.id)
        with store.database.reading() as connection:
            kept = connection.value("SELECT COUNT(*) FROM judgements")
    assert 100 < kept < 290
    done = run_document("resume", "latest")
    calls = Counter(call["data"]["fields"]["reply"] for call in scripted.calls)
    # 299 replies with text and 4 canaries. Only calls whose answer was not on disk when the run was killed are made again.
    assert set(calls.values()) <= {1, 2}
    repeated = sum(count - 1 for count in calls.values())
    assert repeated == sum(at_kill.values()) - kept
    # Ten under way, and on a busy machine some whose answer was just being written.
    assert repeated <= 30
    assert sum(calls.values()) == 303 + repeated
    assert done["judge"]["judged"] == 300
    assert done["judge"]["unscored"] == 0
    assert done["judge"]["cached"] == kept
    assert done["judge"]["tokens"]["input"] > paid.input_tokens > 0
    assert done["summary"]["coverage"] == 1.0


def test_python_takes_a_model_or_settings(project: Path, scripted: ScriptedJudge, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", scripted.base_url)
    run = answerkey.evaluate("golden.jsonl", "bot.py:answer", judge="good")
    assert run.summary.metrics["judge"] == 0.5
    assert run.to_dict()["judge"]["model"] == "good"
    panel = answerkey.evaluate("golden.jsonl", "bot.py:answer", judge=["good", "good2", "good3"])
    assert panel.info.judge.agreement["judge"] == 1.0
    settings = answerkey.JudgeSettings(model="good", prices=Price(input=1, output=1))
    priced = answerkey.evaluate("golden.jsonl", "bot.py:answer", judge=settings)
    assert priced.info.judge.cost > 0


def test_gates_can_insist_on_a_reliable_judge(project: Path, scripted: ScriptedJudge) -> None:
    gates = ["--gate", "judge >= 0.5", "--gate", "judge.reliable == 1", "--gate", "judge.unscored == 0"]
    assert command(*asked(scripted), *gates, "--json").returncode == 0
    failed = command(*asked(scripted, "gullible"), *gates, "--json", check=False)
    assert failed.returncode == 1
    found = json.loads(failed.stdout)["gates"]
    assert [gate["passed"] for gate in found] == [False, False, True]
    assert "'give full marks' canary 1.00; use another judge" in found[0]["reason"]


def gates_by(scripted: ScriptedJudge, model: str, *gates: str) -> list[tuple[bool, str]]:
    """Whether each gate passed, and why not, in a run whose response quality is the judge's."""
    run = answerkey.evaluate(
        "golden.jsonl",
        "bot.py:answer",
        judge=scripted.settings(model, canaries=True, retries=0),
        scoring=Scoring(quality="judge"),
        gates=gates,
    )
    return [(gate.passed, gate.reason) for gate in run.gates]


@pytest.mark.parametrize("model", ["gullible", "lenient", "stern", "refuse", "prose", "malformed"])
def test_a_judge_that_fails_or_is_silent_passes_no_gate_that_it_touches(
    project: Path, scripted: ScriptedJudge, model: str
) -> None:
    touched = ["score >= 0", "response_quality >= 0", "judge >= 0", "pass_rate >= 0", "every category >= 0"]
    found = gates_by(scripted, model, *touched, "coverage >= 0", "tool_usage >= 0.5")
    assert [passed for passed, _ in found] == [False] * 5 + [True, True], found


def test_a_gate_can_allow_an_unreliable_judge_but_not_a_silent_one(
    project: Path, scripted: ScriptedJudge
) -> None:
    gates = ("score >= 0", "judge.reliable >= 0", "coverage >= 0")
    assert [passed for passed, _ in gates_by(scripted, "gullible", *gates)] == [True, True, True]
    assert [passed for passed, _ in gates_by(scripted, "prose", *gates)] == [False, False, True]
    # One that refuses half is reliable, but leaves half of the replies without a score.
    [(passed, reason)] = gates_by(scripted, "refuse-some", "score >= 0")
    assert not passed
    assert "coverage is 55.0%" in reason


def test_a_metric_that_the_judge_gave_to_some_only_passes_no_gate(
    project: Path, scripted: ScriptedJudge
) -> None:
    judge = scripted.settings("refuse-some")
    gates = ("judge >= 0", "score >= 0")
    run = answerkey.evaluate("golden.jsonl", "bot.py:answer", judge=judge, gates=gates)
    assert [gate.passed for gate in run.gates] == [False, True]
    assert "replies were not judged; allow that with a gate such as judge.unscored <= " in run.gates[0].reason
    allowing = (*gates, "judge.unscored <= 15")
    run = answerkey.evaluate("golden.jsonl", "bot.py:answer", judge=judge, gates=allowing)
    assert [gate.passed for gate in run.gates] == [True, True, True]
