"""Money that moved: totals, counts, averages, extremes, breakdowns, comparisons, shares and lists of transactions."""

import re
from datetime import date
from typing import Any

import msgspec

from answerkey_demo.answers.wording import capital, day, join, money, plural
from answerkey_demo.language.periods import Period
from answerkey_demo.language.reading import Mention, Reading
from answerkey_demo.language.vocabulary import Vocabulary, category_label
from answerkey_demo.language.words import LEXICON
from answerkey_demo.tools.turn import Turn

__all__ = ["Money"]

_ADDRESS = "(SELECT address FROM properties WHERE properties.id = property_id)"
# What totals can be split by → its SQL.
_GROUPS = {
    "month": "substr(date, 1, 7)",
    "quarter": "substr(date, 1, 4) || ' Q' || ((CAST(substr(date, 6, 2) AS INTEGER) + 2) / 3)",
    "year": "substr(date, 1, 4)",
    "property": _ADDRESS,
    "category": "category",
    "party": "party",
    "vendor": "party",
}
_NET = "CASE kind WHEN 'income' THEN amount WHEN 'expense' THEN -amount ELSE 0 END"
_USED = ("category", "group", "kind", "party", "property", "unit", "op", "by")
# Words that a question about money may contain without their meaning anything else.
_FILLER = re.compile(
    r"(?:money|times?|work|job|made|runs?|take|took|taken|went|gone|receiv\w*|give|gave|given|incur\w*|hire\w*|buy|"
    r"bought|generat\w+|produc\w+|perform\w*|return\w*|contribut\w+|paid|pays?|paying|new|long|add\w*|often|rental|"
    r"deposits?|security|property|properties|buildings?|tenants?|members?|operating|total|since|during|bills?|fees?|"
    r"costs?|year|month)$"
)
_BEFORE_GROUP = re.compile(r"\b(?:which|what|by|per|each|every)(?: of)?(?: our| the)?(?: \w+)? $")
_MAX_LISTED, _MAX_EXTREME, _MANY_PAYMENTS = 12, 5, 5


class Selection(msgspec.Struct, frozen=True):
    """Which transactions a question means, in SQL and in words."""

    where: str
    values: list[Any]
    words: str
    # what is added up
    measure: str = "amount"

    def sums(self, columns: str, turn: Turn, rest: str = "") -> list[dict[str, Any]]:
        """Rows of a query over the selected transactions."""
        return turn.rows(
            f"SELECT {columns} FROM transactions WHERE {self.where} {rest}".strip(), *self.values
        )


class Money:
    """Answers from the table transactions."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def unexplained(self, reading: Reading) -> list[int] | None:
        """The words that a question about transactions leaves unexplained; None if it does not ask for them."""
        reading = reading.view(_mine)
        named = any(reading.has(kind) for kind in ("category", "group", "kind"))
        vendors = reading.has("by", "vendor") and reading.has("op", "list")
        extreme = reading.has("op", "most", "least") and reading.has("by", "month", "quarter", "year")
        asked = reading.has("op", "who", "when", "list", "count") or "how much" in reading.text
        detailed = asked and bool(self._details(reading) or reading.has("party"))
        if not (named or vendors or extreme or detailed):
            return None
        left = reading.left(reading.explained(*reading.mentions))
        return [i for i in left if not _FILLER.match(reading.words[i].text)]

    def _details(self, reading: Reading) -> list[int]:
        """The words that stand in descriptions ("boiler", "roof") and mean nothing else."""
        used = reading.explained(*(m for m in reading.mentions if m.kind in _USED))
        return [
            i for i in dict.fromkeys(m.first for m in reading.mentions if m.kind == "text") if i not in used
        ]

    def answer(self, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        """Choose the query by what is asked, run it, and say what it covers. `unknown`: words to find in descriptions."""
        reading = reading.view(_mine)
        details = [*self._details(reading), *unknown]
        if compared := self._compare(reading, turn, details):
            return compared
        chosen = self._select(reading, details)
        columns = f"COUNT(*) AS n, SUM({chosen.measure}) AS total, SUM(amount) FILTER (WHERE kind = 'income') AS income, "
        columns += "SUM(amount) FILTER (WHERE kind = 'expense') AS expense"
        row = chosen.sums(columns, turn)[0]
        if not row["n"]:
            return _nothing(chosen, turn)
        group = self._group(reading)
        superlative = reading.has("op", "most", "least")
        if (
            reading.has("op", "share")
            and reading.has("kind", "income", "expense")
            and reading.has("category")
        ):
            return self._share(reading, row["total"], turn)
        if group and superlative:
            return self._extreme_group(reading, chosen, group, turn)
        if reading.has("op", "average", "monthly", "yearly"):
            return self._average(reading, chosen, turn)
        if group:
            return self._breakdown(chosen, group, row["total"], turn)
        if chosen.measure == _NET:
            parts = f"income of {money(row['income'])} less expenses of {money(row['expense'])}"
            return f"{capital(chosen.words)} is {money(row['total'])}: {parts}."
        if superlative:
            return self._extreme(reading, chosen, turn)
        if reading.has("op", "count"):
            return f"{plural(row['n'], 'transaction')} for {chosen.words}, together {money(row['total'])}."
        amount_asked = re.search(r"\bhow much\b|\btotal\b", reading.text)
        if not amount_asked and reading.has("op", "list", "who", "when", "last", "first"):
            return self._list(reading, chosen, row, turn)
        text = f"{capital(chosen.words)} came to {money(row['total'])} ({plural(row['n'], 'transaction')})."
        if len(_categories(reading)) > 1:
            text += " " + self._breakdown(chosen, "category", row["total"], turn)
        return text

    def _select(self, reading: Reading, details: list[int], period: Period | None = None) -> Selection:
        conditions: list[tuple[str, list[Any]]] = []
        words = _what(reading)

        def one_of(column: str, options: list[str]) -> None:
            conditions.append((f"{column} IN ({', '.join('?' * len(options))})", list(options)))

        categories, parties = _categories(reading), reading.all("party")
        if categories:
            one_of("category", categories)
        elif kinds := self._kinds(reading, details):
            one_of("kind", kinds)
        if parties:
            one_of("party", parties)
            words += f" with {join(parties)}"
        places = reading.all("property")
        units = [u for u in self._vocabulary.units if u["id"] in reading.all("unit")]
        units = [u for u in units if u["property_id"] in places] or units
        if units and not parties:
            either = " OR ".join("(property_id = ? AND description LIKE ?)" for _ in units)
            labels = [v for u in units for v in (u["property_id"], f"%{u['label']}%")]
            conditions.append((f"({either})", labels))
            words += f" of {join([u['label'] for u in units])}"
        elif places:
            one_of("property_id", places)
            words += f" at {join([self._vocabulary.address[p] for p in places])}"
        if details:
            words += f" for {join([f'“{reading.words[i].text}”' for i in details])}"
        conditions += [("description LIKE ?", [f"%{reading.words[i].root}%"]) for i in details]
        conditions += [(f"amount {limit.sign} ?", [limit.amount]) for limit in reading.limits]
        period = period or (reading.periods[0] if reading.periods else None)
        if period:
            conditions.append(("date BETWEEN ? AND ?", [period.start.isoformat(), period.end.isoformat()]))
            words += f" {period.phrase}"
        where = " AND ".join(condition for condition, _ in conditions) or "1 = 1"
        values = [value for _, given in conditions for value in given]
        return Selection(where, values, words, _NET if _is_net(reading) else "amount")

    def _kinds(self, reading: Reading, details: list[int]) -> list[str]:
        """The kinds of transactions that are meant where no category is named; none for all of them."""
        kinds = reading.all("kind")
        if parties := reading.all("party"):
            # a tenant pays us; with a vendor everything counts
            return ["income"] if kinds and set(parties) & self._vocabulary.payers else []
        if _is_net(reading) or {"income", "expense"} <= set(kinds):
            return ["income", "expense"]
        if "expense" in kinds and details:
            return ["expense", "transfer"]
        return kinds[:1] or (["expense"] if reading.has("by", "vendor") else [])

    def _group(self, reading: Reading) -> str | None:
        """What the totals are to be split by."""
        superlative = reading.has("op", "most", "least")
        for mention in [m for m in reading.mentions if m.kind == "by"]:
            before = reading.text[: reading.words[mention.first].start]
            if mention.value == "property" and re.search(r"\b(?:our|the|my) $", before):
                continue
            if superlative and mention.value != "property":
                return mention.value
            if _BEFORE_GROUP.search(before) and not reading.has("op", "average", "monthly", "yearly"):
                return mention.value
        if superlative and re.search(
            r"\bwhat (?:do|did|have) we (?:spend|spent)\b|\bwhere .*money go\b", reading.text
        ):
            return "category"
        return "party" if superlative and reading.has("op", "who") else None

    def _extreme_group(self, reading: Reading, chosen: Selection, group: str, turn: Turn) -> str:
        measure, what = chosen.measure, chosen.words
        if "often" in reading.text:
            measure = "1"
        elif (
            not any(reading.has(kind) for kind in ("kind", "category", "group", "party"))
            and group != "vendor"
        ):
            # "our worst month" is the one with the lowest net income
            measure, what = _NET, what.replace(_what(reading), "net income", 1)
        least = reading.has("op", "least")
        rows = chosen.sums(
            f"{_GROUPS[group]} AS part, ROUND(SUM({measure}), 2) AS total",
            turn,
            f"AND {_GROUPS[group]} IS NOT NULL GROUP BY part ORDER BY total {'ASC' if least else 'DESC'}, part LIMIT 12",
        )
        if not rows:
            return _nothing(chosen, turn)
        shown = [f"{r['total']:.0f} times" if measure == "1" else money(r["total"]) for r in rows]
        parts = [_part(group, r["part"]) for r in rows]
        tied = shown.count(shown[0])
        text = (
            f"For {what}, the {group} with the {'lowest' if least else 'highest'} "
            f"{'count' if measure == '1' else 'total'} is {join(parts[:tied])} with {shown[0]}{' each' if tied > 1 else ''}"
        )
        others = [f"{p} with {s}" for p, s in zip(parts, shown, strict=True)][tied : tied + 2]
        return f"{text}; next {join(others)}." if others else f"{text}."

    def _extreme(self, reading: Reading, chosen: Selection, turn: Turn) -> str:
        least = reading.has("op", "least")
        several = re.search(r"\b(?:expenses|costs|payments|bills|transactions)\b", reading.text)
        entries = _entries(
            chosen, f"amount {'ASC' if least else 'DESC'}, date", _MAX_EXTREME if several else 1, turn
        )
        return f"The {'smallest' if least else 'largest'} of {chosen.words}: {' '.join(entries)}"

    def _average(self, reading: Reading, chosen: Selection, turn: Turn) -> str:
        group = "month" if reading.has("op", "monthly") else "year" if reading.has("op", "yearly") else ""
        grouped = f"GROUP BY {_GROUPS[group]}" if group else "GROUP BY id"
        totals = f"SELECT SUM({chosen.measure}) AS total FROM transactions WHERE {chosen.where} {grouped}"
        row = turn.rows(f"SELECT AVG(total) AS mean, COUNT(*) AS n FROM ({totals})", *chosen.values)[0]
        kind = f"average {group}ly amount" if group else "average"
        return f"The {kind} of {chosen.words} is {money(row['mean'])} over {plural(row['n'], group or 'transaction')}."

    def _breakdown(self, chosen: Selection, group: str, total: float, turn: Turn) -> str:
        order = "part" if group in ("month", "quarter", "year") else "total DESC"
        columns = f"{_GROUPS[group]} AS part, SUM({chosen.measure}) AS total"
        rows = chosen.sums(columns, turn, f"GROUP BY part ORDER BY {order}")
        parts = [f"{_part(group, r['part'])} {money(r['total'])}" for r in rows]
        return f"By {group}, {chosen.words}: {'; '.join(parts)}. Total {money(total)}."

    def _list(self, reading: Reading, chosen: Selection, row: dict[str, Any], turn: Turn) -> str:
        last, first = reading.has("op", "last"), reading.has("op", "first")
        if row["n"] > _MANY_PAYMENTS and reading.has("op", "who") and not last:
            return self._breakdown(chosen, "party", row["total"], turn)
        entries = _entries(
            chosen, f"date {'DESC' if last else 'ASC'}, id", 1 if last or first else _MAX_LISTED, turn
        )
        if len(entries) == 1:
            return entries[0]
        note = f" These are the first {len(entries)} of {row['n']}." if row["n"] > len(entries) else ""
        head = f"{plural(row['n'], 'transaction')} for {chosen.words}, together {money(row['total'])}"
        return f"{head}: {' '.join(entries)}{note}"

    def _share(self, reading: Reading, part: float, turn: Turn) -> str:
        """What part of all income or expenses a category is."""
        whole = self._select(_only(reading, without=("category", "group")), [])
        total = whole.sums("SUM(amount) AS total", turn)[0]["total"]
        if not total:
            return _nothing(whole, turn)
        return f"{part / total:.1%}: {_what(reading)} came to {money(part)}, {whole.words} to {money(total)}."

    def _compare(self, reading: Reading, turn: Turn, details: list[int]) -> str | None:
        """Two periods, properties or categories set against each other."""
        asked = reading.has("op", "change", "compare")
        periods = sorted(reading.periods, key=lambda p: p.start)
        if len(periods) == 1 and asked:
            first, last = periods[0].start.year, periods[0].end.year
            if first == last and reading.has("op", "change"):
                # "Did rent go up in 2025?" compares with the year before
                periods = [periods[0].in_year(first - 1), periods[0]]
            elif first < last < 9999:
                periods = [Period(date(y, 1, 1), date(y, 12, 31), str(y)) for y in (first, last)]
        sides: list[tuple[str, Selection]] = []
        if len(periods) == 2:
            sides = [(p.label, self._select(reading, details, p)) for p in periods]
        elif asked:
            labels = self._vocabulary.address | {c: category_label(c) for c in reading.all("category")}
            kind = next((k for k in ("property", "category") if len(reading.all(k)) == 2), "")
            named = reading.all(kind) if not reading.has("group") else []
            sides = [(labels[value], self._select(_only(reading, kind, value), details)) for value in named]
        if not sides:
            return None
        totals = []
        for _, chosen in sides:
            row = chosen.sums(f"COUNT(*) AS n, SUM({chosen.measure}) AS total", turn)[0]
            if not row["n"]:
                return _nothing(chosen, turn)
            totals.append(float(row["total"]))
        (one, _), (other, _) = sides
        difference = totals[1] - totals[0]
        change = f" ({difference / totals[0]:+.1%})" if totals[0] else ""
        both = "" if asked else f" Both together: {money(sum(totals))}."
        return (
            f"{capital(_what(reading))}: {one} {money(totals[0])}, {other} {money(totals[1])}. That is "
            f"{money(abs(difference))} {'more' if difference >= 0 else 'less'} for {other}{change}.{both}"
        )


def _mine(mention: Mention) -> bool:
    return mention.kind in _USED or (mention.kind == "text" and mention.value == "transactions")


def _only(reading: Reading, kind: str = "", value: str = "", without: tuple[str, ...] = ()) -> Reading:
    """The reading with one of the things of a kind only, or without whole kinds."""
    return reading.view(lambda m: m.kind not in without and (m.kind != kind or m.value == value))


def _categories(reading: Reading) -> list[str]:
    groups = [c for g in reading.all("group") for c in LEXICON["category_groups"][g]["of"]]
    return list(dict.fromkeys([*reading.all("category"), *groups]))


def _is_net(reading: Reading) -> bool:
    return reading.has("kind", "net") and not _categories(reading)


def _what(reading: Reading) -> str:
    """What a question is about, in words."""
    if named := [*reading.all("group"), *map(category_label, reading.all("category"))]:
        return join(named)
    if reading.has("kind", "net"):
        return "net income"
    if reading.has("party") or reading.has("kind", "income") == reading.has("kind", "expense"):
        return "payments" if reading.has("party") else "transactions"
    return "total income" if reading.has("kind", "income") else "total expenses"


def _part(group: str, value: Any) -> str:
    if value is None:
        return "no single property" if group == "property" else "nobody"
    if group == "month":
        return day(f"{value}-01").replace(" 1,", "")
    return category_label(value) if group == "category" else str(value)


def _entries(chosen: Selection, order: str, limit: int, turn: Turn) -> list[str]:
    columns = f"date, {_ADDRESS} AS address, category, amount, party, description"
    return [
        f"{day(r['date'])}: {money(r['amount'])}, {category_label(r['category'])}, {r['party']} ({r['description']})"
        f"{' at ' + r['address'] if r['address'] else ''}."
        for r in chosen.sums(columns, turn, f"ORDER BY {order} LIMIT {limit}")
    ]


def _nothing(chosen: Selection, turn: Turn) -> str:
    known = turn.rows("SELECT MIN(date) AS first, MAX(date) AS last FROM transactions")[0]
    covered = f"The books cover {day(known['first'])} to {day(known['last'])}."
    return f"Not on record: there is no transaction for {chosen.words}. {covered}"
