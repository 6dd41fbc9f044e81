import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec
import pytest

from answerkey.cli.main import run_command
from answerkey.judge.session import Judge, JudgingSession, open_judging
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score


class ScriptedJudge:
    """The scripted judge's process, seen from a test."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.address}/v1"

    def reset(self) -> None:
        urllib.request.urlopen(f"{self.address}/reset", data=b"").read()

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self.log["calls"]

    @property
    def log(self) -> dict[str, Any]:
        return json.load(urllib.request.urlopen(f"{self.address}/log"))

    @property
    def count(self) -> int:
        return json.load(urllib.request.urlopen(f"{self.address}/count"))["calls"]

    def settings(self, model: str | tuple[str, ...] = "good", **changes: Any) -> JudgeSettings:
        """Settings for this judge, without canaries unless asked for."""
        return JudgeSettings(model=model, base_url=self.base_url, **{"canaries": False, **changes})


@pytest.fixture(scope="session")
def judge_process() -> Iterator[ScriptedJudge]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "scripted_judge.py")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield ScriptedJudge(int(process.stdout.readline().split()[1]))
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture
def scripted(judge_process: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    judge_process.reset()
    return judge_process


ADDRESS = Question(
    id="address", question="What is our address?", reference_answer="900 S 9th St, Montrose, Colorado."
)
GOOD = Reply(text="It is 900 S 9th St in Montrose, Colorado.")
BAD = Reply(text="I do not know.")


def judge_all(
    settings: JudgeSettings, *pairs: tuple[Question, Reply], run_id: str = "r1", store: Any = None
) -> tuple[list[tuple[Score, ...]], dict[str, Any]]:
    """The scores of replies, judged concurrently, and the judge section."""

    async def run() -> tuple[list[tuple[Score, ...]], dict[str, Any]]:
        async with open_judging(Judge(settings), run_id=run_id, store=store) as session:
            found = await asyncio.gather(*(_one(session, question, reply) for question, reply in pairs))
            return found, msgspec.json.decode(msgspec.json.encode(session.record()))

    return asyncio.run(run())


async def _one(session: JudgingSession, question: Question, reply: Reply) -> tuple[Score, ...]:
    return (await session.judge(question, (reply,)))[0]


def command(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of answerkey in this process; its output is what it wrote to the descriptors."""
    with TemporaryFile() as out, TemporaryFile() as err:
        saved = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for (number, _), file in zip(saved, (out, err), strict=True):
                os.dup2(file.fileno(), number)
            with (
                open(1, "w", encoding="utf-8", closefd=False) as stdout,
                open(2, "w", encoding="utf-8", closefd=False) as stderr,
                redirect_stdout(stdout),
                redirect_stderr(stderr),
            ):
                code = run_command(list(arguments))
        finally:
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    assert not check or code == 0, texts
    return subprocess.CompletedProcess(arguments, code, *texts)


def run_document(*arguments: str) -> dict[str, Any]:
    """The JSON document that a command prints."""
    document: dict[str, Any] = json.loads(command(*arguments, "--json").stdout)
    return document


def judge_one(settings: JudgeSettings, reply: Reply = GOOD, question: Question = ADDRESS) -> Score:
    """The judge's score of one reply."""
    return judge_all(settings, (question, reply))[0][0][0]
