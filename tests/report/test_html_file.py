"""The HTML report in a real browser: inert, self-contained, usable, and of bounded size."""

import re
import tracemalloc
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from answerkey.model.question import Question
from answerkey.model.reply import Reply, Timings
from answerkey.model.run import Run, StreamedResults
from answerkey.model.scorecard import Score, Scorecard, Trial
from answerkey.model.tally import summarise
from answerkey.report.documents import MOST_ROWS, write_html
from answerkey.report.result_files import write_report

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE_MS = 120_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


def html_of(run: Run) -> str:
    file = BytesIO()
    write_html(run, file)
    return file.getvalue().decode("utf-8")


def test_failures_come_first_with_their_reasons(golden_run: Run) -> None:
    page = html_of(golden_run)
    assert page.lstrip().lower().startswith("<!doctype html>")
    order = [
        page.index(text)
        for text in ("rental income in August 2024", "business purpose", "address? (wording 0)")
    ]
    list_start = page.index('id="questions"')
    assert all(page.index(text, list_start) for text in ("august", "purpose"))
    assert order[2] > page.index("business purpose", list_start)
    assert "did not call search_document_content" in page


def test_it_tells_the_result_in_plain_words(golden_run: Run) -> None:
    page = html_of(golden_run)
    assert "The chatbot “demo” was asked 15 questions from “golden” and scored 87.4%, grade B" in page
    assert "1 reply ended in an error (1 timeout)" in page


def test_spans_are_marked(golden_run: Run) -> None:
    page = html_of(golden_run)
    assert re.search(r'<mark class="keyword" title="[^"]*442300 = 442,300[^"]*">\$</mark>', page)
    assert re.search(
        r'<mark class="keyword linked" title="[^"]*sources\[0\]\.text: 442,300[^"]*">442,300</mark>', page
    )
    assert re.search(r'<mark class="unlinked" title="not found in the evidence">1987</mark>', page)


def test_claims_and_judges_are_explained(golden_run: Run) -> None:
    page = html_of(golden_run)
    assert "Bought in 1987.: no evidence has this date" in page
    assert "<small>model-x, completeness</small> <bdi>4: omits depreciation" in page


def test_nothing_is_loaded_and_hostile_text_is_escaped(hostile_run: Run) -> None:
    page = html_of(hostile_run)
    assert len(re.findall(r"<script\b", page)) == 1
    assert not re.search(r"<(img|iframe|link|object|embed)\b", page)
    assert not re.search(r"\s(src|href)=\"(?!#)", page)
    assert not re.search(r"\sstyle=", page)
    assert "\x1b" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    assert len(page) < 300_000


def test_a_conversation_and_trials(run_of: Callable[..., Run]) -> None:
    turns = (Question(id="c#1", question="First?"), Question(id="c#2", question="Second?"))
    question = Question(id="c", question="First?", turns=turns)
    good = Scorecard(
        components={"error_handling": Score("error_handling", 1.0, "no error", 1.0)},
        total=1.0,
        grade="A",
        passed=True,
    )
    bad = Scorecard(
        components={"error_handling": Score("error_handling", 0.0, "empty", 1.0)},
        total=0.0,
        grade="F",
        passed=False,
    )
    both = Scorecard(components=good.components, total=0.5, grade="F", passed=False, turns=(good, bad))
    results = [
        Trial(question=question, number=trial, replies=(Reply(text="one"), Reply(text="")), scorecard=both)
        for trial in (1, 2)
    ]
    page = html_of(run_of(results, repeat=2))
    assert "0 of 2 trials passed" in page
    assert "Second?" in page
    assert "empty reply" in page


def many(number: int) -> Run:
    """A large run that is read, not held."""

    def read() -> Iterator[Trial]:
        for index in range(number):
            value = 1.0 if index % 4 else 0.0
            yield Trial(
                question=Question(id=f"q{index}", question=f"Question {index}?", category=f"c{index % 7}"),
                number=1,
                replies=(Reply(text="word " * 2_000, timings=Timings(latency_ms=1.0)),),
                scorecard=Scorecard(
                    components={
                        "response_quality": Score(
                            "response_quality", value, "reason", 1.0, {"missing": ["x"]}
                        )
                    },
                    total=value,
                    grade="A" if value else "F",
                    passed=bool(value),
                ),
            )

    from report.conftest import make_run

    run = make_run([])
    return Run(info=run.info, summary=summarise(read(), planned=number), results=StreamedResults(read))


def written(run: Run, path: Path) -> int:
    """Write the report and return the peak of memory that it took."""
    tracemalloc.start()
    write_report(run, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_a_large_run_is_cut_and_says_so(tmp_path: Path) -> None:
    small, large = tmp_path / "small.html", tmp_path / "large.html"
    small_peak, large_peak = written(many(2_000), small), written(many(6_000), large)
    page = large.read_text("utf-8")
    assert page.count("<details") == MOST_ROWS
    assert "the worst 500 of the 1,500 that failed" in page
    assert abs(large.stat().st_size - small.stat().st_size) < 0.1 * small.stat().st_size
    # Three times the run, the same memory.
    assert large_peak < 1.2 * small_peak


def test_all_failures_are_shown_before_any_pass(run_of: Callable[..., Run]) -> None:
    page = html_of(many(1_000))
    assert "all 250 of the 250 that failed, then the first that passed" in page


# In the browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(reason="chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


class Opened:
    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(PATIENCE_MS)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    opened: list[Opened] = []

    def open_(run: Run, **options: Any) -> Opened:
        path = tmp_path / f"{len(opened)}.html"
        write_report(run, path)
        opened.append(Opened(browser, path, **options))
        return opened[-1]

    yield open_
    for report in opened:
        report.page.close()


def shows(page: Any, number: int) -> None:
    """So many questions can be seen; a busy browser may take its time."""
    from playwright.sync_api import expect

    expect(page.locator("details.question:visible")).to_have_count(number, timeout=PATIENCE_MS)


def opened_are(page: Any, number: int) -> None:
    """So many questions are opened."""
    from playwright.sync_api import expect

    expect(page.locator("details.question[open]")).to_have_count(number, timeout=PATIENCE_MS)


@pytest.mark.browser
def test_filters_and_search(golden_run: Run, open_report: Callable[..., Opened]) -> None:
    from playwright.sync_api import expect

    report = open_report(golden_run)
    page = report.page
    shows(page, 15)
    page.select_option("#status", "failed")
    expect(page.locator("details.question:visible .text")).to_have_text(
        [
            "What was my rental income in August 2024?",
            "What's our business purpose in the operating agreement?",
        ]
    )
    expect(page.locator("#shown")).to_have_text("2 of 15 questions match")
    page.select_option("#status", "error")
    shows(page, 1)
    page.select_option("#status", "")
    page.select_option("#category", "tax")
    shows(page, 2)
    page.select_option("#grade", "A")
    shows(page, 1)
    page.click("button[type=reset]")
    shows(page, 15)
    # Words inside the closed details are searched, in any order.
    page.fill("#search", "schedule DEPRECIATION")
    shows(page, 1)
    page.fill("#search", "nothing has this")
    expect(page.locator("#nothing")).to_be_visible()
    assert report.problems == []


@pytest.mark.browser
def test_details_open_and_close(golden_run: Run, open_report: Callable[..., Opened]) -> None:
    from playwright.sync_api import expect

    page = open_report(golden_run).page
    first = page.locator("details.question").first
    expect(first.locator(".turn")).to_be_hidden()
    first.locator("summary").click()
    expect(first.locator(".turn")).to_be_visible()
    page.click("#open")
    opened_are(page, 15)
    page.click("#close")
    opened_are(page, 0)


@pytest.mark.browser
def test_no_network_no_script_of_others(hostile_run: Run, open_report: Callable[..., Opened]) -> None:
    report = open_report(hostile_run)
    report.page.click("#open")
    assert report.page.evaluate("window.hacked") is None
    assert [url for url in report.requests if not url.startswith("file:")] == []
    assert report.problems == []
    # The policy itself holds: an injected script does not run.
    report.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 2'; document.body.append(s); }"
    )
    assert report.page.evaluate("window.hacked") is None


@pytest.mark.browser
def test_dark_mode_and_narrow_screens(golden_run: Run, open_report: Callable[..., Opened]) -> None:
    light = open_report(golden_run, color_scheme="light").page
    dark = open_report(golden_run, color_scheme="dark", viewport={"width": 360, "height": 740}).page
    colour = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(colour) != dark.evaluate(colour)
    dark.click("#open")
    assert dark.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.browser
def test_printing_shows_the_failures_in_full(golden_run: Run, open_report: Callable[..., Opened]) -> None:
    page = open_report(golden_run).page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened_are(page, 2)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    opened_are(page, 0)
    assert page.pdf(format="A4")[:4] == b"%PDF"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(golden_run: Run, tmp_path: Path, browser: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "x.html"
    write_report(golden_run, path)
    # The checker's own script is injected, which the page's policy would refuse.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    page.click("#open")
    found = Axe().run(page).response["violations"]
    context.close()
    assert [(item["id"], [node["html"][:120] for node in item["nodes"][:2]]) for item in found] == []
