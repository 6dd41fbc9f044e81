"""What happens every day: another folder, several files, a mount that is read-only, Ctrl-C, a full disk."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = [{"id": f"q{i}", "question": f"What is {i}?", "expected_keywords": [str(i)]} for i in range(10, 14)]
BOT = "def answer(question):\n    return {'answer': 'It is ' + question.split()[-1], 'tools_used': []}\n"


def run_answerkey(*arguments: object, cwd: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run([*_PROGRAM, *map(str, arguments)], cwd=cwd, check=False, **given)


_PROGRAM = [sys.executable, "-m", "answerkey"]


def test_several_targets_get_one_run_each_and_a_ranking(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT + "\n\ndef lost(question):\n    return 'I like cats.'\n")
    targets = ("--target", "bot.py:lost", "--target", "bot.py:answer")
    run = ("run", "golden.jsonl", *targets, "--name", "bots", "--gate", "score >= 0.9")
    done = command(*run, "-o", "ranking.html", "--json")
    assert done.code == 1
    ranked = done.document["runs"]
    assert [(one["name"], one["rank"], one["score"]) for one in ranked] == [
        ("bots-2", 1, 1.0),
        ("bots-1", 2, 0.6),
    ]
    assert [one["gates"][0]["passed"] for one in ranked] == [True, False]
    assert "bots-1" in (tmp_path / "ranking.html").read_text()
    assert [row["name"] for row in command("runs", "--json").document["runs"]] == ["bots-2", "bots-1"]
    shown = command(*run)
    assert shown.code == 1
    assert "2 runs, best first" in shown.out
    assert command("run", "golden.jsonl", *targets, "-o", "x.csv").code == 2
    assert "name different targets" in command("run", "golden.jsonl", *targets, *targets).err
    away = command("run", "golden.jsonl", *targets[:2], "--target", "http://127.0.0.1:9/")
    assert away.code == 3
    assert "127.0.0.1:9" in away.err


def test_a_configured_target_is_found_from_any_folder(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
    inside = tmp_path / "deep" / "inside"
    inside.mkdir(parents=True)
    for folder in (tmp_path, inside):
        done = run_answerkey("run", "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
    done = run_answerkey("compare", "latest~1", "latest", "--json", cwd=inside)
    assert json.loads(done.stdout)["verdict"] == "no clear difference"


def test_lint_takes_the_files_of_a_commit(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    good = write_rows("golden-a.jsonl", *GOLDEN)
    bad = write_rows("golden-b.jsonl", {"id": "x", "question": "Is it big?", "expected_keywords": ["big"]})
    both = command("lint", good, bad, "--strict", "--json")
    assert both.code == 1
    assert str(bad) in {finding["file"] for finding in both.document["findings"]}
    assert "golden-b.jsonl:" in command("lint", good, bad).out
    missing = command("lint", good, "nosuch.jsonl")
    assert (missing.code, missing.out) == (2, "")
    assert "nosuch.jsonl" in missing.err


@pytest.mark.parametrize(
    "arguments", [("show",), ("show", "--json"), ("compare", "latest~1", "latest"), ("runs",)]
)
def test_a_store_on_a_read_only_mount_is_read(
    write_rows: Callable[..., Path], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    golden = write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT)
    store = tmp_path / "mount" / "x.db"
    for _ in range(2):
        done = run_answerkey("run", golden, "--target", "bot.py:answer", "--store", store, cwd=tmp_path)
        assert done.returncode == 0
    before = {path.name: path.read_bytes() for path in store.parent.iterdir()}
    for path in store.parent.iterdir():
        path.chmod(0o400)
    store.parent.chmod(0o500)
    # Root may write anywhere, unless it gives that up.
    obedient = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*obedient, *_PROGRAM, *arguments, "--store", str(store)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name: path.read_bytes() for path in store.parent.iterdir()} == before
    store.parent.chmod(0o700)


def test_resume_writes_what_the_interrupted_run_was_to_write(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    waiting = "import os, time\ndef answer(question):\n    while 'What is 13?' == question and not os.path.exists('go'):\n"
    waiting += "        open('reached', 'w').close()\n        time.sleep(0.02)\n    return 'It is ' + question.split()[-1]\n"
    (tmp_path / "bot.py").write_text(waiting)
    process = subprocess.Popen(
        [
            *_PROGRAM,
            "run",
            "golden.jsonl",
            "--target",
            "bot.py:answer",
            "-o",
            "report.md",
            "--concurrency",
            "1",
        ],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "reached").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "answerkey resume" in said
    assert not (tmp_path / "report.md").exists()
    (tmp_path / "go").touch()
    assert run_answerkey("resume", cwd=tmp_path).returncode == 0
    assert "4 questions" in (tmp_path / "report.md").read_text()


def test_an_output_without_room_is_one_line(command: Callable[..., Any], tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip(reason="this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = run_answerkey("--help", cwd=tmp_path, stdout=full)
        schema = run_answerkey("schema", "run", cwd=tmp_path, stdout=full)
    for outcome in (done, schema):
        assert outcome.returncode == 2
        assert outcome.stderr == (
            "answerkey: cannot write the output: No space left on device; free some space or write elsewhere\n"
        )


def test_ctrl_c_while_modules_are_loaded_is_one_line(tmp_path: Path) -> None:
    script = "import answerkey.cli; raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == "answerkey: interrupted\n"


def test_reuse_asks_only_what_is_new_and_keeps_latency_apart(
    command: Callable[..., Any], chatbot: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    failing = {"What is 11?"}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        question = body["question"]
        return (
            {"error": "down"}
            if question in failing
            else {"answer": f"It is {question.split()[-1]}", "tools_used": []}
        )

    bot = chatbot(answer)
    golden = write_rows("golden.jsonl", *GOLDEN)
    first = command("run", golden, "--target", bot.url, "--reuse", "--json").document
    assert len(bot.asked) == 4
    failing.clear()
    write_rows("golden.jsonl", *GOLDEN, {"id": "new", "question": "What is 99?", "expected_keywords": ["99"]})
    second = command("run", golden, "--target", bot.url, "--reuse", "--json").document
    assert [body["question"] for body in bot.asked[4:]] == ["What is 11?", "What is 99?"]
    assert second["summary"]["score"] == 1.0
    assert f"replies of run {first['run']['id']} were reused" in " ".join(second["warnings"])
    timed = {result["id"] for result in second["results"] if result["reply"]["latency_ms"] is not None}
    assert timed == {"q11", "new"}
    third = command("run", golden, "--target", bot.url, "--json").document
    assert len(bot.asked) == 11
    assert third["warnings"] == []


def test_doctor_says_what_is_there_and_what_is_wrong(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "answerkey.toml").write_text('questions = "golden.jsonl"\ntarget = "bot.py:answer"\n')
    fine = command("doctor", "--json")
    assert fine.code == 0
    states = {check["check"]: check["state"] for check in fine.document["checks"]}
    assert states["golden set"] == states["configuration"] == "ok"
    # A Python chatbot is code of the project, which doctor does not run.
    assert states["chatbot"] == "note"
    assert not (tmp_path / ".answerkey").exists()
    (tmp_path / ".git").mkdir()
    wrong = command("doctor", "--target", "http://127.0.0.1:1/chat")
    assert wrong.code == 1
    assert "✗ chatbot" in wrong.out
    assert "✗ git           add .answerkey/ to .gitignore" in wrong.out


def test_the_shell_completes_commands_and_flags(tmp_path: Path) -> None:
    def completed(words: str, count: int) -> list[str]:
        given = {"_ANSWERKEY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        done = run_answerkey(cwd=tmp_path, env={**os.environ, **given})
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("answerkey do", 1) == ["doctor"]
    assert "--reuse" in completed("answerkey run --re", 2)
