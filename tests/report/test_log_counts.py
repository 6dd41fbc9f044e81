"""A log with several replies per question: every output gives the same counts, in whatever order the rows are."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

CITIES = ["Lisbon", "Vienna", "Oslo", "Rome", "Bern"]
QUESTIONS = [
    {"id": f"q{n}", "question": f"Where is office {n}?", "expected_keywords": [city]}
    for n, city in enumerate(CITIES)
]
# Every third reply is wrong: each question still passes on the mean of its replies.
REPLIES = [
    {
        "id": f"q{n % 5}",
        "answer": f"The office is in {'Paris' if n % 3 == 0 else CITIES[n % 5]}.",
        "tools_used": [],
    }
    for n in range(600)
]


@pytest.mark.parametrize("seed", [None, 1])
def test_every_output_counts_the_same_replies_in_any_order(
    command: Any, write_rows: Callable[..., Path], tmp_path: Path, seed: int | None
) -> None:
    rows = list(REPLIES)
    if seed is not None:
        random.Random(seed).shuffle(rows)
    write_rows("golden.jsonl", *QUESTIONS)
    write_rows("log.jsonl", *rows)
    score = ("score", "log.jsonl", "--questions", "golden.jsonl")
    terminal = command(*score)
    assert terminal.code == 0, terminal.err
    assert "5 of 5 questions passed" in terminal.out
    assert "400 of 600 replies passed" in terminal.out
    assert "of the 200 that lost points" in terminal.out
    ended = command(*score, "-o", "x.md", "-o", "x.html", "-o", "x.csv", "-o", "x.junit.xml")
    assert ended.code == 0, ended.err
    assert "400 of 600 replies passed" in ended.out
    markdown = (tmp_path / "x.md").read_text()
    assert "400 of 600 replies passed" in markdown
    assert "## Questions that lost points\n" in markdown
    assert "(80/120 trials passed)" in markdown
    page = (tmp_path / "x.html").read_text()
    assert "400 of 600 replies passed" in page
    assert "80 of 120 trials passed" in page
    assert "answerkey report recorded" not in page
    table = (tmp_path / "x.csv").read_text()
    assert len(re.findall(r"(?m)^q\d,", table)) == 600
    suite = ElementTree.parse(tmp_path / "x.junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "0")
    document = json.loads(command(*score, "--json").out)
    summary = document["summary"]
    assert (summary["questions"], summary["passed"]) == (5, 5)
    assert (summary["trials"], summary["trials_passed"]) == (600, 400)
    assert sum(not result["passed"] for result in document["results"]) == 200
