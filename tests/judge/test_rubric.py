from pathlib import Path

import pytest

from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import ConfigError
from answerkey.judge.prompt import (
    Item,
    UnjudgedError,
    judge_messages,
    load_pair_rubric,
    load_rubric,
    parse_verdict,
)
from answerkey.model.question import rubric_name

from .judging import ADDRESS, GOOD, ScriptedJudge, judge_all


def test_the_standard_rubric_weighs_as_the_standard_says() -> None:
    rubric = load_rubric("standard")
    assert rubric.weights == {"accuracy": 0.4, "completeness": 0.3, "clarity": 0.2, "relevance": 0.1}
    assert load_pair_rubric().guidance


def criteria(*weights: float, names: str = "abcdef") -> str:
    return "\n".join(
        f'[[criteria]]\nname = "{name}"\nweight = {weight}\nquestion = "?"'
        for name, weight in zip(names, weights, strict=False)
    )


@pytest.mark.parametrize("weights", [(60, 40), (0.6, 0.4), (100,), (33.3, 33.3, 33.4)])
def test_weights_add_up_to_100_or_1(tmp_path: Path, weights: tuple[float, ...]) -> None:
    (tmp_path / "r.toml").write_text(criteria(*weights))
    assert sum(load_rubric("r.toml", folder=tmp_path).weights.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (criteria(40, 30), "the weights add up to 70; change them so that they add up to 100 (or 1)"),
        (criteria(150, -50), "weight -50 must not be negative"),
        (criteria(50, 50, names="aa"), "two criteria have the same name"),
        ('[[criteria]]\nname = "a b"\nweight = 1\nquestion = "?"', "use at most 40 letters, digits and _"),
        ("criteria = []", "has no criteria"),
        ('[[criteria]]\nname = "a"\nweight = 1', "'question' is missing"),
        (criteria(1) + '\n[scale]\n6 = "more"', "scale: name at least the lowest and the highest grade"),
        (criteria(1) + '\n[scale]\ngood = "more"', "scale 'good': grades are whole numbers"),
        (
            criteria(1) + '\n[[examples]]\nreply = "Yes."\ngrades = {a = 9}',
            "example 1: grades must give each of a a number from 1 to 5",
        ),
        (criteria(1) + '\n[colour]\nx = "red"', "not a rubric: Object contains unknown field `colour`"),
        ("a = [", "not valid TOML"),
    ],
)
def test_a_bad_rubric_is_one_line(tmp_path: Path, content: str, line: str) -> None:
    (tmp_path / "r.toml").write_text(content)
    with pytest.raises(ConfigError) as raised:
        load_rubric("r.toml", folder=tmp_path)
    assert line in str(raised.value)
    assert "r.toml" in str(raised.value)


def test_json_is_taken_and_the_hash_changes_with_every_word(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"criteria": [{"name": "a", "weight": 1, "question": "Is it so?"}]}')
    first = load_rubric("r.json", folder=tmp_path)
    (tmp_path / "r.json").write_text('{"criteria": [{"name": "a", "weight": 1, "question": "Is it?"}]}')
    second = load_rubric("r.json", folder=tmp_path)
    assert first.name == "r"
    assert first.hash != second.hash
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(ConfigError, match="must be a table"):
        load_rubric("r.json", folder=tmp_path)


def test_a_mistyped_name_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match="unknown rubric 'standart'; did you mean 'standard'"):
        load_rubric("standart")


def test_a_scale_of_ones_own_becomes_0_to_1(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('scale = "pass/fail"\n' + criteria(1))
    rubric = load_rubric("r.toml", folder=tmp_path)
    assert (rubric.lowest, rubric.top, rubric.share_of(1)) == (0, 1, 1.0)
    (tmp_path / "r.toml").write_text(criteria(1) + '\n[scale]\n0 = "useless"\n10 = "perfect"')
    rubric = load_rubric("r.toml", folder=tmp_path)
    assert (rubric.share_of(7), rubric.grade_of(0.7)) == (0.7, 7.0)
    assert parse_verdict('{"a": {"reason": "", "score": 10}}', rubric)["a"].score == 10
    with pytest.raises(UnjudgedError, match="from 0 to 10"):
        parse_verdict('{"a": {"reason": "", "score": 11}}', rubric)


def test_examples_are_shown_and_change_the_hash(tmp_path: Path) -> None:
    example = '\n[[examples]]\nquestion = "Where?"\nreply = "Here <b>."\ngrades = {a = 2}\nreason = "Vague."'
    (tmp_path / "plain.toml").write_text('name = "r"\n' + criteria(1))
    (tmp_path / "shown.toml").write_text('name = "r"\n' + criteria(1) + example)
    plain, shown = (load_rubric(f"{name}.toml", folder=tmp_path) for name in ("plain", "shown"))
    assert plain.hash != shown.hash
    system = judge_messages(shown, Item({"reply": "x"}))[0]["content"]
    assert (
        '"question": "Where?", "reply": "Here \\u003cb\\u003e.", "reason": "Vague.", "grades": {"a": 2}'
        in system
    )
    assert "Examples" not in judge_messages(plain, Item({"reply": "x"}))[0]["content"]


def test_a_golden_case_may_bring_its_scale_and_examples(scripted: ScriptedJudge) -> None:
    asked = {
        "question": "Does it say where?",
        "scale": "pass/fail",
        "examples": [{"reply": "No.", "grades": 0}],
    }
    case = parse_question(
        {
            "question": ADDRESS.question,
            "reference_answer": ADDRESS.reference_answer,
            "checks": [{"rubric": asked}, {"rubric": "Is it kind?"}],
        }
    )
    ([scores], _) = judge_all(scripted.settings(claims=False), (case, GOOD))
    graded = {score.name: (score.value, score.reason) for score in scores}
    assert graded[rubric_name(asked)] == (1.0, "1 of 1: It is worth 1.")
    assert graded["rubric: Is it kind?"] == (1.0, "5 of 5: It is worth 5.")
    for wrong, line in (
        ({"scale": "pass/fail"}, "'question' is missing"),
        ({"question": "?", "scale": {"one": "x"}}, "grades are whole numbers"),
        ({"question": "?", "examples": [{"reply": "No.", "grades": 7}]}, "a number from 1 to 5"),
    ):
        with pytest.raises(ValueError, match=line):
            parse_question({"question": "?", "checks": [{"rubric": wrong}]})
