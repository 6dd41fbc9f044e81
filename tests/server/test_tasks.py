"""What people open the dashboard for, each as a path in a browser behind a TLS proxy: in at most four clicks."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from answerkey.config import load_settings
from answerkey.model.judgement import Feedback, ProductionReply
from answerkey.model.options import Scoring
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, Trial
from answerkey.model.tally import summarise
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackStore, Users, new_id
from answerkey.store.production import ProductionReplies
from store.filling import add_run, finished, golden, good_reply, uneven_reply

from .proxied import MARKS, browser, proxied, sign_in

pytestmark = MARKS

MOST_CLICKS = 4
NIGHTS = 30
BOT = "def bot(question):\n    return {'answer': 'It is in Montrose.'}\n"


def fill(path: str) -> str:
    """Thirty nightly runs, the last one worse, two other versions, and two weeks of production; an admin's token."""
    with open_store(path) as store:
        for night in range(NIGHTS):
            worse = night == NIGHTS - 1
            add_run(
                store,
                f"n{night:02d}",
                uneven_reply if worse else good_reply,
                questions=golden(20),
                day=night,
                name=f"nightly-{night:02d}",
            )
        store.set_baseline("production", "n20")
        add_run(store, "same1", good_reply, questions=golden(20), day=3, name="no change")
        add_judged(store)
        fill_production(store)
        return Users(store).add("ann", "admin")


def add_judged(store) -> None:
    """A run of one question with what a judge says of its reply."""
    questions = golden(1)
    info = add_run(store, "judged", questions=questions, finish=False, asked=0, name="judged")
    [question] = questions
    accuracy = {"score": 2, "reason": "the figure is another one"}
    said = Score(
        "quality", 0.2, details={"judges": [{"model": "judge-9", "samples": [{"accuracy": accuracy}]}]}
    )
    replies = (good_reply(question),)
    card = make_grader(Scoring()).grade(question, replies, [[said]])
    store.add(info, [Trial(question, 1, 0, replies, card)])
    result = Trial(question=question, number=1, replies=replies, scorecard=card)
    store.finish_run(finished(info), summarise([result], planned=1))


def fill_production(store) -> None:
    newest = datetime(2026, 11, 18, 12, tzinfo=UTC)
    replies, verdicts = [], []
    for number in range(280):
        at = (newest - timedelta(hours=1.2 * number)).isoformat(timespec="milliseconds")
        bad = number % 2 == 0 if number < 140 else number % 10 == 0
        reply = ProductionReply(
            id=f"r{number}",
            created_at=at,
            question=f"What does the lease say about item {number % 7}?",
            reply=Reply(text=f"It is {number}."),
            metadata={"persona": "tenant" if number % 4 == 0 else "owner"},
        )
        replies.append(reply)
        verdicts.append(
            Feedback(
                id=new_id(),
                created_at=at,
                value=float(not bad),
                comment="wrong figure" if bad else "",
                response_id=reply.id,
                source="user",
                sender="site:shop",
            )
        )
    ProductionReplies(store).add(replies)
    for verdict in verdicts:
        FeedbackStore(store).add(verdict, change=True)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The public address, an admin's token, and the project's folder."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = [
        {"id": one.id, "question": one.question, "expected_keywords": list(one.expected_keywords)}
        for one in golden(3)
    ]
    (folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "bot.py").write_text(BOT)
    (folder / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "mine"\n[targets.mine]\npython = "bot.py:bot"\n'
    )
    path = str(folder / "s.db")
    token = fill(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        settings = load_settings()
        with proxied(folder, path, settings, allow_run=True) as public:
            yield public, token, folder


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


class Visit:
    """A page that counts clicks."""

    def __init__(self, page, public: str, folder: Path) -> None:
        self.page, self.public, self.folder = page, public, folder
        self.clicks = 0

    def open(self, path: str) -> None:
        self.page.goto(self.public + path)

    def click(self, target) -> None:
        self.clicks += 1
        target.click()

    def link(self, name: str, exact: bool = False):
        return self.page.get_by_role("link", name=name, exact=exact).first

    def button(self, name: str):
        return self.page.get_by_role("button", name=name, exact=True).first

    def menu(self, name: str):
        return self.page.locator("summary", has_text=re.compile(rf"^\s*{name}\s*$")).first


@pytest.fixture(scope="module")
def signed_in(chromium, deployed):
    public, token, _ = deployed
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(120_000)
    page = context.new_page()
    sign_in(page, public, token)
    yield context
    context.close()


@pytest.fixture
def visit(signed_in, deployed):
    page = signed_in.new_page()
    visit = Visit(page, deployed[0], deployed[2])
    visit.open("/")
    yield visit
    page.close()
    assert visit.clicks <= MOST_CLICKS


def rows(visit):
    return visit.page.locator(".work-table [data-row]")


def test_why_is_it_worse_than_before(visit):
    visit.click(visit.link("“nightly-29” is worse than the baseline production"))
    expect(visit.page.locator(".outcome")).to_contain_text("Worse")
    visit.click(visit.page.locator(".cause-list a").first)
    expect(visit.page.locator(".active-filters")).to_contain_text("the chatbot crashed or timed out")
    expect(rows(visit)).to_have_count(6)


def test_which_tool_is_missed_most(visit):
    visit.click(visit.link("nightly-29", exact=True))
    cause = visit.page.locator(".cause-list li", has_text="query_database was not called")
    expect(cause).to_contain_text("7 questions")
    visit.click(cause.get_by_role("link"))
    expect(rows(visit)).to_have_count(7)
    # The file has the same rows.
    visit.click(visit.menu("Export"))
    with visit.page.expect_download() as loading:
        visit.click(visit.link("CSV"))
    assert len(Path(loading.value.path()).read_text("utf-8-sig").splitlines()) == 8


def test_replies_to_tenants_with_a_wrong_figure(visit):
    visit.click(visit.link("Replies", exact=True))
    visit.click(visit.menu("More"))
    visit.page.get_by_label("Search").fill("wrong figure")
    visit.page.locator("select[name=metadata], input[name=metadata]").first.evaluate(
        "field => { field.value = 'persona=tenant' }"
    )
    visit.click(visit.page.locator(".filters button.primary"))
    found = visit.page.locator(".tile .big").first
    # Every fourth reply is to a tenant; of these the even ones, or every tenth.
    expect(found).to_have_text("42")
    expect(rows(visit).first).to_contain_text("wrong figure")


def test_three_versions_side_by_side(visit):
    for name in ("nightly-29", "nightly-28", "nightly-27"):
        visit.click(visit.page.get_by_label(f"Compare {name}"))
    visit.click(visit.button("Compare the marked runs"))
    expect(visit.page.get_by_role("heading", name="Best first")).to_be_visible()
    expect(visit.page.locator("#table-1").locator("..")).to_contain_text("response quality")
    expect(visit.page.locator("[aria-sort]")).to_contain_text("Worst change")


def test_a_reviewer_disagrees_where_they_read(visit):
    visit.open("/runs/n29/questions/q1")
    visit.click(visit.page.get_by_role("button", name="Don’t trust").first)
    expect(visit.page.locator("main")).to_contain_text("Your verdict is saved.")
    visit.click(visit.button("Undo"))
    expect(visit.page.locator("main")).not_to_contain_text("Your verdict is saved.")


def test_what_the_judge_said_is_read_and_contradicted(visit):
    visit.open("/runs/judged")
    visit.click(visit.page.locator(".work-table [data-open]").first)
    expect(visit.page.locator("dl").first).to_contain_text("judge-9, accuracy 2: the figure is another one")
    visit.page.get_by_label("Comment").first.fill("the judge is wrong: the figure is right")
    visit.click(visit.page.get_by_role("button", name="Trust").first)
    expect(visit.page.locator("main")).to_contain_text("the judge is wrong: the figure is right")


def test_reviews_by_keyboard(visit):
    visit.open("/review?run=n29")
    for done in range(3):
        expect(visit.page.locator("main")).to_contain_text(f"{done} done")
        # The text is there before the script that listens to keys.
        visit.page.wait_for_load_state("load")
        visit.page.keyboard.press("t" if done % 2 else "d")
    expect(visit.page.locator("main")).to_contain_text("3 done")


def test_a_bad_reply_becomes_a_golden_question(visit):
    visit.open("/replies?verdict=down&text=item+6")
    visit.click(visit.page.locator("[data-open]").first)
    visit.click(visit.link("Edit it in the golden set"))
    visit.click(visit.button("Save to the file"))
    expect(visit.page.get_by_role("status")).to_contain_text("Saved")
    assert "about item 6" in (visit.folder / "golden.jsonl").read_text()


def test_a_run_is_started_and_one_question_asked_again(visit):
    visit.open("/jobs")
    visit.click(visit.button("Start the run"))
    job = visit.page.locator("#jobs tbody tr").first
    expect(job).to_contain_text("done")
    visit.click(job.get_by_role("link").first)
    expect(visit.page.locator(".hero")).to_contain_text("The chatbot “mine”")
    visit.click(visit.page.locator(".work-table [data-open]").first)
    visit.click(visit.button("Ask again"))
    job = visit.page.locator("#jobs tbody tr").first
    expect(job).to_contain_text("again, 5 times")
    expect(job).to_contain_text("done")


def test_a_golden_question_is_edited(visit):
    visit.open("/runs/n29/questions/q2")
    visit.click(visit.link("edit the question"))
    field = visit.page.get_by_label("The question as JSON")
    field.fill(field.input_value().replace("fact2", "fact 2"))
    visit.click(visit.button("What would change?"))
    expect(visit.page.locator("main")).to_contain_text("Stored replies, scored again")
    visit.click(visit.button("Save to the file"))
    expect(visit.page.get_by_role("status")).to_contain_text("Saved")


def test_what_is_seen_is_exported_and_shared(visit, chromium, deployed):
    visit.open("/runs/n29")
    visit.page.locator("select[name=result]").select_option("error")
    visit.click(visit.page.locator(".filters button.primary"))
    expect(rows(visit)).to_have_count(6)
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(120_000)
    other = context.new_page()
    path = visit.page.url.removeprefix(visit.public).partition("#")[0]
    sign_in(other, visit.public, deployed[1], path)
    expect(other.locator(".work-table [data-row]")).to_have_count(6)
    context.close()
    visit.click(visit.menu("Export"))
    with visit.page.expect_download() as loading:
        visit.click(visit.link("JSONL"))
    assert len(Path(loading.value.path()).read_text().splitlines()) == 6


def test_a_run_is_deleted(visit):
    visit.open("/runs/same1")
    visit.click(visit.menu("Delete"))
    visit.click(visit.page.get_by_label("Delete this run"))
    visit.click(visit.button("Delete for good"))
    expect(visit.page.locator("main")).not_to_contain_text("no change")


def test_the_slowest_questions(visit):
    visit.open("/runs/n29")
    visit.click(visit.page.locator("th").get_by_role("link", name="Time"))
    expect(rows(visit).first).to_contain_text("60.0 s")


def test_no_clear_difference_is_explained(visit):
    visit.open("/compare?base=n27&run=n28")
    expect(visit.page.locator(".versus")).to_contain_text("No clear difference")
    expect(visit.page.locator(".versus")).to_contain_text("could still")


def test_the_trend_of_thirty_runs(visit):
    visit.click(visit.page.get_by_role("link", name="golden → python:bot"))
    dots = visit.page.locator("svg.chart").first.locator("[data-words]")
    expect(dots.nth(NIGHTS - 1)).to_be_attached()
    worst = visit.page.locator("svg.chart .tone.worse").first
    expect(worst).to_be_attached()


def test_satisfaction_fell(visit):
    visit.click(visit.link("Satisfaction fell from"))
    expect(visit.page.locator("main")).to_contain_text("wrong figure")
