"""Fits the coefficients of `smart` matching to human verdicts: `python benchmarks/fit_smart.py FILE`.

FILE has one judged answer a line: {"id", "question", "accepted": [...], "answer", "correct"}. Only the answers that no fixed
rule of `smart` decides are fitted. A reply with several accepted answers counts by its best one, so the fit and the choice of
the best take turns. Prints the table for src/answerkey/text/smart/model.py.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from answerkey.match.found import Match
from answerkey.match.smart.decide import SmartKeyword
from answerkey.match.smart.features import FEATURES
from answerkey.match.smart.reply import ReplyWords
from answerkey.match.smart.wanted import question_stems

RIDGE = 1.0
FOLDS = 10
# What the fixed rules decide stays decided: beyond any threshold.
_DECIDED = 99.0


def read_judged(path: str) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def settle_all(rows: list[dict[str, Any]]) -> list[bool | np.ndarray]:
    """For each answer the verdict of the fixed rules, or the features of every accepted answer it may mean."""
    prepared: dict[tuple[str, ...], tuple[frozenset[str], SmartKeyword]] = {}
    settled: list[bool | np.ndarray] = []
    for row in rows:
        key = (row["question"], *row["accepted"])
        if key not in prepared:
            asked = question_stems(row["question"])
            options = tuple(option for option in row["accepted"] if option.strip())
            prepared[key] = asked, SmartKeyword(options, asked, row["question"])
        asked, keyword = prepared[key]
        outcome = keyword.settle(ReplyWords(row["answer"], asked))
        if isinstance(outcome, Match):
            settled.append(outcome.found)
        else:
            settled.append(np.array([candidate.features for candidate in outcome]))
    return settled


def fit_logistic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression with a ridge penalty on all but the bias, by Newton's method."""
    penalty = np.eye(x.shape[1]) * RIDGE
    penalty[0, 0] = 1e-6
    weights = np.zeros(x.shape[1])
    for _ in range(25):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (chance - y) + penalty @ weights
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x + penalty
        weights -= np.linalg.solve(curvature, slope)
    return weights


def fit(settled: list[bool | np.ndarray], correct: np.ndarray) -> np.ndarray:
    """The coefficients over the answers that the fixed rules leave open."""
    open_cases = [
        (case, verdict) for case, verdict in zip(settled, correct, strict=True) if not isinstance(case, bool)
    ]
    verdicts = np.array([verdict for _, verdict in open_cases], dtype=float)
    recall, fuzzy = FEATURES.index("recall"), FEATURES.index("fuzzy")
    chosen = [case[np.argmax(2 * case[:, recall] + case[:, fuzzy])] for case, _ in open_cases]
    weights = np.zeros(len(FEATURES))
    for _ in range(4):
        weights = fit_logistic(np.array(chosen), verdicts)
        chosen = [case[np.argmax(case @ weights)] for case, _ in open_cases]
    return weights


def scores(settled: list[bool | np.ndarray], weights: np.ndarray) -> np.ndarray:
    return np.array(
        [
            (_DECIDED if case else -_DECIDED) if isinstance(case, bool) else (case @ weights).max()
            for case in settled
        ]
    )


def fold_of(rows: list[dict[str, Any]], seed: int = 0) -> np.ndarray:
    """The fold of each answer; all answers to one question are in one fold."""
    questions = sorted({row["question"] for row in rows})
    random.Random(seed).shuffle(questions)
    folds = {question: index % FOLDS for index, question in enumerate(questions)}
    return np.array([folds[row["question"]] for row in rows])


def cross_validated_scores(
    settled: list[bool | np.ndarray], correct: np.ndarray, folds: np.ndarray
) -> np.ndarray:
    """Each answer's score by a model that has not seen its question."""
    result = np.zeros(len(correct))
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = fit([settled[i] for i in outside], correct[outside])
        result[inside] = scores([settled[i] for i in inside], weights)
    return result


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    judged = read_judged(sys.argv[1])
    fitted = fit(settle_all(judged), np.array([row["correct"] for row in judged], dtype=float))
    for name, value in zip(FEATURES, fitted, strict=True):
        print(f'    "{name}": {value:.2f},')
