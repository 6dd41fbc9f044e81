"""Asking over a real Ray cluster of two nodes: the same run as from one process, whatever is lost on the way."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from noisy_runs import check_document, run_noisily

from .ray_clusters import Cluster, cluster_of_two

# It answers, notes what it was asked and where, and kills whom a question names: its worker, or the second node.
BOT = """
import os
import signal
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# Its process is a child of the worker's.
WORKER = os.getppid()


def answer(question, turn=0):
    with (FOLDER / "asked.log").open("a") as log:
        log.write(f"{question}\\t{WORKER}\\n")
    for victim, end in (("worker", lambda: os.kill(WORKER, signal.SIGKILL)), ("node", end_node)):
        if f"kill the {victim}" in question and first(victim):
            end()
    return f"It is {question.split()[0]}."


def first(victim):
    try:
        (FOLDER / f"{victim}.killed").open("x").close()
    except FileExistsError:
        return False
    return True


def end_node():
    sys.path += [CODE, os.path.dirname(CODE)]
    from ray_clusters import end_node

    end_node(int((FOLDER / "second.pid").read_text()))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ak") as folder, cluster_of_two(Path(folder)) as started:
        yield started


def run(folder: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "answerkey", "run", "golden.jsonl", "--target", "bot.py:answer"]
    ended = subprocess.run(
        [*command, "--json", "--concurrency", "6", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def project(folder: Path, deeds: dict[int, str]) -> None:
    (folder / "bot.py").write_text(f"CODE = {str(Path(__file__).parent)!r}\n{BOT}")
    rows = [
        {"id": f"q{n}", "question": f"{n} {deeds.get(n, 'as ever')}", "expected_keywords": [f"{n}."]}
        for n in range(40)
    ]
    rows.append(
        {
            "id": "talk",
            "turns": [{"question": f"{n} in turn", "expected_keywords": [f"{n}."]} for n in (50, 51)],
        }
    )
    (folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def asked(folder: Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / "asked.log").read_text().splitlines()]


def lasting(document: dict[str, Any]) -> Any:
    """What does not depend on when and where it was asked."""
    rows = [
        (row["id"], row["score"], row["reply"]["text"], row["components"], row["reply"]["error"])
        for row in document["results"]
    ]
    categories = [{k: v for k, v in part.items() if "latency" not in k} for part in document["categories"]]
    return rows, document["summary"]["score"], document["summary"]["components"], categories


def test_the_same_run_as_from_one_process(cluster: Cluster, tmp_path: Path) -> None:
    project(tmp_path, {})
    local = run(tmp_path)
    (tmp_path / "asked.log").unlink()
    spread = run(tmp_path, "--engine", "ray", "--ray-address", cluster.address)
    assert lasting(spread) == lasting(local)
    assert spread["run"]["target_hash"] == local["run"]["target_hash"]
    assert Counter(question for question, _ in asked(tmp_path)).most_common(1)[0][1] == 1
    assert len({worker for _, worker in asked(tmp_path)}) > 1


def test_one_document_on_stdout_whatever_ray_and_others_print(cluster: Cluster, tmp_path: Path) -> None:
    check_document(run_noisily(tmp_path, "--json", "--engine", "ray", "--ray-address", cluster.address))


def test_a_lost_worker_and_a_lost_node_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    project(tmp_path, {9: "kill the worker", 25: "kill the node"})
    (tmp_path / "second.pid").write_text(str(cluster.second))
    document = run(tmp_path, "--engine", "ray", "--ray-address", cluster.address)
    assert (tmp_path / "worker.killed").exists()
    assert (tmp_path / "node.killed").exists()
    assert document["summary"]["score"] == 1.0
    assert document["summary"]["coverage"] == 1.0
    assert not psutil.pid_exists(cluster.second) or psutil.Process(cluster.second).status() == "zombie"
    # At most what was under way is asked again, each time that something is lost.
    assert len(asked(tmp_path)) <= 42 + 2 * 6


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    project(tmp_path, {})
    command = [sys.executable, "-m", "answerkey", "run", "golden.jsonl", "--target", "bot.py:answer"]
    ended = subprocess.run(
        [*command, "--engine", "ray", "--ray-address", "127.0.0.1:9"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    [line] = ended.stderr.strip().splitlines()
    assert line.startswith("answerkey: there is no Ray cluster at 127.0.0.1:9")


def score(folder: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "answerkey", "score", "log.jsonl", "--json", *flags]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


# The log was rotated after it was read: the nodes must not score what has its name now.
ROTATED = """
import sys
from pathlib import Path
from answerkey.runs.log_files import LogBlocks
from answerkey.runs.log_rows import LogPlan
from answerkey.runs.workers import RayPool
from answerkey.scorers.grader import make_grader

log = Path("log.jsonl")
blocks = list(LogBlocks([log]))
log.rename("log.jsonl.1")
log.write_bytes(b"x" * sum(len(block.lines) for block in blocks))
pool = RayPool(LogPlan(recipe=make_grader().recipe, pass_mark=0.7), sys.argv[1])
parts = list(pool.score(blocks))
print(len(blocks), sum(part.summary.trials for part in parts), sum(len(part.summary.bad) for part in parts))
pool.close()
"""


def test_lines_that_a_node_cannot_read_are_sent(cluster: Cluster, tmp_path: Path) -> None:
    row = json.dumps({"id": "q", "question": "Who?", "answer": "Ann. " * 100})
    (tmp_path / "log.jsonl").write_text(f"{row}\n" * 9000)
    command = [sys.executable, "-c", ROTATED, cluster.address]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Ray may write lines of its own before.
    assert ended.stdout.splitlines()[-1].split() == ["3", "9000", "0"], ended.stderr


def test_a_log_gives_the_same_document(cluster: Cluster, tmp_path: Path) -> None:
    rows = (
        {
            "id": f"q{n % 700}",
            "question": f"What is {n % 700}?",
            "expected_keywords": [f"{n % 700}"],
            "answer": f"It is {n}.",
        }
        for n in range(30_000)
    )
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "no row\n")
    local = score(tmp_path, "--processes", "1")
    spread = score(tmp_path, "--engine", "ray", "--ray-address", cluster.address)
    for document in (local, spread):
        del document["run"]["created_at"], document["run"]["finished_at"]
    assert spread == local


# Its questions name the error that they raise.
RAISING = """
import asyncio
import sys

from answerkey.engine import SpreadTarget
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError


class Raising(BaseTarget):
    name = fingerprint = "raising"

    async def ask(self, ask):
        failure = Failure("http", ask.question)
        if ask.question == "retry":
            raise RetryableError(failure, 2.0, Reply(text="half"))
        raise AskAgainError(failure, still_works=ask.question == "works")


async def main(address):
    async with SpreadTarget(Raising(), Raising, Options(ray_address=address, concurrency=1)) as target:
        for question in ("works", "ended", "retry"):
            try:
                await target.ask(Ask(question=question, conversation_id=question))
            except RetryableError as error:
                so_far = error.so_far and error.so_far.text
                print(type(error).__name__, error.failure.message, error.retry_after, so_far, getattr(error, "still_works", None))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


def test_a_worker_says_whether_the_chatbot_still_works_on_an_attempt(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "raising.py").write_text(RAISING)
    ended = subprocess.run(
        [sys.executable, "raising.py", cluster.address],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines()[-3:] == [
        "AskAgainError works None None True",
        "AskAgainError ended None None False",
        "RetryableError retry 2.0 half None",
    ], ended.stderr
