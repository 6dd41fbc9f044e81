"""Fits the model of the words around a keyword (answerkey.match.reading) for `tools/fit/fit_smart.py`."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from answerkey.match.reading import ContextModel

__all__ = ["export_context", "fit_context", "number_observations"]

# The inverse of the penalty on squared weights.
_STRENGTH = 0.3
_ITERATIONS = 60
# Observations of fewer rows are left out.
_FEWEST = 2
# Weights below this are left out.
_SMALLEST = 0.02
# All observations by name, in the order in which they were first met.
_numbers: dict[str, int] = {}


def number_observations(names: Iterable[str]) -> np.ndarray:
    """The numbers of what the model knows of a place."""
    return np.array([_numbers.setdefault(name, len(_numbers)) for name in names], dtype=np.int64)


def fit_context(places: Sequence[np.ndarray], said: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The weight of each number and, behind them, the base."""
    ends = np.cumsum([0, *map(len, places)])
    columns = np.concatenate(places)
    x = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(places), len(_numbers)))
    x.sum_duplicates()
    known = np.flatnonzero(x.getnnz(axis=0) >= _FEWEST)
    x = x[:, known]
    turned, sign = x.T.tocsr(), np.where(said, 1.0, -1.0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (x @ weights[:-1] + weights[-1])
        pull = -sign * counts / (1.0 + np.exp(np.clip(margin, -30, 30)))
        penalty = weights[:-1] / _STRENGTH
        value = (counts * np.logaddexp(0, -margin)).sum() + 0.5 * (penalty @ weights[:-1])
        return value, np.append(turned @ pull + penalty, pull.sum())

    start = np.zeros(len(known) + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS}).x
    weights = np.zeros(len(_numbers) + 1)
    weights[known], weights[-1] = found[:-1], found[-1]
    return weights


def export_context(weights: np.ndarray) -> ContextModel:
    """The model as it is shipped."""
    kept = {
        name: round(float(one), 2)
        for name, one in zip(_numbers, weights[:-1], strict=True)
        if abs(one) >= _SMALLEST
    }
    return ContextModel(round(float(weights[-1]), 3), dict(sorted(kept.items())))
