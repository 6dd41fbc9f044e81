"""Judges of several providers: each asked by its own API, at its own address, with its own key and price."""

import pytest

from answerkey.judge.session import Judge
from answerkey.model.options import JudgeModel, JudgeSettings, Price

from .judging import ADDRESS, GOOD, ScriptedJudge, judge_all, judge_one


def test_anthropics_own_api(scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    claude = JudgeModel(base_url=scripted.address, prices=Price(input=1.0, cached=0.1, output=5.0))
    settings = JudgeSettings(
        model="anthropic:good", canaries=False, claims=False, judges={"anthropic:good": claude}
    )
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    [call] = scripted.calls
    assert call["headers"] == {"x-api-key": "sk-ant-secret", "anthropic-version": "2023-06-01"}
    assert call["request"]["model"] == "good"
    assert call["request"]["max_tokens"] > 0
    assert "seed" not in call["request"]
    assert call["request"]["output_config"]["format"]["schema"]["required"][0] == "accuracy"
    assert document["dropped_parameters"] == {"anthropic:good": ["seed"]}
    assert document["tokens"] == {"input": 1000, "output": 50}
    assert document["cost"] == pytest.approx((100 * 1.0 + 900 * 0.1 + 50 * 5.0) / 1e6)


def test_geminis_own_api(scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "g-secret")
    gemini = JudgeModel(base_url=scripted.address, prices=Price(input=1.0, output=10.0))
    settings = JudgeSettings(
        model="gemini:good", canaries=False, claims=False, judges={"gemini:good": gemini}
    )
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    [call] = scripted.calls
    assert call["headers"] == {"x-goog-api-key": "g-secret"}
    assert call["request"]["generationConfig"]["responseJsonSchema"]["required"][0] == "accuracy"
    # What it thought is paid for as what it said.
    assert document["cost"] == pytest.approx((1000 + 100 * 10) / 1e6)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("anthropic:refuse", "the judge refused: I would rather not."),
        ("gemini:blocked", "blocked the prompt: SAFETY"),
    ],
)
def test_a_refusal_is_unscored(scripted: ScriptedJudge, model: str, reason: str) -> None:
    settings = JudgeSettings(model=model, base_url=scripted.address, canaries=False)
    judged = judge_one(settings)
    assert judged.value is None
    assert reason in judged.reason


def test_a_model_without_structured_answers_is_asked_in_words(scripted: ScriptedJudge) -> None:
    settings = JudgeSettings(model="anthropic:noschema", base_url=scripted.address, canaries=False)
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    assert document["response_format"] == {"anthropic:noschema": "json_object"}


def test_a_panel_of_three_providers(scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "house-secret")
    settings = JudgeSettings(
        model=("house", "anthropic:good", "second"),
        canaries=False,
        claims=False,
        judges={
            "house": JudgeModel(
                model="good",
                base_url=scripted.base_url,
                api_key_env="HOUSE_KEY",
                prices=Price(input=0.0, output=0.0),
            ),
            "anthropic:good": JudgeModel(base_url=scripted.address, prices=Price(input=1.0, output=1.0)),
            "second": JudgeModel(
                model="stern", provider="gemini", base_url=scripted.address, prices=Price(reply=0.5)
            ),
        },
    )
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    assert {judge["model"] for judge in scores[0].details["judges"]} == set(settings.models)
    # The flat price of one, the tokens of another, and nothing for the third.
    assert document["cost"] == pytest.approx(0.5 + 1050 / 1e6)
    keys = {call.get("authorization") for call in scripted.calls if "authorization" in call}
    assert keys == {"Bearer house-secret"}


def test_judges_at_other_addresses_are_other_judges(scripted: ScriptedJudge) -> None:
    def version(**own: str) -> str:
        return Judge(JudgeSettings(model="a", judges={"a": JudgeModel(api_key_env="", **own)})).version

    assert version(model="x") != version(model="y")
    assert version(base_url="http://127.0.0.1:1") != version(base_url="http://127.0.0.1:2")
