"""The stored verdicts of the error detector on authors that it was not fitted to, and their precision, recall and F1."""

import json
from typing import NamedTuple

import numpy as np
from fit_errors import HELD_OUT, OLD, Row, read_rows

__all__ = ["Figures", "figures", "held_out"]

RESAMPLES = 2000


class Figures(NamedTuple):
    """Precision, recall and F1 with the 95% interval of F1 over replies."""

    precision: float
    recall: float
    f1: float
    low: float
    high: float
    replies: int


def figures(flagged: np.ndarray, failed: np.ndarray) -> Figures:
    """The figures of verdicts against labels."""

    def f1(flags: np.ndarray, labels: np.ndarray) -> np.ndarray:
        both = (flags & labels).sum(axis=-1)
        return 2 * both / np.maximum(1, flags.sum(axis=-1) + labels.sum(axis=-1))

    draws = np.random.default_rng(7).integers(0, len(failed), (RESAMPLES, len(failed)))
    low, high = np.quantile(f1(flagged[draws], failed[draws]), [0.025, 0.975])
    both = (flagged & failed).sum()
    return Figures(
        both / max(1, flagged.sum()),
        both / max(1, failed.sum()),
        float(f1(flagged, failed)),
        low,
        high,
        len(failed),
    )


def held_out(which: str = "flagged") -> tuple[list[Row], np.ndarray]:
    """The evaluated rows and the committed verdicts, each by weights that were fitted without the row's author; `let_go`: what
    the gate took for an answer, `stopped`: what only the gate kept from being flagged.
    """
    rows = [row for row in read_rows() if row.author != OLD]
    stored = json.loads(HELD_OUT.read_text(encoding="utf-8"))[which]
    flags = "".join(stored[author] for author in dict.fromkeys(row.author for row in rows))
    return rows, np.array([flag == "1" for flag in flags])
