"""Whether a figure and what it is said of stand in the same record of a table."""

import re
from collections.abc import Sequence

import msgspec

from answerkey.scorers.groundedness.arithmetic.clause import Clause
from answerkey.scorers.groundedness.direct import Contradiction
from answerkey.scorers.groundedness.evidence import Evidence, NumberFact
from answerkey.scorers.groundedness.figures import as_number
from answerkey.scorers.groundedness.flatten import Table, key_words
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import folded_text

__all__ = ["MixUp", "find_mix_up", "rows_named"]

# Columns that say which thing a row is about; several rows may be about the same one.
_KINDS_TEXT = """
category type kind property vendor tenant customer product item department team region city store name account employee
member project supplier client
"""
_KINDS = frozenset(_KINDS_TEXT.split())
_YEAR_KEYS = frozenset(["year", "fy", "season"])
# "Which property …", "who …", "when …": the thing is the answer, and what is said of it is known.
_ASKS_FOR_THING = re.compile(
    r"^\W*(?:which|who|whose|when|what (?:date|day|month|year|property|unit|item|product))\b", re.IGNORECASE
)


class MixUp(msgspec.Struct, frozen=True):
    """A figure of one record that stands beside the name or date of another."""

    table: Table
    # The rows that have the figure, and those that the words name.
    figure_rows: frozenset[int]
    named_rows: frozenset[int]
    # What the named record has instead.
    instead: Contradiction
    # The name or date is what is wrong, not the figure.
    thing_is_wrong: bool


def find_mix_up(
    part: str,
    clause: Clause,
    found: Sequence[NumberFact],
    evidence: Evidence,
    reply_words: str,
    question: str,
) -> MixUp | None:
    """A figure of one record that the reply states of another: the words name a record, and the figure is not its."""
    for table in evidence.tables:
        if len(table.rows) < 2 or not found:
            continue
        places = [_row_of(fact.where, table) for fact in found]
        if any(place is None for place in places):
            continue
        rows = frozenset(place for place in places if place is not None)
        spoken = rows_named(table, folded_text(part), part)
        asked = rows_named(table, clause.question_words, question, narrow=True)
        if not spoken and (around := rows_named(table, clause.words, clause.text)):
            # "April, at $2,240": with one figure in the sentence there is nothing else that it could be said of.
            if not clause.alone:
                continue
            spoken = around
        elif not spoken:
            if len(asked) != 1 or len(rows_named(table, reply_words, reply_words)) > 1:
                continue
            spoken = asked
        if len(spoken) == len(table.rows) or not spoken.isdisjoint(rows):
            continue
        row = min(spoken)
        column = found[0].where.rpartition("].")[2]
        leaf = table.rows[row].get(column)
        if leaf is None or leaf.value is None:
            continue
        about = bool(asked) and asked != spoken and rows <= asked and len(asked) < len(table.rows)
        thing = about or (not asked and _ASKS_FOR_THING.match(question) is not None)
        return MixUp(table, rows, spoken, Contradiction(leaf.where, f"{leaf.key}: {leaf.value}"), thing)
    return None


def _row_of(where: str, table: Table) -> int | None:
    if not where.startswith(table.where):
        return None
    at = re.match(r"\[(\d+)\]", where[len(table.where) :])
    return int(at[1]) if at else None


def rows_named(table: Table, words: str, text: str, *, narrow: bool = False) -> frozenset[int]:
    """Rows that a text speaks of: by a value that few others have in that field, by their date or by their year.

    Narrow: only those that every field that is spoken of names ("repairs in August").
    """
    named: list[frozenset[int]] = []
    dates = list(find_dates(_with_years(text)))
    for name in dict.fromkeys(name for row in table.rows for name in row):
        values: dict[str, list[int]] = {}
        for number, row in enumerate(table.rows):
            leaf = row.get(name)
            if leaf is None or leaf.value is None or isinstance(leaf.value, bool):
                continue
            if not isinstance(leaf.value, str):
                if _is_label(name, leaf.value, words):
                    values.setdefault(str(leaf.value), []).append(number)
                continue
            if not 1 <= len(leaf.value) <= 80:
                continue
            own = list(find_dates(leaf.value))
            if own and own[0].month is not None:
                if any(_means(date, own[0]) for date in dates):
                    values.setdefault(f"date {own[0].month} {own[0].day}", []).append(number)
                continue
            folded = folded_text(leaf.value).strip()
            if len(folded) < 3:
                if _is_label(name, leaf.value, words):
                    values.setdefault(folded, []).append(number)
            elif as_number(leaf) is None and f" {folded} " in words:
                values.setdefault(folded, []).append(number)
        shared = not _KINDS.isdisjoint(key_words(name)[-1:])
        rows = frozenset(
            number
            for value, numbers in values.items()
            if len(numbers) == 1 or value.startswith("date ") or (shared and len(value) > 3)
            for number in numbers
        )
        if rows:
            named.append(rows)
    if narrow and named and (common := frozenset.intersection(*named)):
        return common
    return frozenset().union(*named)


def _is_label(name: str, value: object, words: str) -> bool:
    """Years and the numbers of things: {"year": 2023} by "2023", {"unit": 4} by "unit 4"."""
    last = key_words(name)[-1:]
    if not _YEAR_KEYS.isdisjoint(last):
        return f" {value} " in words
    return bool(last) and f" {last[0]} {str(value).lower()} " in words


def _means(said: Date, own: Date) -> bool:
    """Whether a date that is said is that of a row; what is said may leave out day and year."""
    if said.month != own.month or (said.year not in (None, _ANY_YEAR, own.year) and own.year is not None):
        return False
    return said.day is None or own.day is None or said.day == own.day


# The year that stands for any.
_ANY_YEAR = 2000
_MONTH = re.compile(
    r"\b(January|February|March|April|June|July|August|September|October|November|December)\b(?!\s*\d)",
    re.IGNORECASE,
)


def _with_years(text: str) -> str:
    """Months that stand alone get a year, which stands for any."""
    return _MONTH.sub(rf"\1 {_ANY_YEAR}", text)
