"""Columns of prices, and columns of how many of a thing there are: what each row comes to is their product."""

from collections.abc import Iterator

from answerkey.grounded.figures import Column, Figures
from answerkey.grounded.flatten import key_words

__all__ = ["price_columns"]

_PRICES_TEXT = """
price rate cost wage fee fare tariff rent each premium per preis prix precio
"""
_PRICES = frozenset(_PRICES_TEXT.split())


def price_columns(figures: Figures) -> Iterator[tuple[Column, Column]]:
    """A column of prices with each other column of its table."""
    for price in figures.columns:
        if _PRICES.isdisjoint(key_words(price.name)):
            continue
        for count in figures.columns:
            if (
                count.table is price.table
                and count is not price
                and _PRICES.isdisjoint(key_words(count.name))
            ):
                yield price, count
