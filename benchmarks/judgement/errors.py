"""The error detector on authors that it was not fitted to, beside a keyword list, plain n-grams and an older checkout's rules."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

import fit_errors
import numpy as np
from fit_errors import HELD_OUT, NAMES, OLD, Row
from held_out_errors import Figures, figures, held_out

# A quick list of keywords.
KEYWORDS = (
    "error", "exception", "traceback", "failed", "went wrong", "unable to", "try again", "timed out", "timeout", "unavailable",
    "undefined", "null", "{{", "rate limit", "quota", "fehler", "erreur", "errore", "erro ", "ошибка", "エラー", "错误", "오류",
    "خطأ",
)  # fmt: skip
_OLD_CODE = """
import json, sys
try:
    from answerkey.detect.detector import detect_failure
except ImportError:
    from answerkey.text.failures import detect_failure
flags = []
for text in json.load(sys.stdin):
    try:
        flags.append(detect_failure(text) is not None)
    except Exception:
        flags.append(False)
print(json.dumps(flags))
"""


def by_keywords(rows: Sequence[Row]) -> np.ndarray:
    """The verdicts of the keyword list."""
    return np.array(
        [any(word in row.text.lower() for word in KEYWORDS) or not row.text.strip() for row in rows]
    )


def by_ngrams(rows: Sequence[Row]) -> np.ndarray:
    """The verdicts of the n-grams by themselves, fitted on the same folds."""
    table = fit_errors.Table(fit_errors.read_rows())
    x, labels, authors = table.x[:, len(NAMES) :], table.failed, table.authors
    weights = np.where(authors == OLD, fit_errors.COUNTS[OLD], 1.0)
    flagged = np.zeros(len(labels), dtype=bool)
    for author in dict.fromkeys(row.author for row in rows):
        train = np.flatnonzero(authors != author)
        coefficients, bias = fit_errors.fit_logistic(
            x[train], labels[train], weights[train], fit_errors.STRENGTH
        )
        flagged[authors == author] = x[authors == author] @ coefficients + bias > 0
    return flagged[authors != OLD]


def by_older(rows: Sequence[Row], source: str) -> np.ndarray:
    """The verdicts of the detector in an older checkout; a crash counts as no error."""
    done = subprocess.run(
        [sys.executable, "-c", _OLD_CODE],
        input=json.dumps([row.text for row in rows]),
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return np.array(json.loads(done.stdout))


def show(name: str, found: Figures) -> None:
    print(
        f"{name:<28}{found.replies:>6}{found.precision:>10.3f}{found.recall:>8.3f}{found.f1:>8.3f}"
        f"   {found.low:.3f}–{found.high:.3f}"
    )


def table(arguments: argparse.Namespace) -> None:
    """Print the table."""
    rows, flagged = held_out()
    failed = np.array([row.is_error for row in rows])
    if json.loads(HELD_OUT.read_text(encoding="utf-8"))["digest"] != fit_errors.digest():
        print("! the held-out verdicts are older than code or labels: run python tools/fit/fit_errors.py")
    print(f"{'errors, author left out':<28}{'n':>6}{'precision':>10}{'recall':>8}{'F1':>8}   95% interval")
    show("detector", figures(flagged, failed))
    stopped = held_out("stopped")[1]
    show("– without its gate", figures(flagged | stopped, failed))
    lost, spared, let_go = (stopped & failed).sum(), (stopped & ~failed).sum(), held_out("let_go")[1]
    print(f"  the gate loses {lost} errors ({lost / failed.sum():.2%}) and spares {spared} answers")
    print(f"  it lets {let_go[~failed].mean():.1%} of the labelled answers go, most of which resemble errors")
    for name, of in json.loads(HELD_OUT.read_text(encoding="utf-8"))["plain"].items():
        shares = (
            f"{of['let_go'] / of['replies']:.1%} let go, {of['flagged'] / of['replies']:.1%} called errors"
        )
        print(f"  {name}, the half that was not fitted to: {of['replies']:,} replies, {shares}")
    show("n-grams only", figures(by_ngrams(rows), failed))
    show("keyword list", figures(by_keywords(rows), failed))
    if arguments.old:
        show("older checkout", figures(by_older(rows, arguments.old), failed))
    for field in ("author", "language"):
        values = np.array([getattr(row, field) for row in rows])
        for value in sorted(set(values)):
            chosen = values == value
            show(f"  {field} {value}", figures(flagged[chosen], failed[chosen]))
    kinds = np.array([row.kind for row in rows])
    print("rightly decided, by the author's kind:")
    for kind in sorted(set(kinds)):
        chosen = kinds == kind
        print(f"  {kind:<24}{chosen.sum():>6}{(flagged == failed)[chosen].mean():>8.3f}")
