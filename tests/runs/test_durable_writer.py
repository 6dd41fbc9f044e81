"""DurableWriter: a row that no store can take is set aside alone, and a run that was taken over is written no more."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from answerkey.errors import RunOwnedError, StoreError
from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.recorder import DurableWriter, StoreRetry, open_writer, replay_journal
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from answerkey.store.database import claim_run
from answerkey.store.sql import SqlStore

GRADER = make_grader(Scoring())
QUESTIONS = QuestionSet(questions=tuple(Question(id=f"q{n}", question=f"Q{n}?") for n in range(9)))
INFO = RunInfo(
    id="r1",
    name="it",
    status="running",
    created_at="2026-11-01",
    target="bot",
    target_hash="t",
    question_set=QUESTIONS.name,
    question_set_hash=QUESTIONS.hash,
    weights=Scoring().weights,
    scoring_hash=GRADER.hash,
)


def trials(*bad: int) -> list[Trial]:
    made = []
    for position, question in enumerate(QUESTIONS):
        replies = (Reply(text="\ud800" if position in bad else f"reply {position}"),)
        made.append(Trial(question, 1, position, replies, GRADER.grade(question, (Reply(text="yes"),))))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(str(tmp_path / "runs.db")) as opened:
        yield opened


@pytest.fixture
def keeper(store: SqlStore) -> Iterator[DurableWriter]:
    begin = partial(store.create_run, INFO, QUESTIONS)
    with (
        claim_run(store.database, "r1") as lease,
        open_writer(store, INFO, lease, StoreRetry(0.0), begin) as kept,
    ):
        yield kept


def kept(store: SqlStore) -> list[str]:
    return [trial.question.id for trial in store.results(INFO)]


def test_bad_rows_are_set_aside_singly(keeper: DurableWriter, store: SqlStore, tmp_path: Path) -> None:
    for trial in trials(2, 7):
        keeper.append(trial)
    keeper.add(INFO, trials(2, 7))
    assert kept(store) == ["q0", "q1", "q3", "q4", "q5", "q6", "q8"]
    assert set(keeper.set_aside) == {(2, 1), (7, 1)}
    rows = [json.loads(line) for line in (tmp_path / "runs.db.r1.set-aside.jsonl").read_text().splitlines()]
    assert [(row["id"], row["trial"]) for row in rows] == [("q2", 1), ("q7", 1)]
    assert rows[0]["replies"][0]["text"] == "\ud800"
    assert "surrogates not allowed" in rows[0]["reason"]
    (warning,) = keeper.warnings
    assert warning.startswith("2 replies could not be stored, for example: ")
    keeper.close()
    assert not (tmp_path / "runs.db.r1.journal").exists()


def test_a_store_that_takes_nothing_is_not_a_bad_row(keeper: DurableWriter, store: SqlStore) -> None:
    with store.database.transaction() as connection:
        connection.run("DROP TABLE reply_ids")
        connection.run("DROP TABLE runs")
    with pytest.raises(StoreError, match="no such table"):
        keeper.add(INFO, trials())
    assert keeper.set_aside == {}


def test_who_was_taken_over_writes_no_more(keeper: DurableWriter, store: SqlStore) -> None:
    keeper.add(INFO, trials()[:3])
    keeper._lease.lost.set()
    with pytest.raises(RunOwnedError, match="run r1 was taken over by another process"):
        keeper.add(INFO, trials()[3:])
    assert kept(store) == ["q0", "q1", "q2"]


def test_what_arrived_as_the_run_was_stopped_reaches_the_store(
    keeper: DurableWriter, store: SqlStore, tmp_path: Path
) -> None:
    for trial in trials():
        keeper.append(trial)
    keeper.add(INFO, trials()[:4])
    keeper.close()
    assert len(store.reply_keys(INFO)) == 9
    assert not (tmp_path / "runs.db.r1.journal").exists()


def test_what_only_the_journal_has_is_replayed_once(
    keeper: DurableWriter, store: SqlStore, tmp_path: Path
) -> None:
    for trial in trials():
        keeper.append(trial)
    keeper.add(INFO, trials()[:4])
    # The run is another process's by now, so this one may not write any more.
    keeper._lease.lost.set()
    keeper.close()
    journal = tmp_path / "runs.db.r1.journal"
    assert journal.exists()
    for _ in range(2):
        replay_journal(store, INFO)
        assert len(store.reply_keys(INFO)) == 9
        assert not journal.exists()
    ((_, replies),) = store.trials_of(INFO, QUESTIONS.questions[8].ask_hash)
    assert replies == trials()[8].replies
