import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import answerkey
from answerkey.cli.main import cli
from answerkey.judge.configured_judge import Judge
from answerkey.judge.pairwise import Pair, PairVerdict, judge_pair, sum_up_pairs
from answerkey.judge.session import open_judging
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply

from .judging import ADDRESS, BAD, GOOD, ScriptedJudge


def decided(settings: JudgeSettings, base: Reply, candidate: Reply) -> PairVerdict:
    async def run() -> PairVerdict:
        async with open_judging(Judge(settings), run_id="r") as session:
            return await judge_pair(session.panel, Pair(ADDRESS, 1, (base,), (candidate,)))

    return asyncio.run(run())


def test_both_orders_must_agree(scripted: ScriptedJudge) -> None:
    assert decided(scripted.settings(), BAD, GOOD).outcome == "candidate"
    assert decided(scripted.settings(), GOOD, BAD).outcome == "base"
    shown = [call["data"]["fields"] for call in scripted.calls[:2]]
    assert {(fields["reply_1"], fields["reply_2"]) for fields in shown} == {
        (BAD.text, GOOD.text),
        (GOOD.text, BAD.text),
    }
    # A judge that prefers whatever stands first decides nothing.
    biased = decided(scripted.settings("first"), BAD, GOOD)
    assert (biased.outcome, biased.consistent) == ("tie", False)


def test_equal_and_empty_replies_need_no_judge(scripted: ScriptedJudge) -> None:
    assert decided(scripted.settings(), GOOD, GOOD).outcome == "tie"
    assert decided(scripted.settings(), Reply(), GOOD).outcome == "candidate"
    assert decided(scripted.settings(), GOOD, Reply(text=" ")).outcome == "base"
    assert scripted.count == 0


def test_a_panel_decides_by_majority(scripted: ScriptedJudge) -> None:
    found = decided(scripted.settings(("good", "good2", "first")), BAD, GOOD)
    assert found.outcome == "candidate"
    assert found.by_judge == {"good": "candidate", "good2": "candidate", "first": "tie"}
    assert found.consistent is False


@pytest.mark.parametrize("model", ["prose", "refuse", "malformed", "broken"])
def test_a_pair_without_a_verdict_is_unjudged(scripted: ScriptedJudge, model: str) -> None:
    found = decided(scripted.settings(model, retries=0), BAD, GOOD)
    assert found.outcome is None
    assert found.reason


def verdicts(wins: int, losses: int, ties: int) -> list[PairVerdict]:
    outcomes: list[Any] = ["candidate"] * wins + ["base"] * losses + ["tie"] * ties
    return [
        PairVerdict(id=f"q{number}", trial=1, outcome=outcome, consistent=True)
        for number, outcome in enumerate(outcomes)
    ]


def test_a_few_wins_are_no_proof() -> None:
    few, many = sum_up_pairs(verdicts(4, 1, 5), model="m"), sum_up_pairs(verdicts(40, 10, 50), model="m")
    assert few.win_rate == many.win_rate == 0.65
    assert (few.verdict, many.verdict) == ("no clear difference", "better")
    assert sum_up_pairs(verdicts(10, 40, 50), model="m").verdict == "worse"


def test_trials_of_a_question_count_as_one() -> None:
    many = [PairVerdict(id="q", trial=n, outcome="candidate", consistent=True) for n in range(1, 30)]
    assert sum_up_pairs(many, model="m").verdict == "no clear difference"


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    questions = [
        Question(id=f"q{n}", question=f"Where is number {n}?", reference_answer="In Montrose.")
        for n in range(30)
    ]
    answerkey.evaluate(questions, lambda question: f"Unknown: {question}", name="old")
    answerkey.evaluate(questions, lambda question: f"In Montrose: {question}", name="new")
    (tmp_path / "bots.py").write_text(
        'def old(question): return f"Unknown: {question}"\ndef new(question): return f"In Montrose: {question}"\n'
    )
    rows = [{"id": q.id, "question": q.question, "reference_answer": q.reference_answer} for q in questions]
    (tmp_path / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def invoke(*arguments: str) -> str:
    ended = CliRunner().invoke(cli, list(arguments))
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.output


def test_compare_puts_the_replies_before_a_judge(two_runs: Path, scripted: ScriptedJudge) -> None:
    flags = ["--judge", "good", "--judge-base-url", scripted.base_url]
    document = json.loads(invoke("compare", "old", "new", *flags, "--json"))
    # The reference answer tells them apart, and so does a judge.
    assert document["verdict"] == "better"
    judged = document["judge"]
    assert (judged["wins"], judged["losses"], judged["ties"], judged["verdict"]) == (30, 0, 0, "better")
    assert judged["self_consistency"] == 1.0
    assert scripted.count == 60
    shown = invoke("compare", "old", "new", *flags)
    assert "Judged by good, in both orders: better" in shown
    assert "self-consistency 100.0%" in shown
    assert "0 calls, 60 answers known before" in shown
    assert scripted.count == 60
    biased = invoke("compare", "old", "new", "--judge", "first", "--judge-base-url", scripted.base_url)
    assert "kept its verdict on only 0% of the pairs" in biased
    assert "judge" not in json.loads(invoke("compare", "old", "new", "--json"))


def test_an_experiment_can_be_judged_too(two_runs: Path, scripted: ScriptedJudge) -> None:
    flags = ["--judge", "good", "--judge-base-url", scripted.base_url, "--json"]
    output = invoke("ab", "golden.jsonl", "--a", "bots.py:old", "--b", "bots.py:new", *flags)
    judged = json.loads(output)["judge"]
    assert (judged["wins"], judged["verdict"]) == (30, "better")
