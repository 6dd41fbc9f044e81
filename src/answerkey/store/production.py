"""ProductionReplies: what the chatbot answered to real users, kept so that feedback and rates have something to refer to."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from answerkey.errors import UsageError
from answerkey.model.feedback import POSITIVE, Feedback, ProductionReply
from answerkey.model.scorecard import PASS_MARK
from answerkey.store.database import BATCH, EPSILON, Database, Where, signs
from answerkey.store.feedback_book import Day, FeedbackBook, ShortText, time_window
from answerkey.store.packing import fold, storable, tools_text
from answerkey.store.row_filter import Ranged
from answerkey.store.schema import SAID_IN_PRODUCTION, TABLES, insert

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

# Columns that rows can be sorted by, and those of which ranges can be wanted.
_SORTED = {
    name: name for name in ("created_at", "score", "latency_ms", "category", "model", "version", "id")
} | {"error": "error_kind"}
_RANGED = ("score", "latency_ms")


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
        new: list[str] = []
        linked = 0
        book = FeedbackBook(self._store)
        with self._database.transaction() as connection:
            for item in replies:
                if not connection.run(insert("production_replies"), production_row(item)).rowcount:
                    continue
                new.append(item.id)
                linked += book.link(
                    connection,
                    response_id=item.id,
                    trace_id=item.reply.trace_id,
                    conversation_id=item.reply.conversation_id,
                )
        return Addition(tuple(new), linked)

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
        with self._database.transaction() as connection:
            connection.run_many(sql, rows)

    def find(self, identity: str) -> ProductionReply | None:
        """The reply with this id."""
        return self._read([identity]).get(identity)

    def page(
        self, wanted: ProductionFilter, *, limit: int = 25, offset: int = 0, total: int | None = None
    ) -> tuple[list[ProductionReply], int]:
        """Replies as wanted, and how many there are of them in all, unless that is known already."""
        where = _conditions(self._database, wanted)
        chosen = f"FROM production_replies p WHERE {where}"
        # Texts are long: where they are searched without an index, they are read once for both.
        unindexed = wanted.text and self._database.indexed("production_replies", "p", wanted.text) is None
        counted = "COUNT(*) OVER ()" if unindexed and total is None else "NULL"
        query = f"SELECT id, {counted} {chosen} ORDER BY {_order(wanted)} LIMIT ? OFFSET ?"
        with self._database.reading() as connection:
            rows = connection.run(query, (*where.values, limit, offset)).fetchall()
            if total is None and rows:
                total = rows[0][1]
            if total is None:
                total = connection.value(f"SELECT COUNT(*) {chosen}", where.values)
        ids = [identity for identity, _ in rows]
        found = self._read(ids)
        return [found[identity] for identity in ids if identity in found], int(total)

    def every(self, wanted: ProductionFilter) -> Iterator[ProductionReply]:
        """All replies as wanted, some at a time."""
        start = 0
        while rows := self.page(wanted, limit=BATCH, offset=start, total=0)[0]:
            yield from rows
            start += BATCH

    def state(self) -> tuple[str, ...]:
        """Changes with every reply, every new grading and every verdict."""
        queries = (
            "SELECT COUNT(*), MAX(created_at), COUNT(score), SUM(score), COUNT(error_kind) FROM production_replies",
            "SELECT MIN(graded_by), MAX(graded_by) FROM production_replies",
            "SELECT COUNT(production_id), MAX(production_id) FROM feedback",
        )
        with self._database.reading() as connection:
            return tuple(repr(connection.run(query).fetchone()) for query in queries)

    def figures(self, wanted: ProductionFilter | None = None, *, most: int = 100) -> ProductionFigures:
        """Add up in the database those of the time that is wanted."""
        time = time_window(Where(), "p.created_at", wanted or ProductionFilter())
        chosen = f"FROM production_replies p WHERE {time}"
        with self._database.reading() as connection:
            replies, graded, score, latency = connection.run(
                f"SELECT COUNT(*), COUNT(score), AVG(score), AVG(latency_ms) {chosen}", time.values
            ).fetchone()
            joined = f"JOIN production_replies p ON p.id = f.production_id AND {time}" if time else ""
            judged = connection.value(
                f"SELECT COUNT(DISTINCT f.production_id) FROM feedback f {joined} "
                "WHERE f.production_id IS NOT NULL",
                time.values,
            )
            kinds, categories, models, versions = (
                dict(
                    connection.run(
                        f"SELECT {column}, COUNT(*) {chosen} AND {column} IS NOT NULL "
                        f"GROUP BY {column} ORDER BY COUNT(*) DESC, {column} LIMIT ?",
                        (*time.values, most),
                    ).fetchall()
                )
                for column in ("p.error_kind", "p.category", "p.model", "p.version")
            )
        return ProductionFigures(
            replies=replies,
            graded=graded,
            score=score,
            errors=kinds,
            error_rate=sum(kinds.values()) / replies if replies else None,
            judged=judged,
            latency_ms=latency,
            categories=categories,
            models=models,
            versions=versions,
        )

    def verdicts(self, ids: Sequence[str]) -> dict[str, list[Feedback]]:
        """What people said of these replies, newest first."""
        found: dict[str, list[Feedback]] = {}
        for item in FeedbackBook(self._store).of_production(ids):
            found.setdefault(item.production_id or "", []).append(item)
        return found

    def count(self) -> int:
        """How many are kept."""
        with self._database.reading() as connection:
            return int(connection.value("SELECT COUNT(*) FROM production_replies"))

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


def _order(wanted: ProductionFilter) -> str:
    name, largest_first = wanted.order
    if name not in _SORTED:
        raise UsageError(f"replies are not sorted by {name[:60]!r}: choose one of {', '.join(_SORTED)}")
    way = "DESC" if largest_first else "ASC"
    if name == "created_at":
        return f"p.created_at {way}, p.id {way}"
    return f"p.{_SORTED[name]} IS NULL, p.{_SORTED[name]} {way}, p.created_at DESC, p.id"


def _conditions(database: Database, wanted: ProductionFilter) -> Where:
    where = time_window(Where(), "p.created_at", wanted)
    if wanted.model is not None:
        where.add("p.model = ?", wanted.model)
    if wanted.version is not None:
        where.add("p.version = ?", wanted.version)
    if wanted.category is not None:
        where.add("p.category = ?", wanted.category)
    if wanted.error is not None:
        where.add("p.error_kind = ?", wanted.error)
    match wanted.result:
        case "failed":
            where.add("p.score < ?", PASS_MARK - EPSILON)
        case "passed":
            where.add("p.score >= ?", PASS_MARK - EPSILON)
        case "error":
            where.add("p.error_kind IS NOT NULL")
        case "ungraded":
            where.add("p.score IS NULL")
    about = "SELECT 1 FROM feedback f WHERE f.production_id = p.id"
    match wanted.verdict:
        case "up":
            where.add(f"EXISTS ({about} AND f.value >= ?)", POSITIVE)
        case "down":
            where.add(f"EXISTS ({about} AND f.value < ?)", POSITIVE)
        case "any":
            where.add(f"EXISTS ({about})")
        case "none":
            where.add(f"NOT EXISTS ({about})")
    for limit in wanted.ranges:
        if limit.name not in _RANGED:
            raise UsageError(f"range: replies have no {limit.name[:60]!r}, only {' and '.join(_RANGED)}")
        if limit.low is not None:
            where.add(f"p.{limit.name} >= ?", limit.low - EPSILON)
        if limit.high is not None:
            where.add(f"p.{limit.name} <= ?", limit.high + EPSILON)
    if wanted.tool:
        where.add(*database.has_tool("p.tools", wanted.tool))
    if wanted.text:
        found = database.indexed("production_replies", "p", wanted.text)
        where.add(*found or database.contains(SAID_IN_PRODUCTION.format(row="p"), wanted.text))
    return where
