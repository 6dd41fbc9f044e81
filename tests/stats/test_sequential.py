import random

import pytest

from answerkey.stats.sequential import AnytimeTest


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
    certain = AnytimeTest([1.0] * 50)
    assert certain.interval().low > 0.75
    with pytest.raises(ValueError, match="within -1 and 1"):
        AnytimeTest([1.5])


def test_what_was_shown_on_the_way_stays_shown() -> None:
    source = random.Random(5)
    # Shown on the way, and no longer at the end.
    values = [source.choice([0.0, 0.4, 0.4, -0.1]) for _ in range(80)]
    values += [source.choice([0.0, -0.4, -0.4, 0.1]) for _ in range(220)]
    test = AnytimeTest(values)
    assert test.decided
    assert (test.count, test.mean) == (300, pytest.approx(sum(values) / 300))
    interval = test.interval()
    assert interval.low < 0.0
    assert test.rules_out(interval.high + 0.01)
    assert not test.rules_out(test.mean)
