"""When tool calls ran: at their own times where those are known, and marked where they are not."""

from answerkey.model.reply import ToolCall
from answerkey.report.detail import waterfall_of


def test_calls_stand_where_they_began() -> None:
    calls = [
        ToolCall(name="search", start_ms=100.0, duration_ms=300.0),
        ToolCall(name="sum", start_ms=200.0, duration_ms=100.0, error="no rows"),
    ]
    falls = waterfall_of(calls, 1000.0, 800.0)
    assert falls is not None
    assert [(bar.start, round(bar.length, 6), bar.start_known) for bar in falls.bars] == [
        (0.1, 0.3, True),
        (0.2, 0.1, True),
    ]
    assert [bar.failed for bar in falls.bars] == [False, True]
    assert falls.bars[0].words == "after 100 ms, took 300 ms"
    assert falls.first_byte == 0.8


def test_a_start_that_is_not_known_is_said_to_be() -> None:
    calls = [ToolCall(name="a", duration_ms=400.0), ToolCall(name="b", duration_ms=400.0)]
    falls = waterfall_of(calls, None, None)
    assert falls is not None
    assert [(bar.start, bar.start_known) for bar in falls.bars] == [(0.0, False), (0.5, False)]
    assert falls.bars[1].words == "start unknown, took 400 ms"
    assert falls.answered is None


def test_without_any_time_there_is_nothing_to_draw() -> None:
    assert waterfall_of([ToolCall(name="a")], 1000.0, None) is None
    assert waterfall_of([], 1000.0, None) is None


def test_a_call_that_outlasts_the_reply_stays_in_the_picture() -> None:
    falls = waterfall_of([ToolCall(name="a", start_ms=900.0, duration_ms=600.0)], 1000.0, None)
    assert falls is not None
    assert falls.bars[0].start + falls.bars[0].length <= 1.0
