import json
from urllib.parse import quote, urlencode

import pytest

from answerkey.datasets.golden_sets import read_questions
from answerkey.report.result_files import cell_text
from answerkey.server import questions
from answerkey.store import open_store, production
from store.filling import add_run, golden

from .serving import golden_file, serving

ROWS = [
    {
        "question": "What is fact 0 of the property file?",
        "answer": "It is fact0 in Montrose.",
        "tools_used": ["query_database"],
        "response_id": "good",
        "latency_ms": 120,
    },
    {
        "question": "What is fact 1 of the tax file?",
        "answer": "It is in another file.",
        "response_id": "poor",
    },
    {
        "question": "Who is our new tenant?",
        "answer": "I encountered an error while searching...",
        "response_id": "broken/1",
        "category": "tenants",
        "latency_ms": 9000,
    },
    {"question": "Naïve Frage nach Größe?", "answer": None, "response_id": "null"},
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replies")
    path = str(folder / "s.db")
    with open_store(path) as store:
        # A run of another set has nothing to do with it.
        add_run(store, "aaaa1", questions=golden(1))
    with serving(
        lambda: open_store(path),
        questions=golden_file(folder, golden(6)),
        allow_origins=("https://chat.example.com",),
        rate_per_minute=1e6,
        burst=10_000,
    ) as running:
        assert running.get("/replies").status == 200
        assert "No reply from production yet" in running.get("/replies").text
        assert running.post("/api/replies", {"replies": ROWS}).status == 201
        for identity, value, comment in (("good", "up", ""), ("broken/1", "down", "useless <b>")):
            sent = {"value": value, "response_id": identity, "comment": comment}
            assert running.post("/api/feedback", sent).status == 201
        yield running


def ids(client, query):
    return [row["id"] for row in client.get(f"/api/replies?{query}").json["rows"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("result=error", ["broken/1", "null"]),
        ("result=failed", ["poor"]),
        ("result=passed", ["good"]),
        ("result=ungraded", ["broken/1", "null"]),
        ("error=error_text", ["broken/1"]),
        ("category=tenants", ["broken/1"]),
        ("tool=query_database", ["good"]),
        ("text=MONTROSE", ["good"]),
        ("text=gr%C3%B6ssE", ["null"]),
        ("text=na%C3%AFve", ["null"]),
        ("text=broken", ["broken/1"]),
        ("verdict=up", ["good"]),
        ("verdict=down", ["broken/1"]),
        ("verdict=any", ["broken/1", "good"]),
        ("verdict=none&result=failed", ["poor"]),
        ("text=100%25", []),
    ],
)
def test_replies_are_found_by(client, query, found):
    assert sorted(ids(client, query)) == found


def test_their_order(client):
    assert ids(client, "sort=-latency_ms")[:2] == ["broken/1", "good"]
    assert ids(client, "sort=score")[:2] == ["poor", "good"]


def test_the_figures_are_those_of_the_listed_replies(client):
    figures = client.get("/api/replies").json["figures"]
    total = figures["total"]
    assert (total["replies"], total["graded"], total["judged"]) == (4, 2, 2)
    assert figures["errors"] == {"error_text": 1, "null": 1}
    assert (total["error_rate"], total["satisfaction"]) == (0.5, 0.5)
    filtered = client.get("/api/replies?text=montrose").json
    total = filtered["figures"]["total"]
    assert (total["replies"], total["graded"], total["error_rate"], total["satisfaction"]) == (1, 1, 0, 1)
    assert filtered["facets"]["replies"] == 4, "other values can still be chosen"


def test_what_else_is_sent_is_shown_filtered_and_split_by(client):
    rows = [
        {
            "question": "Hm?",
            "answer": f"No {n}.",
            "response_id": f"m{n}",
            "conversation_id": "talk",
            "cost": 0.5,
        }
        | {
            "version": "v1" if n < 2 else "v2",
            "persona": "<b>tenant" if n else "owner",
            "metadata": {"locale": "de"},
        }
        | {"created_at": f"2019-01-0{n + 1}T12:00:00Z", "latency_ms": 100 * (n + 1)}
        for n in range(3)
    ]
    assert client.post("/api/replies", {"replies": rows}).status == 201
    try:
        comment = {"value": "down", "response_id": "m2", "comment": "a wrong figure, says the tenant"}
        assert client.post("/api/feedback", comment).status == 201
        assert ids(client, "text=WRONG+figure") == ["m2"], "what users wrote is searched too"
        assert sorted(ids(client, "metadata=persona%3D%3Cb%3Etenant")) == ["m1", "m2"]
        assert ids(client, "metadata=persona%3Dten") == []
        for address in ("/replies", "/api/replies", "/replies.csv", "/review?source=production"):
            answer = client.get(f"{address}{'&' if '?' in address else '?'}metadata=persona")
            assert (answer.status, "a name and a value" in answer.text) == (400, True), address
        split = client.get("/api/replies?conversation=talk&by=metadata.persona").json["figures"]
        assert [(group["value"], group["replies"]) for group in split["groups"]] == [
            ("<b>tenant", 2),
            ("owner", 1),
        ]
        versions = client.get("/api/replies?until=2019-12-31&by=version").json["figures"]["groups"]
        found = [(one["value"], one["p50"], one["cost"], one["satisfaction"]) for one in versions]
        assert found == [("v1", 150, 0.5, None), ("v2", 300, 0.5, 0)]
        text = client.get("/replies?by=metadata.persona").text
        assert "<b>tenant" not in text
        assert "&lt;b&gt;tenant" in text
        page = client.get("/replies/m1").text
        assert "persona" in page
        page = page.partition('class="conversation"')[2]
        assert [page.index(f"/replies/m{n}") for n in range(3)] == sorted(
            page.index(f"/replies/m{n}") for n in range(3)
        )
        assert client.get("/replies?by=nonsense").status == 400
        assert client.get("/api/replies/m1").json["metadata"] == {"persona": "<b>tenant", "locale": "de"}
    finally:
        for n in range(3):
            client.request("DELETE", f"/api/replies/m{n}")


def test_of_many_it_is_said_that_there_are_more(client, monkeypatch):
    assert client.get("/api/replies?category=tenants").json["paging"] == {
        "page": 1,
        "size": 50,
        "total": 1,
        "more": False,
    }
    for module in (production, questions):
        monkeypatch.setattr(module, "MAX_COUNTED", 2)
    paging = client.get("/api/replies").json["paging"]
    assert (paging["total"], paging["more"]) == (2, True)
    text = client.get("/replies").text
    assert "More than 2 replies, 1 to 4 shown" in text
    assert "Page 1 of more than 1" in text
    assert "page=2" in text
    assert "There is no page 2." in client.get("/replies?page=2").text
    assert "Page 1 of" not in client.get("/replies?category=tenants").text


def test_the_list_shows_what_people_said_and_leads_to_the_reply(client):
    text = client.get("/replies").text
    assert "useless &lt;b&gt;" in text
    assert 'href="/replies/broken%2F1"' in text
    assert text.count("data-row") == 4
    page = client.get("/replies/broken%2F1").text
    assert "It ended in an error" in page
    assert "not liked" in page
    assert "Used the right tools" not in page, "nothing was expected of it"
    assert "Said what it should" in client.get("/replies/poor").text


def test_feedback_leads_to_the_reply(client):
    assert 'href="/replies/broken%2F1"' in client.get("/feedback").text


def test_a_reply_becomes_a_golden_case(client, tmp_path):
    draft = client.get("/api/replies/good").json["draft"]
    assert draft["expected_tools"] == ["query_database"]
    assert draft["reference_answer"] == "It is fact0 in Montrose.", "people liked it"
    fields = draft | {"expected_tools": "query_database\r\n", "expected_keywords": "fact0\r\n\r\n Montrose "}
    answer = client.post(
        "/replies/good",
        urlencode(fields),
        content_type="application/x-www-form-urlencoded",
        origin=client.url,
    )
    assert answer.status == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="golden-case.jsonl"'
    (tmp_path / "case.jsonl").write_text(answer.text)
    [question] = read_questions(tmp_path / "case.jsonl")
    assert question.expected_keywords == ("fact0", "Montrose")
    assert [tool.name for tool in question.expected_tools] == ["query_database"]
    assert json.loads(answer.text)["feedback"]["value"] == 1.0


@pytest.mark.parametrize("origin", ["https://evil.example", "https://chat.example.com", "null"])
def test_another_site_cannot_have_cases_made(client, origin):
    kind = "application/x-www-form-urlencoded"
    assert client.post("/replies/good", "id=x", content_type=kind, origin=origin).status == 403


@pytest.mark.parametrize("path", ["/api/replies", "/api/feedback"])
def test_a_chat_page_may_send_but_not_read_what_others_sent(client, path):
    answer = client.get(path, origin="https://chat.example.com")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_an_unknown_reply_has_a_page_with_a_way_back(client):
    answer = client.get("/replies/" + quote("no such", safe=""))
    assert answer.status == 404
    assert "No production reply" in answer.text
    assert "All replies" in answer.text
    assert client.get("/api/replies/nope").json["error"]["code"] == "not_found"


def test_a_window_of_days_holds_for_the_list_and_the_figures(client):
    rows = [
        {"question": "Old one?", "answer": "yes", "response_id": "old", "created_at": "2020-05-01T12:00:00Z"},
        {"question": "Next?", "answer": "yes", "response_id": "next", "created_at": "2020-05-02T12:00:00Z"},
    ]
    assert client.post("/api/replies", {"replies": rows}).status == 201
    assert ids(client, "since=2020-05-01&until=2020-05-01") == ["old"]
    assert sorted(ids(client, "until=2020-12-31")) == ["next", "old"]
    assert client.get("/api/replies?until=2020-05-01").json["figures"]["total"]["replies"] == 1
    assert client.get("/replies?until=2001-01-01").status == 200
    assert "From" in client.get("/replies?until=2001-01-01").text, "the window can be opened again"
    said = {"value": "down", "response_id": "old", "created_at": "2020-05-03T12:00:00Z"}
    assert client.post("/api/feedback", said).status == 201
    view = client.get("/api/feedback?since=2020-05-03&until=2020-05-03").json
    assert (view["stats"]["feedback"], view["stats"]["positive"], view["paging"]["total"]) == (1, 0, 1)
    assert client.get("/feedback?until=2001-01-01").status == 200
    assert client.get("/feedback?since=2020-05-03").status == 200
    for wrong in ("2020-99-01", "2020-1-1", "x", "9999-12-31"):
        assert client.get(f"/api/replies?until={wrong}").status in (200, 400)
    assert client.get("/api/replies?since=2020-99-01").status == 400


@pytest.mark.parametrize("identity", ["two\nlines", "ends\n", "\r\nbegins", "a/b\n/c", "tab\tand \u2028"])
def test_an_id_with_line_breaks_has_its_page(client, identity):
    row = {"question": "Which one?", "answer": "This one.", "response_id": identity}
    assert client.post("/api/replies", row).json["ids"] == [identity]
    address = quote(identity, safe="")
    assert client.get(f"/api/replies/{address}").json["row"]["id"] == identity
    assert client.get(f"/replies/{address}").status == 200
    assert client.request("DELETE", f"/api/replies/{address}").status == 200


def test_a_list_shows_a_reply_without_the_marks_of_markdown():
    reply = (
        "## Rent\n\nIt is **$900**, see *the lease* and `a_b`, 2 * 3.\n- one\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert cell_text(reply, "reply") == "Rent It is $900, see the lease and a_b, 2 * 3. one a b 1 2"
    assert cell_text("a_b*c 5*6", "reply") == "a_b*c 5*6"
    assert cell_text(None, "reply") == ""
