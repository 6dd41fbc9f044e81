"""The ledger: which transactions a question means, in SQL and in words, and how one reads."""

from typing import Any

import msgspec

from answerkey.demo.language.lexicon import category_label
from answerkey.demo.language.periods import Period
from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.money_words import KNOWN, SLOTS
from answerkey.demo.planner.wording import day, join, money

__all__ = ["ADDRESS", "GROUPS", "Filter", "entry", "nothing", "part_name", "select", "what_of"]

# Results say the address of a property, not only its key, so that an answer can be checked against them.
_ADDRESS = "(SELECT address FROM properties WHERE properties.id = property_id)"
ADDRESS = f"{_ADDRESS} AS address"
# What totals can be broken down by → how people say it, and the SQL of it.
GROUPS = {
    "month": (r"months?", "substr(date, 1, 7)"),
    "quarter": (
        r"quarters?",
        "substr(date, 1, 4) || ' Q' || ((CAST(substr(date, 6, 2) AS INTEGER) + 2) / 3)",
    ),
    "year": (r"years?|annual(?:ly)?|yearly", "substr(date, 1, 4)"),
    "property": (r"propert(?:y|ies)|buildings?", _ADDRESS),
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


class Filter(msgspec.Struct, frozen=True):
    """The conditions of a query, in SQL and in words."""

    where: str
    values: list[Any]
    words: str
    # Further columns of a total, so that its result says what it is of.
    columns: str = ""


def what_of(u: Understanding) -> str:
    """What a question is about, in words."""
    if u.kind == "net" and not u.categories:
        return "income and expenses"
    if u.group:
        return u.group
    if u.categories:
        return join([category_label(c) for c in u.categories])
    if u.parties and u.kind != "income":
        return "payments"
    return {"income": "total income", "expense": "total expenses"}.get(u.kind or "", "transactions")


def select(u: Understanding, period: Period | None) -> Filter:
    """The transactions that a question means, of one period."""
    # words of the descriptions ("boiler", "roof") narrow a question down
    details = u.unexplained(*SLOTS, words=KNOWN)
    where: list[str] = []
    values: list[Any] = []
    words = what_of(u)
    columns = ""
    if u.categories:
        where.append(f"category IN ({', '.join('?' * len(u.categories))})")
        values += u.categories
    elif u.parties and (_pays(u) or u.has("(?:pay|paid|pays) us")):
        where.append("kind = 'income'")
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
        columns = f", GROUP_CONCAT(DISTINCT {_ADDRESS}) AS addresses"
    if details:
        words += f" for {join([f'“{word}”' for word in details])}"
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
    return Filter(" AND ".join(where) or "1 = 1", values, words, columns)


def _pays(u: Understanding) -> bool:
    """Whether the party that is named pays ("Warren Yazzie paid") and is not paid."""
    verbs = {i for i, t in enumerate(u.tokens) if t.text in ("pay", "pays", "paid")}
    return any(i + 1 in verbs for i in u.spans.get("parties", frozenset()))


def part_name(group: str, value: Any, context: Context) -> str:
    """How a part of a breakdown reads."""
    if group == "property" and value is None:
        return context.property_label(None)
    if group == "category":
        return category_label(str(value))
    if group == "month":
        return day(f"{value}-01").replace(" 1,", "")
    return str(value)


def entry(row: dict[str, Any]) -> str:
    """How one transaction reads."""
    place = f" at {row['address']}" if row["address"] else ""
    return (
        f"{day(row['date'])}: {money(row['amount'])}, {category_label(row['category'])}, "
        f"{row['party']} ({row['description']}){place}."
    )


def nothing(chosen: Filter, context: Context) -> str:
    """Say that no transaction matches, and what the books cover."""
    known = context.turn.rows("SELECT MIN(date) AS first, MAX(date) AS last FROM transactions")[0]
    return (
        f"Not on record: there is no transaction for {chosen.words}. "
        f"The books cover {day(known['first'])} to {day(known['last'])}."
    )
