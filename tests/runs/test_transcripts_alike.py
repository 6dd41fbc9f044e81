"""The same transcript is the same reply, whether it is scored, replayed, or given back by a live chatbot."""

import json
from pathlib import Path
from typing import Any

import answerkey


def called(identity: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": identity, "type": "function", "function": function}]}


TRANSCRIPT = [
    {"role": "user", "content": "Where is it?"},
    called("c", "query_database"),
    {"role": "tool", "tool_call_id": "c", "content": "900 S 9th St"},
    {"role": "assistant", "content": "At 900 S 9th St."},
    {"role": "user", "content": "And who owns it?"},
    called("c", "search_document_content"),
    {"role": "tool", "tool_call_id": "c", "content": "Uncompahgre LLC"},
    {"role": "assistant", "content": "Uncompahgre LLC."},
    {"role": "user", "content": "Thanks."},
]


def scores(run: Any) -> dict[str, Any]:
    return {
        trial.question.id: (trial.scorecard.total, trial.reply.text, trial.reply.tools_used)
        for trial in run.results
    }


def test_a_transcript_is_read_in_one_way(tmp_path: Path) -> None:
    golden = tmp_path / "golden.jsonl"
    cases = [
        {
            "id": "first",
            "question": "Where is it?",
            "expected_tools": ["query_database"],
            "expected_keywords": ["900"],
        },
        {"id": "second", "question": "And who owns it?", "expected_keywords": ["LLC"]},
        {
            "id": "whole",
            "question": "The flat",
            "expected_tools": ["query_database", "search_document_content"],
        },
    ]
    golden.write_text("".join(json.dumps(case) + "\n" for case in cases))
    replies = tmp_path / "replies.jsonl"
    rows = [{"id": case["id"], "messages": TRANSCRIPT} for case in cases]
    replies.write_text("".join(json.dumps(row) + "\n" for row in rows))

    scored = scores(answerkey.score_replies(replies, golden))
    assert scored == {
        "first": (1.0, "At 900 S 9th St.", ("query_database",)),
        "second": (1.0, "Uncompahgre LLC.", ("search_document_content",)),
        "whole": (1.0, "Uncompahgre LLC.", ("query_database", "search_document_content")),
    }
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    replayed = answerkey.evaluate(golden, target=f"replay:{replies}", store=store)
    live = answerkey.evaluate(golden, target=lambda question: {"messages": TRANSCRIPT}, store=store)
    assert scores(replayed) == scores(live) == scored
