import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answerkey.config import Secrets
from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask
from answerkey.targets.command_target import CommandSettings, CommandTarget

from .asking import ask, ask_all, is_gone

BOT = """
import json, os, sys, time
seen = 0
for line in sys.stdin:
    asked = json.loads(line)
    seen += 1
    question = asked["question"]
    if question == "die":
        print("DatabaseError: Connection refused", file=sys.stderr)
        sys.exit(3)
    if question == "hang":
        time.sleep(60)
    if question == "plain":
        print("just text", flush=True)
        continue
    if question == "huge":
        print("x" * 3_000_000, flush=True)
        continue
    answer = f"{question} {seen} {os.getpid()} {os.environ.get('KEY')}"
    print(json.dumps({"answer": answer, "tools_used": ["a"], "conversation_id": asked["conversation_id"]}), flush=True)
"""


@pytest.fixture
def bot(tmp_path: Path) -> list[str]:
    path = tmp_path / "bot.py"
    path.write_text(BOT)
    return [sys.executable, str(path)]


def command(cmd: Any, secrets: Secrets | None = None, **settings: Any) -> CommandTarget:
    return CommandTarget(msgspec.convert({"cmd": cmd, **settings}, CommandSettings), secrets=secrets)


def turns(*questions: str, conversation: str = "c") -> list[Ask]:
    return [
        Ask(question=text, conversation_id=conversation, turn=turn) for turn, text in enumerate(questions)
    ]


def test_a_program_that_waits_for_the_end_of_its_input_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "bot.py"
    path.write_text('import json, sys\nprint(json.dumps({"answer": json.load(sys.stdin)["question"]}))')

    async def ask_in_vain(target: CommandTarget) -> None:
        async with target:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await target.ask(Ask(question="Who?", conversation_id="c"))

    target = command([sys.executable, str(path)])
    asyncio.run(ask_in_vain(target))
    assert 'mode = "once"' in target.warnings()[0]
    once = command([sys.executable, str(path)], mode="once")
    assert ask(once, "Who?").text == "Who?"
    assert once.warnings() == []


def test_one_process_answers_line_by_line(bot: list[str]) -> None:
    replies = ask_all(command(bot), *turns("one", "two"))
    assert [reply.text.split()[:2] for reply in replies if reply.text] == [["one", "1"], ["two", "2"]]
    assert replies[0].tools_used == ("a",)
    assert replies[0].conversation_id == "c"
    assert replies[0].timings.latency_ms is not None


def test_text_that_is_not_json_is_the_answer(bot: list[str]) -> None:
    assert ask(command(bot), "plain").text == "just text"


def test_a_program_that_dies_is_a_failure_and_the_next_question_gets_a_new_one(bot: list[str]) -> None:
    before, died, after = ask_all(command(bot), *turns("a", "die", "b"))
    assert died.failure is not None
    assert died.failure.kind == "connection"
    assert died.failure.message == "the program ended with exit code 3: DatabaseError: Connection refused"
    assert (before.text or "").split()[2] != (after.text or "").split()[2]
    assert (after.text or "").split()[:2] == ["b", "1"]


def test_a_timeout_ends_the_program_with_its_children(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    pids = tmp_path / "pids"
    script.write_text(
        "import subprocess, sys, os\n"
        "for line in sys.stdin:\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"    open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "    child.wait()\n",
    )

    async def run() -> None:
        async with command([sys.executable, str(script)]) as target:
            task = asyncio.create_task(target.ask(Ask(question="x", conversation_id="c")))
            for _ in range(15000):
                if pids.exists() and len(pids.read_text().split()) == 2:
                    break
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()

    asyncio.run(run())
    for pid in map(int, pids.read_text().split()):
        assert is_gone(pid)


def test_the_answer_of_a_timed_out_question_is_not_the_next_ones(bot: list[str]) -> None:
    async def run() -> Reply:
        async with command(bot) as target:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await target.ask(Ask(question="hang", conversation_id="1"))
            return await target.ask(Ask(question="next", conversation_id="2"))

    assert (asyncio.run(run()).text or "").split()[:2] == ["next", "1"]


def test_a_pool_keeps_conversations_together(bot: list[str]) -> None:
    async def run() -> list[list[str]]:
        async with command(bot, processes=2) as target:

            async def converse(name: str) -> list[str]:
                replies = [await target.ask(one) for one in turns("a", "b", "c", conversation=name)]
                return [(reply.text or "").split()[2] for reply in replies]

            return list(await asyncio.gather(*(converse(str(n)) for n in range(4))))

    pids = asyncio.run(run())
    assert all(len(set(conversation)) == 1 for conversation in pids)
    assert len({conversation[0] for conversation in pids}) == 2
    assert command(["x"], processes=2).capacity == 2
    assert command(["x"], mode="once").capacity is None


def test_a_program_that_will_not_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import signal, sys, time, os\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for line in sys.stdin: print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n",
    )
    reply = ask(command([sys.executable, str(script)]))
    assert is_gone(int(reply.text or ""))


def test_a_line_that_is_too_long(bot: list[str]) -> None:
    huge, after = ask_all(command(bot, max_reply_mb=1), *turns("huge", "next"))
    assert huge.failure is not None
    assert huge.failure.kind == "malformed"
    assert (after.text or "").startswith("next")


def test_once_for_every_question() -> None:
    code = "import sys, json; asked = json.load(sys.stdin); print(json.dumps({'answer': sys.argv[1] + '/' + asked['question']}))"
    target = command([sys.executable, "-c", code, "Q={{question}}"], mode="once")
    replies = ask_all(target, *turns('a "b" $HOME; rm', "c"))
    assert [reply.text for reply in replies] == ['Q=a "b" $HOME; rm/a "b" $HOME; rm', "Q=c/c"]


def test_once_with_an_exit_code() -> None:
    reply = ask(command([sys.executable, "-c", "raise MemoryError('no room')"], mode="once"))
    assert reply.failure is not None
    assert (reply.failure.kind, reply.failure.message) == (
        "memory",
        "the program ended with exit code 1: MemoryError: no room",
    )


def test_once_killed() -> None:
    reply = ask(command([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"], mode="once"))
    assert reply.failure is not None
    assert reply.failure.message == "the program was ended by signal 15"


@pytest.mark.parametrize("mode", ["lines", "once"])
def test_a_program_that_does_not_exist(mode: str) -> None:
    with pytest.raises(UsageError, match="there is no program 'no-such-program-x'"):
        ask(command("no-such-program-x --flag", mode=mode))


def test_a_folder_that_does_not_exist(bot: list[str]) -> None:
    with pytest.raises(UsageError, match="there is no folder '/no/such'"):
        ask(command(bot, folder="/no/such"))


def test_words_that_cannot_be_split() -> None:
    with pytest.raises(UsageError, match="no closing quotation"):
        command("bot 'open")
    with pytest.raises(ConfigError, match="processes = 0"):
        command("bot", processes=0)


def test_its_environment_takes_secrets_that_are_not_kept(bot: list[str]) -> None:
    target = command(bot, secrets=Secrets({"BOT_KEY": "s3cr3t-value-1"}), env={"KEY": "${BOT_KEY}"})
    reply = ask(target)
    assert (reply.text or "").endswith("${BOT_KEY}")
    with pytest.raises(ConfigError, match="environment variable BOT_KEY"):
        ask(command(bot, secrets=Secrets({}), env={"KEY": "${BOT_KEY}"}))


def test_no_shell(tmp_path: Path) -> None:
    reply = ask(command(f"echo $HOME; touch {tmp_path}/owned", mode="once"))
    assert (reply.text or "").startswith("$HOME;")
    assert not (tmp_path / "owned").exists()


LENIENT = r"""
import json, sys
for number, line in enumerate(sys.stdin):
    reply = json.dumps({"id": json.loads(line)["id"], "answer": "yes", "confidence": float("nan")}).encode()
    written = [reply, reply, b"\xef\xbb\xbf" + reply, reply.replace(b"yes", b"y\xff")][number]
    sys.stdout.buffer.write(written + b"\n")
    sys.stdout.buffer.flush()
"""


def test_what_json_lacks_and_wrong_bytes_do_not_hide_a_reply() -> None:
    first, nan, bom, bytes_ = ask_all(command([sys.executable, "-c", LENIENT]), *turns("a", "b", "c", "d"))
    assert [reply.text for reply in (first, nan, bom)] == ["yes"] * 3
    assert bytes_.failure is not None
    assert bytes_.failure.kind == "malformed"


def test_waiting_for_further_lines_is_not_the_programs_time() -> None:
    async def run() -> tuple[Reply, float]:
        async with command(
            [sys.executable, "-c", "import sys\nfor _ in sys.stdin: print('yes', flush=True)"]
        ) as target:
            begun = time.perf_counter()
            reply = await target.ask(Ask(question="q", conversation_id="1"))
            return reply, 1000 * (time.perf_counter() - begun)

    reply, elapsed_ms = asyncio.run(run())
    assert reply.text == "yes"
    # The first line is held back for a second.
    assert (reply.timings.latency_ms or 0) < elapsed_ms - 900
