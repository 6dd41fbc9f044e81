"""Cases at the edges of the methods: near-perfect clustered scores, the seam between two ways to compute p, planned looks at
lopsided changes, plans from small pilots, and people's verdicts with several to a reply."""

from collections.abc import Sequence

import numpy as np
from simulated_shares import format_share

from answerkey.stats.intervals import UnitMoments, mean_interval, to_fixed_point
from answerkey.stats.paired import PlannedLooks, correlate
from answerkey.stats.sign_flip import Floats, Pilot, at_most_zero

__all__ = ["EDGES", "clear_sign"]

Source = np.random.Generator
# The lopsided table of changes: share of questions, change.
_GAINS, _LOSSES = (0.4, 0.05), (0.025, -0.8)


def _head(title: str, *columns: object) -> None:
    print(f"\n| {title} | {' | '.join(map(str, columns))} |\n|---{'|---' * len(columns)}|", flush=True)


def _row(name: str, shares: Sequence[float], trials: int) -> None:
    print(f"| {name} | {' | '.join(format_share(share, trials) for share in shares)} |", flush=True)


def clear_sign(changes: Floats) -> int:
    """The sign of a significant mean, else 0: the verdict without its interval, which takes longer."""
    if min(at_most_zero(changes), at_most_zero(-changes)) >= 0.025:
        return 0
    return 1 if changes.sum() > 0.0 else -1


def near_perfect(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """Coverage of a run's interval: mean 0.98, half of a unit's questions share its luck."""
    sizes = (15, 20, 30, 50, 200)
    _head("near-perfect, covered", *(f"{count} units" for count in sizes))
    values, chances = np.array([1.0, 0.8, 0.6]), np.array([0.94, 0.02, 0.04])
    truth = float(values @ chances)
    for name, fives in (("fives", True), ("unequal groups", False)):
        shares = []
        for count in sizes:
            held = 0
            for _ in range(trials):
                units = np.repeat(np.arange(count), 5 if fives else source.integers(1, 13, count))
                common = source.choice(values, count, p=chances)[units]
                own = source.choice(values, len(units), p=chances)
                scores = np.where(source.random(len(units)) < 0.5, common, own)
                interval = mean_interval(scores.tolist(), units.tolist())
                held += interval is not None and interval.low <= truth <= interval.high
            shares.append(held / trials)
        _row(name, shares, trials)


def seam(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """Fifteen units with p between 0.03 and 0.05, and one more win: is the verdict lost?"""
    lost = cases = 0
    while cases < trials:
        changes = np.round(source.normal(0.18, 0.3, 15), 3)
        if not 0.015 < at_most_zero(changes) < 0.025:
            continue
        cases += 1
        lost += clear_sign(np.append(changes, source.choice([0.001, 0.01, 0.1, 0.4, 1.0]))) != 1
    _head("15 units with a verdict, and one more win", "verdicts lost")
    print(f"| {cases:,} cases | {lost} |")


def _changes(count: int, source: Source) -> np.ndarray:
    drawn = source.random(count)
    return np.where(drawn < _GAINS[0], _GAINS[1], np.where(drawn > 1 - _LOSSES[0], _LOSSES[1], 0.0))


def lopsided(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """False alarms where 40% of the questions gain 0.05 and 2.5% lose 0.8."""
    sizes = (20, 50, 106, 200, 300)
    _head("40% +0.05, 2.5% −0.80: false alarms", *(f"{count} questions" for count in sizes))
    once = [sum(bool(clear_sign(_changes(n, source))) for _ in range(trials)) / trials for n in sizes]
    _row("one look", once, trials)
    shares = []
    for count in sizes:
        alarms = 0
        for _ in range(trials):
            looks = PlannedLooks(3, count)
            for change in _changes(count, source).tolist():
                looks.add(change)
            alarms += looks.decided
        shares.append(alarms / trials)
    _row("three looks", shares, trials)


def pilots_section(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """Power at the planned size, if versions differ as the pilot's population does: 30% changed, by 0.85, +5 points in all."""
    pilots = (20, 50, 106, 300)
    _head("pilot of", *(f"{count} questions" for count in pilots))
    for name, both_ways in (("planned one way", False), ("planned as these two", True)):
        shares = []
        for count in pilots:
            shown = 0
            for _ in range(20):
                losses = np.where(source.random(count) < 0.3, -0.85, 0.0)
                pilot = Pilot(losses, np.ones(count), both_ways=both_ways)
                units = pilot.units_needed(0.05, 0.8) or 0
                for _ in range(max(trials // 20, 1)):
                    changed = source.random(units) < 0.3
                    signs = np.where(source.random(units) < (1 + 0.05 / 0.255) / 2, 1.0, -1.0)
                    shown += clear_sign(np.where(changed, 0.85 * signs, 0.0)) == 1
            shares.append(shown / (20 * max(trials // 20, 1)))
        _row(name, shares, trials)


def people(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """Coverage of satisfaction and of its correlation with the scores, where each reply has one verdict or five."""
    _head("people's verdicts, covered", "30 replies, 1 each", "100, 1", "30, 5 each", "100, 5")
    cells = [(30, 1), (100, 1), (30, 5), (100, 5)]
    satisfaction, correlation = [], []
    for replies, each in cells:
        # A reply's quality decides its score and the chance of a thumb up.
        quality = source.beta(2, 1, 400_000)
        scores = np.clip(quality + source.normal(0, 0.2, len(quality)), 0, 1)
        ups = source.binomial(each, quality)
        truth, slope = float(quality.mean()), float(np.corrcoef(ups / each, scores)[0, 1])
        held = [0, 0]
        for _ in range(trials):
            picks = source.integers(0, len(quality), replies)
            moments = UnitMoments()
            for up in ups[picks].tolist():
                moments.add(to_fixed_point(float(up)), each, 1, bounded=True)
            interval = moments.interval()
            held[0] += interval is not None and interval.low <= truth <= interval.high
            found = correlate((ups[picks] / each).tolist(), scores[picks].tolist())
            held[1] += found is not None and found.low <= slope <= found.high
        satisfaction.append(held[0] / trials)
        correlation.append(held[1] / trials)
    _row("satisfaction", satisfaction, trials)
    _row("correlation with the scores", correlation, trials)


EDGES = {
    "edges-clustered": near_perfect,
    "edges-seam": seam,
    "edges-looks": lopsided,
    "edges-pilots": pilots_section,
    "edges-people": people,
}
