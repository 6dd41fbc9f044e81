"""Fits the decision whether a reply declines: `python tools/fit/fit_abstention.py`. It takes a few seconds.

1. For each author of labelled/fault_replies: fit to the other authors, and decide about this author's replies.
2. Fit to all and write src/answerkey/detect/abstention/weights.json.gz.
3. For each fifth of the plain answers' questions: fit without them, and decide about their answers.

Plain answers from the other labelled sets are added to every fit with a smaller weight.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from fit_errors import RUN_SCALE, SHAPE_SCALE, fit, to_matrix
from labelled_sets import LABELLED, author_of, labelled_files, read_rows

from answerkey.detect.abstention.model import Model, declines, features_of, words_of
from answerkey.detect.model import runs_of

__all__ = ["DECLINING", "Figures", "Row", "Table", "figures", "read_fault_replies", "read_plain_answers"]

WEIGHTS = Path(__file__).resolve().parents[2] / "src/answerkey/detect/abstention/weights.json.gz"
# A refusal says that it is not possible and states no answer. A question back ("asks") says neither.
DECLINING = frozenset({"honest", "abstains", "refuses"})
# What a plain answer counts in the fit beside a reply after a fault.
PLAIN, PLAIN_COUNT, PLAIN_FOLDS = "plain", 0.17, 5


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


def read_fitted_only() -> list[Row]:
    """Plain sentences by the author of the model: every fit has them, no figure counts them."""
    return [
        Row("fitted", row["question"], row["reply"], row["label"])
        for row in read_rows(LABELLED / "fit_only/declines_plain.jsonl")
    ]


def read_plain_answers() -> list[Row]:
    """Answers from the sets on evidence and keywords, which state something."""
    rows = [
        Row(PLAIN, row["question"], row["answer"], "answered")
        for path in labelled_files("evidence/*")
        for row in read_rows(path)
    ]
    return rows + [
        Row(PLAIN, row["question"], row["answer"], "answered")
        for path in labelled_files("keywords/*")
        for row in read_rows(path)
        if row["said"]
    ]


class Table:
    """Rows with their features: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        rows = [*read_fitted_only(), *rows]
        self.authors = np.array([row.author for row in rows])
        self.failed = np.array([row.declines for row in rows])
        self.counts = np.where(self.authors == PLAIN, PLAIN_COUNT, 1.0)
        self.x, self.names = to_matrix(map(_weighed, rows))


def _weighed(row: Row) -> dict[tuple[str, str], float]:
    words = words_of(row.reply)
    runs = Counter(run for word in words for run in runs_of(word))
    scale = RUN_SCALE * max(1, len(words)) ** -0.5
    weighed = {("runs", run): times * scale for run, times in runs.items()}
    features = features_of(row.question, row.reply)
    return weighed | {("shapes", name): SHAPE_SCALE * value for name, value in features.items()}


def figures(rows: Iterable[Row], model: Model) -> Figures:
    """Precision and recall of the verdicts on replies."""
    verdicts = [(declines(row.question, row.reply, model), row.declines) for row in rows]
    right = verdicts.count((True, True))
    return Figures(
        precision=right / sum(verdict for verdict, _ in verdicts),
        recall=right / sum(label for _, label in verdicts),
    )


def accused_share(table: Table, plain: Sequence[Row]) -> float:
    """The share of plain answers that decline, each by a model without its question."""
    folds = np.array([zlib.crc32(row.question.encode()) % PLAIN_FOLDS for row in plain])
    # The plain answers are the table's last rows.
    table.authors[-len(plain) :] = [f"{PLAIN} {fold}" for fold in folds]
    accused = 0
    for fold in range(PLAIN_FOLDS):
        model = Model(fit(table, [f"{PLAIN} {fold}"]))
        left_out = [row for row, its in zip(plain, folds, strict=True) if its == fold]
        accused += sum(declines(row.question, row.reply, model) for row in left_out)
    return accused / len(plain)


def main() -> None:
    rows, plain = read_fault_replies(), read_plain_answers()
    table = Table([*rows, *plain])
    for author in sorted({row.author for row in rows}):
        model = Model(fit(table, author))
        left_out = [row for row in rows if row.author == author]
        of = figures(left_out, model)
        print(f"{author} left out: F1 {of.f1:.3f}, precision {of.precision:.3f}, recall {of.recall:.3f}")
        for label in sorted({row.label for row in left_out}):
            chosen = [declines(row.question, row.reply, model) for row in left_out if row.label == label]
            print(f"  {label}: {sum(chosen)} of {len(chosen)} decline")
    weights = fit(table)
    WEIGHTS.write_bytes(gzip.compress(msgspec.json.encode(weights), mtime=0))
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")
    print(f"plain answers, each question left out: {accused_share(table, plain):.1%} of {len(plain)} decline")


if __name__ == "__main__":
    main()
