"""Grades weighed by the probabilities of the tokens at their place, asked of a real server."""

import json
from pathlib import Path

import pytest

import answerkey
from answerkey.errors import ConfigError
from answerkey.judge.prompt import encode_weighed, parse_weighed, rubric_of_check
from answerkey.judge.session import Judge
from answerkey.model.judgement import ProbabilityCounts
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Check, Question
from answerkey.model.reply import Json, Reply, Source
from answerkey.providers import OLLAMA, AnswerToken, Prompt
from answerkey.store import open_store
from answerkey.store.feedback import SqlJudgements

from .judging import ADDRESS, GOOD, ScriptedJudge, judge_all, judge_one

# The scripted judge writes 5, finds it 60% probable and 4 20%: what else it finds is no grade.
MEAN = (0.6 * 5 + 0.2 * 4) / 0.8


def test_a_grade_is_the_mean_by_probability(scripted: ScriptedJudge) -> None:
    settings = scripted.settings(probabilities=True, claims=False)
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == pytest.approx((MEAN - 1) / 4)
    assert scores[0].reason.startswith("accuracy 4.75/5")
    graded = scores[0].details["judges"][0]["samples"][0]["accuracy"]
    assert graded["score"] == 5
    assert graded["probabilities"] == {"4": 0.25, "5": 0.75}
    assert document["probabilities"] == {"weighed": 1, "plain": 0}
    [call] = scripted.calls
    assert call["request"]["logprobs"] is True
    assert call["request"]["top_logprobs"] == 10


def test_a_plain_judge_is_asked_for_none(scripted: ScriptedJudge) -> None:
    ([scores], document) = judge_all(scripted.settings(claims=False), (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    assert "probabilities" not in scores[0].details["judges"][0]["samples"][0]["accuracy"]
    assert document["probabilities"] is None
    assert "logprobs" not in scripted.calls[0]["request"]


def test_only_grades_are_asked_with_probabilities(scripted: ScriptedJudge) -> None:
    sourced = Reply(text=GOOD.text, sources=(Source(text="900 S 9th St, Montrose, Colorado"),))
    judge_all(scripted.settings(probabilities=True), (ADDRESS, sourced))
    asked = [call["request"].get("logprobs") for call in scripted.calls]
    assert sorted(asked, key=str) == [None, True]


def test_tokens_may_cut_characters_and_stand_in_a_fence(scripted: ScriptedJudge) -> None:
    assert judge_one(scripted.settings("umlauts", probabilities=True)).value == pytest.approx((MEAN - 1) / 4)


def test_geminis_own_api(scripted: ScriptedJudge) -> None:
    settings = JudgeSettings(
        model="gemini:good", base_url=scripted.address, canaries=False, claims=False, probabilities=True
    )
    assert judge_one(settings).value == pytest.approx((MEAN - 1) / 4)
    asked = scripted.calls[0]["request"]["generationConfig"]
    assert (asked["responseLogprobs"], asked["logprobs"]) == (True, 10)


def test_ollamas_own_api() -> None:
    asked = OLLAMA.body(Prompt(model="m", messages=(), likeliest=10))
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, 10)
    likeliest: list[Json] = [{"token": "5", "logprob": 0.0}, {"token": "4", "logprob": -1000.0}]
    told: Json = {"token": "5", "logprob": 0.0, "bytes": [53], "top_logprobs": likeliest}
    assert OLLAMA.tokens is not None
    assert OLLAMA.tokens({"logprobs": [told]}) == (AnswerToken(b"5", {"5": 1.0, "4": 0.0}),)
    assert OLLAMA.tokens({"logprobs": None}) == ()


@pytest.mark.parametrize("model", ["untold", "nologprobs"])
def test_without_probabilities_the_written_grade_counts_and_that_is_said(
    scripted: ScriptedJudge, model: str
) -> None:
    settings = scripted.settings(model, probabilities=True, claims=False)
    ([scores], document) = judge_all(settings, (ADDRESS, GOOD))
    assert scores[0].value == 1.0
    assert document["probabilities"] == {"weighed": 0, "plain": 1}
    assert document["dropped_parameters"] == ({"nologprobs": ["logprobs"]} if model == "nologprobs" else {})


def test_what_is_kept_has_the_probabilities_and_belongs_to_them_alone(
    scripted: ScriptedJudge, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "a.db")) as store:
        kept = SqlJudgements(store)

        def value(run_id: str, *, probabilities: bool) -> float | None:
            settings = scripted.settings(probabilities=probabilities, claims=False)
            ([scores], _) = judge_all(settings, (ADDRESS, GOOD), run_id=run_id, store=kept)
            return scores[0].value

        assert value("a", probabilities=False) == 1.0
        assert value("b", probabilities=True) == pytest.approx((MEAN - 1) / 4)
        assert scripted.count == 2
        assert value("c", probabilities=True) == pytest.approx((MEAN - 1) / 4)
        assert value("d", probabilities=False) == 1.0
        assert scripted.count == 2


def test_they_are_part_of_the_judges_identity(scripted: ScriptedJudge) -> None:
    versions = {Judge(scripted.settings(probabilities=on)).version for on in (False, True)}
    assert len(versions) == 2


def test_a_rubric_of_ten_grades_is_refused(scripted: ScriptedJudge, tmp_path: Path) -> None:
    rubric = tmp_path / "ten.toml"
    rubric.write_text(
        'scale = {1 = "bad", 10 = "good"}\n[[criteria]]\nname = "tone"\nweight = 1\nquestion = "Kind?"\n'
    )
    with pytest.raises(ConfigError, match=r"grades from 1 to 10 .* share first digits"):
        Judge(scripted.settings(rubric=str(rubric), probabilities=True))


def test_a_golden_cases_scale_of_ten_grades_counts_as_written(scripted: ScriptedJudge) -> None:
    wanted = {"question": "Is it right?", "scale": {"1": "no", "10": "yes"}}
    question = Question(
        id="q", question="Where?", reference_answer="In Montrose.", checks=(Check("rubric", wanted, "right"),)
    )
    ([scores], document) = judge_all(scripted.settings(probabilities=True, claims=False), (question, GOOD))
    assert scores[-1].value == 1.0
    assert document["probabilities"] == {"weighed": 1, "plain": 1}


def test_an_api_that_tells_none_is_refused(scripted: ScriptedJudge) -> None:
    with pytest.raises(
        ConfigError, match="the Anthropic API of anthropic:good does not return token probabilities"
    ):
        Judge(JudgeSettings(model="anthropic:good", base_url=scripted.address, probabilities=True))


RUBRIC = rubric_of_check({"question": "Right?", "scale": "pass/fail"})
TEXT = '{"rubric": {"reason": "the \\"score\\": 0, }", "score": 1}}'


def said(text: str, probabilities: dict[str, float]) -> AnswerToken:
    return AnswerToken(text.encode(), probabilities)


@pytest.mark.parametrize(
    ("tokens", "probabilities"),
    [
        # What was thought before, and a mark at the end, are no part of the text.
        (("hm: 0", TEXT[:-4], " 1", "}}", "<end>"), {0: 0.25, 1: 0.75}),
        # A token may end the name or the object as well.
        ((TEXT[:-6], '": 1}', "}"), {0: 0.25, 1: 0.75}),
        # The tokens are another text's, or there are none.
        ((TEXT[:-5], " 0", "}}"), None),
        ((), None),
    ],
)
def test_the_grades_token_is_the_one_that_covers_its_place(
    tokens: tuple[str, ...], probabilities: dict[int, float] | None
) -> None:
    told = tuple(
        said(text, {text: 0.6, text.replace("1", "0"): 0.2, "10": 0.2} if "1" in text else {})
        for text in tokens
    )
    kept = encode_weighed(TEXT, told, RUBRIC)
    graded = parse_weighed(kept, RUBRIC)["rubric"]
    assert (graded.score, graded.probabilities) == (1, probabilities)
    assert graded.mean == (0.75 if probabilities else 1)


def test_tokens_that_do_not_know_the_written_grade_tell_nothing() -> None:
    told = (said(TEXT[:-3], {}), said("1", {"0": 0.9, "5": 0.1}), said("}}", {}))
    kept = encode_weighed(TEXT, told, RUBRIC)
    assert json.loads(kept)["probabilities"] == {}


def test_a_run_says_which_verdicts_had_none(
    scripted: ScriptedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answerkey.toml").write_text(
        f'[judge]\nmodel = "untold"\nbase_url = "{scripted.base_url}"\nprobabilities = true\ncanaries = false\n'
    )
    run = answerkey.evaluate([ADDRESS], lambda question: GOOD.text)
    assert run.info.judge.probabilities == ProbabilityCounts(weighed=0, plain=1)
    assert any("1 of 1 verdicts came without probabilities" in line for line in run.warnings)
    weighed = answerkey.evaluate([ADDRESS], lambda question: GOOD.text, judge="good")
    assert weighed.summary.metrics["judge"] == pytest.approx((MEAN - 1) / 4)
    assert not [line for line in weighed.warnings if "probabilities" in line]
