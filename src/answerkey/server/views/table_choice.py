"""What is chosen of a table by its address: columns and conditions, and the address that says so again."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

from answerkey.errors import UsageError
from answerkey.report.losses import Loss
from answerkey.report.table import Column
from answerkey.store.ranges import Range

__all__ = ["TableQuery", "chosen_columns", "conditions_in_words", "parameters_of", "plain_value"]

_MOST_COLUMNS = 40


class TableQuery(Protocol):
    """What the query of every table has."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are wanted; none: the usual ones."""

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Ranges of measures that rows must be in."""

    @property
    def order(self) -> tuple[str, bool]:
        """By what rows are sorted, and whether the largest come first."""

    @property
    def sort(self) -> str:
        """The same as it stands in the address."""


def chosen_columns(query: TableQuery, offered: Sequence[Column], usual: Iterable[str]) -> tuple[Column, ...]:
    """The columns that are wanted, and those by which rows are chosen and sorted; in the order of all."""
    known = {column.name for column in offered}
    unknown = [name for name in query.columns if name not in known]
    if unknown or len(query.columns) > _MOST_COLUMNS:
        raise UsageError(f"columns: there is none {unknown[0][:60]!r}" if unknown else "too many columns")
    wanted = {*(query.columns or usual), query.order[0], *(one.name for one in query.ranges)}
    return tuple(column for column in offered if column.name in wanted)


def conditions_in_words(
    query: TableQuery, names: Iterable[str], link: Callable[..., str], anchor: str
) -> list[tuple[str, str]]:
    """What rows are chosen by, each with the address of the page without it."""
    given = [(name, value) for name in names if (value := getattr(query, name)) is not None]
    chosen = [(f"{name} {value}", f"{link(**{name: None, 'page': None})}#{anchor}") for name, value in given]
    ranges = [str(one) for one in query.ranges]
    for one in ranges:
        others = [other for other in ranges if other != one]
        without = link(range=others or None, measure=None, low=None, high=None, page=None)
        chosen.append((one.replace(":", " "), f"{without}#{anchor}"))
    return chosen


def parameters_of(query: TableQuery, names: Iterable[str], usual_sort: str, **more: Any) -> str:
    """What is chosen, after `more`, as the query of an address."""
    chosen = {name: value for name in names if (value := getattr(query, name)) is not None}
    given = {**more, **chosen, "range": [str(one) for one in query.ranges], "columns": list(query.columns)}
    order = {} if query.sort == usual_sort else {"sort": query.sort}
    return urlencode({**given, **order}, doseq=True)


def plain_value(value: Any) -> Any:
    """A cell for a file."""
    if isinstance(value, tuple) and value and isinstance(value[0], Loss):
        return "; ".join(str(loss) for loss in value)
    return None if value == () else value
