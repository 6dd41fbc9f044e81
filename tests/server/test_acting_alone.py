"""What a server does by itself: alerts about production, and nightly runs; verdicts that are sent together."""

import json
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from answerkey.config import NotifySettings, Settings
from answerkey.errors import ConfigError
from answerkey.server.access import ServerSettings
from answerkey.server.app import Nightly, ProductionAlerts
from answerkey.store import open_store

from .serving import serving

TODAY = datetime(2026, 11, 18, 12, 0)


@pytest.fixture
def client(tmp_path):
    path = str(tmp_path / "s.db")
    with serving(lambda: open_store(path), rate_per_minute=1e6, burst=10_000) as running:
        yield running


@pytest.fixture
def store(client, tmp_path):
    with open_store(str(tmp_path / "s.db")) as opened:
        yield opened


@pytest.fixture
def webhook():
    """The address of a webhook, and the list of what it got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", got
    server.shutdown()
    thread.join()
    server.server_close()


def send_days(client, *, first, days, bad, errors):
    """Thirty replies a day, some of them errors, each with a verdict."""
    for number in range(days):
        at = (TODAY - timedelta(days=first - number)).isoformat() + "+00:00"
        ids = [f"r{first}-{number}-{index}" for index in range(30)]
        replies = [
            {
                "question": "Who?",
                "answer": "" if index < errors else "Ann.",
                "response_id": identity,
                "created_at": at,
            }
            for index, identity in enumerate(ids)
        ]
        assert client.post("/api/replies", {"replies": replies}).status == 201
        verdicts = [
            {"response_id": identity, "value": "down" if index < bad else "up", "created_at": at}
            for index, identity in enumerate(ids)
        ]
        answer = client.post("/api/feedback/batch", {"feedback": verdicts})
        assert answer.status == 201
        assert [receipt["matched"] for receipt in answer.json["receipts"]] == [True] * 30


def test_falling_satisfaction_and_rising_errors_are_sent_once(client, store, webhook):
    address, got = webhook
    alerts = ProductionAlerts(NotifySettings(webhook=address), "https://dash.example.com")
    send_days(client, first=13, days=7, bad=3, errors=0)
    assert alerts.send_new(store, TODAY) == []
    assert got == [], "a week without another before it"
    send_days(client, first=6, days=7, bad=12, errors=6)
    assert alerts.send_new(store, TODAY) == []
    assert [notice["events"] for notice in got] == [["satisfaction"], ["errors"]]
    assert got[0]["title"] == "answerkey: Satisfaction fell from 90% to 60% in the week from 2026-11-12"
    assert got[1]["lines"] == ["https://dash.example.com/replies?result=error&since=2026-11-12"]
    alerts.send_new(store, TODAY + timedelta(minutes=1))
    assert len(got) == 2, "what was sent is not sent again"
    # Home says the same.
    needs = client.get("/api/runs").json["needs"]
    assert [need["kind"] for need in needs] == ["satisfaction", "errors"]


def test_a_bound_of_satisfaction_and_what_is_not_wanted(client, store, webhook):
    address, got = webhook
    send_days(client, first=2, days=2, bad=12, errors=6)
    wanted = NotifySettings(webhook=address, on=("satisfaction",), satisfaction=0.8)
    ProductionAlerts(wanted, "").send_new(store, TODAY)
    assert [notice["title"] for notice in got] == ["answerkey: satisfaction 60%"]
    ProductionAlerts(NotifySettings(webhook=address, on=("errors",)), "").send_new(store, TODAY)
    assert len(got) == 1


def test_an_unreachable_webhook_is_a_line_and_nothing_else(client, store):
    send_days(client, first=2, days=2, bad=12, errors=6)
    alerts = ProductionAlerts(NotifySettings(webhook="http://127.0.0.1:9/", satisfaction=0.8), "")
    [problem] = alerts.send_new(store, TODAY)
    assert problem.startswith("[notify] webhook: not sent")


def test_a_verdict_of_a_batch_that_is_refused_is_named(client):
    good = {"response_id": "a", "value": "up", "idempotency_key": "k1"}
    bad = {"response_id": "b", "value": 7}
    answer = client.post("/api/feedback/batch", {"feedback": [good, bad]})
    assert answer.status == 400
    assert answer.json["error"]["message"].startswith("feedback 2, after 1 that were stored: ")
    # Sent again, the first is the same verdict.
    again = client.post("/api/feedback/batch", {"feedback": [good]}).json["receipts"]
    assert again[0]["created"] is False
    assert client.post("/api/feedback/batch", {"feedback": []}).status == 400
    assert client.post("/api/feedback/batch", {"feedback": [good] * 501}).status == 400


class Jobs:
    """Records what is started."""

    targets = ("bot", "other")

    def __init__(self):
        self.started = []

    def start(self, store, form, author):
        self.started.append((form.target, form.name, author))


@pytest.mark.parametrize(("targets", "started"), [((), ["bot"]), (("other", "bot"), ["other", "bot"])])
def test_runs_start_once_a_night(targets, started):
    jobs = Jobs()
    nightly = Nightly(ServerSettings(allow_run=True, nightly="02:30", nightly_targets=targets), jobs)
    now = datetime.now()
    nightly.start_due(None, now)
    assert jobs.started == []
    due = now + timedelta(days=1)
    nightly.start_due(None, due)
    nightly.start_due(None, due + timedelta(minutes=1))
    assert [target for target, _, _ in jobs.started] == started
    assert {author for _, _, author in jobs.started} == {"nightly"}
    nightly.start_due(None, due + timedelta(days=1))
    assert len(jobs.started) == 2 * len(started)
    assert len({name for _, name, _ in jobs.started}) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [({"nightly": "02:30"}, "--allow-run"), ({"nightly": "at night", "allow_run": True}, "02:30")],
)
def test_a_schedule_that_cannot_be_is_refused(given, words):
    with pytest.raises(ConfigError, match=words):
        ServerSettings(**given)


@pytest.mark.parametrize("questions", [None, "golden.jsonl", "golden.yaml", "golden.csv"])
def test_questions_are_edited_only_where_there_is_a_file_of_text(tmp_path, questions):
    (tmp_path / "golden.jsonl").write_text('{"id": "q0", "question": "Who?"}\n')
    (tmp_path / "golden.yaml").write_text("- {id: q0, question: Who?}\n")
    (tmp_path / "golden.csv").write_text("id,question\nq0,Who?\n")
    path = str(tmp_path / "s.db")
    settings = Settings(questions=questions, path=str(tmp_path / "answerkey.toml"))
    with serving(lambda: open_store(path), settings) as client:
        client.post("/api/replies", {"question": "Who?", "answer": "Ann.", "response_id": "r1"})
        linked = "/golden?" in client.get("/replies/r1").text
    assert linked == (questions in ("golden.jsonl", "golden.yaml"))
