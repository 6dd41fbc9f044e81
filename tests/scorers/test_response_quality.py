"""Response quality: keywords by the standard, and the reference answer where no keyword is expected."""

import pytest

from answerkey.model.question import Question
from answerkey.model.reasons import reason
from answerkey.model.reply import Reply
from answerkey.scorers.response_quality import ResponseQuality


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
