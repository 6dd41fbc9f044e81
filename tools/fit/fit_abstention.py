"""Fits the decision whether a reply declines: `python tools/fit/fit_abstention.py [--figures-only]`; needs scikit-learn.

The authors, those of the plain answers too, are in ten folds. For each fold: fit to the others, and decide about its replies.
Then fit to all. --figures-only writes nothing. It takes three minutes of CPU time with OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1.

The trees must not trust what the linear model learned by heart. So in a fit, the log-odds of each reply are those of a linear
model without the reply's fold.

The model of all rows is stored in src/answerkey/detect/abstention, the models without each fold in abstention_held_out.json.gz,
so that tests can measure without scikit-learn.
"""

import argparse
import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
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
    probability,
    read_reply,
    weighed,
)
from answerkey.detect.model import Weights, runs_of
from answerkey.text.patterns import Trees

__all__ = [
    "MISTAKEN",
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
PLAIN, PLAIN_COUNT = "plain", 1.0
# By label, what their authors say of replies without the expected keyword.
WRONG_KEYWORDS = {
    "answered": frozenset(
        "wrong_value|wrong value|wrong_name|wrong name|wrong_date|wrong_unit|wrong_month|wrong_year|wrong_magnitude|wrong_sign"
        "|opposite|transposed|transposed_digits|near_miss|near_miss_number|near_miss_name|inside_longer|outdated|former".split(
            "|"
        )
    ),
    "declines": frozenset(
        {"refusal", "decline", "not_found", "not found", "unknown", "dont_know", "tool_error"}
    ),
}
# Short sentences by the author of the model.
FITTED_ONLY = "fitted"
# Authors whose replies were written to be mistaken.
MISTAKEN = frozenset("st")
# What a row counts in the linear model: its penalty is that of the error detector's fit, and more of it suits new authors.
LINEAR_COUNT = 0.25
FOLDS = 10
# The share of plain answers that may be taken for declining.
MOST_ACCUSED = 0.02
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
    """How verdicts compare with labels: replies that decline by both, by one alone, by neither."""

    both: int
    accused: int
    missed: int
    neither: int

    @property
    def precision(self) -> float:
        """The share of the verdicts that are right."""
        return self.both / (self.both + self.accused)

    @property
    def recall(self) -> float:
        """The share of the labels that are found."""
        return self.both / (self.both + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.both / (2 * self.both + self.accused + self.missed)

    def f1_interval(self) -> tuple[float, float]:
        """The 95% interval of F1, by drawing as many replies again from these."""
        both, accused, missed, _ = (
            np.random.default_rng(0).multinomial(sum(self), np.array(self) / sum(self), size=4000).T
        )
        low, high = np.quantile(2 * both / (2 * both + accused + missed), [0.025, 0.975])
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.f1_interval()
        return f"F1 {self.f1:.3f} ({low:.3f} to {high:.3f}), precision {self.precision:.3f}, recall {self.recall:.3f}"


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
    return [row._replace(author=FITTED_ONLY) for row in read_replies("fit_only/declines_*")]


def read_plain_answers() -> list[Row]:
    """Answers from the sets on evidence and keywords, which state something."""
    return [
        Row(f"{PLAIN} {number}", row["question"], row["answer"], "answered")
        for number, path in enumerate(_plain_files())
        for row in read_rows(path)
        if row.get("said", True)
    ]


def _plain_files() -> list[Path]:
    return [*labelled_files("evidence/*"), *labelled_files("keywords/*")]


def read_wrong_keywords() -> list[Row]:
    """Replies from the sets on keywords that do not say theirs, where it is clear whether they state another value or decline."""
    return [
        Row(f"{PLAIN} {number}", row["question"], row["answer"], label)
        for number, path in enumerate(_plain_files())
        for row in read_rows(path)
        for label, kinds in WRONG_KEYWORDS.items()
        if row.get("phenomenon") in kinds and not row["said"]
    ]


def fold_of(row: Row) -> int:
    """The fold of a row, which is that of its author; what is only fitted is in a fold that is never left out."""
    if row.author == FITTED_ONLY:
        return FOLDS
    return fold_of_author(row.author)


def fold_of_author(author: str) -> int:
    """The fold of all rows of an author."""
    return int(author.split()[1]) % FOLDS if author.startswith(PLAIN) else ord(author) % FOLDS


class Table:
    """Rows with what both models read of them, and the linear models without one or two folds: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.authors = np.array([str(fold_of(row)) for row in rows])
        self.failed = np.array([row.declines for row in rows])
        self._tree_counts = np.where([row.author.startswith(PLAIN) for row in rows], PLAIN_COUNT, 1.0)
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


def figures(rows: Iterable[Row], models: Model | Sequence[Model]) -> Figures:
    """How the verdicts on replies compare with their labels; several models are those without each fold."""
    found = Counter(
        (
            declines(row.question, row.reply, models if isinstance(models, Model) else models[fold_of(row)]),
            row.declines,
        )
        for row in rows
    )
    return _to_figures(found)


def _to_figures(found: Counter[tuple[bool, bool]]) -> Figures:
    return Figures(found[True, True], found[True, False], found[False, True], found[False, False])


def figures_of_own_thresholds(rows: Sequence[Row], plain: Sequence[Row], models: Sequence[Model]) -> Figures:
    """Like `figures`, with a threshold for each fold, chosen by the plain answers of the other folds alone."""
    of_plain = [(fold_of(row), _chance(row, models)) for row in plain]
    found: Counter[tuple[bool, bool]] = Counter()
    for fold in range(FOLDS):
        threshold = _threshold([chance for its_fold, chance in of_plain if its_fold != fold])
        found.update(
            (_chance(row, models) >= threshold, row.declines) for row in rows if fold_of(row) == fold
        )
    return _to_figures(found)


def _chance(row: Row, models: Sequence[Model]) -> float:
    return probability(row.question, row.reply, models[fold_of(row)])


def _threshold(chances: Sequence[float]) -> float:
    """The lowest threshold that takes at most that share of plain answers for declining."""
    return sorted(chances, reverse=True)[int(MOST_ACCUSED * len(chances))] + 1e-9


def accused_share(plain: Sequence[Row], models: Sequence[Model]) -> float:
    """The share of plain answers that decline, each by the model without its fold."""
    accused = sum(declines(row.question, row.reply, models[fold_of(row)]) for row in plain)
    return accused / len(plain)


@cache
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
    table = Table([*rows, *read_fitted_only(), *plain, *read_wrong_keywords()])
    folds = [table.fit(str(fold)) for fold in range(FOLDS)]
    models = [fitted.model() for fitted in folds]
    for author in sorted({row.author for row in rows}):
        print(f"{author} left out: {figures([row for row in rows if row.author == author], models)}")
    alike = [row for row in rows if row.author not in MISTAKEN]
    print(f"replies after faults together: {figures(alike, models)}")
    for label in sorted({row.label for row in alike}):
        labelled = [row for row in alike if row.label == label]
        chosen = sum(declines(row.question, row.reply, models[fold_of(row)]) for row in labelled)
        print(f"  {label}: {chosen} of {len(labelled)} decline")
    print(f"  with thresholds chosen by other authors: {figures_of_own_thresholds(alike, plain, models)}")
    print(f"plain answers left out: {accused_share(plain, models):.2%} of {len(plain)} decline", flush=True)
    print(f"threshold for {MOST_ACCUSED:.0%}: {_threshold([_chance(row, models) for row in plain]):.3f}")
    if write:
        shipped = table.fit()
        _write(PACKAGE / "weights.json.gz", shipped.weights)
        _write(PACKAGE / "trees.json.gz", shipped.trees)
        _write(HELD_OUT, folds)


if __name__ == "__main__":
    main()
