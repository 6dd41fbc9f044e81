"""`answerkey demo`: one question on the terminal, and the service as a process."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest


def answerkey(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "answerkey", "demo", *arguments],
        input=stdin,
        capture_output=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
    )


def test_asks_one_question() -> None:
    done = answerkey("ask", "What was my rental income in August 2024?")
    assert done.returncode == 0
    assert b"$16,144" in done.stdout
    assert b"query_database" in done.stdout


def test_reads_standard_input_and_prints_one_json_document() -> None:
    done = answerkey("ask", "-", "--json", stdin=b"Is anything overdue?\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["tools_used"] == ["query_database"]


def test_the_basic_variant_answers_worse() -> None:
    done = answerkey("ask", "What was my rental income in August 2024?", "--variant", "basic")
    assert done.returncode == 0
    assert b"$16,144" not in done.stdout


def test_binary_input_is_no_crash() -> None:
    done = answerkey("ask", "-", stdin=bytes(range(256)))
    assert done.returncode == 0
    assert b"binary" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ask", "x", "--variant", "nope"], "choose from default, basic, openai, flaky"),
        (["ask", "x", "--variant", "openai"], "ANSWERKEY_DEMO_MODEL"),
        (["ask", "rent?", "--variant", "flaky?kinds=timeout&rate=1"], "TimeoutError"),
        (["ask", "x", "--data", "/nowhere"], "/nowhere"),
        (["serve", "--port", "99999"], "99999"),
        (["serve", "--feedback-url", "ftp://x"], "http://"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(arguments: list[str], told: str) -> None:
    done = answerkey(*arguments, env={"ANSWERKEY_DEMO_MODEL": ""})
    error = done.stderr.decode()
    assert done.returncode == 2
    assert told in error
    assert len(error.strip().splitlines()) == 1
    assert "Traceback" not in error


def test_serves_until_it_is_stopped(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", "demo", "serve", "--port", "0", "--variant", "basic"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        request = urllib.request.Request(
            found.group() + "chat",
            data=json.dumps({"question": "What is our property address?"}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert "900 S 9th St" in json.load(response)["answer"]
    finally:
        process.terminate()
        process.wait(timeout=300)
    assert (tmp_path / ".answerkey" / "demo-feedback.db").exists()


def test_a_port_that_is_taken_is_one_line() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = answerkey("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert b"choose another --port" in done.stderr
