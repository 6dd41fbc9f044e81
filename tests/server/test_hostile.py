import json
import re
import time
from urllib.parse import urlencode

import pytest

import answerkey
from answerkey.config import Settings
from answerkey.model.judgement import Feedback
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence, Failure, Reply, Source, ToolCall
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from store.filling import add_run

from .serving import golden_file, serving

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31mred\x1b]0;title\x07\u202egnp.exe\x00 javascript:alert(3)"
# An argument of a command has no NUL.
HOSTILE_TARGET = EVIL.replace("\x00", "")
HUGE = "x" * 1_000_000
MARKDOWN = "\n".join(
    (
        f"**bold** {EVIL}",
        "[go](javascript:alert(5)) <javascript:alert(6)> ![p](javascript:alert(7)) [r][1]",
        "[your bank](https://evil.example/<script>alert(8)</script>) ![p](https://evil.example/p.png)",
        '[t](https://evil.example "onmouseover=alert(9)") [logout](/logout) [x]: javascript:alert(10)',
        "```<script>alert(11)</script>",
        EVIL,
        "```",
        f"| {EVIL} |",
        "|---|",
        f"| {EVIL} |",
        "[1]: javascript:alert(12)",
    )
)


def hostile_set() -> QuestionSet:
    return QuestionSet(
        name=EVIL,
        questions=(
            Question(
                id="evil/<b>?&#1",
                question=EVIL,
                category=EVIL,
                expected_keywords=(EVIL, "y"),
                reference_answer=EVIL,
                tags=(EVIL,),
            ),
            Question(id="markdown", question="?", category="c", expected_keywords=("bold", "red")),
            Question(id="huge", question=HUGE, category="c", expected_keywords=("x", "absent")),
        ),
    )


def hostile_reply(question, trial):
    if question.id == "huge":
        return Reply(text=HUGE)
    if question.id == "markdown":
        return Reply(text=MARKDOWN)
    return Reply(
        text=EVIL,
        tool_calls=(
            ToolCall(
                name=EVIL, arguments={EVIL: EVIL}, result=EVIL, result_seen=True, error=EVIL, duration_ms=1.0
            ),
        ),
        sources=(Source(id=EVIL, title=EVIL, uri="javascript:alert(4)", text=EVIL),),
        failure=Failure("tool", EVIL),
        evidence=Evidence(tools_observed=True, sources_observed=True),
        response_id=EVIL,
        conversation_id="c",
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("hostile") / "s.db")
    with open_store(path) as store:
        for run in ("r1", "r2", "r3"):
            add_run(store, run, hostile_reply, questions=hostile_set(), name=EVIL, day=int(run[1]))
        FeedbackStore(store).add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=0.0,
                comment=EVIL,
                author=EVIL,
                response_id=EVIL,
                category=EVIL,
            )
        )
    with serving(lambda: open_store(path)) as running:
        row = {"question": EVIL, "answer": EVIL, "category": EVIL, "error": EVIL, "trace_id": EVIL}
        call = {"name": EVIL, "arguments": {EVIL: EVIL}, "result": EVIL}
        rows = [row | {"response_id": "evil/<b>?&#1", "tool_calls": [call]}, row | {"response_id": "huge"}]
        rows[1] |= {"question": HUGE[:400_000], "answer": HUGE[:400_000]}
        assert running.post("/api/replies", {"replies": rows}).status == 201
        for identity in ("evil/<b>?&#1", "huge"):
            verdict = {"value": "down", "response_id": identity, "comment": EVIL, "correction": EVIL}
            assert running.post("/api/feedback", verdict).status == 201
        yield running


def check_inert(text):
    assert not re.search(r"<script(?! src=\"/static/(dashboard|widths).js\")", text)
    assert not re.search(r"<img (?!class=\"chart\"|src=\"/static/)", text)
    assert not re.search(r"(href|src|action)=[\"']?\s*javascript:", text, re.IGNORECASE)
    for sign in ("\x00", "\x1b", "\x07", "\u202e"):
        assert sign not in text


PAGES = [
    "/",
    "/runs/r1",
    "/runs/r1?text=script",
    "/runs/r1/questions/evil%2F%3Cb%3E%3F%26%231?at=0",
    "/runs/r1/questions/markdown",
    "/runs/r1/questions/huge",
    "/compare?run=r1&run=r2",
    "/compare?run=r1&run=r2&run=r3",
    "/replies",
    "/?columns=grade&columns=name&columns=%3Cscript%3Ealert(1)%3C/script%3E&sort=-%3Cscript%3E",
    "/?tag=%3Cscript%3E&range=%22%3E%3Cscript%3E:0..1",
    "/replies?text=%3Cscript%3E&sort=score",
    "/replies/evil%2F%3Cb%3E%3F%26%231",
    "/replies/huge",
    "/replies/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "/review?run=r1",
    "/feedback",
    "/review?source=production",
    "/replies?by=category",
    "/replies?by=metadata.%3Cscript%3E",
    "/replies?metadata=%3Cscript%3E",
    "/jobs",
    "/golden?reply=huge",
    "/compare?run=r1&find=%3Cscript%3E",
    "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "/?text=%3Cscript%3Ealert(1)%3C/script%3E",
    "/?page=%3Cscript%3E",
    "/runs/r1?category=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
]


@pytest.mark.parametrize("path", PAGES)
def test_hostile_text_is_inert_in_every_page(client, path):
    answer = client.get(path)
    assert answer.status in (200, 400, 404)
    check_inert(answer.text)
    # A line of a megabyte is cut, with a link to all of it.
    assert len(answer.body) < 200_000


def test_markdown_leads_only_to_other_places_and_says_where(client):
    page = client.get("/runs/r1/questions/markdown").text
    shown = page[page.index('<div class="formatted"') : page.index('<details class="as-written"')]
    assert '<strong><mark class="keyword"' in shown
    assert set(re.findall(r'href="([^"/]+//[^"/]+)', shown)) == {"https://evil.example"}
    assert (
        shown.count("<a ")
        == shown.count('rel="noopener noreferrer nofollow"')
        == shown.count("(evil.example)")
    )
    assert "onmouseover" not in shown.replace("&quot;onmouseover", "")


def test_the_whole_of_a_long_reply_is_plain_text(client):
    page = client.get("/runs/r1/questions/huge").text
    link = re.search(r'href="(/runs/r1/replies/huge\?[^"]+)"', page)
    assert link is not None
    whole = client.get(link[1].replace("&amp;", "&"))
    assert whole.headers["content-type"].startswith("text/plain")
    assert len(whole.body) == 1_000_000


def test_the_api_gives_hostile_text_as_json_only(client):
    answer = client.get("/api/runs/r1/questions/evil%2F%3Cb%3E%3F%26%231")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json["question"]["question"] == EVIL


def test_proposed_golden_cases_are_one_json_object_a_line(client):
    cases = [json.loads(line) for line in client.get("/feedback/golden.jsonl").body.split(b"\n") if line]
    assert len(cases) == 3
    assert "evil/<b>?&#1" in [case["id"] for case in cases]


@answerkey.fault_point("query_database")
def query_database(sql):
    return {"value": EVIL}


def evil_bot(question):
    try:
        value = query_database(EVIL)["value"]
    except RuntimeError as error:
        value = f"{EVIL} {error}"
    return {"answer": value, "tool_calls": [{"name": "query_database", "arguments": {"sql": EVIL}}]}


@pytest.fixture(scope="module")
def acting(tmp_path_factory):
    """A server that may act: hostile questions, a hostile target, a run of faults, and a job that failed."""
    folder = tmp_path_factory.mktemp("acting")
    path = str(folder / "s.db")
    golden = golden_file(folder, hostile_set().questions)
    small = [question for question in hostile_set().questions if question.id != "huge"]
    result = answerkey.faults(
        QuestionSet(name=EVIL, questions=tuple(small)),
        target=evil_bot,
        kinds=["error", "injection"],
        store=path,
        name=EVIL,
    )
    # Nothing listens there.
    settings = Settings(
        path=str(folder / "answerkey.toml"),
        questions=golden,
        target=HOSTILE_TARGET,
        targets={HOSTILE_TARGET: {"url": "http://127.0.0.1:9/"}},
    )
    with serving(lambda: open_store(path), settings, store_url=path, allow_run=True) as running:
        row = {"question": "Huge?", "answer": HUGE[:400_000], "response_id": "huge"}
        assert running.post("/api/replies", {"replies": [row]}).status == 201
        yield running, result.faulted.id


@pytest.mark.parametrize(
    "path",
    [
        "/jobs",
        "/golden?id=evil%2F%3Cb%3E%3F%26%231",
        "/golden?id=huge",
        "/golden?reply=huge",
        "/golden?id=%3Cscript%3E",
        "/golden?reply=%3Cscript%3E",
        "/runs/{faulted}/faults",
        "/runs/%3Cscript%3E/faults",
        "/runs/{faulted}",
        "/",
    ],
)
def test_hostile_text_is_inert_where_one_acts(acting, path):
    client, faulted = acting
    answer = client.get(path.format(faulted=faulted))
    assert answer.status in (200, 400, 404)
    check_inert(answer.text)
    assert len(answer.body) < 200_000
    assert ("are edited in the file" in answer.text) == (path == "/golden?id=huge")


def test_hostile_forms_are_answered_with_inert_text(acting):
    client, _ = acting
    kind = "application/x-www-form-urlencoded"

    def post(path, **fields):
        return client.post(path, urlencode(fields), content_type=kind, origin=client.url)

    row = {"id": EVIL, "question": EVIL, "expected_keywords": [EVIL, ""]}
    for text in (json.dumps(row), EVIL, json.dumps({EVIL: EVIL}), json.dumps(row)[:-1]):
        page = post("/golden", action="try", text=text)
        assert page.status == 200
        check_inert(page.text)
    assert post("/jobs", action="run", target="<script>").status == 400
    check_inert(post("/jobs", action="run", target="<script>").text)
    check_inert(post("/jobs", action="cancel", job="<script>").text)
    check_inert(post("/jobs", action="run", target=EVIL).text)
    assert post("/jobs", action="run", target=HOSTILE_TARGET, name=EVIL[:50]).status == 303
    while "data-refresh" in (jobs := client.get("/jobs").text):
        time.sleep(0.1)
    check_inert(jobs)
    assert "&lt;script&gt;" in jobs
