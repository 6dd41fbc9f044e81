"""Evidence stays: a run goes on only as it was asked, a complete one can only be read, and changes make a new run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import UsageError
from answerkey.store import open_store

ROWS = [
    {"id": "a", "question": "Capital of France?", "expected_keywords": ["Paris"]},
    {"id": "b", "question": "Capital of Peru?", "expected_keywords": ["Lima"]},
]
GOOD = "def answer(question):\n    return {'answer': 'Paris or Lima', 'tools_used': []}\n"
BAD = GOOD.replace("Paris or Lima", "no idea")
SCORER = "def polite(question, reply):\n    return 'please' in reply.text\n"


@pytest.fixture
def asked(command: Any, write_rows: Any, tmp_path: Path) -> dict[str, Any]:
    """A complete run of a chatbot in a file."""
    (tmp_path / "bot.py").write_text(GOOD)
    (tmp_path / "checks.py").write_text(SCORER)
    (tmp_path / "answerkey.toml").write_text('[scorers.polite]\npython = "checks.py:polite"\n')
    golden = write_rows("golden.jsonl", *ROWS)
    document: dict[str, Any] = command(
        "run", golden, "--target", "bot.py:answer", "--name", "it", "--json"
    ).document
    assert document["summary"]["score"] == 1.0
    return document


def change(what: str, folder: Path, write_rows: Any) -> None:
    if "chatbot" in what:
        (folder / "bot.py").write_text(BAD)
    if "golden set" in what:
        write_rows("golden.jsonl", ROWS[0], {**ROWS[1], "question": "Peru's capital?"})
    if "scoring" in what:
        (folder / "checks.py").write_text(SCORER.replace("please", "thanks"))


@pytest.mark.parametrize(
    "what",
    [
        "the chatbot has",
        "the golden set has",
        "the scoring has",
        "the chatbot and the golden set and the scoring have",
    ],
)
def test_a_run_whose_parts_have_changed_is_refused_untouched(
    asked: dict[str, Any], command: Any, write_rows: Any, tmp_path: Path, what: str
) -> None:
    change(what, tmp_path, write_rows)
    done = command("resume", "it")
    assert done.code == 2
    run_id = asked["run"]["id"]
    assert f"run {run_id}: {what} changed; " in done.err
    assert done.err.rstrip().endswith(f"answerkey resume {run_id} --accept-changes")
    assert command("show", run_id, "--json").document == asked


def test_a_complete_run_that_is_resumed_is_shown_and_nothing_is_asked(
    asked: dict[str, Any], command: Any, tmp_path: Path
) -> None:
    store = tmp_path / ".answerkey" / "answerkey.db"
    with open_store(str(store)) as opened:
        before = opened.finished_state(asked["run"]["id"])
        again = command("resume", "it", "--json").document
        note = "nothing is missing: this run is complete, and nothing was asked"
        assert again == {**asked, "warnings": [note]}
        assert opened.finished_state(asked["run"]["id"]) == before


@pytest.mark.parametrize(
    ("what", "kept", "score"), [("chatbot", 0, 0.6), ("golden set", 1, 1.0), ("scoring", 2, 1.0)]
)
def test_accepted_changes_make_a_new_run_from_the_replies_that_still_hold(
    asked: dict[str, Any], command: Any, write_rows: Any, tmp_path: Path, what: str, kept: int, score: float
) -> None:
    change(what, tmp_path, write_rows)
    new = command("resume", "it", "--accept-changes", "--json").document
    old_id = asked["run"]["id"]
    assert new["run"]["id"] != old_id
    assert new["run"]["status"] == "complete"
    assert new["summary"]["score"] == pytest.approx(score)
    assert command("show", old_id, "--json").document == asked
    traces = [{result["reply"]["trace_id"] for result in document["results"]} for document in (asked, new)]
    assert len(traces[0] & traces[1]) == kept
    with open_store(str(tmp_path / ".answerkey" / "answerkey.db")) as opened:
        assert opened.find_run("it").made_from == old_id
        # Whoever refers to a copied reply by its id is understood.
        assert opened.find_run("it").id == new["run"]["id"]


def test_nothing_is_added_to_a_complete_run(asked: dict[str, Any], tmp_path: Path) -> None:
    with open_store(str(tmp_path / ".answerkey" / "answerkey.db")) as opened:
        info = opened.find_run("it")
        results = list(opened.results(info))
        for write in (opened.add, opened.add_replies):
            with pytest.raises(UsageError, match=f"run {info.id} is complete and read-only"):
                write(info, results)


def test_rescoring_leaves_replies_alone_and_old_scores_come_back(
    asked: dict[str, Any], command: Any, tmp_path: Path
) -> None:
    def rows(query: str) -> list[Any]:
        with open_store(str(tmp_path / ".answerkey" / "answerkey.db")) as opened:
            return list(opened.database.stream(query))

    replies = rows("SELECT * FROM replies")
    command("rescore", "it", "--match", "literal")
    assert rows("SELECT * FROM replies") == replies
    assert rows("SELECT COUNT(*) FROM scorecards") == [(4,)]
    command("rescore", "it")
    assert command("show", "it", "--json").document["results"] == asked["results"]


def test_runs_lists_what_each_run_is(asked: dict[str, Any], command: Any, tmp_path: Path) -> None:
    with open_store(str(tmp_path / ".answerkey" / "answerkey.db")) as opened:
        info = opened.find_run("it")
        with opened.database.transaction() as connection:
            connection.run("UPDATE runs SET info = replace(info, '\"complete\"', '\"running\"')")
    (listed,) = command("runs", "--json").document["runs"]
    assert (listed["id"], listed["status"]) == (info.id, "interrupted")
    assert re.search(r"\binterrupted\b", command("runs").out)
    assert command("show", "it", "--json").document["run"]["status"] == "interrupted"


def test_a_stopped_run_whose_chatbot_cannot_be_found_says_so(
    command: Any, chatbot: Callable[..., Any], write_rows: Any
) -> None:
    bot = chatbot(lambda body: {"answer": "Paris", "tools_used": []})
    command("run", write_rows("golden.jsonl", *ROWS), "--target", bot.url, "--name", "it")
    done = command("resume", "it", "--target", "http://127.0.0.1:9/chat")
    assert done.code == 3
    assert done.err.count("\n") == 1


def test_resume_scores_only_what_has_no_score(
    chatbot: Any, command: Any, write_rows: Any, tmp_path: Path
) -> None:
    counting = "def counted(question, reply):\n    open('scored.txt', 'a').write(question.id + ' ')\n    return 1.0\n"
    (tmp_path / "checks.py").write_text(counting)
    (tmp_path / "answerkey.toml").write_text('[scorers.counted]\npython = "checks.py:counted"\n')
    bot = chatbot(lambda body: {"answer": "Paris", "tools_used": [], "cost": 1.0})
    golden = write_rows(
        "six.jsonl",
        *[{"id": f"q{n}", "question": f"Capital {n}?", "expected_keywords": ["Paris"]} for n in range(6)],
    )
    stopped = command("run", golden, "--target", bot.url, "--concurrency", "1", "--budget", "3", "--json")
    run_id = stopped.document["run"]["id"]
    assert (tmp_path / "scored.txt").read_text().split() == ["q0", "q1", "q2"]
    # As after a kill between storing a reply and its scorecard.
    with open_store(None, folder=tmp_path) as store, store.database.transaction() as connection:
        for table in ("scorecards", "scorecard_details"):
            connection.run(f"DELETE FROM {table} WHERE position = 1")
    (tmp_path / "scored.txt").unlink()
    whole = command("resume", run_id, "--budget", "100", "--json").document
    assert (tmp_path / "scored.txt").read_text().split() == ["q1", "q3", "q4", "q5"]
    assert (whole["summary"]["trials"], whole["summary"]["score"]) == (6, 1.0)
    assert whole["run"]["status"] == "complete"
