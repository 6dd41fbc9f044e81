"""How long the dashboard's pages take on a large store, beside a static file of the same size.

    python benchmarks/dashboard.py [--questions 10000] [--runs 1000] [--store FILE]

Fills a store with many small runs, two large ones and two with repeats, serves it, and asks every page with every filter
over loopback: the first visit, then several more. The same bytes as a static file from the same server stand beside each
page: the ratio is what the page's own work costs. Times are the server's processor time, so that other programs do not
count; the clock's stand beside them.
"""

import argparse
import http.client
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import uvicorn

from answerkey.model.judgement import Feedback, ProductionReply
from answerkey.model.options import Scoring
from answerkey.model.question import ExpectedTool, Question, QuestionSet
from answerkey.model.reply import Evidence, Failure, Reply, Timings, ToolCall, Usage
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.model.tally import summarise
from answerkey.scorers.grader import make_grader
from answerkey.server.access import ServerSettings
from answerkey.server.app import create_app, warm_up
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.production import ProductionReplies
from answerkey.store.sql import SqlStore

LIMIT_MS = 150.0
# The longest page of rows.
MOST_ROWS = 50
START = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = "lease rent basis depreciation agreement tenant August income ledger deposit county record"
WORDS = tuple(_TEXT.split())


class Taken(NamedTuple):
    """Milliseconds."""

    cpu: float
    wall: float


def question_set(number: int, name: str) -> QuestionSet:
    return QuestionSet(
        name=name,
        questions=tuple(
            Question(
                id=f"{name}-{index}",
                question=f"What does the {WORDS[index % 12]} say about item {index}?",
                category=WORDS[index % 7],
                expected_keywords=(f"item{index}", WORDS[index % 12], "Montrose"),
                expected_tools=(ExpectedTool("query_database"),),
            )
            for index in range(number)
        ),
    )


def reply_to(question: Question, chance: random.Random) -> Reply:
    luck = chance.random()
    if luck < 0.03:
        return Reply(failure=Failure("timeout", "no reply in 60 s"), timings=Timings(latency_ms=60_000))
    said = " ".join(chance.choices(WORDS, k=120))
    key = question.id.rpartition("-")[2]
    return Reply(
        text=f"{said} item{key if luck > 0.2 else ''} in {'Montrose' if luck > 0.1 else 'Ridgway'}.",
        tool_calls=(
            ToolCall(
                name="query_database",
                arguments={"sql": said[:80]},
                result=said,
                result_seen=True,
                duration_ms=20,
            ),
        )
        if luck > 0.15
        else (),
        evidence=Evidence(tools_observed=True),
        timings=Timings(latency_ms=chance.gauss(800, 150)),
        usage=Usage(input_tokens=300, output_tokens=150, cost=0.001),
        response_id=f"r-{question.id}",
        conversation_id=f"c-{question.id}",
    )


def add_run(
    store: SqlStore, identity: str, questions: QuestionSet, day: int, chance: random.Random, repeat: int = 1
) -> None:
    grader = make_grader(Scoring())
    info = RunInfo(
        id=identity,
        name=f"nightly {day}",
        status="complete",
        created_at=(START + timedelta(hours=day)).isoformat(timespec="microseconds"),
        target="http://localhost:8000/chat",
        target_hash="t",
        question_set=questions.name,
        question_set_hash=questions.hash,
        repeat=repeat,
        weights=grader.scoring.weights,
        scoring_hash=grader.hash,
        finished_at=START.isoformat(),
    )
    store.create_run(msgspec.structs.replace(info, status="running", finished_at=None), questions)
    results: list[Trial] = []
    batch: list[Trial] = []
    for position, question in enumerate(questions):
        for trial in range(1, repeat + 1):
            replies = (reply_to(question, chance),)
            card = grader.grade(question, replies)
            batch.append(Trial(question, trial, position, replies, card))
            results.append(Trial(question=question, number=trial, replies=replies, scorecard=card))
        if len(batch) >= 500:
            store.add(info, batch)
            batch = []
    store.add(info, batch)
    store.finish_run(info, summarise(results, planned=len(questions) * repeat))


def fill(path: Path, questions: int, runs: int) -> None:
    chance = random.Random(7)
    with open_store(str(path)) as store:
        small, large = question_set(20, "small"), question_set(questions, "large")
        repeated = question_set(questions // 3, "repeated")
        for number in range(2):
            add_run(store, f"repeat{number}", repeated, number, chance, repeat=3)
        for number in range(runs - 4):
            add_run(store, f"small{number:04d}", small, number, chance)
        for number in range(2):
            # Not the newest: what the server makes ready when it starts must not be what is measured.
            add_run(store, f"large{number}", large, number, chance)
        FeedbackStore(store).add_all(
            Feedback(
                id=new_id(),
                created_at=(START + timedelta(hours=number)).isoformat(timespec="milliseconds"),
                value=float(chance.random() < 0.7),
                comment=" ".join(chance.choices(WORDS, k=6)) if number % 3 else "",
                response_id=f"r-large-{number}",
            )
            for number in range(min(2000, questions))
        )
        fill_production(store, 10 * questions)


def fill_production(store: SqlStore, number: int) -> None:
    """Replies to users, a third of them judged."""
    chance = random.Random(8)
    grader = make_grader(Scoring())
    questions = tuple(question_set(number, "prod"))
    replies = []
    for index, question in enumerate(questions):
        reply = reply_to(question, chance)
        card = grader.grade(question, (reply,))
        replies.append(
            ProductionReply(
                id=f"p-{index}",
                created_at=(START + timedelta(minutes=index)).isoformat(timespec="milliseconds"),
                question=question.question,
                reply=reply,
                category=question.category,
                score=card.total if index % 2 else None,
                scorecard=card,
            )
        )
    ProductionReplies(store).add(replies)
    FeedbackStore(store).add_all(
        Feedback(
            id=new_id(),
            created_at=(START + timedelta(minutes=index)).isoformat(timespec="milliseconds"),
            value=float(chance.random() < 0.7),
            comment=" ".join(chance.choices(WORDS, k=6)) if index % 2 else "",
            response_id=f"p-{index}",
        )
        for index in range(0, number, 3)
    )


class Server:
    """The dashboard on a free port, in a thread, with one static answer beside it and a clock around both."""

    def __init__(self, path: Path) -> None:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        app = create_app(lambda: open_store(str(path)), ServerSettings(port=self.port))
        warm_up(app)
        self.static = b""
        # Milliseconds of the last request: of processor time, and by the clock.
        self.taken = (0.0, 0.0)

        async def timed(scope, receive, send):  # type: ignore[no-untyped-def]
            begin = (time.process_time(), time.perf_counter())
            if scope["type"] == "http" and scope["path"] == "/same-size":
                head = {"status": 200, "headers": [(b"content-type", b"text/html")]}
                await send({"type": "http.response.start", **head})
                await send({"type": "http.response.body", "body": self.static})
            else:
                await app(scope, receive, send)
            self.taken = (
                (time.process_time() - begin[0]) * 1000,
                (time.perf_counter() - begin[1]) * 1000,
            )

        self._server = uvicorn.Server(uvicorn.Config(timed, log_level="warning", access_log=False))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]})
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def get(self, path: str) -> tuple[Taken, int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        # The answer is here a moment before the server has put its clock down.
        time.sleep(0.002)
        return Taken(*self.taken), answer.status, body

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


def addresses(questions: int) -> Iterator[tuple[str, str]]:
    """Every page with every filter and order, and what pages load."""
    last = -(-questions // 50)
    yield "runs", "/"
    yield "runs, last page", "/?page=20"
    yield "runs, found by name", "/?text=nightly+3"
    yield "runs of one set", "/?set=small"
    yield "runs of one experiment", "/?set=small&target=http://localhost:8000/chat"
    yield "runs by their score", "/?sort=-score"
    yield "runs by a component's range", "/?range=response_quality:0.5..0.9&sort=-p95"
    run = "/runs/large1"
    yield f"run of {questions:,}", run
    yield "  last page, as asked", f"{run}?page={last}&sort=position"
    for sort in ("-score", "-latency_ms", "-cost", "category", "response_quality"):
        yield f"  by {sort}", f"{run}?sort={sort}"
    yield "  two ranges", f"{run}?range=score:0.1..0.9&range=response_quality:..0.9"
    yield "  middle page", f"{run}?page={last // 2}"
    for result in ("failed", "passed", "lost", "error"):
        yield f"  {result}", f"{run}?result={result}"
    yield "  grade A", f"{run}?grade=A"
    yield "  one category", f"{run}?category=lease"
    yield "  one kind of error", f"{run}?error=timeout"
    yield "  one tool, slowest first", f"{run}?tool=query_database&sort=-latency_ms"
    yield "  a word in few replies", f"{run}?text=item99"
    yield "  a word in most replies", f"{run}?text=montrose&sort=-latency_ms"
    yield "  a word in no reply", f"{run}?text=zebra"
    yield "  word, tool and category", f"{run}?text=montrose&tool=query_database&category=lease&result=passed"
    yield "run of repeats", "/runs/repeat1"
    yield "  failed, slowest first", "/runs/repeat1?result=failed&sort=-latency_ms"
    yield "  a word in most replies", "/runs/repeat1?text=montrose"
    yield "question", f"{run}/questions/large-77?at=5"
    yield "  found by a word", f"{run}/questions/large-99?text=item99&at=3"
    yield "  asked by all runs", "/runs/small0003/questions/small-3"
    pair = "/compare?run=large0&run=large1"
    yield "compare", pair
    for show in ("regressions", "improvements", "different"):
        yield f"  {show}", f"{pair}&show={show}"
    yield "  best first, last page", f"{pair}&sort=-change&page={questions // 20}"
    yield "  a word", f"{pair}&text=item99"
    yield "  the other way round", "/compare?base=large1&run=large0"
    yield "  runs of repeats", "/compare?run=repeat0&run=repeat1"
    yield "  two small runs", "/compare?run=small0001&run=small0002"
    yield "  six small runs", "/compare?" + "&".join(f"run=small{number:04d}" for number in range(10, 16))
    yield "review", "/review?run=large1"
    yield "  after many skips", "/review?run=large1&at=900"
    yield f"replies, {10 * questions:,}", "/replies"
    yield "  last page", f"/replies?page={10 * questions // 25}"
    for sort in ("score", "-latency_ms", "category"):
        yield f"  by {sort}", f"/replies?sort={sort}"
    yield "  a range of scores", "/replies?range=score:0.2..0.5"
    for result in ("error", "failed", "ungraded"):
        yield f"  {result}", f"/replies?result={result}"
    for verdict in ("down", "none"):
        yield f"  verdict: {verdict}", f"/replies?verdict={verdict}"
    yield "  category, tool and error", "/replies?category=lease&tool=query_database&error=timeout"
    yield "  a word in few replies", "/replies?text=item999"
    yield "  a word in most replies", "/replies?text=montrose&sort=-latency_ms"
    yield "reply", "/replies/p-77"
    yield "feedback", "/feedback"
    yield "  negative ones of users", "/feedback?value=down&source=user"
    yield "  one category, page 3", "/feedback?category=lease&page=3"
    yield "no such run", "/runs/nope"
    yield "sign in", "/login"
    yield "api: runs", "/api/runs"
    yield "api: run", "/api/runs/large1"
    yield "api: progress", "/api/runs/large1/progress"


def middle(taken: Iterable[Taken]) -> Taken:
    """The median of each clock."""
    cpu, wall = (sorted(times) for times in zip(*taken, strict=True))
    return Taken(cpu[len(cpu) // 2], wall[len(wall) // 2])


def main() -> int:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--questions", type=int, default=10_000)
    reading.add_argument("--runs", type=int, default=1_000)
    reading.add_argument("--times", type=int, default=7)
    reading.add_argument("--store", type=Path, help="keep the filled store here, and use it if it is there")
    given = reading.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.store or Path(folder) / "store.db"
        if not path.exists():
            begin = time.perf_counter()
            fill(path, given.questions, given.runs)
            print(f"filled in {time.perf_counter() - begin:.0f} s")
        print(f"{given.runs} runs, two of {given.questions:,} questions; milliseconds of processor time")
        server = Server(path)
        try:
            return measure(server, given.questions, given.times)
        finally:
            server.stop()


def measure(server: Server, questions: int, times: int) -> int:
    """Print each page's first and median time; how many are over the limit or show more than one page of rows."""
    slow: list[str] = []
    print(
        f"{'page':<28} {'first':>7} {'median':>7} {'clock':>7} {'static':>7} {'ratio':>7} {'kB':>5} {'rows':>4}"
    )
    for name, address in addresses(questions):
        first, status, body = server.get(address)
        if status not in (200, 404):
            print(f"{name}: {status}")
            return 1
        again = middle(server.get(address)[0] for _ in range(times))
        server.static = body
        beside = middle(server.get("/same-size")[0] for _ in range(times * 3))
        rows = body.count(b"data-row")
        over = max(first.cpu, again.cpu) > LIMIT_MS or rows > MOST_ROWS
        slow += [name.strip()] if over else []
        print(
            f"{name:<28} {first.cpu:>7.1f} {again.cpu:>7.1f} {again.wall:>7.1f} {beside.cpu:>7.2f} "
            f"{again.cpu / beside.cpu:>6.1f}x {len(body) / 1000:>5.0f} {rows or '':>4}{'  SLOW' if over else ''}",
            flush=True,
        )
    print(f"over {LIMIT_MS:.0f} ms: {', '.join(slow)}" if slow else f"every page below {LIMIT_MS:.0f} ms")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
