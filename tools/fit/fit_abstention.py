"""Fits the decision whether a reply declines: `python tools/fit/fit_abstention.py`. It takes a few seconds.

1. For each author of labelled/fault_replies: fit to the other author, and decide about this author's replies.
2. Fit to both and write src/answerkey/detect/abstention/weights.json.

Plain answers from the other labelled sets are added to every fit with a small weight.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from labelled_sets import author_of, labelled_files, read_rows
from scipy.optimize import minimize

from answerkey.detect.abstention.model import Weights, declines, features_of

__all__ = ["DECLINING", "Figures", "Row", "figures", "fit", "read_fault_replies", "read_plain_answers"]

WEIGHTS = Path(__file__).resolve().parents[2] / "src/answerkey/detect/abstention/weights.json"
# A refusal says that it is not possible and states no answer. A question back ("asks") says neither.
DECLINING = frozenset({"honest", "abstains", "refuses"})
# What a plain answer counts in the fit beside a reply after a fault.
PLAIN_COUNT = 0.1
STRENGTH = 1.0


class Row(NamedTuple):
    """One labelled reply."""

    author: str
    question: str
    reply: str
    label: str

    @property
    def declines(self) -> bool:
        """Whether its author says that it declines."""
        return self.label in DECLINING


class Figures(NamedTuple):
    """How verdicts compare with labels."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def read_fault_replies() -> list[Row]:
    """The replies that are evaluated: those after a tool failed or worked."""
    return [
        Row(author_of(path), row["question"], row["reply"], row["label"])
        for path in labelled_files("fault_replies/*")
        for row in read_rows(path)
    ]


def read_plain_answers() -> list[Row]:
    """Answers from the sets on evidence and keywords, which state something."""
    rows = [
        Row("plain", row["question"], row["answer"], "answered")
        for path in labelled_files("evidence/*")
        for row in read_rows(path)
    ]
    return rows + [
        Row("plain", row["question"], row["answer"], "answered")
        for path in labelled_files("keywords/*")
        for row in read_rows(path)
        if row["said"]
    ]


class Table:
    """Rows with their features: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        found = [features_of(row.question, row.reply) for row in rows]
        self.authors = np.array([row.author for row in rows])
        self.sign = np.where([row.declines for row in rows], 1.0, -1.0)
        self.counts = np.where(self.authors == "plain", PLAIN_COUNT, 1.0)
        self.names = sorted({name for features in found for name in features})
        self.x = np.array([[features.get(name, 0.0) for name in self.names] for features in found])


def fit(table: Table, without: str = "") -> Weights:
    """Logistic regression with a ridge penalty, fitted to all rows but those of one author."""
    train = table.authors != without
    x, sign, counts = table.x[train], table.sign[train], table.counts[train]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights, bias = parameters[:-1], parameters[-1]
        margin = (x @ weights + bias) * sign
        value = STRENGTH * (counts * np.logaddexp(0, -margin)).sum() + 0.5 * weights @ weights
        slope = -STRENGTH * counts * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        return value, np.append(x.T @ slope + weights, slope.sum())

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = {name: round(float(value), 3) for name, value in zip(table.names, found[:-1], strict=True)}
    return Weights(bias=round(float(found[-1]), 3), features=weights)


def figures(rows: Iterable[Row], weights: Weights) -> Figures:
    """Precision and recall of the verdicts on replies."""
    verdicts = [(declines(row.question, row.reply, weights), row.declines) for row in rows]
    right = verdicts.count((True, True))
    return Figures(
        precision=right / sum(verdict for verdict, _ in verdicts),
        recall=right / sum(label for _, label in verdicts),
    )


def main() -> None:
    rows, plain = read_fault_replies(), read_plain_answers()
    table = Table([*rows, *plain])
    for author in sorted({row.author for row in rows}):
        weights = fit(table, without=author)
        left_out = [row for row in rows if row.author == author]
        of = figures(left_out, weights)
        print(f"{author} left out: F1 {of.f1:.3f}, precision {of.precision:.3f}, recall {of.recall:.3f}")
        for label in sorted({row.label for row in left_out}):
            chosen = [declines(row.question, row.reply, weights) for row in left_out if row.label == label]
            print(f"  {label}: {sum(chosen)} of {len(chosen)} decline")
        accused = sum(declines(row.question, row.reply, weights) for row in plain)
        print(f"  plain answers: {accused} of {len(plain)} ({accused / len(plain):.1%})")
    WEIGHTS.write_bytes(msgspec.json.format(msgspec.json.encode(fit(table)), indent=1) + b"\n")


if __name__ == "__main__":
    main()
