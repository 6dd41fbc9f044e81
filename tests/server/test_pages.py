import re

import pytest

from answerkey.comparison.columns import columns_from_store
from answerkey.comparison.runs import compare_runs
from answerkey.store import open_store

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
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_run_page_shows_the_worst_first_and_one_page_of_rows_only(client):
    text = client.get("/runs/aaaa1").text
    assert text.count('class="row card"') == 50
    assert text.index("missing keywords") < text.index("Page 1 of 2")
    assert "likely" in text
    assert "60 questions" in text


def test_filters_are_in_the_address_and_lead_to_the_question_and_back(client):
    text = client.get("/runs/aaaa1?result=failed&category=tax&sort=order").text
    link = re.search(r'href="(/runs/aaaa1/questions/q4\?[^"]+)"', text)
    assert link is not None
    question = client.get(link[1].replace("&amp;", "&")).text
    assert "2 of 20" in question
    assert "/runs/aaaa1/questions/q7?at=2&amp;result=failed&amp;category=tax&amp;sort=order" in question


def test_a_question_shows_found_and_missing_keywords_tools_and_history(client):
    text = client.get("/runs/aaaa1/questions/q1").text
    assert re.search(r'<mark class="[^"]*keyword[^"]*"[^>]*>fact1</mark>', text)
    assert 'Montrose</bdi><span class="vh"> (missing)' in text
    assert "query_database was not called" in text
    assert text.count('<td class="name">') == 3


def test_the_compare_page_says_how_sure_it_is(client):
    text = client.get("/compare?run=bbbb2&run=aaaa1&sort=best").text
    # The older run is the base, however they are named.
    assert text.index("<bdi>before</bdi>") < text.index("<bdi>after</bdi>")
    assert "Better" in text
    assert "likely between" in text
    assert "<ins>" in text
    assert client.get("/compare?base=bbbb2&run=aaaa1").text.count("Worse") == 1


def test_regressions_only(client):
    better = client.get("/compare?base=aaaa1&run=bbbb2&show=regressions").text
    assert "No question got worse" in better
    worse = client.get("/api/compare?base=bbbb2&run=aaaa1&show=regressions").json
    assert worse["paging"]["total"] == 40
    assert len(worse["rows"]) == 20


def test_a_run_under_way_tells_how_far_it_is(client):
    assert "under way" in client.get("/runs/cccc3").text
    progress = client.get("/api/runs/cccc3/progress").json
    assert (progress["done"], progress["planned"], progress["status"]) == (7, 60, "running")


@pytest.mark.parametrize("name", ["score", "latency", "cost"])
def test_charts_are_pictures_that_can_run_nothing(client, name):
    answer = client.get(f"/charts/{name}.svg?set=golden&theme=dark&size=small")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert b"<script" not in answer.body
    assert (
        client.get(
            f"/charts/{name}.svg?set=golden&theme=dark&size=small", if_none_match=answer.headers["etag"]
        ).status
        == 304
    )


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


def test_the_verdict_is_the_one_of_answerkey_compare(client, store_path):
    shown = client.get("/api/compare?base=aaaa1&run=bbbb2").json["versus"][0]
    with open_store(store_path) as store:
        base, candidate = columns_from_store(store, map(store.find_run, ("aaaa1", "bbbb2")))
        told = compare_runs(base, candidate)
    assert (shown["verdict"], shown["pairs"]) == (told.verdict, told.paired)
    for name in ("mean", "low", "high", "p_value"):
        assert shown["difference"][name] == pytest.approx(getattr(told.difference, name))
    assert shown["detectable"] == pytest.approx(told.detectable)
    assert (shown["fixed"], shown["broken"]) == (told.fixed, told.broken)
