"""The dashboard in a real browser: every page in light, dark and at phone width, and every flow by mouse and keyboard."""

import http.server
import json
import re
import shutil
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import answerkey
from answerkey.config import load_settings
from answerkey.datasets.golden_sets import read_questions
from answerkey.model.judgement import Feedback
from answerkey.model.tally import summarise
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from store.filling import add_run, finished, golden, good_reply

from .serving import golden_file, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install -y chromium"),
]

PAGES = {
    "runs": "/",
    "run": "/runs/aaaa1",
    "running": "/runs/cccc3",
    "question": "/runs/aaaa1/questions/q1?at=3",
    "compare": "/compare?run=aaaa1&run=bbbb2&sort=-change",
    "rank": "/compare?run=aaaa1&run=bbbb2&run=old1",
    "choose": "/compare",
    "replies": "/replies",
    "reply": "/replies/prod-1",
    "review": "/review?run=aaaa1",
    "feedback": "/feedback",
    "split": "/replies?by=category",
    "seen review": "/review?run=aaaa1&blind=false",
    "production review": "/review?source=production",
    "missing": "/runs/nope",
    "sign-in": "/login",
}

# Pages of a server that may start runs and edit its golden set.
ACTING_PAGES = {
    "jobs": "/jobs",
    "golden": "/golden?id=q1",
    "new golden": "/golden?reply=prod-2",
    "faults": "/runs/{faulted}/faults",
    "faulted run": "/runs/{faulted}",
    "home with faults": "/",
}


# A busy machine may take its time over a page.
expect.set_options(timeout=120_000)


def press(page, key):
    """Press a key once the page's script listens; earlier keys are lost."""
    page.wait_for_load_state("load")
    page.keyboard.press(key)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("browser") / "s.db")
    with open_store(path) as store:
        for day in range(4):
            add_run(store, f"old{day}", questions=golden(60), day=day, name=f"nightly {day}")
        add_run(store, "aaaa1", questions=golden(60), day=5, name="before")
        add_run(store, "bbbb2", good_reply, questions=golden(60), day=6, name="after")
        add_run(store, "cccc3", questions=golden(60), day=7, finish=False, asked=7, name="running")
        store.set_baseline("production", "aaaa1")
        book = FeedbackStore(store)
        for number in range(12):
            book.add(
                Feedback(
                    id=new_id(),
                    created_at=now(),
                    value=float(number % 3 != 0),
                    comment="wrong number" if number % 3 == 0 else "",
                    response_id=f"resp-q{number}-1",
                )
            )
    with serving(lambda: open_store(path)) as client:
        rows = [
            {
                "question": "What is fact 1 of the tax file?",
                "answer": "# Found\n- it is **fact1**\n- [the file](https://example.com/tax)",
                "tool_calls": [
                    {"name": "find", "start_ms": 100, "duration_ms": 300},
                    {"name": "sum", "duration_ms": 100},
                ],
                "latency_ms": 1000,
                "response_id": "prod-1",
            },
            {
                "question": "Is it?",
                "answer": "I encountered an error while searching...",
                "response_id": "prod-2",
            },
        ]
        assert client.post("/api/replies", {"replies": rows}).status == 201
        for name in ("prod-1", "prod-2"):
            verdict = {"value": "down", "response_id": name, "comment": "where is Montrose?"}
            assert client.post("/api/feedback", verdict).status == 201
    return path


@pytest.fixture(scope="module")
def client(path):
    with serving(lambda: open_store(path)) as running:
        yield running


@answerkey.fault_point("find")
def find(name):
    return {"value": name}


def fragile_bot(question):
    """Invents an answer if its tool fails."""
    try:
        found = find(question.split()[3])["value"]
    except RuntimeError:
        found = "99, as everybody knows"
    return {"answer": f"It is fact{found}.", "tool_calls": [{"name": "find", "arguments": {"name": "x"}}]}


@pytest.fixture(scope="module")
def acting(tmp_path_factory):
    """A server that may act, with the id of a run of faults and a job that failed."""
    folder = tmp_path_factory.mktemp("acting")
    path = str(folder / "s.db")
    questions = golden_file(folder, golden(6))
    # Nothing listens there.
    (folder / "answerkey.toml").write_text(
        'target = "mine"\nquestions = "golden.jsonl"\n[targets.mine]\nurl = "http://127.0.0.1:9/"\n'
    )
    kinds = ["error", "empty"]
    faulted = answerkey.faults(
        questions, target=fragile_bot, kinds=kinds, store=path, name="twins"
    ).faulted.id
    with serving(lambda: open_store(path), load_settings(folder), store_url=path, allow_run=True) as client:
        reply = {"question": "Is it?", "answer": "Yes.", "response_id": "prod-2"}
        assert client.post("/api/replies", {"replies": [reply]}).status == 201
        kind = "application/x-www-form-urlencoded"
        form = "action=run&target=mine&name=nightly"
        assert client.post("/jobs", form, content_type=kind, origin=client.url).status == 303
        while "data-refresh" in client.get("/jobs").text:
            time.sleep(0.1)
        yield client, {name: address.format(faulted=faulted) for name, address in ACTING_PAGES.items()}


@pytest.fixture(scope="module")
def chromium():
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*flags, "--disable-component-update"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, client):
    context = chromium.new_context(base_url=client.url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "console", lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None
    )
    yield opened
    context.close()
    assert problems == []


MODES = {
    "desktop": {},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
    # As wide as a window of 1280 pixels at 200%.
    "zoom": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},
}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_and_no_wider_than_the_screen(chromium, client, name):
    check_accessible(chromium, client, PAGES[name])


@pytest.mark.parametrize("name", ACTING_PAGES)
def test_pages_that_act_are_accessible_too(chromium, acting, name):
    client, addresses = acting
    check_accessible(chromium, client, addresses[name])


def test_what_an_edit_would_change_is_accessible(chromium, acting):
    client, addresses = acting

    def attempt(page):
        page.get_by_role("button", name="What would change?").click()
        expect(page.locator("section", has_text="Patch")).to_contain_text(
            "Nothing: the file has this question"
        )
        page.get_by_label("The question as JSON").fill('{"id": "q1", "question": "Is it?"}')
        page.get_by_role("button", name="What would change?").click()
        expect(page.get_by_label("Patch", exact=True).last).to_contain_text(
            '+{"id": "q1", "question": "Is it?"}'
        )

    check_accessible(chromium, client, addresses["golden"], attempt)


def check_accessible(chromium, client, address, act=None):
    """No violation and nothing wider than the screen, in every mode, light and dark, after `act` on the page."""
    for mode, options in MODES.items():
        context = chromium.new_context(base_url=client.url, color_scheme="light", **options)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto(address)
        if act is not None:
            act(page)
        if mode != "desktop":
            # Long lists are checked whole once: their rows look alike in every width.
            page.evaluate(
                "for (const row of document.querySelectorAll('tbody tr:nth-child(n + 13)')) row.remove()"
            )
        check_page(page, mode)
        # The same page with other colours.
        page.emulate_media(color_scheme="dark")
        check_page(page, f"dark {mode}", {"runOnly": ["color-contrast"]})
        if mode == "phone":
            page.set_viewport_size({"width": 375, "height": 700})
            check_width(page, mode)
        context.close()


def check_page(page, mode, options=None):
    found = Axe().run(page, options=options)
    violations = [
        f"{mode}: {one['id']}: {one['help']} {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found.response["violations"]
    ]
    assert violations == []
    check_width(page, mode)


def check_width(page, mode):
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, mode


@pytest.mark.parametrize(
    "name", ["runs", "run", "question", "compare", "rank", "review", "replies", "reply", "feedback"]
)
def test_everything_can_be_read_without_javascript(chromium, client, name):
    context = chromium.new_context(base_url=client.url, java_script_enabled=False)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(PAGES[name])
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#find-run")).to_be_hidden()
    context.close()


@pytest.mark.parametrize("name", ACTING_PAGES)
def test_pages_that_act_can_be_read_without_javascript(chromium, acting, name):
    client, addresses = acting
    context = chromium.new_context(base_url=client.url, java_script_enabled=False)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(addresses[name])
    expect(page.locator("h1")).to_be_visible()
    context.close()


def test_a_reply_is_rendered_or_raw_and_its_calls_are_on_a_time_line(page):
    page.goto("/replies/prod-1")
    expect(page.locator(".formatted li")).to_have_text(["it is fact1", "the file (example.com)"])
    page.locator("summary", has_text="as written").click()
    expect(page.locator(".formatted")).to_be_hidden()
    expect(page.locator(".reply")).to_contain_text("- it is **fact1**")
    page.locator("summary", has_text="formatted").click()
    expect(page.locator(".formatted")).to_be_visible()
    bars = page.locator(".waterfall li")
    expect(bars.nth(0)).to_contain_text("after 100 ms, took 300 ms")
    expect(bars.nth(1)).to_contain_text("start unknown")
    expect(bars.nth(0).locator(".took")).to_have_attribute("x", "10.00%")


def test_rows_by_keyboard_and_the_question_and_back(page):
    page.goto("/runs/aaaa1")
    press(page, "j")
    press(page, "j")
    expect(page.locator("tr.here")).to_have_count(1)
    press(page, "Enter")
    page.wait_for_url("**/questions/q5?at=1")
    press(page, "j")
    page.wait_for_url("**/questions/q8?at=2")
    press(page, "k")
    page.wait_for_url("**/questions/q5?at=1")
    press(page, "u")
    page.wait_for_url("**/runs/aaaa1?page=1#questions")


def test_search_by_keyboard_keeps_its_state_in_the_address(page):
    page.goto("/runs/aaaa1")
    press(page, "/")
    page.keyboard.type("fact16")
    press(page, "Enter")
    page.wait_for_url("**/runs/aaaa1?text=fact16#questions")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.locator("select[name=result]").select_option("passed")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No question matches")).to_be_visible()
    page.go_back()
    expect(page.locator("tr[data-row]")).to_have_count(1)


def test_the_first_question_is_seen_without_scrolling_and_the_table_is_sorted_and_kept(page, tmp_path):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/runs/aaaa1")
    expect(page.locator("tr[data-row]").first).to_be_in_viewport(ratio=0.8)
    page.get_by_role("link", name="Time", exact=True).click()
    page.wait_for_url("**/runs/aaaa1?sort=-latency_ms")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Time")
    page.locator("summary", has_text="More").click()
    page.get_by_label("A measure").select_option("response_quality")
    page.get_by_label("from").fill("40%")
    page.get_by_label("to", exact=True).fill("0.6")
    page.locator("details[open]").get_by_role("button", name="Show").click()
    expect(page.locator(".active-filters")).to_contain_text("Quality from 40% to 60%")
    expect(page.locator("tr[data-row]")).to_have_count(20)
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as loading:
        page.get_by_role("link", name="JSONL").click()
    loading.value.save_as(tmp_path / "view.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "view.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"q{number}" for number in range(1, 60, 3)]
    assert list(rows[0])[:4] == ["id", "grade", "question", "category"]
    page.get_by_role("link", name="Quality from").click()
    expect(page.locator("tr[data-row]")).to_have_count(50)


def test_from_home_to_why_it_got_worse_in_three_clicks(page, tmp_path, chromium):
    """A business owner's minute."""
    path = str(tmp_path / "worse.db")
    with open_store(path) as store:
        add_run(store, "good1", good_reply, questions=golden(60), day=0, name="monday")
        add_run(store, "poor2", questions=golden(60), day=1, name="tuesday")
    with serving(lambda: open_store(path)) as served:
        page.goto(f"{served.url}/")
        page.get_by_role("link", name="“tuesday” is worse than the previous run").click()
        page.get_by_role("link", name="documents", exact=True).first.click()
        expect(page.locator("tr[data-row]").first).to_contain_text("now ends in an error: timeout")
        page.locator("summary", has_text="Both replies").first.click()
        expect(page.locator(".side").first).to_contain_text("It is fact2 in Montrose.")


def test_a_dot_of_the_trend_is_followed_by_keyboard(page):
    page.goto("/")
    dot = page.locator("svg.chart a[href='/runs/old1']").first
    dot.focus()
    press(page, "Enter")
    page.wait_for_url("**/runs/old1")


def test_the_pane_follows_the_selected_row(page):
    page.goto("/runs/aaaa1")
    press(page, "v")
    expect(page.locator("#pane h1")).to_have_text("What is fact 2 of the documents file?")
    press(page, "j")
    expect(page.locator("#pane h1")).to_have_text("What is fact 5 of the documents file?")
    press(page, "k")
    expect(page.locator("#pane h1")).to_have_text("What is fact 2 of the documents file?")
    expect(page.locator("#pane")).to_contain_text("no reply in 60 s")
    press(page, "Escape")
    expect(page.locator("#pane")).to_be_hidden()


def test_a_click_or_a_tap_on_a_row_opens_the_pane(page, chromium, client):
    page.goto("/runs/aaaa1")
    page.locator("tr[data-row]").nth(2).locator("td").last.click()
    expect(page.locator("#pane h1")).to_have_text("What is fact 8 of the documents file?")
    press(page, "j")
    expect(page.locator("#pane h1")).to_have_text("What is fact 11 of the documents file?")
    page.locator("#pane-close").click()
    # A link in a row leads to its page.
    page.locator("tr[data-row] a[data-open]").first.click()
    page.wait_for_url("**/questions/q2?at=0")
    context = chromium.new_context(
        base_url=client.url, viewport={"width": 390, "height": 844}, has_touch=True
    )
    context.set_default_timeout(120_000)
    phone = context.new_page()
    phone.goto("/runs/aaaa1")
    phone.locator("tr[data-row]").nth(1).locator("td").first.tap()
    expect(phone.locator("#pane h1")).to_have_text("What is fact 5 of the documents file?")
    context.close()


def test_heads_stay_and_texts_are_wide(page):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/runs/aaaa1")
    table = page.locator(".work-table")
    table.evaluate("element => { element.scrollTop = 600 }")
    expect(page.locator("tr[data-row]").first).not_to_be_in_viewport()
    expect(page.locator(".work-table th").first).to_be_in_viewport(ratio=0.9)
    page.goto("/replies")
    widths = page.locator("tr[data-row] td.wide").evaluate_all("cells => cells.map(cell => cell.clientWidth)")
    assert min(widths) >= 200


@pytest.mark.parametrize("name", ["runs", "run", "compare", "rank", "replies"])
def test_no_column_is_off_the_edge(page, name):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(PAGES[name])
    for kind in (".work-table", ".scroll"):
        hidden = page.locator(kind).evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
        # Widths are rounded to whole pixels.
        assert max(hidden) <= 1, (kind, hidden)


def test_columns_are_hidden_shown_and_put_in_order(page):
    page.goto("/runs/aaaa1?result=lost")
    page.locator("summary", has_text="Columns").click()
    menu = page.locator("form.ticks")
    for title in ("Category", "Tools", "Quality", "No errors", "Why points were lost"):
        menu.get_by_label(title, exact=True).uncheck()
    menu.get_by_label("Reply", exact=True).check()
    # By keyboard too; the button keeps the focus.
    menu.get_by_role("button", name="Move Question to the left").focus()
    press(page, "Enter")
    menu.get_by_role("button", name="Move Question to the left").click()
    menu.get_by_role("button", name="Move Grade to the right").click()
    menu.get_by_role("button", name="Show these columns").click()
    page.wait_for_url("**columns=question**")
    heads = page.locator(".work-table th")
    shown = ["Question", "Grade", "Score", "Time", "Reply"]
    expect(heads).to_have_text(shown)
    assert "result=lost" in page.url
    # The order stays while one sorts, in the file, and in the menu.
    heads.get_by_text("Time").click()
    page.wait_for_url("**latency_ms**")
    expect(heads).to_have_text(shown)
    page.locator("summary", has_text="Columns").click()
    expect(page.locator("form.ticks label").first).to_have_text("Question")
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as loading:
        page.get_by_role("link", name="CSV").click()
    header = Path(loading.value.path()).read_text("utf-8-sig").splitlines()[0]
    assert header == "id,question,grade,score,latency_ms,reply"


def test_the_menu_of_columns_is_accessible_and_works_without_javascript(chromium, client):
    for script in (True, False):
        context = chromium.new_context(base_url=client.url, java_script_enabled=script)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto("/runs/aaaa1?columns=score&columns=question")
        expect(page.locator(".work-table th")).to_have_text(["Score", "Question"])
        page.locator("summary", has_text="Columns").click()
        if script:
            assert Axe().run(page).response["violations"] == []
        else:
            expect(page.locator("[data-move]").first).to_be_hidden()
        page.get_by_label("Id", exact=True).check()
        page.get_by_role("button", name="Show these columns").click()
        page.wait_for_url("**columns=id**")
        expect(page.locator(".work-table th")).to_have_text(["Score", "Question", "Id"])
        context.close()


def widths(page):
    """Column → its width on the screen."""
    heads = page.locator(".work-table th[aria-label]")
    return dict(heads.evaluate_all("heads => heads.map(head => [head.dataset.column, head.offsetWidth])"))


def handle(page, title):
    return page.get_by_role("separator", name=f"Width of {title}", exact=True)


def drag(page, title, by):
    box = handle(page, title).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by / 2, y)
    page.mouse.move(x + by, y)
    page.mouse.up()


def test_columns_get_the_width_that_one_drags_them_to(page):
    page.goto("/runs/aaaa1")
    expect(handle(page, "Question")).to_be_attached()
    natural = widths(page)
    drag(page, "Category", -30)
    drag(page, "Question", 90)
    now = widths(page)
    changed = {"category": natural["category"] - 30, "question": natural["question"] + 90}
    assert now == natural | changed, "no other column moves"
    expect(handle(page, "Question")).to_have_attribute("aria-valuenow", str(changed["question"]))
    # Sorting, the next page of the list and another run keep them.
    page.get_by_role("link", name="Question", exact=True).click()
    page.wait_for_url("**sort=**")
    assert widths(page) == now
    page.goto("/runs/bbbb2")
    assert {name: widths(page)[name] for name in changed} == changed
    page.goto("/")
    expect(handle(page, "Run")).to_be_attached()
    assert page.locator(".work-table table").evaluate("e => getComputedStyle(e).tableLayout") == "auto"
    # A column that was not there gets a width too.
    page.goto("/runs/aaaa1?columns=question&columns=reply")
    assert widths(page)["question"] == changed["question"]
    assert widths(page)["reply"] > 100
    page.goto("/runs/aaaa1")
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("button", name="Reset the widths").click()
    assert widths(page) == natural
    page.reload()
    assert widths(page) == natural


def test_widths_are_changed_by_keyboard(page):
    page.goto("/runs/aaaa1")
    handle(page, "Question").focus()
    natural = widths(page)
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    assert widths(page)["question"] == natural["question"] + 32
    for _ in range(100):
        page.keyboard.press("ArrowLeft")
    assert widths(page)["question"] == 40
    assert "/runs/aaaa1" in page.url
    page.keyboard.press("Enter")
    assert widths(page) == natural
    drag(page, "Score", 40)
    handle(page, "Score").dblclick()
    assert widths(page) == natural


def test_widths_are_changed_by_touch_on_a_phone(chromium, client):
    context = chromium.new_context(base_url=client.url, has_touch=True, **MODES["phone"])
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto("/runs/aaaa1")
    handle(page, "Question").scroll_into_view_if_needed()
    before, box = widths(page), handle(page, "Question").bounding_box()
    assert box["width"] >= 24
    point = {"x": box["x"] + 12, "y": box["y"] + 8}
    touch = context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    moved = {**point, "x": point["x"] - 40}
    touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [moved]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert widths(page) == before | {"question": before["question"] - 40}
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.reload()
    assert widths(page)["question"] == before["question"] - 40
    context.close()


def test_remembered_widths_move_nothing_while_the_page_loads(page):
    page.goto("/runs/aaaa1")
    drag(page, "Question", 150)
    page.add_init_script(
        "window.shift = 0;"
        "new PerformanceObserver(list => { for (const one of list.getEntries()) window.shift += one.value; })"
        ".observe({type: 'layout-shift', buffered: true});"
    )
    page.reload()
    expect(handle(page, "Question")).to_be_attached()
    page.wait_for_function(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    )
    assert page.evaluate("window.shift") == 0


@pytest.mark.parametrize(
    "stored", ["{", "[]", '"x"', '{"runs": {"question": "1px } body { display: none"}}', '{"runs": 7}']
)
def test_whatever_the_browser_remembers_the_page_can_be_read(page, stored):
    page.goto("/runs/aaaa1")
    page.evaluate("text => localStorage.setItem('answerkey column widths', text)", stored)
    page.reload()
    expect(page.locator("h1")).to_be_visible()
    drag(page, "Question", 20)
    assert widths(page)["question"] > 60


def test_reasons_are_not_cut(page):
    page.goto("/runs/aaaa1?result=lost")
    cut = page.locator("td.c-why > *").evaluate_all(
        "all => all.filter(one => one.scrollHeight > one.clientHeight + 1)"
    )
    assert cut == []


def test_verdicts_of_users_are_opened_by_keys(page):
    page.goto("/feedback#verdicts")
    press(page, "j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/(runs|replies)/"))


def test_new_rows_of_a_running_run_appear(page, tmp_path):
    path = str(tmp_path / "live.db")
    with open_store(path) as store:
        info = add_run(store, "live", questions=golden(20), finish=False, asked=3)
        results = list(store.results(add_run(store, "whole", questions=golden(20), day=-1)))
    with serving(lambda: open_store(path)) as served:
        page.goto(f"{served.url}/runs/live")
        expect(page.locator("tr[data-row]")).to_have_count(3)
        with open_store(path) as store:
            store.add(info, [result for result in results if result.position in (3, 4)])
        expect(page.locator("tr[data-row]")).to_have_count(5)


def test_the_run_switcher(page):
    page.goto("/feedback")
    press(page, "Control+k")
    expect(page.locator("#switcher-list li")).to_have_count(7)
    page.keyboard.type("after")
    expect(page.locator("#switcher-list li")).to_have_count(1)
    press(page, "Enter")
    page.wait_for_url("**/runs/bbbb2")
    press(page, "?")
    expect(page.locator("#keys")).to_be_visible()


def test_marked_runs_are_compared(page):
    page.goto("/")
    page.get_by_label("Compare before").check()
    page.get_by_label("Compare after").check()
    page.get_by_role("button", name="Compare the marked runs").click()
    page.wait_for_url("**/compare?run=*")
    expect(page.locator(".outcome .word")).to_have_text("Better")
    page.locator("select[name=show]").select_option("regressions")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No question got worse")).to_be_visible()


def test_two_runs_are_chosen_and_compared(page):
    page.goto("/compare")
    page.get_by_label("Base").select_option("aaaa1")
    page.get_by_label("Candidate").select_option("bbbb2")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?base=aaaa1&run=bbbb2")
    expect(page.locator(".outcome .word")).to_have_text("Better")
    expect(page.locator(".measures svg.interval")).to_have_count(6)


def test_a_baseline_is_set_and_unset(page):
    page.goto("/runs/bbbb2")
    page.get_by_text("Baseline", exact=True).click()
    page.get_by_label("Name", exact=True).fill("spring release")
    page.get_by_role("button", name="Make this run the baseline").click()
    expect(page.locator("h1 .tag.baseline")).to_have_text("baseline spring release")
    page.get_by_text("Baseline", exact=True).click()
    page.get_by_role("button", name="No longer the baseline spring release").click()
    expect(page.locator("h1 .tag.baseline")).to_have_count(0)


def test_a_production_reply_is_found_read_and_made_a_golden_case(page, tmp_path):
    page.goto("/replies")
    press(page, "/")
    page.keyboard.type("fact1")
    press(page, "Enter")
    page.wait_for_url("**/replies?text=fact1#replies")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.get_by_text("where is Montrose?")).to_be_visible()
    press(page, "j")
    press(page, "Enter")
    page.wait_for_url("**/replies/prod-1")
    page.get_by_label("What a good reply contains").fill("fact1\nMontrose")
    with page.expect_download() as loading:
        page.get_by_role("button", name="Download the case").click()
    loading.value.save_as(tmp_path / "case.jsonl")
    [question] = read_questions(tmp_path / "case.jsonl")
    assert question.expected_keywords == ("fact1", "Montrose")
    press(page, "u")
    page.wait_for_url("**/replies")


def test_the_keys_are_shown_and_closed_again(page):
    page.goto("/")
    press(page, "?")
    expect(page.locator("#keys")).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#keys")).to_be_hidden()
    press(page, "k")
    expect(page.locator("tr.here")).to_have_count(1)


def test_on_a_phone_the_verdict_is_within_reach_of_the_thumb(chromium, client):
    context = chromium.new_context(
        base_url=client.url, viewport={"width": 375, "height": 700}, is_mobile=True
    )
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto("/review?run=aaaa1")
    expect(page.get_by_role("button", name="Don’t trust")).to_be_in_viewport()
    context.close()


def test_the_review_lane_by_keyboard(page, path):
    page.goto("/review?run=aaaa1")
    first = page.locator(".asked").inner_text()
    press(page, "c")
    page.keyboard.type("says nothing of Montrose")
    press(page, "Escape")
    press(page, "d")
    expect(page.locator(".queue")).to_contain_text("1 done")
    expect(page.locator(".asked")).not_to_have_text(first)
    # Taken back and given once more.
    press(page, "z")
    expect(page.locator(".queue")).to_contain_text("0 done")
    expect(page.locator(".asked")).to_have_text(first)
    press(page, "c")
    page.keyboard.type("says nothing of Montrose")
    press(page, "Escape")
    press(page, "d")
    expect(page.locator(".queue")).to_contain_text("1 done")
    press(page, "s")
    page.wait_for_url("**at=1")
    press(page, "t")
    expect(page.locator(".queue")).to_contain_text("2 done")
    with open_store(path) as store:
        given = FeedbackStore(store).verdicts("aaaa1", source="review")
    assert [(item.value, item.comment) for item in reversed(given)] == [
        (0.0, "says nothing of Montrose"),
        (1.0, ""),
    ]


def test_a_chat_page_of_an_allowed_origin_sends_a_thumb(chromium, path, tmp_path):
    """The snippet of docs/feedback.md, in a page of another origin."""
    guide = (Path(__file__).parents[2] / "docs" / "feedback.md").read_text()
    snippet = re.search(r"```html\n(.*?)```", guide, re.DOTALL)
    assert snippet is not None
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    chat = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=chat.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{chat.server_address[1]}"
    try:
        with serving(lambda: open_store(path), allow_origins=(origin,)) as client:
            text = snippet[1].replace("http://127.0.0.1:8765", client.url)
            reply = '<p data-reply-id="resp-q0-1">It is fact0.</p>'
            (tmp_path / "chat.html").write_text(
                f"<!doctype html><meta charset=utf-8><title>chat</title>{reply}{text}"
            )
            context = chromium.new_context()
            context.set_default_timeout(120_000)
            page = context.new_page()
            page.goto(f"{origin}/chat.html")
            with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
                page.get_by_role("button", name="👎").click()
            assert sent.value.status == 201
            context.close()
            page_of_verdicts = client.get("/api/feedback?value=down").json
            assert page_of_verdicts["items"][0]["response_id"] == "resp-q0-1"
    finally:
        chat.shutdown()
        chat.server_close()


def test_the_theme_can_be_forced(page):
    page.goto("/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("form[action='/theme'] button").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    # The page may be there before its style sheets are.
    expect(page.locator("body")).not_to_have_css("background-color", light)


def test_the_progress_of_a_running_run_is_updated(page, path):
    page.goto("/runs/cccc3")
    expect(page.locator("[data-done]")).to_have_text("7")
    with open_store(path) as store:
        info = store.find_run("cccc3")
        store.finish_run(finished(info), summarise(store.results(info), planned=60))
    # The page notices by itself that the run has ended.
    expect(page.locator(".hero .letter")).to_be_visible()


def test_down_voted_questions_download_with_one_click(page):
    page.goto("/feedback")
    with page.expect_download() as loading:
        page.get_by_role("link", name="Download golden cases").click()
    assert loading.value.suggested_filename == "golden-from-feedback.jsonl"


def test_on_a_phone_the_menu_shows_where_one_is(chromium, acting):
    client, _ = acting
    context = chromium.new_context(
        base_url=client.url, viewport={"width": 390, "height": 844}, is_mobile=True
    )
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto("/jobs")
    expect(page.locator("nav [aria-current]")).to_have_text("Start")
    expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.99)
    context.close()
