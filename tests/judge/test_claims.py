"""Claims extracted and verified by a judge, beside those that are checked without a model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.judge.session import Judge
from answerkey.model.options import JudgeSettings, Price, Scoring
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall
from answerkey.model.scorecard import Score
from answerkey.store import open_store
from answerkey.store.feedback import SqlJudgements

from .judging import ADDRESS, GOOD, ScriptedJudge, command, judge_all, run_document
from .scripted_judge import asks_for_claims
from .test_prompt import ADVERSARIAL, as_sent
from .test_runs import judged_by

INCOME = Question(id="income", question="What was our rental income?", reference_answer="It was $16,144.")
EVIDENCE = (ToolCall(name="query_database", result=[{"tenant": "Porter", "amount": 16144}]),)
REPLY = Reply(text="You received $16,144. It came from Ortega.", tool_calls=EVIDENCE)


def claims_score(settings: JudgeSettings, reply: Reply = REPLY, question: Question = INCOME) -> Score | None:
    (scores,), _ = judge_all(settings, (question, reply))
    return next((score for score in scores if score.name == "groundedness"), None)


def claim_calls(scripted: ScriptedJudge) -> list[dict[str, Any]]:
    return [
        call for call in scripted.calls if asks_for_claims({"messages": [{"content": call["system"]}, {}]})
    ]


def test_claims_are_listed_with_their_evidence(scripted: ScriptedJudge) -> None:
    score = claims_score(scripted.settings())
    assert score is not None
    assert (score.value, score.reason) == (0.5, "1 of 2 claims supported")
    unsupported = {"claim": "It came from Ortega.", "supported": False, "evidence": "no Ortega in it"}
    assert score.details["claims"] == [
        {"claim": "You received $16,144.", "supported": True, "evidence": "16,144 stands there"},
        unsupported,
    ]
    assert score.details["unsupported"] == [unsupported]
    assert (score.details["score"], score.details["model"]) == (0.5, "good")
    # One call for the grades and one for the claims, which must come in their own shape.
    assert scripted.count == 2
    (call,) = claim_calls(scripted)
    schema = call["request"]["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert list(schema["schema"]["properties"]) == ["claims"]


def test_the_reference_is_no_evidence(scripted: ScriptedJudge) -> None:
    question = Question(
        id="q", question="Why?", reference_answer="Secret", expected_keywords=("Secret",), context="Here"
    )
    claims_score(scripted.settings(), question=question)
    (call,) = claim_calls(scripted)
    assert set(call["data"]["fields"]) == {"question", "context", "reply", "tool_results"}
    assert "Secret" not in call["user"]


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        Reply(text=None, tool_calls=EVIDENCE),
        Reply(text="  ", tool_calls=EVIDENCE),
        Reply(text="It is 900.", tool_calls=(ToolCall(name="t"),)),
        Reply(text="It is 900.", sources=(Source(id="d"),)),
    ],
    ids=["no tools", "null", "blank", "result not seen", "source without text"],
)
def test_without_text_or_evidence_nothing_is_asked(scripted: ScriptedJudge, reply: Reply) -> None:
    assert claims_score(scripted.settings(), reply) is None
    assert claim_calls(scripted) == []


def test_a_tool_that_found_nothing_is_evidence(scripted: ScriptedJudge) -> None:
    reply = Reply(text="It is 900.", tool_calls=(ToolCall(name="t", result=None, result_seen=True),))
    score = claims_score(scripted.settings(), reply)
    assert score is not None
    assert score.value == 0.0
    assert claim_calls(scripted)[0]["data"]["fields"]["tool_results"] == [{"tool": "t", "result": "null"}]


def test_a_reply_without_claims_has_no_value(scripted: ScriptedJudge) -> None:
    score = claims_score(scripted.settings(), Reply(text="hello there.", tool_calls=EVIDENCE))
    assert score is not None
    assert (score.value, score.reason) == (None, "the judge found no factual claim in the reply")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("malformed", "malformed JSON"),
        ("prose", "in prose"),
        ("refuse", "the judge refused"),
        ("long", "raise max_tokens"),
        ("lacking", "no list of claims"),
        ("unlisted", "no list of claims"),
        ("unclear", 'verdict on claim 1 is "yes", not true or false'),
        ("unnamed", "claim 1 has no text"),
        ("endless", "501 claims, more than 500"),
    ],
)
def test_what_is_no_list_of_claims_is_unscored(scripted: ScriptedJudge, model: str, reason: str) -> None:
    (scores,), document = judge_all(scripted.settings(model), (INCOME, REPLY))
    score = scores[-1]
    assert score.name == "groundedness"
    assert score.value is None
    assert reason in score.reason
    assert score.details["reason"] == score.reason
    assert (document["claims"]["checked"], document["claims"]["unscored"]) == (0, 1)
    assert reason in document["claims"]["unscored_because"]


def test_a_fence_around_the_claims_is_read(scripted: ScriptedJudge) -> None:
    score = claims_score(scripted.settings("fenced"))
    assert score is not None
    assert score.value == 0.5


def test_claims_are_paid_once(scripted: ScriptedJudge, tmp_path: Path) -> None:
    settings = scripted.settings(prices=Price(input=1.0, output=4.0))
    with open_store(str(tmp_path / "s.db")) as store:
        first, paid = judge_all(settings, (INCOME, REPLY), run_id="a", store=SqlJudgements(store))
        again, free = judge_all(settings, (INCOME, REPLY), run_id="b", store=SqlJudgements(store))
    assert scripted.count == 2
    assert first == again
    assert (paid["calls"], free["calls"], free["cached"], free["cost"]) == (2, 0, 2, 0.0)
    # Both calls are in the cost.
    characters = sum(len(call["system"]) + len(call["user"]) for call in scripted.calls)
    assert paid["tokens"]["input"] == pytest.approx(characters / 4, abs=2)


def test_the_budget_holds_for_claims(scripted: ScriptedJudge) -> None:
    prices = Price(input=1.0, output=4.0)
    _, whole = judge_all(scripted.settings(prices=prices), (INCOME, REPLY))
    settings = scripted.settings(prices=prices, budget=0.6 * whole["cost"])
    _, document = judge_all(settings, (INCOME, REPLY))
    assert document["cost"] <= settings.budget
    assert document["budget_stopped"] is True
    assert "budget" in document["claims"]["unscored_because"]


def test_switched_off(scripted: ScriptedJudge) -> None:
    settings = scripted.settings(claims=False)
    (scores,), document = judge_all(settings, (INCOME, REPLY))
    assert "groundedness" not in {score.name for score in scores}
    assert scripted.count == 1
    assert document["claims"] is None
    assert Judge(settings).version != Judge(scripted.settings()).version


def test_a_panel_leaves_claims_to_its_first_judge(scripted: ScriptedJudge) -> None:
    score = claims_score(scripted.settings(("good2", "good", "good3"), samples=2))
    assert score is not None
    assert score.details["model"] == "good2"
    assert [call["model"] for call in claim_calls(scripted)] == ["good2"]
    assert scripted.count == 7


@pytest.mark.parametrize("place", ["reply", "source", "tool result"])
def test_no_text_leaves_its_field(scripted: ScriptedJudge, place: str) -> None:
    replies = {
        "reply": lambda text: Reply(text=text, tool_calls=EVIDENCE),
        "source": lambda text: Reply(text="It is 900.", sources=(Source(id="d", text=text),)),
        "tool result": lambda text: Reply(text="It is 900.", tool_calls=(ToolCall(name="t", result=text),)),
    }
    texts = [item["reply"] for item in ADVERSARIAL if item["reply"].strip()]
    judge_all(scripted.settings(), *((ADDRESS, replies[place](text)) for text in texts))
    calls = claim_calls(scripted)
    assert len(calls) == len({as_sent(text) for text in texts})
    found = set()
    for call in calls:
        fields = call["data"]["fields"]
        found.add(
            {
                "reply": lambda fields=fields: fields["reply"],
                "source": lambda fields=fields: fields["sources"][0]["text"],
                "tool result": lambda fields=fields: fields["tool_results"][0]["result"],
            }[place]()
        )
        # One line of data between the markers, and the same words around it for every reply.
        assert call["user"].count(call["data"]["marker"]) == 2
        line = call["user"].split("\n")[1]
        assert not re.search(r"[<>\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", line)
    assert found == {as_sent(text) for text in texts}
    assert len({call["data"]["after"] for call in calls}) == 1
    assert len({call["system"].replace(call["data"]["marker"], "") for call in calls}) == 1
    assert len({call["data"]["marker"] for call in calls}) == len(calls)


def test_evidence_that_was_cut_is_said(scripted: ScriptedJudge) -> None:
    reply = Reply(text="It is 900.", sources=(Source(id="d", text="900 " * 100),))
    score = claims_score(scripted.settings(max_chars=200), reply)
    assert score is not None
    assert score.reason.endswith("the judge saw the first 200 characters of the evidence")


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    golden = {"id": "income", "question": INCOME.question, "reference_answer": INCOME.reference_answer}
    (tmp_path / "golden.jsonl").write_text(json.dumps(golden))
    (tmp_path / "bot.py").write_text(
        "def answer(question):\n"
        '    call = {"name": "query_database", "result": [{"tenant": "Porter", "amount": 16144}]}\n'
        '    text = "You received $16,144 and <b>$99</b>. It came from Maria Ortega."\n'
        '    return {"answer": text, "tool_calls": [call]}\n'
    )
    return tmp_path


def test_claims_and_links_are_shown(recorded: Path, scripted: ScriptedJudge) -> None:
    document = run_document("run", "golden.jsonl", "--target", "bot.py:answer", *judged_by(scripted, "good"))
    (result,) = document["results"]
    assert result["metrics"]["groundedness"] == 0.0
    assert document["summary"]["metrics"]["groundedness"] == 0.0
    assert document["judge"]["claims"]["checked"] == 1
    shown = command("show", "latest", "--question", "income").stdout
    assert "reliability  not calibrated" in shown
    assert "16,144  tool_calls[0].result[0].amount, row Porter: 16144" in shown
    assert "not found  99 · Maria Ortega" in shown
    assert "claims by good  0.000  0 supported, 2 not supported" in shown
    assert "It came from Maria Ortega.: no Maria in it" in shown
    command("report", "latest", "-o", "r.html")
    page = re.sub(r">\s+<", "><", (recorded / "r.html").read_text())
    assert '<th scope="row"><bdi>by good</bdi></th><td class="number">0%</td>' in page
    assert "&lt;b&gt;$99&lt;/b&gt;.: no 99 in it" in page
    assert "<b>$99" not in page


def test_a_rescore_asks_for_no_claims_again(recorded: Path, scripted: ScriptedJudge) -> None:
    run_document("run", "golden.jsonl", "--target", "bot.py:answer", *judged_by(scripted, "good"))
    before = len(claim_calls(scripted))
    again = run_document("rescore", "latest", *judged_by(scripted, "good"))
    assert (before, len(claim_calls(scripted))) == (1, 1)
    assert again["results"][0]["metrics"]["groundedness"] == 0.0


def test_unchecked_claims_are_a_warning_and_cost_no_score(recorded: Path, scripted: ScriptedJudge) -> None:
    run = answerkey.evaluate(
        "golden.jsonl", "bot.py:answer", scoring=Scoring(), judge=scripted.settings("unclear")
    )
    (result,) = run.results
    assert result.scorecard.metrics["groundedness"] is None
    assert result.scorecard.metrics["judge"] is not None
    assert any("did not check the claims of 1 of 1 replies" in line for line in run.warnings)
    assert run.summary.unscored == {}


def test_the_setting_is_read_from_the_file(recorded: Path, scripted: ScriptedJudge) -> None:
    (recorded / "answerkey.toml").write_text("[judge]\nclaims = false\n")
    document = run_document("run", "golden.jsonl", "--target", "bot.py:answer", *judged_by(scripted, "good"))
    assert "groundedness" not in document["results"][0]["metrics"]
    assert claim_calls(scripted) == []
