"""Programs that write what nobody asked for: no question gets another's reply, and nothing is dropped in silence."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answerkey.engine import LocalEngine
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.targets.command_target import CommandSettings, CommandTarget

QUESTIONS = [f"q{number}" for number in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def run(folder: Path, body: str, *questions: str, timeout: float = 30, **settings: Any) -> dict[str, Reply]:
    """Ask a program whose loop over the questions has `body` in it."""
    script = folder / "bot.py"
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    script.write_text(
        "import json, os, sys, time\n"
        "def say(*texts): sys.stdout.write(''.join(texts)); sys.stdout.flush()\n"
        "def line(**fields): say(json.dumps(fields), '\\n')\n"
        "started = not os.path.exists('started'); open('started', 'a').close()\n"
        f"{settings.pop('before', '')}\n"
        "for number, read in enumerate(sys.stdin):\n"
        "    asked = json.loads(read); q = asked['question']\n"
        f"{lines}\n"
    )
    made = msgspec.convert(
        {"cmd": [sys.executable, str(script)], "folder": str(folder), **settings}, CommandSettings
    )
    target = CommandTarget(made, name="bot")
    engine = LocalEngine(Options(concurrency=4, timeout=timeout, retries=0))
    trials = [Trial(Question(question=text, id=text)) for text in questions or QUESTIONS]

    async def ask_everything() -> dict[str, Reply]:
        async with target:
            return {trial.question.id: trial.reply async for trial in engine.ask_all([target], trials)}

    return asyncio.run(ask_everything())


def texts(replies: dict[str, Reply]) -> dict[str, str | None]:
    return {name: reply.text for name, reply in replies.items()}


EXACT = {name: name for name in QUESTIONS}


@pytest.mark.parametrize(
    "body",
    [
        "line(id=asked['id'], answer=q)",
        "say('log: thinking\\n'); line(id=asked['id'], answer=q)",
        "line(id=asked['id'], answer=q); say('log: done\\n')",
        "line(level='info', message='thinking'); line(id=asked['id'], answer=q); line(message='done')",
        "line(id='ask-of-somebody', answer='other'); line(id=asked['id'], answer=q)",
        "say('\\n\\n'); line(id=asked['id'], answer=q)",
        "say('{\"id\": \"' + asked['id']); time.sleep(0.01); say('\", \"answer\": \"' + q + '\"}\\n')",
    ],
    ids=["nothing else", "before", "after", "json log", "another id", "empty lines", "in pieces"],
)
def test_a_program_that_echoes_the_id_is_understood_exactly(folder: Path, body: str) -> None:
    replies = run(folder, body)
    assert texts(replies) == EXACT
    assert {reply.response_id for reply in replies.values()} == {None}, "the id is ours, not the reply's"


def test_stray_lines_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        folder,
        "say(f'loading \\x1b[31m {q}\\n'); line(id=asked['id'], answer=q)",
        *[f"q{n}" for n in range(25)],
    )
    shown = capsys.readouterr().err
    assert "answerkey: bot wrote a line that is not a reply: loading ␛[31m q0" in shown
    assert "answerkey: bot wrote 5 further lines that are not replies" in shown


@pytest.mark.parametrize(
    "body",
    [
        "line(answer=q)",
        "say(q, '\\n')",
        "line(answer=q, id='own-' + q)",
        "say('log: thinking\\n'); line(answer=q)",
        "line(answer=q); say('log: done\\n')",
        "if number == 2: say('log: busy\\n')\nline(answer=q)",
        "if number == 2: say('log: busy\\n'); time.sleep(0.1)\nline(answer=q)",
    ],
    ids=["json", "text", "ids of its own", "before", "after", "once", "once and slowly"],
)
def test_a_program_that_does_not_is_understood_where_its_replies_can_be_told(folder: Path, body: str) -> None:
    assert texts(run(folder, body)) == EXACT


def test_one_stray_line_costs_nobody_else_a_reply(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It used to give every later question the reply of the one before."""
    replies = run(folder, "if q == 'q2': say('busy\\n'); time.sleep(0.1)\nsay(q, '\\n')")
    assert texts(replies) == {**EXACT, "q2": "busy"}
    shown = capsys.readouterr().err
    assert "wrote a line that is not a reply (after a reply, which may not be one either): q2" in shown


def test_a_program_whose_lines_cannot_be_told_apart_fails_openly(folder: Path) -> None:
    replies = run(folder, "say('first\\n', q, '\\n')", "q0", "q1", "q2")
    for reply in replies.values():
        assert reply.failure is not None
        assert reply.failure.kind == "malformed"
        assert 'give back the question\'s "id"' in reply.failure.message


def test_a_greeting_is_not_taken_for_a_reply(folder: Path) -> None:
    assert texts(run(folder, "time.sleep(0.1); line(answer=q)", before="say('welcome\\n')")) == EXACT
    text = run(folder, "time.sleep(0.1); say(q, '\\n')", "q0", "q1", before="say('welcome\\n')")
    for reply in text.values():
        assert reply.failure is not None, "of two texts nobody can tell which is the reply"


def test_a_reply_long_after_a_greeting_goes_to_nobody_else(folder: Path) -> None:
    replies = run(folder, "time.sleep(1.5); line(answer=q)", "q0", "q1", before="say('welcome\\n')")
    assert texts(replies) == {"q0": "welcome", "q1": "q1"}
    slow = run(folder, "time.sleep(3); say(q, '\\n')", *QUESTIONS[:4], before="say('welcome\\n')")
    assert set(texts(slow).values()) == {"welcome", None}, "never another question's reply"
    assert [reply.failure is not None for reply in slow.values()] == [False, False, True, True]


def test_the_id_of_another_question_is_refused(folder: Path) -> None:
    replies = run(folder, "line(id=asked['id'][:-1] + '999', answer=q)")
    for reply in replies.values():
        assert reply.failure is not None
        assert reply.failure.message.startswith("the program answered with the id of another question")


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("say(q); os._exit(0)", "exception", "ended with exit code 0 (in the middle of a line)"),
        ("os._exit(0)", "exception", "the program ended with exit code 0"),
        ("os.kill(os.getpid(), 9)", "memory", "was ended by signal 9"),
        ("os.close(1); time.sleep(60)", "exception", "closed its standard output without ending"),
        ("say('x' * 3_000_000, '\\n')", "malformed", "larger than 1 MB"),
        ("say('x' * 3_000_000); time.sleep(60)", "malformed", "larger than 1 MB"),
        ("line(answer={'a': 'b' * 3_000_000})", "malformed", "larger than 1 MB"),
        ("line(nothing=1)", "malformed", "has no text"),
        ("say('null\\n')", None, ""),
    ],
    ids=[
        "half a line",
        "exit",
        "kill",
        "closed",
        "huge",
        "endless",
        "huge json",
        "no text",
        "null",
    ],
)
def test_what_is_no_reply_is_an_explicit_failure_of_that_question_alone(
    folder: Path, body: str, kind: str | None, message: str
) -> None:
    bad = f"if q == 'bad':\n    {body}\n    continue\nline(answer=q)"
    replies = run(folder, bad, "q0", "bad", "q1", "q2", max_reply_mb=1)
    bad_reply = replies.pop("bad")
    assert texts(replies) == {"q0": "q0", "q1": "q1", "q2": "q2"}
    assert (bad_reply.failure and bad_reply.failure.kind) == kind
    assert bad_reply.failure is None or message in bad_reply.failure.message


def test_no_line_break_at_all_is_a_timeout(folder: Path) -> None:
    replies = run(folder, "say(q)\nif q != 'bad': say('\\n')", "q0", "bad", "q1", timeout=3)
    bad = replies.pop("bad")
    assert bad.failure is not None
    assert bad.failure.kind == "timeout"
    assert texts(replies) == {"q0": "q0", "q1": "q1"}


def test_bytes_that_are_no_text(folder: Path) -> None:
    replies = run(folder, "sys.stdout.buffer.write(b'\\xff' + q.encode() + b'\\n'); sys.stdout.flush()", "q0")
    assert replies["q0"].text == "\ufffdq0"
    assert replies["q0"].failure is not None
    assert replies["q0"].failure.kind == "malformed"


def test_the_wait_for_further_lines_is_not_the_programs_time(folder: Path) -> None:
    reply = run(folder, "say('plain text', '\\n')", "q")["q"]
    # The first line of a program that echoes no id is held back for a second.
    assert reply.text == "plain text"
    assert reply.timings.queue_ms >= 900
