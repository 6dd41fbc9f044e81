"""What a run's replies come to: the error rate and the mean latency have intervals over units."""

import pytest

from answerkey.model.tally import summarise
from answerkey.stats.intervals import Interval, mean_interval
from comparison.made import make_run

SCORES = {"q1": [1.0, 0.0], "q2": [1.0], "q3": [1.0, 1.0, 1.0], "q4": [0.5], "q5": [1.0, 0.5], "q6": [1.0]}
UNITS = {"q1": "q1", "q2": "rent", "q3": "rent", "q4": "q4", "q5": "q5", "q6": "rent"}


def near(interval: Interval | None) -> object:
    assert interval is not None
    return pytest.approx((max(0.0, interval.low), interval.high), abs=1e-6)


def test_error_rate_and_mean_latency_have_intervals_over_units() -> None:
    groups = {name: {"template": unit} for name, unit in UNITS.items() if unit != name}
    category = {"q1": "A", "q2": "A"}
    run = make_run(SCORES, errors={"q3": "timeout"}, metadata=groups, category=category)
    trials = list(run.results)
    for part, chosen in (
        (run.summary, trials),
        (run.summary.categories[0], [trial for trial in trials if trial.question.category == "A"]),
    ):
        units = [UNITS[trial.question.id] for trial in chosen]
        failed = [float(trial.scorecard.error is not None) for trial in chosen]
        taken = [trial.latency_ms or 0.0 for trial in chosen]
        assert part.error_interval is not None
        assert part.latency_ms is not None
        assert part.latency_ms.mean_interval is not None
        found, times = part.error_interval, part.latency_ms.mean_interval
        assert (found.low, found.high) == near(mean_interval(failed, units))
        assert (times.low, times.high) == near(mean_interval(taken, units, bounded=False))


def test_a_single_unit_says_nothing_of_other_latencies() -> None:
    summary = summarise(make_run({"q1": [1.0, 1.0]}).results, planned=2)
    assert summary.latency_ms is not None
    assert summary.latency_ms.mean_interval is None
