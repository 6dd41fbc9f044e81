import random

import pytest

from answerkey.stats.paired import AnytimeTest, PlannedLooks, sequential_result


def test_looking_after_every_question_keeps_the_error_rate() -> None:
    source = random.Random(11)
    trials, alarms, left = 400, 0, 0
    for _ in range(trials):
        test = AnytimeTest()
        for _ in range(200):
            test.add(source.choice([0, 0, 0, 0.1, 0.1, 0.1, 0.1, -0.4]))
            if test.decided:
                break
        alarms += test.decided
        interval = test.interval()
        left += not interval.low <= 0.0 <= interval.high
    assert alarms / trials <= 0.05
    assert left / trials <= 0.05


def test_a_real_difference_is_found_early() -> None:
    source = random.Random(3)
    test = AnytimeTest()
    while not test.decided and test.count < 1000:
        test.add(source.choice([0, 0, 0, 0.4, 0.4, -0.1]))
    assert test.count < 120
    interval = test.interval()
    assert interval.low > 0.0
    assert interval.low < test.mean < interval.high


def test_the_p_value_only_falls() -> None:
    test = AnytimeTest()
    before = test.p_value
    assert before == 1.0
    for value in [0.5, 0.5, -1.0, 0.5, 0.5, 0.5, 0.5, -0.5]:
        test.add(value)
        assert test.p_value <= before
        before = test.p_value


def test_edges() -> None:
    assert AnytimeTest().interval().low == -1.0
    ties = AnytimeTest([0.0] * 50)
    assert ties.p_value == 1.0
    assert ties.interval().high < 0.2
    with pytest.raises(ValueError, match="between -1 and 1"):
        AnytimeTest([1.5])


def test_direction_and_interval_are_those_of_the_bet_that_won() -> None:
    source = random.Random(5)
    # Shown on the way, and turned around later: the test is over when it is shown.
    values = [source.choice([0.0, 0.4, 0.4, -0.1]) for _ in range(80)]
    values += [source.choice([0.0, -0.4, -0.4, 0.1]) for _ in range(220)]
    test = AnytimeTest(values)
    assert (test.verdict, test.count < 80) == ("better", True)
    interval = test.interval()
    assert 0.0 < interval.low < test.mean < interval.high
    assert sequential_result(AnytimeTest([-v for v in values])).verdict == "worse"


def test_planned_looks_decide_only_where_they_were_planned() -> None:
    test = PlannedLooks(3, 30)
    for number in range(1, 31):
        test.add(0.2)
        if number < 10:
            assert not test.decided
    assert (test.verdict, test.count) == ("better", 10)
    assert test.level == pytest.approx(1 - 0.05 / 3)
    # Ten equal gains: 2 / 2**11, three times.
    assert test.p_value == pytest.approx(3 * 2 * 0.5**11)
    assert test.interval().low > 0.0
    source = random.Random(1)
    alarms = 0
    for _ in range(300):
        looks = PlannedLooks(3, 45)
        for _ in range(45):
            looks.add(source.choice([0.4, 0.2, 0.0, -0.2, -0.4]))
        alarms += looks.decided
    assert alarms / 300 <= 0.06
