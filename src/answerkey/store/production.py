"""Production replies: stored, searched, counted by day, reviewed, and the statistics of their feedback."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from answerkey.errors import UsageError
from answerkey.model.judgement import (
    POSITIVE,
    Agreement,
    CategoryFeedback,
    DayFeedback,
    Feedback,
    FeedbackStats,
    FeedbackTheme,
    ProductionReply,
)
from answerkey.model.scorecard import PASS_MARK, lowest_score
from answerkey.stats.intervals import Interval, UnitMoments, to_fixed_point
from answerkey.stats.paired import correlate
from answerkey.store.database import (
    BATCH,
    SAID_IN_PRODUCTION,
    TABLES,
    Connection,
    Database,
    Row,
    Sql,
    all_of,
    any_of,
    in_list,
    insert,
    sql,
)
from answerkey.store.feedback import SCORED, FeedbackFilter, FeedbackStore
from answerkey.store.run_rows import fold, storable, tools_text
from answerkey.store.table_query import Day, ShortText, TableFilter, TableQuery, Window, within_days
from answerkey.text.dates import day_begins, day_ends
from answerkey.text.normalise import find_themes, one_line

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


# Daily counts, updated with every write so that figures need not read the replies.


# Facet → SQL of its value; the facet "" has all replies.
_FACETS = {name: name for name in ("category", "error_kind", "model", "version")} | {
    "": "''",
    "result": f"CASE WHEN score < {lowest_score(PASS_MARK)!r} THEN 'failed' WHEN score IS NULL THEN 'ungraded' ELSE 'passed' END",
}
_ADD = (
    "INSERT INTO production_counts (day, facet, value, replies) VALUES (?, ?, ?, ?) ON CONFLICT (day, facet, value) "
    "DO UPDATE SET replies = production_counts.replies + excluded.replies"
)
_FIRST, _LAST = "T00:00:00.000+00:00", "T23:59:59.999+00:00"

# Day (in UTC), facet and value → replies; over several days without the day.
Counts = Counter[tuple[str, ...]]


def counts_of(connection: Connection, where: Sql) -> Counts:
    """The replies `p` that meet a condition, by day, facet and value."""
    parts = [
        f"SELECT day, '{facet}', {value}, COUNT(*) FROM chosen WHERE {value} IS NOT NULL GROUP BY 1, 3"
        for facet, value in _FACETS.items()
    ]
    query = sql(
        "WITH chosen AS (SELECT SUBSTR(p.created_at, 1, 10) AS day, p.category, p.error_kind, p.model, p.version, "
        "p.score FROM production_replies p WHERE {where}) {parts}",
        where=where,
        parts=" UNION ALL ".join(parts),
    )
    return Counter({tuple(key): replies for *key, replies in connection.run(*query)})


def counts_of_ids(connection: Connection, ids: Sequence[str]) -> Counts:
    """The replies with these ids, however many."""
    total: Counts = Counter()
    for start in range(0, len(ids), BATCH):
        total.update(counts_of(connection, sql("p.id IN {ids}", ids=in_list(ids[start : start + BATCH]))))
    return total


def add_up(connection: Connection, before: Counts, after: Counts) -> None:
    """Update the stored counts. Call it last in a transaction: writers of the same day wait for each other, in key order."""
    changes = Counter(after)
    changes.subtract(before)
    connection.run_many(_ADD, [(*key, change) for key, change in sorted(changes.items()) if change])
    if before:
        connection.run("DELETE FROM production_counts WHERE replies = 0")


def add_up_all(connection: Connection) -> None:
    """Count the replies of a store that has no counts."""
    add_up(connection, Counter(), counts_of(connection, all_of(())))


@contextmanager
def recounted(database: Database, connection: Connection, ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Lock replies while they are changed or deleted, and update the counts afterwards; yields the ids of those to change."""
    if database.dialect == "postgresql":
        query = "SELECT id FROM production_replies WHERE id IN {ids} ORDER BY key FOR UPDATE"
        # Only these are locked: not a reply that was deleted and is added again meanwhile.
        ids = [identity for (identity,) in connection.run(*sql(query, ids=in_list(ids)))]
    before = counts_of_ids(connection, ids)
    yield ids
    add_up(connection, before, counts_of_ids(connection, ids))


def window_counts(connection: Connection, criteria: Window) -> Counts:
    """Replies by facet and value over a range of days.

    They are counted by UTC day; in another time zone the hours before the first whole day and after the last are added.
    """
    begin = "" if criteria.since is None else day_begins(criteria.since)
    end = "9999-99" if criteria.until is None else day_ends(criteria.until)
    if begin >= end:
        return Counter()
    stored = connection.run(
        "SELECT facet, value, SUM(replies) FROM production_counts "
        f"WHERE day || '{_FIRST}' >= ? AND day || '{_LAST}' < ? GROUP BY facet, value",
        (begin, end),
    )
    total: Counts = Counter({(facet, value): int(replies) for facet, value, replies in stored})
    hours = []
    if begin[10:] not in ("", _FIRST):
        hours.append((begin, f"{begin[:10]}T24"))
    if criteria.until is not None and end[10:] != _FIRST:
        hours.append((end[:10], end))
    for since, until in hours:
        found = counts_of(connection, sql("p.created_at >= ? AND p.created_at < ?", since, until))
        for (_, *key), replies in found.items():
            total[tuple(key)] += replies
    return total


# Replies


# Column → SQL, for columns that rows can be sorted by.
_COLUMNS = {
    name: name for name in ("created_at", "score", "latency_ms", "category", "model", "version", "id")
} | {"error": "error_kind"}
_NUMBERS = ("score", "latency_ms")
# Filter → the column that replies are counted by as they are written.
_COUNTED = {"category": "category", "error": "error_kind", "model": "model", "version": "version"}
# Matching replies are counted up to this number.
MAX_COUNTED = 10_000
# Characters of a name and of a value of metadata.
METADATA_WIDTH = 200


class ProductionFilter(TableFilter, frozen=True, kw_only=True):
    """Which replies to list, and in what order."""

    category: ShortText | None = None
    # A kind of error.
    error: ShortText | None = None
    # Passed, failed, an error, or not gradable.
    result: Literal["failed", "passed", "error", "ungraded"] | None = None
    # The users' verdict.
    verdict: Literal["up", "down", "any", "none"] | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # Of the chatbot.
    model: ShortText | None = None
    version: ShortText | None = None
    # What else was sent with it, as name=value.
    metadata: ShortText | None = None
    # Of one conversation.
    conversation: ShortText | None = None
    # A text in the question, the reply or a comment of users.
    text: ShortText | None = None
    # The first and the last day, in the time zone of this machine.
    since: Day | None = None
    until: Day | None = None
    sort: ShortText = "-created_at"

    def __post_init__(self) -> None:
        if self.metadata and "=" not in self.metadata:
            name = self.metadata[:60]
            raise ValueError(f"metadata {name!r}: write a name and a value, e.g. {name}=tenant")


class ProductionFacets(msgspec.Struct, frozen=True, kw_only=True):
    """The values that replies of some days can be filtered by, with their numbers."""

    replies: int
    errors: dict[str, int]
    categories: dict[str, int]
    models: dict[str, int]
    versions: dict[str, int]


class Addition(NamedTuple):
    """The result of storing replies."""

    # The ids of new replies.
    new: tuple[str, ...]
    # Earlier verdicts that were linked to them.
    linked: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ProductionReply).decode


class ProductionReplies(TableQuery[ProductionFilter, ProductionReply]):
    """Reads and writes the production replies of a store."""

    text_columns = tuple(name for name in _COLUMNS if name not in _NUMBERS)

    def __init__(self, store: "SqlStore") -> None:
        super().__init__(store.database, _COLUMNS)
        self._store = store

    def add(self, replies: Sequence[ProductionReply]) -> Addition:
        """Store new replies and link earlier feedback to them; known ids are ignored."""
        statement = insert("production_replies")
        with self.database.transaction() as connection:
            added = [item for item in replies if connection.run(statement, production_row(item)).rowcount]
            linked = FeedbackStore(self._store).link(connection, added)
            new = tuple(item.id for item in added)
            add_up(connection, Counter(), counts_of_ids(connection, new))
        return Addition(new, linked)

    def graded_otherwise(self, version: str, *, limit: int) -> list[ProductionReply]:
        """Replies that were last graded by another golden set or scoring."""
        # Three queries, each of which can use the index.
        conditions = (("graded_by IS NULL", ()), ("graded_by < ?", (version,)), ("graded_by > ?", (version,)))
        ids: list[Row] = []
        with self.database.reading() as connection:
            for condition, values in conditions:
                query = f"SELECT id FROM production_replies WHERE {condition} LIMIT ?"
                ids += connection.run(query, (*values, limit - len(ids))).fetchall()
            return self.read(connection, ids)

    def keep_grades(self, graded: Sequence[ProductionReply]) -> None:
        """Store new scores of replies."""
        changed = ("category", "score", "error_kind", "graded_by", "payload")
        # Without the key that the database assigns.
        columns = list(TABLES["production_replies"].columns)[1:]
        rows = {}
        for item in graded:
            row = dict(zip(columns, production_row(item), strict=True))
            rows[item.id] = (*(row[name] for name in changed), item.id)
        sql = f"UPDATE production_replies SET {', '.join(f'{name} = ?' for name in changed)} WHERE id = ?"
        with (
            self.database.transaction() as connection,
            recounted(self.database, connection, list(rows)) as ids,
        ):
            connection.run_many(sql, [rows[identity] for identity in ids])

    def find(self, identity: str) -> ProductionReply | None:
        with self.database.reading() as connection:
            return next(iter(self.read(connection, [(identity,)])), None)

    def every(self, criteria: ProductionFilter) -> Iterator[ProductionReply]:
        """All matching replies, read in batches: there may be millions."""
        query = sql(
            "SELECT id FROM ({matching}) AS t ORDER BY {order}",
            matching=self._all_matching(criteria),
            order=self._order(criteria),
        )
        for rows in self.database.batches(*query):
            with self.database.reading() as connection:
                replies = self.read(connection, rows)
            yield from replies

    def matching(self, criteria: ProductionFilter, value: str) -> Sql:
        """SELECT the ids of matching replies, up to the number that is counted."""
        return sql("{matching} LIMIT ?", MAX_COUNTED + 1, matching=self._all_matching(criteria))

    def _all_matching(self, criteria: ProductionFilter) -> Sql:
        """SELECT the ids of all matching replies, by whatever index finds them."""
        return sql(
            "SELECT {value} AS value, p.id, p.created_at FROM production_replies p WHERE {where}",
            value=f"p.{self._sort_column(criteria)}",
            where=self.filter_condition(criteria),
        )

    def filter_condition(self, criteria: ProductionFilter) -> Sql:
        """The condition that a reply `p` meets all filters."""
        conditions = _conditions(self.database, criteria)
        if criteria.text:
            conditions.append(
                sql(
                    "p.key IN ({said} UNION ALL SELECT c.key FROM production_replies c WHERE c.id IN ({commented}))",
                    said=self.database.search("production_replies", criteria.text),
                    commented=_commented(self.database, criteria.text),
                )
            )
        return all_of(
            [*conditions, *(limit.condition(f"p.{limit.name}") for limit in self.sql_ranges(criteria))]
        )

    def _sort_column(self, criteria: ProductionFilter) -> str:
        for name in criteria.value_names:
            if name not in _COLUMNS:
                raise UsageError(
                    f"replies cannot be sorted or filtered by {name[:60]!r}; use one of {', '.join(_COLUMNS)}"
                )
        return _COLUMNS[criteria.sort_column]

    def counts_with_page(self, criteria: ProductionFilter) -> bool:
        """Texts are searched once, for the page and the count."""
        return True

    def _order(self, criteria: ProductionFilter) -> str:
        return f"t.value IS NULL, {_order_of(criteria, 't', value='t.value')}"

    def _page_keys(
        self, connection: Connection, criteria: ProductionFilter, limit: int, offset: int
    ) -> tuple[Sequence[Row], int]:
        column = self._sort_column(criteria)
        if _stored_count(connection, criteria) <= MAX_COUNTED:
            keys, total = super()._page_keys(connection, criteria, limit, offset)
            if total <= MAX_COUNTED:
                return keys, total
        return self._follow_index(connection, criteria, column, limit, offset), MAX_COUNTED + 1

    def _follow_index(
        self, connection: Connection, criteria: ProductionFilter, column: str, limit: int, offset: int
    ) -> list[Row]:
        """The ids of a page of many replies: follow the index of the sort column until the page is full."""
        conditions = _conditions(self.database, criteria, followed=column)
        conditions += [
            limit.condition(_unless_followed(limit.name, column)) for limit in self.sql_ranges(criteria)
        ]
        if criteria.text:
            said = self.database.contains(SAID_IN_PRODUCTION.format(row="p"), criteria.text)
            commented = sql("p.id IN ({commented})", commented=_commented(self.database, criteria.text))
            conditions.append(any_of([said, commented]))

        def read_ids(condition: Sql, limit: int, offset: int) -> list[Row]:
            query = sql(
                "SELECT p.id FROM production_replies p WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",
                limit,
                offset,
                where=all_of([*conditions, condition]),
                order=_order_of(criteria, "p", value=f"p.{column}"),
            )
            return list(connection.run(*query).fetchall())

        if column in ("created_at", "id"):
            return read_ids(Sql("1 = 1"), limit, offset)
        # Replies without a value come last, wherever the index has them.
        known = Sql(f"p.{column} >= ?", (-math.inf if column in _NUMBERS else "",))
        ids = read_ids(known, limit, offset)
        if len(ids) < limit:
            before = offset + len(ids)
            if not ids:
                count = sql(
                    "SELECT COUNT(*) FROM production_replies p WHERE {where}",
                    where=all_of([*conditions, known]),
                )
                before = connection.value(*count)
            ids += read_ids(Sql(f"p.{column} IS NULL"), limit - len(ids), max(offset - before, 0))
        return ids

    def read(self, connection: Connection, keys: Sequence[Row]) -> list[ProductionReply]:
        ids = [storable(key[0]) for key in keys]
        query = sql(
            "SELECT question, text, payload FROM production_replies WHERE id IN {ids}", ids=in_list(ids)
        )
        replies = {item.id: item for item in (_unpacked(*row) for row in connection.run(*query))}
        return [replies[identity] for identity in ids if identity in replies]

    def facets(self, criteria: ProductionFilter | None = None, *, most: int = 100) -> ProductionFacets:
        """The values of the criteria's days."""
        with self.database.reading() as connection:
            total = window_counts(connection, criteria or ProductionFilter())

        def counts(facet: str) -> dict[str, int]:
            found = [(value, replies) for (name, value), replies in total.items() if name == facet]
            return dict(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:most])

        return ProductionFacets(
            replies=total["", ""],
            errors=counts("error_kind"),
            categories=counts("category"),
            models=counts("model"),
            versions=counts("version"),
        )

    def verdicts(self, ids: Sequence[str]) -> dict[str, list[Feedback]]:
        """Reply id → its feedback, newest first."""
        found: dict[str, list[Feedback]] = {}
        for item in FeedbackStore(self._store).of_production(ids):
            found.setdefault(item.production_id or "", []).append(item)
        return found


def metadata_text(metadata: Mapping[str, str]) -> str:
    """Names and values, each between line breaks."""
    lines = [one_line(f"{name}={value}", 2 * METADATA_WIDTH) for name, value in metadata.items()]
    return storable("\n" + "\n".join(lines) + "\n") if lines else ""


def production_row(item: ProductionReply) -> tuple[Any, ...]:
    """A row of the table. A text that a column cannot store unchanged stays in the payload."""
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
        None if reply.usage is None else reply.usage.cost,
        metadata_text(item.metadata),
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


def _stored_count(connection: Connection, criteria: ProductionFilter) -> int:
    """How many replies match, if the stored counts say so: without a filter, or with one of a facet; otherwise 0."""
    facets = {**_COUNTED, "result": "result"}
    given = {facets.get(name): value for name, value in criteria.conditions.items()} or {"": ""}
    if len(given) > 1 or None in given or criteria.ranges:
        return 0
    query = "SELECT COALESCE(SUM(replies), 0) FROM production_counts WHERE facet = ? AND value = ?"
    return int(connection.value(query, *given.items()))


def _order_of(criteria: ProductionFilter, row: str, *, value: str) -> str:
    """SQL order; of equal values the newest come first in ascending order, so that an index can be followed backwards."""
    column = _COLUMNS[criteria.sort_column]
    direction, reverse = ("DESC", "ASC") if criteria.descending else ("ASC", "DESC")
    if column == "id":
        return f"{row}.id {direction}"
    if column == "created_at":
        return f"{row}.created_at {direction}, {row}.id {direction}"
    return f"{value} {direction}, {row}.created_at {reverse}, {row}.id {reverse}"


def _unless_followed(name: str, followed: str | None) -> str:
    """A column; while the index of another one is followed, as an expression that no index is used for."""
    if followed in (None, name):
        return f"p.{name}"
    return f"(p.{name} || '')" if name == "created_at" else f"(p.{name} + 0)"


_ABOUT = "SELECT f.production_id FROM feedback f WHERE f.production_id"
_VERDICTS = {
    "up": Sql(f"p.id IN ({_ABOUT} IS NOT NULL AND f.value >= ?)", (POSITIVE,)),
    "down": Sql(f"p.id IN ({_ABOUT} IS NOT NULL AND f.value < ?)", (POSITIVE,)),
    "any": Sql(f"p.id IN ({_ABOUT} IS NOT NULL)"),
    "none": Sql(f"NOT EXISTS ({_ABOUT} = p.id)"),
}


def _commented(database: Database, text: str) -> Sql:
    """SELECT the ids of replies that users said this about."""
    return sql(
        "SELECT f.production_id FROM feedback f WHERE f.production_id IS NOT NULL AND {said}",
        said=database.contains("f.comment", text),
    )


def _conditions(database: Database, criteria: ProductionFilter, *, followed: str | None = None) -> list[Sql]:
    """All filters but the text and the ranges."""
    score = _unless_followed("score", followed)
    results = {
        "failed": Sql(f"{score} < ?", (lowest_score(PASS_MARK),)),
        "passed": Sql(f"{score} >= ?", (lowest_score(PASS_MARK),)),
        # Unlike IS NOT NULL, both databases find this through an index.
        "error": Sql("p.error_kind > ''"),
        "ungraded": Sql("p.score IS NULL"),
    }
    conditions = within_days(_unless_followed("created_at", followed), criteria)
    conditions += [
        Sql(f"p.{_COUNTED[name]} = ?", (value,))
        for name, value in criteria.conditions.items()
        if name in _COUNTED
    ]
    if criteria.result is not None:
        conditions.append(results[criteria.result])
    if criteria.verdict is not None:
        conditions.append(_VERDICTS[criteria.verdict])
    if criteria.tool:
        conditions.append(database.has_tool("p.tools", criteria.tool))
    if criteria.metadata:
        conditions.append(database.has_tool("p.metadata", criteria.metadata))
    if criteria.conversation:
        conditions.append(sql("p.conversation_id = ?", criteria.conversation))
    return conditions


# The review queue: a random sample of the replies that meet a filter

_REVIEWED = "EXISTS (SELECT 1 FROM feedback f WHERE f.production_id = p.id AND f.source = 'review')"
# A fixed random order: a multiplicative hash of the row's number.
_RANDOM = "(CAST(p.key AS BIGINT) * 2654435761) % 4294967296"


class ProductionQueue:
    """Replies without a review, in a random order that stays the same."""

    def __init__(self, store: "SqlStore", criteria: ProductionFilter) -> None:
        self._database = store.database
        self._matching = ProductionReplies(store).filter_condition(criteria)

    def next_id(self, offset: int = 0) -> str | None:
        """The id of the next reply to review after `offset` others; None if there is none."""
        query = sql(
            "SELECT p.id FROM production_replies p WHERE {where} ORDER BY {order} LIMIT 1 OFFSET ?",
            offset,
            where=all_of([self._matching, sql(f"NOT {_REVIEWED}")]),
            order=_RANDOM,
        )
        with self._database.reading() as connection:
            return connection.value(*query)  # type: ignore[no-any-return]

    def counts(self) -> tuple[int, int]:
        """How many replies wait, counted up to a limit, and how many have a review."""
        with self._database.reading() as connection:
            waiting, done = (
                connection.value(
                    *sql(
                        "SELECT COUNT(*) FROM (SELECT 1 FROM production_replies p WHERE {where} LIMIT ?) AS t",
                        MAX_COUNTED,
                        where=all_of([self._matching, sql(condition)]),
                    )
                )
                for condition in (f"NOT {_REVIEWED}", _REVIEWED)
            )
        return int(waiting), int(done)

    def trusted(self) -> tuple[int, int]:
        """Of the reviewed replies, how many the majority trusts, and how many there are."""
        query = sql(
            "SELECT SUM(CASE WHEN value > 0.5 THEN 1 ELSE 0 END), COUNT(*) FROM (SELECT AVG(f.value) AS value "
            "FROM feedback f JOIN production_replies p ON p.id = f.production_id "
            "WHERE f.source = 'review' AND {where} GROUP BY p.id) AS t",
            where=self._matching,
        )
        with self._database.reading() as connection:
            trusted, judged = connection.run(*query).fetchone()
        return int(trusted or 0), int(judged)


# Statistics of feedback


# Limits: comments read for themes, scored verdicts read for the correlation, and days shown.
_COMMENTS = 2_000
_PAIRS = 20_000
_DAYS = 90

_POSITIVE = f"SUM(CASE WHEN value >= {POSITIVE} THEN 1 ELSE 0 END)"


def feedback_stats(
    store: "SqlStore", *, queries: int | None = None, criteria: FeedbackFilter | None = None
) -> FeedbackStats:
    """Statistics of a store's feedback over days; `queries` overrides the number of replies users could have rated."""
    with store.database.reading() as connection:
        return _stats(connection, queries, criteria or FeedbackFilter())


def feedback_state(store: "SqlStore") -> tuple[str, ...]:
    """A value that changes with every verdict, production reply, and new scoring of a run with feedback."""
    queries = (
        "SELECT COUNT(*), MAX(created_at), SUM(value), SUM(LENGTH(comment)), COUNT(run_id), COUNT(production_id) "
        "FROM feedback",
        "SELECT SUM(replies) FROM production_counts WHERE facet = ''",
        "SELECT MIN(graded_by), MAX(graded_by) FROM production_replies",
        "SELECT id, info FROM runs WHERE id IN (SELECT run_id FROM feedback WHERE run_id IS NOT NULL) ORDER BY id",
    )
    with store.database.reading() as connection:
        return tuple(repr(connection.run(query).fetchall()) for query in queries)


def _stats(connection: Connection, queries: int | None, criteria: FeedbackFilter) -> FeedbackStats:
    days = within_days("created_at", criteria)
    users, reviewers = (
        all_of([Sql(source), *days]) for source in ("source != 'review'", "source = 'review'")
    )

    def select(columns: str, where: Sql, ending: str = "") -> Any:
        template = f"SELECT {columns} FROM feedback WHERE {{where}} {ending}"
        return connection.run(*sql(template, where=where)).fetchall()

    ((*figures,),) = select(
        f"COUNT(*), {_POSITIVE}, SUM(CASE WHEN comment != '' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN run_id IS NOT NULL OR production_id IS NOT NULL THEN 1 ELSE 0 END)",
        users,
    )
    total, good, commented, known = (int(value or 0) for value in figures)
    ((reviews, trusted),) = select(f"COUNT(*), {_POSITIVE}", reviewers)
    asked = _queries(connection, criteria) if queries is None else queries
    rated = known if queries is None else total
    by_category = select(
        f"category, COUNT(*), {_POSITIVE}", users, "GROUP BY category ORDER BY COUNT(*) DESC"
    )
    by_day = select(
        f"SUBSTR(created_at, 1, 10) AS day, COUNT(*), {_POSITIVE}",
        users,
        f"GROUP BY SUBSTR(created_at, 1, 10) ORDER BY day DESC LIMIT {_DAYS}",
    )
    return FeedbackStats(
        feedback=total,
        positive=good,
        negative=total - good,
        satisfaction=good / total if total else None,
        satisfaction_interval=_satisfaction_interval(connection, users),
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
        themes=_themes(connection, criteria),
        agreement=_agreement(connection, criteria),
    )


# A verdict's reply; a verdict whose reply is not known is a unit of its own.
_UNIT = (
    "run_id, ask_hash, trial, production_id, CASE WHEN run_id IS NULL AND production_id IS NULL THEN id END"
)


def _satisfaction_interval(connection: Connection, users: Sql) -> Interval | None:
    """The interval of the share of positive verdicts, over replies."""
    query = sql(
        f"SELECT size, ups, COUNT(*) FROM (SELECT COUNT(*) AS size, {_POSITIVE} AS ups FROM feedback "
        f"WHERE {{where}} GROUP BY {_UNIT}) AS units GROUP BY size, ups",
        where=users,
    )
    moments = UnitMoments()
    for size, ups, times in connection.run(*query):
        moments.add(to_fixed_point(float(ups)), int(size), int(times), bounded=True)
    return moments.interval() if moments.count else None


def _queries(connection: Connection, criteria: FeedbackFilter) -> int:
    in_production = window_counts(connection, criteria)["", ""]
    in_runs = sql(
        "SELECT COUNT(*) FROM replies WHERE run IN "
        "(SELECT runs.key FROM runs JOIN feedback f ON f.run_id = runs.id WHERE {judged})",
        judged=all_of([Sql("f.source != 'review'"), *within_days("f.created_at", criteria)]),
    )
    return in_production + int(connection.value(*in_runs))


def _themes(connection: Connection, criteria: FeedbackFilter) -> tuple[FeedbackTheme, ...]:
    query = sql(
        "SELECT comment, value FROM feedback WHERE {where} ORDER BY created_at DESC LIMIT ?",
        _COMMENTS,
        where=all_of([Sql("comment != ''"), *within_days("created_at", criteria)]),
    )
    themes = find_themes((comment, value >= POSITIVE) for comment, value in connection.run(*query))
    return tuple(FeedbackTheme(*theme) for theme in themes)


def _agreement(connection: Connection, criteria: FeedbackFilter) -> Agreement:
    pairs: list[Any] = []
    in_production = "feedback f JOIN production_replies p ON p.id = f.production_id"
    for score, tables in (("c.score", SCORED), ("p.score", in_production)):
        query = sql(
            "SELECT AVG(f.value), {score} FROM {tables} WHERE {where} "
            "GROUP BY f.run_id, f.ask_hash, f.trial, f.production_id, {score} LIMIT ?",
            _PAIRS,
            score=score,
            tables=tables,
            where=all_of([Sql(f"{score} IS NOT NULL"), *within_days("f.created_at", criteria)]),
        )
        pairs += connection.run(*query)
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
