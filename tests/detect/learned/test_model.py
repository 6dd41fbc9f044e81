"""Whether a reply as a whole is a notice of failure."""

import pytest

from answerkey.detect.learned.features import FEATURES, features
from answerkey.detect.learned.model import COEFFICIENTS, explains, failing_reply


def test_every_feature_has_a_coefficient() -> None:
    assert set(COEFFICIENTS) == set(FEATURES)
    assert len(features("The database crashed.")) == len(FEATURES)


def test_the_span_is_the_sentence_that_tells_of_the_failure() -> None:
    text = "Thank you for asking! The ledger database crashed while I was reading it. Please try again later."
    span = failing_reply(text)
    assert span is not None
    assert text[span[0] : span[1]] == "The ledger database crashed while I was reading it."


@pytest.mark.parametrize(
    "text",
    [
        "The tool shed is locked; the superintendent has the key.",
        'The screenshot shows "An error occurred while connecting". Set DB_HOST to db.internal.',
        "Your rent is $1,450, due on the first.",
        "I can't share another tenant's phone number.",
    ],
)
def test_answers_are_no_notices(text: str) -> None:
    assert failing_reply(text) is None


def test_what_begins_like_a_message_may_explain_one() -> None:
    assert explains("KeyError: 'basis' happens because the dict has no such key. Use row.get instead.")
    assert not explains("KeyError: 'basis'")
