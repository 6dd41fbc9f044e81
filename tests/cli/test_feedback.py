import pytest

from answerkey.store import open_store
from store.filling import add_run


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as opened:
        add_run(opened, "r1", name="today")
    return path


def test_add_import_and_stats(command, write_rows, store):
    added = command(
        "feedback", "add", "today", "q0", "up", "--comment", "exactly", "--store", store, "--json"
    )
    assert (added.code, added.document["reply"]["run_id"]) == (0, "r1")
    rows = write_rows(
        "f.jsonl",
        {"response_id": "resp-q1-1", "value": "down", "comment": "wrong"},
        {"response_id": "unknown", "value": 0.2},
    )
    imported = command("feedback", "import", "jsonl", rows, "--store", store, "--json")
    assert imported.document == {"imported": 2, "changed": 0, "matched": 1, "unmatched": 1, "skipped": 0}
    again = command("feedback", "import", "jsonl", rows, "--store", store, "--json")
    assert (again.document["imported"], again.document["changed"]) == (0, 2)
    stats = command("feedback", "stats", "--store", store, "--json").document
    assert (stats["feedback"], stats["positive"], stats["unmatched"]) == (3, 1, 1)
    assert stats["satisfaction"] == pytest.approx(1 / 3)
    assert stats["feedback_rate"] == pytest.approx(2 / 6)
    shown = command("feedback", "stats", "--store", store)
    assert "satisfaction   33.3%" in shown.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "nope", "q0", "up"), "no run 'nope'"),
        (("add", "today", "zz", "up"), "no reply to a question 'zz'"),
        (("add", "today", "q0", "great"), "number from 0 to 1"),
        (("add", "today", "q0", "up", "--trial", "9"), "in trial 9"),
        (("import", "jsonl", "missing.jsonl"), "no such file"),
        (("import", "jsonl", "x.jsonl", "--scale", "5"), "e.g. 1-5"),
        (("import", "excel", "x.jsonl"), "excel"),
        (("stats", "--queries", "0"), "queries"),
    ],
)
def test_mistakes_are_one_line(command, store, arguments, words):
    outcome = command("feedback", *arguments, "--store", store)
    assert outcome.code == 2
    assert words in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_the_review_queue_in_the_terminal(command, store):
    listed = command("review", "today", "--store", store)
    assert "2 pending, 0 done" in listed.out
    queue = command("review", "today", "--store", store, "--json").document
    assert [(item["question_id"], item["score"], item["reason"]) for item in queue["queue"]] == [
        ("q1", 0.4, "borderline"),
        ("q4", 0.4, "borderline"),
    ]
