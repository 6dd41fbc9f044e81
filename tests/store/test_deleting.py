from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import Feedback, ProductionReply
from answerkey.model.reply import Reply
from answerkey.runs.production import production_series
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.maintenance import check_store, delete_production, delete_reply, delete_runs, old_runs
from answerkey.store.production import ProductionFilter, ProductionReplies

from .filling import add_run, golden


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def verdict(**about):
    return Feedback(id=new_id(), created_at=about.pop("created_at", now()), value=1.0, **about)


def count(store, table):
    with store.database.reading() as connection:
        return connection.value(f"SELECT COUNT(*) FROM {table}")


def ids(infos):
    return [info.id for info in infos]


def test_a_deleted_run_leaves_nothing_behind_and_others_alone(store):
    add_run(store, "small", questions=golden(3))
    add_run(store, "large", questions=golden(6), day=1)
    before = list(store.results(store.find_run("small")))
    FeedbackStore(store).add(verdict(response_id="resp-q4-1"))
    gone = delete_runs(store, [store.find_run("large")])
    assert (gone.runs, gone.feedback) == (1, 1)
    assert list(store.results(store.find_run("small"))) == before
    assert (count(store, "questions"), count(store, "replies"), count(store, "set_items")) == (3, 3, 3)
    delete_runs(store, [store.find_run("small")])
    for table in ("runs", "questions", "set_items", "replies", "reply_ids", "scorecards", "feedback"):
        assert count(store, table) == 0, table
    # The same set again is written again.
    add_run(store, "again", questions=golden(3))
    assert store.count_questions(store.find_run("again").question_set_hash) == 3
    assert check_store(store).sound


def test_baselines_and_what_is_under_way_stay(store):
    add_run(store, "one")
    store.set_baseline("production", "one")
    with pytest.raises(UsageError, match="is the baseline 'production'; first: answerkey baseline remove"):
        delete_runs(store, [store.find_run("one")])
    running = msgspec.structs.replace(store.find_run("one"), id="two", status="running")
    with pytest.raises(UsageError, match="is running"):
        delete_runs(store, [running])


def test_what_is_old(store):
    for day, name in enumerate(("oldest", "kept", "base", "old", "new")):
        add_run(store, name, questions=golden(1), day=day)
    store.set_baseline("production", "base")
    kept = store.find_run("kept")
    store.update_run(msgspec.structs.replace(kept, tags=("keep",)))
    assert ids(old_runs(store, older_than_days=None, keep=1)) == ["old", "oldest"]
    assert ids(old_runs(store, older_than_days=None, keep=9)) == []
    age = datetime.now(UTC) - datetime.fromisoformat(store.find_run("old").created_at)
    between = (age + timedelta(hours=12)).total_seconds() / 86400
    assert ids(old_runs(store, older_than_days=between, keep=None)) == ["oldest"]
    with pytest.raises(UsageError, match="nothing to prune by"):
        old_runs(store, older_than_days=None, keep=None)
    with pytest.raises(UsageError, match="too long ago"):
        old_runs(store, older_than_days=1e12, keep=None)


def test_production_replies_go_by_age_with_what_was_said_of_them(store):
    ancient = "2020-01-01T00:00:00.000+00:00"
    replies = [
        ProductionReply(id=name, created_at=said, question="Q?", reply=Reply(text="A"))
        for name, said in (("old", ancient), ("new", now()))
    ]
    ProductionReplies(store).add(replies)
    add_run(store, "run", questions=golden(1))
    book = FeedbackStore(store)
    for name in ("old", "new"):
        book.add(verdict(response_id=name))
    book.add(verdict(response_id="never came", created_at=ancient))
    book.add(verdict(response_id="resp-q0-1", created_at=ancient))
    gone = delete_production(store, older_than_days=365)
    assert (gone.production_replies, gone.feedback) == (1, 2)
    assert {one.response_id for one in book.page()[0]} == {"new", "resp-q0-1"}
    assert delete_reply(store, "new").feedback == 1
    assert production_series(store, ProductionFilter()).total.replies == 0
    with pytest.raises(UnknownNameError, match="no production reply 'new'"):
        delete_reply(store, "new")
