"""Scorers of one's own: what may be one, what may come out of it, and what is refused with one clear line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey.config import load_settings
from answerkey.errors import ConfigError, UsageError
from answerkey.scorers.grader import configured_scorers, make_grader
from answerkey.scorers.user_scorers import make_scorer

QUESTION = ak.Question(id="q", question="?")
WEIGHTS = {"tool_usage": 0.4, "response_quality": 0.3, "error_handling": 0.2}


@ak.scorer
def polite(question: ak.Question, reply: ak.Reply) -> bool:
    return "please" in (reply.text or "")


@ak.scorer(name="wordiness", direction="lower", version="2")
def count_words(question: ak.Question, reply: ak.Reply, per: int = 1) -> float:
    return len((reply.text or "").split()) / per


def graded(scorer: Any, text: str = "please", *, weight: float | None = None) -> ak.Scorecard:
    name = make_scorer(scorer).name
    weights = {**WEIGHTS, name: weight} if weight is not None else None
    scoring = ak.Scoring(weights=weights) if weights else ak.Scoring()
    return make_grader(scoring, scorers=[scorer]).grade(QUESTION, (ak.Reply(text=text),))


def test_a_function_is_a_metric_or_a_component() -> None:
    assert graded(polite).metrics["polite"] == 1.0
    assert graded(polite, "no").metrics["polite"] == 0.0
    card = graded(polite, "no", weight=0.1)
    assert card.components["polite"].weight == 0.1
    assert card.total == 0.9
    # It can still be called as the function that it is.
    assert polite(QUESTION, ak.Reply(text="please")) is True


def test_a_plain_function_and_an_object_need_no_decorator() -> None:
    def short(question: ak.Question, reply: ak.Reply) -> ak.Score:
        return ak.Score("short", 0.5, "half as short as it should be")

    class Loud:
        name = "loud"
        version = "1"
        direction = "lower"

        def score(self, question: ak.Question, reply: ak.Reply) -> ak.Score:
            return ak.Score("loud", float((reply.text or "").isupper()))

    card = make_grader(scorers=[short, Loud()]).grade(QUESTION, (ak.Reply(text="HEY"),))
    assert (card.metrics["short"], card.metrics["loud"]) == (0.5, 1.0)
    assert card.findings["short"] == {"reason": "half as short as it should be"}
    assert make_grader(scorers=[Loud]).run_fields["directions"]["loud"] == "lower"


def test_the_version_follows_the_source_and_the_arguments() -> None:
    def one(question: ak.Question, reply: ak.Reply) -> float:
        return 0.1

    def other(question: ak.Question, reply: ak.Reply) -> float:
        return 0.2

    first, second = make_scorer(one, name="same"), make_scorer(other, name="same")
    assert first.version == make_scorer(one, name="same").version != second.version
    assert make_grader(scorers=[first]).hash != make_grader(scorers=[second]).hash
    assert count_words.version == "wordiness/2"
    assert make_scorer(count_words, arguments={"per": 2}).version != count_words.version


def test_a_function_typed_at_a_prompt_has_a_version_too() -> None:
    def made(body: str) -> Any:
        space: dict[str, Any] = {}
        exec(f"def f(question, reply): return {body}", space)
        return make_scorer(space["f"]).version

    assert made("1") == made("1") != made("0.5")


def test_a_scorer_may_look_at_the_earlier_turns() -> None:
    def repeats(question: ak.Question, reply: ak.Reply, earlier: Sequence[Any]) -> bool:
        return any(before.text == reply.text for _, before in earlier)

    turns = tuple(ak.Question(id=f"c#{n}", question="?") for n in (1, 2))
    card = make_grader(scorers=[repeats]).grade(
        ak.Question(id="c", question="?", turns=turns), (ak.Reply(text="a"), ak.Reply(text="a"))
    )
    assert [turn.metrics["repeats"] for turn in card.turns] == [0.0, 1.0]


def test_several_metrics_each_with_a_direction() -> None:
    @ak.scorer(direction={"vowels": "higher", "digits": "lower"})
    def letters(question: ak.Question, reply: ak.Reply) -> list[ak.Score]:
        text = reply.text or ""
        return [
            ak.Score("vowels", sum(c in "aeiou" for c in text)),
            ak.Score("digits", sum(map(str.isdigit, text))),
        ]

    grader = make_grader(scorers=[letters])
    card = grader.grade(QUESTION, (ak.Reply(text="abc 12"),))
    assert (card.metrics["vowels"], card.metrics["digits"]) == (1.0, 2.0)
    assert grader.run_fields["directions"]["digits"] == "lower"
    assert "vowels" not in grader.run_fields["directions"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("yes", "gave 'yes' (str); a scorer gives true, false, a number, a Score or None"),
        (float("nan"), "gave nan, which is not a number"),
        (float("inf"), "gave inf, which is not a number"),
        (None, "gave no value"),
        (ak.Score("odd", float("nan"), "so said"), "gave nan, which is not a number"),
        (ak.Score("odd", None, "nothing to look at"), "nothing to look at"),
        ([1, 2], "gave 1 (int) in a list; it declares odd"),
    ],
)
def test_what_is_no_number_is_unscored_with_the_reason(given: Any, reason: str) -> None:
    def odd(question: ak.Question, reply: ak.Reply) -> Any:
        return given

    card = graded(odd, weight=0.1)
    assert card.components["odd"].value is None
    assert card.components["odd"].reason == reason
    assert card.total is None
    assert graded(odd).findings["odd"]["unscored"] == reason
    assert graded(odd).total == 1.0


def test_a_component_outside_0_to_1_is_unscored_and_a_metric_is_not() -> None:
    def many(question: ak.Question, reply: ak.Reply) -> int:
        return 7

    assert graded(many).metrics["many"] == 7.0
    card = graded(many, weight=0.1)
    assert card.total is None
    assert card.components["many"].reason == "gave 7, which is not between 0 and 1"


def test_needs_that_a_reply_does_not_meet_are_the_reason() -> None:
    @ak.scorer(needs={"sources"})
    def cites(question: ak.Question, reply: ak.Reply) -> bool:
        return bool(reply.sources)

    @ak.scorer(needs={"judge"})
    def asks(question: ak.Question, reply: ak.Reply) -> bool:
        return True

    card = make_grader(scorers=[cites, asks]).grade(QUESTION, (ak.Reply(text="x"),))
    assert card.findings["cites"]["unscored"] == "needs sources: none were observed"
    assert card.findings["asks"]["unscored"].startswith("needs a judge: ")
    observed = ak.Reply(text="x", evidence=ak.Evidence(sources_observed=True))
    assert make_grader(scorers=[cites]).grade(QUESTION, (observed,)).metrics["cites"] == 0.0


async def _later(question: ak.Question, reply: ak.Reply) -> bool:
    return True


def _one_argument(reply: ak.Reply) -> bool:
    return True


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (3, r"3 \(int\) is not a scorer; give a function \(question, reply\)"),
        ("nobody", "unknown scorer 'nobody'; known: "),
        ("polit", "did you mean 'polite'"),
        (_later, "'_later' is asynchronous"),
        (_one_argument, "does not fit: too many positional arguments"),
        (lambda question, reply: 1, "cannot be a scorer's name"),
        (type("Nameless", (), {"score": lambda *_: 1})(), "needs a 'name' and a 'version'"),
    ],
)
def test_what_is_no_scorer_is_refused_before_anything_is_asked(part: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_grader(scorers=[part])


def test_a_name_that_exists_is_refused() -> None:
    with pytest.raises(UsageError, match="there is already a scorer 'groundedness'"):

        @ak.scorer
        def groundedness(question: ak.Question, reply: ak.Reply) -> bool:
            return True

    def tool_f1(question: ak.Question, reply: ak.Reply) -> bool:
        return True

    def score(question: ak.Question, reply: ak.Reply) -> bool:
        return True

    with pytest.raises(UsageError, match="there is already a scorer 'tool_f1'"):
        make_grader(scorers=[tool_f1])
    with pytest.raises(UsageError, match="cannot be called 'score', which is a name in every summary"):
        make_grader(scorers=[score])
    with pytest.raises(UsageError, match="two scorers are named 'polite'"):
        make_grader(scorers=[polite, polite])


def test_a_component_must_be_better_when_higher() -> None:
    with pytest.raises(ConfigError, match=r"wordiness is lower-is-better.*return 1 - value"):
        graded(count_words, weight=0.1)


def test_scorers_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_checks.py").write_text(
        "def brief(question, reply, words=5):\n    return len(reply.text.split()) <= words\n"
    )
    (tmp_path / "answerkey.toml").write_text(
        "[scoring.weights]\ntool_usage = 0.4\nresponse_quality = 0.3\nerror_handling = 0.2\n"
        '[scorers.brief]\npython = "own_checks.py:brief"\nweight = 0.1\nwords = 2\n'
    )
    monkeypatch.chdir(tmp_path.parent)
    settings = load_settings(tmp_path)
    (scorer,) = configured_scorers(settings)
    assert scorer.name == "brief"
    grader = make_grader(settings.scoring, settings)
    assert grader.grade(QUESTION, (ak.Reply(text="a b"),)).total == 1.0
    assert grader.grade(QUESTION, (ak.Reply(text="a b c"),)).total == 0.9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[scorers.brief]\npython = "none.py:brief"\nweight = 0.1\n',
            r"\[scoring.weights\] \(1\) and \[scorers.brief\] weight \(0.1\) add up to 1.1; change them",
        ),
        (
            '[scoring.weights]\nbrief = 0.5\ntool_usage = 0.5\n[scorers.brief]\npython = "x.py:y"\nweight = 0.5\n',
            r"\[scoring.weights\] brief and \[scorers.brief\] weight are the same setting; keep one",
        ),
        ('[scorers.brief]\npython = "none.py:brief"\n', r"\[scorers.brief\] there is no file .*none.py"),
        ('[scorers.brief]\npython = "bad.py:brief"\n', r"importing bad.py failed: ZeroDivisionError"),
        ('[scorers.brief]\npython = "good.py:breif"\n', r"good.py has no 'breif'; it has brief"),
        (
            '[scorers.brief]\npython = "good.py:brief"\nwords = 3\n',
            r"does not fit: got an unexpected .*'words'",
        ),
        (
            '[scorers.brief]\npython = "good.py:brief"\ndirection = "up"\n',
            r"'up' is unknown; use higher, lower",
        ),
        ("[scorers.judgement]\n", r"\[scorers.judgement\] unknown scorer 'judgement'; known: "),
        ('[scorers.retrieval]\npython = "good.py:brief"\n', r"there is already a scorer 'retrieval'"),
        ("[scorers]\nbrief = 1\n", r"\[scorers\] must have one table per scorer"),
    ],
)
def test_a_configuration_that_cannot_work_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "good.py").write_text("def brief(question, reply):\n    return True\n")
    (tmp_path / "answerkey.toml").write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        configured_scorers(load_settings(tmp_path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "answerkey.toml") in str(caught.value)
