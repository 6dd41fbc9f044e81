"""Runs started on the dashboard: real child processes, configured targets only, one after another."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from answerkey.config import load_settings
from answerkey.server.intake import JobForm, JobQueue
from answerkey.store import open_store

from .serving import serving

# It answers once a file named `go` is there, so that a test decides how far a run is.
BOT = """
import pathlib, time
here = pathlib.Path(__file__).parent
def bot(question):
    if question != "First?":
        while not (here / "go").exists():
            time.sleep(0.01)
    return {"answer": "It is blue."}
"""


@pytest.fixture
def folder(tmp_path):
    rows = [
        {"id": f"q{n}", "question": text, "expected_keywords": ["blue"]}
        for n, text in enumerate(("First?", "Then?", "Last?"))
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "mine"\n[run]\nconcurrency = 1\n'
        '[targets.mine]\npython = "bot.py:bot"\n'
    )
    return tmp_path


@pytest.fixture
def client(folder, monkeypatch):
    monkeypatch.chdir(folder)
    path = str(folder / "s.db")
    with open_store(path):
        pass
    with serving(lambda: open_store(path), load_settings(), store_url=path, allow_run=True) as running:
        yield running


def post(client, **fields):
    kind = "application/x-www-form-urlencoded"
    return client.post("/jobs", urlencode(fields), content_type=kind, origin=client.url)


def until(condition):
    """Wait for what a child process does."""
    while not (found := condition()):
        time.sleep(0.05)
    return found


def newest(client):
    rows = client.get("/api/runs").json["rows"]
    return rows[0]["info"] if rows else None


def progress(client):
    run = newest(client)
    return client.get(f"/api/runs/{run['id']}/progress").json if run else {"done": 0}


def test_a_run_is_started_cancelled_and_resumed(client, folder):
    assert post(client, action="run", target="mine", name="from the page", repeat="1").status == 303
    until(lambda: progress(client)["done"] == 1)
    page = client.get("/jobs").text
    assert "from the page" in page
    job = page.partition('name="job" value="')[2].partition('"')[0]
    # Where the rows appear, it can be cancelled too.
    shown = client.get(f"/runs/{newest(client)['id']}").text
    assert f'name="job" value="{job}"' in shown
    assert f"job-{job}" not in shown, "a tag for the server only"
    assert "job-" not in client.get("/").text
    assert post(client, action="cancel", job=job).status == 303
    run = until(lambda: (one := newest(client)) and one["status"] == "interrupted" and one)
    assert progress(client)["done"] == 1, "what was answered is kept"
    page = until(lambda: "data-refresh" not in (text := client.get("/jobs").text) and text)
    assert 'value="resume"' in page
    shown = client.get(f"/runs/{run['id']}").text
    assert 'name="job"' not in shown
    assert 'value="resume"' in shown
    assert "This run was stopped before its end" in shown
    (folder / "go").touch()
    assert post(client, action="resume", run=run["id"]).status == 303
    until(lambda: newest(client)["status"] == "complete")
    assert newest(client)["id"] == run["id"]
    assert client.get(f"/api/runs/{run['id']}").json["summary"]["score"] > 0
    # One question once more, three times.
    assert post(client, action="again", run=run["id"], question="q1", repeat="3").status == 303
    again = until(lambda: (one := newest(client))["id"] != run["id"] and one["status"] == "complete" and one)
    shown = client.get(f"/api/runs/{again['id']}").json
    assert [row["id"] for row in shown["rows"]] == ["q1"]
    assert shown["rows"][0]["trials"] == 3


def test_only_what_is_configured_is_started(client):
    for target in ("http://evil.example", "cmd:rm -rf /", "bot.py:bot", "--help", ""):
        answer = post(client, action="run", target=target)
        assert (answer.status, newest(client)) == (400, None), target
        assert "is not configured" in answer.text
    assert post(client, action="again", run="nope", question="q1").status == 404
    assert post(client, action="cancel", job="nope").status == 404


def test_it_is_off_unless_asked_for(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with serving(lambda: open_store(str(folder / "s.db")), load_settings()) as client:
        assert post(client, action="run", target="mine").status == 403
        assert "answerkey serve --allow-run" in client.get("/jobs").text
        assert ">Start<" not in client.get("/").text


def test_what_fails_says_why(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "golden.jsonl").write_text("not json\n")
    with open_store(str(folder / "s.db")) as store:
        queue = JobQueue(load_settings(), str(Path("s.db")))
        queue.start(store, JobForm(action="run", target="mine"), "ann")
        [job] = until(lambda: [one for one in queue.jobs if not one.active])
        assert job.state == "failed"
        assert "golden.jsonl" in job.problem


FRAGILE = """
import answerkey

@answerkey.fault_point("look")
def look():
    return {"colour": "blue"}

def bot(question):
    try:
        said = f"It is {look()['colour']}."
    except RuntimeError:
        said = "I could not look, so I cannot say."
    return {"answer": said, "tool_calls": [{"name": "look", "arguments": {}}]}
"""


def test_a_run_of_faults_is_started_and_leads_to_its_outcomes(client, folder):
    (folder / "bot.py").write_text(FRAGILE)
    rows = [{"id": "q", "question": "First?", "expected_keywords": ["blue"], "expected_tools": ["look"]}]
    (folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert post(client, action="faults", target="bot.py:bot", kind="error").status == 400
    assert post(client, action="faults", target="mine", kind="no such").status == 400
    assert newest(client) is None
    assert post(client, action="faults", target="mine", kind="error", name="tools down").status == 303
    page = until(lambda: "data-refresh" not in (text := client.get("/jobs").text) and text)
    address = re.search(r'href="(/runs/[^"]+/faults)"><bdi>tools down [0-9a-f]{8}-faulted', page)
    assert address is not None, page
    assert "recovered or honest after 1 of 1 fault" in client.get(address[1]).text
    assert client.get("/api" + address[1]).json["resilience"]["outcomes"]["honest"] == 1


def test_an_interrupted_run_of_faults_is_resumed_as_such(client, folder):
    assert post(client, action="faults", target="mine", kind="error").status == 303

    def answered():
        runs = [row["info"]["id"] for row in client.get("/api/runs").json["rows"]]
        return [run for run in runs if client.get(f"/api/runs/{run}/progress").json["done"]]

    # Of the two runs, only the one without faults goes on: the bot waits before it answers the second question.
    until(answered)
    job = client.get("/jobs").text.partition('name="job" value="')[2].partition('"')[0]
    assert post(client, action="cancel", job=job).status == 303
    run = until(lambda: (one := newest(client)) and one["status"] == "interrupted" and one)
    (folder / "go").touch()
    assert post(client, action="resume", run=run["id"]).status == 303
    until(lambda: "data-refresh" not in client.get("/jobs").text)
    assert {row["info"]["status"] for row in client.get("/api/runs").json["rows"]} == {"complete"}


def test_a_name_with_a_nul_does_not_stop_the_queue(client, folder):
    (folder / "go").touch()
    body = {"action": "run", "target": "mine", "name": "a\x00b"}
    assert client.post("/jobs", body, origin=client.url).status == 303
    until(lambda: (one := newest(client)) and one["status"] == "complete")
    assert newest(client)["name"] == "ab"
