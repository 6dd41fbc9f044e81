"""How amounts, days, numbers of things, lists and facts read."""

import re
from datetime import date
from typing import Any

from answerkey_demo.language.vocabulary import category_label

__all__ = ["capital", "day", "filled", "join", "money", "plural", "shown"]

_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")


def money(amount: float | None) -> str:
    """For instance $1,234.50; whole dollars without cents."""
    value = round(amount or 0.0, 2)
    text = f"{abs(value):,.0f}" if value == int(value) else f"{abs(value):,.2f}"
    return f"-${text}" if value < 0 else f"${text}"


def day(iso: str | None) -> str:
    """2025-03-21 as March 21, 2025."""
    if iso is None:
        return "an unknown date"
    value = date.fromisoformat(iso)
    return f"{value:%B} {value.day}, {value.year}"


def plural(count: int, noun: str) -> str:
    """1 transaction, 2 transactions."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join(items: list[str]) -> str:
    """A, B and C."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def capital(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]


def shown(value: Any, form: str) -> str:
    """A value as "$", "date", "number" or "category", or as it is."""
    if form == "$":
        return money(value)
    if form == "date" and isinstance(value, str):
        return day(value)
    if form == "category":
        return category_label(value)
    return f"{value:,.10g}" if form == "number" else str(value)


def filled(template: str, row: dict[str, Any]) -> str:
    """Fill in a row: {column}, {column:$}, or {column:, for $}, which is left out where there is no value."""

    def fill(match: re.Match[str]) -> str:
        value, form = row[match[1]], match[2] or ""
        kind = next((k for k in ("$", "date", "number", "category") if k in form), "")
        if form and not kind:
            # a remark that holds for one value
            return form if value and str(value) in form else ""
        if value is None:
            return "" if form.startswith(",") else "nothing on record"
        return form.replace(kind, shown(value, kind)) if kind else str(value)

    return re.sub(r"\b1 units\b", "1 unit", _SLOT.sub(fill, " ".join(template.split())))
