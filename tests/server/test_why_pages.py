"""Why points were lost: causes as filters of a run and a comparison, several runs in one table, outcomes of faults."""

import re

import pytest

import answerkey
from answerkey.model.question import ExpectedTool, Question, QuestionSet
from answerkey.model.reply import Failure, Reply
from answerkey.store import open_store
from store.filling import add_run, golden, good_reply, uneven_reply

from .serving import serving

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("why") / "s.db")

    def third_lost(question, trial):
        return Reply(failure=Failure("timeout", "")) if question.id == "q3" else good_reply(question, trial)

    with open_store(path) as store:
        add_run(store, "good", good_reply, questions=golden(9), day=0)
        add_run(store, "bad", uneven_reply, questions=golden(9), day=1)
        add_run(store, "odd", third_lost, questions=golden(9), day=2)
    with serving(lambda: open_store(path)) as running:
        yield running


def test_a_cause_leads_to_its_questions_everywhere(client):
    run = client.get("/api/runs/bad").json
    causes = {cause["words"]: cause for cause in run["causes"]}
    assert {words: cause["questions"] for words, cause in causes.items()} == {
        "the chatbot crashed or timed out for questions about documents": 3,
        "query_database was not called for questions about tax": 3,
    }
    lost = -sum(cause["points"] for cause in causes.values())
    assert lost == pytest.approx(1 - run["summary"]["score"], abs=1e-6)
    shown = -sum(cause["rounded_points"] for cause in causes.values())
    assert shown == pytest.approx(round(lost, 3))
    key = causes["query_database was not called for questions about tax"]["key"]
    filtered = client.get(f"/api/runs/bad?cause={key}&sort=position").json
    assert [row["id"] for row in filtered["rows"]] == ["q1", "q4", "q7"]
    assert "query_database was not called" in client.get(f"/runs/bad?cause={key}").text
    lines = client.get(f"/runs/bad/questions.jsonl?cause={key}&sort=position").text.splitlines()
    assert len(lines) == 3
    neighbours = client.get(f"/api/runs/bad/questions/q4?cause={key}&sort=position&at=1").json["neighbours"]
    assert (neighbours["before"], neighbours["after"], neighbours["total"]) == ("q1", "q7", 3)
    assert client.get("/runs/bad?cause=00000000").status == 404


def test_the_causes_of_a_comparison_are_those_of_the_command(client):
    view = client.get("/api/compare?base=good&run=bad").json
    assert sum(cause["questions"] for cause in view["causes"]) == 6
    key = view["causes"][0]["key"]
    assert len(client.get(f"/api/compare?base=good&run=bad&cause={key}").json["rows"]) == 3
    assert len(client.get(f"/compare.csv?base=good&run=bad&cause={key}").text.splitlines()) == 4


def test_a_comparison_opens_in_the_direction_of_its_verdict(client):
    worse = client.get("/api/compare?base=good&run=bad").json
    better = client.get("/api/compare?base=bad&run=good").json
    assert (worse["query"]["sort"], better["query"]["sort"]) == ("change", "-change")
    assert worse["rows"][0]["changes"][0] < 0 < better["rows"][0]["changes"][0]


def test_several_runs_have_one_table_with_columns_and_files(client):
    address = "/compare?base=good&run=bad&run=odd"
    page = client.get(address).text
    assert "Worst change" in page
    assert "response quality" in page, "every figure of the command"
    rows = client.get(f"/api{address}").json["rows"]
    assert {row["id"] for row in rows[:4]} == {"q2", "q3", "q5", "q8"}, (
        "what only the third run lost is among the first"
    )
    shown = client.get(f"/api{address}&sort=run2").json["rows"]
    assert shown[0]["id"] == "q3"
    header, first, *_ = client.get(
        f"{address.replace('/compare', '/compare.csv')}&columns=gain&columns=run2.response_quality&sort=gain"
    ).text.splitlines()
    assert header.removeprefix("\ufeff") == "id,gain,run2.response_quality"
    assert first == "q0,0.0,1.0"
    assert client.get(f"{address}&sort=run3").status == 400
    assert client.get("/compare?base=good&run=bad&sort=run2").status == 400


@answerkey.fault_point("query_database")
def query_database(sql: str):
    return {"value": "blue"}


def bot(question):
    try:
        value = query_database("select 1")["value"]
    except RuntimeError:
        value = EVIL
    return {
        "answer": f"It is {value}.",
        "tool_calls": [{"name": "query_database", "arguments": {"sql": "select 1"}}],
    }


def test_outcomes_of_faults_have_a_page_and_no_alarm(tmp_path):
    path = str(tmp_path / "s.db")
    questions = QuestionSet(
        name=EVIL,
        questions=tuple(
            Question(
                id=f"q{number}",
                question=f"{EVIL} {number}?",
                expected_keywords=("blue",),
                expected_tools=(ExpectedTool("query_database"),),
            )
            for number in range(3)
        ),
    )
    result = answerkey.faults(questions, target=bot, kinds=["error"], store=path, name="twins")
    with serving(lambda: open_store(path)) as client:
        for run in (result.clean.id, result.faulted.id):
            view = client.get(f"/api/runs/{run}/faults").json
            assert view["resilience"]["landed"] == result.summary.landed == 3
            assert view["resilience"]["outcomes"] == result.outcomes
            assert [group["name"] for group in view["tools"]] == ["query_database"]
        page = client.get(f"/runs/{result.faulted.id}/faults").text
        home = client.get("/api/runs").json
        link = f'href="/runs/{result.faulted.id}/faults"'
        assert link in client.get("/").text
        assert link in client.get(f"/runs/{result.faulted.id}").text
        assert "tools were broken on purpose" in client.get(f"/runs/{result.faulted.id}").text
    assert not re.search(r"<script(?! src=\"/static/(dashboard|widths).js\")|<img (?!src=\"/static/)", page)
    assert f"/runs/{result.faulted.id}/questions/q0" in page
    # A run that is worse on purpose needs nobody.
    assert not [need for need in home["needs"] if result.faulted.id in need["address"]]


def test_a_run_without_faults_has_no_outcomes(client):
    answer = client.get("/runs/good/faults")
    assert answer.status == 404
    assert "answerkey faults" in answer.text
