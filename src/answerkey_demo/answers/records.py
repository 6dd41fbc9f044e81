"""Facts of the tables: any field of any row, chosen, counted, ordered, added up or averaged by one query.

`tables.toml` says what the tables have and how people ask for it; nothing here knows a single table.
"""

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from answerkey_demo.answers.wording import day, join, money
from answerkey_demo.language.reading import Mention, Reading
from answerkey_demo.language.vocabulary import Vocabulary
from answerkey_demo.tools.toolbox import Turn

__all__ = ["TABLES", "Table", "answer", "phrases", "unexplained"]

_MAX_LISTED = 30
_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact of a row and how people ask for it."""

    say: str
    # how it reads after the row's label
    reads: str
    # COLUMN or COLUMN:FORM, what is ordered and added up
    measure: str = ""
    # own words for the largest and the smallest
    most: str = ""
    least: str = ""
    # the column that a period narrows down
    date: str = ""
    # what must hold for a row to have it
    where: str = ""
    # weaker readings that this one excludes
    hides: list[str] = []
    # gives way to any other field
    weak: bool = False
    # the sum is what is asked for
    always_sum: bool = False


class Condition(msgspec.Struct, frozen=True):
    """A word for some of the rows."""

    say: str
    where: str
    # the adjective for them
    reads: str


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table as people ask about it."""

    rows: str
    one: str
    many: str
    label: str
    order: str
    subject: str
    fields: dict[str, Field]
    conditions: dict[str, Condition] = {}
    # the field that is meant where none is named, and the one that "largest" means
    default: str = ""
    extreme: str = ""
    # words that belong to another table
    unless: str = ""
    # columns for what a question may name
    property: str = ""
    unit: str = ""
    party: str = ""
    kind: str = ""
    document: str = ""
    type: str = ""
    text: str = ""
    # a kind of mention without which the table is not meant
    needs: str = ""
    # the rows that are meant where no condition is named, and the row that "our property" means
    open: str = ""
    main: str = ""
    # the column whose first and last value say what is on record
    covers: str = ""


TABLES = msgspec.convert(
    tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8")), dict[str, Table]
)
# kind of mention → attribute of a table that says which column it narrows down
_COLUMNS = {"property": "property", "unit": "unit", "party": "party", "obligation": "kind"}
_COLUMNS |= {"document": "document", "type": "type"}


def phrases() -> Iterator[tuple[str, str, str]]:
    """The words for tables, fields and conditions, for the vocabulary."""
    for name, table in TABLES.items():
        yield table.subject, "subject", name
        yield table.unless, "unless", name
        for key, condition in table.conditions.items():
            yield condition.say, "condition", f"{name}.{key}"
        for key, field in table.fields.items():
            for say, op in ((field.say, ""), (field.most, "most"), (field.least, "least")):
                yield say, "field", f"{name}.{key}"
                if op:
                    yield say, "op", op


def unexplained(name: str, reading: Reading) -> list[int] | None:
    """The words of a question that this table does not account for; None if the question does not ask for it."""
    table = TABLES[name]
    if reading.has("unless", name):
        return None
    reading = reading.view(lambda m: _mine(name, m))
    own = reading.mentions
    strong = any(m.kind == "field" and not table.fields[m.value.partition(".")[2]].weak for m in own)
    placed = any(m.kind == "field" for m in own) and any(m.kind in ("property", "unit") for m in own)
    if (
        not _fields(name, reading)
        or not (strong or placed or reading.has("subject"))
        or (table.needs and not reading.has(table.needs))
    ):
        return None
    if reading.periods and not any(f.date for f in _fields(name, reading)):
        return None
    return reading.left(reading.explained(*own))


def _mine(name: str, mention: Mention) -> bool:
    table = TABLES[name]
    if mention.kind in ("field", "condition"):
        return mention.value.partition(".")[0] == name
    if mention.kind in ("subject", "text"):
        return mention.value == name
    return mention.kind in ("op", "by") or bool(getattr(table, _COLUMNS.get(mention.kind, ""), ""))


def _fields(name: str, reading: Reading) -> list[Field]:
    """The fields that are asked for, without those that another one hides."""
    table = TABLES[name]
    keys = [v.partition(".")[2] for v in reading.all("field")]
    strong = [k for k in keys if not table.fields[k].weak]
    keys = strong or keys
    hidden = {h for k in keys for h in table.fields[k].hides}
    keys = [k for k in keys if k not in hidden] or keys[:1]
    superlative = reading.has("op", "most", "least")
    if (not strong and superlative) or not keys:
        keys = [table.extreme if superlative and table.extreme else table.default]
    return [table.fields[key] for key in keys if key]


def answer(name: str, reading: Reading, turn: Turn, vocabulary: Vocabulary, as_of: date) -> str:
    """One sentence for each row that is meant, with count, total or average where that is asked for."""
    table = TABLES[name]
    reading = reading.view(lambda m: _mine(name, m))
    fields = _fields(name, reading)
    measured = next((f for f in fields if f.measure), None)
    if reading.has("op", "next", "first", "last"):
        measured = next(
            (f for f in [*fields, *table.fields.values()] if f.measure.endswith(":date")), measured
        )
    where, values = _where(name, reading, fields, vocabulary)
    measure, _, form = (measured.measure if measured else "").partition(":")
    order = table.order
    if (measure and reading.limits) or reading.limits:
        column = measure or table.fields[table.extreme].measure.partition(":")[0]
        where += [f"{column} {limit.sign} ?" for limit in reading.limits]
        values += [limit.amount for limit in reading.limits]
    extreme = reading.has("op", "most", "least", "next", "first", "last") and bool(measure)
    if extreme:
        function = "MAX" if reading.has("op", "most", "last") else "MIN"
        if reading.has("op", "next") and measured and measured.date:
            where.append(f"{measured.date} >= '{as_of.isoformat()}'")
        condition = " AND ".join(where)
        where.append(f"{measure} = (SELECT {function}({measure}) FROM {table.rows} WHERE {condition})")
        values = values * 2
    columns = dict.fromkeys(c for f in fields for c, _ in _SLOT.findall(f.reads))
    select = ", ".join(
        [f"{table.label} AS row_label", *columns, *([f"{measure} AS row_measure"] if measure else [])]
    )

    def rows_where(conditions: list[str]) -> list[dict[str, Any]]:
        sql = f"SELECT {select} FROM {table.rows} WHERE {' AND '.join(conditions)} ORDER BY {order}"
        return turn.rows(sql, *values)

    rows = rows_where([*where, table.open]) if table.open and not _asks_done(reading) else rows_where(where)
    if not rows and table.open:
        rows = rows_where(where)
    if not rows:
        return _nothing(table, reading, turn)
    lines = [
        f"{row['row_label']} {join([_read(f.reads, row) for f in fields])}".strip() + "."
        for row in rows[:_MAX_LISTED]
    ]
    return _summary(name, reading, rows, measured) + " ".join(lines)


def _asks_done(reading: Reading) -> bool:
    return (
        re.search(
            r"\b(?:did we|have we|has|was|were|is|are) .*\b(?:file|filed|renewed|paid|done|completed|tested)\b",
            reading.text,
        )
        is not None
    )


def _where(
    name: str, reading: Reading, fields: list[Field], vocabulary: Vocabulary
) -> tuple[list[str], list[Any]]:
    table = TABLES[name]
    where, values = ["1 = 1"], list[Any]()
    for kind, attribute in _COLUMNS.items():
        column, named = getattr(table, attribute), reading.all(kind)
        if kind == "unit" and table.unit and reading.has("property"):
            # "Unit 1" of the building that is named
            homes = {u["id"]: u["property_id"] for u in vocabulary.units}
            named = [u for u in named if homes[u] in reading.all("property")] or named
        if column and named:
            where.append(f"{column} IN ({', '.join('?' * len(named))})")
            values += named
    # "Is Unit 2 rented?" asks about that unit whatever its state
    conditions = [] if reading.has("unit") else [v.partition(".")[2] for v in reading.all("condition")]
    where += dict.fromkeys(table.conditions[key].where for key in conditions)
    where += dict.fromkeys(f.where for f in fields if f.where and len(where) + len(conditions) == 1)
    if (
        table.main
        and not reading.has("property")
        and reading.singular
        and not reading.has("op", "most", "least")
    ):
        where.append(table.main)
    period_column = next((f.date for f in fields if f.date), "")
    if reading.periods and period_column:
        where.append(f"{period_column} BETWEEN ? AND ?")
        values += [
            min(p.start for p in reading.periods).isoformat(),
            max(p.end for p in reading.periods).isoformat(),
        ]
    if table.text:
        strong = {
            i for m in reading.mentions if m.kind not in ("text", "field") for i in range(m.first, m.end)
        }
        for mention in reading.mentions:
            word = reading.words[mention.first]
            if mention.kind == "text" and mention.first not in strong:
                where.append(f"{table.text} LIKE ?")
                values.append(f"%{word.root}%")
    return where, values


def _summary(name: str, reading: Reading, rows: list[dict[str, Any]], measured: Field | None) -> str:
    """The count, total or average that comes before the rows."""
    table = TABLES[name]
    adjectives = dict.fromkeys(table.conditions[v.partition(".")[2]].reads for v in reading.all("condition"))
    what = " ".join([*list(adjectives)[:1], table.one if len(rows) == 1 else table.many])
    form = measured.measure.partition(":")[2] if measured else ""
    numbers = [row["row_measure"] for row in rows if measured and row["row_measure"] is not None]
    counted = f"{len(rows)} {what}"
    if reading.has("op", "average") and form in ("$", "number"):
        return f"On average {_shown(sum(numbers) / len(numbers), form)} over {counted}: "
    parts = []
    if len(rows) > 1 or reading.has("op", "count"):
        parts.append(counted)
    extreme = reading.has("op", "most", "least", "next", "first", "last")
    if form in ("$", "number") and numbers and len(rows) > 1 and not extreme:
        parts.append(f"together {_shown(sum(numbers), form)}")
    elif len(rows) > 1 and not extreme and "amount" in rows[0] and any(row["amount"] for row in rows):
        parts.append(f"together {money(sum(row['amount'] or 0 for row in rows))}")
    return ", ".join(parts) + (": " if parts else "")


def _nothing(table: Table, reading: Reading, turn: Turn) -> str:
    period = f" {reading.periods[0].phrase}" if reading.periods else ""
    text = f"Not on record: no {table.one} matches that{period}."
    if table.covers:
        row = turn.rows(
            f"SELECT MIN({table.covers}) AS first, MAX({table.covers}) AS last FROM {table.rows}"
        )[0]
        text = f"{text[:-1]}; the records cover {_date(row['first'])} to {_date(row['last'])}."
    return text


def _shown(value: Any, form: str) -> str:
    if form == "$":
        return money(value)
    if form == "date":
        return _date(value)
    return f"{value:,.10g}" if form == "number" else str(value)


def _date(value: Any) -> str:
    return day(value) if isinstance(value, str) else str(value)


def _read(template: str, row: dict[str, Any]) -> str:
    """Fill in a row: {column}, {column:$}, or {column:, for $}, which is left out where there is no value."""

    def fill(match: re.Match[str]) -> str:
        value, form = row[match[1]], match[2] or ""
        kind = next((k for k in ("$", "date", "number") if k in form), "")
        if not kind and form:
            # a remark that holds for one value
            return form if value and str(value) in form else ""
        if value is None:
            return "" if form.startswith(",") else "nothing on record"
        return form.replace(kind, _shown(value, kind)) if kind else str(value)

    return re.sub(r"\b1 units\b", "1 unit", _SLOT.sub(fill, template))
