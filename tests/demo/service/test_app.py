"""The HTTP service: the contract, refusals with reasons, failures with kinds, feedback."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest


def test_answers_with_the_contract(service: Any) -> None:
    status, reply = service.post("/chat", {"question": "What is our EIN?", "conversation_id": "c1"})
    assert status == 200
    assert "83-4567890" in reply["answer"]
    assert reply["tools_used"] == ["search_document_content"]
    assert set(reply["tool_calls"][0]) == {"id", "name", "arguments", "result", "error", "duration_ms"}
    assert set(reply["sources"][0]) == {"id", "rank", "score", "text", "title"}
    assert reply["error"] is None
    assert reply["conversation_id"] == "c1"
    assert reply["latency_ms"] > 0


def test_keeps_conversations_apart(service: Any) -> None:
    service.post("/chat", {"question": "What was rental income in March 2023?", "conversation_id": "one"})
    service.post("/chat", {"question": "What was rental income in March 2025?", "conversation_id": "two"})
    assert (
        "July 2023"
        in service.post("/chat", {"question": "And in July?", "conversation_id": "one"})[1]["answer"]
    )
    assert (
        "July 2025"
        in service.post("/chat", {"question": "And in July?", "conversation_id": "two"})[1]["answer"]
    )


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "not valid JSON"),
        (b"{bad", 400, "line 1, column 2"),
        (b"[1]", 400, "must be a JSON object"),
        (b"null", 400, "must be a JSON object"),
        (b"{}", 400, '"question" is missing'),
        (b'{"question": 5}', 400, '"question" must be a string'),
        (b'{"question": "\\ud800"}', 400, "surrogate"),
        (b'{"question": "a", "conversation_id": 7}', 400, '"conversation_id" must be a string'),
        (b'{"question": "a", "conversation_id": "' + b"x" * 300 + b'"}', 400, "longer than 200"),
        (b"\xff\xfe\x00", 400, "not UTF-8"),
        (b"[" * 30_000, 400, "not valid JSON"),
        (b'{"question": "' + b"x" * 1_000_000 + b'"}', 413, "larger than"),
    ],
)
def test_refuses_bad_requests_with_a_reason(service: Any, body: bytes, status: int, reason: str) -> None:
    got, document = service.post("/chat", body)
    assert got == status
    assert reason in document["error"]["message"]


def test_refuses_what_is_not_declared_as_json(service: Any) -> None:
    status, _, body = service.send("/chat", b'{"question": "Hello"}', {"content-type": "text/plain"})
    assert status == 415
    assert b"application/json" in body


def test_refuses_other_origins(service: Any) -> None:
    headers = {"content-type": "application/json", "origin": "http://evil.example"}
    assert service.send("/chat", b'{"question": "Hello"}', headers)[0] == 403


def test_refuses_other_host_names(service: Any) -> None:
    for path in ("/", "/feedback", "/health"):
        assert service.send(path, headers={"host": "rebound.example"})[0] == 403
    assert service.send("/health", headers={"host": "localhost:8000"})[0] == 200


def test_unknown_addresses_and_methods_get_json(service: Any) -> None:
    status, _, body = service.send("/nowhere")
    assert (status, json.loads(body)["error"]["kind"]) == (404, "request")
    status, _, body = service.send("/chat")
    assert (status, json.loads(body)["error"]["kind"]) == (405, "request")


def test_a_broken_connection_does_no_harm(service: Any) -> None:
    host = service.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.putrequest("POST", "/chat")
    connection.putheader("content-type", "application/json")
    connection.putheader("content-length", "1000")
    connection.endheaders(b'{"question": ')
    connection.close()
    assert service.post("/chat", {"question": "Hello"})[0] == 200


def test_pages_forbid_foreign_and_inline_scripts(service: Any) -> None:
    for path in ("/", "/docs"):
        status, headers, body = service.send(path)
        assert status == 200
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert b"<script>" not in body
        assert b"onclick" not in body
    assert service.send("/chat.js")[1]["content-type"].startswith("text/javascript")
    assert service.send("/chat.css")[1]["content-type"].startswith("text/css")


def test_openapi_describes_every_route(service: Any) -> None:
    status, _, body = service.send("/openapi.json")
    document = json.loads(body)
    assert status == 200
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) == {"/chat", "/feedback", "/health"}
    reply = service.post("/chat", {"question": "Hello"})[1]
    assert set(reply) == set(document["components"]["schemas"]["Reply"]["properties"])


def test_health(service: Any) -> None:
    assert json.loads(service.send("/health")[2]) == {"status": "ok", "variant": "default"}


@pytest.mark.parametrize(
    ("kind", "status"), [("connection", 503), ("timeout", 504), ("memory", 500), ("tool", 500)]
)
def test_failures_have_a_status_and_a_kind(start: Any, kind: str, status: int) -> None:
    got, reply = start(f"flaky?kinds={kind}&rate=1").post("/chat", {"question": "What is overdue?"})
    assert got == status
    assert reply["answer"] is None
    assert reply["error"]["kind"] == kind
    assert "Traceback" not in reply["error"]["message"]


def test_feedback_is_kept_with_what_it_is_about(service: Any) -> None:
    reply = service.post("/chat", {"question": "Is anything overdue?"})[1]
    verdict = {
        "response_id": reply["response_id"],
        "value": "down",
        "comment": "too short",
        "idempotency_key": "k-1",
    }
    assert service.post("/feedback", verdict)[0] == 201
    assert service.post("/feedback", verdict) == (200, {"id": 1, "stored": True, "new": False})
    kept = [v for v in json.loads(service.send("/feedback")[2])["feedback"] if v["idempotency_key"] == "k-1"]
    assert len(kept) == 1
    assert kept[0]["question"] == "Is anything overdue?"
    assert kept[0]["answer"] == reply["answer"]
    assert (kept[0]["value"], kept[0]["comment"]) == ("down", "too short")


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ({"value": "sideways", "response_id": "r"}, '"up" or "down"'),
        ({"value": "up"}, "which reply"),
        ({"value": "up", "response_id": 5}, '"response_id" must be a string'),
        ({"value": "up", "response_id": "r", "comment": "x" * 5000}, "longer than 4,000"),
    ],
)
def test_bad_feedback_is_refused(service: Any, verdict: dict[str, Any], reason: str) -> None:
    status, document = service.post("/feedback", verdict)
    assert status == 400
    assert reason in document["error"]["message"]


def test_feedback_is_passed_on_to_a_harness(start: Any) -> None:
    received: list[dict[str, Any]] = []

    class Harness(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Quiet."""

    harness = HTTPServer(("127.0.0.1", 0), Harness)
    threading.Thread(target=harness.serve_forever, daemon=True).start()
    try:
        running = start(feedback_url=f"http://127.0.0.1:{harness.server_port}/api/feedback")
        verdict = {"response_id": "r1", "value": "up", "comment": "good", "idempotency_key": "k"}
        assert running.post("/feedback", verdict)[1]["forwarded"] is True
        _, reply = running.post("/chat", {"question": "Is anything overdue?"})
        known = {"response_id": reply["response_id"], "value": "down"}
        assert running.post("/feedback", known)[1]["forwarded"] is True
    finally:
        harness.shutdown()
        harness.server_close()
    assert received[0] == {"reply_id": "r1", "value": "up", "comment": "good", "idempotency_key": "k"}
    # A verdict on a reply that it gave brings that reply along.
    carried = received[1]["reply"]
    assert (carried["question"], carried["answer"]) == ("Is anything overdue?", reply["answer"])
    assert carried["tool_calls"] == reply["tool_calls"]
    assert running.log.latest()[0]["forwarded"] == 1


def test_a_harness_that_is_away_loses_no_feedback(start: Any) -> None:
    running = start(feedback_url="http://127.0.0.1:9/api/feedback")
    status, outcome = running.post("/feedback", {"response_id": "r1", "value": "up"})
    assert status == 201
    assert outcome["forwarded"] is False
    assert "could not be reached" in outcome["reason"]
    assert running.log.latest()[0]["forwarded"] == 0
