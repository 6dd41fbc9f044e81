"""Fits when a golden case asks the same as a real question: `python tools/fit/fit_coverage.py`.

Prints INTERCEPT, WEIGHTS and the shares of BANDS for src/answerkey/golden/similar.py. The sets `FITTED` of labelled/traffic
and half of the intents of the questions about property are fitted to; `benchmarks/drafting.py` counts the others. From each
golden set, cases are hidden in several ways.
"""

import json
import random
from bisect import bisect
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np
from labelled_sets import LABELLED, read_rows
from scipy.optimize import minimize

import answerkey
from answerkey.config import load_settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.golden import similar
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Reply
from answerkey.runs.context import golden_set, with_truth
from answerkey.runs.draft import Traffic
from answerkey.scorers.grader import make_grader

FITTED = ("bike_rental", "dental_practice", "outdoor_shop", "project_software", "staff_questions")
# Shares of the cases that are left in a golden set.
LEFT = (1.0, 0.9, 0.7, 0.5, 0.5, 0.3)
# Rows of the questions about property are many, and two of each.
PROPERTY_WEIGHT = 0.25
COVERED, SAME_TOPIC, OTHERS = range(3)


class Pair(NamedTuple):
    """A question and its nearest cases in one golden set."""

    domain: str
    kind: int
    # Of each near case: whether it is the one that was asked, and the features.
    near: list[tuple[bool, list[float]]]


def pairs() -> Iterator[Pair]:
    """Every question of every set, with several golden sets."""
    settings = load_settings()
    grader = make_grader(settings.scoring, settings)
    for name in FITTED:
        golden = [parse_question(row) for row in read_rows(LABELLED / "traffic" / f"{name}.golden.jsonl")]
        asked = [
            (row["text"], row["intent"], None)
            for row in read_rows(LABELLED / "traffic" / f"{name}.asked.jsonl")
        ]
        yield from _with_hidden(name, golden, asked, grader)
    bundled, _ = with_truth(golden_set("demo", settings), settings)
    alone = [case for case in bundled if not case.turns]
    conversations = {case.id for case in bundled if case.turns}
    rows = [
        row
        for row in read_rows(LABELLED / "traffic" / "property_questions.jsonl")
        if crc32(row["intent"].encode()) % 2 == 0 and row["intent"] not in conversations
    ]
    run = answerkey.evaluate(
        [{"question": text} for text in dict.fromkeys(row["text"] for row in rows)], target="demo"
    )
    replies: dict[str, Reply] = {trial.question.question: trial.replies[0] for trial in run.results}
    asked = [(row["text"], row["intent"], reply) for row in rows for reply in (None, replies[row["text"]])]
    yield from _with_hidden("property", alone, asked, grader)


def _with_hidden(name, golden, asked, grader) -> Iterator[Pair]:
    for seed, share in enumerate(LEFT):
        cases = list(golden)
        random.Random(seed).shuffle(cases)
        visible = cases[: round(len(cases) * share)]
        ids = {case.id for case in visible}
        traffic = Traffic(QuestionSet(questions=tuple(visible), name=name), grader)
        for text, intent, reply in asked:
            if not traffic.questions.is_comparable(text):
                continue
            near = [
                (
                    traffic.cases[one.index].id == intent,
                    [float(value) for value in msgspec.structs.astuple(one.features)],
                )
                for one in traffic.nearest(text, reply)
            ]
            beside = share == 1 and intent.startswith("new:") and name != "property"
            yield Pair(name, COVERED if intent in ids else SAME_TOPIC if beside else OTHERS, near)


def fit(rows: list[Pair]) -> np.ndarray:
    """The intercept and the weights of a logistic regression with a small penalty."""
    near = [(row.domain, *one) for row in rows for one in row.near]
    features = np.array([[1.0, *values] for _, _, values in near])
    asked = np.array([1.0 if same else -1.0 for _, same, _ in near])
    counts = np.array([PROPERTY_WEIGHT if domain == "property" else 1.0 for domain, _, _ in near])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = asked * (features @ weights)
        slopes = -counts * asked / (1 + np.exp(margins))
        penalised = np.append(0.0, weights[1:])
        return float(
            counts @ np.logaddexp(0, -margins) + penalised @ penalised / 2
        ), features.T @ slopes + penalised

    found = minimize(loss, np.zeros(features.shape[1]), jac=True)
    print("log-likelihood of a pair", round(-found.fun / counts.sum(), 4))
    return found.x


def bands(rows: list[Pair], weights: np.ndarray) -> np.ndarray:
    """How often the chance of the nearest case is in each band, for each kind of question; domains count alike."""
    domains = sorted({row.domain for row in rows})
    shares = np.zeros((3, len(similar.BANDS) + 1))
    counted = np.zeros(3)
    for domain in domains:
        counts = np.zeros_like(shares)
        for row in rows:
            if row.domain == domain:
                odds = max((weights @ [1.0, *values] for _, values in row.near), default=-20.0)
                counts[row.kind][bisect(similar.BANDS, 1 / (1 + np.exp(-odds)))] += 1
        for kind in np.flatnonzero(counts.sum(axis=1)):
            shares[kind] += (counts[kind] + 0.3) / (counts[kind] + 0.3).sum()
            counted[kind] += 1
    return shares / counted[:, None]


def main() -> None:
    """Print the fitted numbers."""
    rows = list(pairs())
    weights = fit(rows)
    print("INTERCEPT", round(weights[0], 2))
    print("WEIGHTS", {name: round(one, 2) for name, one in zip(similar.WEIGHTS, weights[1:], strict=True)})
    for name, shares in zip(("COVERED", "SAME_TOPIC", "OTHERS"), bands(rows, weights), strict=True):
        print(name, json.dumps([round(one, 3) for one in shares]))


if __name__ == "__main__":
    main()
