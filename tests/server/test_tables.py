"""The tables of runs and of production replies: order, ranges, columns and files; and saved views."""

import csv
import io
import json
from urllib.parse import urlencode

import msgspec
import pytest

from answerkey.model.reply import Reply
from answerkey.store import open_store
from answerkey.store.feedback import Users
from store.filling import add_run, golden, good_reply

from .serving import serving


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("tables") / "s.db")
    with open_store(path) as store:
        add_run(store, "poor1", questions=golden(6), day=0, name="first")
        add_run(store, "good1", good_reply, questions=golden(6), day=1, name="second")
        add_run(store, "open1", questions=golden(6), day=2, finish=False, asked=2, name="third")
        tagged = msgspec.structs.replace(store.find_run("good1"), tags=("release", "gpt-x"))
        store.update_run(tagged)
    with serving(lambda: open_store(path)) as running:
        rows = [
            {
                "question": f"What is {number}?",
                "answer": f"It is {number}." if number % 3 else "I encountered an error while searching...",
                "response_id": f"p{number}",
                "latency_ms": 100.0 * number,
                "model": f"m{number % 2}",
            }
            for number in range(1, 8)
        ]
        assert running.post("/api/replies", {"replies": rows}).status == 201
        verdict = {"value": "down", "response_id": "p2", "comment": "=not so"}
        assert running.post("/api/feedback", verdict).status == 201
        yield running


def runs(client, **query):
    return [row["info"]["id"] for row in client.get("/api/runs?" + urlencode(query, doseq=True)).json["rows"]]


def test_runs_are_sorted_by_any_figure_and_those_without_one_come_last(client):
    assert runs(client) == ["open1", "good1", "poor1"]
    assert runs(client, sort="-score") == ["good1", "poor1", "open1"]
    assert runs(client, sort="score") == ["poor1", "good1", "open1"]
    assert runs(client, sort="-response_quality") == ["good1", "poor1", "open1"]
    assert runs(client, sort="name") == ["poor1", "good1", "open1"]


def test_runs_are_chosen_by_ranges_tags_and_status(client):
    assert runs(client, range=["score:0.9..", "error_rate:..0"]) == ["good1"]
    assert runs(client, measure="pass_rate", high="0.5") == ["poor1"]
    assert runs(client, tag="release") == ["good1"]
    assert runs(client, status="running") == ["open1"]
    assert runs(client, measure="pass_rate", high="50%") == ["poor1"]
    assert runs(client, range=["score:90%..100%"]) == ["good1"]
    for given in ("range=score:0.9..1", "range=score:90%25..100%25", "measure=score&low=90%25&high=100%25"):
        assert "Score from 90% to 100%" in client.get(f"/?{given}").text
    refused = client.get("/?range=score:60..")
    assert refused.status == 400
    assert "a score is at most 1; write 60% or 0.6" in refused.text
    assert client.get("/api/runs?measure=score&low=most").status == 400
    assert client.get("/api/runs?range=score").status == 400


def test_a_metric_is_a_column(client):
    page = client.get("/?columns=name&columns=tool_precision").text
    assert 'aria-label="Runs"' in page
    assert "Tool precision" in page


@pytest.mark.parametrize("path", ["/runs", "/replies"])
def test_a_file_has_exactly_the_rows_and_columns_of_the_page(client, path):
    wanted = {
        "/runs": "columns=name&columns=score&sort=-score&range=score:0..1",
        "/replies": "columns=question&columns=latency_ms&sort=-latency_ms&range=latency_ms:300..",
    }[path]
    table = list(csv.reader(io.StringIO(client.get(f"{path}.csv?{wanted}").body.decode("utf-8-sig"))))
    lines = [json.loads(line) for line in client.get(f"{path}.jsonl?{wanted}").body.splitlines()]
    assert client.get(f"{path}.parquet?{wanted}").body.startswith(b"PAR1")
    assert client.get(f"{path}.exe").status == 404
    if path == "/runs":
        assert table[0] == ["id", "name", "score"]
        assert [row[0] for row in table[1:]] == ["good1", "poor1"]
    else:
        assert table[0] == ["id", "question", "latency_ms"]
        assert [row[0] for row in table[1:]] == ["p7", "p6", "p5", "p4", "p3"]
    assert [line["id"] for line in lines] == [row[0] for row in table[1:]]


@pytest.mark.parametrize(
    "wrong",
    [
        "/replies.{}?range=category:..1",
        "/replies.{}?range=metadata.persona:..1",
        "/replies.{}?range=error:0..1",
        "/runs/good1/questions.{}?range=category:0..1",
        "/runs/good1/questions.{}?range=nonsense:0..1",
    ],
)
def test_a_range_of_a_text_is_refused_in_a_file_as_on_the_page(client, wrong):
    for ending in ("csv", "jsonl", "parquet"):
        answer = client.get(wrong.format(ending))
        assert answer.status == 400, (ending, answer.body)
        assert "content-disposition" not in answer.headers


def test_files_have_whole_texts_where_pages_have_excerpts(tmp_path):
    path, long = str(tmp_path / "s.db"), "It is fact0. " * 200
    with open_store(path) as store:
        add_run(store, "r1", lambda question, trial: Reply(text=long), questions=golden(2))
        add_run(store, "r2", questions=golden(2), day=1)
    with serving(lambda: open_store(path)) as client:
        sent = {"question": f"{long}?", "answer": long, "response_id": "p1"}
        assert client.post("/api/replies", sent).status == 201
        [first, _] = client.get("/runs/r1/questions.jsonl?columns=reply").body.splitlines()
        [reply] = client.get("/replies.jsonl").body.splitlines()
        shown = client.get("/api/runs/r1").json["rows"][0]["reply"]
    assert json.loads(first)["reply"] == long
    assert (json.loads(reply)["text"], json.loads(reply)["question"]) == (long, f"{long}?")
    assert shown == long[:600]


def test_feedback_on_a_reply_is_in_its_row(client):
    lines = [json.loads(line) for line in client.get("/replies.jsonl?text=what").body.splitlines()]
    said = {line["id"]: (line["disliked"], line["comment"]) for line in lines}
    assert said["p2"] == (1, "=not so")
    assert said["p1"] == (None, "")
    # A table's program must not take it for a formula.
    assert "'=not so" in client.get("/replies.csv").text


def test_replies_cannot_be_sorted_or_filtered_by_unknown_columns_or_ranges_of_text(client):
    message = client.get("/api/replies?sort=mood").json["error"]["message"]
    assert message.startswith("replies cannot be sorted or filtered by 'mood'")
    assert client.get("/api/replies?range=model:0..1").status == 400
    assert client.get("/api/replies?range=mood:0..1").status == 400
    assert client.get("/replies?columns=mood").status == 400


def save(client, **form):
    head = {"content_type": "application/x-www-form-urlencoded", "origin": client.url, **form.pop("head", {})}
    return client.post("/views", urlencode(form), **head)


def test_a_view_is_saved_and_deleted(client):
    address = "/replies?error=error_text&sort=-latency_ms"
    kept = save(client, name="slow <b>errors</b>", address=address)
    assert (kept.status, kept.headers["location"]) == (303, address)
    page = client.get("/").text
    assert 'href="/replies?error=error_text&amp;sort=-latency_ms"' in page
    assert "slow &lt;b&gt;errors&lt;/b&gt;" in page
    assert save(client, name="slow <b>errors</b>", action="delete", address="/").status == 303
    assert "slow &lt;b&gt;" not in client.get("/").text
    assert save(client, name="gone", action="delete").status == 404


def test_a_view_stays_on_this_server(client):
    for away in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        save(client, name="away", address=away)
        assert "evil.example" not in client.get("/").text
        assert "javascript:" not in client.get("/").text
    save(client, name="away", action="delete")


def test_views_belong_to_a_user(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        tokens = {name: Users(store).add(name, "viewer") for name in ("ann", "bob")}
    with serving(lambda: open_store(path), require_token=True) as client:
        signs = {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}
        assert save(client, name="mine", address="/feedback?value=down", head=signs["ann"]).status == 303
        assert "value=down" in client.get("/", **signs["ann"]).text
        assert "value=down" not in client.get("/", **signs["bob"]).text
        assert save(client, name="mine", action="delete", head=signs["bob"]).status == 404
    with open_store(path) as store:
        Users(store).remove("ann")
        Users(store).add("ann", "viewer")
        with store.database.reading() as connection:
            assert connection.value("SELECT COUNT(*) FROM saved_views") == 0
