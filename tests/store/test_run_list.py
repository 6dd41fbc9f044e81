import pytest

from answerkey.store import open_store
from answerkey.store.run_list import RunFilter, RunList

from .filling import add_run


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def test_a_running_run_tells_how_far_it_is(store):
    info = add_run(store, "r1", finish=False, asked=3)
    progress = RunList(store).progress(info)
    assert (progress.status, progress.done, progress.planned, progress.errors) == ("running", 3, 6, 1)


def test_runs_are_paged_and_searched_and_baselines_are_marked(store):
    for number in range(5):
        add_run(store, f"r{number}", day=number, name=f"nightly {number}")
    store.set_baseline("production", "r1")
    rows, total = RunList(store).page(limit=2, offset=2)
    assert ([row.info.id for row in rows], total) == (["r2", "r1"], 5)
    assert rows[1].baselines == ("production",)
    assert [row.info.id for row in RunList(store).page(RunFilter(text="NIGHTLY 3"))[0]] == ["r3"]
    assert RunList(store).question_sets() == [("golden", 5)]
