"""Fits the error detector's model to the labelled replies: `python tools/fit/fit_errors.py [--without AUTHORS] [--figures-only]`.

1. For each everyday author of labelled/error_replies, and for each of four groups of the others: fit to all other authors, then
   decide about these authors' replies with the whole detector. The verdicts go to errors_held_out.json;
   `python benchmarks/judgement errors` shows them.
2. Choose the probability from which a reply is charged, by the answers of authors left out.
3. Fit to all authors and write src/answerkey/detect/weights.json.gz.

`--without rs` leaves the authors r and s out of every fit and of the choice of the threshold: for forms and settings that
were made without reading their replies. It takes three minutes of CPU time with OPENBLAS_NUM_THREADS=1.
"""

import argparse
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from labelled_sets import author_of, labelled_files
from labelled_sets import read_rows as read_lines
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from answerkey.detect import detector
from answerkey.detect.detector import (
    FAILURE_WORD,
    body_fields,
    certain_form,
    detect_failure,
    is_blank,
    plain_text,
    read_message,
    scan,
)
from answerkey.detect.model import SHORTEST_RUN, Model, Weights, runs_of, words_of

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "src/answerkey/detect/weights.json.gz"
HELD_OUT = Path(__file__).with_name("errors_held_out.json")
EVERYDAY, HARD = "everyday", "hard"
# What an answer counts in the fit. Everyday replies are what chatbots say; hard ones were written to be mistaken. The other
# rows are only fitted to: rows by authors who knew the code, and plain answers from the other labelled sets, in full and as
# a keyword by itself.
OLD, ANSWER, TERSE = "old", "answer", "terse"
COUNTS = {EVERYDAY: 5.0, HARD: 0.5, OLD: 0.15, ANSWER: 0.6, TERSE: 0.6}
# What an error counts of that: errors are rarer in use than among the labelled replies, and those that a form decides do not need
# the model.
ERROR, CERTAIN_ERROR = 0.3, 0.15
# Scales of the features beside the penalty of the fit.
RUN_SCALE, SHAPE_SCALE = 0.3, 0.5
HARD_FOLDS = 4
STRENGTH, ITERATIONS, FEWEST_ROWS = 10.0, 40, 4
# The share of left-out answers that may be charged, of everyday and of hard ones: half of what the standard allows, since a
# new author is charged more often than those by whom the threshold was chosen.
MOST_CHARGED = 1 / 400
# The threshold is never below this, however well it goes with these authors.
LEAST_CHARGED_FROM = 0.8
# Weights are shipped as whole numbers of this many steps to the largest; zeros are left out.
STEPS = 60


class Row(NamedTuple):
    """One labelled reply."""

    text: str
    is_error: bool
    author: str
    # EVERYDAY, HARD, or rows that are only fitted to.
    group: str
    language: str = "?"
    kind: str = ""


def read_rows(author: str = "*") -> list[Row]:
    """The labelled replies that are evaluated, author by author."""
    return [
        Row(
            line["reply"] or "",
            line["is_error"],
            author_of(path),
            EVERYDAY if path.name.startswith("everyday") else HARD,
            line.get("language", "?"),
            str(line["kind"]),
        )
        for path in labelled_files("error_replies/*")
        if author in {"*", author_of(path)}
        for line in read_lines(path)
    ]


def read_fitted_only() -> list[Row]:
    """Rows that are fitted to and never evaluated on."""
    rows = [
        Row(line["reply"] or "", line["is_error"], OLD, OLD)
        for path in labelled_files("fit_only/error_replies_*")
        for line in read_lines(path)
    ]
    for path in (*labelled_files("keywords/*"), *labelled_files("evidence/*")):
        for line in read_lines(path):
            if line.get("phenomenon") != "tool_error":
                rows.append(Row(line["answer"], False, ANSWER, ANSWER))
            for keyword in line.get("expected_keywords", ()):
                words = [keyword] if isinstance(keyword, str) else keyword
                rows += [Row(word, False, TERSE, TERSE) for word in words if isinstance(word, str)]
    return [row for row in dict.fromkeys(rows) if row.text.strip()]


class Table:
    """All rows with their features: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.authors = np.array([row.author for row in rows])
        self.failed = np.array([row.is_error for row in rows])
        certain = np.array([has_certain_form(row.text) for row in rows])
        counts = np.array([COUNTS[row.group] for row in rows])
        self.counts = counts * np.where(self.failed, np.where(certain, CERTAIN_ERROR, ERROR), 1.0)
        self.x, self.names = to_matrix(features_of(row.text) for row in rows)


def has_certain_form(text: str) -> bool:
    """Whether a form charges a reply."""
    stripped = plain_text(text)
    if is_blank(stripped):
        return True
    form = certain_form(stripped, scan(stripped))
    return form is not None and form.charged


def may_be_charged(text: str) -> bool:
    """Whether the model's threshold may charge a reply."""
    stripped = plain_text(text)
    if FAILURE_WORD not in scan(stripped) or body_fields(stripped) is not None:
        return False
    message = read_message(stripped)
    return message is not None and message.level > 0


def features_of(text: str) -> dict[tuple[str, str], float]:
    """The runs of characters that the model weighs."""
    stripped = plain_text(text)
    if not stripped:
        return {}
    words = words_of(stripped)
    runs = Counter(run for word in words for run in runs_of(word))
    scale = RUN_SCALE * len(words) ** -0.5
    return {("runs", run): times * scale for run, times in runs.items()}


def to_matrix(
    found: Iterable[dict[tuple[str, str], float]],
) -> tuple[csr_matrix, list[tuple[str, str]]]:
    """Rows as a matrix without rare features, and the names of its columns."""
    columns: dict[tuple[str, str], int] = {}
    ends, indices, values = [0], [], []
    for features in found:
        indices += [columns.setdefault(name, len(columns)) for name in features]
        values += features.values()
        ends.append(len(indices))
    x = csr_matrix((values, indices, ends), shape=(len(ends) - 1, len(columns)))
    kept = np.flatnonzero(np.bincount(indices, minlength=len(columns)) >= FEWEST_ROWS)
    names = list(columns)
    return x[:, kept].tocsr(), [names[n] for n in kept]


class Fitted(Protocol):
    """What a fit reads: features of rows with their names, and each row's author, label and weight."""

    x: csr_matrix
    names: list[tuple[str, str]]
    authors: np.ndarray
    failed: np.ndarray
    counts: np.ndarray


def fit(table: Fitted, without: Iterable[str] = ()) -> Weights:
    """Logistic regression with a ridge penalty, fitted to all rows but those of some authors."""
    train = np.flatnonzero(~np.isin(table.authors, sorted(without)))
    x, counts = table.x[train], table.counts[train]
    across = x.T.tocsr()
    sign = np.where(table.failed[train], 1.0, -1.0)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights, bias = parameters[:-1], parameters[-1]
        margin = (x @ weights + bias) * sign
        value = STRENGTH * (counts * np.logaddexp(0, -margin)).sum() + 0.5 * weights @ weights
        slope = -STRENGTH * counts * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        return value, np.append(across @ slope + weights, slope.sum())

    start = np.zeros(x.shape[1] + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    scales = np.array([RUN_SCALE if kind == "runs" else SHAPE_SCALE for kind, _ in table.names])
    return _to_weights(table.names, found[:-1] * scales, float(found[-1]))


def _to_weights(names: Sequence[tuple[str, str]], values: np.ndarray, bias: float) -> Weights:
    unit = float(np.abs(values).max()) / STEPS
    tables: dict[str, dict[str, int]] = {"runs": {}, "shapes": {}}
    for (kind, name), value in sorted(zip(names, np.rint(values / unit).astype(int).tolist(), strict=True)):
        if value:
            tables[kind][name] = value
    runs = _by_beginning(tables["runs"])
    return Weights(
        bias=round(bias, 4), unit=round(unit, 6), charged_from=1.0, runs=runs, shapes=tables["shapes"]
    )


def _by_beginning(weights: Mapping[str, int]) -> dict[str, msgspec.Raw]:
    """Weights of runs as they are stored."""
    grouped: dict[str, dict[str, int]] = {}
    for run, weight in sorted(weights.items()):
        grouped.setdefault(run[:SHORTEST_RUN], {})[run[SHORTEST_RUN:]] = weight
    return {beginning: msgspec.Raw(msgspec.json.encode(rests)) for beginning, rests in grouped.items()}


class Verdicts(NamedTuple):
    """What the detector said of some replies, under a threshold."""

    charged: list[bool]
    suspected: list[bool]


def decide(rows: Sequence[Row], weights: Weights, charged_from: float) -> Verdicts:
    """The detector's verdicts on replies."""
    model = Model(msgspec.structs.replace(weights, charged_from=charged_from))
    found = [detect_failure(row.text, model) for row in rows]
    return Verdicts(
        [failure is not None and failure.charged for failure in found],
        [failure is not None and not failure.charged for failure in found],
    )


def choose_threshold(rows: Sequence[Row], weights_without: dict[str, Weights]) -> float:
    """The lowest probability at which few enough answers of authors left out are charged, by forms and model together."""
    chosen = LEAST_CHARGED_FROM
    for group in (EVERYDAY, HARD):
        charged, likely = 0, []
        for author, weights in weights_without.items():
            answers = [
                row for row in rows if row.author == author and row.group == group and not row.is_error
            ]
            # Above 1: forms and words only.
            certain = decide(answers, weights, 1.1).charged
            charged += sum(certain)
            model = Model(weights)
            likely += [
                model.probability(plain_text(row.text))
                for row, is_charged in zip(answers, certain, strict=True)
                if not is_charged and may_be_charged(row.text)
            ]
        count = sum(row.group == group and not row.is_error and row.author in weights_without for row in rows)
        allowed = max(0, int(MOST_CHARGED * count) - charged)
        # Just above the likeliest answer that may not be charged.
        chosen = max([chosen, *(one + 1e-4 for one in sorted(likely, reverse=True)[allowed : allowed + 1])])
    return round(min(chosen, 0.9999), 4)


def digest() -> str:
    """A hash of what the held-out verdicts depend on: the labelled replies, the fit's settings, the detector's code and forms."""
    parts = [path.read_bytes() for path in labelled_files("error_replies/*")]
    folder = Path(detector.__file__).parent
    parts += [path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in {".toml", ".txt"}]
    code = [*sorted(folder.glob("*.py")), Path(__file__)]
    # Comments and layout do not change a verdict.
    parts += [re.sub(r"(?m)#.*$|\s+", "", path.read_text("utf-8")).encode() for path in code]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--without", default="", help="authors to leave out of every fit and of the threshold"
    )
    parser.add_argument("--figures-only", action="store_true", help="do not write the weights")
    arguments = parser.parse_args()
    rows = read_rows()
    table = Table([*rows, *read_fitted_only()])
    authors = list(dict.fromkeys(row.author for row in rows))
    weights_without = {}
    everyday = [
        author for author in authors if any(row.author == author and row.group == EVERYDAY for row in rows)
    ]
    hard = [author for author in authors if author not in everyday]
    # The many authors of hard replies are left out a few at a time.
    for left_out in (*([author] for author in everyday), *(hard[n::HARD_FOLDS] for n in range(HARD_FOLDS))):
        weights = fit(table, {*left_out, *arguments.without})
        weights_without |= dict.fromkeys(left_out, weights)
        print(*left_out, len(weights.runs), flush=True)
    read = {author: weights for author, weights in weights_without.items() if author not in arguments.without}
    threshold = choose_threshold(rows, read)
    print("charged from", threshold)
    held_out: dict[str, object] = {
        "digest": digest(),
        "charged_from": threshold,
        "without": arguments.without,
    }
    verdicts = {
        author: decide([row for row in rows if row.author == author], weights_without[author], threshold)
        for author in authors
    }
    for name in Verdicts._fields:
        held_out[name] = {
            author: "".join("01"[flag] for flag in getattr(found, name)) for author, found in verdicts.items()
        }
    HELD_OUT.write_text(json.dumps(held_out, indent=1) + "\n", encoding="utf-8")
    if not arguments.figures_only:
        weights = msgspec.structs.replace(fit(table, arguments.without), charged_from=threshold)
        WEIGHTS.write_bytes(gzip.compress(msgspec.json.encode(weights), mtime=0))
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes, {len(weights.runs):,} beginnings of runs")


if __name__ == "__main__":
    main()
