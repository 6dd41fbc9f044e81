from answerkey.report.wording import judge_line


def test_a_run_without_a_judge_has_no_line() -> None:
    assert judge_line({}) == ""


def test_the_line_says_what_judging_came_to() -> None:
    judge = {
        "model": "a + b",
        "judged": 104,
        "unscored": 2,
        "calls": 110,
        "cached": 3,
        "cost": 0.0213,
        "agreement": {"judge": 0.812},
        "canaries": [{"kind": "empty answer"}],
        "reliable": True,
    }
    assert judge_line(judge) == (
        "judged by a + b: 104 of 106 replies, 110 calls, 3 known before, cost $0.0213, Krippendorff α 0.81, "
        "canaries passed"
    )
    assert judge_line({**judge, "reliable": False}).endswith("UNRELIABLE: canaries failed")
    assert judge_line({**judge, "reliable": None}).endswith("canaries not all judged")
    assert "\x1b" not in judge_line({**judge, "model": "evil\x1b[2J"})
