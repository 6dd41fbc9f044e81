"""Money that moved: sums, counts, averages, extremes, breakdowns, comparisons and lists of transactions."""

from typing import Any

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.comparison import compare
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.ledger import ADDRESS, GROUPS, Filter, entry, nothing, part_name, select
from answerkey.demo.planner.money_words import (
    AVERAGE,
    BREAKDOWN,
    COUNT,
    KNOWN,
    LARGEST,
    LIST,
    SLOTS,
    SMALLEST,
    WHEN,
    WHO,
)
from answerkey.demo.planner.wording import join, money, plural

__all__ = ["Transactions"]


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
        return u.unexplained(*SLOTS, "details", words=KNOWN)

    def answer(self, u: Understanding, context: Context) -> str:
        """Choose the kind of query by what is asked, run it, and say what it covers."""
        compared = compare(u, context)
        if compared:
            return compared
        period = u.periods[0] if u.periods else None
        chosen = select(u, period)
        count = context.turn.rows(
            f"SELECT COUNT(*) AS n, SUM(amount) AS total{chosen.columns} FROM transactions "
            f"WHERE {chosen.where}",
            *chosen.values,
        )[0]
        if not count["n"]:
            return nothing(chosen, context)
        if u.kind == "net":
            return self._net(u, chosen, context)
        group = self._group(u)
        if group and (u.has(LARGEST) or u.has(SMALLEST)):
            return self._extreme_group(u, chosen, group, context)
        if u.has(AVERAGE):
            return self._average(u, chosen, context)
        if u.has(LARGEST) or u.has(SMALLEST):
            return self._extreme(u, chosen, context)
        if group and u.has(BREAKDOWN):
            return self._breakdown(chosen, group, count["total"], context)
        if u.has(COUNT):
            return (
                f"There were {plural(count['n'], 'transaction')} for {chosen.words}, together "
                f"{money(count['total'])}."
            )
        if (u.has(LIST) or u.has(WHO) or u.has(WHEN)) and not u.has("how much|total"):
            return self._list(u, chosen, count, context)
        text = (
            f"{chosen.words[0].upper()}{chosen.words[1:]} came to {money(count['total'])} "
            f"({plural(count['n'], 'transaction')})."
        )
        if len(u.categories) > 1:
            text += " " + self._breakdown(chosen, "category", count["total"], context)
        return text

    def _group(self, u: Understanding) -> str | None:
        for name, (words, _) in GROUPS.items():
            if u.has(
                rf"(?:which|what|by|per|each|every|for each|our|best|worst|highest|lowest|top|"
                rf"busiest) (?:\w+ )?(?:{words})"
            ) or (name == "category" and u.has("what .*(?:most|biggest|largest).* on|categor(?:y|ies)")):
                # "per month" in an average is the unit of the average
                if name in ("month", "year", "quarter") and u.has(AVERAGE):
                    continue
                if name == "property" and not u.has(
                    r"(?:which|by|per|each|every|what) (?:\w+ )?(?:propert(?:y|ies)|buildings?)"
                ):
                    continue
                return name
        if u.has(r"on what|where did (?:the|our) money go|what did we spend"):
            return "category"
        return None

    def _extreme_group(self, u: Understanding, chosen: Filter, group: str, context: Context) -> str:
        small = u.has(SMALLEST)
        rows = context.turn.rows(
            f"SELECT {GROUPS[group][1]} AS part, SUM(amount) AS total, COUNT(*) AS n FROM "
            f"transactions WHERE {chosen.where} "
            f"AND {GROUPS[group][1]} IS NOT NULL GROUP BY part ORDER BY total "
            f"{'ASC' if small else 'DESC'}, part LIMIT 3",
            *chosen.values,
        )
        if not rows:
            return nothing(chosen, context)
        first, others = rows[0], rows[1:]
        text = (
            f"For {chosen.words}, the {group} with the {'lowest' if small else 'highest'} total is "
            f"{part_name(group, first['part'], context)} with {money(first['total'])}"
        )
        if others:
            text += "; next " + join(
                [f"{part_name(group, r['part'], context)} with {money(r['total'])}" for r in others]
            )
        return text + "."

    def _average(self, u: Understanding, chosen: Filter, context: Context) -> str:
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

    def _extreme(self, u: Understanding, chosen: Filter, context: Context) -> str:
        small = u.has(SMALLEST)
        rows = context.turn.rows(
            f"SELECT date, {ADDRESS}, category, amount, party, description FROM transactions "
            f"WHERE {chosen.where} "
            f"ORDER BY amount {'ASC' if small else 'DESC'}, date LIMIT 1",
            *chosen.values,
        )
        return f"The {'smallest' if small else 'largest'} of {chosen.words}: {entry(rows[0])}"

    def _breakdown(self, chosen: Filter, group: str, total: float, context: Context) -> str:
        rows = context.turn.rows(
            f"SELECT {GROUPS[group][1]} AS part, SUM(amount) AS total FROM transactions WHERE "
            f"{chosen.where} "
            f"GROUP BY part ORDER BY {'part' if group in ('month', 'quarter', 'year') else 'total DESC'}",
            *chosen.values,
        )
        parts = [f"{part_name(group, r['part'], context)} {money(r['total'])}" for r in rows]
        return f"By {group}, {chosen.words}: {'; '.join(parts)}. Total {money(total)}."

    def _list(self, u: Understanding, chosen: Filter, count: dict[str, Any], context: Context) -> str:
        last = u.has(r"last|latest|most recent(?:ly)?")
        rows = context.turn.rows(
            f"SELECT date, {ADDRESS}, category, amount, party, description FROM transactions "
            f"WHERE {chosen.where} "
            f"ORDER BY date {'DESC' if last else 'ASC'}, id LIMIT {1 if last and not u.periods else 12}",
            *chosen.values,
        )
        text = " ".join(entry(r) for r in rows)
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

    def _net(self, u: Understanding, chosen: Filter, context: Context) -> str:
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
            order = "ASC" if u.has(SMALLEST) else "DESC"
            rows = context.turn.rows(
                f"SELECT {GROUPS[group][1]} AS part, SUM(CASE WHEN kind = 'income' THEN amount "
                "ELSE -amount END) AS net FROM transactions "
                f"WHERE {chosen.where} AND {GROUPS[group][1]} IS NOT NULL GROUP BY part ORDER BY "
                f"net {order} LIMIT 12",
                *chosen.values,
            )
            text = (
                f"Net by {group}: "
                + join([f"{part_name(group, r['part'], context)} {money(r['net'])}" for r in rows])
                + ". "
                + text
            )
        return text
