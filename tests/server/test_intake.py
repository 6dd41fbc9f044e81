"""What senders may do, and what a forger cannot."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from answerkey.config import Settings
from answerkey.model.judgement import ProductionReply
from answerkey.model.reply import Reply
from answerkey.runs.production import ProductionGrading, production_series
from answerkey.server.access import ServerSettings
from answerkey.server.app import create_app, run_maintenance
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackStore, Users
from answerkey.store.production import ProductionFilter, ProductionReplies
from store.filling import add_run, golden

from .serving import golden_file, serving

REPLY = {"question": "What is fact 0 of the property file?", "answer": "It is fact0.", "response_id": "r-1"}


@pytest.fixture
def sending(tmp_path):
    """A guarded server, its store, and what each sender signs with."""
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "aaaa1", questions=golden(6))
        signs = {
            name: {"authorization": f"Bearer {Users(store).add(name, 'site')}"} for name in ("shop", "bank")
        }
        signs["admin"] = {"authorization": f"Bearer {Users(store).add('root', 'admin')}"}
        settings = {"require_token": True, "questions": golden_file(tmp_path, golden(6))}
        origins = ("https://chat.example.com",)
        with serving(lambda: open_store(path), allow_origins=origins, **settings) as client:
            yield client, store, signs


def test_when_it_was_said_by_what_and_who_sent_it_is_kept_and_shown(sending):
    client, store, signs = sending
    row = {**REPLY, "created_at": "2026-03-04T05:06:07+02:00", "model": "gpt-9", "version": "v12"}
    assert client.post("/api/replies", row, **signs["shop"]).status == 201
    kept = ProductionReplies(store).find("r-1")
    assert kept.created_at == "2026-03-04T03:06:07.000+00:00"
    assert kept.received_at > kept.created_at
    assert (kept.model, kept.version, kept.sender) == ("gpt-9", "v12", "site:shop")
    for page in ("/replies", "/replies/r-1"):
        text = client.get(page, **signs["admin"]).text
        assert "gpt-9" in text
        assert "v12" in text
    verdict = {"value": "up", "response_id": "r-1", "created_at": "2026-03-05"}
    assert client.post("/api/feedback", verdict, **signs["shop"]).status == 201
    (said,), _ = FeedbackStore(store).page()
    assert said.created_at == "2026-03-05T00:00:00.000+00:00"


@pytest.mark.parametrize(
    "wrong", ["yesterday", 5, "2026-99-01", "99999-01-01", "", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_that_is_none_is_refused(sending, wrong):
    client, store, signs = sending
    answer = client.post("/api/replies", {**REPLY, "created_at": wrong}, **signs["shop"])
    assert (answer.status, "created_at" in answer.json["error"]["message"]) == (400, True)
    later = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    answer = client.post("/api/replies", {**REPLY, "created_at": later}, **signs["shop"])
    assert "in the future" in answer.json["error"]["message"]
    assert production_series(store, ProductionFilter()).total.replies == 0


def test_a_reply_that_is_kept_is_never_overwritten(sending):
    client, store, signs = sending
    assert client.post("/api/replies", REPLY, **signs["shop"]).json["known"] == []
    before = ProductionReplies(store).find("r-1")
    for who in ("shop", "bank", "admin"):
        forged = {**REPLY, "answer": "Buy now!", "question": "Forged?", "created_at": "2026-01-01"}
        answer = client.post("/api/replies", {"replies": [forged, forged]}, **signs[who])
        assert (answer.status, answer.json["known"]) == (201, ["r-1", "r-1"])
    carried = {"value": "down", "response_id": "r-1", "reply": {"question": "Forged?", "answer": "Buy!"}}
    assert client.post("/api/feedback", carried, **signs["bank"]).status == 201
    assert ProductionReplies(store).find("r-1") == before


def test_a_site_cannot_change_a_verdict_not_even_its_own(sending):
    client, store, signs = sending
    up = {"value": "up", "response_id": "x", "idempotency_key": "k"}
    assert client.post("/api/feedback", up, **signs["shop"]).status == 202
    again = client.post("/api/feedback", up, **signs["shop"])
    assert (again.status, again.json["created"]) == (202, False)
    changed = client.post("/api/feedback", {**up, "value": "down"}, **signs["shop"])
    assert (changed.status, changed.json["error"]["code"]) == (409, "key_used")
    # Another sender's key is another key.
    assert client.post("/api/feedback", {**up, "value": "down"}, **signs["bank"]).json["created"]
    own = client.post("/api/feedback", {**up, "value": 0.25}, **signs["admin"])
    assert own.json["created"]
    # A person may change their mind, on their own verdict.
    assert not client.post("/api/feedback", {**up, "value": 0.75}, **signs["admin"]).json["created"]
    values = {one.sender: one.value for one in FeedbackStore(store).page()[0]}
    assert values == {"site:shop": 1.0, "site:bank": 0.0, "person:root": 0.75}


def test_a_page_of_another_origin_cannot_change_a_verdict_on_this_machine(tmp_path):
    path = str(tmp_path / "s.db")
    origin = "https://chat.example.com"
    with serving(lambda: open_store(path), allow_origins=(origin,)) as client:
        up = {"value": "up", "response_id": "x", "idempotency_key": "k"}
        assert client.post("/api/feedback", up).status == 202
        assert client.post("/api/feedback", {**up, "value": "down"}, origin=origin).status == 409
        assert client.post("/api/feedback", {**up, "value": "down"}).json["value"] == 0.0


# With a look-around a pattern is not for the engine that is always quick: this one takes years.
SLOW = {"regex": "(?=(a+)+b)(a|aa)+$"}


@pytest.mark.parametrize(
    "expected",
    [
        {"expected_keywords": [SLOW]},
        {"forbidden_keywords": [SLOW]},
        {"expected_tools": [{"name": "t", "arguments": {"x": SLOW}}]},
        {"checks": [SLOW]},
        {"expected_content": ["fact0"]},
        {"reference_answer": "It is fact0."},
    ],
)
def test_no_sender_says_what_a_good_reply_is(sending, expected):
    client, store, signs = sending
    row = {**REPLY, "answer": "a" * 5_000, **expected}
    carried = {"value": "up", "response_id": "r-1", "reply": row}
    begun = time.process_time()
    for who in ("shop", "admin"):
        for path, body in (("/api/replies", row), ("/api/feedback", carried)):
            answer = client.post(path, body, **signs[who])
            assert answer.status == 400
            assert "not accepted from senders" in answer.json["error"]["message"]
    assert time.process_time() - begun < 10
    assert production_series(store, ProductionFilter()).total.replies == 0
    assert FeedbackStore(store).page()[1] == 0


def test_a_verdict_brings_its_reply_along(sending):
    client, store, signs = sending
    carried = {"value": "down", "response_id": "c-1", "conversation_id": "c", "reply": dict(REPLY)}
    sent = client.post("/api/feedback", carried, **signs["shop"])
    assert (sent.status, sent.json["matched"], sent.json["question"]) == (201, True, REPLY["question"])
    kept = ProductionReplies(store).find("c-1")
    assert (kept.reply.text, kept.reply.conversation_id, kept.score is None) == ("It is fact0.", "c", False)
    # A reply of a run is known already.
    of_run = {"value": "up", "response_id": "resp-q0-1", "reply": {"question": "Forged?", "answer": "x"}}
    assert client.post("/api/feedback", of_run, **signs["shop"]).json["question"] == REPLY["question"]
    assert production_series(store, ProductionFilter()).total.replies == 1
    nameless = {"value": "up", "question": "Q?", "reply": dict(REPLY)}
    assert client.post("/api/feedback", nameless, **signs["shop"]).status == 400


def production_reply(number, answer="It is fact0."):
    return ProductionReply(
        id=f"p{number}", created_at="2026-01-01", question=REPLY["question"], reply=Reply(text=answer)
    )


def test_replies_are_graded_anew_when_the_golden_set_changes(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        ProductionReplies(store).add([production_reply(number) for number in range(450)])
        ungraded = ProductionGrading(Settings())
        assert ungraded.regrade(store) == 450
        assert production_series(store, ProductionFilter()).total.graded == 0
        app = create_app(lambda: open_store(path), ServerSettings(questions=golden_file(tmp_path, golden(6))))
        assert run_maintenance(app) is None
        before = production_series(store, ProductionFilter()).total
        assert (before.graded, app.state.grading.regrade(store)) == (450, 0)
        # Another run, of whatever set, changes nothing.
        add_run(store, "other", questions=golden(1))
        assert app.state.grading.regrade(store) == 0
        (tmp_path / "golden.jsonl").write_text(
            '{"question": "What is fact 0 of the property file", "expected_keywords": ["fact9"], "category": "new"}'
        )
        assert run_maintenance(app) is None
        after = production_series(store, ProductionFilter()).total
        assert after.score != before.score
        assert ProductionReplies(store).facets().categories == {"new": 450}
        assert ProductionReplies(store).find("p7").reply.text == "It is fact0."
        (tmp_path / "golden.jsonl").write_text("{")
        assert "golden.jsonl" in run_maintenance(app)
        assert production_series(store, ProductionFilter()).total == after, (
            "what was read before stays in force"
        )
        app.state.holder.close()


def test_old_production_replies_are_deleted_by_the_server_itself(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        ProductionReplies(store).add([production_reply(1)])
        keeping = create_app(lambda: open_store(path), ServerSettings(production_days=100_000))
        assert run_maintenance(keeping) is None
        assert production_series(store, ProductionFilter()).total.replies == 1
        deleting = create_app(lambda: open_store(path), ServerSettings(production_days=90))
        assert run_maintenance(deleting) is None
        assert production_series(store, ProductionFilter()).total.replies == 0
        keeping.state.holder.close()
        deleting.state.holder.close()


def test_an_admin_deletes_what_is_named_exactly(sending):
    client, store, signs = sending
    add_run(store, "bbbb2", questions=golden(1), day=1)
    assert client.post("/api/replies", {**REPLY, "response_id": "a/b"}, **signs["shop"]).status == 201
    assert client.request("DELETE", "/api/replies/a%2Fb", **signs["shop"]).status == 403
    assert client.request("DELETE", "/api/replies/a%2Fb", **signs["admin"]).json["production_replies"] == 1
    assert client.request("DELETE", "/api/replies/a%2Fb", **signs["admin"]).status == 404
    for loose in ("latest", "bbbb", "BBBB2"):
        assert client.request("DELETE", f"/api/runs/{loose}", **signs["admin"]).status in (400, 404)
    assert client.request("DELETE", "/api/runs/bbbb2", **signs["admin"]).json["runs"] == 1
    assert client.get("/api/runs/bbbb2", **signs["admin"]).status == 404


def test_spans_that_came_before_a_reply_are_its_own(sending):
    client, store, signs = sending
    trace = "0af7651916cd43dd8448eb211c80319c"
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_records"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in tool.items()]
    span = {"traceId": trace, "spanId": "01" * 8, "name": "execute_tool", "attributes": attributes}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert client.post("/v1/traces", request, **signs["shop"]).status == 200
    assert (
        client.post("/v1/traces", b"\xff", **signs["shop"], content_type="application/x-protobuf").status
        == 400
    )
    assert client.post("/v1/traces", request).status == 401
    # Another sender's spans are not this one's.
    for sender, response_id, calls in (("bank", "r-b", []), ("shop", "r-s", ["search_records"])):
        row = {**REPLY, "response_id": response_id, "trace_id": trace}
        assert client.post("/api/replies", row, **signs[sender]).status == 201
        kept = ProductionReplies(store).find(response_id)
        assert list(kept.reply.tools_used) == calls
        assert kept.reply.evidence.tools_observed is bool(calls)
