"""Files that people already have: the report of an earlier harness, and lists of questions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_the_report_of_an_earlier_harness_needs_no_mapping(command: Command, tmp_path: Path) -> None:
    results = [
        {
            "question": "Where?",
            "response": text,
            "sources": [],
            "expected": {"tools": ["query_database"], "keywords": ["900"]},
            "checks": {"tool_usage": {"actual": tools, "passed": True}, "content": {"passed": False}},
        }
        for text, tools in (("At 900 S 9th St.", ["query_database"]), ("At home.", ["web"]))
    ]
    (tmp_path / "eval_report.json").write_text(json.dumps({"summary": {"total": 2}, "results": results}))
    done = command("score", "eval_report.json", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["summary"]["coverage"] == 1
    assert [round(row["score"], 3) for row in document["results"]] == [1.0, 0.2]


def test_a_markdown_list_becomes_a_golden_set(command: Command, tmp_path: Path) -> None:
    (tmp_path / "questions.md").write_text(
        "# Questions\n\nAsk these.\n\n## Money\n\n- What is the rent?\n1. [ ] **Who pays?**\n\n## Deeds\n* Where is it?\n"
    )
    done = command("import", "list", "questions.md", "-o", "golden.jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "golden.jsonl").read_text().splitlines()]
    assert [(row["question"], row["category"]) for row in rows] == [
        ("What is the rent?", "Money"),
        ("Who pays?", "Money"),
        ("Where is it?", "Deeds"),
    ]


def test_a_text_has_a_question_a_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("What is the rent?\n\nWho pays?\n")
    done = command("import", "list", "questions.txt")
    assert [json.loads(line)["question"] for line in done.out.splitlines()] == [
        "What is the rent?",
        "Who pays?",
    ]
