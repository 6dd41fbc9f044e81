"""Money that moved: totals, counts, averages, extremes, breakdowns, comparisons, shares and lists of transactions."""

import re
from datetime import date
from os.path import commonprefix
from typing import Any

import msgspec

from answerkey_demo.answers.wording import day, join, money, plural
from answerkey_demo.language.periods import Period
from answerkey_demo.language.reading import Mention, Reading
from answerkey_demo.language.vocabulary import LEXICON, Vocabulary, category_label
from answerkey_demo.tools.toolbox import Turn

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
}
_NET = "CASE kind WHEN 'income' THEN amount WHEN 'expense' THEN -amount ELSE 0 END"
_USED = ("category", "group", "kind", "party", "property", "unit", "op", "by")
# Words that a question about money may contain without their meaning anything else.
_FILLER = re.compile(
    r"(?:money|time|times|work|job|made|take|took|taken|went|gone|receiv\w*|give|gave|given|incur\w*|hire\w*|buy|bought|"
    r"generat\w+|produc\w+|perform\w*|return\w*|contribut\w+|paid|pays?|paying|new|long|so|add\w*|often|rental|deposits?|security|"
    r"property|properties|buildings?|tenants?|members?|operating|company's|total|since|during|have|bills?|fees?|costs?|year|month)$"
)
_MAX_LISTED = 12


class Selection(msgspec.Struct, frozen=True):
    """Which transactions a question means, in SQL and in words."""

    where: str
    values: list[Any]
    words: str
    # what is added up
    measure: str = "amount"


class Money:
    """Answers from the table transactions."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def unexplained(self, reading: Reading) -> list[int] | None:
        """The words that a question about transactions does not account for; None if it does not ask for them."""
        reading = reading.view(_mine)
        named = any(reading.has(kind) for kind in ("category", "group", "kind"))
        asked = reading.has("op", "who", "when", "list", "count") or "how much" in reading.text
        extreme = reading.has("op", "most", "least") and reading.has("by", "month", "quarter", "year")
        if not named and not extreme and not (asked and (self._details(reading) or reading.has("party"))):
            return None
        explained = reading.explained(*reading.mentions)
        return [i for i in reading.left(explained) if not _FILLER.match(reading.words[i].text)]

    def _details(self, reading: Reading) -> list[int]:
        """The words that stand in descriptions ("boiler", "roof") and mean nothing else."""
        used = reading.explained(*(m for m in reading.mentions if m.kind in _USED))
        found = [m.first for m in reading.mentions if m.kind == "text"]
        return [i for i in dict.fromkeys(found) if i not in used]

    def answer(self, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        """Choose the query by what is asked, run it, and say what it covers. `unknown`: further words to find in descriptions."""
        reading = reading.view(_mine)
        details = [*self._details(reading), *unknown]
        if compared := self._compare(reading, turn, details):
            return compared
        chosen = self._select(reading, details)
        row = turn.rows(
            f"SELECT COUNT(*) AS n, SUM({chosen.measure}) AS total, SUM(amount) FILTER (WHERE kind = 'income') AS income, "
            f"SUM(amount) FILTER (WHERE kind = 'expense') AS expense FROM transactions WHERE {chosen.where}",
            *chosen.values,
        )[0]
        if not row["n"]:
            return _nothing(chosen, turn)
        group = self._group(reading)
        superlative = reading.has("op", "most", "least")
        if reading.has("op", "share") and reading.has("kind", "income", "expense") and reading.has("category"):
            return self._share(reading, turn)
        if group and superlative:
            return self._extreme_group(reading, chosen, group, turn)
        if reading.has("op", "average", "monthly", "yearly") and not reading.has("kind", "net"):
            return self._average(reading, chosen, turn)
        if group:
            return self._breakdown(chosen, group, row["total"], turn)
        if reading.has("kind", "net") and not reading.has("category"):
            return (
                f"Net income{chosen.words} is {money(row['total'])}: income of {money(row['income'])} less expenses of "
                f"{money(row['expense'])}."
            )
        if superlative:
            order = f"amount {'ASC' if reading.has('op', 'least') else 'DESC'}, date"
            entries = self._entries(chosen, order, 1, turn)
            return f"The {'smallest' if reading.has('op', 'least') else 'largest'} of {chosen.words}: {entries[0]}"
        if reading.has("op", "count"):
            return f"{plural(row['n'], 'transaction')} for {chosen.words}, together {money(row['total'])}."
        if not re.search(r"\bhow much\b|\btotal\b", reading.text) and reading.has("op", "list", "who", "when", "last", "first"):
            return self._list(reading, chosen, row, turn)
        text = f"{chosen.words[0].upper()}{chosen.words[1:]} came to {money(row['total'])} ({plural(row['n'], 'transaction')})."
        if len(self._categories(reading)) > 1:
            text += " " + self._breakdown(chosen, "category", row["total"], turn)
        return text

    def _categories(self, reading: Reading) -> list[str]:
        groups = [c for g in reading.all("group") for c in LEXICON["category_groups"][g]["of"]]
        return list(dict.fromkeys([*reading.all("category"), *groups]))

    def _select(self, reading: Reading, details: list[int], period: Period | None = None) -> Selection:
        where, values = ["1 = 1"], list[Any]()

        def one_of(column: str, options: list[str]) -> None:
            where.append(f"{column} IN ({', '.join('?' * len(options))})")
            values.extend(options)

        categories, parties, units = self._categories(reading), reading.all("party"), reading.all("unit")
        kinds = reading.all("kind")
        net = "net" in kinds and not categories
        words = "" if net else self._what(reading)
        if categories:
            one_of("category", categories)
        elif parties:
            payers = [p for p in parties if p in self._vocabulary.payers]
            where.append("kind = 'income'" if payers and kinds else "1 = 1")
        elif net or ("income" in kinds and "expense" in kinds):
            where.append("kind IN ('income', 'expense')")
        elif kinds:
            where.append("kind = 'income'" if "income" in kinds else "kind <> 'income'" if details else "kind = 'expense'")
        if parties:
            one_of("party", parties)
            words += f" with {join(parties)}"
        if units and not parties:
            known = [u for u in self._vocabulary.units if u["id"] in units]
            places = reading.all("property")
            known = [u for u in known if u["property_id"] in places] or known
            where.append("(" + " OR ".join("(property_id = ? AND description LIKE ?)" for _ in known) + ")")
            values += [v for u in known for v in (u["property_id"], f"%{u['label']}%")]
            words += f" of {join([u['label'] for u in known])}"
        elif places := reading.all("property"):
            one_of("property_id", places)
            words += f" at {join([self._vocabulary.address[p] for p in places])}"
        if details:
            words += f" for {join([f'“{reading.words[i].text}”' for i in details])}"
        for i in details:
            where.append("description LIKE ?")
            values.append(f"%{commonprefix([reading.words[i].stem, reading.words[i].text])}%")
        for limit in reading.limits:
            where.append(f"amount {limit.sign} ?")
            values.append(limit.amount)
        period = period or (reading.periods[0] if reading.periods else None)
        if period:
            where.append("date BETWEEN ? AND ?")
            values += [period.start.isoformat(), period.end.isoformat()]
            words += f" {period.phrase}"
        return Selection(" AND ".join(where), values, words, _NET if net else "amount")

    def _what(self, reading: Reading) -> str:
        groups, categories = reading.all("group"), reading.all("category")
        if groups or categories:
            return join([*groups, *map(category_label, categories)])
        if reading.has("party") or reading.has("kind", "income") == reading.has("kind", "expense"):
            return "payments" if reading.has("party") else "transactions"
        return "total income" if reading.has("kind", "income") else "total expenses"

    def _group(self, reading: Reading) -> str | None:
        """What the totals are to be split by."""
        superlative = reading.has("op", "most", "least")
        for mention in reading.mentions:
            if mention.kind != "by":
                continue
            before = reading.text[: reading.words[mention.first].start]
            asked = re.search(r"\b(?:which|what|by|per|each|every)(?: of)?(?: our| the)?(?: \w+)? $", before)
            if mention.value == "property" and re.search(r"\b(?:our|the|my) $", before):
                asked = None
            elif superlative and mention.value != "property":
                return mention.value
            if asked and not reading.has("op", "average", "monthly", "yearly"):
                return mention.value
        if superlative and re.search(r"\bwhat (?:do|did|have) we (?:spend|spent)\b|\bwhere .*money go\b", reading.text):
            return "category"
        return "party" if superlative and reading.has("op", "who") else None

    def _extreme_group(self, reading: Reading, chosen: Selection, group: str, turn: Turn) -> str:
        least = reading.has("op", "least")
        net = chosen.measure == "amount" and not reading.has("kind") and not self._categories(reading)
        # "our worst month" is the one with the lowest net income
        measure = _NET if net and not reading.has("party") else chosen.measure
        if "often" in reading.text:
            measure = "1"
        rows = turn.rows(
            f"SELECT {_GROUPS[group]} AS part, ROUND(SUM({measure}), 2) AS total FROM transactions WHERE {chosen.where} AND "
            f"{_GROUPS[group]} IS NOT NULL GROUP BY part ORDER BY total {'ASC' if least else 'DESC'}, part LIMIT 12",
            *chosen.values,
        )
        if not rows:
            return _nothing(chosen, turn)
        best = [r for r in rows if r["total"] == rows[0]["total"]]
        shown = [f"{r['total']:.0f} times" if measure == "1" else money(r["total"]) for r in rows]
        what = f"net income{chosen.words}" if chosen.measure == _NET else chosen.words
        if measure == _NET != chosen.measure:
            what = "net income" + chosen.words.removeprefix(self._what(reading))
        text = (
            f"For {what}, the {group} with the {'lowest' if least else 'highest'} {'count' if measure == '1' else 'total'} is "
            f"{join([_part(group, r['part']) for r in best])} with {shown[0]}{' each' if len(best) > 1 else ''}"
        )
        others = [f"{_part(group, r['part'])} with {s}" for r, s in zip(rows, shown, strict=True) if r not in best][:2]
        return f"{text}; next {join(others)}." if others else f"{text}."

    def _average(self, reading: Reading, chosen: Selection, turn: Turn) -> str:
        group = "month" if reading.has("op", "monthly") else "year" if reading.has("op", "yearly") else None
        source = f"(SELECT SUM(amount) AS amount FROM transactions WHERE {chosen.where} GROUP BY {_GROUPS[group]})" if group else (
            f"transactions WHERE {chosen.where}"
        )
        row = turn.rows(f"SELECT AVG(amount) AS mean, COUNT(*) AS n FROM {source}", *chosen.values)[0]
        kind = f"average {group}ly amount" if group else "average"
        return f"The {kind} of {chosen.words} is {money(row['mean'])} over {plural(row['n'], group or 'transaction')}."

    def _breakdown(self, chosen: Selection, group: str, total: float, turn: Turn) -> str:
        order = "part" if group in ("month", "quarter", "year") else "total DESC"
        rows = turn.rows(
            f"SELECT {_GROUPS[group]} AS part, SUM({chosen.measure}) AS total FROM transactions WHERE {chosen.where} "
            f"GROUP BY part ORDER BY {order}",
            *chosen.values,
        )
        parts = [f"{_part(group, r['part'])} {money(r['total'])}" for r in rows]
        what = chosen.words if chosen.measure == "amount" else f"net income{chosen.words}"
        return f"By {group}, {what}: {'; '.join(parts)}. Total {money(total)}."

    def _entries(self, chosen: Selection, order: str, limit: int, turn: Turn) -> list[str]:
        rows = turn.rows(
            f"SELECT date, {_ADDRESS} AS address, category, amount, party, description FROM transactions "
            f"WHERE {chosen.where} ORDER BY {order} LIMIT {limit}",
            *chosen.values,
        )
        return [
            f"{day(r['date'])}: {money(r['amount'])}, {category_label(r['category'])}, {r['party']} ({r['description']})"
            f"{' at ' + r['address'] if r['address'] else ''}."
            for r in rows
        ]

    def _list(self, reading: Reading, chosen: Selection, row: dict[str, Any], turn: Turn) -> str:
        last = reading.has("op", "last") or re.search(r"\blast (?:paid|pay|time|payment)\b", reading.text) is not None
        if row["n"] > _MAX_LISTED and reading.has("op", "who") and not last:
            return self._breakdown(chosen, "party", row["total"], turn)
        one = last or reading.has("op", "first")
        entries = self._entries(chosen, f"date {'DESC' if last else 'ASC'}, id", 1 if one else _MAX_LISTED, turn)
        if len(entries) == 1:
            return entries[0]
        note = f" These are the first {len(entries)} of {row['n']}." if row["n"] > len(entries) else ""
        return (
            f"{plural(row['n'], 'transaction')} for {chosen.words}, together {money(row['total'])}: {' '.join(entries)}{note}"
        )

    def _share(self, reading: Reading, turn: Turn) -> str:
        """What part of all income or expenses a category is."""
        kind = "income" if reading.has("kind", "income") else "expense"
        whole = self._select(_only(reading, without=("category", "group")), [])
        part = self._select(reading, [])
        totals = [
            turn.rows(f"SELECT SUM(amount) AS total FROM transactions WHERE {s.where}", *s.values)[0]["total"] or 0
            for s in (part, whole)
        ]
        if not totals[1]:
            return _nothing(whole, turn)
        of = "income" if kind == "income" else "expenses"
        return f"{totals[0] / totals[1]:.1%}: {part.words} came to {money(totals[0])}, total {of} to {money(totals[1])}."

    def _compare(self, reading: Reading, turn: Turn, details: list[int]) -> str | None:
        """Two periods, properties or categories set against each other."""
        asked = reading.has("op", "change", "compare") or re.search(r"\bthan\b|\bmore\b.*\bor\b", reading.text) is not None
        periods = sorted(reading.periods, key=lambda p: p.start)
        if asked and len(periods) == 1 and periods[0].start.year < periods[0].end.year < 9999:
            first, last = periods[0].start.year, periods[0].end.year
            periods = [Period(date(y, 1, 1), date(y, 12, 31), str(y)) for y in (first, last)]
        sides: list[tuple[str, Selection]] = []
        if len(periods) == 2:
            sides = [(p.label, self._select(reading, details, p)) for p in periods]
        else:
            for kind in ("property", "category"):
                named = reading.all(kind)
                if len(named) == 2 and not reading.has("group") and asked:
                    label = self._vocabulary.address.get if kind == "property" else category_label
                    sides = [
                        (str(label(value)), self._select(_only(reading, kind, value), details)) for value in named
                    ]
        if len(sides) != 2:
            return None
        totals = []
        for _, chosen in sides:
            row = turn.rows(
                f"SELECT COUNT(*) AS n, SUM({chosen.measure}) AS total FROM transactions WHERE {chosen.where}", *chosen.values
            )[0]
            if not row["n"]:
                return _nothing(chosen, turn)
            totals.append(float(row["total"]))
        (first_label, chosen), (second_label, _) = sides
        difference = totals[1] - totals[0]
        change = f" ({difference / totals[0]:+.1%})" if totals[0] else ""
        what = "net income" if chosen.measure == _NET else self._what(reading)
        both = "" if asked else f" Both together: {money(sum(totals))}."
        return (
            f"{what[0].upper()}{what[1:]}: {first_label} {money(totals[0])}, {second_label} {money(totals[1])}. That is "
            f"{money(abs(difference))} {'more' if difference >= 0 else 'less'} for {second_label}{change}.{both}"
        )


def _mine(mention: Mention) -> bool:
    return mention.kind in _USED or (mention.kind == "text" and mention.value == "transactions")


def _only(reading: Reading, kind: str = "", value: str = "", without: tuple[str, ...] = ()) -> Reading:
    """The reading with one of the things of a kind only, or without whole kinds."""

    def keep(m: Mention) -> bool:
        return m.kind not in without and (m.kind != kind or m.value == value)

    return msgspec.structs.replace(reading, mentions=[m for m in reading.mentions if keep(m)])


def _part(group: str, value: Any) -> str:
    if value is None:
        return "no single property" if group == "property" else "nobody"
    if group == "month":
        return day(f"{value}-01").replace(" 1,", "")
    return category_label(value) if group == "category" else str(value)


def _nothing(chosen: Selection, turn: Turn) -> str:
    known = turn.rows("SELECT MIN(date) AS first, MAX(date) AS last FROM transactions")[0]
    words = chosen.words.strip() if chosen.measure == "amount" else f"income and expenses{chosen.words}"
    return (
        f"Not on record: there is no transaction for {words}. "
        f"The books cover {day(known['first'])} to {day(known['last'])}."
    )
