"""The kept copy of a large run's scores is what the scorecards say, or is not used."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from sqlalchemy import delete, func, select, update

from answerkey.comparison.columns import Columns, columns_from_store, read_scorecards
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply, Timings
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Score, Scorecard
from answerkey.model.tally import summarise
from answerkey.model.trial import Trial
from answerkey.store import open_store, schema
from answerkey.store.score_columns import kept_columns
from answerkey.store.sql import SqlStore

COUNT = 2100


@pytest.fixture(params=[1, 2])
def finished(request: pytest.FixtureRequest, store_url: str) -> Iterator[tuple[SqlStore, RunInfo]]:
    """A store with a run large enough to keep, once and twice asked."""
    questions = QuestionSet(
        questions=tuple(
            Question(id=f"frage-{n}-ä", question=f"Q{n}?", category=f"c{n % 3}", metadata={"template": n % 7})
            for n in range(COUNT // request.param)
        )
    )
    info = RunInfo(
        id="kept",
        name="kept",
        status="running",
        created_at="2026-01-01T00:00:00+00:00",
        target="made",
        target_hash="t",
        question_set="g",
        question_set_hash=questions.hash,
        repeat=request.param,
        weights={},
        scoring_hash="s1",
    )
    with open_store(store_url) as store:
        store.create_run(info, questions)
        store.add(
            info, [graded(q, n, t) for n, q in enumerate(questions) for t in range(1, request.param + 1)]
        )
        ended = msgspec.structs.replace(info, status="complete")
        store.finish_run(ended, summarise(store.results(ended), planned=COUNT))
        yield store, ended


def graded(question: Question, position: int, trial: int, shift: float = 0.0) -> Trial:
    value = (position * 7 + trial) % 10 / 10 + shift
    metrics = {"f1": value} if position % 5 else {}
    card = Scorecard(
        components={"tool_usage": Score("tool_usage", None if position == 3 else value, "because", 0.4)},
        total=None if position == 11 else value,
        grade="A",
        passed=True,
        metrics=metrics,
    )
    reply = Reply(text="yes", timings=Timings(latency_ms=float(position)))
    return Trial(question, trial, position, (reply,), card)


def alike(first: Columns, second: Columns) -> bool:
    def arrays(columns: Columns) -> Iterator[np.ndarray]:  # type: ignore[type-arg]
        yield from (columns.hashes, columns.scores, columns.latencies, columns.costs, columns.categories)
        yield from columns.components.values()
        yield from columns.metrics.values()
        yield from (
            a for a in (columns.trial_scores, columns.trial_starts, columns.clusters) if a is not None
        )

    pairs = zip(arrays(first), arrays(second), strict=True)
    return (
        all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
        and list(first.ids) == list(second.ids)
        and first.category_names == second.category_names
        and first.cluster_names == second.cluster_names
        and (list(first.components), list(first.metrics)) == (list(second.components), list(second.metrics))
        and (first.errors, first.replies) == (second.errors, second.replies)
    )


def belonging(store: SqlStore, info: RunInfo) -> dict[str, str]:
    questions = store.questions(info.question_set_hash)
    return {q.content_hash: f"template={q.metadata['template']}" for q in questions}


def test_what_was_kept_is_what_the_scorecards_say(finished: tuple[SqlStore, RunInfo]) -> None:
    store, info = finished
    assert kept_columns(store, info) is not None
    [found] = columns_from_store(store, [info])
    assert alike(found, read_scorecards(store, info, belonging(store, info)))
    assert found.clusters is not None


def test_a_further_scorecard_makes_it_void_until_the_run_ends_again(
    finished: tuple[SqlStore, RunInfo],
) -> None:
    store, info = finished
    question = next(store.questions(info.question_set_hash))
    store.add(info, [graded(question, 0, 1, shift=0.05)], with_replies=False)
    assert kept_columns(store, info) is None
    [found] = columns_from_store(store, [info])
    assert found.scores[0] == pytest.approx(np.mean([0.15, *([0.2] if info.repeat == 2 else [])]))
    store.finish_run(info, summarise(store.results(info), planned=COUNT))
    kept = kept_columns(store, info)
    assert kept is not None
    assert kept.scores[0] == found.scores[0]


def test_another_scoring_has_columns_of_its_own(finished: tuple[SqlStore, RunInfo]) -> None:
    store, info = finished
    assert kept_columns(store, msgspec.structs.replace(info, scoring_hash="s2")) is None


def test_rescoring_and_forgetting_a_run_forget_it(finished: tuple[SqlStore, RunInfo]) -> None:
    store, info = finished
    store.clear_scorecards(info)
    assert kept_columns(store, info) is None
    store.finish_run(info, summarise([], planned=COUNT))
    store.delete_run(info.id)
    with store.transaction() as connection:
        query = select(func.count()).select_from(schema.score_columns)
        assert connection.execute(query).scalar_one() == 0


def test_a_copy_that_cannot_be_right_is_not_used(finished: tuple[SqlStore, RunInfo]) -> None:
    store, info = finished
    cards = schema.scorecards.c
    with store.transaction() as connection:
        connection.execute(delete(schema.scorecards).where(cards.position == 5))
    assert kept_columns(store, info) is None
    with store.transaction() as connection:
        connection.execute(
            update(schema.score_columns).values(trials=COUNT - info.repeat, payload=b"something else")
        )
    assert kept_columns(store, info) is None
    assert len(columns_from_store(store, [info])[0].ids) == COUNT // info.repeat - 1
