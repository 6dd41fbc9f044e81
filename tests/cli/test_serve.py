import re
import signal
import subprocess
import sys
import urllib.request

import pytest


@pytest.mark.parametrize(
    "arguments", [("--host", "0.0.0.0"), ("--public-url", "https://dash.example.com"), ("--require-token",)]
)
def test_where_others_come_someone_must_have_access_first(command, arguments):
    outcome = command("serve", *arguments, "--port", "0")
    assert outcome.code == 2
    assert "nobody has access yet" in outcome.err


def test_people_are_given_access_listed_and_removed(command):
    made = command("people", "add", "ann", "--role", "reviewer")
    assert re.fullmatch(r"ak_\S{40,}\n", made.out)
    listed = command("people", "list", "--json").document
    assert [(one["name"], one["role"]) for one in listed["people"]] == [("ann", "reviewer")]
    assert made.out.strip() not in str(listed)
    assert "0 sessions" in command("people", "sign-out", "ann").out
    assert command("people", "rm", "ann").code == 0
    again = command("people", "rm", "ann")
    assert (again.code, "no person 'ann'" in again.err) == (2, True)


def test_sites_get_keys(command):
    made = command("sites", "add", "shop")
    assert re.fullmatch(r"ak_site_\S{40,}\n", made.out)
    listed = command("sites", "list", "--json").document
    assert [one["name"] for one in listed["sites"]] == ["shop"]
    assert command("sites", "rm", "shop").code == 0
    assert "no site yet" in command("sites", "list").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "99999"), "between 0 and 65535"),
        (("--allow-origin", "chat.example.com"), "scheme and host only"),
        (("--public-url", "https://example.com/dash"), "a host name of its own"),
        (("--trust-proxy", "nginx"), "write an address or a network"),
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
