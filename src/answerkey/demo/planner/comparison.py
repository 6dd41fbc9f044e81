"""Comparisons: two periods, properties or categories of transactions set against each other."""

from datetime import date

import msgspec

from answerkey.demo.language.lexicon import category_label
from answerkey.demo.language.periods import Period
from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.ledger import Filter, nothing, select, what_of
from answerkey.demo.planner.money_words import COMPARE
from answerkey.demo.planner.wording import money

__all__ = ["compare"]


def compare(u: Understanding, context: Context) -> str | None:
    """Two periods, properties or categories set against each other."""
    sides: list[tuple[str, Filter]] = []
    # "how much more did we pay in 2025 than in 2024": the later one is compared with the earlier one
    if len(u.periods) == 2:
        ordered = sorted(u.periods, key=lambda p: p.start)
        sides = [(p.label, select(u, p)) for p in ordered]
    elif len(u.periods) == 1 and u.has(COMPARE) and u.periods[0].start.year < u.periods[0].end.year < 9999:
        span = u.periods[0]
        years = [span.start.year, span.end.year]
        sides = [(str(y), select(u, Period(date(y, 1, 1), date(y, 12, 31), str(y)))) for y in years]
    elif len(u.properties) == 2 and u.has(COMPARE + r"|or|and|which"):
        sides = [
            (
                p.label,
                select(
                    msgspec.structs.replace(u, properties=[p]),
                    u.periods[0] if u.periods else None,
                ),
            )
            for p in u.properties
        ]
    elif len(u.categories) == 2 and not u.group and u.has(COMPARE + "|or"):
        sides = [
            (
                category_label(c),
                select(
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
            f"SELECT COUNT(*) AS n, SUM({column}) AS total{chosen.columns} FROM transactions "
            f"WHERE {chosen.where}",
            *chosen.values,
        )[0]
        if not row["n"]:
            return nothing(chosen, context)
        totals.append(float(row["total"]))
    (first, _), (second, _) = sides
    change = totals[1] - totals[0]
    share = f" ({change / totals[0]:+.1%})" if totals[0] else ""
    what = what_of(u)
    both = f" Both together: {money(totals[0] + totals[1])}." if not u.has(COMPARE) else ""
    direction = "more" if change >= 0 else "less"
    return (
        f"{what[0].upper()}{what[1:]}: {first} {money(totals[0])}, {second} {money(totals[1])}. "
        f"That is {money(abs(change))} {direction} for {second}{share}.{both}"
    )
