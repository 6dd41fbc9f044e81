import pytest

from answerkey.store import open_store
from answerkey.store.sql import RunFilter, RunTable

from .filling import add_run


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def test_a_running_run_tells_how_far_it_is(store):
    info = add_run(store, "r1", finish=False, asked=3)
    progress = RunTable(store).progress(info)
    assert (progress.status, progress.done, progress.planned, progress.errors) == ("running", 3, 6, 1)


def test_runs_are_paged_and_searched_and_baselines_are_marked(store):
    for number in range(5):
        add_run(store, f"r{number}", day=number, name=f"nightly {number}")
    store.set_baseline("production", "r1")
    rows, total = RunTable(store).page(RunFilter(), limit=2, offset=2)
    assert ([row.info.id for row in rows], total) == (["r2", "r1"], 5)
    assert rows[1].baselines == ("production",)
    assert [row.info.id for row in RunTable(store).page(RunFilter(text="NIGHTLY 3"))[0]] == ["r3"]
    assert RunTable(store).question_sets() == [("golden", 5)]
