"""Python chatbots in processes of their own: whatever they do, every reply is exact or an explicit failure."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answerkey.engine import LocalEngine
from answerkey.errors import UsageError
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Failure, Reply
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask
from answerkey.targets.isolated_target import IsolatedTarget, PythonSettings

from . import hostile_bots
from .asking import ask, ask_all, is_gone

HERE = Path(__file__).parent


def isolated(
    name: str, *, concurrency: int = 10, blocked_after_s: float = 1.0, **settings: Any
) -> IsolatedTarget:
    made = PythonSettings(python=f"hostile_bots.py:{name}", **settings)
    return IsolatedTarget(made, concurrency=concurrency, folder=HERE, blocked_after_s=blocked_after_s)


def run(target: IsolatedTarget, *questions: str, concurrency: int, timeout: float = 60) -> dict[str, Reply]:
    """Ask as a run does."""
    engine = LocalEngine(Options(concurrency=concurrency, timeout=timeout, retries=0))
    trials = [Trial(Question(question=text, id=text)) for text in questions]

    async def ask_everything() -> dict[str, Reply]:
        async with target:
            return {trial.question.id: trial.reply async for trial in engine.ask_all([target], trials)}

    return asyncio.run(ask_everything())


GOOD = [f"good {number}" for number in range(12)]
# The misdeed → the text that is kept, or the kind of failure and a part of its message.
OUTCOMES: dict[str, str | tuple[str, str]] = {
    "print": "printed",
    "write to 1": "written",
    "exit": ("exception", "ended with exit code 0"),
    "sys.exit": ("exception", "SystemExit: 0"),
    "cancelled": ("exception", "CancelledError"),
    "base exception": ("exception", "OddError: odd"),
    "exception without text": ("exception", "MuteError"),
    "keyboard": ("exception", "KeyboardInterrupt"),
    "generator exit": ("exception", "GeneratorExit"),
    "huge": ("malformed", "larger than 2 MB"),
    "huge dict": ("malformed", "larger than 2 MB"),
    "endless": ("malformed", "larger than 2 MB"),
    "recursion": ("exception", "RecursionError"),
    "fork": "forked",
    "segfault": ("exception", "ended by signal 11"),
    "kill": ("memory", "ended by signal 9"),
    "kill group": ("exception", "ended by signal 15"),
    "threads": "left",
    "close everything": ("exception", "the chatbot"),
    "write everywhere": ("malformed", "sent a malformed reply"),
    "nan": "NaN",
    "bytes": ("malformed", "not UTF-8"),
    "object": ("malformed", "object"),
    "surrogate": "a \ufffd b",
    "nul": "a \ufffd b",
    "deep": "a",
}


@pytest.fixture(scope="module")
def replies() -> dict[str, Reply]:
    """All misdeeds in one run, several at once, with good questions between them."""
    assert {*OUTCOMES, "hang"} == set(hostile_bots.MISDEEDS)
    mixed = [*GOOD[:6], *OUTCOMES, *GOOD[6:]]
    return run(isolated("bot", concurrency=4, max_reply_mb=2), *mixed, concurrency=4)


def test_a_question_that_never_ends_is_a_timeout_and_others_are_answered() -> None:
    # Asked last, so that however slow the machine is, only this one's time runs out.
    replies = run(isolated("bot", concurrency=1), *GOOD[:2], "hang", concurrency=1, timeout=5)
    assert [replies[text].text for text in GOOD[:2]] == GOOD[:2]
    assert replies["hang"].failure == Failure("timeout", "no reply within 5 s")


@pytest.mark.parametrize("misdeed", OUTCOMES)
def test_a_misdeed_is_exact_or_an_explicit_failure(misdeed: str, replies: dict[str, Reply]) -> None:
    reply, expected = replies[misdeed], OUTCOMES[misdeed]
    if isinstance(expected, str):
        assert (reply.text, reply.failure) == (expected, None)
    else:
        assert reply.failure is not None
        assert reply.failure.kind == expected[0], reply.failure
        assert expected[1] in reply.failure.message


def test_nobody_else_is_charged_for_it(replies: dict[str, Reply]) -> None:
    assert {name: (replies[name].text, replies[name].failure) for name in GOOD} == {
        name: (name, None) for name in GOOD
    }


def test_what_they_gave_can_be_kept(replies: dict[str, Reply]) -> None:
    for reply in replies.values():
        assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
    call = replies["nul"].tool_calls[0]
    assert (call.name, call.result, replies["nul"].response_id) == ("t\ufffd", {"\ufffd": "\ufffd"}, "\ufffd")


def test_harm_to_the_process_itself_does_not_reach_answerkey() -> None:
    before = Path.cwd()
    replies = run(isolated("careless"), "chdir", "close stdout", "good", concurrency=1)
    assert {name: reply.text for name, reply in replies.items()} == {name: name for name in replies}
    assert Path.cwd() == before


def test_an_async_function_that_blocks_does_not_fail_others() -> None:
    target = isolated("async_bot", concurrency=4, blocked_after_s=0.2)
    replies = run(target, "a", "block", "b", "c", "d", "e", concurrency=4, timeout=4)
    assert replies["block"].failure is not None
    assert replies["block"].failure.kind == "timeout"
    for name in "abcde":
        assert (replies[name].text or "").split()[0] == name
        assert (replies[name].timings.latency_ms or 0) < 4000


def test_a_question_that_is_alone_is_not_asked_again_when_a_task_of_its_own_blocks(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "import asyncio, pathlib, time\n"
        "async def work():\n"
        "    time.sleep(0.8)\n"
        "async def bot(question):\n"
        "    with pathlib.Path(__file__).with_name('asked.txt').open('a') as file:\n"
        "        file.write(question)\n"
        "    await asyncio.create_task(work())\n"
        "    return question\n"
    )
    settings = PythonSettings(python=f"{tmp_path / 'bot.py'}:bot")
    target = IsolatedTarget(settings, folder=tmp_path, blocked_after_s=0.2)
    assert run(target, "a", concurrency=1)["a"].text == "a"
    assert (tmp_path / "asked.txt").read_text() == "a"


def test_a_question_that_can_be_stopped_leaves_its_process_alive() -> None:
    first, waited, after = run(isolated("async_bot"), "a", "wait", "b", concurrency=1, timeout=2).values()
    assert waited.failure is not None
    assert waited.failure.kind == "timeout"
    assert (first.text or "").split()[1] == (after.text or "").split()[1]


def test_a_process_in_which_a_question_goes_on_is_replaced() -> None:
    target = isolated("async_bot", concurrency=2)
    engine = LocalEngine(Options(concurrency=1, timeout=1, retries=0))

    async def until_replaced() -> set[str]:
        async with target:
            pids: set[str] = set()
            questions = iter(["a", "swallow"])
            # As long as it takes for another process to be there.
            for _ in range(2000):
                planned = [Trial(Question(question=next(questions, "b"), id="q"))]
                async for trial in engine.ask_all([target], planned):
                    pids.update((trial.reply.text or "").split()[1:])
                if len(pids) == 2:
                    return pids
                await asyncio.sleep(0.01)
            return pids

    first, second = asyncio.run(until_replaced())
    assert first != second


def test_async_misdeeds() -> None:
    replies = run(isolated("async_bot"), "exit", "cancelled", "a", concurrency=3)
    failures = [replies[name].failure for name in ("exit", "cancelled")]
    assert [failure and failure.kind for failure in failures] == ["exception", "exception"]
    assert "exit code 3" in (failures[0].message if failures[0] else "")
    assert (replies["a"].text or "").startswith("a ")
    endless = ask(isolated("async_endless", max_reply_mb=1)).failure
    assert endless is not None
    assert endless.kind == "malformed"


def test_nothing_is_left_open() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run(isolated("async_bot"), "a", concurrency=1)
    before = descriptors()
    run(isolated("async_bot"), "exit", "a", "b", concurrency=3)
    assert descriptors() <= before


def turns(*questions: str, conversation: str = "c") -> list[Ask]:
    return [
        Ask(question=text, conversation_id=conversation, turn=turn) for turn, text in enumerate(questions)
    ]


def test_a_conversation_stays_in_its_process() -> None:
    target = isolated("remembering", concurrency=4, processes=4)
    assert [reply.text for reply in ask_all(target, *turns("a", "b", "c"))] == ["a", "a b", "a b c"]


def test_a_conversation_whose_process_ended_is_said_to_be_lost() -> None:
    first, died, after = ask_all(isolated("remembering"), *turns("a", "exit", "b"))
    assert first.text == "a"
    assert died.failure is not None
    assert after.failure is not None
    assert after.failure.message == "the conversation was lost: the chatbot's process ended with exit code 0"


def test_the_process_and_what_it_started_are_gone_afterwards(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, subprocess\n"
        "def bot(question):\n"
        "    return f\"{os.getpid()} {subprocess.Popen(['sleep', '600']).pid}\"\n"
    )
    reply = ask(IsolatedTarget(PythonSettings(python="parent.py:bot"), folder=tmp_path))
    for pid in map(int, (reply.text or "").split()):
        assert is_gone(pid)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os; os._exit(0)", "ended the process: the chatbot's process ended with exit code 0"),
        ("raise KeyboardInterrupt", "importing bot.py:bot failed: KeyboardInterrupt"),
        ("bot = 5", "is not a callable"),
        ("def bot(): pass", "takes no argument"),
        ("import not_there", "there is no module 'not_there'; install it first"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_told_before_the_first_question(
    source: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text(source)
    with pytest.raises(UsageError) as caught:
        ask(IsolatedTarget(PythonSettings(python="bot.py:bot"), folder=tmp_path))
    assert message in str(caught.value)


def test_another_source_is_another_chatbot_without_importing_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")

    def fingerprint(reference: str, source: str) -> str:
        (package / "inner.py").write_text(source)
        return IsolatedTarget(PythonSettings(python=reference), folder=tmp_path).fingerprint

    for reference in ("package.inner:bot", "package/inner.py:bot"):
        first = fingerprint(reference, "raise SystemExit")
        assert first != fingerprint(reference, "raise SystemError")
        assert first == fingerprint(reference, "raise SystemExit")


@pytest.fixture
def golden(write_rows: Callable[..., Path]) -> Path:
    questions = ["print", "write to 1", "exit", "base exception", "good"]
    return write_rows("golden.jsonl", *({"id": text, "question": text} for text in questions))


def test_a_document_holds_nothing_that_a_chatbot_printed(command: Callable[..., Any], golden: Path) -> None:
    done = command("run", golden, "--target", f"{HERE}/hostile_bots.py:bot", "--json")
    assert done.code == 0
    assert done.document["run"]["status"] == "complete"
    assert done.document["summary"]["errors"] == {"exception": 2}
    assert "printed by the chatbot" in done.err
    assert "written by the chatbot" in done.err
    gated = command("run", golden, "--target", f"{HERE}/hostile_bots.py:bot", "--gate", "error_rate == 0")
    assert gated.code == 1


def test_a_clock_that_the_chatbot_changes_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "import time\nclock = time.perf_counter\n\n\ndef answer(question):\n"
        "    time.perf_counter = lambda: -1e9 * clock()\n    return 'yes'\n"
    )
    target = IsolatedTarget(PythonSettings(python="bot.py:answer"), folder=tmp_path)
    replies = run(target, "one", "two", "three", concurrency=1)
    assert [reply.text for reply in replies.values()] == ["yes"] * 3
    assert all((reply.timings.latency_ms or -1) > 0 for reply in replies.values())
