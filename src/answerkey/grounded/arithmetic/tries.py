"""Combinations of figures, the likeliest first, each with its formula: sums, shares, parts by a rate, products, quotients."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations
from math import fsum

__all__ = [
    "Try",
    "changes_between",
    "differences",
    "multiples",
    "parts",
    "product_and_more",
    "products",
    "quotients",
    "shares",
    "shares_together",
    "sums",
]

# A value and how it comes about.
Try = tuple[float, str]


def changes_between(amounts: Sequence[float], direction: int) -> Iterator[Try]:
    for one, other in combinations(amounts, 2):
        base, changed = sorted((one, other), key=abs, reverse=direction < 0)
        yield 100 * (changed - base) / base, f"({changed:g} − {base:g}) ÷ {base:g}"
        if not direction:
            yield 100 * (base - changed) / changed, f"({base:g} − {changed:g}) ÷ {changed:g}"


def shares_together(amounts: Sequence[float], totals: Sequence[float]) -> Iterator[Try]:
    for one, other in islice(combinations(amounts, 2), 6):
        for whole in (*amounts, *totals[:2]):
            if whole not in (one, other) and abs(whole) >= abs(one + other) * 0.999:
                yield 100 * (one + other) / whole, f"({one:g} + {other:g}) ÷ {whole:g}"


def shares(amounts: Sequence[float], totals: Sequence[float]) -> Iterator[Try]:
    """Parts of a whole; then what the nearest parts leave of it ("two of 25 were late, so 92% were on time")."""
    for part in amounts[:3]:
        for whole in (*amounts, *totals[:4]):
            if abs(whole) > abs(part):
                yield 100 * part / whole, f"{part:g} ÷ {whole:g}"
    for part in amounts[:4]:
        for whole in amounts[:4]:
            if abs(whole) > abs(part):
                yield 100 * (whole - part) / whole, f"({whole:g} − {part:g}) ÷ {whole:g}"


def parts(rates: Sequence[float], bases: Sequence[float]) -> Iterator[Try]:
    for base in bases:
        for rate in rates:
            part = base * rate / 100
            yield part, f"{rate:g}% of {base:g}"
            yield base - part, f"{base:g} − {rate:g}%"
            yield base + part, f"{base:g} + {rate:g}%"


def products(amounts: Sequence[float], bases: Sequence[float]) -> Iterator[Try]:
    for one, other in combinations(amounts[:4], 2):
        yield one * other, f"{one:g} × {other:g}"
    for one in amounts[:2]:
        for other in bases:
            yield one * other, f"{one:g} × {other:g}"


def product_and_more(amounts: Sequence[float]) -> Iterator[Try]:
    """ "Three hours at $95 plus $127.50"."""
    for one, other in combinations(amounts, 2):
        for third in amounts:
            if third not in (one, other):
                yield one * other + third, f"{one:g} × {other:g} + {third:g}"
    for one, other, third in combinations(amounts, 3):
        yield one * other * third, f"{one:g} × {other:g} × {third:g}"


def multiples(factors: Sequence[float], amounts: Sequence[float]) -> Iterator[Try]:
    for factor in factors:
        for one in amounts:
            yield one * factor, f"{one:g} × {factor:g}"


def differences(lists: Sequence[Sequence[float]]) -> Iterator[Try]:
    for values in lists:
        for one, other in combinations(values, 2):
            yield one - other, f"{max(one, other):g} − {min(one, other):g}"


def sums(amounts: Sequence[float]) -> Iterator[Try]:
    for size in range(2, min(len(amounts), 5) + 1):
        yield fsum(amounts[:size]), " + ".join(f"{value:g}" for value in amounts[:size])
    for one, other in combinations(amounts[:5], 2):
        yield one + other, f"{one:g} + {other:g}"


def quotients(amounts: Sequence[float], scale: float) -> Iterator[Try]:
    for one, other in permutations(amounts[:6], 2):
        yield scale * one / other, f"{one:g} ÷ {other:g}"
