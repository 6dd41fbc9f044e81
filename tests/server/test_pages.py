import io
import json
import re
from urllib.parse import urlencode

import pyarrow.parquet
import pytest

from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.report.wording import p_text
from answerkey.server.comparisons import CompareQuery, load_compare
from answerkey.store import open_store
from store.filling import add_run, golden, good_reply, uneven_reply

from .serving import serving

PAGES = [
    "/",
    "/runs/bbbb2",
    "/runs/latest~1",
    "/runs/production",
    "/runs/cccc3",
    "/runs/aaaa1/questions/q1?at=0",
    "/compare",
    "/compare?run=aaaa1&run=bbbb2",
    "/compare?run=aaaa1&run=bbbb2&run=cccc3&show=different",
    "/review?run=aaaa1",
    "/review",
    "/feedback",
    "/login",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_can_be_read_and_runs_nothing_inline(client, path):
    answer = client.get(path)
    assert answer.status == 200
    assert "<h1" in answer.text
    assert not re.search(r"<script(?![^>]*src=\"/static/)", answer.text)
    assert " style=" not in answer.text
    assert not re.search(r"\son\w+=", answer.text)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_the_run_page_shows_the_worst_first_and_one_page_of_rows_only(client):
    text = client.get("/runs/aaaa1").text
    assert text.count("<tr data-row") == 50
    assert text.index("missing keywords") < text.index("Page 1 of 2")
    assert "likely" in text
    assert "60 questions" in text


def test_exactly_the_view_is_exported(client):
    view = "result=failed&category=tax&sort=-latency_ms&columns=question&columns=why&columns=response_quality"
    csv = client.get(f"/runs/aaaa1/questions.csv?{view}").text.splitlines()
    assert csv[0].removeprefix("\ufeff") == "id,question,why,response_quality,latency_ms"
    assert len(csv) == 21
    assert csv[1].startswith("q1,What is fact 1 of the tax file?,")
    parquet = pyarrow.parquet.read_table(io.BytesIO(client.get(f"/runs/aaaa1/questions.parquet?{view}").body))
    assert parquet.column_names == ["id", "question", "why", "response_quality", "latency_ms"]
    assert parquet.column("response_quality").to_pylist() == [0.5] * 20
    assert client.get("/runs/aaaa1/questions.parquet?text=nowhere").status == 200
    rows = [json.loads(line) for line in client.get(f"/runs/aaaa1/questions.jsonl?{view}").text.splitlines()]
    assert [row["id"] for row in rows] == [line.split(",")[0] for line in csv[1:]]


def test_filters_are_in_the_address_and_lead_to_the_question_and_back(client):
    text = client.get("/runs/aaaa1?result=failed&category=tax&sort=position").text
    link = re.search(r'href="(/runs/aaaa1/questions/q4\?[^"]+)"', text)
    assert link is not None
    question = client.get(link[1].replace("&amp;", "&")).text
    assert "2 of 20" in question
    assert "/runs/aaaa1/questions/q7?at=2&amp;category=tax&amp;result=failed&amp;sort=position" in question


def test_a_question_shows_found_and_missing_keywords_tools_and_history(client):
    text = client.get("/runs/aaaa1/questions/q1").text
    assert re.search(r'<mark class="[^"]*keyword[^"]*"[^>]*>fact1</mark>', text)
    assert 'Montrose</bdi><span class="vh"> (missing)' in text
    assert "query_database was not called" in text
    assert text.count('<td class="name">') == 3


def test_the_compare_page_says_how_sure_it_is(client):
    text = client.get("/compare?run=bbbb2&run=aaaa1&sort=position").text
    # The older run is the base, however they are named.
    assert text.index("<bdi>before</bdi>") < text.index("<bdi>after</bdi>")
    assert "Better" in text
    assert "likely between" in text
    assert "<ins>" in text
    assert '<p class="word">Worse</p>' in client.get("/compare?base=bbbb2&run=aaaa1").text


def test_every_row_of_a_comparison_says_why(client):
    text = client.get("/compare?base=bbbb2&run=aaaa1&category=tax").text
    assert "20 questions" in text
    assert "no longer says Montrose" in text
    assert "no longer calls query_database" in text
    assert (
        "now ends in an error: timeout" in client.get("/compare?base=bbbb2&run=aaaa1&category=documents").text
    )
    [row, *_] = client.get("/api/compare?base=aaaa1&run=bbbb2&category=tax").json["rows"]
    assert {"tone": "better", "words": "now says Montrose"} in row["why"]
    lines = client.get("/compare.csv?base=bbbb2&run=aaaa1&category=tax").text.splitlines()
    assert len(lines) == 21
    assert "no longer says Montrose" in lines[1]


def test_an_empty_reply_is_said_to_be_empty(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "one", good_reply)
        add_run(store, "two", lambda question, trial: Reply(text=""), day=1)
    with serving(lambda: open_store(path)) as client:
        text = client.get("/compare?base=one&run=two").text
    assert "empty reply" in text
    assert "<del>" not in text


def test_only_comparable_runs_are_offered(tmp_path):
    path = str(tmp_path / "s.db")
    other = QuestionSet(name="other", questions=(Question(id="x1", question="Something else?"),))
    with open_store(path) as store:
        add_run(store, "one")
        add_run(store, "two", day=1)
        add_run(store, "alone", lambda question, trial: Reply(text="yes"), questions=other, day=2)
    with serving(lambda: open_store(path)) as client:
        assert 'value="alone"' not in client.get("/compare").text
        assert 'value="alone"' not in client.get("/compare?run=two").text
        assert "It takes two runs" in client.get("/compare?run=alone").text


def test_regressions_only(client):
    better = client.get("/compare?base=aaaa1&run=bbbb2&show=regressions").text
    assert "No question got worse" in better
    worse = client.get("/api/compare?base=bbbb2&run=aaaa1&show=regressions").json
    assert worse["paging"]["total"] == 40
    assert len(worse["rows"]) == 20


def test_a_running_run_reports_its_progress(client):
    assert "third run" in client.get("/runs/cccc3").text
    progress = client.get("/api/runs/cccc3/progress").json
    assert (progress["done"], progress["planned"], progress["status"]) == (7, 60, "running")


def test_charts_stand_in_the_page_with_intervals_links_and_the_baseline(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        for day in range(4):
            # The golden set was edited after the second run.
            add_run(store, f"run{day}", questions=golden(30 if day < 2 else 33), day=day)
        store.set_baseline("production", "run1")
    with serving(lambda: open_store(path)) as client:
        text = client.get("/").text
        assert text.count('<a href="/runs/run2" aria-label="run run2, 2026-11-03') == 4
        assert text.count('class="likely"') == 4
        assert text.count('<g class="change">') == 1
        assert '<span class="rule baseline">' in text
        assert "2 versions of the golden set" in text
        spread = client.get("/runs/run2").text
    bar = re.search(
        r'<a href="(/runs/run2\?range=score:0.4\.\.[^"]+)#questions" aria-label="40–50%: 11 questions"',
        spread,
    )
    assert bar is not None
    with serving(lambda: open_store(path)) as client:
        assert client.get(bar[1].replace("/runs", "/api/runs")).json["paging"]["total"] == 11


def test_an_ad_hoc_run_does_not_hide_what_is_measured_every_night(tmp_path):
    path = str(tmp_path / "s.db")
    other = QuestionSet(name="adhoc", questions=(Question(id="x1", question="Something else?"),))
    with open_store(path) as store:
        for day in range(3):
            add_run(
                store, f"run{day}", good_reply if day < 2 else uneven_reply, questions=golden(30), day=day
            )
        add_run(store, "just", lambda question, trial: Reply(text="yes"), questions=other, day=3)
    with serving(lambda: open_store(path)) as client:
        home = client.get("/api/runs").json
        text = client.get("/").text
    assert (home["chosen"]["question_set"], len(home["trend"])) == ("golden", 3)
    assert [one["question_set"] for one in home["experiments"]] == ["adhoc", "golden"]
    assert home["experiments"][1]["against"]["verdict"] == "worse"
    [regression] = [need for need in home["needs"] if need["kind"] == "regression"]
    assert regression["address"] == "/compare?base=run1&run=run2"
    assert "is worse than the previous run" in regression["words"]
    assert text.count('class="tone worse"') == 1, "the run that got worse is marked in the trend"


def test_the_theme_is_kept_in_a_cookie_and_leads_back(client):
    answer = client.post(
        "/theme",
        "theme=dark&next=%2Freview",
        content_type="application/x-www-form-urlencoded",
        origin=client.url,
    )
    assert (answer.status, answer.headers["location"]) == (303, "/review")
    assert 'data-theme="dark"' in client.get("/", cookie="theme=dark").text
    away = client.post(
        "/theme", "next=//evil.example", content_type="application/x-www-form-urlencoded", origin=client.url
    )
    assert away.headers["location"] == "/"


def test_the_verdict_is_the_one_of_answerkey_compare(client, store_path, command):
    shown = client.get("/api/compare?base=aaaa1&run=bbbb2").json["versus"]
    told = command("compare", "aaaa1", "bbbb2", "--store", store_path, "--json").document
    for name in ("verdict", "paired", "detectable", "reasons", "notes", "pass_rate"):
        assert shown[name] == told[name]
    for name in ("mean", "low", "high", "p_value"):
        assert shown["score"]["difference"][name] == pytest.approx(told["difference"][name])
    assert {part["name"]: part["p_adjusted"] for part in shown["components"]} == {
        name: part["p_adjusted"] for name, part in told["components"].items()
    }
    assert {part["name"]: part["verdict"] for part in shown["categories"]} == {
        part["category"]: part["verdict"] for part in told["categories"]
    }


def test_a_comparison_is_sorted_limited_and_exported_by_any_measure(client):
    """Both values and the difference of each measure are columns; what is sorted or limited by is shown."""
    chosen = "base=bbbb2&run=aaaa1&range=change.response_quality:..-0.5&sort=-candidate.latency_ms&columns=question"
    text = client.get(f"/compare?{chosen}").text
    for head in ("Quality: change", "Time: candidate"):
        assert f"{head}</a>" in text
    assert "Quality: change at most −50" in text
    rows = client.get(f"/api/compare?{chosen}").json
    changes = [
        row["measures"][1]["response_quality"] - row["measures"][0]["response_quality"]
        for row in rows["rows"]
    ]
    assert changes
    assert max(changes) <= -0.5
    lines = client.get(f"/compare.csv?{chosen}").text.splitlines()
    assert lines[0].lstrip("\ufeff") == "id,question,change.response_quality,candidate.latency_ms"
    assert len(lines) == 1 + rows["paging"]["total"]
    times = [float(line.rsplit(",", 1)[1] or 0) for line in lines[1:]]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    "wrong", ["sort=nonsense", "range=change.nonsense:0..1", "columns=nonsense", "range=x"]
)
def test_a_column_that_a_comparison_has_not_is_named(client, wrong):
    answer = client.get(f"/compare?base=bbbb2&run=aaaa1&{wrong}")
    assert answer.status == 400
    assert "nonsense" in answer.text or "range" in answer.text


def test_a_p_value_stands_beside_the_interval_of_the_same_test(store_path):
    """Intervals are of one measure alone: the corrected p-value decides the verdict, and does not stand beside them."""
    with open_store(store_path) as store:
        view = load_compare(store, CompareQuery(base="aaaa1", run=("bbbb2",)))
    components, table = view.versus.components, view.tables[0]
    assert any(part.p_adjusted != part.difference.p_value for part in components)
    assert [row.p for row in table.rows] == [p_text(part.difference.p_value) for part in components]
    assert "verdict is corrected" in table.note


def test_a_comparison_shows_components_categories_and_what_else_changed(client):
    text = client.get("/compare?base=bbbb2&run=aaaa1").text
    for title in ("What was scored", "By category</h2>", "Passed, speed, cost and errors"):
        assert title in text
    for name in ("Used the right tools", "Said what it should", "<bdi>tax</bdi>", "Mean time"):
        assert name in text
    assert text.count('class="likely"') == 6
    assert "New kinds of error:" in text
    assert "40 broken" in text


def test_several_runs_are_ranked(client, store_path, command):
    shown = client.get("/api/compare?run=aaaa1&run=bbbb2&run=cccc3").json
    told = command("compare", "aaaa1", "bbbb2", "cccc3", "--store", store_path, "--json").document
    assert shown["versus"] is None
    assert [run["id"] for run in shown["ranking"]["runs"]] == [run["id"] for run in told["runs"]]
    assert shown["ranking"]["questions"] == told["questions"] == 7
    text = client.get("/compare?run=aaaa1&run=bbbb2&run=cccc3").text
    assert "Best first" in text
    assert "do not differ clearly" in text
    assert "Each against each" in text
    assert len(shown["rows"]) <= 10


def test_runs_without_a_question_in_common_say_so(tmp_path):
    path = str(tmp_path / "s.db")
    other = QuestionSet(name="other", questions=(Question(id="x1", question="Something else?"),))
    with open_store(path) as store:
        add_run(store, "one")
        add_run(store, "two", lambda question, trial: Reply(text="yes"), questions=other, day=1)
    with serving(lambda: open_store(path)) as client:
        answer = client.get("/compare?run=one&run=two")
    assert answer.status == 200
    assert "no scored question in common" in answer.text


def test_a_comparison_follows_a_run_that_goes_on(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "one", questions=golden(30))
        add_run(store, "two", good_reply, questions=golden(30), day=1, finish=False, asked=10)
    with serving(lambda: open_store(path)) as client:
        assert client.get("/api/compare?run=one&run=two").json["versus"]["paired"] == 10
        with open_store(path) as store:
            store.delete_run("two")
            add_run(store, "two", good_reply, questions=golden(30), day=1)
        assert client.get("/api/compare?run=one&run=two").json["versus"]["paired"] == 30


def form(client, path, **fields):
    kind = "application/x-www-form-urlencoded"
    return client.post(path, urlencode(fields), content_type=kind, origin=client.url)


def test_a_baseline_is_set_and_unset_on_the_run_page(client):
    assert "Make this run the baseline" in client.get("/runs/bbbb2").text
    done = form(client, "/baselines", run="bbbb2", name="spring", action="set")
    assert (done.status, done.headers["location"]) == (303, "/runs/bbbb2")
    shown = client.get("/runs/bbbb2").text
    assert "baseline spring" in shown
    assert "Compare with production" in shown
    assert client.get("/api/runs/spring").json["info"]["id"] == "bbbb2"
    # A form of another run cannot take the name away.
    form(client, "/baselines", run="aaaa1", name="spring", action="remove")
    assert client.get("/api/runs/bbbb2").json["baselines"] == ["spring"]
    form(client, "/baselines", run="bbbb2", name="spring", action="remove")
    assert client.get("/api/runs/bbbb2").json["baselines"] == []


def test_baselines_through_the_api(client):
    assert client.post("/api/baselines", {"name": "api", "run": "bbbb2"}).status == 201
    assert client.request("DELETE", "/api/baselines/api").status == 204
    gone = client.request("DELETE", "/api/baselines/api")
    assert (gone.status, gone.json["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("name", "run"), [("latest", "bbbb2"), ("-x", "bbbb2"), ("  ", "bbbb2"), ("x", "cccc3")]
)
def test_what_cannot_be_a_baseline_is_refused(client, name, run):
    assert client.post("/api/baselines", {"name": name, "run": run}).status == 400
    refused = form(client, "/baselines", run=run, name=name, action="set")
    assert refused.status == 400
    assert "All runs" in refused.text
