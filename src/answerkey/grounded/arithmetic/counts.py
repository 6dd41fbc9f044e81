"""Counts: of rows, of rows that are named or pass a threshold, of different values."""

import re
from collections.abc import Iterator
from itertools import permutations

from answerkey.grounded.arithmetic.clause import LESS, MORE, SUM, Clause
from answerkey.grounded.arithmetic.subsets import named_subsets, speaks_of
from answerkey.grounded.figures import Figures
from answerkey.grounded.flatten import Table
from answerkey.text.normalise import folded_text

__all__ = ["counts"]


def counts(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    """Every count that a clause may speak of, as (value, formula, place)."""
    tables = figures.tables
    # "Two points above the average" counts nothing.
    counted = clause.next_word and not clause.next_word.lower().startswith("point")
    if counted or clause.labelled or clause.says(SUM):
        narrowed = _narrowed(figures, clause)
        for table in tables:
            if id(table) not in narrowed:
                yield len(table.rows), "count of rows", table.where
        if len(tables) > 1:
            yield from _over_tables(tables)
    if clause.part_of:
        yield from _filled(figures, clause.part_of, without=clause.says(_WITHOUT))
    alone = _one_group(figures, clause)
    for table, rows, label in named_subsets(figures, clause):
        if id(table) in alone and rows != alone[id(table)]:
            continue
        yield len(rows), f"count of rows with {label}", table.where
    yield from _beyond_thresholds(figures, clause)
    yield from _not_nought(figures, clause)
    for table in tables:
        for name in table.rows[0]:
            distinct = {
                row[name].value for row in table.rows if name in row and isinstance(row[name].value, str)
            }
            if 1 < len(distinct) < len(table.rows) and speaks_of(name, clause.next_word):
                yield len(distinct), f"count of different {name}", f"{table.where}[*].{name}"


def _not_nought(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    """ "Honey from three hives": rows that have more than none of what the clause speaks of."""
    words = [word for word in clause.words.split() if len(word) > 2]
    for column in figures.columns:
        some = sum(value != 0 for value in column.values)
        if 0 < some < len(column.cells) and any(speaks_of(column.name, word) for word in words):
            yield some, f"count of rows with some {column.name}", column.where


def _one_group(figures: Figures, clause: Clause) -> dict[int, frozenset[int]]:
    """Tables of which the part of the sentence around the count names one group, with its rows."""
    found = figures.mentioned(folded_text(clause.part))
    return {table: groups[0].rows for table, groups in found.items() if len({g.rows for g in groups}) == 1}


def _over_tables(tables: list[Table]) -> Iterator[tuple[float, str, str]]:
    """Rows of all results together, and of all lists that stand in the same place of their records."""
    places: dict[str, list[Table]] = {}
    for table in tables:
        places.setdefault(_NUMBERED.sub("[]", table.where), []).append(table)
    for place, alike in places.items():
        if len(alike) > 1:
            yield sum(len(table.rows) for table in alike), f"count of all {place}", alike[0].where
    whole = [table for table in tables if "[" not in table.where.partition(".")[2]]
    if len(whole) > 1:
        yield sum(len(table.rows) for table in whole), "count of rows of all results", whole[0].where


_NUMBERED = re.compile(r"\[\d+\]")


def _narrowed(figures: Figures, clause: Clause) -> set[int]:
    """Tables of which the clause names some rows: "three people report to Otto" does not count them all."""
    if re.search(r"\bof\s+(?:the |our |your |its )?$", clause.before) or clause.says(_WHOLE):
        return set()
    found = figures.mentioned(folded_text(clause.part))
    return {
        table
        for table, groups in found.items()
        if any(
            1 < len(group.rows) < len(group.table.rows) and len(group.words) > _LONG_WORD for group in groups
        )
    }


_WHOLE = re.compile(r"\b(?:total|all|overall|altogether|in all)\b", re.IGNORECASE)
_LONG_WORD = 6


_WITHOUT = re.compile(
    r"\b(?:not|no|none|without|free|un\w+|vacant|missing|empty|lack\w*|neither|open|never|absent|available|blank)\b|n[’']t\b",
    re.IGNORECASE,
)


def _filled(figures: Figures, whole: float, *, without: bool) -> Iterator[tuple[float, str, str]]:
    """ "Four of five units are let": rows that have something in a field, and rows that have not."""
    for table in figures.tables:
        for name in table.rows[0]:
            filled = sum(name in row and row[name].value not in (None, "") for row in table.rows)
            if 0 < filled < len(table.rows) == whole:
                where = f"{table.where}[*].{name}"
                yield filled, f"count of rows with a value for {name}", where
                if without:
                    yield len(table.rows) - filled, f"count of rows without a value for {name}", where


def _beyond_thresholds(figures: Figures, clause: Clause) -> Iterator[tuple[float, str, str]]:
    spoken = f"{clause.text} {clause.question_words}"
    more, less = MORE.search(spoken) is not None, LESS.search(spoken) is not None
    words = set(clause.words.split()) | set(clause.question_words.split())
    named = [
        column
        for column in figures.columns
        if any(speaks_of(column.name, word) for word in words if len(word) > 2)
    ]
    for column in named or figures.columns:
        for threshold in clause.numbers:
            for sign, said, count in (
                (">", more, sum(value > threshold for value in column.values)),
                ("≥", more, sum(value >= threshold for value in column.values)),
                ("<", less, sum(value < threshold for value in column.values)),
                ("≤", less, sum(value <= threshold for value in column.values)),
            ):
                if said:
                    yield count, f"count of rows with {column.name} {sign} {threshold:g}", column.where
    # "Two items are below their reorder level": one column against another.
    for table in figures.tables if (more or less) and not clause.numbers else ():
        columns = [column for column in figures.columns if column.table is table][:6]
        for left, right in permutations(columns, 2):
            other = dict(right.cells)
            count = sum(value < other[row] for row, value in left.cells if row in other)
            yield count, f"count of rows with {left.name} < {right.name}", table.where
