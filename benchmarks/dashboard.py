"""How long the dashboard's pages take on a large store, beside a static file of the same size.

    python benchmarks/dashboard.py [--questions 10000] [--runs 500]

Fills a store with many small runs and two large ones, serves it, and asks every page several times over loopback. The
same bytes as a static file from the same server stand beside each page: the ratio is what the page's own work costs.
"""

import argparse
import http.client
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from answerkey.config import Scoring
from answerkey.feedback import Feedback
from answerkey.protocols import Exchange, Graded, Task
from answerkey.question import ExpectedTool, Question, QuestionSet
from answerkey.reply import Evidence, Failure, Reply, Timings, ToolCall, Usage
from answerkey.run import RunInfo
from answerkey.scorers.plan import make_grader
from answerkey.server.app import create_app
from answerkey.server.settings import ServerSettings
from answerkey.store import open_store
from answerkey.store.feedback import FeedbackBook, new_id
from answerkey.store.sql import SqlStore
from answerkey.summary import Result
from answerkey.tally import summarise

LIMIT_MS = 150.0
START = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = "lease rent basis depreciation agreement tenant August income ledger deposit county record"
WORDS = tuple(_TEXT.split())


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


def add_run(store: SqlStore, identity: str, questions: QuestionSet, day: int, chance: random.Random) -> None:
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
        weights=grader.scoring.weights,
        scoring_hash=grader.hash,
        finished_at=START.isoformat(),
    )
    store.create_run(info, questions)
    results: list[Result] = []
    batch: list[Graded] = []
    for position, question in enumerate(questions):
        replies = (reply_to(question, chance),)
        card = grader.grade(question, replies)
        batch.append(Graded(Exchange(Task(question, 1, position), replies), card))
        results.append(Result(question=question, trial=1, replies=replies, scorecard=card))
        if len(batch) == 500:
            store.add(info, batch)
            batch = []
    store.add(info, batch)
    store.finish_run(info, summarise(results, planned=len(questions)))


def fill(path: Path, questions: int, runs: int) -> None:
    chance = random.Random(7)
    with open_store(str(path)) as store:
        small, large = question_set(20, "small"), question_set(questions, "large")
        for number in range(runs - 2):
            add_run(store, f"small{number:04d}", small, number, chance)
        for number in range(2):
            add_run(store, f"large{number}", large, runs + number, chance)
        FeedbackBook(store).add_all(
            Feedback(
                id=new_id(),
                created_at=(START + timedelta(hours=number)).isoformat(timespec="milliseconds"),
                value=float(chance.random() < 0.7),
                comment=" ".join(chance.choices(WORDS, k=6)) if number % 3 else "",
                response_id=f"r-large-{number}",
            )
            for number in range(min(2000, questions))
        )


class Server:
    """The dashboard on a free port, in a thread, with one static answer beside it."""

    def __init__(self, path: Path) -> None:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        app = create_app(lambda: open_store(str(path)), ServerSettings(port=self.port))
        self.static = b""

        async def with_static(scope, receive, send):  # type: ignore[no-untyped-def]
            if scope["type"] == "http" and scope["path"] == "/same-size":
                await send(
                    {
                        "type": "http.response.start",
                        "status": 200,
                        "headers": [(b"content-type", b"text/html")],
                    }
                )
                await send({"type": "http.response.body", "body": self.static})
                return
            await app(scope, receive, send)

        self._server = uvicorn.Server(uvicorn.Config(with_static, log_level="warning", access_log=False))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]})
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def get(self, path: str) -> tuple[float, int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        begin = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        taken = (time.perf_counter() - begin) * 1000
        connection.close()
        return taken, answer.status, body

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


PAGES = {
    "runs": "/",
    "runs, page 15": "/?page=15",
    "run of {n}": "/runs/large1",
    "  its last page": "/runs/large1?page={last}&sort=order",
    "  failed, one category": "/runs/large1?result=failed&category=lease",
    "  words in replies": "/runs/large1?text=item99",
    "  one tool": "/runs/large1?tool=query_database&sort=slowest",
    "question": "/runs/large1/questions/large-77?at=5",
    "question asked by all runs": "/runs/small0003/questions/small-3",
    "compare, regressions": "/compare?run=large0&run=large1&show=regressions",
    "compare, different": "/compare?run=large0&run=large1&show=different",
    "review": "/review?run=large1",
    "feedback": "/feedback",
    "api: run": "/api/runs/large1",
    "chart: scores over runs": "/charts/score.svg?set=small",
    "chart: distribution": "/charts/distribution.svg?run=large1",
}


def median(times: Iterable[float]) -> float:
    ordered = sorted(times)
    return ordered[len(ordered) // 2]


def main() -> int:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--questions", type=int, default=10_000)
    reading.add_argument("--runs", type=int, default=500)
    reading.add_argument("--times", type=int, default=7)
    given = reading.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        begin = time.perf_counter()
        fill(path, given.questions, given.runs)
        print(
            f"{given.runs} runs, two of {given.questions:,} questions: filled in {time.perf_counter() - begin:.0f} s"
        )
        server = Server(path)
        try:
            server.get("/")
            print(f"{'page':<30} {'first':>8} {'median':>8} {'static':>8} {'ratio':>7} {'kB':>6}")
            for name, address in PAGES.items():
                address = address.replace("{last}", str(-(-given.questions // 50)))
                first, status, body = server.get(address)
                if status != 200:
                    print(f"{name}: {status}")
                    return 1
                taken = median(server.get(address)[0] for _ in range(given.times))
                server.static = body
                beside = median(server.get("/same-size")[0] for _ in range(given.times))
                slow += taken > LIMIT_MS
                shown = name.replace("{n}", f"{given.questions:,}")
                print(
                    f"{shown:<30} {first:>5.0f} ms {taken:>5.0f} ms {beside:>5.1f} ms {taken / beside:>6.1f}x "
                    f"{len(body) / 1000:>6.0f}{'  SLOW' if taken > LIMIT_MS else ''}"
                )
        finally:
            server.stop()
    print(
        f"{slow} of {len(PAGES)} pages over {LIMIT_MS:.0f} ms"
        if slow
        else f"every page below {LIMIT_MS:.0f} ms"
    )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
