"""Fits the error detector's model to labelled replies: `python benchmarks/fit_errors.py ANSWERS CORPUS [CORPUS…]`.

A CORPUS has one labelled reply a line: {"text", "kind"} with kind null for an answer, and "set" where its rows come from several
authors. ANSWERS has real answers to questions, {"answer"}, all of them good ones; every second counts, with a third of
the weight. Only prose is fitted: what bodies, traces, leaks and messages of programs decide stays decided. Prints precision and
recall of each set by a model that has not seen it, then the table for src/answerkey/text/failing/model.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from answerkey.text.failing.features import FEATURES, features
from answerkey.text.failing.model import THRESHOLD
from answerkey.text.failures import is_prose

RIDGE = 2.0
ANSWER_WEIGHT = 0.3
EVERY = 2


def read_rows(path: str) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def fit_weighted(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Logistic regression with a ridge penalty on all but the bias, by Newton's method."""
    penalty = np.eye(x.shape[1]) * RIDGE
    penalty[0, 0] = 1e-6
    coefficients = np.zeros(x.shape[1])
    for _ in range(40):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        slope = x.T @ ((chance - y) * weights) + penalty @ coefficients
        curvature = (x * (chance * (1 - chance) * weights)[:, None]).T @ x + penalty
        coefficients -= np.linalg.solve(curvature, slope)
    return coefficients


def main(answers: str, corpora: list[str]) -> None:
    rows = [row for path in corpora for row in read_rows(path) if row["text"] and is_prose(row["text"])]
    real = [row["answer"] for row in read_rows(answers)[::EVERY] if row["answer"] and is_prose(row["answer"])]
    sets = np.array([row.get("set", "corpus") for row in rows] + ["answers"] * len(real))
    x = np.array([features(text) for text in [*(row["text"] for row in rows), *real]])
    y = np.array([row["kind"] is not None for row in rows] + [False] * len(real), dtype=float)
    weights = np.array([1.0] * len(rows) + [ANSWER_WEIGHT] * len(real))
    print(f"{'set left out':<16}{'prose':>7}{'failures':>10}{'precision':>11}{'recall':>8}")
    for left_out in sorted(set(sets)):
        test = sets == left_out
        flagged = x[test] @ fit_weighted(x[~test], y[~test], weights[~test]) > THRESHOLD
        failed = y[test] > 0
        hits = int((flagged & failed).sum())
        precision = f"{hits / max(1, flagged.sum()):>11.3f}{hits / max(1, failed.sum()):>8.3f}"
        print(
            f"{left_out:<16}{test.sum():>7}{failed.sum():>10}{precision if failed.any() else f'{flagged.sum():>8} flagged'}"
        )
    for name, value in zip(FEATURES, fit_weighted(x, y, weights), strict=True):
        print(f'    "{name}": {value:.2f},')


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
