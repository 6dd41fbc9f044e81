"""Distribution functions for the intervals and tests, in plain Python.

SciPy would cost 110 MB and one to two seconds of import; the tests compare every function with SciPy's.
"""

import math
from functools import lru_cache
from statistics import NormalDist

_SQRT2 = math.sqrt(2.0)
_STANDARD_NORMAL = NormalDist()


def normal_cdf(x: float) -> float:
    """P(Z <= x) of the standard normal distribution."""
    return 0.5 * math.erfc(-x / _SQRT2)


def normal_quantile(p: float) -> float:
    """The x with P(Z <= x) = p."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    return _STANDARD_NORMAL.inv_cdf(p)


def log_beta(a: float, b: float) -> float:
    """log B(a, b), without the cancellation of three large lgammas where a and b are large."""
    low, high = min(a, b), max(a, b)
    if low < 10.0:
        return math.lgamma(low) + _lgamma_difference(high, low)
    total = low + high
    correction = _stirling(low) + _stirling(high) - _stirling(total)
    ratio = low / total
    return (
        -0.5 * math.log(low)
        + 0.5 * math.log(2.0 * math.pi)
        + correction
        + low * math.log(ratio)
        + (high - 0.5) * math.log1p(-ratio)
    )


def _lgamma_difference(high: float, low: float) -> float:
    """lgamma(high) - lgamma(high + low) for a `high` that may be much larger than `low`."""
    if high < 10.0:
        return math.lgamma(high) - math.lgamma(high + low)
    total = high + low
    return (
        _stirling(high)
        - _stirling(total)
        - (high - 0.5) * math.log1p(low / high)
        - low * (math.log(total) - 1.0)
    )


def _stirling(x: float) -> float:
    """The correction of Stirling's series: lgamma(x) - [(x - 1/2) log x - x + log(2 pi) / 2], for x >= 10."""
    y = 1.0 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * 691 / 360360))))) / x


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    # It converges in about sqrt(max(a, b)) steps; the bound only stops a NaN.
    for m in range(1, 200_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            c = 1.0 + numerator / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            step = c * d
            value *= step
        if abs(step - 1.0) < 1e-16:
            break
    return value


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X <= x) of the beta distribution: the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta(a, b))
    if x <= (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(X = k) of n trials with chance p."""
    if k < 0 or k > n:
        return 0.0
    if p <= 0.0:
        return 1.0 if k == 0 else 0.0
    if p >= 1.0:
        return 1.0 if k == n else 0.0
    log_choose = -math.log(n + 1.0) - log_beta(n - k + 1.0, k + 1.0)
    return math.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) of n trials with chance p."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    return beta_cdf(1.0 - p, n - k, k + 1.0)


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|) of Student's distribution."""
    if math.isinf(t):
        return 0.0
    if df > 1e6:
        # Wallace's normal approximation: its error is of the order of 1 / df squared.
        return math.erfc(abs(t) * (1.0 - 0.25 / df) / math.sqrt(1.0 + t * t / (2.0 * df)) / _SQRT2)
    square = t * t
    if square < df:
        # The complement keeps its precision where t is small and df / (df + t*t) is nearly 1.
        return 1.0 - beta_cdf(square / (df + square), 0.5, df / 2.0)
    return beta_cdf(df / (df + square), df / 2.0, 0.5)


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) of Student's distribution with df degrees of freedom."""
    tail = t_two_sided(t, df) / 2.0
    return tail if t < 0.0 else 1.0 - tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p."""
    if not 0.0 < p < 1.0 or df <= 0.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -t_quantile(1.0 - p, df)
    if df > 1e12:
        return normal_quantile(p)
    if df == 1.0:
        return -1.0 / math.tan(math.pi * p)
    if df == 2.0:
        return (2.0 * p - 1.0) / math.sqrt(2.0 * p * (1.0 - p))
    # Bracket the root from the normal quantile outwards, then Newton with bisection as the safety net.
    high = normal_quantile(p)
    low = 2.0 * high - 1.0
    while t_cdf(low, df) > p:
        low *= 2.0
    x = high
    scale = math.exp(-log_beta(df / 2.0, 0.5)) / math.sqrt(df)
    for _ in range(100):
        gap = t_cdf(x, df) - p
        if gap > 0.0:
            high = x
        else:
            low = x
        density = scale * math.exp(-(df + 1.0) / 2.0 * math.log1p(x * x / df))
        following = x - gap / density if density > 0.0 else math.nan
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - x) <= 1e-14 * abs(x):
            return following
        x = following
    return x
