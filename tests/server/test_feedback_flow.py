import json

from answerkey.datasets.golden_sets import read_questions


def test_a_thumb_finds_its_reply_and_shows_on_the_pages(client):
    sent = client.post(
        "/api/feedback", {"value": "down", "response_id": "resp-q4-1", "comment": "wrong year"}
    )
    assert (sent.status, sent.json["matched"]) == (201, True)
    assert sent.json["question"] == "What is fact 4 of the tax file?"
    page = client.get("/feedback").text
    assert "wrong year" in page
    assert "What is fact 4 of the tax file?" in page
    shown = client.get("/runs/cccc3/questions/q4").text
    assert "not liked" in shown


def test_the_same_key_again_changes_the_verdict(client):
    first = client.post("/api/feedback", {"value": 0, "trace_id": "trace-q0-1", "idempotency_key": "k1"})
    again = client.post("/api/feedback", {"value": 1, "trace_id": "trace-q0-1"}, idempotency_key="k1")
    assert (first.status, again.status) == (201, 200)
    assert first.json["id"] == again.json["id"]
    assert (again.json["created"], again.json["value"]) == (False, 1.0)


def test_production_replies_are_graded_by_the_golden_case_of_the_same_wording(client):
    sent = client.post(
        "/api/replies",
        {
            "replies": [
                {
                    "question": "what is fact 0 of the property file",
                    "answer": "It is fact0 in Montrose.",
                    "tools_used": ["query_database"],
                    "response_id": "prod-1",
                    "conversation_id": "prod-c",
                },
                {
                    "question": "Something new?",
                    "answer": "I encountered an error while searching...",
                    "response_id": "prod-2",
                },
            ]
        },
    )
    assert sent.status == 201
    assert sent.json == {"ids": ["prod-1", "prod-2"], "known": [], "feedback_matched": 0, "errors": 1}
    verdict = client.post("/api/feedback", {"value": "up", "conversation_id": "prod-c"})
    assert (verdict.status, verdict.json["question"]) == (201, "what is fact 0 of the property file")


def test_feedback_that_came_first_is_tied_to_its_reply(client):
    early = client.post("/api/feedback", {"value": "down", "message_id": "late-1", "comment": "no"})
    assert early.status == 202
    sent = client.post("/api/replies", {"question": "Late one?", "answer": "yes", "response_id": "late-1"})
    assert sent.json["feedback_matched"] == 1


def test_replies_without_a_question_are_refused_whole(client):
    answer = client.post("/api/replies", {"replies": [{"question": "a?", "answer": "b"}, {"answer": "c"}]})
    assert answer.status == 400
    assert 'reply 2: "question" is missing' in answer.json["error"]["message"]


def test_disliked_questions_download_as_a_golden_set_that_can_be_read(client, tmp_path):
    client.post(
        "/api/replies", {"question": "Who mows the lawn?", "answer": "Nobody.", "response_id": "lawn"}
    )
    client.post(
        "/api/feedback",
        {"value": "down", "response_id": "lawn", "comment": "wrong", "correction": "Green Thumb LLC"},
    )
    answer = client.get("/feedback/golden.jsonl")
    assert "attachment" in answer.headers["content-disposition"]
    path = tmp_path / "proposed.jsonl"
    path.write_bytes(answer.body)
    questions = {question.question: question for question in read_questions(path)}
    assert questions["Who mows the lawn?"].reference_answer == "Green Thumb LLC"
    assert "from-feedback" in questions["Who mows the lawn?"].tags
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert (
        next(line for line in lines if line["question"] == "Who mows the lawn?")["feedback"]["reply"]
        == "Nobody."
    )


def test_a_reviewers_verdict_takes_the_reply_out_of_the_queue(client):
    before = client.get("/api/review?run=aaaa1").json
    assert before["item"]["score"] == 0.4
    answer = client.post(
        "/review",
        f"run=aaaa1&question={before['item']['question_id']}&trial=1&verdict=distrust&comment=not+enough&at=0",
        content_type="application/x-www-form-urlencoded",
        origin=client.url,
    )
    assert answer.status == 303
    assert answer.headers["location"].startswith("/review?run=aaaa1&at=0&last=")
    after = client.get("/api/review?run=aaaa1").json
    assert (after["waiting"], after["done"]) == (before["waiting"] - 1, before["done"] + 1)
    assert after["item"]["question_id"] != before["item"]["question_id"]
    listed = client.get("/api/feedback?source=review").json["items"]
    assert listed[0]["comment"] == "not enough"
    assert client.post("/api/review", {"run": "aaaa1", "question": "zz", "verdict": "trust"}).status == 404
