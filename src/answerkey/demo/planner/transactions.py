"""Money that moved: sums, counts, averages, extremes, breakdowns, comparisons and lists of transactions."""

from datetime import date
from typing import Any

import msgspec

from answerkey.demo.language.lexicon import category_label
from answerkey.demo.language.periods import Period
from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.wording import day, join, money, plural

__all__ = ["Transactions"]

_COUNT = r"how many|number of|how often|count"
_AVERAGE = r"averages?|mean|typical(?:ly)?|on average"
_LARGEST = r"largest|biggest|highest|most(?: expensive)?|greatest|max(?:imum)?|top|best|costliest"
_SMALLEST = r"smallest|lowest|least|min(?:imum)?|cheapest|worst|weakest"
_BREAKDOWN = r"break(?:down| down)|broken down|split|itemi[sz]e[d]?|separately|by|per|each|for every"
_COMPARE = (
    r"compar\w+|vs\.?|versus|differen\w+|than|chang\w+|increas\w+|decreas\w+|grew|growth|rose|"
    r"fell|drop(?:ped)?|up or down|go up|gone up|went up|more or less"
)
_LIST = (
    r"list|show|(?:which|what) (?:\w+ )?(?:payments|transactions|repairs|improvements|expenses|bills)|"
    r"itemi[sz]e|transactions"
)
_WHO = r"who|whom|which (?:vendor|contractor|plumber|company|party|supplier|insurer|firm)|to which"
_WHEN = r"when|what date|which day|on what day|last time"
_WHAT_FOR = r"what (?:was|were|is) (?:it|that|they) for|what for|what did .* do"
_GROUPS = {
    "month": (r"months?", "substr(date, 1, 7)"),
    "quarter": (
        r"quarters?",
        "substr(date, 1, 4) || ' Q' || ((CAST(substr(date, 6, 2) AS INTEGER) + 2) / 3)",
    ),
    "year": (r"years?|annual(?:ly)?|yearly", "substr(date, 1, 4)"),
    "property": (r"propert(?:y|ies)|buildings?", "property_id"),
    "category": (
        r"categor(?:y|ies)|expense types?|kinds? of expenses?|types? of expenses?|what (?:do|did) we spend",
        "category",
    ),
    "party": (
        (
            r"vendors?|contractors?|part(?:y|ies)|suppliers?|compan(?:y|ies)|payees?|tenants?|"
            r"members?|owners?|firms?"
        ),
        "party",
    ),
}
_FILLER = (
    r"total|altogether|sum|amount(?:ed)?|money|much|cost(?:s|ed)?|spen[dt]|spending|paid|"
    r"pay(?:s|ing|ments?)?|payments?|charges?|charged|receiv\w+|collect\w*|earn\w*|"
    r"bring|brought|make|made|transactions?|expenses?|expens\w+|income|revenues?|single|bills?|"
    r"invoices?|fees?|one|month(?:ly|s)?|year(?:ly|s)?|annual(?:ly)?|quarter(?:ly|s)?|"
    r"entire|whole|full|propert(?:y|ies)|buildings?|rentals?|tenants?|members?|owners?|vendors?|"
    r"contractors?|compan(?:y|ies)|llc|book(?:ed)?|recorded|come|came|take|took|go|went|gone|"
    r"combined|together|across|operating|gross|rental|rate|time|times|happen\w*|was|"
    r"percent(?:age)?|share|portion|last|generat\w+|produc\w+|perform\w*|"
    r"categor(?:y|ies)|each|work|jobs?|done|had|during|over|incur\w*|hired?|buy|bought|"
    r"purchased?|portfolio|between|long|refund\w*|return\w*|deposit\w*|received|collected|"
    r"contribut\w+|distribut\w+|sent|billed|put|give|gave|service|suppl(?:y|ier|iers)|figure|average"
)
_KNOWN = "|".join([_FILLER, _COUNT, _AVERAGE, _LARGEST, _SMALLEST, _BREAKDOWN, _COMPARE, _LIST, _WHO, _WHEN])
_SLOTS = ("properties", "periods", "categories", "kind", "parties", "units")


class _Filter(msgspec.Struct, frozen=True):
    """The conditions of a query, in SQL and in words."""

    where: str
    values: list[Any]
    words: str


class Transactions:
    """Answers from the table transactions."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs a category, a kind of money or a party; documents and units are other skills' matter."""
        if not (
            u.categories
            or u.kind
            or (
                u.parties
                and u.has(
                    r"paid|pay|spen[dt]|receiv\w+|cost|transactions?|payments?|charge[ds]?|"
                    r"contribut\w+|get|got"
                )
            )
            or u.has(r"transactions?|payments?")
            or ("details" in u.spans and u.has(r"who|when|how much"))
        ):
            return None
        return u.unexplained(*_SLOTS, "details", words=_KNOWN)

    def answer(self, u: Understanding, context: Context) -> str:
        """Choose the kind of query by what is asked, run it, and say what it covers."""
        compared = self._comparison(u, context)
        if compared:
            return compared
        period = u.periods[0] if u.periods else None
        chosen = _filter(u, period)
        count = context.turn.rows(
            f"SELECT COUNT(*) AS n, SUM(amount) AS total FROM transactions WHERE {chosen.where}",
            *chosen.values,
        )[0]
        if not count["n"]:
            return self._nothing(chosen, context)
        if u.kind == "net":
            return self._net(u, chosen, context)
        group = self._group(u)
        if group and (u.has(_LARGEST) or u.has(_SMALLEST)):
            return self._extreme_group(u, chosen, group, context)
        if u.has(_AVERAGE):
            return self._average(u, chosen, period, context)
        if u.has(_LARGEST) or u.has(_SMALLEST):
            return self._extreme(u, chosen, context)
        if group and u.has(_BREAKDOWN):
            return self._breakdown(chosen, group, count["total"], context)
        if u.has(_COUNT):
            return (
                f"There were {plural(count['n'], 'transaction')} for {chosen.words}, together "
                f"{money(count['total'])}."
            )
        if (u.has(_LIST) or u.has(_WHO) or u.has(_WHEN)) and not u.has("how much|total"):
            return self._list(u, chosen, count, context)
        text = (
            f"{chosen.words[0].upper()}{chosen.words[1:]} came to {money(count['total'])} "
            f"({plural(count['n'], 'transaction')})."
        )
        if len(u.categories) > 1:
            text += " " + self._breakdown(chosen, "category", count["total"], context)
        return text

    def _nothing(self, chosen: _Filter, context: Context) -> str:
        known = context.turn.rows("SELECT MIN(date) AS first, MAX(date) AS last FROM transactions")[0]
        return (
            f"Not on record: there is no transaction for {chosen.words}. "
            f"The books cover {day(known['first'])} to {day(known['last'])}."
        )

    def _group(self, u: Understanding) -> str | None:
        for name, (words, _) in _GROUPS.items():
            if u.has(
                rf"(?:which|what|by|per|each|every|for each|our|best|worst|highest|lowest|top|"
                rf"busiest) (?:\w+ )?(?:{words})"
            ) or (name == "category" and u.has("what .*(?:most|biggest|largest).* on|categor(?:y|ies)")):
                # "per month" in an average is the unit of the average
                if name in ("month", "year", "quarter") and u.has(_AVERAGE):
                    continue
                if name == "property" and not u.has(
                    r"(?:which|by|per|each|every|what) (?:\w+ )?(?:propert(?:y|ies)|buildings?)"
                ):
                    continue
                return name
        if u.has(r"on what|where did (?:the|our) money go|what did we spend"):
            return "category"
        return None

    def _extreme_group(self, u: Understanding, chosen: _Filter, group: str, context: Context) -> str:
        small = u.has(_SMALLEST)
        rows = context.turn.rows(
            (
                f"SELECT {_GROUPS[group][1]} AS part, SUM(amount) AS total, COUNT(*) AS n FROM "
                f"transactions WHERE {chosen.where} "
                f"AND {_GROUPS[group][1]} IS NOT NULL GROUP BY part ORDER BY total "
                f"{'ASC' if small else 'DESC'}, part LIMIT 3"
            ),
            *chosen.values,
        )
        if not rows:
            return self._nothing(chosen, context)
        first, others = rows[0], rows[1:]
        text = (
            f"For {chosen.words}, the {group} with the {'lowest' if small else 'highest'} total is "
            f"{_part(group, first['part'], context)} with {money(first['total'])}"
        )
        if others:
            text += "; next " + join(
                [f"{_part(group, r['part'], context)} with {money(r['total'])}" for r in others]
            )
        return text + "."

    def _average(self, u: Understanding, chosen: _Filter, period: Period | None, context: Context) -> str:
        if u.has(r"month(?:ly|s)?"):
            row = context.turn.rows(
                "SELECT AVG(total) AS mean, COUNT(*) AS n FROM (SELECT SUM(amount) AS total FROM "
                "transactions "
                f"WHERE {chosen.where} GROUP BY substr(date, 1, 7))",
                *chosen.values,
            )[0]
            return (
                f"The monthly average of {chosen.words} is {money(row['mean'])} over "
                f"{plural(row['n'], 'month')}."
            )
        row = context.turn.rows(
            f"SELECT AVG(amount) AS mean, COUNT(*) AS n FROM transactions WHERE {chosen.where}",
            *chosen.values,
        )[0]
        return (
            f"The average of {chosen.words} is {money(row['mean'])} over {plural(row['n'], 'transaction')}."
        )

    def _extreme(self, u: Understanding, chosen: _Filter, context: Context) -> str:
        small = u.has(_SMALLEST)
        rows = context.turn.rows(
            "SELECT date, property_id, category, amount, party, description FROM transactions "
            f"WHERE {chosen.where} "
            f"ORDER BY amount {'ASC' if small else 'DESC'}, date LIMIT 1",
            *chosen.values,
        )
        return f"The {'smallest' if small else 'largest'} of {chosen.words}: {_line(rows[0], context)}"

    def _breakdown(self, chosen: _Filter, group: str, total: float, context: Context) -> str:
        rows = context.turn.rows(
            f"SELECT {_GROUPS[group][1]} AS part, SUM(amount) AS total FROM transactions WHERE "
            f"{chosen.where} "
            f"GROUP BY part ORDER BY {'part' if group in ('month', 'quarter', 'year') else 'total DESC'}",
            *chosen.values,
        )
        parts = [f"{_part(group, r['part'], context)} {money(r['total'])}" for r in rows]
        return f"By {group}, {chosen.words}: {'; '.join(parts)}. Total {money(total)}."

    def _list(self, u: Understanding, chosen: _Filter, count: dict[str, Any], context: Context) -> str:
        last = u.has(r"last|latest|most recent(?:ly)?")
        rows = context.turn.rows(
            "SELECT date, property_id, category, amount, party, description FROM transactions "
            f"WHERE {chosen.where} "
            f"ORDER BY date {'DESC' if last else 'ASC'}, id LIMIT {1 if last and not u.periods else 12}",
            *chosen.values,
        )
        text = " ".join(_line(r, context) for r in rows)
        if count["n"] > len(rows) > 1:
            text += (
                f" These are the first {len(rows)} of {count['n']}; together they all come to "
                f"{money(count['total'])}."
            )
        elif len(rows) > 1:
            text = (
                f"{plural(count['n'], 'transaction')} for {chosen.words}, together {money(count['total'])}: "
                + text
            )
        return text

    def _net(self, u: Understanding, chosen: _Filter, context: Context) -> str:
        row = context.turn.rows(
            "SELECT SUM(CASE WHEN kind = 'income' THEN amount ELSE 0 END) AS income, "
            "SUM(CASE WHEN kind = 'expense' THEN amount ELSE 0 END) AS expense FROM transactions "
            f"WHERE {chosen.where}",
            *chosen.values,
        )[0]
        group = self._group(u)
        text = (
            f"Net income{chosen.words.removeprefix('income and expenses')} is "
            f"{money(row['income'] - row['expense'])}: "
            f"income of {money(row['income'])} less expenses of {money(row['expense'])}."
        )
        if group:
            order = "ASC" if u.has(_SMALLEST) else "DESC"
            rows = context.turn.rows(
                (
                    f"SELECT {_GROUPS[group][1]} AS part, SUM(CASE WHEN kind = 'income' THEN amount "
                    "ELSE -amount END) AS net FROM transactions "
                    f"WHERE {chosen.where} AND {_GROUPS[group][1]} IS NOT NULL GROUP BY part ORDER BY "
                    f"net {order} LIMIT 12"
                ),
                *chosen.values,
            )
            text = (
                f"Net by {group}: "
                + join([f"{_part(group, r['part'], context)} {money(r['net'])}" for r in rows])
                + ". "
                + text
            )
        return text

    def _comparison(self, u: Understanding, context: Context) -> str | None:
        """Two periods, properties or categories set against each other."""
        sides: list[tuple[str, _Filter]] = []
        # "how much more did we pay in 2025 than in 2024": the later one is compared with the earlier one
        if len(u.periods) == 2:
            ordered = sorted(u.periods, key=lambda p: p.start)
            sides = [(p.label, _filter(u, p)) for p in ordered]
        elif (
            len(u.periods) == 1 and u.has(_COMPARE) and u.periods[0].start.year < u.periods[0].end.year < 9999
        ):
            span = u.periods[0]
            years = [span.start.year, span.end.year]
            sides = [(str(y), _filter(u, Period(date(y, 1, 1), date(y, 12, 31), str(y)))) for y in years]
        elif len(u.properties) == 2 and u.has(_COMPARE + r"|or|and|which"):
            sides = [
                (
                    p.label,
                    _filter(
                        msgspec.structs.replace(u, properties=[p]),
                        u.periods[0] if u.periods else None,
                    ),
                )
                for p in u.properties
            ]
        elif len(u.categories) == 2 and not u.group and u.has(_COMPARE + "|or"):
            sides = [
                (
                    category_label(c),
                    _filter(
                        msgspec.structs.replace(u, categories=[c]),
                        u.periods[0] if u.periods else None,
                    ),
                )
                for c in u.categories
            ]
        if len(sides) != 2:
            return None
        column = "CASE WHEN kind = 'income' THEN amount ELSE -amount END" if u.kind == "net" else "amount"
        totals = []
        for _, chosen in sides:
            row = context.turn.rows(
                f"SELECT COUNT(*) AS n, SUM({column}) AS total FROM transactions WHERE {chosen.where}",
                *chosen.values,
            )[0]
            if not row["n"]:
                return self._nothing(chosen, context)
            totals.append(float(row["total"]))
        (first, _), (second, _) = sides
        change = totals[1] - totals[0]
        share = f" ({change / totals[0]:+.1%})" if totals[0] else ""
        what = _what(u)
        both = f" Both together: {money(totals[0] + totals[1])}." if not u.has(_COMPARE) else ""
        direction = "more" if change >= 0 else "less"
        return (
            f"{what[0].upper()}{what[1:]}: {first} {money(totals[0])}, {second} {money(totals[1])}. "
            f"That is {money(abs(change))} {direction} for {second}{share}.{both}"
        )


def _what(u: Understanding) -> str:
    if u.kind == "net" and not u.categories:
        return "income and expenses"
    if u.group:
        return u.group
    if u.categories:
        return join([category_label(c) for c in u.categories])
    if u.parties and u.kind != "income":
        return "payments"
    return {"income": "total income", "expense": "total expenses"}.get(u.kind or "", "transactions")


def _filter(u: Understanding, period: Period | None) -> _Filter:
    # words of the descriptions ("boiler", "roof") narrow a question down
    details = u.unexplained(*_SLOTS, words=_KNOWN)
    where: list[str] = []
    values: list[Any] = []
    words = _what(u)
    if u.categories:
        where.append(f"category IN ({', '.join('?' * len(u.categories))})")
        values += u.categories
    elif u.kind == "expense" and (details or u.parties):
        where.append("kind <> 'income'")
    elif u.kind in ("income", "expense"):
        where.append("kind = ?")
        values.append(u.kind)
    elif u.kind == "net":
        where.append("kind IN ('income', 'expense')")
    if u.parties:
        where.append(f"party IN ({', '.join('?' * len(u.parties))})")
        values += u.parties
        words += f" with {join(u.parties)}"
    if u.units and not u.parties:
        where.append("(" + " OR ".join("(property_id = ? AND description LIKE ?)" for _ in u.units) + ")")
        values += [v for unit in u.units for v in (unit.property_id, f"%{unit.label}%")]
        words += f" of {join([unit.label for unit in u.units])}"
    if u.properties and not u.units:
        where.append(f"property_id IN ({', '.join('?' * len(u.properties))})")
        values += [p.id for p in u.properties]
        words += f" at {join([p.label for p in u.properties])}"
    if details:
        words += f" for “{' '.join(details)}”"
    for word in details:
        where.append("description LIKE ?")
        values.append(f"%{word.rstrip('s')}%")
    if period:
        where.append("date BETWEEN ? AND ?")
        values += [period.start.isoformat(), period.end.isoformat()]
        words += (
            f" {period.label}"
            if period.label.startswith(("since", "after", "before", "up to"))
            else f" in {period.label}"
        )
    return _Filter(" AND ".join(where) or "1 = 1", values, words)


def _part(group: str, value: Any, context: Context) -> str:
    if group == "property":
        return context.property_label(value)
    if group == "category":
        return category_label(str(value))
    if group == "month":
        return day(f"{value}-01").replace(" 1,", "")
    return str(value)


def _line(row: dict[str, Any], context: Context) -> str:
    place = f" at {context.property_label(row['property_id'])}" if row["property_id"] else ""
    return (
        f"{day(row['date'])}: {money(row['amount'])}, {category_label(row['category'])}, "
        f"{row['party']} ({row['description']}){place}."
    )
