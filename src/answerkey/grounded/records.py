"""Whether what a reply says of a thing stands in that thing's record: figures, dates and names of a table's rows."""

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from answerkey.grounded.arithmetic.clause import SUPERLATIVE_WORDS, Clause
from answerkey.grounded.direct import Contradiction
from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.figures import as_number
from answerkey.grounded.flatten import Leaf, Table, key_words
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import folded_text

__all__ = ["MixUp", "Records", "find_mix_up", "find_records", "not_the_whole", "row_of"]

# Columns that say which thing a row is about; several rows may be about the same one.
_KINDS_TEXT = """
category type kind property vendor tenant customer product item department team region city store name account employee
member project supplier client driver owner person agent rep technician author assignee patient doctor teacher branch plan
vehicle machine warehouse site route brand model artist host guest lender lead manager buyer seller payer payee contractor
instructor course ward clinic event venue campaign channel station line batch crop species breed route
"""
_KINDS = frozenset(_KINDS_TEXT.split())
_YEAR_KEYS = frozenset(["year", "fy", "season"])
_LABEL_KEYS_TEXT = """
unit room number no id track section pr lot floor table line step week level gate suite apt apartment bay seat page chapter
question version quarter batch order invoice case ticket issue route bus terminal phase building grade class season episode
"""
# "Unit 4", "track 2": things that are told by a number or a letter after their name.
_LABEL_KEYS = frozenset(_LABEL_KEYS_TEXT.split())
_NAMES_TEXT = """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december
"""
# "Tue" and "Jan" under the names that a reply gives them.
_SHORT_NAMES = {name[:3]: name for name in _NAMES_TEXT.split()}
_CAPITALISED = re.compile(r"\b[A-Z][^\W\d_]+")
_MOST_ROWS = 300
_LONGEST_VALUE = 80
# A word of a name by which it may be told from others must have so many letters.
_SHORTEST_WORD = 3


class MixUp(msgspec.Struct, frozen=True):
    """A figure of one record that stands beside the name or date of another."""

    records: "Records"
    # The rows that have the figure, and those that the words name.
    figure_rows: frozenset[int]
    named_rows: frozenset[int]
    # What the named record has instead.
    instead: Contradiction
    # The name or date is what is wrong, not the figure.
    thing_is_wrong: bool


class _Column(msgspec.Struct):
    """What the rows have in one field."""

    name: str
    # Several rows may be about the same thing.
    shared: bool
    # No two rows have the same value, so that it tells rows apart.
    unique: bool
    words: dict[str, set[int]]
    dates: list[tuple[Date, int]]
    # Years and numbers of things, with the word that must stand before them ("" for a year).
    labels: dict[str, set[int]]
    # A word of the value that no other row's value has.
    telling: dict[str, int]
    # Words that are written with a capital: "policy" of an id such as "retention-policy" names nothing.
    names: set[str]


class Records:
    """A table whose rows can be told by the words of a reply."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._named: dict[tuple[str, str, bool], frozenset[int]] = {}

    @cached_property
    def columns(self) -> list[_Column]:
        """Every field that rows can be told by."""
        names = dict.fromkeys(name for row in self.table.rows for name in row)
        return [
            column for name in names if (column := self._column(name)).words or column.dates or column.labels
        ]

    def _column(self, name: str) -> _Column:
        last = key_words(name)[-1:]
        column = _Column(name, not _KINDS.isdisjoint(last), False, {}, [], {}, {}, set())
        for number, row in enumerate(self.table.rows[:_MOST_ROWS]):
            leaf = row.get(name)
            if leaf is None or leaf.value is None or isinstance(leaf.value, bool):
                continue
            self._add(column, number, leaf, last)
        filled = sum(map(len, column.words.values()))
        column.unique = filled > 1 and all(len(rows) == 1 for rows in column.words.values())
        if column.unique:
            owners: dict[str, set[int]] = {}
            for value, rows in column.words.items():
                for word in value.split():
                    owners.setdefault(word, set()).update(rows)
            column.telling = {
                word: next(iter(rows))
                for word, rows in owners.items()
                if len(rows) == 1 and len(word) >= _SHORTEST_WORD and word in column.names
            }
        return column

    @staticmethod
    def _add(column: _Column, number: int, leaf: Leaf, last: tuple[str, ...]) -> None:
        text = str(leaf.value)
        if not _YEAR_KEYS.isdisjoint(last):
            column.labels.setdefault(text, set()).add(number)
        elif len(text) < 3 or not isinstance(leaf.value, str):
            if not _LABEL_KEYS.isdisjoint(last) and len(text) <= 8:
                column.labels.setdefault(f"{last[0]} {text.lower()}", set()).add(number)
        elif len(text) <= _LONGEST_VALUE:
            own = next(find_dates(text), None)
            if own is not None and own.month is not None:
                column.dates.append((own, number))
            elif as_number(leaf) is None and (folded := folded_text(text).strip()) and len(folded) >= 3:
                column.words.setdefault(_SHORT_NAMES.get(folded, folded), set()).add(number)
                column.names.update(map(str.lower, _CAPITALISED.findall(text)))

    def named(self, words: str, text: str, *, narrow: bool = False) -> frozenset[int]:
        """Rows that a text speaks of: by a value that few others have in that field, by their date or by their year.

        Narrow: only those that every field that is spoken of names ("repairs in August").
        """
        key = (words, text, narrow)
        if key not in self._named:
            self._named[key] = self._find_named(words, text, narrow)
        return self._named[key]

    def _find_named(self, words: str, text: str, narrow: bool) -> frozenset[int]:
        named: list[frozenset[int]] = []
        dates = list(find_dates(_with_years(_SINCE.sub(" ", text))))
        for column in self.columns:
            rows: set[int] = set()
            for value, numbers in column.words.items():
                if (len(numbers) == 1 or (column.shared and len(value) > 3)) and f" {value} " in words:
                    rows |= numbers
            for own, number in column.dates if dates else ():
                if any(_means(date, own) for date in dates):
                    rows.add(number)
            for label, numbers in column.labels.items():
                if len(numbers) == 1 and f" {label} " in words:
                    rows |= numbers
            if rows:
                named.append(frozenset(rows))
        if narrow and named and (common := frozenset.intersection(*named)):
            return common
        return frozenset().union(*named)

    def tells_apart(self, field: str) -> bool:
        """Whether no two rows have the same text in a field."""
        return any(column.unique for column in self.columns if column.name == field)

    def is_key(self, field: str) -> bool:
        """Whether a field is the first by which rows are told apart."""
        return next((column.name for column in self.columns if column.unique), None) == field

    def subjects(self, words: str, text: str) -> frozenset[int]:
        """Rows that a text names by what tells them apart."""
        return self.subject(words, text)[0]

    def subject(self, words: str, text: str) -> tuple[frozenset[int], str]:
        """Rows that a text names by an id or a name, or a part of a name that no other has, and the field of that."""
        for column in self.columns:
            if not column.unique:
                continue
            found = {
                row for value, numbers in column.words.items() if f" {value} " in words for row in numbers
            }
            found |= {
                row
                for word, row in column.telling.items()
                if f" {word} " in words and re.search(rf"\b{word.capitalize()}\b", text)
            }
            if found:
                return frozenset(found), column.name
        return frozenset(), ""


def find_records(evidence: Evidence) -> list[Records]:
    """The tables with several rows."""
    return [Records(table) for table in evidence.tables if len(table.rows) > 1 and not _lists_fields(table)]


def _lists_fields(table: Table) -> bool:
    """Whether each row is a field of one thing: {"key": "legal_name", "value": "Elm LLC"}, {"key": "ein", "value": …}."""
    if any(len(row) != 2 or "value" not in row for row in table.rows):
        return False
    # Rows that measure the same are things of their own; fields hold texts and figures of many kinds.
    return any(as_number(row["value"]) is None for row in table.rows)


def find_mix_up(
    part: str,
    clause: Clause,
    found: Sequence[NumberFact],
    records: Sequence[Records],
    reply_words: str,
    question: str,
) -> MixUp | None:
    """A figure of one record that the reply states of another: the words name a record, and the figure is not its."""
    for one in records if found else ():
        table = one.table
        places = [row_of(fact.where, table) for fact in found]
        if any(place is None for place in places):
            continue
        rows = frozenset(place for place in places if place is not None)
        asked = one.named(clause.question_words, question, narrow=True)
        part_words = folded_text(part)
        spoken = one.named(part_words, part, narrow=True)
        if not spoken and len(about := one.subjects(part_words, part)) == 1:
            spoken = about
        if len(spoken) > 1 and clause.alone:
            # "On February 2, Harbor had 512": the rest of the sentence tells which of its rows is meant.
            spoken = (spoken & one.named(clause.words, clause.text, narrow=True)) or spoken
        if not spoken and (around := one.named(clause.words, clause.text)):
            # "April, at $2,240": with one figure in the sentence there is nothing else that it could be said of.
            if not clause.alone:
                continue
            spoken = around
        elif not spoken:
            if len(asked) != 1 or len(one.named(reply_words, reply_words)) > 1:
                continue
            spoken = asked
        if len(spoken) == len(table.rows) or not spoken.isdisjoint(rows):
            continue
        column = found[0].where.rpartition("].")[2]
        leaf = table.rows[min(spoken)].get(column)
        if leaf is None or leaf.value is None:
            continue
        other = bool(asked) and asked != spoken and rows <= asked and len(asked) < len(table.rows)
        thing = other or (
            SUPERLATIVE_WORDS.search(f"{clause.text} {question}") is not None
            and _is_extreme(table, column, rows)
            and not _names_other_column(table, column, clause.words)
        )
        return MixUp(one, rows, spoken, Contradiction(leaf.where, f"{leaf.key}: {leaf.value}"), thing)
    return None


_AGGREGATE = re.compile(
    r"\b(?:average|mean|median|total|altogether|combined|in all|sum)\b[^.;,:(\d]{0,50}$|\bTotal[*_\s]*:[*_\s]*$",
    re.IGNORECASE,
)
_AGGREGATE_KEYS = frozenset(
    ["total", "sum", "average", "avg", "mean", "median", "balance", "net", "gross", "overall"]
)


def not_the_whole(
    clause: Clause, found: Sequence[NumberFact], records: Sequence[Records], question: str
) -> Contradiction | None:
    """A figure that is called an average or total, but is that of one row of several that nobody speaks of."""
    if not _AGGREGATE.search(clause.before):
        return None
    for one in records:
        rows = {row_of(fact.where, one.table) for fact in found}
        fields = {fact.where.rpartition("].")[2] for fact in found}
        if None in rows or len(rows) != 1 or len(fields) != 1:
            continue
        column = fields.pop()
        if not _AGGREGATE_KEYS.isdisjoint(key_words(column)) or (
            _ONE_PERIOD.search(clause.text) and any(_is_period(name) for name in one.table.rows[0])
        ):
            continue
        spoken = one.named(clause.words, clause.text) | one.named(clause.question_words, question)
        if spoken or one.subjects(clause.words, clause.text) or one.subjects(clause.question_words, question):
            continue
        leaf = one.table.rows[min(row for row in rows if row is not None)][column]
        return Contradiction(leaf.where, f"{leaf.key}: {leaf.value} in one of {len(one.table.rows)} rows")
    return None


# "The median this month": one row of those that are told apart by the time.
_ONE_PERIOD = re.compile(
    r"\b(?:this|last|current|previous|prior|latest|past) (?:day|week|month|quarter|year)\b", re.IGNORECASE
)
_PERIODS = frozenset(["day", "date", "week", "month", "quarter", "year", "period"])


def _is_period(column: str) -> bool:
    return not _PERIODS.isdisjoint(key_words(column))


def _is_extreme(table: Table, column: str, rows: frozenset[int]) -> bool:
    """Whether rows have the largest or smallest figure of a column."""
    values = {
        number: abs(value)
        for number, row in enumerate(table.rows)
        if column in row and (value := as_number(row[column])) is not None
    }
    own = {values[row] for row in rows if row in values}
    return bool(own) and (max(values.values()) in own or min(values.values()) in own)


def _names_other_column(table: Table, column: str, words: str) -> bool:
    """Whether words speak of another column of figures than the one given."""
    others = {name for row in table.rows for name, leaf in row.items() if as_number(leaf) is not None} - {
        column
    }
    spoken = set(words.split())
    own = set(key_words(column))
    return any(not spoken.isdisjoint(set(key_words(name)) - own) for name in others) and spoken.isdisjoint(
        own
    )


def row_of(where: str, table: Table) -> int | None:
    """The row of a table that a place lies in."""
    if not where.startswith(table.where):
        return None
    at = re.match(r"\[(\d+)\]", where[len(table.where) :])
    return int(at[1]) if at else None


def _means(said: Date, own: Date) -> bool:
    """Whether a date that is said is that of a row; what is said may leave out day and year."""
    if said.month != own.month or (said.year not in (None, _ANY_YEAR, own.year) and own.year is not None):
        return False
    return said.day is None or own.day is None or said.day == own.day


# The year that stands for any.
_ANY_YEAR = 2000
# A time from or up to which something is asked for is not the time of one row.
_SINCE = re.compile(
    r"\b(?:since|until|through|before|after|between|so far in)\s+(?:[A-Z][a-z]+\.?|the)"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?)?(?:,?\s+\d{4})?\b"
)
_MONTH = re.compile(
    r"(?:(?<=\bin )|(?<=\bto )|(?<=\bof )|(?<=\bfor )|(?<=\band )|(?<=\bthan )|(?<=\bsince )|(?<=\bby ))((?-i:May))\b(?!\s*\d)"
    r"|\b(January|February|March|April|June|July|August|September|October|November|December)\b(?!\s*\d)",
    re.IGNORECASE,
)


def _with_years(text: str) -> str:
    """Months that stand alone get a year, which stands for any."""
    return _MONTH.sub(lambda found: f"{found[0]} {_ANY_YEAR}", text)
