import pytest

from answerkey.store import open_store
from store.filling import add_run, golden


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as opened:
        for day in range(4):
            add_run(opened, f"run{day}", questions=golden(2), day=day, name=f"nightly {day}")
        opened.set_baseline("production", "run0")
    return path


def left(command, store):
    return [run["id"] for run in command("runs", "--store", store, "--json").document["runs"]]


def test_runs_are_deleted_by_name_once_that_is_meant(command, store):
    asked = command("runs", "rm", "run2", "--store", store)
    assert (asked.code, "add --yes" in asked.err) == (2, True)
    done = command("runs", "rm", "run2", "nightly 3", "run2", "--yes", "--store", store)
    assert (done.code, "deleted: 2 runs" in done.out) == (0, True)
    assert left(command, store) == ["run1", "run0"]
    kept = command("runs", "rm", "run0", "--yes", "--store", store)
    assert (kept.code, "is the baseline" in kept.err) == (2, True)


def test_old_runs_are_pruned_but_not_baselines_and_what_is_tagged(command, store):
    assert "keep" in command("runs", "tag", "run1", "keep", "release-12", "--store", store).out
    listed = command("runs", "--store", store, "--json").document["runs"]
    assert [run["tags"] for run in listed] == [[], [], ["keep", "release-12"], []]
    tried = command("runs", "prune", "--keep", "1", "--dry-run", "--store", store)
    assert (tried.code, tried.out.split()[0]) == (0, "run2")
    done = command("runs", "prune", "--keep", "1", "--yes", "--store", store, "--json")
    assert done.document == {"runs": 1, "production_replies": 0, "feedback": 0}
    assert left(command, store) == ["run3", "run1", "run0"]
    assert "no tag" in command("runs", "tag", "run1", "keep", "release-12", "--remove", "--store", store).out
    nothing = command("runs", "prune", "--store", store)
    assert (nothing.code, "nothing to prune by" in nothing.err) == (2, True)
    assert command("runs", "prune", "--production", "30", "--yes", "--store", store).code == 0
    assert command("runs", "tag", "run1", "a\nb", "--store", store).code == 2
