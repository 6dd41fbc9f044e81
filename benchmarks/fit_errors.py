"""Fits the error detector's weights to the labelled replies: `python benchmarks/fit_errors.py [--figures-only]`.

Reads labelled/errors_*.jsonl, leaves each author out in turn, decides that author's replies by the whole detector (forms, gate,
model) with weights fitted to the others, and writes these verdicts to benchmarks/judgement/errors_held_out.json; then the weights
of all authors to src/answerkey/detect/data/weights.npz. `python benchmarks/judgement errors` shows the verdicts as a table.
"""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from answerkey.detect import concepts, detector, features, forms, model
from answerkey.detect.features import BUCKETS, SIZE, clip, read_features
from answerkey.detect.model import Model, gate_prefixes

ROOT = Path(__file__).resolve().parent.parent
LABELLED = ROOT / "labelled"
WEIGHTS = ROOT / "src/answerkey/detect/data/weights.npz"
HELD_OUT = ROOT / "benchmarks/judgement/errors_held_out.json"
# Rows that are fitted to and never evaluated on: those written while older rules were mended, and answers of other labelled
# sets, in full and as a keyword by itself: without those, two replies of few words in three would pass for broken off.
OLD, ANSWER, TERSE = "old", "answer", "terse"
WEIGHTS_OF = {OLD: 0.3, ANSWER: 0.1, TERSE: 0.5}
# Plain answers are what the gate is for.
GATE_WEIGHTS_OF = {**WEIGHTS_OF, ANSWER: 0.3}
STRENGTH, GATE_STRENGTH = 10.0, 1.0
ITERATIONS = 80
# The gate keeps words with at least this weight.
GATE_SMALLEST = 0.1


class Row(NamedTuple):
    """One labelled reply."""

    text: str
    is_error: bool
    author: str
    language: str
    kind: str


def read_rows(authors: str = "*") -> list[Row]:
    """The labelled replies, author by author."""
    rows = []
    for path in sorted(LABELLED.glob(f"errors_{authors}.jsonl")):
        author = path.stem.removeprefix("errors_")
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows.append(
                Row(row["reply"] or "", row["is_error"], author, row.get("language", "?"), str(row["kind"]))
            )
    return rows


def read_answers() -> list[Row]:
    """Answers of the other labelled sets: their replies, and each expected keyword as a reply of a few words."""
    rows = []
    for path in sorted([*LABELLED.glob("keywords_*.jsonl"), *LABELLED.glob("grounded_*.jsonl")]):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("phenomenon") != "tool_error":
                rows.append(Row(row["answer"], False, ANSWER, "?", "answer"))
            for keyword in row.get("expected_keywords", ()):
                said = (
                    [keyword]
                    if isinstance(keyword, str)
                    else [word for word in keyword if isinstance(word, str)]
                )
                rows += [Row(word, False, TERSE, "?", "answer") for word in said]
    return list(dict.fromkeys(rows))


def to_matrix(texts: Sequence[str]) -> csr_matrix:
    """The features of texts, a row each."""
    readings = [read_features(clip(text.strip())) for text in texts]
    ends = np.cumsum([0, *(len(reading.places) for reading in readings)])
    values = np.concatenate([reading.values for reading in readings])
    places = np.concatenate([reading.places for reading in readings])
    matrix = csr_matrix((values, places, ends), shape=(len(texts), SIZE))
    matrix.sum_duplicates()
    return matrix


def fit_logistic(
    x: csr_matrix, y: np.ndarray, weights: np.ndarray, strength: float
) -> tuple[np.ndarray, float]:
    """Logistic regression with a ridge penalty on all but the bias. What occurs only once is left out."""
    frequent = np.bincount(x.indices, minlength=x.shape[1]) > 1
    x = x.multiply(frequent.astype(float)).tocsr()
    across = x.T.tocsr()
    sign = np.where(y, 1.0, -1.0)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients, bias = parameters[:-1], parameters[-1]
        margin = (x @ coefficients + bias) * sign
        value = strength * (weights * np.logaddexp(0, -margin)).sum() + 0.5 * coefficients @ coefficients
        slope = -strength * weights * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        return value, np.append(across @ slope + coefficients, slope.sum())

    start = np.zeros(x.shape[1] + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    return found[:-1], float(found[-1])


def fit_gate(rows: Sequence[tuple[str, bool, float]]) -> tuple[dict[str, float], float]:
    """The gate's weight of each word's beginning, from text, label and weight of a row."""
    read = [(gate_prefixes(text.strip()), is_error, weight) for text, is_error, weight in rows]
    kept = [(sorted(set(prefixes)), is_error, weight) for prefixes, is_error, weight in read if prefixes]
    vocabulary = {
        prefix: n for n, prefix in enumerate(sorted({p for prefixes, _, _ in kept for p in prefixes}))
    }
    ends = np.cumsum([0, *(len(prefixes) for prefixes, _, _ in kept)])
    columns = [vocabulary[prefix] for prefixes, _, _ in kept for prefix in prefixes]
    x = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(kept), len(vocabulary)))
    labels, weights = np.array([k[1] for k in kept]), np.array([k[2] for k in kept])
    coefficients, bias = fit_logistic(x, labels, weights, GATE_STRENGTH)
    rounded = np.clip(np.round(coefficients * 32), -127, 127) / 32
    return {p: float(rounded[n]) for p, n in vocabulary.items() if abs(rounded[n]) >= GATE_SMALLEST}, bias


def fit(rows: Sequence[Row], x: csr_matrix) -> Model:
    """The weights of the model and of the gate, rounded as they are shipped."""
    y = np.array([row.is_error for row in rows])
    weights = np.array([WEIGHTS_OF.get(row.author, 1.0) for row in rows])
    coefficients, bias = fit_logistic(x, y, weights, STRENGTH)
    scale = np.abs(coefficients[:BUCKETS]).max() / 127
    coefficients[:BUCKETS] = np.round(coefficients[:BUCKETS] / scale) * scale
    gate, gate_bias = fit_gate(
        [(row.text, row.is_error, GATE_WEIGHTS_OF.get(row.author, 1.0)) for row in rows]
    )
    return Model(coefficients, bias, gate, gate_bias)


def save(fitted: Model, path: Path) -> None:
    """Write the weights: n-grams as whole numbers of one byte, with a fixed order so that the same fit gives the same file."""
    scale = np.abs(fitted.weights[:BUCKETS]).max() / 127
    np.savez_compressed(
        path,
        hashed=np.round(fitted.weights[:BUCKETS] / scale).astype(np.int8),
        scale=np.float32(scale),
        named=fitted.weights[BUCKETS:].astype(np.float32),
        bias=np.float32(fitted.bias),
        gate_prefixes=np.frombuffer("\n".join(fitted.gate).encode("utf-8", "replace"), dtype=np.uint8),
        gate_weights=np.round(np.array(list(fitted.gate.values())) * 32).astype(np.int8),
        gate_bias=np.float32(fitted.gate_bias),
    )


def digest() -> str:
    """A hash of everything that the held-out verdicts depend on: labelled rows, the detector's code and concepts, this script."""
    modules = (concepts, detector, features, forms, model)
    paths = [Path(str(module.__file__)) for module in modules]
    paths += [WEIGHTS.with_name("concepts.txt"), Path(__file__), *sorted(LABELLED.glob("*.jsonl"))]
    together = hashlib.sha256()
    for path in paths:
        # Comments and layout may change.
        text = path.read_text(encoding="utf-8")
        together.update(
            re.sub(r"\s+|#[^\n\"']*\n", "", text).encode() if path.suffix == ".py" else text.encode()
        )
    return together.hexdigest()[:16]


def verdict(text: str, fitted: Model) -> tuple[bool, float]:
    """Whether the whole detector calls a reply an error, and how likely it says that is."""
    found = detector.detect_failure(text, fitted)
    return found is not None, found.probability if found else 0.0


def main(arguments: list[str]) -> None:
    labelled = read_rows()
    rows = [*labelled, *read_answers()]
    x = to_matrix([row.text for row in rows])
    held_out: dict[str, Any] = {"digest": digest(), "flagged": {}}
    for left_out in dict.fromkeys(row.author for row in labelled if row.author != OLD):
        train = [n for n, row in enumerate(rows) if row.author != left_out]
        fitted = fit([rows[n] for n in train], x[train])
        flagged = [verdict(row.text, fitted)[0] for row in rows if row.author == left_out]
        held_out["flagged"][left_out] = "".join("1" if flag else "0" for flag in flagged)
        print(left_out, len(flagged), sum(flagged), flush=True)
    HELD_OUT.write_text(json.dumps(held_out, indent=1) + "\n", encoding="utf-8")
    if "--figures-only" not in arguments:
        save(fit(rows, x), WEIGHTS)
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
