"""How amounts, days, numbers of things and lists read."""

from datetime import date

__all__ = ["capital", "day", "join", "money", "plural"]


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
