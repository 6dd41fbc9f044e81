"""The tables as people ask about them: what `tables.toml` says, how much of a question a table explains, and which of its
rows are meant, in SQL and in words.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from answerkey_demo.language.periods import Period
from answerkey_demo.language.reading import Mention, Reading, Vocabulary
from answerkey_demo.language.words import category_label, join
from answerkey_demo.tools import Turn

_MAX_LISTED, _MAX_ENTRIES = 30, 12
_SLOT = re.compile(r"\{(\w+)")
_AMOUNT = re.compile(r"\bhow much\b|\btotal\b")
_BY_CATEGORY = re.compile(r"\bwhat (?:do|did|have) we (?:spend|spent)\b|\bwhere .*money go\b")
_BEFORE_GROUP = re.compile(r"\b(?:which|what|by|per|each|every)(?: of)?(?: our| the)?(?: \w+)? $")
# How what a question names is said of rows.
_PREPOSITIONS = {"party": "with", "unit": "of", "property": "at"}


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact of a row and how people ask for it; `tables.toml` explains each setting."""

    say: str
    reads: str
    name: str = ""
    measure: str = ""
    most: str = ""
    least: str = ""
    date: str = ""
    where: str = ""
    split: str = ""
    hides: list[str] = []
    weak: bool = False

    @property
    def column(self) -> str:
        """The SQL of its measure."""
        return self.measure.partition(":")[0] or "NULL"

    @property
    def form(self) -> str:
        """How its measure is written: "$", "number", "date" or ""."""
        return self.measure.partition(":")[2]


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
    # words for some of the rows; what such a one reads is an adjective
    conditions: dict[str, Field] = {}
    # what totals can be split by → its SQL
    groups: dict[str, str] = {}
    totals: bool = False
    default: str = ""
    extreme: str = ""
    balance: str = ""
    sums: str = ""
    unless: str = ""
    filler: str = ""
    needs: str = ""
    open: str = ""
    main: str = ""
    covers: str = ""

    def requested_fields(self, view: Reading) -> list[Field]:
        """The fields that are asked for, without those that a stronger one hides."""
        keys = [value.partition(".")[2] for value in view.all("field")]
        strong = [k for k in keys if not self.fields[k].weak]
        if not strong and view.has("op", "most", "least") and self.extreme:
            keys = [self.extreme]
        hidden = {h for k in strong for h in self.fields[k].hides}
        keys = [k for k in strong or keys if k not in hidden] or keys[:1] or [self.default]
        if self.totals and view.has("category"):
            # "net" of one category is what it comes to
            keys = [self.default]
        return [self.fields[key] for key in keys if key]

    def splits_by(self, reading: Reading) -> str:
        """What the totals are to be split by, or ""."""
        superlative = reading.has("op", "most", "least")
        for mention in [m for m in reading.mentions if m.kind == "by" and self.groups]:
            before = reading.text[: reading.words[mention.first].start]
            if mention.value == "property" and re.search(r"\b(?:our|the|my) $", before):
                continue
            if superlative and mention.value != "property":
                return mention.value
            if _BEFORE_GROUP.search(before) and not reading.has("op", "average", "monthly", "yearly"):
                return mention.value
        if not self.groups or not superlative:
            return ""
        by_whom = "party" if reading.has("op", "who") else ""
        return "category" if _BY_CATEGORY.search(reading.text) else by_whom


_TOML = (Path(__file__).parent / "tables.toml").read_text(encoding="utf-8")
TABLES = msgspec.convert(tomllib.loads(_TOML), dict[str, Table])


def phrases() -> Iterator[tuple[str, str, str]]:
    """The words for tables, fields and conditions, for the vocabulary."""
    for name, table in TABLES.items():
        yield from ((getattr(table, kind), kind, name) for kind in ("subject", "unless", "filler"))
        for key, condition in table.conditions.items():
            yield condition.say, "condition", f"{name}.{key}"
        for key, field in table.fields.items():
            yield f"{field.say},{field.most},{field.least}", "field", f"{name}.{key}"
            yield field.most, "op", "most"
            yield field.least, "op", "least"


def view_of(name: str, reading: Reading) -> Reading:
    """The question as it concerns one table."""

    def mine(mention: Mention) -> bool:
        if mention.kind in ("field", "condition", "subject", "filler"):
            return mention.value.partition(".")[0] == name
        if mention.kind == "text":
            return mention.value == name and "text" in TABLES[name].columns
        return mention.kind in ("op", "by") or mention.kind in TABLES[name].columns

    return reading.view(mine)


def unexplained(name: str, reading: Reading) -> list[int] | None:
    """The words of a question that this table does not account for; None if the question does not ask for it."""
    table, view = TABLES[name], view_of(name, reading)
    fields = [table.fields[value.partition(".")[2]] for value in view.all("field")]
    placed = bool(fields) and (view.has("property") or view.has("unit"))
    if not (any(not f.weak for f in fields) or placed or view.has("subject") or _asks_totals(table, view)):
        return None
    if reading.has("unless", name) or (table.needs and not view.has(table.needs)):
        return None
    asked = table.requested_fields(view)
    if not asked or (view.periods and not any(f.date for f in asked)):
        return None
    return view.left(view.explained(*view.mentions))


def _asks_totals(table: Table, view: Reading) -> bool:
    """Whether a question names what the rows of a table of many are about, or what to split them by."""
    vendors = view.has("by", "vendor") and view.has("op", "list")
    extreme = view.has("op", "most", "least") and view.has("by", "month", "quarter", "year")
    asked = view.has("op", "who", "when", "list", "count") or "how much" in view.text
    detailed = asked and bool(details(view) or view.has("party"))
    return table.totals and (view.has("category") or view.has("kind") or vendors or extreme or detailed)


def details(view: Reading) -> list[int]:
    """The words that are in a table's texts ("boiler", "roof") and mean nothing else."""
    used = view.explained(*(m for m in view.mentions if m.kind not in ("text", "field", "filler")))
    return [i for i in dict.fromkeys(m.first for m in view.mentions if m.kind == "text") if i not in used]


class Query(msgspec.Struct, frozen=True):
    """The rows that a question means."""

    table: Table
    # the facts that are asked for
    fields: list[Field]
    # the one whose measure is ordered, added up and averaged
    measured: Field
    where: list[str]
    values: list[Any]
    # what it is about, and that with everything that narrows it down
    about: str
    words: str
    # in which its rows are listed
    order: str

    @classmethod
    def of(
        cls,
        table: Table,
        reading: Reading,
        vocabulary: Vocabulary,
        words: list[int],
        period: Period | None = None,
    ) -> "Query":
        """The rows that a question means. `words`: those that a row's text contains; `period`: in place of the question's."""
        fields = table.requested_fields(reading)
        unnamed = not any(map(reading.has, ("kind", "category", "party", "field")))
        if table.balance and unnamed and table.splits_by(reading) not in ("", "vendor"):
            # "our worst month" is the one with the lowest net income
            fields = [table.fields[table.balance]]
        measured = next((f for f in fields if f.measure), fields[0])
        about = _about(table, measured, reading)
        if reading.has("op", "next", "first", "last") and (not table.totals or lists_entries(reading)):
            measured = next((f for f in [*fields, *table.fields.values()] if f.form == "date"), measured)
        where, values, said = ["1 = 1"], list[Any](), about
        labels = vocabulary.address | {u["id"]: u["label"] for u in vocabulary.units}
        for kind, column in table.columns.items():
            named = _kinds(reading, vocabulary, words) if kind == "kind" else reading.all(kind)
            if kind == "unit":
                # "Unit 1" of the building that is named
                places = reading.all("property")
                here = [u["id"] for u in vocabulary.units if u["id"] in named and u["property_id"] in places]
                named = here or named
            if named and kind != "text":
                where.append(f"{column} IN ({', '.join('?' * len(named))})")
                values += named
            if named and kind in _PREPOSITIONS:
                said += f" {_PREPOSITIONS[kind]} {join([labels.get(value, value) for value in named])}"
        # "Is Unit 2 rented?" asks about that unit whatever its state
        conditions = [] if reading.has("unit") else [v.partition(".")[2] for v in reading.all("condition")]
        narrowed = len(where) > 1 or bool(conditions)
        where += dict.fromkeys(table.conditions[key].where for key in conditions)
        where += [] if narrowed else list(dict.fromkeys(f.where for f in fields if f.where))
        of_several = reading.has("property") or reading.has("op", "most", "least")
        if table.main and reading.singular and not of_several:
            where.append(table.main)
        periods, dated = [period] if period else reading.periods, next((f.date for f in fields if f.date), "")
        if periods and dated:
            where.append(f"{dated} BETWEEN ? AND ?")
            values += [min(p.start for p in periods).isoformat(), max(p.end for p in periods).isoformat()]
            said += f" {join([p.phrase for p in periods])}"
        if words:
            where += [f"{table.columns['text']} LIKE ?"] * len(words)
            values += [f"%{reading.words[i].root}%" for i in words]
            said += f" for {join([f'“{reading.words[i].text}”' for i in words])}"
        return cls(table, fields, measured, where, values, about, said, table.order)

    def sql(self, columns: str, rest: str = "") -> str:
        """A SELECT over these rows."""
        return f"SELECT {columns} FROM {self.table.rows} WHERE {' AND '.join(self.where)} {rest}".strip()

    def rows(self, turn: Turn, columns: str, rest: str = "") -> list[dict[str, Any]]:
        """What a SELECT over these rows gives, through the tool."""
        return turn.rows(self.sql(columns, rest), *self.values)

    def figures(self, turn: Turn, column: str, *, listed: bool) -> list[dict[str, Any]]:
        """How many rows there are, and the total and mean of a column; if `listed`, beside the facts of each row."""
        over, facts, rest = "", list[str](), ""
        if listed:
            slots = dict.fromkeys(slot for field in self.fields for slot in _SLOT.findall(field.reads))
            over, facts = " OVER ()", [f"{self.table.label} AS row_label", *slots]
            rest = f"ORDER BY {self.order} LIMIT {_MAX_ENTRIES if self.table.totals else _MAX_LISTED}"
        elif "address" in self.table.rows:
            # The answer names the place of a total, so the tool must return it.
            facts = ["group_concat(DISTINCT address) AS row_places"]
        functions = {"COUNT(*)": "count", f"SUM({column})": "total", f"AVG({column})": "mean"}
        sums = [f"{function}{over} AS row_{name}" for function, name in functions.items()]
        return self.rows(turn, ", ".join([*facts, *sums]), rest)

    def also(self, condition: str) -> "Query":
        """Those of the rows for which something more holds."""
        return msgspec.structs.replace(self, where=[*self.where, condition])

    def extreme(self, count: int, *, least: bool) -> "Query":
        """The first `count` rows by the measure, and those that tie with the last of them."""
        column, order = self.measured.column, "ASC" if least else "DESC"
        few = self.sql(f"{column} AS m", f"AND {column} IS NOT NULL ORDER BY m {order} LIMIT {count}")
        edge = f"SELECT {'MAX' if least else 'MIN'}(m) FROM ({few})"
        narrowed = self.also(f"{column} {'<=' if least else '>='} ({edge})")
        order = f"{column} {order}, {self.order}"
        return msgspec.structs.replace(narrowed, values=self.values * 2, order=order)


def _about(table: Table, measured: Field, reading: Reading) -> str:
    if named := reading.all("category"):
        return join([category_label(name) for name in named])
    if not table.totals or measured.name:
        return measured.name or table.many
    totals = {"income": "total income", "expense": "total expenses"}
    return "payments" if reading.has("party") else totals.get(" ".join(reading.all("kind")), table.many)


def _kinds(reading: Reading, vocabulary: Vocabulary, words: list[int]) -> list[str]:
    """The kinds of transactions that are meant; none for all of them."""
    kinds = reading.all("kind")
    if reading.has("category"):
        return []
    if parties := reading.all("party"):
        # a tenant pays us; with a vendor everything counts
        return ["income"] if kinds and set(parties) & vocabulary.payers else []
    if reading.has("field"):
        return ["income", "expense"]
    if kinds == ["expense"] and words:
        # what was bought may be an improvement, which is not an expense
        return ["expense", "transfer"]
    return kinds or (["expense"] if reading.has("by", "vendor") else [])


def lists_entries(reading: Reading) -> bool:
    """Whether entries are asked for, not what they come to."""
    if reading.has("op", "average", "count") or _AMOUNT.search(reading.text):
        return reading.has("op", "most", "least")
    return reading.has("op", "most", "least", "list", "who", "when", "last", "first")
