from pathlib import Path

import msgspec
import numpy as np
import pytest

from answerkey.comparison import compare_runs
from answerkey.comparison.columns import Columns, by_name, columns_from_run, columns_from_store
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.store import open_store
from answerkey.store.sql import SqlStore
from comparison.made import make_run


def keep(store: SqlStore, run: Run) -> None:
    """Store a run as an evaluation does."""
    results = list(run.results)
    questions = QuestionSet(questions=tuple({r.question.id: r.question for r in results}.values()))
    places = {question.id: place for place, question in enumerate(questions)}
    info = msgspec.structs.replace(run.info, status="running")
    store.create_run(info, questions)
    store.add(
        info,
        [Trial(r.question, r.number, places[r.question.id], r.replies, r.scorecard) for r in results],
    )
    store.finish_run(run.info, run.summary)


def same(first: Columns, second: Columns) -> bool:
    return (
        list(first.ids) == list(second.ids)
        and first.hashes == second.hashes
        and np.array_equal(first.scores, second.scores, equal_nan=True)
        and np.array_equal(first.latencies, second.latencies, equal_nan=True)
        and np.array_equal(first.costs, second.costs, equal_nan=True)
        and first.components.keys() == second.components.keys()
        and all(np.array_equal(first.components[c], second.components[c]) for c in first.components)
        and all(np.array_equal(first.metrics[m], second.metrics[m]) for m in first.metrics)
        and [first.category_names[i] for i in first.categories]
        == [second.category_names[i] for i in second.categories]
        and (first.errors, first.replies) == (second.errors, second.replies)
    )


@pytest.mark.parametrize("repeat", [1, 3])
def test_a_stored_run_has_the_columns_of_the_run_at_hand(tmp_path: Path, repeat: int) -> None:
    scores = {f"q{i:04}": [round((i * 7 + t) % 11 / 10, 9) for t in range(repeat)] for i in range(2345)}
    run = make_run(
        scores,
        category={name: f"c{i % 5}" for i, name in enumerate(scores)},
        metadata={name: {"template": f"t{i % 100}"} for i, name in enumerate(scores) if i % 3},
        errors={"q0007": "timeout"},
        cost=0.25,
    )
    with open_store(str(tmp_path / "runs.db")) as store:
        run = Run(info=_with_set(run), summary=run.summary, results=run.results)
        keep(store, run)
        [stored] = columns_from_store(store, [run.info])
    at_hand = columns_from_run(run)
    assert same(stored, at_hand)
    assert stored.groups is not None
    assert stored.groups == at_hand.groups
    assert dict(stored.trials()) == dict(at_hand.trials()) == scores


def _with_set(run: Run) -> RunInfo:
    questions = QuestionSet(questions=tuple({r.question.id: r.question for r in run.results}.values()))
    return msgspec.structs.replace(run.info, question_set_hash=questions.hash)


def test_values_that_only_some_replies_have() -> None:
    assert by_name([{"a": 1.0}, {"a": 2.0, "b": 3.0}, {}]) == {"a": [1.0, 2.0, None], "b": [None, 3.0, None]}
    assert by_name([{"a": 1.0}, {"a": None}]) == {"a": [1.0, None]}


def test_the_order_of_questions_does_not_matter() -> None:
    scores = {f"q{i}": round(i % 7 / 10 + 0.1, 9) for i in range(300)}
    other = {name: round(score + 0.1, 9) for name, score in reversed(scores.items())}
    del other["q5"]
    found = compare_runs(
        columns_from_run(make_run(scores, name="a")), columns_from_run(make_run(other, name="b"))
    )
    assert found.paired == 299
    assert found.difference.mean == pytest.approx(0.1)
    assert found.difference.deviation == pytest.approx(0.0, abs=1e-12)
    assert [item.id for item in found.unpaired] == ["q5"]


def test_trials_that_could_not_be_scored_leave_the_mean() -> None:
    run = make_run({"a": [0.5, 1.0], "b": [0.2, 0.4]})
    results = list(run.results)
    unscored = msgspec.structs.replace(results[1].scorecard, total=None)
    results[1] = msgspec.structs.replace(results[1], scorecard=unscored)
    columns = columns_from_run(Run(info=run.info, summary=run.summary, results=results))
    assert columns.scores.tolist() == pytest.approx([0.5, 0.3])
    assert dict(columns.trials())["a"] == [0.5]
