import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import InputError
from answerkey.protocols import Ask
from answerkey.targets.resolve import ReplaySettings, ReplayTarget

from .asking import ask_all


def replay(folder: Path, *rows: dict[str, Any], **settings: Any) -> ReplayTarget:
    path = folder / "replies.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return ReplayTarget(ReplaySettings(replay=str(path), **settings))


def asked(question: str = "?", **fields: Any) -> Ask:
    return Ask(question=question, conversation_id="c", **fields)


def test_by_id_by_question_and_by_trial(tmp_path: Path) -> None:
    target = replay(
        tmp_path,
        {"id": "q1", "answer": "one", "tools_used": ["a"], "latency_ms": 12},
        {"id": "q1", "answer": "one again"},
        {"question": "What?", "answer": "that"},
        {"id": "q3", "trial": 7, "answer": "seven"},
    )
    replies = ask_all(
        target,
        asked(question_id="q1"),
        asked(question_id="q1", trial=2),
        asked("What?", question_id="unknown"),
        asked(question_id="q3", trial=7),
        asked(question_id="q1", trial=3),
    )
    assert [reply.text for reply in replies] == ["one", "one again", "that", "seven", None]
    assert replies[0].timings.latency_ms == 12
    assert replies[1].timings.latency_ms is None, "what was not recorded is not made up"
    assert replies[0].response_id is None
    failure = replies[4].failure
    assert failure is not None
    assert failure.kind == "not_recorded"
    assert failure.message == "no recorded reply for trial 3 in replies.jsonl"
    assert target.warnings() == []
    assert target.replays


def test_a_row_that_asks_the_same_comes_before_one_with_the_id(tmp_path: Path) -> None:
    target = replay(
        tmp_path,
        {"id": 1, "question": "Where?", "answer": "Rome"},
        {"id": 2, "question": "who", "answer": "Ann"},
        {"id": 3, "question": "When exactly?", "answer": "May"},
    )
    replies = ask_all(
        target,
        asked("Who?", question_id="1"),
        asked("Where?", question_id="2"),
        asked("When?", question_id="3"),
    )
    assert [reply.text for reply in replies] == ["Ann", "Rome", "May"]
    (warning,) = target.warnings()
    assert warning.startswith("1 question got a row of replies.jsonl that has the id but asks something else")
    assert "(id '3': 'When exactly?')" in warning


def test_trials_that_count_from_0(tmp_path: Path) -> None:
    rows = [{"id": "q1", "trial": trial, "answer": str(trial)} for trial in range(3)]
    target = replay(tmp_path, *rows, {"id": "q2", "trial": 1, "answer": "from 1"})
    asks = [asked(question_id="q1", trial=trial) for trial in (1, 2, 3)]
    replies = ask_all(target, *asks, asked(question_id="q2"))
    assert [reply.text for reply in replies] == ["0", "1", "2", "from 1"]


def conversation(**fields: Any) -> dict[str, Any]:
    return {
        "id": "q1",
        "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "second"},
            {"role": "assistant", "content": "two"},
        ],
        **fields,
    }


@pytest.mark.parametrize(
    "rows",
    [
        [conversation()],
        [conversation(turns=[{"question": "first", "expected_tools": ["a"]}, {"question": "second"}])],
        [
            {
                "id": "q1",
                "replies": [{"answer": "one", "tools_used": ["a"]}, {"answer": "two", "tools_used": []}],
            }
        ],
        [
            {
                "id": "q1",
                "turns": [{"answer": "one", "tools_used": ["a"]}, {"answer": "two", "tools_used": []}],
            }
        ],
        [
            {"id": "q1", "turn": 0, "answer": "one", "tools_used": ["a"]},
            {"id": "q1", "turn": 1, "answer": "two", "tools_used": []},
        ],
        [
            {"id": "q1", "turn": 1, "answer": "one", "tools_used": ["a"]},
            {"id": "q1", "turn": 2, "answer": "two", "tools_used": []},
        ],
    ],
)
def test_conversations(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    first, second = ask_all(
        replay(tmp_path, *rows),
        asked("first", question_id="q1"),
        asked("second", question_id="q1", turn=1),
    )
    assert (first.text, first.tools_used) == ("one", ("a",))
    assert (second.text, second.tools_used) == ("two", ())


def test_a_turn_that_was_not_recorded(tmp_path: Path) -> None:
    (reply,) = ask_all(replay(tmp_path, {"id": "q1", "answer": "one"}), asked(question_id="q1", turn=1))
    assert reply.failure is not None
    assert "turn 2" in reply.failure.message


def test_a_transcript_with_a_history_is_the_reply_to_its_end(tmp_path: Path) -> None:
    (reply,) = ask_all(replay(tmp_path, conversation()), asked("second", question_id="q1"))
    assert reply.text == "two"
    (reply,) = ask_all(replay(tmp_path, conversation()), asked("worded otherwise", question_id="q1"))
    assert reply.text == "two"


def test_rows_of_a_run_document(tmp_path: Path) -> None:
    evidence = {
        "kind": "response",
        "completeness": "complete",
        "tools_observed": False,
        "sources_observed": False,
    }
    kept = {
        "text": "x",
        "tools_used": [],
        "tool_calls": [],
        "error": {"kind": "error_text", "message": "m"},
        "evidence": evidence,
    }
    (reply,) = ask_all(
        replay(tmp_path, {"id": "q", "trial": 1, "score": 1.0, "reply": kept}), asked(question_id="q")
    )
    assert reply.text == "x"
    assert reply.failure is not None
    assert reply.failure.kind == "error_text"
    assert not reply.evidence.tools_observed


def test_a_file_that_is_not_there_or_not_readable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        ReplayTarget(ReplaySettings(replay=str(tmp_path / "none.jsonl")))
    with pytest.raises(InputError, match=r"replies\.jsonl:2: has neither 'id' nor 'question'"):
        ask_all(replay(tmp_path, {"id": "a", "answer": "x"}, {"answer": "y"}), asked())


def test_other_contents_are_another_target(tmp_path: Path) -> None:
    first = replay(tmp_path, {"id": "a", "answer": "x"}).fingerprint
    assert first != replay(tmp_path, {"id": "a", "answer": "y"}).fingerprint
    assert first == replay(tmp_path, {"id": "a", "answer": "x"}).fingerprint
