"""Logs that are elsewhere: the file systems of fsspec give the same document as files of this machine."""

import gzip
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest

from answerkey.errors import InputError, MissingExtraError
from answerkey.runs.api import score_replies

ROWS = [
    {"id": f"q{n}", "question": "What?", "expected_keywords": ["1200"], "answer": f"It is {1198 + n}."}
    for n in range(6)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.fixture
def in_memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    with files.open("/logs/a.jsonl", "wb") as file:
        file.write(LINES)
    with files.open("/logs/b/c.jsonl.gz", "wb") as file:
        file.write(gzip.compress(LINES))
    yield files
    files.rm("/logs", recursive=True)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    ("address", "replies"),
    [
        ("memory://logs/a.jsonl", 6),
        ("memory://logs/b/*.jsonl.gz", 6),
        ("memory://logs", 12),
        ("memory://logs/**/*.gz", 6),
    ],
)
def test_addresses_patterns_and_folders(address: str, replies: int) -> None:
    run = score_replies(address)
    assert run.summary.replies == replies
    assert run.summary.components["response_quality"] == pytest.approx(1 / 6)


def test_http_and_file_addresses(web: str, tmp_path: Path) -> None:
    here = score_replies(tmp_path / "a.jsonl")
    for address in (f"{web}/a.jsonl", (tmp_path / "a.jsonl").as_uri()):
        assert score_replies(address).summary == here.summary


@pytest.mark.usefixtures("in_memory")
def test_what_is_wrong_is_one_line(web: str) -> None:
    for address, message in [
        ("memory://logs/none.jsonl", "memory://logs/none.jsonl: no such file"),
        ("memory://logs/*.csv", "memory://logs/*.csv: no file is found there"),
        (f"{web}/none.jsonl", f"{web}/none.jsonl: no such file"),
        ("nosuch://a/b.jsonl", "nosuch://a/b.jsonl: cannot be read: Protocol not known: nosuch"),
    ]:
        with pytest.raises(InputError) as raised:
            score_replies(address)
        assert str(raised.value) == message


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"reading s3://bucket/a.jsonl needs .*answerkey\[remote\]"):
        score_replies("s3://bucket/a.jsonl")
