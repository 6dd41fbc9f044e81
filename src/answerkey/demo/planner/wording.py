"""How answers read: money, dates, lists."""

from collections.abc import Sequence
from datetime import date

__all__ = ["day", "join", "money", "plural"]


def money(value: float | int | None) -> str:
    """$16,144 or $1,236.50."""
    number = round(float(value or 0.0), 2)
    text = f"{abs(number):,.2f}".removesuffix(".00")
    return f"-${text}" if number < 0 else f"${text}"


def day(iso: str | None) -> str:
    """September 14, 2022."""
    if not iso:
        return "an unknown date"
    d = date.fromisoformat(iso)
    return f"{d:%B} {d.day}, {d.year}"


def join(parts: Sequence[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def plural(count: int, word: str) -> str:
    """1 unit, 2 units."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") else f"{count:,} {word}s"
