"""The query builder behind every table view: filters, ranges, sorting, searching and paging.

A table is a subclass of TableQuery. It declares the SQL of its columns and how its rows are selected, read and, for
values that SQL cannot compute, measured. Everything else happens here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from answerkey.errors import UsageError
from answerkey.model.scorecard import highest_score, lowest_score
from answerkey.store.database import Connection, Database, Row, Sql, all_of, sql
from answerkey.text.dates import day_begins, day_ends

# Rows read at a time when all of them are wanted.
_CHUNK = 500

# A search term or a name in a filter.
ShortText = Annotated[str, msgspec.Meta(max_length=200)]
# A date such as 2026-11-16.
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$", max_length=10)]


class Window(Protocol):
    """A range of days."""

    @property
    def since(self) -> str | None: ...
    @property
    def until(self) -> str | None: ...


def within_days(column: str, criteria: Window) -> list[Sql]:
    """The conditions that a time is within the wanted days."""
    conditions = []
    if criteria.since is not None:
        conditions.append(Sql(f"{column} >= ?", (day_begins(criteria.since),)))
    if criteria.until is not None:
        conditions.append(Sql(f"{column} < ?", (day_ends(criteria.until),)))
    return conditions


def read_limit(text: str) -> float | None:
    """A limit such as `0.5` or `50%`; None if the text is empty. Raises ValueError if it is not a number."""
    share = text.strip().removesuffix("%")
    if share == text.strip():
        return float(text) if text.strip() else None
    return float(share) / 100


class Range(msgspec.Struct, frozen=True):
    """An inclusive range of a column's values; None: unlimited."""

    name: str
    low: float | None
    high: float | None

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Parse `score:0.5..0.8`, `score:50%..80%`, `score:..0.8` or `score:0.5..`."""
        name, _, limits = text.rpartition(":")
        low, dots, high = limits.partition("..")
        try:
            if not name or not dots:
                raise ValueError
            return cls(name, read_limit(low), read_limit(high))
        except ValueError:
            raise UsageError(
                f"range {text[:80]!r}: write a name and two numbers, e.g. score:0.5..0.8 or score:50%..80%"
            ) from None

    def __str__(self) -> str:
        low, high = ("" if limit is None else f"{limit:g}" for limit in (self.low, self.high))
        return f"{self.name}:{low}..{high}"

    def contains(self, value: float | None) -> bool:
        """Whether a value is within the range; a missing one is not."""
        if value is None:
            return False
        if self.low is not None and value < lowest_score(self.low):
            return False
        return self.high is None or value <= highest_score(self.high)

    def condition(self, expression: str) -> Sql:
        """The same in SQL."""
        limits = []
        if self.low is not None:
            limits.append(Sql(f"{expression} >= ?", (lowest_score(self.low),)))
        if self.high is not None:
            limits.append(Sql(f"{expression} <= ?", (highest_score(self.high),)))
        return all_of(limits)


class TableFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a table are wanted, in what order, and which columns; read from a query string."""

    # Fields that default to None and are not filters.
    not_filters: ClassVar[tuple[str, ...]] = ("measure", "low", "high")

    # As `Range.parse` takes them.
    range: tuple[ShortText, ...] = ()
    # One more range, as a form sends it.
    measure: ShortText | None = None
    low: ShortText | None = None
    high: ShortText | None = None
    # The name of a column; with a minus in descending order.
    sort: ShortText = ""
    # The columns to show; empty: the default ones.
    columns: tuple[ShortText, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        ranges = [Range.parse(text) for text in self.range]
        if self.measure and (self.low or self.high):
            ranges.append(Range.parse(f"{self.measure}:{self.low or ''}..{self.high or ''}"))
        return tuple(dict.fromkeys(ranges))

    @property
    def sort_column(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def descending(self) -> bool:
        """Whether the largest come first."""
        return self.sort.startswith("-")

    @property
    def value_names(self) -> list[str]:
        """The columns whose values decide which rows are wanted, and in what order."""
        return list(dict.fromkeys([self.sort_column, *(limit.name for limit in self.ranges)]))

    @property
    def conditions(self) -> dict[str, Any]:
        """The filters that are set: fields that default to None."""
        names = (name for name, default in _defaults(type(self)).items() if default is None)
        filters = [name for name in names if name not in self.not_filters]
        return {name: value for name in filters if (value := getattr(self, name)) is not None}

    def query_string(self, **more: Any) -> str:
        """The query string that selects the same, after `more`."""
        given = {
            **more,
            **self.conditions,
            "range": [str(limit) for limit in self.ranges],
            "columns": self.columns,
        }
        order = {} if self.sort == _defaults(type(self))["sort"] else {"sort": self.sort}
        return urlencode({**given, **order}, doseq=True)


@cache
def _defaults(table: type[TableFilter]) -> dict[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(table)}


# A filter's condition, of the database and the filter's value.
Condition = Callable[[Database, Any], Sql]


def equals(column: str) -> Condition:
    """The condition that a column has the filter's value."""
    return lambda _, value: Sql(f"{column} = ?", (value,))


Filter = TypeVar("Filter", bound=TableFilter)
TableRow = TypeVar("TableRow")


class TableQuery(ABC, Generic[Filter, TableRow]):
    """Selects a page of rows as a filter wants them."""

    # The SQL order of rows with equal values, over the key columns of `matching`.
    tie_break: ClassVar[str]
    # Where rows without a value are: last in either direction, or (False) before the smallest.
    missing_last: ClassVar[bool] = False
    # Columns that hold text and have no ranges.
    text_columns: ClassVar[tuple[str, ...]] = ()
    # Filter → its condition.
    filters: ClassVar[Mapping[str, Condition]] = {}

    def __init__(self, database: Database, columns: Mapping[str, str]) -> None:
        self.database = database
        # Column → SQL of its value, for columns that the database can sort by.
        self.columns = columns

    @abstractmethod
    def matching(self, criteria: Filter, value: str) -> Sql:
        """SELECT every matching row: `value` AS value, then the key columns."""

    @abstractmethod
    def read(self, connection: Connection, keys: Sequence[Row]) -> list[TableRow]:
        """The rows with these keys, in their order."""

    def measured(
        self, connection: Connection, criteria: Filter, names: Sequence[str], keys: Sequence[Row]
    ) -> dict[str, Sequence[float | None]]:
        """Column → its value for each key, for columns that the database cannot compute."""
        raise UsageError(f"cannot sort or filter by {names[0][:60]!r}; use one of {', '.join(self.columns)}")

    def counts_with_page(self, criteria: Filter) -> bool:
        """Whether selecting is so expensive that rows are counted by the query that selects a page."""
        return False

    def page(self, criteria: Filter, *, limit: int = 25, offset: int = 0) -> tuple[list[TableRow], int]:
        """A page of rows, and how many match in all."""
        with self.database.reading() as connection:
            keys, total = self._page_keys(connection, criteria, limit, offset)
            return self.read(connection, keys), total

    def every(self, criteria: Filter) -> Iterator[TableRow]:
        """All matching rows in order, read in chunks."""
        with self.database.reading() as connection:
            keys, _ = self._page_keys(connection, criteria, 2**31 - 1, 0)
        for start in range(0, len(keys), _CHUNK):
            with self.database.reading() as connection:
                rows = self.read(connection, keys[start : start + _CHUNK])
            yield from rows

    def conditions(self, criteria: Filter) -> list[Sql]:
        """The conditions of the filters that are set, and of the ranges that the database can check."""
        given = criteria.conditions
        filters = [
            condition(self.database, given[name]) for name, condition in self.filters.items() if name in given
        ]
        return [*filters, *(limit.condition(self.columns[limit.name]) for limit in self.sql_ranges(criteria))]

    def sql_ranges(self, criteria: Filter) -> list[Range]:
        """The ranges of columns that the database knows; raises UsageError for a range of texts."""
        for limit in criteria.ranges:
            if limit.name in self.text_columns:
                raise UsageError(
                    f"range {str(limit)[:80]!r}: {limit.name} is a text; only numbers have ranges"
                )
        return [limit for limit in criteria.ranges if limit.name in self.columns]

    def _page_keys(
        self, connection: Connection, criteria: Filter, limit: int, offset: int
    ) -> tuple[Sequence[Row], int]:
        if any(name not in self.columns for name in criteria.value_names):
            keys = self._keys_by_measures(connection, criteria)
            return keys[offset : offset + limit], len(keys)
        matching = self.matching(criteria, self.columns[criteria.sort_column])
        counted = self.counts_with_page(criteria)
        query = sql(
            "SELECT {total}, t.* FROM ({matching}) AS t ORDER BY {order} LIMIT ? OFFSET ?",
            limit,
            offset,
            total="COUNT(*) OVER ()" if counted else "0",
            matching=matching,
            order=self._order(criteria),
        )
        rows = connection.run(*query).fetchall()
        if counted and rows:
            total = rows[0][0]
        else:
            total = connection.value(*sql("SELECT COUNT(*) FROM ({matching}) AS t", matching=matching))
        return [row[2:] for row in rows], int(total)

    def _order(self, criteria: Filter) -> str:
        direction = "DESC" if criteria.descending else "ASC"
        missing = "IS NULL" if self.missing_last or criteria.descending else "IS NOT NULL"
        return f"t.value {missing}, t.value {direction}, {self.tie_break}"

    def _keys_by_measures(self, connection: Connection, criteria: Filter) -> list[Row]:
        """The keys of all matching rows, where the database cannot compute a value that decides."""
        name = criteria.sort_column
        query = sql(
            "SELECT * FROM ({matching}) AS t ORDER BY {order}",
            matching=self.matching(criteria, self.columns.get(name, "NULL")),
            order=self.tie_break,
        )
        rows = connection.run(*query).fetchall()
        keys = [row[1:] for row in rows]
        names = [each for each in criteria.value_names if each not in self.columns]
        values = self.measured(connection, criteria, names, keys)
        limits = [limit for limit in criteria.ranges if limit.name in values]
        sorted_by: Sequence[Any] = values.get(name) or [row[0] for row in rows]
        matches = [
            place
            for place in range(len(keys))
            if all(limit.contains(values[limit.name][place]) for limit in limits)
        ]
        known = [place for place in matches if sorted_by[place] is not None]
        # Stable also in reverse: rows with equal values stay in the order of the tie-break.
        known.sort(key=sorted_by.__getitem__, reverse=criteria.descending)
        missing = [place for place in matches if sorted_by[place] is None]
        in_order = known + missing if self.missing_last or criteria.descending else missing + known
        return [keys[place] for place in in_order]
