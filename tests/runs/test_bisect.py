"""`answerkey bisect` on real git repositories, and its search on simulated ones."""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from answerkey.runs.bisect import Search
from free_ports import free_port

COMMITS = 12

# Unit 24 and above lose their facts from version 7 on. Every question is noted in a file outside the repository.
BOT = """
import os, random
VERSION = {version}
def answer(question):
    with open(os.environ["ASKED"], "a") as asked:
        asked.write(f"{{VERSION}} {{question}}\\n")
    unit = int(question.split()[-1].rstrip("?"))
    if (VERSION >= {broken} and unit >= 24) or random.random() < {flaky}:
        return {{"answer": "I am not sure.", "tools_used": []}}
    return {{"answer": f"The rent is {{1000 + unit}} dollars.", "tools_used": ["query_database"]}}
"""
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from bot import answer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(asked["question"])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
LINES = """
import json, sys
from bot import answer
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **answer(asked["question"])}), flush=True)
"""


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=ci", "-c", "user.email=ci@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Make a repository of 12 versions in the working directory; returns the hashes of its commits."""

    def make(*, broken: int = 7, flaky: float = 0.0, replaced: Mapping[int, str] | None = None) -> list[str]:
        folder = tmp_path / "project"
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("ASKED", str(tmp_path / "asked.txt"))
        rows = (
            {
                "id": f"rent-{unit}",
                "question": f"What is the rent of unit {unit}?",
                "expected_tools": ["query_database"],
                "expected_keywords": [str(1000 + unit)],
            }
            for unit in range(30)
        )
        Path("golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path("answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
        Path("server.py").write_text(SERVER)
        Path("lines.py").write_text(LINES)
        Path(".gitignore").write_text(".answerkey/\n__pycache__/\n")
        git("init", "-q", "-b", "main")
        for version in range(COMMITS):
            bot = BOT.format(version=version, broken=broken, flaky=flaky)
            Path("bot.py").write_text(f"# {version}\n" + (replaced or {}).get(version, bot))
            git("add", "-A")
            git("commit", "-q", "-m", f"Version {version}")
        return git("log", "--reverse", "--format=%H").splitlines()

    return make


def asked() -> list[str]:
    return Path(os.environ["ASKED"]).read_text().splitlines()


def test_the_commit_that_broke_questions_is_named_and_the_checkout_left_alone(command, history) -> None:
    commits = history()
    Path("bot.py").write_text("work in progress")
    done = command("bisect", "HEAD~11", "HEAD", "--json")
    assert done.code == 0
    found = done.document
    assert found["commit"] == {"hash": commits[7], "subject": "Version 7"}
    assert found["posterior"] > 0.99
    assert found["questions"] == [f"rent-{unit}" for unit in range(24, 30)]
    assert {one["commit"]: one["verdict"] for one in found["tested"]}[commits[6]] == "good"
    assert found["control"]["before"] == commits[6]
    assert found["control"]["low"] > 0
    # Of the other commits, only questions that flipped were asked.
    between = {line for line in asked() if line.split()[0] not in ("0", "11")}
    assert {line.split()[-1] for line in between} == {f"{unit}?" for unit in range(24, 30)}
    assert Path("bot.py").read_text() == "work in progress"
    assert git("worktree", "list").count("\n") == 0
    assert git("rev-parse", "HEAD") == commits[11]
    assert command("bisect", "HEAD~11", "HEAD").out.startswith(f"{commits[7][:10]} is the first bad commit")


def test_commits_that_do_not_start_or_fail_throughout_are_skipped(command, history) -> None:
    crash = "def answer(question):\n    raise RuntimeError('half done')\n"
    commits = history(replaced={5: "import no_such_module\n", 8: crash})
    found = command("bisect", commits[0], commits[11], "--json").document
    assert found["commit"]["hash"] == commits[7]
    skipped = {one["commit"]: one["because"] for one in found["tested"] if one["verdict"] == "skipped"}
    assert "no_such_module" in skipped[commits[5]]
    assert "half done" in skipped.get(commits[8], "half done")


def test_between_skipped_commits_no_single_one_is_named(command, history) -> None:
    commits = history(replaced={6: "import no_such_module\n", 7: "import no_such_module\n"})
    done = command("bisect", commits[5], commits[9], "--json", "--fail-on", "inconclusive")
    assert (done.code, done.document["commit"]) == (4, None)
    assert [one["hash"] for one in done.document["candidates"]] == commits[6:9]
    assert "cannot be asked" in done.document["because"]


def test_a_chatbot_that_flips_by_itself_is_no_commits_fault(command, history) -> None:
    commits = history(broken=COMMITS, flaky=0.3)
    done = command("bisect", commits[0], commits[11], "--json")
    assert (done.code, done.document["commit"]) == (0, None)
    assert done.document["because"]


def test_a_planted_commit_is_found_in_a_flaky_chatbot(command, history) -> None:
    commits = history(broken=4, flaky=0.1)
    found = command("bisect", commits[2], commits[6], "--repeat", "2", "--json").document
    assert found["commit"]["hash"] == commits[4], found["because"]


def test_the_same_command_continues_an_interrupted_bisection(history) -> None:
    commits = history()
    arguments = [sys.executable, "-m", "answerkey", "bisect", commits[6], commits[8], "--json"]
    running = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (Path(os.environ["ASKED"]).exists() and len(asked()) > 70):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "run the same command again to continue" in errors
    assert git("worktree", "list").count("\n") == 0
    resumed = subprocess.run(
        [*arguments[:3], "resume", "latest"], capture_output=True, text=True, check=False
    )
    assert resumed.returncode == 2
    assert "continue with the same `answerkey bisect` command" in resumed.stderr
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["commit"]["hash"] == commits[7]
    # Questions in flight are asked again; everything else comes from the store.
    count = len(asked())
    assert count <= found["replies"] + 10
    assert json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout) == found
    assert len(asked()) == count


def test_stored_runs_name_their_commits_and_are_not_asked_again(command, history) -> None:
    commits = history()
    assert command("run", "--name", "now").code == 0
    git("checkout", "-q", commits[2])
    assert command("run", "--name", "before").code == 0
    git("checkout", "-q", "main")
    Path(os.environ["ASKED"]).unlink()
    found = command("bisect", "before", "now", "--json").document
    assert (found["good"]["hash"], found["commit"]["hash"]) == (commits[2], commits[7])
    assert {line.split()[-1] for line in asked()} == {f"{unit}?" for unit in range(24, 30)}


def test_a_run_with_uncommitted_changes_is_of_no_commit(command, history) -> None:
    history()
    with Path("bot.py").open("a") as bot:
        bot.write("# changed\n")
    command("run", "--name", "dirty")
    refused = command("bisect", "HEAD~5", "dirty")
    assert refused.code == 2
    assert "run dirty was asked with uncommitted changes" in refused.err


def test_a_server_is_started_in_each_checkout(command, history) -> None:
    commits = history()
    port = free_port()
    url = ("--target", f"http://127.0.0.1:{port}/chat")
    refused = command("bisect", commits[6], commits[8], *url)
    assert refused.code == 2
    assert "--start" in refused.err
    start = ("--start", f"{sys.executable} server.py {port}")
    found = command("bisect", commits[6], commits[8], *url, *start, "--json").document
    assert found["commit"]["hash"] == commits[7]
    with socket.socket() as ended:
        assert ended.connect_ex(("127.0.0.1", port)) != 0


def test_a_server_that_runs_already_is_not_asked_in_the_place_of_a_commit(command, history) -> None:
    commits = history()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        target = (
            "--target",
            f"http://127.0.0.1:{port}/chat",
            "--start",
            f"{sys.executable} server.py {port}",
        )
        refused = command("bisect", commits[6], commits[8], *target)
    assert refused.code == 2
    assert "something answers" in refused.err


def test_a_program_runs_in_each_checkout_after_its_setup(command, history) -> None:
    commits = history()
    target = ("--target", f"cmd:{sys.executable} made/lines.py")
    setup = ("--setup", "sh -c 'mkdir made && cp lines.py bot.py made/'")
    found = command("bisect", commits[6], commits[8], *target, *setup, "--json").document
    assert found["commit"]["hash"] == commits[7]
    failed = command("bisect", commits[6], commits[8], *target, "--setup", "sh -c 'echo no disk >&2; exit 1'")
    assert failed.code == 3
    assert "--setup failed: no disk" in failed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("HEAD", "HEAD~3"), "is not an ancestor of"),
        (("HEAD", "main"), "are the same commit"),
        (("nowhere", "HEAD"), "nowhere is neither a commit of"),
        (("HEAD~3", "HEAD", "--target", "demo"), "is not started from a checkout"),
        (("HEAD~3", "HEAD", "--start", "true"), "is started without --start"),
        (("HEAD~3", "HEAD", "--repo", "/"), "/ is not in a git repository"),
    ],
)
def test_what_cannot_be_bisected_is_refused(
    command, history, arguments: tuple[str, ...], message: str
) -> None:
    history()
    refused = command("bisect", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err


def test_a_target_outside_the_checkout_is_refused(command, history) -> None:
    history()
    refused = command("bisect", "HEAD~3", "HEAD", "--target", f"{Path('bot.py').absolute()}:answer")
    assert refused.code == 2
    assert "which is not in the checkout of a commit" in refused.err


# The search on simulated chatbots, whose replies are drawn at random.


class Chatbots:
    """Versions of a chatbot of which some questions fail from a version on, and each reply fails at random."""

    def __init__(self, seed: int, *, changes: Mapping[int, Sequence[str]], flaky: float) -> None:
        self._random = random.Random(seed)
        self._changes = changes
        self._flaky = flaky
        self.replies = 0
        # After so many replies, every question fails in every version.
        self.drifts_after: int | None = None

    def score(self, position: int, question: str) -> float:
        self.replies += 1
        broken = any(position >= at and question in failing for at, failing in self._changes.items())
        drifted = self.drifts_after is not None and self.replies > self.drifts_after
        return 0.4 if broken or drifted or self._random.random() < self._flaky else 1.0

    async def ask(self, position: int, questions: tuple[str, ...], rounds: int) -> list[Any]:
        return [{name: self.score(position, name) for name in questions} for _ in range(rounds)]


QUESTIONS = tuple(f"q{number}" for number in range(60))


def searched(bots: Chatbots) -> tuple[int | None, Search]:
    good, bad = ({name: bots.score(at, name) for name in QUESTIONS} for at in (0, COMMITS - 1))
    flipped = {name: (good[name], bad[name]) for name in QUESTIONS if good[name] > bad[name]}
    search = Search(bots, COMMITS - 1)
    return asyncio.run(search.run(flipped)), search


@pytest.mark.parametrize("flaky", [0.0, 0.15, 0.3])
def test_the_right_commit_is_named_at_its_rate(flaky: float) -> None:
    right = wrong = 0
    for seed in range(60):
        change = 1 + seed % (COMMITS - 1)
        found, _ = searched(Chatbots(seed, changes={change: QUESTIONS[:6]}, flaky=flaky))
        right += found == change
        wrong += found not in (change, None)
    assert right >= 57
    assert wrong <= 1


@pytest.mark.parametrize("flaky", [0.0, 0.15, 0.3])
def test_without_a_change_no_commit_is_named(flaky: float) -> None:
    named = sum(searched(Chatbots(seed, changes={}, flaky=flaky))[0] is not None for seed in range(60))
    assert named <= 1


def test_a_loss_in_two_equal_steps_is_not_blamed_on_one_commit() -> None:
    halves = {3: QUESTIONS[:6], 8: QUESTIONS[6:12]}
    for seed in range(20):
        found, search = searched(Chatbots(seed, changes=halves, flaky=0.0))
        share = 0.0 if search.control is None else search.control[1]
        assert found is None or share >= 0.5


def test_a_chatbot_that_drifts_during_the_search_is_not_blamed_on_a_commit() -> None:
    named = 0
    for seed in range(40):
        bots = Chatbots(seed, changes={COMMITS: []}, flaky=0.1)
        # The bad end was asked later than the good one, when a model behind both had become worse.
        bots.drifts_after = len(QUESTIONS) + seed
        named += searched(bots)[0] is not None
    assert named <= 2


def test_a_budget_covers_the_whole_bisection(command, history) -> None:
    paid = BOT.replace('"tools_used"', '"cost": 0.01, "tools_used"')
    replaced = {version: paid.format(version=version, broken=7, flaky=0) for version in range(COMMITS)}
    commits = history(replaced=replaced)
    stopped = command("bisect", commits[6], commits[8], "--budget", "0.75")
    assert stopped.code == 130
    assert "give a larger --budget; run the same command again to continue" in stopped.err
    count = len(asked())
    # The first ten of a run are in flight before their price is known.
    assert 60 <= count <= 85
    found = command("bisect", commits[6], commits[8], "--budget", "10", "--json").document
    assert found["commit"]["hash"] == commits[7]
    assert len(asked()) == found["replies"]
