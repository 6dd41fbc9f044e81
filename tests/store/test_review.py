import msgspec
import pytest

from answerkey.model.judgement import Feedback
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, ReviewQueue, new_id
from answerkey.store.questions import find_reply_key

from .filling import add_run, good_reply


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def test_borderline_replies_wait_until_a_reviewer_has_judged_them(store):
    info = add_run(store, "r1")
    queue = ReviewQueue(store, info)
    assert [(item.question_id, item.score, item.reason) for item in queue.page()] == [
        ("q1", 0.4, "borderline"),
        ("q4", 0.4, "borderline"),
    ]
    key = find_reply_key(store, info, "q1", 1)
    book = FeedbackStore(store)
    book.add(Feedback(id=new_id(), created_at=now(), value=0.0, source="user", reply=key))
    assert queue.counts() == (2, 0)
    book.add(Feedback(id=new_id(), created_at=now(), value=0.0, source="review", reply=key))
    assert queue.counts() == (1, 1)
    assert [item.question_id for item in queue.page()] == ["q4"]


def test_a_judge_that_disagrees_with_the_score_comes_first(store):
    info = add_run(store, "r1")
    (result,) = store.results_of(info, "q0")
    card = msgspec.structs.replace(result.scorecard, metrics={"judge": 0.55})
    store.add(info, [Trial(result.question, 1, 0, result.replies, card)], with_replies=False)
    first, *others = ReviewQueue(store, info).page()
    assert (first.question_id, first.score, first.judge, first.reason) == ("q0", 1.0, 0.55, "judge disagrees")
    assert [item.question_id for item in others] == ["q1", "q4"]


def test_a_judge_that_nearly_agrees_does_not_matter(store):
    info = add_run(store, "r1")
    (result,) = store.results_of(info, "q0")
    card = msgspec.structs.replace(result.scorecard, metrics={"judge": 0.7})
    store.add(info, [Trial(result.question, 1, 0, result.replies, card)], with_replies=False)
    assert "q0" not in [item.question_id for item in ReviewQueue(store, info).page()]


def test_a_reply_without_text_waits_for_nobody(store):
    info = add_run(
        store, "r1", lambda question, trial: Reply(text="", tool_calls=good_reply(question).tool_calls)
    )
    assert ReviewQueue(store, info).counts() == (0, 0)


def test_a_verdict_is_taken_back_and_others_stay(store):
    info = add_run(store, "r1")
    queue = ReviewQueue(store, info)
    first = queue.page(order="sample")[0]
    for author, trusted in (("ann", True), ("ben", False)):
        queue.record_verdict(first.question_id, 1, trusted=trusted, comment="", author=author)
    assert list(queue.verdicts().values()) == [{"ann": True, "ben": False}]
    assert queue.remove_verdict(first.question_id, 1, author="ann")
    assert not queue.remove_verdict(first.question_id, 1, author="ann")
    assert list(queue.verdicts().values()) == [{"ben": False}]
    assert [item.question_id for item in queue.page(reviews=1)] == [first.question_id]
