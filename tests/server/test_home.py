"""The home page: what needs attention in every experiment, as the command line decides it."""

import msgspec
import pytest

from answerkey.model.question import QuestionSet
from answerkey.model.reply import Reply
from answerkey.store import open_store
from store.filling import add_run, golden, good_reply, uneven_reply

from .serving import serving

GATES = ("score >= 0.9", "error_rate <= 0.5")


def named(name, number=12):
    return QuestionSet(name=name, questions=golden(number).questions)


def set_gates(store, info, *gates, baseline=None):
    options = msgspec.structs.replace(info.options, gates=gates, baseline=baseline)
    store.update_run(msgspec.structs.replace(info, options=options))


def interrupt(store, info, **replace):
    store.update_run(msgspec.structs.replace(info, status="interrupted", **replace))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Fifty experiments; every third newest run fails a gate, every fifth got worse."""
    path = str(tmp_path_factory.mktemp("home") / "s.db")
    with open_store(path) as store:
        for number in range(50):
            questions = named(f"set{number}")
            add_run(store, f"base{number}", good_reply, questions=questions, day=number)
            bad = number % 3 == 0 or number % 5 == 0
            info = add_run(
                store,
                f"new{number}",
                uneven_reply if bad else good_reply,
                questions=questions,
                day=number + 1,
                name=f"release {number}",
            )
            if number % 3 == 0:
                set_gates(store, info, *GATES)
            elif number % 5 == 0:
                set_gates(store, info, baseline=f"base{number}")
    return path


def test_what_needs_attention_equals_what_the_command_line_says_of_every_experiment(path, command):
    with serving(lambda: open_store(path)) as client:
        home = client.get("/api/runs").json
    assert (len(home["experiments"]), home["not_compared"]) == (50, [])
    failing, worse = set(), set()
    for number in range(50):
        shown = command("show", f"new{number}", "--store", path, "--json").document
        if any(not gate["passed"] for gate in shown["gates"]):
            failing.add(f"release {number}")
        compared = command("compare", f"base{number}", f"new{number}", "--store", path, "--json").document
        if compared["verdict"] == "worse":
            worse.add(f"release {number}")
    assert len(failing) > 20

    def names(kind):
        return {
            need["words"].partition("“")[2].partition("”")[0]
            for need in home["needs"]
            if need["kind"] == kind
        }

    assert names("gate") == failing
    assert names("regression") == worse


def test_a_failed_gate_is_shown_with_its_value_on_home_and_on_the_run_page(path):
    with serving(lambda: open_store(path)) as client:
        words = next(
            need["words"] for need in client.get("/api/runs").json["needs"] if need["kind"] == "gate"
        )
        page = client.get("/runs/new0").text
        run = client.get("/api/runs/new0").json
    assert "score >= 0.9 (it is 0.466)" in words
    assert "Gates: 1 of 2 failed" in page
    assert page.index("decision-title") < page.index('aria-label="Result"') < page.index('id="questions"')
    assert [gate["passed"] for gate in run["decision"]["gates"]] == [False, True]
    [previous] = run["decision"]["against"]
    assert (previous["id"], previous["words"], previous["verdict"]) == ("base0", "the previous run", "worse")


def test_a_run_with_a_baseline_shows_its_gate_and_both_verdicts(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "best", good_reply, questions=golden(30))
        add_run(store, "second", questions=golden(30), day=1)
        set_gates(store, add_run(store, "third", questions=golden(30), day=2), baseline="best")
        store.set_baseline("production", "best")
    with serving(lambda: open_store(path)) as client:
        decision = client.get("/api/runs/third").json["decision"]
    assert [(gate["gate"], gate["passed"]) for gate in decision["gates"]] == [("no regression", False)]
    assert [(one["words"], one["verdict"]) for one in decision["against"]] == [
        ("the baseline production", "worse"),
        ("the previous run", "no clear difference"),
    ]


def test_gates_that_cannot_be_evaluated_need_attention(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        set_gates(store, add_run(store, "r1"), "score >= 0.9", baseline="deleted")
    with serving(lambda: open_store(path)) as client:
        [need] = [need for need in client.get("/api/runs").json["needs"] if need["kind"] == "gate"]
        page = client.get("/runs/r1").text
    assert "cannot be evaluated any more: no run 'deleted'" in need["words"]
    assert "cannot be evaluated any more" in page


def test_an_interrupted_run_is_not_graded_and_needs_attention(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        alone = add_run(store, "alone", good_reply, questions=named("alone", 106), asked=1)
        interrupt(store, alone)
        add_run(store, "nightly1", questions=named("nightly"), day=1)
        later = add_run(store, "nightly2", good_reply, questions=named("nightly"), day=2, asked=1)
        interrupt(store, later)
    with serving(lambda: open_store(path)) as client:
        home = client.get("/api/runs").json
        text = client.get("/").text
    nightly, once = home["experiments"]
    assert (once["last"]["id"], once["figures"]) == ("alone", None)
    assert (nightly["last"]["id"], nightly["unfinished"]["id"]) == ("nightly1", "nightly2")
    words = [need["words"] for need in home["needs"] if need["kind"] == "interrupted"]
    assert words == [
        "The newest run of nightly was interrupted after 1 of 12 replies; continue with: answerkey resume nightly2",
        "The newest run of alone was interrupted after 1 of 106 replies; continue with: answerkey resume alone",
    ]
    assert "no run has ended" in text
    assert "first run" not in text


def test_a_run_is_compared_with_the_last_one_that_ended_on_its_page_as_on_home(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "night1", good_reply, questions=named("nightly"), day=1)
        interrupt(store, add_run(store, "night2", good_reply, questions=named("nightly"), day=2, asked=2))
        add_run(store, "night3", uneven_reply, questions=named("nightly"), day=3)
    with serving(lambda: open_store(path)) as client:
        [nightly] = client.get("/api/runs").json["experiments"]
        run = client.get("/api/runs/night3").json["decision"]
        home = " ".join(client.get("/").text.split())
    assert nightly["against"]["id"] == "night1"
    assert run["against"] == [nightly["against"]]
    assert "2 runs of 3" in home, "the trend has no point for the interrupted one"


def test_replies_of_every_experiment_wait_for_a_review(tmp_path):
    path = str(tmp_path / "s.db")

    def half(question, trial):
        return Reply(text=f"It is fact{question.id.removeprefix('q')}.")

    with open_store(path) as store:
        for number in range(8):
            add_run(store, f"run{number}", half, questions=named(f"set{number}", 2), day=number)
    with serving(lambda: open_store(path)) as client:
        waiting = [need for need in client.get("/api/runs").json["needs"] if need["kind"] == "review"]
        assert len(waiting) == 8
        verdict = {"run": "run3", "question": "q0", "verdict": "trust"}
        assert client.post("/api/review", verdict).status == 201
        again = [need["words"] for need in client.get("/api/runs").json["needs"] if need["kind"] == "review"]
    assert "1 reply of “run run3” waits for a review" in again


def test_a_large_run_is_named_as_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr("answerkey.server.runs.LARGE", 5)
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "r1", name="big one")
    with serving(lambda: open_store(path)) as client:
        assert client.get("/api/runs").json["not_compared"] == ["big one"]
        assert "except those too large to be compared here" in client.get("/").text
