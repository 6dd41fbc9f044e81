import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import answerkey
from answerkey.cli.main import cli
from answerkey.errors import ConfigError
from answerkey.judge.prompt import load_pair_rubric
from answerkey.judge.session import Judge, open_judging
from answerkey.model.judgement import CanaryResult
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.runs.judging import Pair, PairVerdict, judge_pair, sum_up_pairs

from .judging import ADDRESS, BAD, GOOD, ScriptedJudge


def decided(settings: JudgeSettings, base: Reply, candidate: Reply) -> PairVerdict:
    async def run() -> PairVerdict:
        async with open_judging(Judge(settings), run_id="r") as session:
            pair = Pair(ADDRESS, 1, (base,), (candidate,))
            return await judge_pair(session.panel, pair, load_pair_rubric())

    return asyncio.run(run())


def test_both_orders_must_agree(scripted: ScriptedJudge) -> None:
    assert decided(scripted.settings(), BAD, GOOD).outcome == "candidate"
    assert decided(scripted.settings(), GOOD, BAD).outcome == "base"
    shown = [call["data"]["fields"] for call in scripted.calls[:2]]
    assert {(fields["reply_1"], fields["reply_2"]) for fields in shown} == {
        (BAD.text, GOOD.text),
        (GOOD.text, BAD.text),
    }
    # A judge that prefers whatever comes first decides nothing.
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


def test_questions_of_one_group_count_as_one() -> None:
    many = [msgspec.structs.replace(one, unit="template") for one in verdicts(30, 0, 0)]
    assert sum_up_pairs(many, model="m").verdict == "no clear difference"


def test_a_judge_that_fails_known_pairs_decides_nothing() -> None:
    failed = CanaryResult(kind="right against wrong", model="m", score=0.0, passed=False)
    found = sum_up_pairs(verdicts(40, 0, 0), model="m", canaries=[failed])
    assert (found.reliable, found.verdict) == (False, "no clear difference")
    assert "m gave the 'right against wrong' canary 0.00" in found.warnings[0]
    silent = CanaryResult(kind="k", model="m", score=None, passed=None, reason="refused")
    assert sum_up_pairs(verdicts(40, 0, 0), model="m", canaries=[silent]).reliable is None


def test_length_and_ones_own_family_are_named() -> None:
    def leaning(longer: Any, gpt: Any, claude: Any) -> PairVerdict:
        said = {"gpt-4o": gpt, "claude-haiku": claude}
        return PairVerdict(
            id=f"q{longer}{gpt}{claude}",
            trial=1,
            outcome=gpt,
            consistent=True,
            by_judge=said,
            longer=longer,
            same_score=True,
        )

    pairs = [leaning("candidate", "candidate", "base")] * 18 + [leaning("base", "base", "candidate")] * 2
    # The score tells these apart: whoever wins here does so rightly.
    pairs += [msgspec.structs.replace(leaning("base", "base", "base"), same_score=False)] * 50
    targets: Any = {"base": "claude-sonnet-4", "candidate": "openai:gpt-4o-mini"}
    found = sum_up_pairs(pairs, model="gpt-4o + claude-haiku", targets=targets)
    assert found.bias is not None
    assert found.bias.length is not None
    assert (found.bias.length.share, found.bias.length.n) == (1.0, 20)
    assert "the judge prefers longer replies: they won 100% of 20 pairs of the same score" in found.warnings
    assert [(own.judge, own.own, own.lean.share) for own in found.bias.self_preference] == [
        ("gpt-4o", "candidate", 0.9),
        ("claude-haiku", "base", 0.9),
    ]
    assert any("gpt-4o prefers the candidate, a model of its own family" in line for line in found.warnings)


def test_rubrics_and_canaries_of_ones_own(tmp_path: Path, scripted: ScriptedJudge) -> None:
    (tmp_path / "pairs.toml").write_text('task = "Say which is shorter."\nguidance = "Count words."')
    (tmp_path / "more.toml").write_text(
        '[[pair]]\nkind = "ours"\nquestion = "?"\nreference_answer = "."\nbetter = "a"\nworse = "b"\n'
    )
    settings = scripted.settings(pair_rubric="pairs.toml", canaries="more.toml")
    judge = Judge(settings, folder=tmp_path)
    assert judge.pair_rubric.guidance == "Count words."
    assert [pair.kind for pair in judge.canaries.pair][-1] == "ours"
    assert len(judge.canaries.canary) == 4
    (tmp_path / "more.toml").write_text('[[pair]]\nkind = "ours"')
    other = scripted.settings(canaries="other.toml")
    with pytest.raises(ConfigError, match=r"other\.toml: cannot be read"):
        Judge(other, folder=tmp_path)


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    questions = [
        Question(id=f"q{n}", question=f"Where is number {n}?", reference_answer="In Montrose.")
        for n in range(30)
    ]
    answerkey.evaluate(questions, lambda question: f"Unknown: {question}", name="old")
    answerkey.evaluate(questions, lambda question: "It is in Montrose.", name="new")
    (tmp_path / "bots.py").write_text(
        'def old(question): return f"Unknown: {question}"\ndef new(question): return "It is in Montrose."\n'
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
    assert judged["consistency_interval"]["low"] < 1.0 == judged["consistency_interval"]["high"]
    # Two pairs whose better reply is known are put to it as well.
    assert scripted.count == 64
    shown = invoke("compare", "old", "new", *flags)
    assert "Judged by good, in both orders: better" in shown
    assert "self-consistency 100.0%" in shown
    assert "0 calls, 64 answers from the cache" in shown
    # Two pairs whose better reply is known are put to it as well.
    assert scripted.count == 64
    biased = invoke("compare", "old", "new", "--judge", "first", "--judge-base-url", scripted.base_url)
    assert "gave the same verdict on only 0% of the pairs" in biased
    assert (
        "verdicts that depend on the order: the first reply won 100% [89%, 100%] of 30; it prefers the first"
        in biased
    )
    assert "the judge prefers the first reply" in biased
    assert "failed pairs whose better reply is known, so its comparison does not count" in biased
    assert "judge" not in json.loads(invoke("compare", "old", "new", "--json"))


def test_an_experiment_can_be_judged_too(two_runs: Path, scripted: ScriptedJudge) -> None:
    flags = ["--judge", "good", "--judge-base-url", scripted.base_url, "--json"]
    output = invoke("ab", "golden.jsonl", "--a", "bots.py:old", "--b", "bots.py:new", *flags)
    judged = json.loads(output)["judge"]
    assert (judged["wins"], judged["verdict"]) == (30, "better")
