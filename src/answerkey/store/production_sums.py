"""Production replies counted and added up by day as they are written, so that figures do not read them one by one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from answerkey.model.scorecard import PASS_MARK
from answerkey.store.database import BATCH, EPSILON, Connection, Database, Where, signs
from answerkey.store.schema import TABLES
from answerkey.text.moments import day_begins, day_ends

if TYPE_CHECKING:
    from answerkey.store.feedback_book import Window

# By what replies are counted apart → SQL of its value; all of them together are "".
_FACETS = {name: name for name in ("category", "error_kind", "model", "version")} | {
    "": "''",
    "result": f"CASE WHEN score < {PASS_MARK - EPSILON!r} THEN 'failed' WHEN score IS NULL THEN 'ungraded' ELSE 'passed' END",
}
# What is added up, after the day (in UTC), the facet and its value.
_KEY = TABLES["production_sums"].identity
_ADDED = tuple(name for name in TABLES["production_sums"].columns if name not in _KEY)
_SUMMED = (
    "COUNT(*), COUNT(score), COALESCE(SUM(score), 0.0), COUNT(latency_ms), COALESCE(SUM(latency_ms), 0.0)"
)
_ADD = (
    f"INSERT INTO production_sums ({', '.join((*_KEY, *_ADDED))}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = production_sums.{name} + excluded.{name}" for name in _ADDED)
)
_FIRST, _LAST = "T00:00:00.000+00:00", "T23:59:59.999+00:00"

# Key → what is added up.
Sums = dict[tuple[str, ...], tuple[float, ...]]


def sums_of(connection: Connection, where: Where) -> Sums:
    """What replies `p` add up to, by day, facet and value."""
    parts = [
        f"SELECT day, '{facet}', {value}, {_SUMMED} FROM chosen WHERE {value} IS NOT NULL GROUP BY 1, 3"
        for facet, value in _FACETS.items()
    ]
    # A time that is none, as a sender may have it, would be beyond adding up.
    rows = connection.run(
        "WITH chosen AS (SELECT SUBSTR(p.created_at, 1, 10) AS day, p.category, p.error_kind, p.model, p.version, p.score, "
        "CASE WHEN ABS(p.latency_ms) < 1e12 THEN p.latency_ms END AS latency_ms "
        f"FROM production_replies p WHERE {where}) {' UNION ALL '.join(parts)}",
        where.values,
    )
    return {row[:3]: row[3:] for row in rows}


def sums_of_ids(connection: Connection, ids: Sequence[str]) -> Sums:
    """The same of the replies with these ids, however many."""
    chunks = (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
    return _together(sums_of(connection, Where(f"p.id IN ({signs(some)})", *some)) for some in chunks)


def _together(parts: Iterable[Sums]) -> Sums:
    total: Sums = {}
    for part in parts:
        for key, values in part.items():
            known = total.get(key, (0,) * len(values))
            total[key] = tuple(map(sum, zip(known, values, strict=True)))
    return total


def add_up(connection: Connection, before: Sums, after: Sums) -> None:
    """Count what has changed. Always the last of a transaction, and in one order: writers of the same day wait for it."""
    none = (0,) * len(_ADDED)
    rows = []
    for key in sorted({*before, *after}):
        change = tuple(
            new - old for old, new in zip(before.get(key, none), after.get(key, none), strict=True)
        )
        if any(change):
            rows.append((*key, *change))
    connection.run_many(_ADD, rows)
    if before:
        connection.run("DELETE FROM production_sums WHERE replies = 0")


def add_up_all(connection: Connection) -> None:
    """Count all replies of a store that has none counted."""
    add_up(connection, {}, sums_of(connection, Where()))


@contextmanager
def recounted(database: Database, connection: Connection, ids: Sequence[str]) -> Iterator[None]:
    """While replies are changed or deleted, nobody else changes them; then what they add up to is right again."""
    if database.kind == "postgresql":
        held = f"SELECT 1 FROM production_replies WHERE id IN ({signs(ids)}) ORDER BY key FOR UPDATE"
        connection.run(held, ids)
    before = sums_of_ids(connection, ids)
    yield
    add_up(connection, before, sums_of_ids(connection, ids))


def window_sums(connection: Connection, wanted: "Window") -> Sums:
    """What replies add up to by facet and value, of the days that are wanted. Those of UTC are added up; where days begin at
    another time, the first and the last are whole ones without some hours, or some hours, whichever are fewer."""
    begin = "" if wanted.since is None else day_begins(wanted.since)
    end = "9999-99" if wanted.until is None else day_ends(wanted.until)
    if begin >= end:
        return {}
    first, last, hours = begin, end, []
    if begin[10:] not in ("", _FIRST):
        if begin[11:] < "12":
            first = begin[:10]
            hours.append((-1, first, begin))
        else:
            hours.append((1, begin, f"{begin[:10]}T24"))
    if wanted.until is not None and end[10:] != _FIRST:
        if end[11:] < "12":
            hours.append((1, end[:10], end))
        else:
            last = f"{end[:10]}T24"
            hours.append((-1, end, last))
    found = connection.run(
        f"SELECT facet, value, {', '.join(f'SUM({name})' for name in _ADDED)} FROM production_sums "
        f"WHERE day || '{_FIRST}' >= ? AND day || '{_LAST}' < ? GROUP BY facet, value",
        (first, last),
    )
    parts: list[Sums] = [{row[:2]: tuple(map(float, row[2:])) for row in found}]
    for sign, since, until in hours:
        read = sums_of(connection, Where("p.created_at >= ? AND p.created_at < ?", since, until))
        parts.append({key[1:]: tuple(sign * value for value in values) for key, values in read.items()})
    return {key: values for key, values in _together(parts).items() if values[0]}
