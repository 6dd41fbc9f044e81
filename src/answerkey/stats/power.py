"""Planning: what difference a number of questions can show, how many a difference needs, and where the noise is."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from answerkey.stats.distributions import normal_cdf, normal_quantile, t_quantile

__all__ = [
    "VarianceSplit",
    "detectable_difference",
    "power_of",
    "questions_needed",
    "split_variance",
]

# More questions than this are not a plan.
_MOST = 100_000_000


def detectable_difference(
    error: float, df: float, *, level: float = 0.95, power: float = 0.8
) -> float | None:
    """The smallest true difference that would have been found with the given power; None without freedom."""
    if df < 1 or not error > 0.0:
        return None
    return (t_quantile(0.5 + level / 2.0, df) + t_quantile(power, df)) * error


def power_of(n: int, deviation: float, difference: float, *, level: float = 0.95) -> float:
    """The chance that n paired questions show this difference, by the paired t test's (noncentral) distribution."""
    if n < 2:
        return 0.0
    if deviation <= 0.0:
        return 1.0 if difference else 0.0
    df = n - 1
    shift = abs(difference) / deviation * math.sqrt(n)
    critical = t_quantile(0.5 + level / 2.0, df)
    if df > 5000:
        return normal_cdf(shift - critical) + normal_cdf(-shift - critical)
    # Integrate over the sample's standard deviation s (in true ones): chi with df degrees of freedom over sqrt(df).
    steps = 2000
    spread = 9.0 / math.sqrt(2.0 * df)
    low, high = max(1e-9, 1.0 - spread), 1.0 + spread
    if df < 40:
        low, high = 1e-9, 1.0 + 12.0 / math.sqrt(2.0 * df)
    log_scale = (df / 2.0) * math.log(df / 2.0) - math.lgamma(df / 2.0) + math.log(2.0)
    width = (high - low) / steps
    total = 0.0
    for step in range(steps + 1):
        s = low + step * width
        density = math.exp(log_scale + (df - 1) * math.log(s) - df * s * s / 2.0)
        chance = normal_cdf(shift - critical * s) + normal_cdf(-shift - critical * s)
        total += (1 if step in (0, steps) else 4 if step % 2 else 2) * density * chance
    return min(1.0, total * width / 3.0)


def questions_needed(
    deviation: float, difference: float, *, level: float = 0.95, power: float = 0.8
) -> int | None:
    """How many paired questions show this difference with this power; None if no feasible number does."""
    if not difference or deviation <= 0.0:
        return None if not difference else 2
    z = normal_quantile(0.5 + level / 2.0) + normal_quantile(power)
    guess = (z * deviation / abs(difference)) ** 2
    if guess > _MOST:
        return None
    n = max(2, math.floor(guess))
    if n > 5000:
        return math.ceil(guess)
    while power_of(n, deviation, difference, level=level) < power:
        n += 1
    return n


class VarianceSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the variance of scores comes from."""

    # Variance of the questions' true means, and of the trials of one question.
    between: float
    within: float
    questions: int
    trials: int
    # Questions whose trials differ, most unstable first: (id, standard deviation over its trials).
    flaky: tuple[tuple[str, float], ...]


def split_variance(trials: Mapping[str, Sequence[float]]) -> VarianceSplit | None:
    """Split the variance of scores into between questions and between repeats (one-way random effects).

    None for fewer than two questions. Without repeats everything counts as between questions.
    """
    groups = {name: scores for name, scores in trials.items() if scores}
    k = len(groups)
    n = sum(len(scores) for scores in groups.values())
    if k < 2:
        return None
    means = {name: math.fsum(scores) / len(scores) for name, scores in groups.items()}
    overall = math.fsum(math.fsum(scores) for scores in groups.values()) / n
    inside = {name: math.fsum((x - means[name]) ** 2 for x in scores) for name, scores in groups.items()}
    within = math.fsum(inside.values()) / (n - k) if n > k else 0.0
    between_ms = math.fsum(len(scores) * (means[name] - overall) ** 2 for name, scores in groups.items()) / (
        k - 1
    )
    # The average number of trials, as unbalanced data need it.
    typical = (n - sum(len(scores) ** 2 for scores in groups.values()) / n) / (k - 1)
    between = max(0.0, (between_ms - within) / typical)
    flaky = sorted(
        (
            (name, math.sqrt(inside[name] / (len(scores) - 1)))
            for name, scores in groups.items()
            if len(scores) > 1 and inside[name] > 1e-12
        ),
        key=lambda item: (-item[1], item[0]),
    )
    return VarianceSplit(between=between, within=within, questions=k, trials=n, flaky=tuple(flaky))
