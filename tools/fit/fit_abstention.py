"""Fits the decision whether a reply declines: `python tools/fit/fit_abstention.py [--figures-only]`; needs scikit-learn.

The authors, and the questions of the plain answers, are in five folds. For each fold: fit to the others, and decide about its
replies. Then fit to all. --figures-only writes nothing. It takes two minutes of CPU time with OPENBLAS_NUM_THREADS=1.

The trees must not trust what the linear model learned by heart. So in a fit, the log-odds of each reply are those of a linear
model without the reply's fold.

The model of all rows is stored in src/answerkey/detect/abstention, the models without each fold in abstention_held_out.json.gz,
so that tests can measure without scikit-learn.
"""

import argparse
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from fit_errors import RUN_SCALE, SHAPE_SCALE, fit, to_matrix
from fit_trees import export_trees
from labelled_sets import author_of, labelled_files, read_rows

from answerkey.detect.abstention.model import (
    Model,
    Weighed,
    declines,
    numbers_of,
    read_reply,
    weighed,
)
from answerkey.detect.model import Weights, runs_of
from answerkey.text.patterns import Trees

__all__ = [
    "Figures",
    "Row",
    "accused_share",
    "figures",
    "fold_of",
    "fold_of_author",
    "read_evaluated",
    "read_plain_answers",
]
__all__ += ["read_replies", "stored_folds"]

PACKAGE = Path(__file__).resolve().parents[2] / "src/answerkey/detect/abstention"
HELD_OUT = Path(__file__).with_name("abstention_held_out.json.gz")
# A refusal says that it is not possible and states no answer. A question back ("asks") says neither.
DECLINING = frozenset({"honest", "abstains", "refuses", "declines"})
# What a plain answer counts in a fit beside a reply after a fault.
PLAIN, PLAIN_COUNT = "plain", 0.5
# What a row counts in the linear model: its penalty is that of the error detector's fit, and more of it suits new authors.
LINEAR_COUNT = 0.25
FOLDS = 5
TREES = {
    "max_iter": 150, "max_leaf_nodes": 14, "learning_rate": 0.08, "max_features": 0.4,
    "l2_regularization": 1.0, "min_samples_leaf": 8, "max_bins": 64,
}  # fmt: skip


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


class Fitted(msgspec.Struct, frozen=True):
    """What a fit gives."""

    weights: Weights
    trees: Trees

    def model(self) -> Model:
        """The model that decides by it."""
        return Model(self.weights, self.trees)


def read_replies(files: str) -> list[Row]:
    """The labelled replies of some files."""
    return [
        Row(author_of(path), row["question"], row["reply"], row["label"])
        for path in labelled_files(files)
        for row in read_rows(path)
    ]


def read_evaluated() -> list[Row]:
    """The replies after a tool failed or worked, and those that decline or look alike."""
    return [*read_replies("fault_replies/*"), *read_replies("declines/*")]


def read_fitted_only() -> list[Row]:
    """Short sentences by the author of the model: fits have them, no figure counts them."""
    return [row._replace(author="fitted") for row in read_replies("fit_only/declines_*")]


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


def fold_of(row: Row) -> int:
    """The fold of a row: all of an author, or of a question of the plain answers."""
    return zlib.crc32(row.question.encode()) % FOLDS if row.author == PLAIN else fold_of_author(row.author)


def fold_of_author(author: str) -> int:
    """The fold of all rows of an author."""
    return ord(author[0]) % FOLDS


class Table:
    """Rows with what both models read of them, and the linear models without one or two folds: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.authors = np.array([str(fold_of(row)) for row in rows])
        self.failed = np.array([row.declines for row in rows])
        self._tree_counts = np.where([row.author == PLAIN for row in rows], PLAIN_COUNT, 1.0)
        self.counts = LINEAR_COUNT * self._tree_counts
        self.readings = [read_reply(row.question, row.reply) for row in rows]
        self.x, self.names = to_matrix(_features(weighed(reading)[0]) for reading in self.readings)
        self._known: dict[frozenset[str], tuple[Weights, list[list[float]]]] = {}

    def fit(self, without: str = "") -> Fitted:
        """The model of all rows but those of a fold."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        train = np.flatnonzero(self.authors != without)
        numbers = [self._numbers(row, without) for row in train]
        model = HistGradientBoostingClassifier(**TREES, early_stopping=False, random_state=0)
        model.fit(np.array(numbers), self.failed[train], sample_weight=self._tree_counts[train])
        return Fitted(self._linear(without)[0], Trees(*export_trees(model)))

    def _numbers(self, row: int, without: str) -> list[float]:
        log_odds = self._linear(without, self.authors[row])[1][row]
        return list(map(float, numbers_of(self.readings[row], log_odds[0], log_odds[1:]).values()))

    def _linear(self, *without: str) -> tuple[Weights, list[list[float]]]:
        """The linear model without some folds, and its log-odds of each row and its sentences."""
        left_out = frozenset(without) - {""}
        if left_out not in self._known:
            weights = fit(self, left_out)
            model = Model(weights, Trees(0.0, []))
            self._known[left_out] = weights, [model.log_odds(reading) for reading in self.readings]
        return self._known[left_out]


def _features(text: Weighed) -> dict[tuple[str, str], float]:
    runs = Counter(run for word in text.words for run in runs_of(word))
    scale = RUN_SCALE * max(1, len(text.words)) ** -0.5
    return {("runs", run): times * scale for run, times in runs.items()} | {
        ("shapes", name): SHAPE_SCALE * value for name, value in text.features.items()
    }


def figures(rows: Iterable[Row], model: Model) -> Figures:
    """Precision and recall of the verdicts on replies."""
    verdicts = [(declines(row.question, row.reply, model), row.declines) for row in rows]
    right = verdicts.count((True, True))
    return Figures(
        precision=right / sum(verdict for verdict, _ in verdicts),
        recall=right / sum(label for _, label in verdicts),
    )


def accused_share(plain: Sequence[Row], models: Sequence[Model]) -> float:
    """The share of plain answers that decline, each by the model without its fold."""
    accused = sum(declines(row.question, row.reply, models[fold_of(row)]) for row in plain)
    return accused / len(plain)


def stored_folds() -> list[Model]:
    """The models without each fold."""
    packed = gzip.decompress(HELD_OUT.read_bytes())
    return [fitted.model() for fitted in msgspec.json.decode(packed, type=list[Fitted])]


def _write(path: Path, model: Any) -> None:
    """Without the time, so that equal fits give equal files."""
    path.write_bytes(gzip.compress(msgspec.json.encode(model), mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--figures-only", action="store_true", help="write nothing")
    write = not arguments.parse_args().figures_only
    rows, plain = read_evaluated(), read_plain_answers()
    table = Table([*rows, *read_fitted_only(), *plain])
    folds = [table.fit(str(fold)) for fold in range(FOLDS)]
    models = [fitted.model() for fitted in folds]
    for author in sorted({row.author for row in rows}):
        left_out = [row for row in rows if row.author == author]
        model = models[fold_of(left_out[0])]
        of = figures(left_out, model)
        print(f"{author} left out: F1 {of.f1:.3f}, precision {of.precision:.3f}, recall {of.recall:.3f}")
        for label in sorted({row.label for row in left_out}):
            chosen = [declines(row.question, row.reply, model) for row in left_out if row.label == label]
            print(f"  {label}: {sum(chosen)} of {len(chosen)} decline")
    print(f"plain answers left out: {accused_share(plain, models):.2%} of {len(plain)} decline", flush=True)
    if write:
        shipped = table.fit()
        _write(PACKAGE / "weights.json.gz", shipped.weights)
        _write(PACKAGE / "trees.json.gz", shipped.trees)
        _write(HELD_OUT, folds)


if __name__ == "__main__":
    main()
