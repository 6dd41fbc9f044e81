"""Numbers out of untrusted JSON: what is not a finite, sensible number is None, never an exception."""

from math import isfinite

__all__ = ["read_count", "read_duration", "read_number"]


def read_number(value: object) -> float | None:
    """A finite number, also written as text (as CSV files do)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int):
        try:
            value = float(value)
        except OverflowError:
            return None
    return value if isinstance(value, float) and isfinite(value) else None


def read_count(value: object) -> int | None:
    """A number of tokens: whole and not negative."""
    number = read_number(value)
    return int(number) if number is not None and 0 <= number < 2**62 else None


def read_duration(value: object) -> float | None:
    """A time span: not negative."""
    number = read_number(value)
    return number if number is not None and number >= 0 else None
