from pathlib import Path

import msgspec
import pytest

from answerkey.errors import StoreError, UnknownNameError
from answerkey.model.judgement import Feedback, ReplyKey
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Failure, Reply, Timings, ToolCall, Usage
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.model.tally import summarise
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore

QUESTIONS = QuestionSet(
    questions=tuple(Question(id=f"q{n}", question=f"Q{n}?", expected_keywords=(str(n),)) for n in range(3))
)
HOSTILE = "NUL \0, ünïcode, emoji 🏠, \u202e right to left"


def info_for(identity: str, *, at: str = "2026-01-01T00:00:00+00:00", name: str = "demo") -> RunInfo:
    return RunInfo(
        id=identity,
        name=name,
        status="running",
        created_at=at,
        target="demo",
        target_hash="t",
        question_set="g",
        question_set_hash=QUESTIONS.hash,
        weights={},
        scoring_hash="s1",
    )


def graded(position: int, reply: Reply, trial: int = 1) -> Trial:
    question = QUESTIONS.questions[position]
    return Trial(question, trial, position, (reply,), make_grader().grade(question, (reply,)))


def test_what_goes_in_comes_out_in_the_sets_order(store_url: str) -> None:
    replies = [
        Reply(text=HOSTILE, tool_calls=(ToolCall(name="t", arguments={"a": [1, None]}, result={"x": 1.5}),)),
        Reply(failure=Failure("timeout", "slow"), timings=Timings(latency_ms=12.5)),
        Reply(text="2", usage=Usage(cost=0.25)),
    ]
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        trials = [graded(n, reply) for n, reply in enumerate(replies)]
        store.add(info, [trials[2], trials[0]])
        store.add(info, [trials[1]])
    with open_store(store_url) as again:
        results = list(again.results(info))
        assert [result.question for result in results] == list(QUESTIONS)
        assert [result.replies[0] for result in results] == replies
        assert [result.scorecard.total for result in results] == [trial.scorecard.total for trial in trials]


def test_writing_twice_is_harmless(store_url: str) -> None:
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        for _ in range(2):
            store.add(info, [graded(0, Reply(text="0"))])
        assert len(list(store.results(info))) == 1


def test_a_finished_run_keeps_its_summary(store_url: str) -> None:
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        store.add(info, [graded(n, Reply(text=str(n))) for n in range(3)])
        summary = summarise(store.results(info), planned=3)
        done = msgspec.structs.replace(info, status="complete")
        store.finish_run(done, summary)
        assert store.load_run(store.find_run("r1")).summary == summary
        assert store.list_runs() == [(done, summary)]


def test_only_failed_questions_are_read(store_url: str) -> None:
    unscored = Reply(failure=Failure("mapping", "finds nothing"))
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        # 1.0 and 0.6, on average above the pass mark; 0.6; no score.
        store.add(info, [graded(0, Reply(text="0")), graded(0, Reply(text="none"), 2)])
        store.add(info, [graded(1, Reply(text="none")), graded(2, unscored)])
        run = store.load_run(info)
        assert [trial.question.id for trial in run.results.of_questions_below(0.7)] == ["q1", "q2"]
        assert [[trial.scorecard.total for trial in trials] for trials in run.failed_questions()] == [
            [0.6],
            [None],
        ]
        everything = msgspec.structs.replace(run, results=list(run.results))
        assert list(everything.failed_questions()) == list(run.failed_questions())


def test_runs_are_found_by_id_prefix_name_age_and_baseline(store_url: str) -> None:
    with open_store(store_url) as store:
        for identity, day, name in (("aa11", 1, "one"), ("aa22", 2, "two"), ("bb33", 3, "one")):
            store.create_run(info_for(identity, at=f"2026-01-0{day}T00:00:00+00:00", name=name), QUESTIONS)
        store.set_baseline("production", "aa11")
        found = {
            ref: store.find_run(ref).id
            for ref in ("aa11", "bb", "one", "two", "latest", "latest~1", "production")
        }
        assert found == {
            "aa11": "aa11",
            "bb": "bb33",
            "one": "bb33",
            "two": "aa22",
            "latest": "bb33",
            "latest~1": "aa22",
            "production": "aa11",
        }
        for reference, says in (
            ("aa", "ambiguous"),
            ("zz", "no run"),
            ("latest~9", "no run"),
            ("latest~x", "latest~1"),
        ):
            with pytest.raises(UnknownNameError, match=says):
                store.find_run(reference)
        store.delete_run("bb33")
        assert store.count_runs() == 2


def test_bad_places(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is not a database, it is text" * 50)
    (tmp_path / "folder").mkdir()
    for url, says in (
        (str(tmp_path / "text.db"), "not an answerkey store"),
        (str(tmp_path / "folder"), "writable|another --store"),
        ("mysql://x", "unknown kind of database"),
        ("postgresql://nobody@127.0.0.1:1/none", "check the address"),
        ("://", "not a database address"),
    ):
        with pytest.raises(StoreError, match=says) as caught:
            open_store(url)
        assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="no such file"):
        open_store(str(tmp_path / "absent.db"), create=False)
    assert not (tmp_path / "absent.db").exists()


def test_a_password_never_shows(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://user:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(caught.value)


def test_another_targets_replies_never_overwrite_those_that_are_there(store_url: str) -> None:
    with open_store(store_url) as store:
        before = info_for("r1")
        store.create_run(before, QUESTIONS)
        store.add(before, [graded(0, Reply(text="the old chatbot", response_id="a"))])
        after = msgspec.structs.replace(before, target_hash="changed")
        store.update_run(after)
        assert store.reply_keys(after) == set()
        store.drop_scorecards(after, but=set())
        store.add(after, [graded(0, Reply(text="0, says the new one", response_id="b"))])
        ask_hash = QUESTIONS.questions[0].ask_hash
        assert [trial.reply.text for trial in store.results(after)] == ["0, says the new one"]
        assert store.trials_of(before, ask_hash) == [(1, (Reply(text="the old chatbot", response_id="a"),))]
        # A verdict on the old reply is not shown beside the new one.
        book = FeedbackStore(store)
        verdict, _ = book.add(Feedback(id="f", created_at=now(), value=0.0, response_id="a"))
        assert verdict.reply == ReplyKey("r1", ask_hash, 1, "t")
        assert book.of_reply(ReplyKey("r1", ask_hash, 1, "changed")) == []


def test_a_reply_that_is_recorded_stays(store_url: str) -> None:
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        store.add_replies(info, [graded(0, Reply(text="first"))])
        store.add_replies(info, [graded(0, Reply(text="second"))])
        assert store.trials_of(info, QUESTIONS.questions[0].ask_hash) == [(1, (Reply(text="first"),))]


def test_rescoring_with_questions_that_no_set_has_yet(store_url: str) -> None:
    edited = msgspec.structs.replace(QUESTIONS.questions[0], expected_keywords=("zero",))
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        store.add(info, [graded(0, Reply(text="0"))])
        changed = msgspec.structs.replace(info, scoring_hash="s2")
        replies = (Reply(text="0"),)
        card = make_grader().grade(edited, replies)
        store.add(changed, [Trial(edited, 1, 0, replies, card)], with_replies=False)
        assert [trial.scorecard.total for trial in store.results(info)] == [1.0]
        assert [(t.question.expected_keywords, t.scorecard) for t in store.results(changed)] == [
            (("zero",), card)
        ]


def test_a_run_that_was_deleted_meanwhile_is_said_to_be_gone(store_url: str) -> None:
    with open_store(store_url) as store:
        info = info_for("r1")
        store.create_run(info, QUESTIONS)
        store.delete_run("r1")
        with pytest.raises(UnknownNameError, match="run r1 is no longer in this store"):
            store.add(info, [graded(0, Reply(text="0"))])
