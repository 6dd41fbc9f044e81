import re
import signal
import subprocess
import sys
import urllib.request

import pytest


def test_a_host_that_others_can_reach_needs_a_token_first(command):
    outcome = command("serve", "--host", "0.0.0.0", "--port", "0")
    assert outcome.code == 2
    assert "no token yet" in outcome.err


def test_tokens_are_made_listed_and_revoked(command):
    made = command("serve", "token", "add", "ann", "--role", "annotator")
    assert re.fullmatch(r"ak_\S{40,}\n", made.out)
    listed = command("serve", "token", "list", "--json").document
    assert [(one["name"], one["role"]) for one in listed["tokens"]] == [("ann", "annotator")]
    assert made.out.strip() not in str(listed)
    assert command("serve", "token", "revoke", "ann").code == 0
    again = command("serve", "token", "revoke", "ann")
    assert (again.code, "no token 'ann'" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "99999"), "between 0 and 65535"),
        (("--allow-origin", "chat.example.com"), "scheme and host only"),
        (("--store", "mysql://localhost/x"), "unknown kind of database"),
    ],
)
def test_mistakes_are_one_line(command, arguments, words):
    outcome = command("serve", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert "Traceback" not in outcome.err


def test_it_serves_until_it_is_interrupted(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert address is not None, line
        with urllib.request.urlopen(address[0]) as page:
            assert "No run yet" in page.read().decode()
        taken = subprocess.run(
            [sys.executable, "-m", "answerkey", "serve", "--port", address[0].rpartition(":")[2]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (taken.returncode, "choose another --port" in taken.stderr) == (2, True)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert "Traceback" not in errors
    assert process.returncode in (0, 130)
