"""The time for links grows with the text and no faster, whatever is repeated."""

from time import process_time

import pytest

from answerkey.evidence.links import find_links
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall


def seconds(text: str, evidence: str) -> float:
    """The least of two attempts."""
    calls = (ToolCall(name="q", result=[{"a": 1, "b": "two"}] * 3, result_seen=True),)
    reply = Reply(text=text, tool_calls=calls, sources=(Source(text=evidence),))
    taken = []
    for _ in range(2):
        start = process_time()
        find_links(Question(id="q", question="?"), reply)
        taken.append(process_time() - start)
    return min(taken)


@pytest.mark.parametrize(
    "piece",
    [
        "hundred ",
        "12,345.60 ",
        "A",
        "Ab ",
        "1-",
        "“a b” ",
        "3 May 2024 ",
        ".a.b",
        "x@",
        "|a|1|\n",
        "1 h 2 ",
        "(((",
    ],
)
def test_time_per_character_is_flat(piece: str) -> None:
    small, large = (piece * (size // len(piece)) for size in (4_000, 32_000))
    assert seconds(large, large) < 24 * max(seconds(small, small), 0.002)
