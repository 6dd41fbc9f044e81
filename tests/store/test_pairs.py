import pytest

from answerkey.errors import UsageError
from answerkey.store import open_store
from answerkey.store.questions import PairFilter, PairTable

from .filling import add_run, golden, good_reply


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        ("all", ["q0", "q1", "q2", "q3", "q4", "q5"]),
        ("improvements", ["q1", "q2", "q4", "q5"]),
        ("regressions", []),
        ("different", ["q1", "q2", "q4", "q5"]),
    ],
)
@pytest.mark.parametrize("repeat", [1, 2])
def test_what_changed_between_two_runs(store, show, expected, repeat):
    base = add_run(store, "old")
    candidate = add_run(store, "new", good_reply, day=1, repeat=repeat)
    rows, total = PairTable(store, base, [candidate]).page(PairFilter(show=show, sort="position"))
    assert ([row.id for row in rows], total) == (expected, len(expected))


def test_losses_come_first_with_the_replies_of_both(store):
    base = add_run(store, "old", good_reply)
    candidate = add_run(store, "new", day=1)
    rows, _ = PairTable(store, base, [candidate]).page(PairFilter(), limit=2)
    assert [(row.id, row.scores) for row in rows] == [("q2", (1.0, 0.0)), ("q5", (1.0, 0.0))]
    assert rows[0].replies == ("It is fact2 in Montrose.", None)
    assert rows[0].question == "What is fact 2 of the documents file?"


def test_one_category_only(store):
    base, candidate = add_run(store, "old", good_reply), add_run(store, "new", day=1)
    rows, total = PairTable(store, base, [candidate]).page(PairFilter(category="tax"), limit=1)
    assert ([row.id for row in rows], total) == (["q1"], 2)
    assert [card.total for card in rows[0].cards] == [1.0, 0.4]


def test_a_page_beyond_the_last_still_counts_all(store):
    base, candidate = add_run(store, "old", good_reply), add_run(store, "new", day=1)
    assert PairTable(store, base, [candidate]).page(PairFilter(), limit=5, offset=50) == ([], 6)


def test_runs_of_different_sets_are_paired_by_id(store):
    base = add_run(store, "old", questions=golden(6))
    candidate = add_run(store, "new", questions=golden(4), day=1)
    pairs = PairTable(store, base, [candidate])
    assert pairs.page(PairFilter())[1] == 4


def test_three_runs_side_by_side_and_words_in_any_reply(store):
    infos = [add_run(store, name, day=day) for day, name in enumerate(("a", "b"))]
    infos.append(add_run(store, "c", good_reply, day=2))
    rows, total = PairTable(store, infos[0], infos[1:]).page(PairFilter(text="FACT1 in", sort="-change"))
    assert (total, rows[0].id, rows[0].scores) == (1, "q1", (0.4, 0.4, 1.0))


@pytest.mark.parametrize("repeat", [1, 2])
def test_measures_of_both_runs_sort_and_filter(store, repeat):
    base = add_run(store, "old", good_reply)
    candidate = add_run(store, "new", day=1, repeat=repeat)
    pairs = PairTable(store, base, [candidate])

    def ids(**wanted):
        rows, total = pairs.page(PairFilter(**wanted))
        assert total == len(rows)
        assert [row.id for row in pairs.every(PairFilter(**wanted))] == [row.id for row in rows]
        return [row.id for row in rows]

    rows, _ = pairs.page(PairFilter(sort="position"))
    changes = {
        row.id: row.measures[1]["response_quality"] - row.measures[0]["response_quality"] for row in rows
    }
    assert ids(sort="change.response_quality") == sorted(changes, key=lambda one: (changes[one], one))
    worse = [one for one, change in changes.items() if change < 0]
    assert worse
    assert ids(sort="position", range=("change.response_quality:..-0.01",)) == worse
    assert ids(sort="position", range=("candidate:1..",)) == [row.id for row in rows if row.scores[1] == 1.0]
    assert ids(sort="-base.response_quality", range=("base.response_quality:2..",)) == []


@pytest.mark.parametrize("name", ["nonsense", "change.nonsense", "other.response_quality"])
def test_unknown_measures_are_refused(store, name):
    base, candidate = add_run(store, "old"), add_run(store, "new", day=1)
    with pytest.raises(UsageError, match="to sort or filter by"):
        PairTable(store, base, [candidate]).page(PairFilter(sort=name))
