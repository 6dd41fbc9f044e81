import pytest

from answerkey.errors import UsageError
from answerkey.model.judgement import Feedback, ProductionReply, ReplyKey, read_value
from answerkey.model.reply import Reply
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.production import ProductionReplies, feedback_stats

from .filling import add_run


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def verdict(value=1.0, **fields):
    return Feedback(id=new_id(), created_at=now(), value=value, **fields)


def test_a_verdict_finds_its_reply_by_response_trace_or_conversation_id(store):
    info = add_run(store, "r1")
    book = FeedbackStore(store)
    for ids in ({"response_id": "resp-q0-1"}, {"trace_id": "trace-q0-1"}, {"conversation_id": "conv-q0-1"}):
        kept, created = book.add(verdict(**ids))
        assert created
        assert kept.reply == ReplyKey("r1", kept.reply.ask_hash, 1, info.target_hash)
        assert (kept.question, kept.category) == ("What is fact 0 of the property file?", "property")
    assert len(book.verdicts(info.id)) == 3
    assert len(book.of_reply(kept.reply)) == 3


def test_the_newest_run_is_meant_when_two_hold_the_same_id(store):
    add_run(store, "old", day=0)
    add_run(store, "new", day=1)
    kept, _ = FeedbackStore(store).add(verdict(response_id="resp-q0-1"))
    assert kept.reply.run_id == "new"


def test_a_verdict_on_an_unknown_reply_waits_and_is_tied_to_it_when_it_comes(store):
    book = FeedbackStore(store)
    kept, _ = book.add(verdict(0.0, response_id="later", comment="wrong"))
    assert not kept.matched
    linked = ProductionReplies(store).add(
        [ProductionReply(id="later", created_at=now(), question="Who owns it?", reply=Reply(text="Nobody"))]
    )
    assert linked.linked == 1
    (again,), total = book.page()
    assert (total, again.production_id, again.question) == (1, "later", "Who owns it?")


def test_the_same_key_again_changes_the_verdict_instead_of_adding_one(store):
    book = FeedbackStore(store)
    first, created = book.add(verdict(1.0, response_id="x", idempotency_key="k"))
    second, created_again = book.add(verdict(0.0, response_id="x", idempotency_key="k", comment="no"))
    assert (created, created_again, first.id == second.id) == (True, False, True)
    (only,), total = book.page()
    assert (total, only.value, only.comment) == (1, 0.0, "no")


def test_satisfaction_is_positive_over_all_and_the_rate_is_feedback_over_queries(store):
    add_run(store, "r1")
    book = FeedbackStore(store)
    for number, value in ((0, 1.0), (1, 0.0), (3, 1.0)):
        book.add(verdict(value, response_id=f"resp-q{number}-1", comment="wrong number" if not value else ""))
    book.add(verdict(0.0, source="review", response_id="resp-q4-1"))
    stats = feedback_stats(store)
    assert (stats.feedback, stats.positive, stats.queries, stats.reviews) == (3, 2, 6, 1)
    assert stats.satisfaction == pytest.approx(2 / 3)
    assert stats.satisfaction_interval is not None
    assert stats.satisfaction_interval.low < 2 / 3 < stats.satisfaction_interval.high
    assert stats.feedback_rate == pytest.approx(3 / 6)
    assert {part.category: part.satisfaction for part in stats.categories} == {"property": 1.0, "tax": 0.0}
    # Liked replies scored 1.0 and the disliked ones 0.4: verdicts and scores agree wholly.
    assert stats.agreement.correlation == pytest.approx(1.0)
    assert stats.agreement.pairs == 4
    assert feedback_stats(store, queries=300).feedback_rate == pytest.approx(0.01)


def test_a_store_without_feedback_has_no_satisfaction_rather_than_zero(store):
    stats = feedback_stats(store)
    assert (stats.satisfaction, stats.feedback_rate, stats.agreement.correlation) == (None, None, None)


def test_deleting_a_run_forgets_the_ids_of_its_replies(store):
    add_run(store, "r1")
    store.delete_run("r1")
    kept, _ = FeedbackStore(store).add(verdict(response_id="resp-q0-1"))
    assert not kept.matched


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("up", 1.0),
        ("DOWN", 0.0),
        ("👍", 1.0),
        (True, 1.0),
        (False, 0.0),
        (0.25, 0.25),
        ("0.5", 0.5),
        (1, 1.0),
    ],
)
def test_thumbs_words_and_scores_are_read(given, value):
    assert read_value(given) == value


@pytest.mark.parametrize("given", ["maybe", 7, -0.1, float("nan"), float("inf"), None, [1], ""])
def test_anything_else_is_refused_with_what_is_allowed(given):
    with pytest.raises(UsageError, match=r'give "up", "down", true, false or a number from 0 to 1'):
        read_value(given)


def test_several_verdicts_on_one_reply_count_as_one_unit(store):
    add_run(store, "r1")
    book = FeedbackStore(store)
    for _ in range(20):
        for number, value in ((0, 1.0), (1, 0.0), (3, 1.0), (4, 0.0)):
            book.add(verdict(value, response_id=f"resp-q{number}-1"))
    stats = feedback_stats(store)
    assert (stats.feedback, stats.agreement.pairs) == (80, 4)
    # 80 independent verdicts would give an interval of about ±11 points.
    assert stats.satisfaction_interval.high - stats.satisfaction_interval.low > 0.6
