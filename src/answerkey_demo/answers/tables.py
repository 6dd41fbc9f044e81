"""The tables as people ask about them: what `tables.toml` says, and how much of a question a table explains."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from answerkey_demo.language.reading import Mention, Reading

__all__ = ["TABLES", "Field", "Table", "asked_fields", "details", "phrases", "unexplained", "view_of"]


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


TABLES = msgspec.convert(
    tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8")), dict[str, Table]
)


def phrases() -> Iterator[tuple[str, str, str]]:
    """The words for tables, fields and conditions, for the vocabulary."""
    for name, table in TABLES.items():
        yield table.subject, "subject", name
        yield table.unless, "unless", name
        yield table.filler, "filler", name
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
    asked = asked_fields(table, view)
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
    """The words that stand in a table's texts ("boiler", "roof") and mean nothing else."""
    used = view.explained(*(m for m in view.mentions if m.kind not in ("text", "field", "filler")))
    return [i for i in dict.fromkeys(m.first for m in view.mentions if m.kind == "text") if i not in used]


def asked_fields(table: Table, view: Reading) -> list[Field]:
    """The fields that are asked for, without those that a stronger one hides."""
    keys = [value.partition(".")[2] for value in view.all("field")]
    strong = [k for k in keys if not table.fields[k].weak]
    if not strong and view.has("op", "most", "least") and table.extreme:
        keys = [table.extreme]
    hidden = {h for k in strong for h in table.fields[k].hides}
    keys = [k for k in strong or keys if k not in hidden] or keys[:1] or [table.default]
    if table.totals and view.has("category"):
        # "net" of one category is what it comes to
        keys = [table.default]
    return [table.fields[key] for key in keys if key]
