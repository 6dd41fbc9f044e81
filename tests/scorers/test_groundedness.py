"""`linked` and `novelty` of a reply, and what gives `groundedness` a value."""

import pytest

from answerkey.errors import UsageError
from answerkey.model.options import GroundedSettings, Scoring
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall
from answerkey.model.scorecard import Score
from answerkey.scorers.evidence import Groundedness, LinksIntoEvidence
from answerkey.scorers.grader import make_grader

QUESTION = Question(id="q", question="What do our houses bring?")
RENTS = [{"house": "Maple Duplex", "rent": 1200}, {"house": "Oak Villa", "rent": 1875}]


def scores(text: str | None, result: object = None, **fields: object) -> dict[str, Score]:
    calls = () if result is None else (ToolCall(name="q", result=result, result_seen=True),)
    reply = Reply(text=text, tool_calls=calls, **fields)
    return {score.name: score for score in LinksIntoEvidence().score(QUESTION, reply)}


def test_linked_is_the_share_of_what_has_a_link() -> None:
    found = scores("Maple Duplex brings $1,200, and Pine Villa $950.", RENTS)
    # Of Pine Villa, "Villa" stands in the evidence.
    assert found["linked"].value == pytest.approx(3 / 5)
    assert found["linked"].reason == "3 of 5 figures, dates, names, ids and quotes have a link"
    assert found["linked"].details["links"][1]["where"] == "tool_calls[0].result[0].rent"


def test_novelty_is_the_share_of_new_words() -> None:
    source = Source(text="The roof was repaired in spring.")
    assert scores("The roofs were repaired.", sources=(source,))["novelty"].value == 0
    assert scores("A burglar stole paintings.", sources=(source,))["novelty"].value == 1


def test_without_evidence_nothing_is_said() -> None:
    assert scores("It is $5.") == {}
    assert scores(None, RENTS) == {}
    unseen = scores("It is $5.", sources=(Source(id="deed"),))
    assert {score.value for score in unseen.values()} == {None}
    assert unseen["linked"].reason.startswith("not observed")


def test_what_is_too_large_says_so() -> None:
    found = scores("1 " * 1_000_001, RENTS)
    assert found["linked"].value is None
    assert found["linked"].reason.startswith("not scored: too large: the reply has 2,000,002 characters")


def test_off_by_default() -> None:
    reply = Reply(text="It is $1,200.", tool_calls=(ToolCall(name="q", result=RENTS, result_seen=True),))
    assert {"linked", "novelty", "groundedness"}.isdisjoint(make_grader().grade(QUESTION, (reply,)).metrics)
    card = make_grader(Scoring(grounded=GroundedSettings(links=True))).grade(QUESTION, (reply,))
    assert card.metrics["linked"] == 1.0
    assert "groundedness" not in card.metrics


def test_groundedness_needs_somebody_who_judges() -> None:
    with pytest.raises(UsageError, match="needs a judge"):
        Groundedness()
    with pytest.raises(UsageError, match="needs a judge"):
        make_grader(Scoring(weights={"tool_usage": 0.5, "groundedness": 0.5}))
