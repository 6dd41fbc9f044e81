"""The chat page in a real browser."""

import shutil
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(reason="no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh page that fails the test on any script error or policy violation."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    page.close()
    assert problems == []


def test_ask_see_tools_and_sources_and_judge(service: Any, page: Any) -> None:
    from playwright.sync_api import expect

    page.goto(service.url)
    page.get_by_label("Your question").fill(
        "What does the operating agreement say about selling real estate?"
    )
    page.get_by_role("button", name="Ask").click()
    card = page.locator(".reply").first
    card.get_by_text("supermajority of 80%").first.wait_for()
    expect(card.locator(".chip")).to_have_text(["search_document_content"])
    card.get_by_text("source", exact=False).first.click()
    expect(card.locator(".sources li").first).to_contain_text("Operating Agreement")
    card.get_by_role("button", name="Not helpful").click()
    card.get_by_label("What was wrong?").fill("Which paragraph is it?")
    card.get_by_role("button", name="Send").click()
    card.get_by_text("that is noted").wait_for()
    with sqlite3.connect(service.log.path) as db:
        rows = db.execute(
            "SELECT value, comment, question FROM feedback WHERE comment LIKE 'Which par%'"
        ).fetchall()
    db.close()
    assert rows == [
        ("down", "Which paragraph is it?", "What does the operating agreement say about selling real estate?")
    ]


def test_an_example_and_a_follow_up_with_the_keyboard(service: Any, page: Any) -> None:
    page.goto(service.url)
    page.get_by_role("button", name="What was my rental income in August 2024?").click()
    page.get_by_text("$16,144").wait_for()
    page.get_by_label("Your question").fill("And in May?")
    page.keyboard.press("Enter")
    page.get_by_text("$13,069").wait_for()
    page.locator(".reply").nth(1).get_by_role("button", name="Helpful", exact=True).click()
    page.locator(".reply").nth(1).get_by_text("that is noted").wait_for()


def test_text_is_never_run(service: Any, page: Any) -> None:
    from playwright.sync_api import expect

    page.goto(service.url)
    nasty = '<img src=x onerror="document.title=1"><script>document.title=2</script> rent?'
    page.get_by_label("Your question").fill(nasty)
    page.get_by_role("button", name="Ask").click()
    page.locator(".judge").wait_for()
    expect(page.locator(".question")).to_have_text(nasty)
    assert page.locator("#log img, #log script").count() == 0
    assert "assistant" in page.title()


def test_a_failure_is_told(start: Any, browser: Any) -> None:
    from playwright.sync_api import expect

    running = start("flaky?kinds=memory&rate=1")
    other = browser.new_page()
    other.set_default_timeout(60_000)
    other.goto(running.url)
    other.get_by_label("Your question").fill("What is our EIN?")
    other.get_by_role("button", name="Ask").click()
    other.get_by_text("that did not work").wait_for()
    expect(other.locator(".reply.failed")).to_contain_text("MemoryError")
    other.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_by_everyone_and_on_a_phone(service: Any, browser: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # axe brings its own script, which the page's policy would refuse
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 360, "height": 740}, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    for path in ("/", "/docs"):
        page.goto(service.url + path)
        if path == "/":
            page.get_by_role("button", name="Is anything overdue?").click()
            page.locator(".judge").wait_for()
            page.locator("details summary").first.click()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()
