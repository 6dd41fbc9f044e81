"""The alignment loop on the dashboard: disagreements of a judge with people, its rubric, and a job that tries an edited one."""

import json
import time
from urllib.parse import urlencode

import pytest

import answerkey
from answerkey.config import Settings
from answerkey.store import open_store
from judge.judging import judge_process, scripted

from .serving import serving

__all__ = ["judge_process", "scripted"]
STRICT = {
    "criteria": [
        {
            "name": "accuracy",
            "weight": 100,
            "question": "Is it right by the reference answer, and not by how sure the reply sounds?",
        }
    ]
}


def bot(question: str) -> str:
    number = int(question.split()[-1].rstrip("?"))
    return f"It is in Montrose ({number})." if number % 3 == 0 else f"A perfect answer ({number})."


@pytest.fixture
def client(tmp_path, monkeypatch, scripted):
    """A dashboard with a run whose judge passes boasts, and people's verdicts on every reply."""
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "s.db")
    questions = [
        {"id": f"q{n}", "question": f"Where is number {n}?", "reference_answer": "In Montrose."}
        for n in range(60)
    ]
    run = answerkey.evaluate(questions, bot, judge=scripted.settings("gullible"), name="judged", store=path)
    with serving(lambda: open_store(path), Settings(), store_url=path, allow_run=True) as running:
        for trial in run.results:
            answer = running.post(
                "/api/review",
                {
                    "run": run.id,
                    "question": trial.id,
                    "verdict": "distrust" if "perfect" in trial.reply.text else "trust",
                },
            )
            assert answer.status in (200, 201), answer.text
        yield running


def test_disagreements_are_shown_and_an_edited_rubric_is_tried(client):
    seen = client.get("/api/runs/judged/judge").json
    titles = [table["title"] for table in seen["tables"]]
    assert titles[0] == "Agreement with people"
    assert titles[1].startswith("Disagreements: ")
    assert all(row[4].startswith("A perfect answer") for row in seen["tables"][1]["rows"])
    page = client.get("/runs/judged/judge").text
    assert "Grade the labelled replies by it" in page
    assert "Rubrics that were tried" not in page

    fields = {"action": "align", "run": "judged", "rubric": json.dumps(STRICT)}
    kind = "application/x-www-form-urlencoded"
    started = client.post("/jobs", urlencode(fields), content_type=kind, origin=client.url)
    assert started.status == 303, started.text
    while 'class="tag live"' in (jobs := client.get("/jobs").text) or ">waiting<" in jobs:
        time.sleep(0.1)
    assert ">done<" in jobs, jobs
    [tried] = client.get("/api/runs/judged/judge").json["tables"][-1]["rows"]
    assert tried[2].endswith("→ 100%")
    assert "Rubrics that were tried" in client.get("/runs/judged/judge").text


def test_a_rubric_that_is_no_object_is_refused(client):
    fields = {"action": "align", "run": "judged", "rubric": "[1,"}
    kind = "application/x-www-form-urlencoded"
    refused = client.post("/jobs", urlencode(fields), content_type=kind, origin=client.url)
    assert refused.status == 400
    assert "rubric is not valid JSON" in refused.text


def test_without_verdicts_or_a_judge_the_page_says_what_to_do(tmp_path, monkeypatch, scripted):
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "s.db")
    questions = [{"id": "q3", "question": "Where is number 3?", "reference_answer": "In Montrose."}]
    answerkey.evaluate(questions, bot, judge=scripted.settings("gullible"), name="judged", store=path)
    answerkey.evaluate(questions, bot, name="plain", store=path)
    with serving(lambda: open_store(path)) as client:
        page = client.get("/runs/judged/judge").text
        assert "has no feedback or reviews yet" in page
        assert client.get("/runs/plain/judge").status == 404
