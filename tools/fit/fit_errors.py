"""Fits the error detector's weights to the labelled replies: `python tools/fit/fit_errors.py [--figures-only] [PLAIN …]`.

1. For each author of labelled/error_replies: fit to all other authors, then classify this author's replies with the whole
   detector (forms, gate, model). The verdicts go to errors_held_out.json; `python benchmarks/judgement errors` shows them.
2. Fit to all authors and write src/answerkey/detect/data/weights.json.gz and gate.json.gz.

The gate's limits are chosen on the sums of the other authors' replies, each by a fit without its own author. (Fits without
each pair of authors give F1 .894 instead of .896 in eight times the time.) It takes two minutes of CPU time with
OPENBLAS_NUM_THREADS=1.

PLAIN is a JSON Lines file with an `answer` or a `response` a line: the first half is fitted to, the second half is counted.
The shipped weights were fitted with trivia answers (EVOUNA) and small talk (BEGIN), which the repository does not contain.
"""

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from labelled_sets import author_of, labelled_files
from labelled_sets import read_rows as read_lines
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from answerkey.detect import detector
from answerkey.detect.detector import (
    DENSE,
    FIGURES,
    LONGER,
    NAMES,
    SHELF,
    SHORT,
    Gate,
    Lexicon,
    Model,
    Shelves,
    character_grams,
    clip,
    detect_failure,
    gate_marks,
    is_let_go,
    read_features,
)
from answerkey.detect.detector import Fitted as Shipped
from answerkey.detect.forms import certain_form, marked_form

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "src/answerkey/detect/data/weights.json.gz"
HELD_OUT = Path(__file__).with_name("errors_held_out.json")
# Rows that are fitted to and never evaluated on: those written while older rules were mended, and answers of other labelled
# sets, in full and as a keyword by itself.
OLD, ANSWER, TERSE, PLAIN = "old", "answer", "terse", "plain"
COUNTS = {OLD: 0.3, ANSWER: 0.1, TERSE: 0.5, PLAIN: 0.3}
# Plain answers are what the gate is for.
GATE_COUNTS = {**COUNTS, ANSWER: 1.0, PLAIN: 1.0}
# What a row counts that was made of another by taking its stop and capitals away.
MADE = 0.3
# So scaled, the one penalty of the fit suits figures, concepts, pairs, edges and characters beside neighbouring words, which
# count for one together.
FIGURE_SCALE, CONCEPT_SCALE, PAIR_SCALE, EDGE_SCALE, CHARACTER_SCALE = 0.5, 0.5, 0.3, 0.4, 2.2
STRENGTH, GATE_STRENGTH = 10.0, 1.0
ITERATIONS = 80
# The gate may lose this share of all errors, counting those that the model would find, among longer replies, short ones and those
# of dense scripts; its smaller weights are left out, since they change nothing but its cost.
GATE_LOSS = {LONGER: 0.002, SHORT: 0.002, DENSE: 0.0006}
GATE_SMALLEST = 0.15
# A reply is an error where that is likelier than not. Lower thresholds have a better F1 by half a point, and more false alarms:
# in the field errors are rarer than among the labelled replies.
THRESHOLD = 0.0


class Row(NamedTuple):
    """One labelled reply."""

    text: str
    is_error: bool
    author: str
    language: str
    kind: str
    # Made of another row of the author: fitted to, never evaluated on.
    made: bool = False


# Where the gate draws the line, as sums of weights: of longer replies, of short ones, of those of dense scripts.
Limits = tuple[float, float, float]


def error_files(author: str = "*") -> list[Path]:
    """The files that are fitted to, the older rows included."""
    return [
        path
        for path in (*labelled_files("error_replies/*"), *labelled_files("fit_only/error_replies_*"))
        if author in {"*", author_of(path)}
    ]


def read_rows(author: str = "*") -> list[Row]:
    """The labelled replies, author by author."""
    return [
        Row(
            row["reply"] or "",
            row["is_error"],
            author_of(path),
            row.get("language", "?"),
            str(row["kind"]),
        )
        for path in error_files(author)
        for row in read_lines(path)
    ]


def read_answers(plain: Sequence[Path] = ()) -> list[Row]:
    """Plain answers: replies of the other labelled sets, each expected keyword as a reply of a few words,
    half of each plain file.
    """
    rows = []
    for path in plain:
        lines = path.read_text(encoding="utf-8").strip().split("\n")
        for line in lines[: len(lines) // 2]:
            row = json.loads(line)
            rows.append(Row(row.get("answer") or row.get("response") or "", False, PLAIN, "?", "answer"))
    for path in (*labelled_files("keywords/*"), *labelled_files("evidence/*")):
        for row in read_lines(path):
            if row.get("phenomenon") != "tool_error":
                rows.append(Row(row["answer"], False, ANSWER, "?", "answer"))
            for keyword in row.get("expected_keywords", ()):
                words = [keyword] if isinstance(keyword, str) else keyword
                rows += [Row(word, False, TERSE, "?", "answer") for word in words if isinstance(word, str)]
    return [row for row in dict.fromkeys(rows) if row.text.strip()]


def make_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """Each second reply that ends with a full stop as it is written in a chat, without it, and half of them without capitals:
    what a missing stop means is learned from texts that differ in nothing else.
    """
    for number, row in enumerate(rows):
        text = row.text.strip()
        if number % 2 and row.author != OLD and text.endswith((".", "。", "।")) and not text.endswith(".."):
            plain = text[:-1] if number % 4 == 1 else re.sub(r"[.。।]\s+", " ", text.lower())[:-1]
            yield row._replace(text=plain, made=True)


class Table:
    """All rows with their features: what every fit draws from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.authors = np.array([row.author for row in rows])
        self.failed = np.array([row.is_error for row in rows])
        self.made = np.array([row.made for row in rows])
        stripped = [row.text.strip() for row in rows]
        self.certain = np.array(
            [certain_form(row.text, text) is not None for row, text in zip(rows, stripped, strict=True)]
        )
        self.marked = np.array([bool(text) and marked_form(clip(text)) is not None for text in stripped])
        self.x, self.names = _to_matrix(map(_features, stripped), [("named", name) for name in NAMES])
        marks = [gate_marks(text) if text else None for text in stripped]
        # What kind of reply the gate sees, or -1.
        self.gated = np.array([found[0] if found else -1 for found in marks])
        self.gate_x, self.gate_names = _to_matrix(
            ({("gate", mark): 1.0 for mark in (found[1] if found else ())} for found in marks), []
        )

    def written_by(self, author: str) -> np.ndarray:
        """The numbers of an author's own rows."""
        return np.flatnonzero((self.authors == author) & ~self.made)


def _features(text: str) -> dict[tuple[str, str], float]:
    """The features of a reply by table and name."""
    if not text:
        return {}
    reading = read_features(clip(text), _NO_WEIGHTS)
    found = {("named", name): v * FIGURE_SCALE for name, v in zip(FIGURES, reading.figures, strict=True)}
    found |= {("named", NAMES[place]): CONCEPT_SCALE for place in reading.concepts}
    found |= {("named", NAMES[place]): PAIR_SCALE for place in reading.pairs}
    unit = CHARACTER_SCALE * sum(word.grams for word in reading.words.values()) ** -0.5
    for word in reading.words:
        for gram in character_grams(word):
            found["characters", gram] = found.get(("characters", gram), 0.0) + unit
    found |= {("neighbours", pair): len(reading.neighbours) ** -0.5 for pair in reading.neighbours}
    for edge in reading.edges:
        found["edges", edge] = found.get(("edges", edge), 0.0) + EDGE_SCALE
    return found


_NO_WEIGHTS = Lexicon(Shelves())


def _to_matrix(found: Any, first: list[tuple[str, str]]) -> tuple[csr_matrix, list[tuple[str, str]]]:
    """Rows as a matrix without features of fewer than three rows, and the names of its columns, `first` before the others."""
    columns = {name: n for n, name in enumerate(first)}
    ends, indices, values = [0], [], []
    for features_of_row in found:
        indices += [columns.setdefault(name, len(columns)) for name in features_of_row]
        values += features_of_row.values()
        ends.append(len(indices))
    x = csr_matrix((values, indices, ends), shape=(len(ends) - 1, len(columns)))
    kept = np.flatnonzero(
        (np.bincount(indices, minlength=len(columns)) > 2) | (np.arange(len(columns)) < len(first))
    )
    names = list(columns)
    return x[:, kept].tocsr(), [names[n] for n in kept]


def fit_logistic(
    x: csr_matrix, y: np.ndarray, weights: np.ndarray, strength: float
) -> tuple[np.ndarray, float]:
    """Logistic regression with a ridge penalty on all but the bias. What occurs only once is left out."""
    frequent = np.bincount(x.indices, minlength=x.shape[1]) > 1
    kept = np.flatnonzero(frequent)
    x = x[:, kept].tocsr()
    across = x.T.tocsr()
    sign = np.where(y, 1.0, -1.0)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients, bias = parameters[:-1], parameters[-1]
        margin = (x @ coefficients + bias) * sign
        value = strength * (weights * np.logaddexp(0, -margin)).sum() + 0.5 * coefficients @ coefficients
        slope = -strength * weights * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        return value, np.append(across @ slope + coefficients, slope.sum())

    start = np.zeros(len(kept) + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    coefficients = np.zeros(len(frequent))
    coefficients[kept] = found[:-1]
    return coefficients, float(found[-1])


class Fitted(NamedTuple):
    """The weights of a fit by column, with the bias of each."""

    weights: np.ndarray
    bias: float
    gate: np.ndarray
    gate_bias: float


def fit(table: Table, without: Sequence[str]) -> Fitted:
    """Model and gate, fitted to all rows but those of some authors."""
    train = np.flatnonzero(~np.isin(table.authors, without))
    weights, gate_weights = (
        np.array([counts.get(author, 1.0) for author in table.authors]) * np.where(table.made, MADE, 1.0)
        for counts in (COUNTS, GATE_COUNTS)
    )
    gated = train[table.gated[train] >= 0]
    gate, gate_bias = fit_logistic(
        table.gate_x[gated], table.failed[gated], gate_weights[gated], GATE_STRENGTH
    )
    return Fitted(
        *fit_logistic(table.x[train], table.failed[train], weights[train], STRENGTH),
        np.where(np.abs(gate) < GATE_SMALLEST, 0.0, gate),
        gate_bias,
    )


def choose_limits(table: Table, sums: dict[str, tuple[np.ndarray, np.ndarray]]) -> Limits:
    """The limits at which the gate loses few errors, from the sums of authors left out."""
    of = [table.written_by(author) for author in sums]
    rows = np.concatenate(of)
    total, gate_total = (np.concatenate([sums[author][n] for author in sums]) for n in (0, 1))
    failed = table.failed[rows]
    at_gate = failed & (table.marked[rows] | (total > THRESHOLD)) & ~table.certain[rows]
    longer, short, dense = (
        float(np.sort(gate_total[at_gate & (table.gated[rows] == kind)])[int(loss * failed.sum())])
        for kind, loss in GATE_LOSS.items()
    )
    return longer, short, dense


# Set by main, for the processes that are forked from it.
TABLE: Table


def sums_without(author: str) -> tuple[np.ndarray, np.ndarray]:
    """What model and gate sum up to for the rows of an author whom the fit was without."""
    fitted, rows = fit(TABLE, [author]), TABLE.written_by(author)
    return TABLE.x[rows] @ fitted.weights + fitted.bias, TABLE.gate_x[rows] @ fitted.gate + fitted.gate_bias


def to_shipped(table: Table, fitted: Fitted, limits: Limits) -> tuple[Gate, Shipped]:
    """The weights as they are shipped: those of n-grams are whole numbers of one byte."""
    tables: dict[str, dict[str, float]] = {
        kind: {} for kind in ("named", "characters", "neighbours", "edges", "gate")
    }
    for names, weights in ((table.names, fitted.weights), (table.gate_names, fitted.gate)):
        for (kind, name), weight in zip(names, weights.tolist(), strict=True):
            tables[kind][name] = weight
    named = tables.pop("named")
    scale_of = [FIGURE_SCALE] * len(FIGURES) + [CONCEPT_SCALE] * 3 * len(detector.CONCEPTS)
    scale_of += [PAIR_SCALE] * (len(NAMES) - len(scale_of))
    scales = {kind: max(map(abs, weights.values())) / 127 for kind, weights in tables.items()}
    rounded = {
        kind: {name: n for name, weight in sorted(weights.items()) if (n := round(weight / scales[kind]))}
        for kind, weights in tables.items()
    }
    longer, short, dense = ((limit - fitted.gate_bias) / scales["gate"] for limit in limits)
    return Gate(rounded["gate"], (longer, short, dense)), Shipped(
        round(fitted.bias, 4),
        round(float(1 / (1 + np.exp(-THRESHOLD))), 4),
        [round(named[name] * scale, 4) for name, scale in zip(NAMES, scale_of, strict=True)],
        _shelved(rounded["characters"]),
        rounded["neighbours"],
        rounded["edges"],
        (scales["characters"] * CHARACTER_SCALE, scales["neighbours"], scales["edges"] * EDGE_SCALE),
    )


def _shelved(table: dict[str, int]) -> dict[str, msgspec.Raw]:
    shelves: dict[str, dict[str, int]] = {}
    for key, value in table.items():
        shelves.setdefault(key[:SHELF], {})[key] = value
    return {shelf: msgspec.Raw(msgspec.json.encode(keys)) for shelf, keys in shelves.items()}


def to_model(gate: Gate, shipped: Shipped) -> Model:
    """Weights that were just fitted, for use."""
    return Model(lambda: gate, lambda: shipped)


def count_plain(path: Path, fitted: Model) -> dict[str, int]:
    """Of the half of a plain file that was not fitted to: how many replies, let go by the gate, called errors."""
    lines = path.read_text(encoding="utf-8").strip().split("\n")
    rows = [json.loads(line) for line in lines[len(lines) // 2 :]]
    texts = [text for row in rows if (text := (row.get("answer") or row.get("response") or "").strip())]
    return {
        "replies": len(texts),
        "let_go": sum(is_let_go(text, fitted) for text in texts),
        "flagged": sum(detect_failure(text, fitted) is not None for text in texts),
    }


def digest() -> str:
    """A hash of what the held-out verdicts depend on: the labelled replies, the settings of the fit, and what the detector's
    code reads in every 20th reply. Renaming and rewording code does not change it.
    """
    hashed = hashlib.sha256()
    for path in error_files():
        hashed.update(path.read_bytes())
    settings = (
        COUNTS,
        GATE_COUNTS,
        MADE,
        STRENGTH,
        GATE_STRENGTH,
        ITERATIONS,
        GATE_LOSS,
        GATE_SMALLEST,
        THRESHOLD,
    )
    hashed.update(repr(settings).encode())
    for row in read_rows()[::20]:
        text = row.text.strip()
        forms_found = (
            certain_form(row.text, text) is not None,
            bool(text) and marked_form(clip(text)) is not None,
        )
        marks = gate_marks(text) if text else None
        gate = (marks[0], sorted(marks[1])) if marks else None
        features = sorted((name, round(value, 6)) for name, value in _features(text).items())
        hashed.update(repr((forms_found, gate, features)).encode())
    return hashed.hexdigest()[:16]


def main(arguments: list[str]) -> None:
    global TABLE
    plain = [Path(given) for given in arguments if not given.startswith("-")]
    rows = read_rows()
    TABLE = Table([*rows, *make_rows(rows), *read_answers(plain)])
    authors = [author for author in dict.fromkeys(TABLE.authors.tolist()) if author not in COUNTS]
    # Forked, since the table is large.
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        sums = dict(zip(authors, pool.map(sums_without, authors), strict=True))
    held_out: dict[str, Any] = {"digest": digest(), "flagged": {}, "stopped": {}, "let_go": {}, "plain": {}}
    for left_out in authors:
        limits = choose_limits(TABLE, {author: of for author, of in sums.items() if author != left_out})
        total, gate_total = sums[left_out]
        rows = TABLE.written_by(left_out)
        let_go = (TABLE.gated[rows] >= 0) & (gate_total < np.array(limits)[TABLE.gated[rows]])
        by_model = TABLE.marked[rows] | (total > THRESHOLD)
        flagged = TABLE.certain[rows] | (~let_go & by_model)
        # Stopped: what model or marks would have flagged and the gate let go.
        found = {"flagged": flagged, "stopped": let_go & by_model & ~flagged, "let_go": let_go & ~flagged}
        for name, flags in found.items():
            held_out[name][left_out] = "".join("1" if flag else "0" for flag in flags)
        print(left_out, len(flagged), flagged.sum(), limits, flush=True)
    limits = choose_limits(TABLE, sums)
    weights = to_shipped(TABLE, fit(TABLE, ()), limits)
    held_out["plain"] = {path.stem: count_plain(path, to_model(*weights)) for path in plain}
    HELD_OUT.write_text(json.dumps(held_out, indent=1) + "\n", encoding="utf-8")
    if "--figures-only" not in arguments:
        for name, content in zip(("gate.json.gz", WEIGHTS.name), weights, strict=True):
            WEIGHTS.with_name(name).write_bytes(gzip.compress(msgspec.json.encode(content), mtime=0))
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes, {limits}")


if __name__ == "__main__":
    main(sys.argv[1:])
