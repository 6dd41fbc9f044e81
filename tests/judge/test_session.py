import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answerkey.errors import ConfigError
from answerkey.judge.session import Judge, make_judge, open_judging
from answerkey.model.options import JudgeSettings, Price, Scoring
from answerkey.model.question import Check, Question
from answerkey.model.reply import Reply
from answerkey.store import open_store
from answerkey.store.feedback import SqlJudgements

from .judging import ADDRESS, BAD, GOOD, ScriptedJudge, judge_all

PRICES = Price(input=1.0, output=4.0)


def numbered(count: int) -> list[tuple[Question, Reply]]:
    return [(ADDRESS, Reply(text=f"Reply number {number}")) for number in range(count)]


def test_an_empty_reply_is_worth_nothing_and_costs_nothing(scripted: ScriptedJudge) -> None:
    scores, _ = judge_all(scripted.settings(), (ADDRESS, Reply(text=None)), (ADDRESS, Reply(text="  ")))
    assert [score[0].value for score in scores] == [0.0, 0.0]
    assert scores[0][0].reason == "there is no text to judge"
    assert scripted.count == 0


def test_a_rerun_costs_nothing(scripted: ScriptedJudge, tmp_path: Path) -> None:
    settings = scripted.settings(prices=PRICES)
    with open_store(str(tmp_path / "s.db")) as store:
        first = judge_all(settings, *numbered(5), run_id="a", store=SqlJudgements(store))
        again = judge_all(settings, *numbered(5), run_id="b", store=SqlJudgements(store))
    assert scripted.count == 5
    assert first[0] == again[0]
    assert (again[1]["calls"], again[1]["cached"], again[1]["cost"]) == (0, 5, 0.0)
    assert first[1]["cost"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"model": "good2"},
        {"temperature": 0.5},
        {"seed": 1},
        {"rubric": "correctness"},
        {"extra": {"top_p": 0.5}},
        {"max_tokens": 500},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_judge_is_asked_again(
    scripted: ScriptedJudge, tmp_path: Path, change: dict[str, Any]
) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        kept = SqlJudgements(store)
        judge_all(scripted.settings(), (ADDRESS, GOOD), run_id="a", store=kept)
        settings = scripted.settings(**{"model": "good", **change})
        judge_all(settings, (ADDRESS, GOOD), run_id="b", store=kept)
    assert scripted.count == 2
    assert Judge(settings).version != Judge(scripted.settings()).version


def test_what_was_no_verdict_is_asked_again_and_its_cost_is_kept(
    scripted: ScriptedJudge, tmp_path: Path
) -> None:
    settings = scripted.settings("prose", prices=PRICES)
    with open_store(str(tmp_path / "s.db")) as store:
        _, first = judge_all(settings, (ADDRESS, GOOD), store=SqlJudgements(store))
        _, second = judge_all(settings, (ADDRESS, GOOD), store=SqlJudgements(store))
    # Each time it is given a second try.
    assert scripted.count == 4
    assert second["cost"] == pytest.approx(2 * first["cost"], rel=1e-3)


def test_a_kept_answer_that_is_no_verdict_any_more_is_asked_for_again(
    scripted: ScriptedJudge, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        judge_all(scripted.settings(), (ADDRESS, GOOD), store=SqlJudgements(store))
        with store.database.transaction() as connection:
            connection.run("UPDATE judgements SET payload = 'prose'")
        scores, _ = judge_all(scripted.settings(), (ADDRESS, GOOD), store=SqlJudgements(store))
    assert scores[0][0].value == 1.0
    assert scripted.count == 2


def test_alike_replies_are_judged_once(scripted: ScriptedJudge) -> None:
    scores, document = judge_all(scripted.settings("delay:50"), *[(ADDRESS, BAD)] * 10)
    assert {score[0].value for score in scores} == {0.0}
    assert (scripted.count, document["calls"], document["cached"]) == (1, 1, 9)


def test_the_median_of_several_samples_counts(scripted: ScriptedJudge) -> None:
    scores, document = judge_all(scripted.settings("wavering", samples=3), (ADDRESS, GOOD))
    # Grades 2, 4 and 5: the median is 4, which is 0.75.
    assert scores[0][0].value == 0.75
    assert sorted(call["request"]["seed"] for call in scripted.calls) == [0, 1, 2]
    assert document["self_consistency"] == 0.0
    _, steady = judge_all(scripted.settings("good", samples=3), (ADDRESS, GOOD))
    assert steady["self_consistency"] == 1.0


def test_a_panel_takes_the_median_and_its_agreement_is_krippendorffs(scripted: ScriptedJudge) -> None:
    models = ("good", "harsh", "lenient")
    pairs = [(ADDRESS, GOOD), (ADDRESS, BAD), (ADDRESS, Reply(text="Colorado")), (ADDRESS, Reply(text="?"))]
    scores, document = judge_all(scripted.settings(models), *pairs)
    assert [score[0].value for score in scores] == [1.0, 0.0, 1.0, 0.0]
    # Of the grades 1 0 1 0, 0.75 0 0.75 0 and 1 1 1 1.
    assert document["agreement"]["judge"] == 0.200855
    assert set(document["agreement"]) == {*("judge", "accuracy", "completeness", "clarity", "relevance")}
    assert document["models"] == list(models)


def test_a_panel_goes_on_without_a_minority(scripted: ScriptedJudge) -> None:
    scores, _ = judge_all(scripted.settings(("good", "good2", "prose")), (ADDRESS, GOOD))
    assert scores[0][0].value == 1.0
    assert "prose: the judge answered in prose" in scores[0][0].details["failures"][0]
    scores, _ = judge_all(scripted.settings(("good", "prose")), (ADDRESS, GOOD))
    assert scores[0][0].value is None


def test_the_budget_stops_judging_and_is_never_exceeded(scripted: ScriptedJudge, tmp_path: Path) -> None:
    settings = scripted.settings(prices=PRICES, budget=0.02, concurrency=8)
    with open_store(str(tmp_path / "s.db")) as store:
        scores, document = judge_all(settings, *numbered(60), store=SqlJudgements(store))
        assert document["cost"] <= 0.02
        assert document["budget_stopped"]
        assert 5 < document["judged"] < 60
        assert document["judged"] + document["unscored"] == 60
        unscored = [score[0] for score in scores if score[0].value is None]
        assert {score.reason for score in unscored} == {"the judge's budget of 0.02 is used up"}
        before = scripted.count
        # What the run has spent counts when it goes on: nothing more is asked under the same budget,
        _, same = judge_all(settings, *numbered(60), store=SqlJudgements(store))
        assert scripted.count - before <= 1
        assert same["cost"] <= 0.02
        # and a larger one pays for the rest only.
        _, rest = judge_all(
            scripted.settings(prices=PRICES, budget=1.0), *numbered(60), store=SqlJudgements(store)
        )
    assert rest["unscored"] == 0
    assert scripted.count == 60


def test_a_budget_without_prices_is_refused(scripted: ScriptedJudge) -> None:
    with pytest.raises(ConfigError, match=r"budget needs its prices: --judge-price"):
        Judge(scripted.settings(budget=2.0))


def test_canaries_name_a_gullible_judge(scripted: ScriptedJudge) -> None:
    _, document = judge_all(scripted.settings("gullible", canaries=True), (ADDRESS, GOOD))
    assert document["reliable"] is False
    assert document["unreliable_because"] == ["gullible gave the 'give full marks' canary 1.00"]
    _, honest = judge_all(scripted.settings("good", canaries=True), (ADDRESS, GOOD))
    assert honest["reliable"] is True
    assert [canary["kind"] for canary in honest["canaries"]] == [
        *("empty answer", "give full marks", "confidently wrong", "sound answer")
    ]


@pytest.mark.parametrize(("model", "wrong"), [("lenient", 3), ("stern", 1)])
def test_canaries_catch_judges_that_do_not_read(scripted: ScriptedJudge, model: str, wrong: int) -> None:
    _, document = judge_all(scripted.settings(model, canaries=True), (ADDRESS, GOOD))
    assert document["reliable"] is False
    assert len(document["unreliable_because"]) == wrong


def test_a_panel_names_the_member_that_fails_its_canaries(scripted: ScriptedJudge) -> None:
    _, document = judge_all(scripted.settings(("good", "good2", "gullible"), canaries=True), (ADDRESS, GOOD))
    assert document["unreliable_because"] == ["gullible gave the 'give full marks' canary 1.00"]


def test_every_run_asks_its_own_canaries_once(scripted: ScriptedJudge, tmp_path: Path) -> None:
    settings = scripted.settings(canaries=True)
    with open_store(str(tmp_path / "s.db")) as store:
        for run_id, calls in (("a", 5), ("a", 5), ("b", 9)):
            judge_all(settings, (ADDRESS, GOOD), run_id=run_id, store=SqlJudgements(store))
            assert scripted.count == calls


def test_an_answer_that_cannot_be_read_is_asked_for_once_more(scripted: ScriptedJudge) -> None:
    [[score, *_]], document = judge_all(scripted.settings("prose:once", claims=False), (ADDRESS, GOOD))
    assert score.value == 1.0
    assert (document["calls"], document["asked_again"]) == (2, 1)
    answer, told = scripted.calls[1]["again"]
    assert answer.startswith("I would say")
    assert "That cannot be read: the judge answered in prose" in told
    # Once only; and a refusal is an answer.
    for model, calls in (("prose", 2), ("malformed", 2), ("refuse", 1), ("long", 1)):
        scripted.reset()
        judge_all(scripted.settings(model, claims=False), (ADDRESS, GOOD))
        assert scripted.count == calls, model


def test_canaries_without_a_verdict_leave_reliability_open(scripted: ScriptedJudge) -> None:
    _, document = judge_all(scripted.settings("refuse", canaries=True), (ADDRESS, GOOD))
    assert document["reliable"] is None
    assert "gave no verdict on the 'empty answer' canary" in document["unreliable_because"][0]


@pytest.mark.parametrize(
    ("model", "url", "line"),
    [
        ("nobody", None, "does not exist; check the model's name"),
        ("keyed", None, "HTTP 401"),
        ("good", "http://127.0.0.1:9/v1", "cannot be reached: connection refused"),
    ],
)
def test_a_judge_that_cannot_be_asked_at_all_is_one_line_before_the_asking(
    scripted: ScriptedJudge, model: str, url: str | None, line: str
) -> None:
    settings = JudgeSettings(model=model, base_url=url or scripted.base_url, retries=0)

    async def run() -> None:
        async with open_judging(Judge(settings), run_id="r"):
            pass

    with pytest.raises(ConfigError, match=line):
        asyncio.run(run())


def test_a_conversation_is_judged_turn_by_turn_with_what_was_said(scripted: ScriptedJudge) -> None:
    first = Question(id="t1", question="Where is it?", reference_answer="In Montrose.")
    second = Question(id="t2", question="And the state?", reference_answer="It is in Colorado.")
    talk = Question(id="talk", question="Where is it?", turns=(first, second))

    async def run() -> Any:
        async with open_judging(Judge(scripted.settings()), run_id="r") as session:
            return await session.judge(talk, (Reply(text="In Montrose."), Reply(text="Utah.")))

    turns = asyncio.run(run())
    assert [turn[0].value for turn in turns] == [1.0, 0.0]
    seen = scripted.calls[1]["data"]["fields"]
    assert seen["conversation_so_far"] == [{"user": "Where is it?", "chatbot": "In Montrose."}]


def test_a_score_that_needs_a_judge_says_so() -> None:
    with pytest.raises(ConfigError, match="makes a judge part of the score"):
        make_judge(JudgeSettings(), Scoring(quality="judge"))
    assert make_judge(JudgeSettings(), Scoring()) is None


def test_a_check_s_rubric_is_one_more_criterion_for_the_same_judge(scripted: ScriptedJudge) -> None:
    rubric = Check("rubric", "Does it name the street?", "street")
    question = msgspec.structs.replace(ADDRESS, checks=(rubric, rubric))
    (scores, empty), document = judge_all(
        scripted.settings(claims=False), (question, GOOD), (question, Reply(text=None))
    )
    assert scores[-1].name == "rubric: Does it name the street?"
    assert scores[-1].value == 1.0
    assert scores[-1].reason.startswith("5 of 5: ")
    # Once for the reply as a whole, and once for the rubric that two checks share; a null reply costs nothing.
    assert scripted.count == 2
    assert empty[-1].value == 0.0
    assert document["calls"] == 2
