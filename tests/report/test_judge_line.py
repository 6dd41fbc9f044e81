from msgspec.structs import replace

from answerkey.report.wording import judge_line
from comparison.made import canary, judge_record


def test_a_run_without_a_judge_has_no_line() -> None:
    assert judge_line(None) == ""


def test_the_line_says_what_judging_came_to() -> None:
    judge = judge_record(
        "a + b",
        judged=104,
        unscored=2,
        calls=110,
        cached=3,
        cost=0.0213,
        agreement={"judge": 0.812},
        canaries=(canary(0.0),),
        reliable=True,
    )
    assert judge_line(judge) == (
        "judged by a + b: 104 of 106 replies, 110 calls, 3 cached, cost $0.0213, "
        "panel agreement (Krippendorff α) 0.81, canaries passed, never calibrated"
    )
    assert "UNRELIABLE: canaries failed" in judge_line(replace(judge, reliable=False))
    assert "canaries not all judged" in judge_line(replace(judge, reliable=None))
    assert "(Krippendorff α) 0.37, too low" in judge_line(replace(judge, agreement={"judge": 0.37}))
    assert "\x1b" not in judge_line(replace(judge, model="evil\x1b[2J"))
