"""The stored verdicts of the error detector on authors that it was not fitted to, and what they come to."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from fit_errors import HELD_OUT, Row, read_rows

__all__ = ["Figures", "HeldOut", "figures", "held_out"]


class HeldOut(NamedTuple):
    """The evaluated rows with the verdicts on them, each by weights that were fitted without the row's author."""

    rows: Sequence[Row]
    charged: np.ndarray
    suspected: np.ndarray

    def chosen(self, which: Sequence[bool] | np.ndarray) -> "HeldOut":
        """Some of the rows."""
        flags = np.asarray(which, dtype=bool)
        rows = [row for row, flag in zip(self.rows, flags, strict=True) if flag]
        return HeldOut(rows, self.charged[flags], self.suspected[flags])


class Figures(NamedTuple):
    """What the verdicts come to: counts, and shares of them."""

    answers: int
    errors: int
    # Answers and errors that are charged.
    answers_charged: int
    errors_charged: int
    # Replies that are suspected, and the errors among them.
    suspected: int
    suspected_errors: int

    @property
    def false_rate(self) -> float:
        """The share of answers that are charged."""
        return self.answers_charged / max(1, self.answers)

    @property
    def recall(self) -> float:
        """The share of errors that are charged."""
        return self.errors_charged / max(1, self.errors)

    @property
    def suspected_share(self) -> float:
        """The share of all replies that are suspected."""
        return self.suspected / max(1, self.answers + self.errors)

    @property
    def suspected_precision(self) -> float:
        """The share of errors among the suspected replies."""
        return self.suspected_errors / max(1, self.suspected)


def held_out() -> HeldOut:
    """All evaluated rows with the stored verdicts."""
    rows = read_rows()
    stored = json.loads(HELD_OUT.read_text(encoding="utf-8"))
    authors = list(dict.fromkeys(row.author for row in rows))
    charged, suspected = (
        np.array([flag == "1" for author in authors for flag in stored[name][author]])
        for name in ("charged", "suspected")
    )
    return HeldOut(rows, charged, suspected)


def figures(found: HeldOut) -> Figures:
    """The figures of verdicts against labels."""
    failed = np.array([row.is_error for row in found.rows], dtype=bool)
    return Figures(
        answers=int((~failed).sum()),
        errors=int(failed.sum()),
        answers_charged=int((found.charged & ~failed).sum()),
        errors_charged=int((found.charged & failed).sum()),
        suspected=int(found.suspected.sum()),
        suspected_errors=int((found.suspected & failed).sum()),
    )
