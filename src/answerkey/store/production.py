"""Production replies counted and added up by day as they are written, so that figures do not read them one by one."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from answerkey.errors import UsageError
from answerkey.model.feedback import (
    POSITIVE,
    Agreement,
    CategoryFeedback,
    DayFeedback,
    Feedback,
    FeedbackStats,
    FeedbackTheme,
    ProductionReply,
)
from answerkey.model.scorecard import PASS_MARK
from answerkey.stats.agreement import correlate
from answerkey.store.database import (
    BATCH,
    EPSILON,
    SAID_IN_PRODUCTION,
    TABLES,
    Connection,
    Database,
    Where,
    insert,
    signs,
)
from answerkey.store.feedback import SCORED, Day, FeedbackBook, FeedbackFilter, ShortText, time_window
from answerkey.store.row_filter import Ranged
from answerkey.store.run_rows import fold, storable, tools_text
from answerkey.text.dates import day_begins, day_ends
from answerkey.text.differences import find_themes

if TYPE_CHECKING:
    from answerkey.store.feedback import Window
    from answerkey.store.sql import SqlStore


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


# ProductionReplies: what the chatbot answered to real users, kept so that feedback and rates have something to refer to.


# Columns that rows can be sorted by, those by which they are counted as they come, and those of which ranges can be wanted.
_SORTED = {
    name: name for name in ("created_at", "score", "latency_ms", "category", "model", "version", "id")
} | {"error": "error_kind"}
_COUNTED = {"category": "category", "error": "error_kind", "model": "model", "version": "version"}
_RANGED = ("score", "latency_ms")
# Up to so many that match are counted; of more it is only known that they are more.
MOST_COUNTED = 10_000


class ProductionFilter(Ranged, frozen=True, kw_only=True):
    """Which replies are wanted, and in what order."""

    category: ShortText | None = None
    # A kind of error.
    error: ShortText | None = None
    # Graded and passed or not, ended in an error, or with nothing to grade it by.
    result: Literal["failed", "passed", "error", "ungraded"] | None = None
    # What users said of it.
    verdict: Literal["up", "down", "any", "none"] | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # The chatbot's, as its server said.
    model: ShortText | None = None
    version: ShortText | None = None
    # Words in the question or the reply.
    text: ShortText | None = None
    # The first and the last day on which it was said, in the zone of this machine.
    since: Day | None = None
    until: Day | None = None
    sort: ShortText = "-created_at"


class ProductionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The production replies of a time in figures, and by what they can be filtered."""

    replies: int
    # Those that could be graded, and their mean score.
    graded: int
    score: float | None
    errors: dict[str, int]
    error_rate: float | None
    # Replies with at least one verdict.
    judged: int
    latency_ms: float | None
    categories: dict[str, int]
    models: dict[str, int]
    versions: dict[str, int]


class Addition(NamedTuple):
    """What became of replies that were sent."""

    # The ids of those that were not known before.
    new: tuple[str, ...]
    # Verdicts that had been waiting for them.
    linked: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ProductionReply).decode


class ProductionReplies:
    """Reads and writes the production traffic of a store."""

    def __init__(self, store: "SqlStore") -> None:
        self._store = store
        self._database = store.database

    def add(self, replies: Sequence[ProductionReply]) -> Addition:
        """Keep replies and tie waiting feedback to them; one whose id is known stays as it was."""
        statement = insert("production_replies")
        with self._database.transaction() as connection:
            added = [item for item in replies if connection.run(statement, production_row(item)).rowcount]
            linked = FeedbackBook(self._store).link(connection, added)
            new = tuple(item.id for item in added)
            add_up(connection, {}, sums_of_ids(connection, new))
        return Addition(new, linked)

    def graded_otherwise(self, version: str, *, limit: int) -> list[ProductionReply]:
        """Replies that were last graded by another golden set or scoring than this."""
        # Apart, so that each is looked up and the others are not looked through.
        conditions = (("graded_by IS NULL", ()), ("graded_by < ?", (version,)), ("graded_by > ?", (version,)))
        ids: list[str] = []
        with self._database.reading() as connection:
            for condition, values in conditions:
                query = f"SELECT id FROM production_replies WHERE {condition} LIMIT ?"
                ids += [row[0] for row in connection.run(query, (*values, limit - len(ids)))]
        return list(self._read(ids).values())

    def keep_grades(self, graded: Sequence[ProductionReply]) -> None:
        """Keep new scores of replies, which themselves stay as they are."""
        changed = ("category", "score", "error_kind", "graded_by", "payload")
        # Without the number that the database gives each.
        columns = list(TABLES["production_replies"].columns)[1:]
        rows = []
        for item in graded:
            row = dict(zip(columns, production_row(item), strict=True))
            rows.append((*(row[name] for name in changed), item.id))
        sql = f"UPDATE production_replies SET {', '.join(f'{name} = ?' for name in changed)} WHERE id = ?"
        these = [item.id for item in graded]
        with self._database.transaction() as connection, recounted(self._database, connection, these):
            connection.run_many(sql, rows)

    def find(self, identity: str) -> ProductionReply | None:
        """The reply with this id."""
        return self._read([identity]).get(identity)

    def page(
        self, wanted: ProductionFilter, *, limit: int = 25, offset: int = 0
    ) -> tuple[list[ProductionReply], int]:
        """Replies as wanted, and how many there are of them in all, or MOST_COUNTED and one."""
        matching, values = self._matching(wanted, f"LIMIT {MOST_COUNTED + 1}")
        query = (
            f"SELECT id, COUNT(*) OVER () FROM ({matching}) AS p ORDER BY {_order(wanted)} LIMIT ? OFFSET ?"
        )
        with self._database.reading() as connection:
            if _added_up(connection, wanted) > MOST_COUNTED:
                ids, total = [], MOST_COUNTED + 1
            else:
                rows = connection.run(query, (*values, limit, offset)).fetchall()
                ids = [identity for identity, _ in rows]
                counted = f"SELECT COUNT(*) FROM ({matching}) AS p"
                total = int(rows[0][1] if rows else connection.value(counted, values))
            if total > MOST_COUNTED:
                ids = self._walk(connection, wanted, limit, offset)
        found = self._read(ids)
        return [found[identity] for identity in ids if identity in found], total

    def _matching(self, wanted: ProductionFilter, limit: str = "") -> tuple[str, list[Any]]:
        """A query for what tells the order of all replies that are wanted, by whatever index finds them."""
        where, tables = _conditions(self._database, wanted), "production_replies p"
        if wanted.text:
            tables, *condition = self._database.searching("production_replies", "p", wanted.text)
            where.add(*condition)
        columns = dict.fromkeys(("id", "created_at", _sorted_by(wanted)))
        return (
            f"SELECT {', '.join(f'p.{name}' for name in columns)} FROM {tables} WHERE {where} {limit}",
            where.values,
        )

    def _walk(self, connection: Connection, wanted: ProductionFilter, limit: int, offset: int) -> list[str]:
        """The ids of a page of many replies: the index of their order is followed until the page is full."""
        column = _sorted_by(wanted)
        where = _conditions(self._database, wanted, walking=column)
        if wanted.text:
            where.add(*self._database.contains(SAID_IN_PRODUCTION.format(row="p"), wanted.text))
        chosen = f"FROM production_replies p WHERE {where} AND"

        def page(some: str, *bound: Any, start: int) -> list[str]:
            sql = f"SELECT p.id {chosen} {some} ORDER BY {_order(wanted, apart=True)} LIMIT ? OFFSET ?"
            return [row[0] for row in connection.run(sql, (*where.values, *bound, limit - len(ids), start))]

        ids: list[str] = []
        if column in ("created_at", "id"):
            return page("1 = 1", start=offset)
        # Those without a value come last, wherever the index has them.
        known, least = f"p.{column} >= ?", -math.inf if column in _RANGED else ""
        ids += page(known, least, start=offset)
        if len(ids) < limit:
            before = offset + len(ids)
            if not ids:
                before = connection.value(f"SELECT COUNT(*) {chosen} {known}", (*where.values, least))
            ids += page(f"p.{column} IS NULL", start=max(offset - before, 0))
        return ids

    def every(self, wanted: ProductionFilter) -> Iterator[ProductionReply]:
        """All replies as wanted, some at a time."""
        matching, values = self._matching(wanted)
        query = f"SELECT id FROM ({matching}) AS p ORDER BY {_order(wanted)}"
        for rows in self._database.batches(query, values):
            found = self._read([identity for (identity,) in rows])
            yield from (found[identity] for (identity,) in rows if identity in found)

    def figures(self, wanted: ProductionFilter | None = None, *, most: int = 100) -> ProductionFigures:
        """Those of the time that is wanted added up."""
        wanted = wanted or ProductionFilter()
        time = time_window(Where(), "p.created_at", wanted)
        judged = "SELECT DISTINCT production_id FROM feedback WHERE production_id IS NOT NULL"
        within = f"WHERE EXISTS (SELECT 1 FROM production_replies p WHERE p.id = f.production_id AND {time})"
        with self._database.reading() as connection:
            sums = window_sums(connection, wanted)
            counted = f"SELECT COUNT(*) FROM ({judged}) AS f {within if time else ''}"
            replies_judged = connection.value(counted, time.values)
        replies, graded, score, timed, latency = sums.get(("", ""), (0,) * 5)

        def counts(facet: str) -> dict[str, int]:
            found = [(value, int(row[0])) for (name, value), row in sums.items() if name == facet]
            return dict(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:most])

        errors = counts("error_kind")
        return ProductionFigures(
            replies=int(replies),
            graded=int(graded),
            score=score / graded if graded else None,
            errors=errors,
            error_rate=sum(errors.values()) / replies if replies else None,
            judged=replies_judged,
            latency_ms=latency / timed if timed else None,
            categories=counts("category"),
            models=counts("model"),
            versions=counts("version"),
        )

    def verdicts(self, ids: Sequence[str]) -> dict[str, list[Feedback]]:
        """What people said of these replies, newest first."""
        found: dict[str, list[Feedback]] = {}
        for item in FeedbackBook(self._store).of_production(ids):
            found.setdefault(item.production_id or "", []).append(item)
        return found

    def _read(self, ids: Sequence[str]) -> dict[str, ProductionReply]:
        query = f"SELECT question, text, payload FROM production_replies WHERE id IN ({signs(ids)})"
        with self._database.reading() as connection:
            rows = connection.run(query, [storable(identity) for identity in ids]).fetchall()
        return {item.id: item for item in (_unpacked(*row) for row in rows)}


def production_row(item: ProductionReply) -> tuple[Any, ...]:
    """A reply as its table has it. A text that a column cannot hold as it is stays in the payload."""
    card, reply, text = item.scorecard, item.reply, item.reply.text
    question, said = storable(item.question), None if text is None else storable(text)
    rest = item
    if question == item.question and said == text:
        rest = msgspec.structs.replace(item, question="", reply=msgspec.structs.replace(reply, text=None))
    return (
        item.id,
        item.created_at,
        item.category,
        reply.trace_id,
        reply.conversation_id,
        item.score,
        None if card is None or card.error is None else card.error.kind,
        reply.timings.latency_ms,
        item.model,
        item.version,
        item.graded_by,
        tools_text([reply]),
        question,
        said,
        fold(f"{item.id} {question} {said or ''}"),
        _encode(rest).decode(),
    )


def _unpacked(question: str, text: str | None, payload: str) -> ProductionReply:
    item = _decode(payload)
    if item.question or item.reply.text is not None:
        return item
    return msgspec.structs.replace(
        item, question=question, reply=msgspec.structs.replace(item.reply, text=text)
    )


def _added_up(connection: Connection, wanted: ProductionFilter) -> int:
    """How many are wanted, where they are counted as they come: all, those of one facet, or of a result; otherwise 0."""
    facets = {**_COUNTED, "result": "result"}
    given = {facets.get(name): value for name, value in wanted.conditions.items()} or {"": ""}
    if len(given) > 1 or None in given or wanted.ranges:
        return 0
    query = "SELECT COALESCE(SUM(replies), 0) FROM production_sums WHERE facet = ? AND value = ?"
    return int(connection.value(query, *given.items()))


def _sorted_by(wanted: ProductionFilter) -> str:
    name, _ = wanted.order
    if name not in _SORTED:
        raise UsageError(f"replies are not sorted by {name[:60]!r}: choose one of {', '.join(_SORTED)}")
    return _SORTED[name]


def _order(wanted: ProductionFilter, *, apart: bool = False) -> str:
    """What has no value comes last either way, or is asked for apart; of equals the newest is first where the smallest are."""
    column, (_, largest_first) = _sorted_by(wanted), wanted.order
    way, other = ("DESC", "ASC") if largest_first else ("ASC", "DESC")
    if column == "id":
        return f"p.id {way}"
    if column == "created_at":
        return f"p.created_at {way}, p.id {way}"
    last = "" if apart else f"p.{column} IS NULL, "
    return f"{last}p.{column} {way}, p.created_at {other}, p.id {other}"


def _conditions(database: Database, wanted: ProductionFilter, *, walking: str | None = None) -> Where:
    """All but the words. While the index of an order is followed, no other is used for what many replies have."""

    def column(name: str) -> str:
        if walking in (None, name):
            return f"p.{name}"
        return f"(p.{name} || '')" if name == "created_at" else f"(p.{name} + 0)"

    where = time_window(Where(), column("created_at"), wanted)
    for name, facet in _COUNTED.items():
        if getattr(wanted, name) is not None:
            where.add(f"p.{facet} = ?", getattr(wanted, name))
    match wanted.result:
        case "failed":
            where.add(f"{column('score')} < ?", PASS_MARK - EPSILON)
        case "passed":
            where.add(f"{column('score')} >= ?", PASS_MARK - EPSILON)
        case "error":
            # Which an index finds in both databases, as it does not what is not empty.
            where.add("p.error_kind > ''")
        case "ungraded":
            where.add("p.score IS NULL")
    about = "SELECT f.production_id FROM feedback f WHERE f.production_id"
    match wanted.verdict:
        case "up":
            where.add(f"p.id IN ({about} IS NOT NULL AND f.value >= ?)", POSITIVE)
        case "down":
            where.add(f"p.id IN ({about} IS NOT NULL AND f.value < ?)", POSITIVE)
        case "any":
            where.add(f"p.id IN ({about} IS NOT NULL)")
        case "none":
            where.add(f"NOT EXISTS ({about} = p.id)")
    for limit in wanted.ranges:
        if limit.name not in _RANGED:
            raise UsageError(f"range: replies have no {limit.name[:60]!r}, only {' and '.join(_RANGED)}")
        if limit.low is not None:
            where.add(f"{column(limit.name)} >= ?", limit.low - EPSILON)
        if limit.high is not None:
            where.add(f"{column(limit.name)} <= ?", limit.high + EPSILON)
    if wanted.tool:
        where.add(*database.has_tool("p.tools", wanted.tool))
    return where


# Feedback added up in the database: satisfaction, rate, by category and day, and how it agrees with the scores.


# The newest comments that themes are sought in, and the newest scored verdicts that the correlation is over.
_COMMENTS = 2_000
_PAIRS = 20_000
_DAYS = 90

_USERS = "source != 'review'"
_POSITIVE = f"SUM(CASE WHEN value >= {POSITIVE} THEN 1 ELSE 0 END)"


def feedback_stats(
    store: "SqlStore", *, queries: int | None = None, wanted: FeedbackFilter | None = None
) -> FeedbackStats:
    """Add up a store's feedback of the days that are wanted; `queries` overrides how many replies users could have judged."""
    with store.database.reading() as connection:
        return _stats(connection, queries, wanted or FeedbackFilter())


def feedback_state(store: "SqlStore") -> tuple[str, ...]:
    """Changes with every verdict, every production reply, and every new scoring of a run that was judged."""
    queries = (
        "SELECT COUNT(*), MAX(created_at), SUM(value), SUM(LENGTH(comment)), COUNT(run_id), COUNT(production_id) "
        "FROM feedback",
        "SELECT SUM(replies), SUM(graded), SUM(score) FROM production_sums WHERE facet = ''",
        "SELECT id, info FROM runs WHERE id IN (SELECT run_id FROM feedback WHERE run_id IS NOT NULL) ORDER BY id",
    )
    with store.database.reading() as connection:
        return tuple(repr(connection.run(query).fetchall()) for query in queries)


def _stats(connection: Connection, queries: int | None, wanted: FeedbackFilter) -> FeedbackStats:
    users, reviewers = (
        time_window(Where(condition), "created_at", wanted) for condition in (_USERS, "source = 'review'")
    )
    row = connection.run(
        f"SELECT COUNT(*), {_POSITIVE}, SUM(CASE WHEN comment != '' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN run_id IS NOT NULL OR production_id IS NOT NULL THEN 1 ELSE 0 END) "
        f"FROM feedback WHERE {users}",
        users.values,
    ).fetchone()
    total, good, commented, known = (int(value or 0) for value in row)
    reviews, trusted = connection.run(
        f"SELECT COUNT(*), {_POSITIVE} FROM feedback WHERE {reviewers}", reviewers.values
    ).fetchone()
    asked = _queries(connection, wanted) if queries is None else queries
    rated = known if queries is None else total
    by_category = connection.run(
        f"SELECT category, COUNT(*), {_POSITIVE} FROM feedback WHERE {users} GROUP BY category "
        "ORDER BY COUNT(*) DESC",
        users.values,
    ).fetchall()
    by_day = connection.run(
        f"SELECT SUBSTR(created_at, 1, 10) AS day, COUNT(*), {_POSITIVE} FROM feedback WHERE {users} "
        "GROUP BY SUBSTR(created_at, 1, 10) ORDER BY day DESC LIMIT ?",
        (*users.values, _DAYS),
    ).fetchall()
    return FeedbackStats(
        feedback=total,
        positive=good,
        negative=total - good,
        satisfaction=good / total if total else None,
        queries=asked,
        feedback_rate=rated / asked if asked else None,
        comments=commented,
        unmatched=total - known,
        reviews=int(reviews),
        reviews_trusted=int(trusted or 0),
        categories=tuple(
            CategoryFeedback(name or "unknown", count, int(ups), ups / count)
            for name, count, ups in by_category
        ),
        days=tuple(DayFeedback(name, count, int(ups), ups / count) for name, count, ups in reversed(by_day)),
        themes=_themes(connection, wanted),
        agreement=_agreement(connection, wanted),
    )


def _queries(connection: Connection, wanted: FeedbackFilter) -> int:
    judged = time_window(Where("f.source != 'review'"), "f.created_at", wanted)
    in_production = window_sums(connection, wanted).get(("", ""), (0,))[0]
    in_runs = connection.value(
        "SELECT COUNT(*) FROM replies WHERE run IN (SELECT runs.key FROM runs JOIN feedback f ON f.run_id = runs.id "
        f"WHERE {judged})",
        judged.values,
    )
    return int(in_production) + int(in_runs)


def _themes(connection: Connection, wanted: FeedbackFilter) -> tuple[FeedbackTheme, ...]:
    where = time_window(Where("comment != ''"), "created_at", wanted)
    rows = connection.run(
        f"SELECT comment, value FROM feedback WHERE {where} ORDER BY created_at DESC LIMIT ?",
        (*where.values, _COMMENTS),
    )
    themes = find_themes((comment, value >= POSITIVE) for comment, value in rows)
    return tuple(FeedbackTheme(*theme) for theme in themes)


def _agreement(connection: Connection, wanted: FeedbackFilter) -> Agreement:
    pairs: list[Any] = []
    in_production = "feedback f JOIN production_replies p ON p.id = f.production_id"
    for score, tables in (("c.score", SCORED), ("p.score", in_production)):
        where = time_window(Where(f"{score} IS NOT NULL"), "f.created_at", wanted)
        query = f"SELECT f.value, {score} FROM {tables} WHERE {where} LIMIT ?"
        pairs += connection.run(query, (*where.values, _PAIRS))
    found = correlate([value for value, _ in pairs], [score for _, score in pairs])
    ups = [score for value, score in pairs if value >= POSITIVE]
    downs = [score for value, score in pairs if value < POSITIVE]
    return Agreement(
        pairs=len(pairs),
        correlation=None if found is None else found.r,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        mean_score_positive=sum(ups) / len(ups) if ups else None,
        mean_score_negative=sum(downs) / len(downs) if downs else None,
    )
