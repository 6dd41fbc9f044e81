"""Fits the trees of `smart` matching: `python benchmarks/fit_smart.py TRIVIA [--write]`; needs scikit-learn.

TRIVIA has one judged answer a line: {"id", "question", "accepted": [...], "answer", "correct"}; the business replies are
labelled/keywords_*.jsonl. Prints held-out figures: business replies by models that saw none of their author's, trivia answers by
models that saw none of their questions. With --write, stores the model of all rows and its thresholds in
src/answerkey/match/smart.json, and the model without each author in benchmarks/smart_folds.json, by which the tests measure
without scikit-learn.

A row counts by its best candidate, so the fit and the choice of the best take turns.
"""

import argparse
import json
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from answerkey.match.keywords import ReplyText
from answerkey.match.model import DIRECTIONS, Trees
from answerkey.match.reply import Reply
from answerkey.match.smart import SmartKeyword
from answerkey.match.wanted import prepare_asked
from answerkey.text.keyword import Alternatives

ROOT = Path(__file__).resolve().parents[1]
AUTHORS = "".join(sorted(path.stem[-1] for path in (ROOT / "labelled").glob("keywords_?.jsonl")))
FOLDS = 5
# What a trivia row counts beside a business row. At 0.5 business replies gain a point and trivia answers lose a quarter of one.
TRIVIA_WEIGHT = 1.0
ROUNDS = 2
# The score of a row of which nothing is in the reply.
NOWHERE = -9.0
TREES = {
    "max_iter": 150, "max_leaf_nodes": 7, "learning_rate": 0.1,
    "l2_regularization": 1.0, "min_samples_leaf": 8, "max_bins": 64,
}  # fmt: skip


class Row:
    """One judged reply with the features of its candidates."""

    def __init__(self, source: str, question: str, options: list[str], answer: str, said: bool) -> None:
        self.source, self.question, self.options, self.answer, self.said = (
            source,
            question,
            options,
            answer,
            said,
        )
        keyword = SmartKeyword(Alternatives(tuple(options)), question)
        reply = Reply(ReplyText(answer), prepare_asked(question))
        found = list(keyword.candidates(reply))
        self.features = np.array([one[0] for one in found], dtype=float).reshape(len(found), len(DIRECTIONS))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def business_rows(kind: str = "keywords") -> list[Row]:
    """The labelled replies: `keywords` are fitted to, `context` never."""
    rows = []
    for path in sorted((ROOT / "labelled").glob(f"{kind}_?.jsonl")):
        author = path.stem[-1]
        for line in _lines(path):
            keyword = line["expected_keywords"][0]
            options = keyword if isinstance(keyword, list) else [keyword]
            rows.append(Row(author, line["question"], options, line["answer"], line["said"]))
    return rows


def trivia_rows(path: Path) -> list[Row]:
    return [
        Row("trivia", line["question"], line["accepted"], line["answer"], bool(line["correct"]))
        for line in _lines(path)
    ]


def question_folds(rows: list[Row], folds: int = FOLDS) -> list[int]:
    """The fold of each row; all answers to one question are in one fold."""
    questions = sorted({row.question for row in rows})
    random.Random(0).shuffle(questions)
    of = {question: index % folds for index, question in enumerate(questions)}
    return [of[row.question] for row in rows]


def fit(rows: list[Row]) -> Trees:
    """The model of these rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = [row for row in rows if len(row.features)]
    said = np.array([row.said for row in rows])
    weights = np.array([TRIVIA_WEIGHT if row.source == "trivia" else 1.0 for row in rows])
    recall = list(DIRECTIONS).index("recall")
    chosen = [row.features[int(np.argmax(row.features[:, recall]))] for row in rows]
    trees = None
    for _ in range(ROUNDS):
        if trees is not None:
            chosen = [row.features[int(np.argmax(scores(trees, row)))] for row in rows]
        model = HistGradientBoostingClassifier(
            **TREES, monotonic_cst=list(DIRECTIONS.values()), early_stopping=False, random_state=0
        )
        model.fit(np.array(chosen), said, sample_weight=weights)
        trees = _exported(model)
        _kept.append(trees)
    assert trees is not None
    return trees


def _exported(model: Any) -> Trees:
    trees = []
    for (predictor,) in model._predictors:
        nodes: list[tuple[int, float, int, int, float]] = []
        for node in predictor.nodes:
            if node["is_leaf"]:
                nodes.append((-1, 0.0, 0, 0, round(float(node["value"]), 4)))
            else:
                threshold = round(float(node["num_threshold"]), 4)
                nodes.append(
                    (int(node["feature_idx"]), threshold, int(node["left"]), int(node["right"]), 0.0)
                )
        trees.append(nodes)
    return Trees(round(float(model._baseline_prediction[0, 0]), 4), trees)


# Kept alive, so that no two models share an id.
_kept: list[Trees] = []
_functions: dict[int, Callable[[tuple[float, ...]], float]] = {}


def _function(trees: Trees) -> Callable[[tuple[float, ...]], float]:
    if id(trees) not in _functions:
        _functions[id(trees)] = lru_cache(maxsize=None)(trees.score)
    return _functions[id(trees)]


def scores(trees: Trees, row: Row) -> list[float]:
    """The score of each candidate; equal candidates are scored once."""
    score = _function(trees)
    return [score(tuple(values)) for values in row.features]


def verdict_score(trees: Trees, row: Row) -> float:
    """The log-odds of the best candidate."""
    return max(scores(trees, row), default=NOWHERE)


def is_found(trees: Trees, row: Row) -> bool:
    """The verdict of `smart` at the threshold `even`."""
    return verdict_score(trees, row) > 0


def stored_folds() -> dict[str, Trees]:
    """The models without each author, as `--write` stored them."""
    return msgspec.json.decode((ROOT / "benchmarks/smart_folds.json").read_bytes(), type=dict[str, Trees])


def held_out_business(business: list[Row], trivia: list[Row]) -> tuple[np.ndarray, dict[str, Trees]]:
    """Each business row's score by a model that saw nothing of its author, and those models."""
    models = {a: fit([*(row for row in business if row.source != a), *trivia]) for a in AUTHORS}
    return np.array([verdict_score(models[row.source], row) for row in business]), models


def held_out_trivia(business: list[Row], trivia: list[Row]) -> np.ndarray:
    """Each trivia row's verdict by a model that did not see its question."""
    folds = np.array(question_folds(trivia))
    found = np.zeros(len(trivia), dtype=bool)
    for fold in range(FOLDS):
        trees = fit([*business, *(row for row, its in zip(trivia, folds, strict=True) if its != fold)])
        for index in np.flatnonzero(folds == fold):
            found[index] = is_found(trees, trivia[index])
    return found


def thresholds(found: np.ndarray, said: np.ndarray) -> dict[str, float]:
    """`even` at 0; `strict`: nine in ten that it accepts are right; `lenient`: of the right ones of which something is there,
    49 in 50 are accepted."""
    levels = sorted({round(float(one), 2) for one in found if 0 <= one <= 4})
    strict = next((level for level in levels if said[found > level].mean() >= 0.9), 4.0)
    lenient = round(float(np.quantile(found[said & (found > NOWHERE)], 0.02)), 2)
    return {"even": 0.0, "strict": strict, "lenient": min(0.0, lenient)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("trivia", type=Path)
    arguments.add_argument("--write", action="store_true", help="store the model and the folds")
    given = arguments.parse_args()
    business, trivia = business_rows(), trivia_rows(given.trivia)
    said = np.array([row.said for row in business])
    found, models = held_out_business(business, trivia)
    right = (found > 0) == said
    for author in AUTHORS:
        own = np.array([row.source == author for row in business])
        print(f"business, author {author}: {right[own].mean():.4f} of {own.sum()}")
    print(f"business, leave one author out: {right.mean():.4f} of {len(said)}")
    limits = thresholds(found, said)
    for name, limit in limits.items():
        accepted = found > limit
        print(f"  {name} {limit:+.2f}: accuracy {(accepted == said).mean():.3f}, precision {said[accepted].mean():.3f}, "
              f"recall {accepted[said].mean():.3f}")  # fmt: skip
    judged = held_out_trivia(business, trivia)
    right = judged == np.array([row.said for row in trivia])
    print(f"trivia, cross-validated over questions: {right.mean():.4f} of {len(right)}", flush=True)
    few = np.array([len(row.options) <= 3 for row in trivia])
    print(f"  with one to three accepted answers: {right[few].mean():.4f} of {few.sum()}")
    if given.write:
        shipped = msgspec.structs.replace(fit([*business, *trivia]), thresholds=limits)
        (ROOT / "src/answerkey/match/smart.json").write_bytes(msgspec.json.encode(shipped))
        (ROOT / "benchmarks/smart_folds.json").write_bytes(msgspec.json.encode(models))


if __name__ == "__main__":
    main()
