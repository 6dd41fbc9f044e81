"""Figures: the numeric columns, rows and free-standing numbers of the evidence, as arithmetic needs them."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import msgspec

from answerkey.grounded.evidence import Evidence, NumberFact
from answerkey.grounded.flatten import Leaf, Table, key_words
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import folded_text
from answerkey.text.numbers import parse_number

__all__ = ["Column", "Figures", "Group"]

_NO_MEASURE_TEXT = """
id ids uuid zip phone code account number no index year month day rank lat lon unit room floor suite apt section track page
line step level lot
"""
_NO_MEASURE = frozenset(_NO_MEASURE_TEXT.split())
_MOST_GROUPS = 40
_MOST_PRODUCTS = 12
_MOST_MEASURED = 6
_DIGIT = re.compile(r"[0-9]")
_TIMES = re.compile(
    r"(?<![\w.,$€£])(\d[\d,]*(?:\.\d+)?)"
    r"(?:\s?[x×@]|(?: [^\W\d_][^\d.;:$€£]{1,40}?)? (?:at|à|zu je|each)(?= [$€£]| [A-Z]{3} ))"
    r"\s?(?:[A-Z]{3}|[$€£])?\s?(\d[\d,]*(?:\.\d+)?)"
)
_CODE_AFTER = re.compile(r"\s*(?:USD|EUR|GBP)$")


class Column(msgspec.Struct, frozen=True):
    """The numbers under one name in a table."""

    table: Table
    name: str
    # (row, value) for every row that has a number there.
    cells: tuple[tuple[int, float], ...]

    @property
    def where(self) -> str:
        """Where all its values stand."""
        return f"{self.table.where}[*].{self.name}"

    @property
    def values(self) -> list[float]:
        """The values alone."""
        return [value for _, value in self.cells]


class Group(msgspec.Struct, frozen=True):
    """The rows of a table that share a value."""

    table: Table
    # "category", and "category = repairs"
    column: str
    label: str
    # The shared value's words, folded: a reply that speaks of the group mentions them.
    words: str
    rows: frozenset[int]


class Figures:
    """The numbers of the evidence in their order."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._mentioned: dict[str, dict[int, list[Group]]] = {}

    @cached_property
    def tables(self) -> list[Table]:
        """Tables with at least one row."""
        return [table for table in self._evidence.tables if table.rows]

    @cached_property
    def columns(self) -> list[Column]:
        """Every numeric column."""
        found = []
        for table in self.tables:
            for name in dict.fromkeys(name for row in table.rows for name in row):
                if not _NO_MEASURE.isdisjoint(key_words(name)[-1:]):
                    continue
                cells = tuple(
                    (number, value)
                    for number, row in enumerate(table.rows)
                    if name in row and (value := as_number(row[name])) is not None
                )
                if cells:
                    found.append(Column(table, name, cells))
        return found

    @cached_property
    def groups(self) -> list[Group]:
        """Rows that share a text, a truth value or a month."""
        found: list[Group] = []
        for table in self.tables:
            members: dict[tuple[str, str], set[int]] = {}
            for number, row in enumerate(table.rows):
                for name, leaf in row.items():
                    for kind, label in _labels(leaf):
                        members.setdefault((name + kind, label), set()).add(number)
            counts: dict[str, int] = {}
            for name, _ in members:
                counts[name] = counts.get(name, 0) + 1
            for (name, label), rows in members.items():
                if counts[name] <= _MOST_GROUPS:
                    words = folded_text(label).strip()
                    found.append(Group(table, name, f"{name} = {label}", f" {words} ", frozenset(rows)))
        return found

    def mentioned(self, words: str) -> Mapping[int, list[Group]]:
        """The groups that folded words speak of, by their table."""
        found = self._mentioned.get(words)
        if found is None:
            roots: dict[str, list[str]] = {}
            for word in words.split():
                roots.setdefault(word[:_SHORTEST_ROOT], []).append(word)
            found = self._mentioned[words] = {}
            for group in self.groups:
                if _speaks_of(group, words, roots):
                    found.setdefault(id(group.table), []).append(group)
        return found

    @cached_property
    def scalars(self) -> dict[str, float]:
        """Numbers that stand alone, by place: those of no table, and those of a table with a single row."""
        inside = {
            leaf.where
            for table in self.tables
            if len(table.rows) > 1
            for row in table.rows
            for leaf in row.values()
        }
        found: dict[str, float] = {}
        for leaf in self._evidence.leaves:
            if leaf.where in inside or not _NO_MEASURE.isdisjoint(key_words(leaf.key)[-1:]):
                continue
            value = as_number(leaf)
            if value is not None:
                found[leaf.where] = value
        return found

    @cached_property
    def group_columns(self) -> list[tuple[Group, Column]]:
        """Each group with each numeric column of its table."""
        return [
            (group, column) for group in self.groups for column in self.columns if column.table is group.table
        ]

    @cached_property
    def several(self) -> list[tuple[str, list[float]]]:
        """Free-standing figures that may be put together: of one record, of all results if few, of one text."""
        return self.of_records + list(self.amounts_in_texts.items())

    @cached_property
    def alike(self) -> list[tuple[str, list[float]]]:
        """The same, but of texts only what is of one kind: money, or figures in one unit."""
        found: dict[tuple[str, str], list[float]] = {}
        for fact in self._evidence.numbers:
            if fact.where in self.amounts_in_texts and self._may_be_joined(fact):
                kind = fact.kind if fact.kind == "money" else fact.measure
                found.setdefault((fact.where, kind), []).append(fact.value)
        return self.of_records + [(where, values) for (where, _), values in found.items() if len(values) > 1]

    @cached_property
    def of_records(self) -> list[tuple[str, list[float]]]:
        """The same without texts."""
        records: dict[str, list[float]] = {}
        for where, value in self.scalars.items():
            records.setdefault(where.rpartition(".")[0], []).append(value)
        found = [(record, values) for record, values in records.items() if len(values) > 1]
        if 2 <= len(self.scalars) <= 8:
            found.append(("results", list(self.scalars.values())))
        return found

    @cached_property
    def measured(self) -> list[tuple[str, list[float]]]:
        """Figures in the same unit, where there are a few of them."""
        found: dict[str, list[NumberFact]] = {}
        for fact in self._evidence.numbers:
            if fact.measure and not fact.names_something:
                found.setdefault(fact.measure, []).append(fact)
        return [
            (facts[0].where, [fact.value for fact in facts])
            for facts in found.values()
            if 2 <= len(facts) <= _MOST_MEASURED
        ]

    @cached_property
    def written_products(self) -> list[tuple[float, str, str]]:
        """What texts multiply themselves, as invoices do: "3 x CHF 189.00", "12 @ $4.50"."""
        found = []
        for passage in self._evidence.passages:
            for one, other in (
                _TIMES.findall(passage.text)[:_MOST_GROUPS] if _DIGIT.search(passage.text) else ()
            ):
                left, right = parse_number(one), parse_number(other)
                if left is not None and right is not None:
                    found.append((float(left) * float(right), f"{one} × {other}", passage.where))
        places = Counter(where for _, _, where in found)
        for where, count in places.items():
            if 1 < count <= _MOST_PRODUCTS:
                total = sum(value for value, _, place in found if place == where)
                found.append((total, "sum of what is multiplied", where))
        return found

    @cached_property
    def amounts_in_texts(self) -> dict[str, list[float]]:
        """The measures that each text states, for texts with a few of them."""
        found: dict[str, list[float]] = {}
        for fact in self._evidence.numbers:
            if self._may_be_joined(fact):
                found.setdefault(fact.where, []).append(fact.value)
        return {
            where: values for where, values in found.items() if 2 <= len(values) <= 12 and where != "question"
        }

    def _may_be_joined(self, fact: NumberFact) -> bool:
        year = fact.kind == "number" and fact.unit == 1 and 1500 <= fact.value <= 2100
        stands_in_text = fact.where not in self._numeric_leaves and not fact.names_something
        if fact.label in _PLACES_IN_FORMS and fact.kind == "number":
            return False
        return stands_in_text and fact.kind != "percentage" and not year

    @cached_property
    def _numeric_leaves(self) -> frozenset[str]:
        return frozenset(leaf.where for leaf in self._evidence.leaves if as_number(leaf) is not None)


# "Line 12", "Box 1": where a figure stands, which nothing is reckoned with.
_PLACES_IN_FORMS = frozenset(["line", "box", "section", "page", "paragraph", "chapter", "article", "clause"])


def as_number(leaf: Leaf) -> float | None:
    """A leaf's number, also where it is written as text ("$1,200.00"); None for truth values and all else."""
    value = leaf.value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else None
    if len(value) > 40 or "%" in value or _DIGIT.search(value) is None:
        return None
    written = _CODE_AFTER.sub("", value.strip())
    if len(written) > 30:
        return None
    worth = parse_number(written)
    return None if worth is None else float(worth)


def _labels(leaf: Leaf) -> list[tuple[str, str]]:
    """By what a row can be told to belong to a group: a short text, yes or no, a month or year of a date."""
    value = leaf.value
    if isinstance(value, bool):
        return [("", "yes" if value else "no")]
    if not isinstance(value, str) or not 0 < len(value) <= 60 or as_number(leaf) is not None:
        return []
    if (day := _WEEKDAYS.get(value[:3].lower())) is not None and (len(value) <= 4 or value.lower() == day):
        part = "weekend" if day in ("saturday", "sunday") else "weekday"
        return [("", day), (" by part of week", part)]
    if (ending := _FILE_ENDING.search(value)) is not None:
        return [("", value), (" by kind of file", ending[1].lower())]
    dates = list(find_dates(value))
    if dates and dates[0].end - dates[0].start >= len(value) - 15:
        return _date_labels(dates[0])
    return [("", value)]


_WEEKDAYS = {
    day[:3]: day for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
}
_FILE_ENDING = re.compile(
    r"\w\.(pdf|docx?|xlsx?|csv|txt|md|html?|pptx?|eml|json|png|jpe?g|zip)$", re.IGNORECASE
)
_MONTH_NAMES_TEXT = """
January February March April May June July August September October November December
"""
_MONTH_NAMES = _MONTH_NAMES_TEXT.split()


def _date_labels(date: Date) -> list[tuple[str, str]]:
    """Each with what it tells rows apart by, so that months are not compared with days."""
    labels = []
    if date.year is not None:
        labels.append((" by year", str(date.year)))
    if date.month is not None:
        labels.append((" by month", _MONTH_NAMES[date.month - 1]))
        labels.append((" by quarter", f"Q{(date.month - 1) // 3 + 1}"))
        if date.day is not None:
            labels.append((" by day", f"{_MONTH_NAMES[date.month - 1]} {date.day}"))
    return labels


def _speaks_of(group: Group, words: str, roots: Mapping[str, list[str]]) -> bool:
    label = group.words.strip()
    return bool(label) and (
        group.words in words
        or _singular(group.words) in words
        or f" {label}s " in words
        or (group.words[-6:-3] in (" 19", " 20") and label.count(" ") > 1 and f" {label[:-5]} " in words)
        or (
            " " not in label and any(same_root(label, word) for word in roots.get(label[:_SHORTEST_ROOT], ()))
        )
    )


def same_root(one: str, other: str) -> bool:
    """ "Rent" and "rental", "utilities" and "utility": words that begin alike and differ in their endings only."""
    if one[:_SHORTEST_ROOT] != other[:_SHORTEST_ROOT]:
        return False
    common = next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )
    return common >= _SHORTEST_ROOT and one[common:] in _ENDINGS and other[common:] in _ENDINGS


_SHORTEST_ROOT = 4
_ENDINGS = frozenset(
    ["", "s", "es", "y", "ies", "e", "ed", "d", "ing", "al", "als", "er", "ers", "or", "ly", "ment", "ments"]
)


def _singular(words: str) -> str:
    return words[:-2] + " " if words.endswith("s ") else words
