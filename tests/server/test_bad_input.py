import http.client
import json
import socket
import sqlite3

import pytest

from answerkey.errors import StoreError
from answerkey.store import open_store

from .serving import serving


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/runs/nope", 404, "no run &#39;nope&#39;"),
        ("/runs/aaaa1/questions/nope", 404, "no scored question"),
        ("/runs/aaaa1/questions/" + "x" * 3000, 404, "no scored question"),
        ("/nothing/here", 404, "no such page"),
        ("/?page=two", 400, "page: expected a whole number"),
        ("/replies?since=yesterday", 400, "since: expected a day, e.g. 2026-11-18"),
        ("/runs/aaaa1?result=bad", 400, "result: unknown value"),
        ("/?page=0", 400, "page"),
        ("/?page=-1", 400, "page"),
        ("/?page=99999999999999999999999", 400, "page"),
        ("/runs/aaaa1?grade=Z", 400, "grade"),
        ("/runs/aaaa1?sort=sideways", 400, "sort or filter by"),
        ("/runs/aaaa1?range=score", 400, "two numbers"),
        ("/runs/aaaa1?columns=nonsense", 400, "columns"),
        ("/runs/aaaa1/questions.exe", 404, ".exe"),
        ("/runs/aaaa1?text=" + "x" * 201, 400, "text"),
        ("/runs/aaaa1/questions/q1?at=-5", 400, "at"),
        ("/compare?run=aaaa1&run=nope", 404, "no run"),
        ("/compare?" + "&".join(f"run=r{n}" for n in range(9)), 400, "run"),
        ("/static/..%2f..%2fpyproject.toml", 404, ""),
    ],
)
def test_what_cannot_be_read_is_a_clear_page_with_a_way_back(client, path, status, words):
    answer = client.get(path)
    assert answer.status == status
    assert words.casefold() in answer.text.casefold()
    assert 'href="/"' in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/?page=900", "Back to the first"),
        ("/runs/aaaa1?page=900", "Back to the first"),
        ("/compare?run=aaaa1&run=bbbb2&page=900", "No question matches"),
        ("/review?run=aaaa1&at=999", "That was the last one"),
    ],
)
def test_a_page_beyond_the_last_says_so(client, path, words):
    answer = client.get(path)
    assert answer.status == 200
    assert words.casefold() in answer.text.casefold()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"response_id": "x"}, 400, "missing required field `value`"),
        ({"value": "up"}, 400, "nothing says which reply"),
        ({"value": "so-so", "response_id": "x"}, 400, "number from 0 to 1"),
        ({"value": 7, "response_id": "x"}, 400, "number from 0 to 1"),
        ({"value": {"a": 1}, "response_id": "x"}, 400, "value"),
        ({"value": "up", "response_id": 5}, 400, "response_id"),
        ({"value": "up", "response_id": "x" * 500}, 400, "response_id"),
        ({"value": "up", "response_id": "x", "comment": "c" * 20_001}, 400, "comment"),
        ([1, 2], 400, "JSON object"),
        ("{", 400, "not valid JSON"),
        (b"\xff\xfe", 400, "not valid JSON"),
        ("[" * 100_000, 400, "not valid JSON"),
    ],
)
def test_bad_feedback_is_refused_with_what_is_wrong(client, body, status, words):
    answer = client.post("/api/feedback", body, content_type="application/json")
    assert answer.status == status
    assert words in answer.json["error"]["message"]


def test_a_comment_of_ten_megabytes_is_refused_and_nothing_of_it_is_kept(client):
    before = client.get("/api/feedback").json["paging"]["total"]
    answer = client.post("/api/feedback", {"value": "up", "response_id": "big", "comment": "x" * 10_000_000})
    assert answer.status == 413
    assert answer.json["error"]["code"] == "too_large"
    assert client.get("/api/feedback").json["paging"]["total"] == before


def test_a_body_that_does_not_say_how_long_it_is_is_cut_off_too(client):
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    connection.putrequest("POST", "/api/feedback")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.putheader("Content-Type", "application/json")
    connection.endheaders()
    try:
        for _ in range(30):
            connection.send(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
        connection.send(b"0\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["code"]) == (413, "too_large")
    connection.close()


def test_a_sender_that_goes_away_in_the_middle_harms_nobody(client):
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        head = (
            f"POST /api/feedback HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 500\r\n\r\n{{"
        )
        connection.sendall(head.encode())
    assert client.get("/healthz").status == 200


def test_feedback_on_an_unknown_reply_is_kept_and_says_so(client):
    answer = client.post("/api/feedback", {"value": "down", "reply_id": "never-seen"})
    assert answer.status == 202
    assert answer.json["matched"] is False
    assert "stored" in answer.json["note"]
    assert "reply not known yet" in client.get("/feedback").text


def test_a_store_that_is_locked_is_said_on_the_page_and_the_sender_may_try_again(tmp_path):
    path = tmp_path / "s.db"
    open_store(str(path)).close()
    with serving(lambda: open_store(str(path))) as client:
        assert client.get("/").status == 200
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        try:
            answer = client.post("/api/feedback", {"value": "up", "response_id": "x"})
            assert answer.status == 503
            assert answer.json["error"]["code"] == "store_unavailable"
            assert "locked" in answer.json["error"]["message"]
            assert int(answer.headers["retry-after"]) > 0
            # Looking goes on.
            assert client.get("/feedback").status == 200
        finally:
            lock.execute("ROLLBACK")
            lock.close()
        assert client.post("/api/feedback", {"value": "up", "response_id": "x"}).status == 202


def test_a_store_from_a_newer_answerkey_is_said_on_the_page(tmp_path):
    path = tmp_path / "s.db"
    open_store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO answerkey_schema (version) VALUES (999)")
    with pytest.raises(StoreError):
        open_store(str(path))
    with serving(lambda: open_store(str(path))) as client:
        page = client.get("/")
        assert (page.status, "newer answerkey" in page.text) == (503, True)
        assert client.get("/api/runs").json["error"]["code"] == "store_unavailable"


def test_an_empty_store_says_what_to_do(tmp_path):
    path = tmp_path / "s.db"
    with serving(lambda: open_store(str(path))) as client:
        assert "answerkey run" in client.get("/").text
        assert "answerkey run" in client.get("/review").text
        assert "/api/feedback" in client.get("/feedback").text
        assert "answerkey run" in client.get("/compare").text
        assert "/api/replies" in client.get("/replies").text
        assert client.get("/runs/latest").status == 404
