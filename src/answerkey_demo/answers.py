"""What is answered, and how: facts and figures of the tables, money from the books, quotes from the documents.

`tables.toml` says what the tables have and how people ask for it; nothing here knows a single table. Rows are counted, ordered,
added up, averaged, split and compared.
"""

import math
import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from answerkey_demo.knowledge import sentences
from answerkey_demo.language import (
    LEXICON,
    Mention,
    Period,
    Reading,
    Vocabulary,
    capital,
    category_label,
    content_stems,
    fill_template,
    format_value,
    join,
    money,
    normalise,
    plural,
    stem,
    stems,
)
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


_MAX_EXTREME, _MANY_PAYMENTS = 5, 5
# Asks for what has been done, not for what is still open.
_DONE = re.compile(r"\b(?:did|have|has|was|were|is|are)\b.*\b(?:filed?|renewed|paid|done|completed|tested)\b")
_SEVERAL = re.compile(r"\b(?:expenses|costs|payments|bills|transactions)\b")
_NO_PARTY = "no party in particular"


class Records:
    """Answers from query_database."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def answer(self, name: str, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        """Choose the query by what is asked, run it, and say what it covers. `unknown`: words to find in texts."""
        table, view = TABLES[name], view_of(name, reading)
        words = [*details(view), *unknown]
        if compared := self._compare(table, view, words, turn):
            return compared
        query = Query.of(table, view, self._vocabulary, words)
        if table.totals and view.has("op", "share") and view.has("kind") and view.has("category"):
            whole = Query.of(table, view.view(lambda m: m.kind != "category"), self._vocabulary, [])
            return _share(query, whole, turn)
        still_open = table.open and not _DONE.search(view.text)
        for chosen in [query.also(table.open), query] if still_open else [query]:
            if text := self._describe(chosen, view, turn):
                return text
        return _nothing(query, turn)

    def _describe(self, query: Query, reading: Reading, turn: Turn) -> str | None:
        """What the rows say; None if there are none."""
        table, group = query.table, query.table.splits_by(reading)
        every = "month" if reading.has("op", "monthly") else "year" if reading.has("op", "yearly") else ""
        if group or every in table.groups:
            return _split(query, group or every, reading, turn)
        listed = not table.totals or (lists_entries(reading) and not query.measured.split)
        superlative, in_time = reading.has("op", "most", "least"), reading.has("op", "next", "first", "last")
        if listed and query.measured.measure and (superlative or in_time):
            if reading.has("op", "next") and query.measured.date:
                query = query.also(f"{query.measured.date} >= '{self._vocabulary.knowledge.as_of}'")
            several = table.totals and superlative and _SEVERAL.search(reading.text)
            least = not reading.has("op", "most", "last")
            query = query.extreme(_MAX_EXTREME if several else 1, least=least)
        summed = query.measured
        if summed.form not in ("$", "number"):
            summed = table.fields[table.sums] if table.sums else Field("", "")
        rows = query.figures(turn, summed.column, listed=listed)
        if not rows or not rows[0]["row_count"]:
            return None
        count, total, mean = (rows[0][f"row_{name}"] for name in ("count", "total", "mean"))
        by_whom = table.totals and reading.has("op", "who") and not superlative
        if listed and by_whom and count > _MANY_PAYMENTS:
            return _split(query, "party", reading, turn)
        adjectives = [table.conditions[v.partition(".")[2]].reads for v in reading.all("condition")]
        counted = " ".join([str(count), *adjectives[:1], table.one if count == 1 else table.many])
        counted += f" for {query.words}" if table.totals else ""
        head = counted if count > 1 or reading.has("op", "count") else ""
        if reading.has("op", "average") and mean:
            head = f"On average {format_value(mean, summed.form)} over {counted}"
        elif table.totals and superlative and listed:
            head = f"The {'smallest' if reading.has('op', 'least') else 'largest'} of {query.words}"
        elif (count > 1 or not listed) and total and not superlative and not in_time:
            head = f"{counted}, together {format_value(total, summed.form)}"
        if listed:
            return f"{head}: {_entries(query, rows)}" if head else _entries(query, rows)
        if reading.has("op", "average", "count"):
            return f"{head}."
        text = f"{capital(query.words)} came to {money(total)} ({plural(count, table.one)})."
        split = query.measured.split or ("category" if len(reading.all("category")) > 1 else "")
        amounts = msgspec.structs.replace(query, measured=table.fields[table.default])
        return f"{text} By {split}: {_listed(_parts(amounts, split, turn))}." if split else text

    def _compare(self, table: Table, reading: Reading, words: list[int], turn: Turn) -> str | None:
        """Two periods, properties or categories set against each other; None if nothing is compared."""
        asked = reading.has("op", "change", "compare")
        if not table.totals and not (asked and table.requested_fields(reading)[0].form == "$"):
            return None
        query = Query.of(table, reading, self._vocabulary, words)
        periods = sorted(reading.periods, key=lambda p: p.start)
        if len(periods) == 1 and asked:
            first, last = periods[0].start.year, periods[0].end.year
            if first == last and reading.has("op", "change"):
                # "Did rent go up in 2025?" compares with the year before
                periods = [periods[0].in_year(first - 1), periods[0]]
            elif first < last < 9999:
                periods = [Period(date(y, 1, 1), date(y, 12, 31), str(y)) for y in (first, last)]
        kind = next((k for k in ("property", "category") if asked and len(reading.all(k)) == 2), "")
        sides: list[tuple[str, float]] = []
        if len(periods) == 2:
            for period in periods:
                query = Query.of(table, reading, self._vocabulary, words, period)
                row = query.rows(turn, f"COUNT(*) AS n, SUM({query.measured.column}) AS total")[0]
                if not row["n"]:
                    return _nothing(query, turn)
                sides.append((period.label, row["total"]))
        elif kind in table.groups:
            sides = [(part, total) for part, _, total in _parts(query, kind, turn)]
        if len(sides) != 2:
            return None
        (one, before), (other, after) = sides
        change = f"{money(abs(after - before))} {'more' if after >= before else 'less'} for {other}"
        change += f" ({(after - before) / before:+.1%})" if before else ""
        both = "" if asked else f" Both together: {money(before + after)}."
        amounts = f"{one} {money(before)}, {other} {money(after)}"
        return f"{capital(query.about)}: {amounts}. That is {change}.{both}"


def _entries(query: Query, rows: list[dict[str, Any]]) -> str:
    """A sentence for each row."""
    facts = [(row["row_label"], join([fill_template(f.reads, row) for f in query.fields])) for row in rows]
    text, count = " ".join(f"{label} {fact}".strip() + "." for label, fact in facts), rows[0]["row_count"]
    return f"{text} These are the first {len(rows)} of {count}." if count > len(rows) else text


def _parts(query: Query, group: str, turn: Turn) -> list[tuple[str, int, float]]:
    """Name, number of rows and total of each part; in the order of time, or the largest first."""
    order = "part" if group in ("month", "quarter", "year") else "total DESC, part"
    total = f"ROUND(SUM({query.measured.column}), 2) AS total"
    columns = f"{query.table.groups[group]} AS part, COUNT(*) AS n, {total}"
    rows = query.rows(turn, columns, f"GROUP BY part ORDER BY {order}")
    return [(_part_name(group, row["part"]), row["n"], row["total"]) for row in rows]


def _part_name(group: str, part: str | None) -> str:
    if part and group == "month":
        return format_value(f"{part}-01", "date").replace(" 1,", "")
    return format_value(part, "category" if group == "category" else "") if part else _NO_PARTY


def _listed(parts: list[tuple[str, int, float]]) -> str:
    return "; ".join(f"{part} {money(total)}" for part, _, total in parts)


def _split(query: Query, group: str, reading: Reading, turn: Turn) -> str | None:
    """The totals by group: the highest or lowest, their average, or all of them."""
    parts = _parts(query, group, turn)
    if not parts:
        return None
    whole = sum(total for _, _, total in parts)
    if not reading.has("op", "most", "least"):
        if reading.has("op", "average", "monthly", "yearly"):
            mean = f"{money(whole / len(parts))} over {plural(len(parts), group)}"
            return f"The average {group}ly amount of {query.words} is {mean}."
        return f"By {group}, {query.words}: {_listed(parts)}. Total {money(whole)}."
    least, often = reading.has("op", "least"), "often" in reading.text
    known = [(n if often else total, part) for part, n, total in parts if part != _NO_PARTY]
    if not known:
        return None
    known.sort(key=lambda pair: pair[0] if least else -pair[0])
    totals = [(plural(int(value), "time") if often else money(value), part) for value, part in known]
    best = [part for value, part in totals if value == totals[0][0]]
    others = join([f"{part} with {value}" for value, part in totals[len(best) : len(best) + 2]])
    rank = f"{'lowest' if least else 'highest'} {'count' if often else 'total'}"
    first = f"{join(best)} with {totals[0][0]}{' each' if len(best) > 1 else ''}"
    return f"For {query.words}, the {group} with the {rank} is {first}{f'; next {others}' if others else ''}."


def _share(part: Query, whole: Query, turn: Turn) -> str:
    """What part of all income or expenses a category is."""
    one, all_ = (q.rows(turn, f"SUM({q.measured.column}) AS total")[0]["total"] for q in (part, whole))
    if not one or not all_:
        return _nothing(part, turn)
    return f"{one / all_:.1%}: {part.words} came to {money(one)}, {whole.words} to {money(all_)}."


def _nothing(query: Query, turn: Turn) -> str:
    text, covers = f"Not on record: there is no entry for {query.words}", query.table.covers
    if not covers:
        return f"{text}."
    row = turn.rows(f"SELECT MIN({covers}) AS first, MAX({covers}) AS last FROM {query.table.rows}")[0]
    return f"{text}; the records cover {format_value(row['first'], 'date')} to {format_value(row['last'], 'date')}."


_Row = dict[str, Any]
# The share of the question's weighty words that a passage must contain.
_COVERAGE = 0.55
# What a passage gains that says what the thing is, where that is the question.
_DEFINITION = 0.1
# A second passage is quoted too if it matches nearly as well.
_AS_GOOD = 0.91
_QUOTE_WORDS = 75
_ASKING = frozenset(map(stem, LEXICON["words"]["asking"].split()))
_SYNONYMS: dict[str, str] = {stem(said): meant for said, meant in LEXICON["papers"].items()}
_WHICH = ("content", "type", "op", "property", "unit", "category", "by", "subject")
_ON_FILE = re.compile(r"\b(?:on file|paperwork|do we have|did we have|do you have|are there)\b")


class Papers:
    """Answers from search_document_content and list_business_documents."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._passages = vocabulary.knowledge.passages

    def asks_which(self, reading: Reading) -> bool:
        """Whether the question is which documents there are."""
        view = reading.view(lambda m: m.kind in _WHICH)
        others = {reading.words[i].text for i in view.left(view.explained(*view.mentions))}
        if reading.has("content", "mention", "says") or others - {"meeting", "annual", "addresses"}:
            return False
        if not re.search(r"\b(?:which|what|list|show|all|any|how many|have|give)\b", reading.text):
            return False
        # "policies" or "minutes", or on file: asks which there are, not what one says
        several = any(reading.words[m.end - 1].text.endswith("s") for m in view.mentions if m.kind == "type")
        listed = several and re.search(r"\b(?:list|show|all|which)\b", reading.text)
        typed = view.has("type") and bool(listed or _ON_FILE.search(reading.text))
        return typed or view.has("content", "files")

    def catalogue(self, reading: Reading, turn: Turn) -> str:
        """The documents on file by type, property and year."""
        types, words = {d["type"] for d in self._vocabulary.documents}, [w.stem for w in reading.words]
        named = reading.all("type") or [t for t in sorted(types) if stem(t) in words]
        years = {day.year for period in reading.periods[:1] for day in (period.start, period.end)}
        given: dict[str, Any] = {"type": named, "property_id": reading.all("property"), "year": list(years)}
        arguments = {name: values[0] for name, values in given.items() if len(values) == 1}
        found = turn.use("list_business_documents", **arguments)["documents"]
        if not found:
            return f"Not on record: none of the {len(self._vocabulary.documents)} documents on file is of that kind."
        kind = f" of the type {arguments['type']}" if "type" in arguments else ""
        return f"{plural(len(found), 'document')}{kind} on file: {'; '.join(d['title'] for d in found)}."

    def quote(self, reading: Reading, turn: Turn) -> str:
        """Quote the best passages, or say that the documents do not have it."""
        which = re.search(r"\b(?:which|what|any|list|all|where)\b", reading.text)
        if which and reading.has("content", "mention"):
            return self._mentions(reading, turn)
        words, document = self._topic(reading), self._document_in_question(reading)
        if document and not words:
            return self._contents(document, turn)
        query = " ".join([reading.original, *(_SYNONYMS[w] for w in words if w in _SYNONYMS)])
        narrow: dict[str, Any] = {"document_id": document["id"]} if document else {}
        if not document and len(reading.all("type")) == 1:
            narrow = {"type": reading.all("type")[0]}
        # where the document that was named does not have it, perhaps another one does
        for narrowed in [narrow, {}] if narrow else [{}]:
            passages = turn.use("search_document_content", query=query, **narrowed)["passages"]
            if good := self._about(reading, passages, words):
                return " ".join(_quote(p, words) for score, p in good[:2] if score >= _AS_GOOD * good[0][0])
        topic = join([f"“{w.text}”" for w in reading.words if w.stem in words][:4]) or "that"
        return (
            f"Not on record: I searched all {len(self._vocabulary.documents)} documents and none of them answers this "
            f"about {topic}. I would rather not guess; if the paper exists, add it to the files."
        )

    def _document_in_question(self, reading: Reading) -> dict[str, Any] | None:
        """The one document that is meant: by title, or by type and the property, unit, tenant or year named too."""
        titled = [m for m in reading.mentions if m.kind == "document"]
        longest = max((m.end - m.first for m in titled), default=0)
        named = [m.value for m in titled if m.end - m.first == longest]
        papers = self._vocabulary.documents
        candidates = [d for d in papers if d["id"] in named or (not named and reading.has("type", d["type"]))]
        units = self._vocabulary.units
        homes = [u for u in units if reading.has("unit", u["id"]) or reading.has("party", u["tenant"])]
        places = {*reading.all("property"), *(u["property_id"] for u in homes)}
        said = [[normalise(u["label"]) for u in homes], [str(p.start.year) for p in reading.periods]]
        asked = content_stems(reading.text)

        def fit(document: dict[str, Any]) -> tuple[bool, bool, bool, int]:
            title = normalise(document["title"])
            label, year = (any(name in title for name in names) for names in said)
            return document["property_id"] in places, label, year, len(content_stems(title) & asked)

        best = max(map(fit, candidates), default=None)
        fitting = [d for d in candidates if fit(d) == best]
        return fitting[0] if len(fitting) == 1 else None

    def _topic(self, reading: Reading) -> list[str]:
        """The stems that the question is about: not whose document it is, not the way of asking."""
        names = ("document", "type", "party", "unit", "property")
        named = reading.explained(*(m for m in reading.mentions if m.kind in names))
        content = [i for i in reading.left(set()) if reading.words[i].stem not in _ASKING]
        own = [i for i in content if i not in named]
        chosen = own or ([] if reading.has("document") else content)
        return list(dict.fromkeys(reading.words[i].stem for i in chosen))

    def _about(self, reading: Reading, passages: list[_Row], words: list[str]) -> list[tuple[float, _Row]]:
        """The passages that are about the question, with how well they match; the best first."""
        if not words:
            return [(p["score"], p) for p in passages[:1]]
        corpus, size = self._vocabulary.corpus, len(self._passages)
        same = {w: {w, *stems(_SYNONYMS.get(w, ""))} for w in words}
        weights = {w: math.log(1 + size / (max(corpus[s] for s in same[w]) or 0.5)) for w in words}
        # a sentence that says what one of the words is: "The seller was …"
        either, good = "|".join(map(re.escape, words)), []
        defining = re.compile(
            rf"\b(?:{either})\w* (?:is|was|are|were) |\b(?:is|was|are|were) the (?:{either})"
        )
        asks_what = re.search(r"\b(?:who|what)\b", reading.text)
        for passage in passages:
            text = content_stems(f"{passage['title']} {passage['heading']} {passage['text']}")
            coverage = sum(weights[w] for w in words if same[w] & text) / sum(weights.values())
            if coverage >= _COVERAGE:
                defines = asks_what and defining.search(normalise(passage["text"]))
                score = coverage * 0.5 + passage["score"] * 0.5 + (_DEFINITION if defines else 0)
                good.append((score, passage))
        return sorted(good, key=lambda pair: -pair[0])

    def _contents(self, document: dict[str, Any], turn: Turn) -> str:
        """What a document has, section by section."""
        title, narrow = document["title"], {"document_id": document["id"], "limit": 20}
        found = turn.use("search_document_content", query=title, **narrow)["passages"]
        order = [p["text"] for p in self._passages]
        found = sorted(found, key=lambda p: order.index(p["text"]))
        lines = [f"{p['heading'] or 'Opening'}: {sentences(p['text'])[0]}" for p in found]
        return f"{title} has {plural(len(found), 'section')}. {' '.join(lines)}"

    def _mentions(self, reading: Reading, turn: Turn) -> str:
        """Which documents mention a property, all of them, or some other thing."""
        addresses = self._vocabulary.address
        places = [addresses[p] for p in reading.all("property")]
        if not places and re.search(r"\b(?:propert(?:y|ies)|buildings?|them|it)\b", reading.text):
            places = list(addresses.values())
        # the street without number and suffix is how the documents may call it
        wanted = {place: normalise(place).split()[-2] for place in places}
        if not wanted:
            topic = " ".join(w.text for w in reading.words if w.stem in self._topic(reading))
            wanted = {topic: topic}
        lines = []
        for label, core in wanted.items():
            found = turn.use("search_document_content", query=core or reading.original, limit=20)["passages"]
            texts = [(p["title"], normalise(f"{p['title']} {p['heading']} {p['text']}")) for p in found]
            titles = dict.fromkeys(title for title, text in texts if core in text)
            where = f"is mentioned in {plural(len(titles), 'document')}: {'; '.join(titles)}"
            lines.append(f"{label} {where}." if titles else f"Not on record: no document mentions {label}.")
        return " ".join(lines)


def _quote(passage: dict[str, Any], words: list[str]) -> str:
    """The passage with its source; of a long one the sentences from the best one on."""
    where = f"{passage['title']} ({passage['heading']})" if passage["heading"] else passage["title"]
    parts = sentences(passage["text"])
    if len(passage["text"].split()) > _QUOTE_WORDS:
        scores = [len(content_stems(sentence) & set(words)) for sentence in parts]
        parts = parts[scores.index(max(scores)) :]
        while len(parts) > 1 and len(" ".join(parts).split()) > _QUOTE_WORDS:
            parts.pop()
    return f"{where} says: “{' '.join(parts)}”"
