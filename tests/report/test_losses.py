"""The reasons for lost points add up, and name what was missing."""

import re
from typing import Any

from answerkey.model.reply import Failure
from answerkey.model.run import Run
from answerkey.model.scorecard import Score, Scorecard
from answerkey.report.detail import losses_of


def test_every_lost_point_has_a_reason(golden_run: Run) -> None:
    for result in golden_run.results:
        card = result.scorecard
        assert card.total is not None
        lost = sum(loss.points or 0.0 for loss in losses_of(card))
        assert abs(lost - (1 - card.total)) < 1e-9


def test_the_words(golden_run: Run) -> None:
    words = {
        result.question.id: [str(loss) for loss in losses_of(result.scorecard)]
        for result in golden_run.results
    }
    assert words["basis"] == ["missing keywords: depreciation (−0.08)"]
    assert words["purpose"] == [
        "did not call search_document_content (−0.40)",
        "missing keywords: real estate, rental (−0.40)",
    ]
    assert words["august"][-1] == "error: timeout – no answer within 60 s (−0.20)"
    assert words["addr-00"] == []


def test_a_conversation_loses_by_turn() -> None:
    error = Failure("empty", "empty reply")
    good = Scorecard(
        components={"error_handling": Score("error_handling", 1.0, "", 1.0)},
        total=1.0,
        grade="A",
        passed=True,
    )
    bad = Scorecard(
        components={"error_handling": Score("error_handling", 0.0, "", 1.0)},
        total=0.0,
        grade="F",
        passed=False,
        error=error,
    )
    both = Scorecard(components={}, total=0.5, grade="F", passed=False, turns=(good, bad))
    assert [str(loss) for loss in losses_of(both)] == ["turn 2: error: empty – empty reply (−0.50)"]


def test_a_component_without_a_value_has_no_points_but_its_reason() -> None:
    card = Scorecard(
        components={
            "tool_usage": Score("tool_usage", None, "could not be scored: boom", 0.4),
            "response_quality": Score("response_quality", 0.5, "", 0.4, {"missing": ["x"]}),
            "error_handling": Score("error_handling", 1.0, "", 0.2),
        },
        total=None,
        grade=None,
        passed=False,
    )
    assert [str(loss) for loss in losses_of(card)] == [
        "tool usage: could not be scored: boom",
        "missing keywords: x (−0.20)",
    ]


def test_losses_as_shown_add_up_to_what_was_lost(command: Any, write_rows: Any) -> None:
    golden = write_rows(
        "golden.jsonl",
        {
            "id": "tea",
            "turns": [
                {"question": f"What is {number}?", "expected_keywords": ["a1", "b2"]} for number in (1, 2, 3)
            ],
        },
    )
    turn = [{"role": "user", "content": "What is 1?"}, {"role": "assistant", "content": "a1"}]
    turns = [
        {**message, "content": message["content"].replace("1?", f"{n}?")}
        for n in (1, 2, 3)
        for message in turn
    ]
    write_rows("log.jsonl", {"id": "tea", "messages": turns})
    assert command("score", "log.jsonl", "--questions", golden, "--name", "mixed").code == 0
    shown = command("show", "mixed").out
    lost = [int(cents) for cents in re.findall(r"\(−0\.(\d\d)\)", shown)]
    # 0.2 lost in three equal parts: rounded apart, they would be 0.07 each, and 0.21.
    assert sorted(lost) == [6, 7, 7], shown
