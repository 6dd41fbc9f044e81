"""Which rows of a table a question means, in SQL and in words."""

import re
from typing import Any

import msgspec

from answerkey_demo.answers.tables import Field, Table, asked_fields
from answerkey_demo.answers.wording import join
from answerkey_demo.language.periods import Period
from answerkey_demo.language.reading import Reading
from answerkey_demo.language.vocabulary import Vocabulary, category_label
from answerkey_demo.tools.turn import Turn

__all__ = ["Query", "lists_entries", "select", "splits_by"]

_MAX_LISTED, _MAX_ENTRIES = 30, 12
_SLOT = re.compile(r"\{(\w+)")
_AMOUNT = re.compile(r"\bhow much\b|\btotal\b")
_BY_CATEGORY = re.compile(r"\bwhat (?:do|did|have) we (?:spend|spent)\b|\bwhere .*money go\b")
_BEFORE_GROUP = re.compile(r"\b(?:which|what|by|per|each|every)(?: of)?(?: our| the)?(?: \w+)? $")
# How what a question names is said of rows.
_PREPOSITIONS = {"party": "with", "unit": "of", "property": "at"}


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
            # A total is told with its place, which the tool must have said.
            facts = ["group_concat(DISTINCT address) AS row_places"]
        sums = [
            f"{function}({column}){over} AS row_{name}"
            for function, name in (("SUM", "total"), ("AVG", "mean"))
        ]
        return self.rows(turn, ", ".join([*facts, f"COUNT(*){over} AS row_count", *sums]), rest)

    def also(self, condition: str) -> "Query":
        """Those of the rows for which something more holds."""
        return msgspec.structs.replace(self, where=[*self.where, condition])

    def extreme(self, count: int, *, least: bool) -> "Query":
        """Its first so many rows by the measure, and those that are level with the last of them."""
        column, order = self.measured.column, "ASC" if least else "DESC"
        few = self.sql(f"{column} AS m", f"AND {column} IS NOT NULL ORDER BY m {order} LIMIT {count}")
        edge = f"SELECT {'MAX' if least else 'MIN'}(m) FROM ({few})"
        narrowed = self.also(f"{column} {'<=' if least else '>='} ({edge})")
        order = f"{column} {order}, {self.order}"
        return msgspec.structs.replace(narrowed, values=self.values * 2, order=order)


def select(
    table: Table, reading: Reading, vocabulary: Vocabulary, words: list[int], period: Period | None = None
) -> Query:
    """The rows that a question means. `words`: those that a row's text contains; `period`: in place of the question's."""
    fields = asked_fields(table, reading)
    unnamed = not any(map(reading.has, ("kind", "category", "party", "field")))
    if table.balance and unnamed and splits_by(table, reading) not in ("", "vendor"):
        # "our worst month" is the one with the lowest net income
        fields = [table.fields[table.balance]]
    measured = next((f for f in fields if f.measure), fields[0])
    limited = measured if measured.measure else table.fields[table.extreme or table.default]
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
    if (
        table.main
        and reading.singular
        and not reading.has("property")
        and not reading.has("op", "most", "least")
    ):
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
    where += [f"{limited.column} {limit.sign} ?" for limit in reading.limits]
    values += [limit.amount for limit in reading.limits]
    return Query(table, fields, measured, where, values, about, said, table.order)


def _about(table: Table, measured: Field, reading: Reading) -> str:
    if named := reading.all("category"):
        return join([category_label(name) for name in named])
    if not table.totals or measured.name:
        return measured.name or table.many
    if reading.has("party"):
        return "payments"
    return {"income": "total income", "expense": "total expenses"}.get(
        " ".join(reading.all("kind")), table.many
    )


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
        # what was bought may be an improvement, which is no expense
        return ["expense", "transfer"]
    return kinds or (["expense"] if reading.has("by", "vendor") else [])


def splits_by(table: Table, reading: Reading) -> str:
    """What the totals are to be split by, or ""."""
    superlative = reading.has("op", "most", "least")
    for mention in [m for m in reading.mentions if m.kind == "by" and table.groups]:
        before = reading.text[: reading.words[mention.first].start]
        if mention.value == "property" and re.search(r"\b(?:our|the|my) $", before):
            continue
        if superlative and mention.value != "property":
            return mention.value
        if _BEFORE_GROUP.search(before) and not reading.has("op", "average", "monthly", "yearly"):
            return mention.value
    if not table.groups or not superlative:
        return ""
    return "category" if _BY_CATEGORY.search(reading.text) else "party" if reading.has("op", "who") else ""


def lists_entries(reading: Reading) -> bool:
    """Whether entries are asked for, not what they come to."""
    if reading.has("op", "average", "count") or _AMOUNT.search(reading.text):
        return reading.has("op", "most", "least")
    return reading.has("op", "most", "least", "list", "who", "when", "last", "first")
