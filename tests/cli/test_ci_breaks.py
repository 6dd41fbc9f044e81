"""The job that `init` writes and the Action, run step by step against a chatbot on loopback that a change broke.

Thirty questions with two keywords each: one lost keyword leaves 0.80, above the pass mark, so that only the gates on questions
whose score fell can see it.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from documented import ROOT

SIMULATION = ROOT / "tools" / "simulate" / "noisy_ci.py"
QUESTIONS = [
    {
        "id": f"bike-{number:02}",
        "question": f"What does bike {number} cost, and what does it weigh?",
        "expected_tools": ["get_product"],
        "expected_keywords": [f"{1300 + number}", f"{11 + number / 10:.1f}"],
    }
    for number in range(30)
]


class Shop:
    """A chatbot that answers from a table, with a switch for each way of breaking it."""

    def __init__(self) -> None:
        self.broken = ""
        self.asked = 0

    async def __call__(self, body: dict[str, Any]) -> Any:
        self.asked += 1
        number = int(body["question"].split()[3])
        price, tool = 1300 + number, "get_product"
        if self.broken == "latency":
            await asyncio.sleep(1.5)
        elif self.broken == "tool renamed":
            tool = "fetch_product"
        elif self.broken in ("1 price", "4 prices") and number < int(self.broken[0]):
            price -= 100
        elif (self.broken == "20% errors" and self.asked % 5 == 0) or (
            self.broken == "5% errors" and self.asked % 20 == 0
        ):
            return web.json_response({"detail": "Internal Server Error"}, status=500)
        elif self.broken == "apology" and number == 3:
            return {"answer": "Sorry, something went wrong. Please try again later.", "tools_used": []}
        return {"answer": f"It costs ${price} and weighs {11 + number / 10:.1f} kg.", "tools_used": [tool]}


class Job:
    """The steps of a workflow, run by bash in a project's folder."""

    def __init__(self, folder: Path, grade: str, keep_baseline: str, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._grade, self._keep_baseline = grade, keep_baseline

    def keep_baseline(self) -> None:
        assert self._run(self._keep_baseline).returncode == 0

    def grade(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self._run(self._grade, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="summary.md", **environment)

    def _run(self, script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=self._folder,
            env={**os.environ, **self._environment, **environment, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture(params=["init", "action"])
def job(
    request: pytest.FixtureRequest, command: Any, chatbot: Callable[..., Any], shop: Shop, tmp_path: Path
) -> Job:
    """The job in a project whose baseline is the unbroken chatbot."""
    url = chatbot(shop).url
    question = QUESTIONS[0]["question"]
    assert command("init", "--target", url, "--question", question, "--no-run").code == 0
    (tmp_path / "golden.yaml").write_text(json.dumps(QUESTIONS))
    # A busy machine is slow at times; a delay of 1.5 s is beyond any of that.
    with (tmp_path / "answerkey.toml").open("a") as file:
        file.write("\n[gates]\nlatency_factor = 20\n")
    workflow = yaml.safe_load((tmp_path / ".github/workflows/answerkey.yml").read_text())
    steps = {step["name"]: step for step in workflow["jobs"]["grade"]["steps"] if "name" in step}
    environment = {"ON_DEFAULT_BRANCH": "false"}
    if request.param == "action":
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        steps = {step["name"]: step for step in action["runs"]["steps"] if "name" in step}
        given = {name: setting["default"] for name, setting in action["inputs"].items()}
        declared = steps["Grade"]["env"].items()
        environment = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
            for name, value in declared
        } | {"MAY_BE_FIRST": "false"}
    made = Job(tmp_path, steps["Grade"]["run"], steps["Keep as baseline"]["run"], environment)
    first = made.grade(ON_DEFAULT_BRANCH="true", MAY_BE_FIRST="true")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "does not exist yet: nothing was compared" in first.stdout
    made.keep_baseline()
    return made


@pytest.mark.slow
def test_each_break_of_the_table_is_stopped_and_an_equal_chatbot_is_not(
    job: Job, shop: Shop, tmp_path: Path
) -> None:
    unchanged = job.grade()
    assert unchanged.returncode == 0, unchanged.stdout + unchanged.stderr
    for broken, gate, reason in (
        ("1 price", "worse == 0", "bike-00"),
        ("4 prices", "worse == 0", "bike-03"),
        ("latency", "no regression in latency", "more than 20 times"),
        ("tool renamed", "worse == 0", "did not call get_product; called fetch_product"),
        ("20% errors", "error_rate < 2%", "HTTP 500"),
        ("5% errors", "error_rate < 2%", "HTTP 500"),
        ("apology", "worse == 0", "bike-03"),
    ):
        shop.broken, shop.asked = broken, 0
        stopped = job.grade()
        assert stopped.returncode == 1, f"{broken}: {stopped.stdout}{stopped.stderr}"
        # The failed gates and the reasons are the last lines of the report, before GitHub's commands.
        lines = stopped.stdout.splitlines()
        report = [line for line in lines if not line.startswith("::")]
        last = "\n".join(report[-40:])
        assert f"✗ {gate}" in last, broken
        assert reason in "\n".join(lines), broken
        annotations = "\n".join(line for line in lines if line.startswith("::"))
        assert gate.replace("%", "%25") in annotations
        summary = (tmp_path / "summary.md").read_text()
        assert reason in summary.replace("\\_", "_"), broken
        (tmp_path / "summary.md").unlink()


def test_a_missing_baseline_stops_a_pull_request(job: Job, tmp_path: Path) -> None:
    for file in (tmp_path / ".answerkey").iterdir():
        file.unlink()
    stopped = job.grade()
    assert stopped.returncode == 2
    assert "::error title=answerkey::baseline 'production' does not exist" in stopped.stderr
    assert "--allow-missing-baseline" in stopped.stderr


def test_the_reason_comes_first_in_annotations_and_comment(job: Job, shop: Shop, tmp_path: Path) -> None:
    shop.broken = "1 price"
    stopped = job.grade()
    assert (
        "::warning title=Worse%3A bike-00::1.000 → 0.800: 1 of 2 keywords found; missing 1300"
        in stopped.stdout
    )
    if (tmp_path / "answerkey.comment.md").exists():
        comment = (tmp_path / "answerkey.comment.md").read_text()
        head = comment[: comment.index("<details>")]
        assert "❌ worse == 0 failed: 1" in head
        assert "- worse: **bike-00** 1.000 → 0.800: 1 of 2 keywords found; missing 1300" in head


def test_the_job_of_init_is_complete(
    command: Any, chatbot: Callable[..., Any], shop: Shop, tmp_path: Path
) -> None:
    os.environ["BOT_TOKEN"] = "secret"  # not one
    try:
        url = chatbot(shop).url
        arguments = ("--question", QUESTIONS[0]["question"], "--header", "Authorization: Bearer ${BOT_TOKEN}")
        assert command("init", "--target", url, *arguments, "--no-run").code == 0
    finally:
        del os.environ["BOT_TOKEN"]
    workflow = yaml.safe_load((tmp_path / ".github/workflows/answerkey.yml").read_text())
    steps = workflow["jobs"]["grade"]["steps"]
    [upload] = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["path"].split() == ["report.html", "results.junit.xml"]
    named = {step["name"]: step for step in steps if "name" in step}
    assert named["Grade"]["env"]["BOT_TOKEN"] == "${{ secrets.BOT_TOKEN }}"
    # The step that starts the chatbot waits until it listens.
    started = subprocess.run(["bash", "-ec", named["Start the chatbot"]["run"]], check=False, timeout=60)
    assert started.returncode == 0


@pytest.mark.slow
def test_a_chatbot_that_varies_is_rarely_stopped() -> None:
    command = [sys.executable, str(SIMULATION), "--runs", "10", "--rates", "0.3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stopped = int(re.search(r": (\d+) of 10 stopped", done.stdout)[1])  # type: ignore[index]
    assert stopped <= 1
