"""Verdicts where one reads, reviews of production, baselines that are moved on purpose, and finding any run."""

from urllib.parse import urlencode

import pytest

from answerkey.store import open_store
from answerkey.store.feedback import ReviewQueue
from store.filling import add_run, golden, good_reply

from .serving import serving


@pytest.fixture
def client(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        for number in range(60):
            add_run(
                store, f"a{number:02d}", good_reply, questions=golden(2), day=number, name=f"nightly {number}"
            )
        add_run(store, "last", questions=golden(12), day=70, name="newest")
        store.set_baseline("production", "a10")
    with serving(lambda: open_store(path), rate_per_minute=1e6, burst=10_000) as running:
        rows = [
            {
                "question": "Who?",
                "answer": "Ann.",
                "response_id": f"r{number}",
                "version": "v1" if number else "v2",
            }
            for number in range(5)
        ]
        assert running.post("/api/replies", {"replies": rows}).status == 201
        yield running


def post(client, path, **fields):
    kind = "application/x-www-form-urlencoded"
    return client.post(path, urlencode(fields), content_type=kind, origin=client.url)


def test_a_baseline_is_moved_only_after_a_confirmation_of_where_it_is_now(client):
    asked = post(client, "/baselines", name="production", run="a20")
    assert asked.status == 409
    assert "nightly 10" in asked.text
    assert "nightly 20" in asked.text
    assert client.get("/api/runs/a10").json["baselines"] == ["production"]
    # Somebody else moved it meanwhile: what was confirmed is no longer what would be replaced.
    assert post(client, "/baselines", name="production", run="a30", replaces="a10").status == 303
    assert post(client, "/baselines", name="production", run="a20", replaces="a10").status == 409
    assert client.get("/api/runs/a30").json["baselines"] == ["production"]


def test_any_run_can_be_found_to_compare_with(client):
    page = client.get("/compare?run=a59")
    assert "nightly 0 " not in page.text
    found = client.get("/api/compare?run=a59&find=nightly+0").json["recent"]
    assert "a00" in [info["id"] for info in found]
    assert "No other run matches" in client.get("/compare?run=a59&find=zzz").text


def test_a_verdict_is_given_and_taken_back_where_one_reads(client):
    here = "/runs/last/questions/q1?at=1"
    given = post(client, "/review", run="last", question="q1", verdict="distrust", comment="odd", next=here)
    assert (given.status, given.headers["location"]) == (303, here)
    page = client.get(here).text
    assert "Your verdict is saved." in page
    assert "odd" in page
    post(client, "/review", run="last", question="q1", verdict="undo", next=here)
    assert "Your verdict is saved." not in client.get(here).text
    away = post(client, "/review", run="last", question="q1", verdict="trust", next="//evil.example")
    assert away.headers["location"] == "/"


def test_score_and_judge_are_hidden_until_asked_for(client):
    blind = client.get("/api/review?run=last").json
    seen = client.get("/api/review?run=last&blind=false").json
    assert blind["trial"]["detail"]["score"] is None
    assert seen["trial"]["detail"]["score"] is not None
    assert 'class="verdict g' not in client.get("/review?run=last").text
    assert 'class="verdict g' in client.get("/review?run=last&blind=false").text


def test_production_replies_are_reviewed_as_a_random_sample_of_any_filter(client):
    seen = []
    for done in range(4):
        view = client.get("/api/review?source=production&version=v1").json
        assert (view["waiting"], view["done"]) == (4 - done, done)
        seen.append(view["reply"]["row"]["id"])
        verdict = {"reply": seen[-1], "verdict": "trust" if done else "distrust"}
        assert client.post("/api/review", verdict).status == 201
    assert sorted(seen) == ["r1", "r2", "r3", "r4"]
    ended = client.get("/api/review?source=production&version=v1").json
    assert (ended["reply"], ended["trusted"]) == (None, 3)
    assert "No production reply waits" in client.get("/review?source=production&version=v1").text
    assert client.post("/api/review", {"reply": seen[0], "verdict": "undo"}).status == 204
    assert client.get("/api/review?source=production&version=v1").json["waiting"] == 1
    assert client.get("/api/feedback").json["stats"]["feedback"] == 0, "reviewers are not users"
    assert client.post("/api/review", {"reply": "none", "verdict": "trust"}).status == 404


def test_reviewers_and_score_are_compared(client):
    queue = client.get("/api/review?run=last").json
    question = queue["item"]["question_id"]
    assert (
        client.post("/api/review", {"run": "last", "question": question, "verdict": "distrust"}).status == 201
    )
    assert client.get("/api/review?run=last").json["score_agrees"] == [1, 1]
    assert "Reviewers agree with the score on 1 of 1 reply" in client.get("/review?run=last").text


def test_reviewers_who_agree_have_an_alpha_of_one_and_others_less(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "r", questions=golden(12))
        queue = ReviewQueue(store, store.find_run("r"))
        asked = [(item.question_id, item.trial) for item in queue.page(limit=4)]
        for author in ("ann", "bob"):
            for number, (question, trial) in enumerate(asked):
                queue.record_verdict(question, trial, trusted=number % 2 == 0, comment="", author=author)
    with serving(lambda: open_store(path)) as client:
        view = client.get("/api/review?run=r").json
        assert (view["shared"], view["alpha"]) == (4, 1.0)
        answer = client.post("/api/review", {"run": "r", "question": asked[0][0], "verdict": "distrust"})
        assert answer.status == 201
        # A third reviewer contradicts both on one reply.
        assert 0 < client.get("/api/review?run=r").json["alpha"] < 1
