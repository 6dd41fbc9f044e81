"""How well each match mode agrees with people: `python benchmarks/judgement.py FILE [FILE…]`.

FILE has one judged answer a line: {"id", "question", "accepted": [...], "answer", "correct"}. Prints accuracy, F1 and Cohen's
kappa, and the false positives and negatives of `literal`, `standard` and `smart`. `smart` twice: as shipped (what users get; the
honest figure on any file it was not fitted to), and cross-validated by question, its coefficients fitted to the other folds
(the honest figure on the file it was fitted to).
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fit_smart

from answerkey.match.keywords import MatchMode, find_keywords
from answerkey.match.smart.model import THRESHOLD
from answerkey.text.keyword import Alternatives


def decide(rows: list[dict[str, Any]], mode: MatchMode) -> np.ndarray:
    """The verdicts of a mode: the accepted answers are one keyword with alternatives."""
    return np.array(
        [
            find_keywords(
                [Alternatives(tuple(row["accepted"]))], row["answer"], mode, question=row["question"]
            )[0].found
            for row in rows
        ]
    )


def agreement(found: np.ndarray, correct: np.ndarray) -> dict[str, float]:
    both = int((found & correct).sum())
    only_found, only_correct = int((found & ~correct).sum()), int((~found & correct).sum())
    total = len(correct)
    accuracy = float((found == correct).mean())
    by_chance = (found.mean() * correct.mean()) + ((1 - found.mean()) * (1 - correct.mean()))
    return {
        "accuracy": accuracy,
        "f1": 2 * both / max(1, 2 * both + only_found + only_correct),
        "kappa": (accuracy - by_chance) / (1 - by_chance) if by_chance < 1 else 1.0,
        "false_positives": only_found,
        "false_negatives": only_correct,
        "accepted_of_wrong": only_found / max(1, int((~correct).sum())),
        "rejected_of_right": only_correct / max(1, int(correct.sum())),
        "answers": total,
    }


def show(name: str, figures: dict[str, float], seconds: float | None) -> None:
    rate = "" if seconds is None else f"{figures['answers'] / seconds:>10,.0f}"
    print(
        f"{name:<24}{figures['accuracy']:>9.4f}{figures['f1']:>8.4f}{figures['kappa']:>8.4f}"
        f"{figures['false_positives']:>7.0f} ({figures['accepted_of_wrong']:>5.1%})"
        f"{figures['false_negatives']:>7.0f} ({figures['rejected_of_right']:>5.1%}){rate}"
    )


def main(paths: list[str]) -> None:
    for path in paths:
        rows = fit_smart.read_judged(path)
        correct = np.array([bool(row["correct"]) for row in rows])
        questions = len({row["question"] for row in rows})
        print(
            f"{Path(path).name}: {len(rows)} answers to {questions} questions, {correct.mean():.1%} judged correct"
        )
        print(
            f"{'mode':<24}{'accuracy':>9}{'F1':>8}{'kappa':>8}{'wrong accepted':>16}{'right rejected':>16}{'per CPU s':>10}"
        )
        modes: list[MatchMode] = ["literal", "standard", "smart"]
        for mode in modes:
            start = time.process_time()
            found = decide(rows, mode)
            seconds = time.process_time() - start
            show(f"{mode} (as shipped)" if mode == "smart" else mode, agreement(found, correct), seconds)
        settled = fit_smart.settle_all(rows)
        if questions >= 10 * fit_smart.FOLDS:
            scores = fit_smart.cross_validated_scores(settled, correct.astype(float), fit_smart.fold_of(rows))
            show("smart (cross-validated)", agreement(scores > THRESHOLD, correct), None)
        decided = sum(isinstance(case, bool) for case in settled)
        print(
            f"decided by fixed rules: {decided / len(rows):.1%}; by the model: {1 - decided / len(rows):.1%}"
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
