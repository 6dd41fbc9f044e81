"""Later turns of a conversation rest on what the tools gave in the earlier ones."""

from answerkey.model.options import Scoring
from answerkey.model.question import Question
from answerkey.model.reply import Reply, ToolCall
from answerkey.scorers.plan import make_grader

RENTS = [{"name": "Maple Duplex", "rent": 1200}, {"name": "Oak Cottage", "rent": 1500}]
TALK = Question(
    id="talk",
    question="What are the rents?",
    turns=(
        Question(id="talk#1", question="What are the rents?"),
        Question(id="talk#2", question="And in total?"),
    ),
)


def grade(*replies):
    return make_grader(Scoring()).grade(TALK, replies).turns


def first(text="Maple Duplex brings $1,200 and Oak Cottage $1,500."):
    return Reply(text=text, tool_calls=(ToolCall(name="query", result=RENTS, result_seen=True),))


def test_a_follow_up_without_tools_is_checked_against_earlier_results():
    _, second = grade(first(), Reply(text="Together they bring $2,700."))
    assert second.metrics["groundedness"] == 1.0
    (claim,) = second.findings["groundedness"]["claims"]
    assert "turns[0].tool_calls[0].result" in claim["evidence"]["formula"]


def test_what_no_turn_has_is_unsupported():
    _, second = grade(first(), Reply(text="Together they bring $2,900."))
    assert second.metrics["groundedness"] == 0.0


def test_what_the_chatbot_said_before_is_no_evidence():
    before, second = grade(first("Maple Duplex brings $1,250."), Reply(text="As I said, it brings $1,250."))
    assert before.metrics["groundedness"] == 0.5
    assert second.metrics["groundedness"] == 0.0


def test_the_first_turn_does_not_rest_on_later_ones():
    empty = Reply(text="It brings $1,200.", tool_calls=(ToolCall(name="query", result=[], result_seen=True),))
    before, _ = grade(empty, first())
    assert before.metrics["groundedness"] == 0.0
