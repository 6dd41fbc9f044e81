import time

import pytest

from answerkey.config import Secrets
from answerkey.errors import ConfigError
from answerkey.judge.client import JudgeClient, PanelMember
from answerkey.model.options import JudgeSettings, Price

from .judging import ADDRESS, BAD, GOOD, ScriptedJudge, judge_all, judge_one


def test_a_good_verdict_is_a_score_with_its_criteria(scripted: ScriptedJudge) -> None:
    (good, bad), document = judge_all(scripted.settings(), (ADDRESS, GOOD), (ADDRESS, BAD))
    assert [score.name for score in good] == [
        *("judge", "judge_accuracy", "judge_completeness", "judge_clarity", "judge_relevance")
    ]
    assert [score.value for score in good] == [1.0] * 5
    assert [score.value for score in bad] == [0.0] * 5
    assert good[0].details["judges"][0]["samples"][0]["accuracy"] == {"score": 5, "reason": "It is worth 5."}
    assert (document["judged"], document["unscored"], document["calls"]) == (2, 0, 2)
    assert document["tokens"]["input"] > 0


def test_the_request_constrains_the_answer_and_fixes_the_sampling(scripted: ScriptedJudge) -> None:
    judge_one(scripted.settings(temperature=0.3, seed=7, extra={"reasoning_effort": "low"}))
    request = scripted.calls[0]["request"]
    assert (request["temperature"], request["seed"], request["reasoning_effort"]) == (0.3, 7, "low")
    schema = request["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["accuracy", "completeness", "clarity", "relevance"]
    # The reason comes first, so that the grade follows from it.
    assert list(schema["properties"]["accuracy"]["properties"]) == ["reason", "score"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("malformed", "malformed JSON instead of the verdict"),
        ("prose", "answered in prose"),
        ("quoted", "answered in prose"),
        ("empty", "answer was empty"),
        ("halves", "is 3.5, not a whole number from 1 to 5"),
        ("six", "is 6, not a whole number"),
        ("twice", "malformed JSON"),
        ("lacking", "lacks 'accuracy'"),
        ("refuse", "the judge refused: I'm sorry"),
        ("filtered", "the judge refused: the provider's content filter blocked the answer"),
        ("long", "cut off"),
        ("html", "did not answer with a chat completion; check base_url"),
        ("no-such-model", "HTTP 404: The model `no-such-model` does not exist; check the model's name"),
        ("quota", "HTTP 429: You exceeded your current quota"),
        ("broken", "HTTP 500: the server had an error"),
        ("slow:5", "no answer within 0.3 s"),
    ],
)
def test_what_is_no_verdict_is_unscored_with_its_reason(
    scripted: ScriptedJudge, model: str, reason: str
) -> None:
    scores, document = judge_all(scripted.settings(model, retries=0, timeout=0.3), (ADDRESS, GOOD))
    assert scores[0][0].value is None
    assert reason in scores[0][0].reason
    assert all(score.value is None for score in scores[0])
    assert (document["judged"], document["unscored"]) == (0, 1)


def test_retry_after_is_honoured(scripted: ScriptedJudge) -> None:
    began = time.monotonic()
    assert judge_one(scripted.settings("busy:1")).value == 1.0
    assert time.monotonic() - began >= 1.0
    assert scripted.count == 2


def test_nobody_waits_until_tomorrow(scripted: ScriptedJudge) -> None:
    began = time.monotonic()
    found = judge_one(scripted.settings("tomorrow"))
    assert found.value is None
    assert "it asks to wait 86400 s" in found.reason
    assert time.monotonic() - began < 30


def test_a_dropped_connection_is_tried_again(scripted: ScriptedJudge) -> None:
    assert judge_one(scripted.settings("drop:2")).value == 1.0
    assert scripted.count == 3


@pytest.mark.parametrize(
    ("model", "format_"), [("noschema", "json_object"), ("noformat", "plain"), ("fenced", "json_schema")]
)
def test_an_endpoint_without_schemas_is_asked_otherwise(
    scripted: ScriptedJudge, model: str, format_: str
) -> None:
    scores, document = judge_all(scripted.settings(model), (ADDRESS, GOOD), (ADDRESS, BAD))
    assert [score[0].value for score in scores] == [1.0, 0.0]
    assert document["response_format"] == {model: format_}


def test_one_name_under_two_paths_of_a_gateway_is_two_judges() -> None:
    def endpoint(base_url: str) -> str:
        return PanelMember("m", JudgeSettings(model="m", base_url=base_url), {}, Secrets()).endpoint

    assert endpoint("http://127.0.0.1:9/v1") == endpoint("http://127.0.0.1:9/v1/") == "127.0.0.1:9"
    assert endpoint("http://127.0.0.1:9/team-a/v1") != endpoint("http://127.0.0.1:9/team-b/v1")


def test_a_model_without_temperature_is_asked_without(scripted: ScriptedJudge) -> None:
    scores, document = judge_all(scripted.settings("notemperature"), (ADDRESS, GOOD))
    assert scores[0][0].value == 1.0
    assert document["dropped_parameters"] == {"notemperature": ["temperature"]}


def test_concurrency_is_bounded_and_used(scripted: ScriptedJudge) -> None:
    pairs = [(ADDRESS, GOOD.__class__(text=f"Reply {n}")) for n in range(20)]
    judge_all(scripted.settings("delay:50", concurrency=5), *pairs)
    assert scripted.log["most_at_once"] == 5


def test_nothing_listens_and_after_some_tries_nothing_more_is_asked(scripted: ScriptedJudge) -> None:
    settings = JudgeSettings(model="good", base_url="http://127.0.0.1:9/v1", canaries=False, retries=0)
    pairs = [(ADDRESS, GOOD.__class__(text=f"Reply {n}")) for n in range(30)]
    scores, document = judge_all(settings, *pairs)
    assert all(score[0].value is None for score in scores)
    assert "cannot be reached: connection refused" in scores[0][0].reason
    assert "consecutive failed calls" in scores[-1][0].reason
    assert document["unscored"] == 30


def test_the_key_is_sent_and_never_shown(scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-test-secret")
    assert judge_one(scripted.settings("keyed", api_key_env="JUDGE_KEY")).value == 1.0
    assert scripted.calls[0]["authorization"] == "Bearer sk-test-secret"
    monkeypatch.setenv("JUDGE_KEY", "sk-wrong-secret")
    refused = judge_one(scripted.settings("keyed", api_key_env="JUDGE_KEY"))
    assert refused.value is None
    assert "HTTP 401" in refused.reason
    assert "check the key in JUDGE_KEY" in refused.reason
    assert "sk-wrong" not in refused.reason


def test_no_key_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="needs a key: export OPENAI_API_KEY="):
        JudgeClient(JudgeSettings(model="gpt-4o-mini"), {})


@pytest.mark.parametrize(
    "url", ["ftp://x", "localhost:80", "https://user:pass@host/v1", "https://h/v1?key=1"]
)
def test_a_bad_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        JudgeClient(JudgeSettings(model="m", base_url=url, api_key_env=""), {})


def test_cost_comes_from_the_prices(scripted: ScriptedJudge) -> None:
    settings = scripted.settings(prices=Price(input=1000, output=2000))
    _, document = judge_all(settings, (ADDRESS, GOOD))
    tokens = document["tokens"]
    assert document["cost"] == pytest.approx((tokens["input"] * 1000 + tokens["output"] * 2000) / 1e6)
    _, unpriced = judge_all(scripted.settings(), (ADDRESS, GOOD))
    assert unpriced["cost"] is None
