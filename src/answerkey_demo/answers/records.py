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
from answerkey_demo.tools.turn import Turn

__all__ = ["TABLES", "answer", "phrases", "unexplained"]

_MAX_LISTED = 30
_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")
# Asks for what has been done, not for what is still open.
_DONE = re.compile(
    r"\b(?:did|have|has|was|were|is|are)\b.*\b(?:file|filed|renewed|paid|done|completed|tested)\b"
)
_ORDERED = ("most", "least", "next", "first", "last")


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact of a row and how people ask for it; `tables.toml` explains each setting."""

    say: str
    reads: str
    measure: str = ""
    most: str = ""
    least: str = ""
    date: str = ""
    where: str = ""
    hides: list[str] = []
    weak: bool = False

    @property
    def column(self) -> str:
        """The SQL of its measure."""
        return self.measure.partition(":")[0]

    @property
    def form(self) -> str:
        """How its measure is written: "$", "number", "date" or ""."""
        return self.measure.partition(":")[2]


class Condition(msgspec.Struct, frozen=True):
    """A word for some of the rows."""

    say: str
    where: str
    # the adjective for them
    reads: str


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table as people ask about it; `tables.toml` explains each setting."""

    rows: str
    one: str
    many: str
    label: str
    order: str
    subject: str
    fields: dict[str, Field]
    # kind of mention → the column that it narrows down
    columns: dict[str, str]
    conditions: dict[str, Condition] = {}
    default: str = ""
    extreme: str = ""
    unless: str = ""
    needs: str = ""
    open: str = ""
    main: str = ""
    covers: str = ""


TABLES = msgspec.convert(
    tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8")), dict[str, Table]
)


def phrases() -> Iterator[tuple[str, str, str]]:
    """The words for tables, fields and conditions, for the vocabulary."""
    for name, table in TABLES.items():
        yield table.subject, "subject", name
        yield table.unless, "unless", name
        for key, condition in table.conditions.items():
            yield condition.say, "condition", f"{name}.{key}"
        for key, field in table.fields.items():
            yield f"{field.say},{field.most},{field.least}", "field", f"{name}.{key}"
            yield field.most, "op", "most"
            yield field.least, "op", "least"


def unexplained(name: str, reading: Reading) -> list[int] | None:
    """The words of a question that this table does not account for; None if the question does not ask for it."""
    table = TABLES[name]
    view = _view(name, reading)
    fields = [_field(table, value) for value in view.all("field")]
    placed = bool(fields) and (view.has("property") or view.has("unit"))
    if not (any(not f.weak for f in fields) or placed or view.has("subject")):
        return None
    if reading.has("unless", name) or (table.needs and not view.has(table.needs)):
        return None
    asked = _asked(table, view)
    if not asked or (view.periods and not any(f.date for f in asked)):
        return None
    return view.left(view.explained(*view.mentions))


def answer(name: str, reading: Reading, turn: Turn, vocabulary: Vocabulary, as_of: date) -> str:
    """One sentence for each row that is meant, with count, total or average where that is asked for."""
    table, reading = TABLES[name], _view(name, reading)
    fields = _asked(table, reading)
    measured = next((f for f in fields if f.measure), None)
    if reading.has("op", "next", "first", "last"):
        measured = next((f for f in [*fields, *table.fields.values()] if f.form == "date"), measured)
    where, values = _where(table, reading, fields, vocabulary)
    if measured and reading.has("op", *_ORDERED):
        if reading.has("op", "next") and measured.date:
            where.append(f"{measured.date} >= '{as_of.isoformat()}'")
        function = "MAX" if reading.has("op", "most", "last") else "MIN"
        best = f"SELECT {function}({measured.column}) FROM {table.rows} WHERE {' AND '.join(where)}"
        where, values = [*where, f"{measured.column} = ({best})"], values * 2
    columns = dict.fromkeys(column for f in fields for column, _ in _SLOT.findall(f.reads))
    shown = [
        f"{table.label} AS row_label",
        *columns,
        *([f"{measured.column} AS row_measure"] if measured else []),
    ]

    def rows_where(conditions: list[str]) -> list[dict[str, Any]]:
        condition = " AND ".join(conditions)
        return turn.rows(
            f"SELECT {', '.join(shown)} FROM {table.rows} WHERE {condition} ORDER BY {table.order}", *values
        )

    still_open = [table.open] if table.open and not _DONE.search(reading.text) else []
    rows = rows_where([*where, *still_open]) or (rows_where(where) if still_open else [])
    if not rows:
        return _nothing(table, reading, turn)
    facts = [(row["row_label"], join([_read(f.reads, row) for f in fields])) for row in rows[:_MAX_LISTED]]
    return _summary(table, reading, rows, measured) + " ".join(
        f"{label} {fact}".strip() + "." for label, fact in facts
    )


def _view(name: str, reading: Reading) -> Reading:
    """The question as it concerns one table."""

    def mine(mention: Mention) -> bool:
        if mention.kind in ("field", "condition", "subject"):
            return mention.value.partition(".")[0] == name
        if mention.kind == "text":
            return mention.value == name and "text" in TABLES[name].columns
        return mention.kind in ("op", "by") or mention.kind in TABLES[name].columns

    return reading.view(mine)


def _field(table: Table, mention: str) -> Field:
    return table.fields[mention.partition(".")[2]]


def _asked(table: Table, reading: Reading) -> list[Field]:
    """The fields that are asked for, without those that a stronger one hides."""
    keys = [value.partition(".")[2] for value in reading.all("field")]
    strong = [k for k in keys if not table.fields[k].weak]
    if not strong and reading.has("op", "most", "least") and table.extreme:
        keys = [table.extreme]
    hidden = {h for k in strong for h in table.fields[k].hides}
    keys = [k for k in strong or keys if k not in hidden] or keys[:1] or [table.default]
    return [table.fields[key] for key in keys if key]


def _where(
    table: Table, reading: Reading, fields: list[Field], vocabulary: Vocabulary
) -> tuple[list[str], list[Any]]:
    where, values = ["1 = 1"], list[Any]()
    for kind, column in table.columns.items():
        named = reading.all(kind)
        if kind == "unit" and reading.has("property"):
            # "Unit 1" of the building that is named
            here = [u["id"] for u in vocabulary.units if u["property_id"] in reading.all("property")]
            named = [u for u in named if u in here] or named
        if named and kind != "text":
            where.append(f"{column} IN ({', '.join('?' * len(named))})")
            values += named
    # "Is Unit 2 rented?" asks about that unit whatever its state
    conditions = (
        [] if reading.has("unit") else [value.partition(".")[2] for value in reading.all("condition")]
    )
    narrowed = len(where) > 1 or bool(conditions)
    where += dict.fromkeys(table.conditions[key].where for key in conditions)
    where += [] if narrowed else list(dict.fromkeys(f.where for f in fields if f.where))
    if (
        table.main
        and reading.singular
        and not reading.has("property")
        and not reading.has("op", "most", "least")
    ):
        where.append(table.main)
    dated = next((f.date for f in fields if f.date), "")
    if reading.periods and dated:
        where.append(f"{dated} BETWEEN ? AND ?")
        values += [
            min(p.start for p in reading.periods).isoformat(),
            max(p.end for p in reading.periods).isoformat(),
        ]
    used = reading.explained(*(m for m in reading.mentions if m.kind not in ("text", "field")))
    for i in dict.fromkeys(m.first for m in reading.mentions if m.kind == "text" and m.first not in used):
        where.append(f"{table.columns['text']} LIKE ?")
        values.append(f"%{reading.words[i].root}%")
    limited = (
        next((f.column for f in fields if f.measure), "")
        or table.fields[table.extreme or table.default].column
    )
    where += [f"{limited} {limit.sign} ?" for limit in reading.limits]
    return where, [*values, *(limit.amount for limit in reading.limits)]


def _summary(table: Table, reading: Reading, rows: list[dict[str, Any]], measured: Field | None) -> str:
    """The count, total or average that comes before the rows."""
    adjectives = [table.conditions[value.partition(".")[2]].reads for value in reading.all("condition")]
    counted = " ".join([str(len(rows)), *adjectives[:1], table.one if len(rows) == 1 else table.many])
    form = measured.form if measured else ""
    numbers = [row["row_measure"] for row in rows if measured and row["row_measure"] is not None]
    if form not in ("$", "number"):
        # obligations are listed by date and still cost something together
        form, numbers = "$", [row["amount"] for row in rows if row.get("amount")]
    if reading.has("op", "average") and numbers:
        return f"On average {_shown(sum(numbers) / len(numbers), form)} over {counted}: "
    if len(rows) == 1:
        return f"{counted}: " if reading.has("op", "count") else ""
    together = (
        f", together {_shown(sum(numbers), form)}" if numbers and not reading.has("op", *_ORDERED) else ""
    )
    return f"{counted}{together}: "


def _nothing(table: Table, reading: Reading, turn: Turn) -> str:
    period = f" {reading.periods[0].phrase}" if reading.periods else ""
    text = f"Not on record: no {table.one} matches that{period}"
    if not table.covers:
        return f"{text}."
    row = turn.rows(f"SELECT MIN({table.covers}) AS first, MAX({table.covers}) AS last FROM {table.rows}")[0]
    return f"{text}; the records cover {_shown(row['first'], 'date')} to {_shown(row['last'], 'date')}."


def _shown(value: Any, form: str) -> str:
    if form == "$":
        return money(value)
    if form == "date" and isinstance(value, str):
        return day(value)
    return f"{value:,.10g}" if form == "number" else str(value)


def _read(template: str, row: dict[str, Any]) -> str:
    """Fill in a row: {column}, {column:$}, or {column:, for $}, which is left out where there is no value."""

    def fill(match: re.Match[str]) -> str:
        value, form = row[match[1]], match[2] or ""
        kind = next((k for k in ("$", "date", "number") if k in form), "")
        if form and not kind:
            # a remark that holds for one value
            return form if value and str(value) in form else ""
        if value is None:
            return "" if form.startswith(",") else "nothing on record"
        return form.replace(kind, _shown(value, kind)) if kind else str(value)

    return re.sub(r"\b1 units\b", "1 unit", _SLOT.sub(fill, template))
