from pathlib import Path

import pytest

from answerkey.errors import ConfigError
from answerkey.judge.rubric import load_pair_rubric, load_rubric


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
        ('[[criteria]]\nname = "a b"\nweight = 1\nquestion = "?"', "a name is letters, digits and _"),
        ("criteria = []", "has no criteria"),
        ('[[criteria]]\nname = "a"\nweight = 1', "not a rubric: Object missing required field `question`"),
        (criteria(1) + '\n[scale]\n6 = "more"', "scale '6': grades are 1 to 5"),
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
