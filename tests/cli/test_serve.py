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
    assert "there are no users yet" in outcome.err


@pytest.mark.parametrize("group", ["users", "people"])
def test_users_are_added_listed_and_removed(command, group):
    made = command(group, "add", "ann", "--role", "reviewer")
    assert re.fullmatch(r"ak_\S{40,}\n", made.out)
    listed = command(group, "list", "--json").document
    assert [(one["name"], one["role"]) for one in listed[group]] == [("ann", "reviewer")]
    assert made.out.strip() not in str(listed)
    assert "0 sessions" in command(group, "sign-out", "ann").out
    assert command(group, "rm", "ann").code == 0
    again = command(group, "rm", "ann")
    assert (again.code, "no user 'ann'" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("group", "add"), [("users", ("add", "shop", "--role", "site")), ("sites", ("add", "shop"))]
)
def test_sites_get_keys(command, group, add):
    made = command(group, *add)
    assert re.fullmatch(r"ak_site_\S{40,}\n", made.out)
    listed = command(group, "list", "--json").document
    assert [(one["name"], one["role"]) for one in listed[group]] == [("shop", "site")]
    assert command(group, "rm", "shop").code == 0
    assert "no users yet" in command(group, "list").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "99999"), "between 0 and 65535"),
        (("--allow-origin", "chat.example.com"), "scheme and host only"),
        (("--public-url", "https://example.com/dash"), "cannot share a host name"),
        (("--trust-proxy", "nginx"), "use an address or a network"),
        (("--store", "mysql://localhost/x"), "unknown kind of database"),
        (("--drafts", "missing.jsonl"), "answerkey draft LOG -o missing.jsonl"),
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
