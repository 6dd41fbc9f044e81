"""Conditions that queries share: the scorecards of a run, a text in a column, scores compared as they are rounded."""

from typing import Any

from sqlalchemy import ColumnElement

from answerkey.model.run import RunInfo
from answerkey.store import schema

__all__ = ["EPSILON", "contains", "of_run"]

# Scores are compared after rounding to 9 decimals; half of the last one does the same in SQL.
EPSILON = 5e-10


def contains(column: Any, text: str) -> ColumnElement[bool]:
    """Whether a column contains a text, in which % and _ mean themselves."""
    found: ColumnElement[bool] = column.contains(text.replace("\x00", ""), autoescape=True)
    return found


def of_run(info: RunInfo) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The scorecards of a run under its current scoring."""
    cards = schema.scorecards.c
    return cards.run_id == info.id, cards.scoring_hash == info.scoring_hash
