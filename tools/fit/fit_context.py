"""Fits the model of the words around a keyword (answerkey.match.smart) for `tools/fit/fit_smart.py`.

A word is known by its side and distance, by its side and whether a break lies between, and by the same two of its class
(`denies`, `doubts` or `contrasts` of vocabulary.toml), so that words of a class which no labelled reply has are not unknown.
These add up to one weight for each place of a word.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from answerkey.match.smart import SLOTS, WORDS, Around, Surroundings

__all__ = ["export_around", "fit_around", "read_place"]

Name = tuple[str, int, str]
# In capitals, which no token has.
_CLASSES = {word: name.upper() for name in ("contrasts", "doubts", "denies") for word in WORDS[name]}
# The inverse of the penalty on squared weights.
_STRENGTH = 0.3
_ITERATIONS = 60
# Words of fewer rows are left out.
_FEWEST = 2
# Weights below this are left out.
_SMALLEST = 0.02


def _names_at(slot: int, word: str) -> list[Name]:
    """What is known of a word, or of a class, at a place: its distance, and its side with a break or without one."""
    side = slot // (SLOTS // 2)
    return [("distance", slot // 2, word), ("break", side * 2 + slot % 2, word)]


def _names_around(place: Surroundings) -> list[Name]:
    """What the model knows of a place, by name."""
    names: list[Name] = [("asks", 0, "")] if place.asks else []
    for token, slot in zip(place.tokens, place.slots(), strict=True):
        names += _names_at(slot, token)
        if token in _CLASSES:
            names += _names_at(slot, _CLASSES[token])
    names += [("touching", 0, one) for one in place.touching()]
    names += [("earlier", 0, one) for one in place.earlier]
    names += [("later", 0, one) for one in place.later]
    return names


def read_place(place: Surroundings) -> np.ndarray:
    """The numbers of what the model knows of a place."""
    return np.array(
        [_numbers.setdefault(name, len(_numbers)) for name in _names_around(place)], dtype=np.int64
    )


# All names that were met, in order.
_numbers: dict[Name, int] = {}


def fit_around(places: Sequence[np.ndarray], said: np.ndarray, counts: np.ndarray) -> np.ndarray:
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


def export_around(weights: np.ndarray) -> Around:
    """The model as it is shipped."""
    of: defaultdict[str, dict[tuple[int, str], float]] = defaultdict(dict)
    for (kind, place, text), weight in zip(_numbers, weights[:-1], strict=False):
        if weight:
            of[kind][place, text] = float(weight)
    known = {text for kind in ("distance", "break") for _, text in of[kind]} - set(_CLASSES.values())
    words = {}
    for token in sorted(known | set(_CLASSES)):
        both = (token, _CLASSES[token]) if token in _CLASSES else (token,)
        weights_at = [
            sum(
                of[kind].get((place, text), 0.0) for one in both for kind, place, text in _names_at(slot, one)
            )
            for slot in range(SLOTS)
        ]
        if max(map(abs, weights_at)) >= _SMALLEST:
            words[token] = tuple(round(one, 2) for one in weights_at)
    lists = [
        {text: round(one, 3) for (_, text), one in of[kind].items() if abs(one) >= _SMALLEST}
        for kind in ("touching", "earlier", "later")
    ]
    return Around(round(float(weights[-1]), 3), round(of["asks"].get((0, ""), 0.0), 3), words, *lists)
