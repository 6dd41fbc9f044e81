"""Fits the error detector's model to labelled replies: `python benchmarks/fit_errors.py ANSWERS CORPUS [CORPUS…]`.

A CORPUS has one labelled reply a line: {"text", "kind"} with kind null for an answer, and "set" where its rows come from several
authors. ANSWERS has real answers to questions, {"answer"}, all of them good ones; every second counts, with half
the weight. Only prose is fitted: what bodies, traces, leaks and messages of programs decide stays decided. Prints precision and
recall of each set, of the model by itself on prose and of the whole detector, by a model that has not seen the set; then the
table for src/answerkey/text/failing/model.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from answerkey.detect.detector import detect_failure, is_prose
from answerkey.detect.learned import model
from answerkey.detect.learned.features import FEATURES, features

RIDGE = 2.0
ANSWER_WEIGHT = 0.5
EVERY = 2
# Long stories of how somebody tried in vain are rare: at full weight they would teach that many sentences speak for a failure.
SET_WEIGHTS = {"plain people": 0.3}


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


def figures(flagged: list[bool], failed: list[bool]) -> str:
    hits = sum(f and t for f, t in zip(flagged, failed, strict=True))
    return f"{hits / max(1, sum(flagged)):>9.3f}{hits / max(1, sum(failed)):>8.3f}"


def main(answers: str, corpora: list[str]) -> None:
    everything = [row for path in corpora for row in read_rows(path)]
    rows = [row for row in everything if row["text"] and is_prose(row["text"])]
    real = [row["answer"] for row in read_rows(answers)[::EVERY] if row["answer"] and is_prose(row["answer"])]
    sets = np.array([row.get("set", "corpus") for row in rows] + ["answers"] * len(real))
    x = np.array([features(text) for text in [*(row["text"] for row in rows), *real]])
    y = np.array([row["kind"] is not None for row in rows] + [False] * len(real), dtype=float)
    weights = np.array(
        [SET_WEIGHTS.get(row.get("set", ""), 1.0) for row in rows] + [ANSWER_WEIGHT] * len(real)
    )
    print(f"{'':<16}{'the model, on prose':>29}{'the detector':>24}")
    print(
        f"{'set left out':<16}{'rows':>6}{'failed':>7}{'prec.':>8}{'recall':>8}{'rows':>7}{'prec.':>9}{'recall':>8}"
    )
    all_flagged: list[bool] = []
    all_failed: list[bool] = []
    for left_out in sorted(set(sets)):
        test = sets == left_out
        coefficients = fit_weighted(x[~test], y[~test], weights[~test])
        flagged = list(x[test] @ coefficients > model.THRESHOLD)
        if left_out == "answers":
            print(f"{left_out:<16}{test.sum():>6}{sum(flagged):>7} flagged")
            continue
        line = f"{left_out:<16}{test.sum():>6}{int(y[test].sum()):>7}{figures(flagged, list(y[test] > 0))}"
        # The whole detector, with what was fitted without this set.
        model._WEIGHTS = tuple(coefficients)
        whole = [row for row in everything if row.get("set", "corpus") == left_out]
        flagged = [detect_failure(row["text"]) is not None for row in whole]
        failed = [row["kind"] is not None for row in whole]
        all_flagged += flagged
        all_failed += failed
        print(f"{line}{len(whole):>6}{figures(flagged, failed)}")
    print(f"{'all':<45}{len(all_failed):>5}{figures(all_flagged, all_failed)}")
    for name, value in zip(FEATURES, fit_weighted(x, y, weights), strict=True):
        print(f'    "{name}": {value:.2f},')


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
