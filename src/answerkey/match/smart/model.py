"""The fitted part of `smart`: how much each feature counts. The reasons in words stand with the features.

Fitted by `benchmarks/fit_smart.py` (logistic regression, ridge penalty 1) on human verdicts, over the replies that no fixed
rule decides: about one in fifteen. Cross-validated figures are in docs/matching.md.
"""

__all__ = ["COEFFICIENTS", "THRESHOLD", "score"]

COEFFICIENTS: dict[str, float] = {
    "bias": 0.27,
    "recall": 0.91,
    "missing_words": -0.48,
    "fuzzy": 0.53,
    "precision": 1.61,
    "length": 0.23,
    "choices": -1.68,
    "abstains": -0.71,
}
# Above 0, the even chance: to accept a wrong answer is worse than to reject a right one.
THRESHOLD = 0.2

_WEIGHTS = tuple(COEFFICIENTS.values())


def score(features: list[float]) -> float:
    """The log-odds that a careful reader accepts."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
