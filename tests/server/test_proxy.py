"""Behind a real proxy with TLS, in a real browser: how a team deploys the dashboard."""

import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from answerkey.store import open_store
from answerkey.store.feedback import Users
from store.filling import add_run, golden, good_reply

from .proxied import MARKS, browser, proxied, sign_in

pytestmark = MARKS


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The public address, and a token for each role."""
    folder = tmp_path_factory.mktemp("proxy")
    path = str(folder / "s.db")
    with open_store(path) as store:
        add_run(store, "aaaa1", questions=golden(20), day=0, name="before")
        add_run(store, "dddd4", questions=golden(20), day=0, name="to be deleted")
        add_run(store, "bbbb2", good_reply, questions=golden(20), day=1, name="after")
        tokens = {role: Users(store).add(role, role) for role in ("viewer", "reviewer", "admin")}
    with proxied(folder, path) as public:
        yield public, tokens


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@pytest.fixture
def page(chromium):
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


def test_sign_in_filter_compare_review_and_sign_out(page, deployed):
    public, tokens = deployed
    sign_in(page, public, tokens["reviewer"])
    [cookie] = page.context.cookies()
    assert (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (
        "__Host-answerkey",
        True,
        True,
        "Lax",
    )
    assert tokens["reviewer"] not in cookie["value"]
    page.goto(f"{public}/runs/aaaa1")
    page.get_by_label("Search").fill("fact 4 ")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**/runs/aaaa1?*text=fact*")
    expect(page.locator("[data-row]")).to_have_count(1)
    # The row is there before the script that opens and closes menus.
    page.wait_for_load_state("load")
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as loading:
        page.get_by_role("link", name="CSV").click()
    assert loading.value.suggested_filename == "questions-of-aaaa1.csv"
    assert len(Path(loading.value.path()).read_text("utf-8-sig").splitlines()) == 2
    page.goto(f"{public}/compare?run=aaaa1&run=bbbb2")
    expect(page.locator("main")).to_contain_text("better")
    page.goto(f"{public}/review?run=aaaa1")
    page.get_by_role("button", name="Don’t trust").click()
    expect(page.locator("main")).to_contain_text("1 done")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{public}/login")
    # The cookie is worth nothing any more, even to someone who kept it.
    page.context.add_cookies([cookie])
    page.goto(public)
    assert "/login" in page.url


def test_an_admin_deletes_a_run_and_a_viewer_cannot(page, deployed):
    public, tokens = deployed
    sign_in(page, public, tokens["viewer"], "/runs/dddd4")
    expect(page.locator("summary", has_text="Delete")).to_have_count(0)
    page.context.clear_cookies()
    sign_in(page, public, tokens["admin"], "/runs/dddd4")
    page.locator("summary", has_text="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    # The box was not ticked.
    assert page.url == f"{public}/runs/dddd4"
    page.get_by_label("Delete this run").check()
    page.get_by_role("button", name="Delete for good").click()
    page.wait_for_url(f"{public}/")
    expect(page.locator("main")).not_to_contain_text("to be deleted")
    page.goto(f"{public}/runs/dddd4")
    expect(page.locator("main")).to_contain_text("No run")


def test_a_link_leads_to_where_it_should_after_signing_in(page, deployed):
    public, tokens = deployed
    sign_in(page, public, tokens["viewer"], "/runs/aaaa1?category=tax")


def ask(public: str, path: str, **headers: str):
    port = public.rpartition(":")[2]
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return urllib.request.urlopen(request, context=context)
    except urllib.error.HTTPError as error:
        return error


def test_programs_come_with_their_token_and_others_not_at_all(deployed):
    public, tokens = deployed
    host = public.removeprefix("https://")
    with ask(public, "/api/runs", Host=host) as refused:
        assert refused.status == 401
    with ask(public, "/api/runs", Host="evil.example") as refused:
        assert refused.status == 421
    with ask(public, "/api/runs", Host=host, Authorization=f"Bearer {tokens['viewer']}") as answer:
        assert answer.status == 200
