"""Response quality: keywords by the standard, and the reference answer where no keyword is expected."""

import pytest

from answerkey.datasets.golden_sets import parse_question
from answerkey.model.question import Alternatives, ComputedExpectation, NumberExpectation, Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import details, reason
from answerkey.scorers.components import ResponseQuality


@pytest.mark.parametrize("mode", ["literal", "standard", "smart"])
@pytest.mark.parametrize(
    ("reply", "score"),
    [("Your property is in Montrose, Colorado.", 1.0), ("I could not find that document.", 0.0), (None, 0.0)],
)
def test_a_reference_answer_without_keywords_is_scored_in_every_mode(
    mode: str, reply: str | None, score: float
) -> None:
    question = Question(id="q", question="Where is our property?", reference_answer="Montrose, Colorado")
    found = ResponseQuality(mode).score(question, Reply(text=reply))  # type: ignore[arg-type]
    assert found.value == score
    assert "reference answer" in reason(found)


def test_keywords_win_over_the_reference_answer() -> None:
    question = Question(
        id="q", question="Where is it?", reference_answer="Montrose, Colorado", expected_keywords=("Denver",)
    )
    assert ResponseQuality().score(question, Reply(text="It is in Montrose, Colorado.")).value == 0.0


def test_what_is_forbidden_wins_over_a_reference_answer() -> None:
    question = Question(
        id="q", question="Where?", reference_answer="Montrose", forbidden_keywords=("password",)
    )
    assert ResponseQuality().score(question, Reply(text="Montrose; the password is 1.")).value == 0.0


def test_only_a_question_that_expects_nothing_gets_one_for_anything() -> None:
    assert ResponseQuality().score(Question(id="q", question="Hi?"), Reply(text="Hello.")).value == 1.0


@pytest.mark.parametrize(
    ("reply", "value", "words"),
    [
        ("In August you took in $16,144 at 5%.", 1.0, "3 of 3 keywords found"),
        ("In August you took in $16,100 at 5%.", 0.0, "missing 16144, which is essential"),
        ("In August you took in $16,100.", 0.0, "missing 16144, 5%, which are essential"),
        ("You took in $16,144 at 5%.", 2 / 3, "2 of 3 keywords found; missing August"),
    ],
)
def test_a_missing_essential_expectation_makes_it_zero(reply: str, value: float, words: str) -> None:
    question = parse_question(
        {
            "question": "What did we earn?",
            "expected_keywords": ["August", {"number": 16144, "must": True}, {"text": "5%", "must": True}],
        }
    )
    score = ResponseQuality().score(question, Reply(text=reply))
    assert score.value == pytest.approx(value)
    assert reason(score) == words
    assert details(score)["expected"] == [
        {"keyword": "August"},
        {"keyword": "16144", "must": True},
        {"keyword": "5%", "must": True},
    ]


@pytest.mark.parametrize(
    "keyword", ["16144", "$16,144", "5%", "USD 5k", "5 percent", Alternatives(("310", "$310"))]
)
def test_every_number_of_a_set_can_be_essential(keyword: str | Alternatives) -> None:
    question = Question(id="q", question="How much?", expected_keywords=("August", keyword))
    reply = Reply(text="In August it was a lot.")
    assert ResponseQuality().score(question, reply).value == 0.5
    assert ResponseQuality(must="numbers").score(question, reply).value == 0.0
    assert ResponseQuality(must="numbers").version != ResponseQuality().version


@pytest.mark.parametrize("keyword", ["August", "9th", "Form 1065", "5:45", Alternatives(("310", "plot"))])
def test_what_is_not_a_number_is_not_essential_by_that_setting(keyword: str | Alternatives) -> None:
    question = Question(id="q", question="How much?", expected_keywords=("a lot", keyword))
    assert ResponseQuality(must="numbers").score(question, Reply(text="It was a lot.")).value == 0.5


def test_a_computed_value_is_listed_with_its_expression() -> None:
    expected = NumberExpectation(3960, expression="SELECT SUM(gross) FROM reservations")
    question = Question(id="q", question="How much?", expected_keywords=(expected,))
    listed = details(ResponseQuality().score(question, Reply(text="$3,960.00")))
    assert listed["expected"] == [
        {"keyword": "3960", "computed": True, "expression": "SELECT SUM(gross) FROM reservations"}
    ]


def test_a_value_that_was_not_computed_is_never_scored() -> None:
    expected = ComputedExpectation(method="sql", expression="SELECT 1")
    question = Question(id="q", question="How much?", expected_keywords=(expected,))
    with pytest.raises(ValueError, match="'SELECT 1' was not computed before scoring"):
        ResponseQuality().score(question, Reply(text="1"))


@pytest.mark.parametrize(
    ("keyword", "reply", "whole"),
    [
        ("310", "It costs $1,310.", False),
        ("310", "See SKU 93104.", False),
        ("310", "It costs $310,000.", False),
        ("310", "It costs $1,310 or $310.00.", True),
        ("310", "Flight A310.", True),
        ("5%", "It is 15%.", False),
        ("5%", "It is 15%, was 5%.", True),
        ("5:45", "It opens at 15:45.", False),
        ("5:45", "It opens at 5:45.", True),
        ("9th", "the 19th", True),
    ],
)
def test_whole_numbers_are_an_option(keyword: str, reply: str, whole: bool) -> None:
    question = Question(id="q", question="How much?", expected_keywords=(keyword,))
    assert ResponseQuality().score(question, Reply(text=reply)).value == 1.0
    assert ResponseQuality(whole_numbers=True).score(question, Reply(text=reply)).value == float(whole)
