"""Production replies in figures: by day, and by a facet such as the version, for any filter."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import UsageError
from answerkey.model.judgement import POSITIVE
from answerkey.stats.intervals import Interval, interval_of_moments, percentiles, wilson_interval
from answerkey.store.database import Sql, sql
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.text.dates import local_time

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

# Facet → the column that replies are grouped by.
_FACETS = {"version": "version", "model": "model", "category": "category", "error": "error_kind"}
# How a facet of metadata begins: metadata.persona.
METADATA = "metadata."
# An absurd value from a sender would spoil a sum.
_MOST = 1e12


class ReplyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Replies of a day, a value of a facet, or both, in figures."""

    day: str = ""
    value: str = ""
    replies: int
    errors: int
    # Replies that are errors ÷ all.
    error_rate: float | None
    error_interval: Interval | None
    # Replies that the golden set grades, and their mean score.
    graded: int
    score: float | None
    score_interval: Interval | None
    # Verdicts of users, replies that have one, and positive verdicts ÷ all.
    verdicts: int
    judged: int
    satisfaction: float | None
    # Several verdicts on one reply count as one.
    satisfaction_interval: Interval | None
    # Median time, and the time that 95% of replies took at most.
    p50: float | None
    p95: float | None
    # Mean cost of a reply.
    cost: float | None


class _Sums(msgspec.Struct, kw_only=True):
    """What figures are computed from."""

    replies: int = 0
    errors: int = 0
    graded: int = 0
    score: float = 0.0
    score_squares: float = 0.0
    lowest: float = 1.0
    highest: float = 0.0
    # Replies whose cost is known.
    costed: int = 0
    cost: float = 0.0
    latencies: list[float] = []
    verdicts: int = 0
    positive: int = 0
    judged: int = 0

    def add(self, other: "_Sums") -> None:
        """Add the sums of other replies."""
        self.replies += other.replies
        self.errors += other.errors
        self.graded += other.graded
        self.score += other.score
        self.score_squares += other.score_squares
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.costed += other.costed
        self.cost += other.cost
        self.latencies += other.latencies
        self.verdicts += other.verdicts
        self.positive += other.positive
        self.judged += other.judged

    def figures(self, day: str = "", value: str = "") -> ReplyFigures:
        """The figures."""
        n = self.graded
        mean = self.score / n if n else 0.0
        p50, p95 = percentiles(self.latencies, (50, 95)) if self.latencies else (None, None)
        rate = self.positive / self.verdicts if self.verdicts else None
        return ReplyFigures(
            day=day,
            value=value,
            replies=self.replies,
            errors=self.errors,
            error_rate=self.errors / self.replies if self.replies else None,
            error_interval=wilson_interval(self.errors, self.replies) if self.replies else None,
            graded=n,
            score=mean if n else None,
            score_interval=interval_of_moments(
                mean,
                n,
                units=n,
                squares=max(self.score_squares - n * mean * mean, 0.0),
                size_squares=float(n),
                farthest=max(self.highest - mean, mean - self.lowest),
            )
            if n
            else None,
            verdicts=self.verdicts,
            judged=self.judged,
            satisfaction=rate,
            satisfaction_interval=None
            if rate is None
            else wilson_interval(round(self.judged * rate), self.judged),
            p50=p50,
            p95=p95,
            cost=self.cost / self.costed if self.costed else None,
        )


class ProductionSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of replies that meet a filter."""

    total: ReplyFigures
    # Kind of error → number.
    errors: dict[str, int]
    # By value of the facet, most replies first; "" for replies without a value.
    groups: tuple[ReplyFigures, ...]
    # By day in the time zone of this machine, and value.
    days: tuple[ReplyFigures, ...]


def production_series(
    store: "SqlStore", criteria: ProductionFilter, by: str | None = None
) -> ProductionSeries:
    """The figures of all replies that meet a filter, by day and the facet `by`."""
    column = _column(by)
    where = ProductionReplies(store).filter_condition(criteria)
    by_time: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    errors: dict[str, int] = {}
    value_of = f"COALESCE(p.{column}, '')" if column else "''"
    # An hour, or ten minutes: in some zones a day begins at a half hour of UTC.
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    group = f"SUBSTR(p.created_at, 1, {15 if offset % timedelta(hours=1) else 13}), {value_of}"
    with store.database.reading() as connection:
        for time, value, kind, *sums in connection.run(*_counts(group, where)):
            cell = by_time[time, value]
            replies, graded, score, squares, lowest, highest, costed, cost = sums
            if kind:
                errors[kind] = errors.get(kind, 0) + replies
                cell.errors += replies
            cell.replies += replies
            cell.graded += graded
            cell.score += score
            cell.score_squares += squares
            cell.lowest, cell.highest = min(cell.lowest, lowest), max(cell.highest, highest)
            cell.costed += costed
            cell.cost += cost
        timed = sql(
            "SELECT {group}, p.latency_ms FROM production_replies p WHERE p.latency_ms < ? AND {where}",
            _MOST,
            group=group,
            where=where,
        )
        for time, value, latency_ms in connection.run(*timed):
            by_time[time, value].latencies.append(latency_ms)
        for time, value, verdicts, positive, judged in connection.run(*_verdicts(group, where)):
            cell = by_time[time, value]
            cell.verdicts, cell.positive, cell.judged = verdicts, int(positive), judged
    return _by_day(by_time, errors, by)


def _column(by: str | None) -> str | None:
    if by is None:
        return None
    if by.startswith(METADATA):
        return "metadata"
    if by not in _FACETS:
        raise UsageError(f"by {by[:60]!r}: use {', '.join(_FACETS)} or {METADATA}NAME")
    return _FACETS[by]


def _counts(group: str, where: Sql) -> Sql:
    return sql(
        "SELECT {group}, COALESCE(p.error_kind, ''), COUNT(*), COUNT(p.score), COALESCE(SUM(p.score), 0.0), "
        "COALESCE(SUM(p.score * p.score), 0.0), COALESCE(MIN(p.score), 1.0), COALESCE(MAX(p.score), 0.0), "
        "COUNT(p.cost), COALESCE(SUM(p.cost), 0.0) FROM production_replies p WHERE {where} GROUP BY 1, 2, 3",
        group=group,
        where=where,
    )


def _verdicts(group: str, where: Sql) -> Sql:
    return sql(
        "SELECT {group}, COUNT(*), SUM(CASE WHEN f.value >= ? THEN 1 ELSE 0 END), COUNT(DISTINCT f.production_id) "
        "FROM feedback f JOIN production_replies p ON p.id = f.production_id "
        "WHERE f.source <> 'review' AND {where} GROUP BY 1, 2",
        POSITIVE,
        group=group,
        where=where,
    )


def _by_day(
    by_time: dict[tuple[str, str], _Sums], errors: dict[str, int], by: str | None
) -> ProductionSeries:
    """The figures of hours or parts of one, which are in UTC, by day in the time zone of this machine."""
    total = _Sums()
    groups: dict[str, _Sums] = defaultdict(_Sums)
    cells: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    days: dict[str, str] = {}
    for (time, value), cell in by_time.items():
        day = days.setdefault(
            time, local_time(f"{time}{'0:00' if len(time) > 13 else ':00:00'}+00:00", zone=False)[:10]
        )
        named = _metadata_value(value, by) if by and by.startswith(METADATA) else value
        for sums in (cells[day, named], groups[named], total):
            sums.add(cell)
    most = sorted(groups.items(), key=lambda item: (-item[1].replies, item[0]))
    return ProductionSeries(
        total=total.figures(),
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        groups=tuple(sums.figures(value=value) for value, sums in most) if by else (),
        days=tuple(sums.figures(day, value) for (day, value), sums in sorted(cells.items())),
    )


def _metadata_value(text: str, by: str) -> str:
    """The value of `metadata.NAME` in the text of a column."""
    begin = f"{by.removeprefix(METADATA)}="
    return next((line.removeprefix(begin) for line in text.split("\n") if line.startswith(begin)), "")


# The newest replies, whose metadata filters offer.
_NEWEST = 2_000
_MOST_VALUES = 30


def metadata_values(store: "SqlStore") -> dict[str, tuple[str, ...]]:
    """Name → values of metadata in the newest replies; a name with very many values, such as a user's id, has none."""
    query = "SELECT metadata FROM production_replies ORDER BY created_at DESC LIMIT ?"
    found: dict[str, set[str]] = {}
    with store.database.reading() as connection:
        for (text,) in connection.run(query, (_NEWEST,)):
            for line in text.split("\n"):
                name, equals, value = line.partition("=")
                if equals:
                    found.setdefault(name, set()).add(value)
    return {
        name: tuple(sorted(values)) if len(values) <= _MOST_VALUES else ()
        for name, values in sorted(found.items())
    }
