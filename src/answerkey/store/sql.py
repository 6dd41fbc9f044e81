"""SqlStore: runs on SQLite or PostgreSQL, appended in small durable batches and read back as streams."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Select, and_, delete, event, func, select
from sqlalchemy.exc import DBAPIError

from answerkey.errors import UnknownNameError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo
from answerkey.model.score_batch import ScoreBatch
from answerkey.model.scorecard import Scorecard
from answerkey.model.summary import Summary
from answerkey.model.tally import summarise
from answerkey.model.trial import Trial
from answerkey.store import schema
from answerkey.store.connect import connect, explain
from answerkey.store.writing import RunWriter, write_rows

__all__ = ["SqlStore"]

_encode = msgspec.json.Encoder().encode
_decode_question = msgspec.json.Decoder(Question).decode
_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode
_decode_scorecard = msgspec.json.Decoder(Scorecard).decode
_decode_info = msgspec.json.Decoder(RunInfo).decode
_decode_summary = msgspec.json.Decoder(Summary).decode

# Rows fetched at a time when a run is read back.
_BATCH = 1000


class _Value(msgspec.Struct, gc=False):
    value: float | None = None


class _Card(msgspec.Struct, gc=False):
    components: dict[str, _Value] = {}
    metrics: dict[str, float | None] = {}


_decode_card = msgspec.json.Decoder(_Card).decode


class _Statements:
    """Statements through SQLAlchemy's connection, in the driver's own dialect."""

    def __init__(self, connection: Connection, sign: str) -> None:
        self._connection = connection
        self._sign = sign

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.exec_driver_sql(sql.replace("?", self._sign), tuple(values) or None)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.exec_driver_sql(sql.replace("?", self._sign), [tuple(row) for row in rows])


class SqlStore(RunWriter):
    """A store in an SQL database."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str | None = None, *, folder: Path | None = None, create: bool = True) -> "SqlStore":
        """Open and, if need be, make or migrate a store."""
        return cls(connect(url, folder=folder, create=create))

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    def __enter__(self) -> "SqlStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction whose database errors come out as one clear line."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise explain(error, self.engine.url) from None

    @property
    def address(self) -> str:
        """Where the store is, without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    def tune_for_serving(self) -> None:
        """A reader at a page must not wait half a minute for a lock, as a run that writes may."""
        if self.engine.dialect.name != "sqlite":
            return

        def prepare(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA busy_timeout=3000")
            # The same pages are read again and again.
            connection.execute("PRAGMA mmap_size=268435456")

        event.listen(self.engine, "connect", prepare)
        self.engine.dispose()

    # Writing; a run's own rows are RunWriter's.

    @contextmanager
    def statements(self) -> Iterator["_Statements"]:
        """A transaction straight through the driver."""
        with self.transaction() as connection:
            yield self._through(connection)

    def _through(self, connection: Connection) -> "_Statements":
        return _Statements(connection, "?" if self.engine.dialect.name == "sqlite" else "%s")

    def delete_run(self, run_id: str) -> None:
        """Forget a run, its replies and its scorecards."""
        with self.transaction() as connection:
            for table in (
                *(schema.replies, schema.scorecards, schema.reply_ids, schema.reply_texts),
                schema.score_columns,
            ):
                connection.execute(delete(table).where(table.c.run_id == run_id))
            connection.execute(delete(schema.baselines).where(schema.baselines.c.run_id == run_id))
            connection.execute(delete(schema.runs).where(schema.runs.c.id == run_id))

    def write(self, connection: Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows within a transaction; one with the same key is replaced, so that writing twice is harmless."""
        write_rows(self._through(connection), table, rows)

    # Reading

    def list_runs(self, *, limit: int | None = None, offset: int = 0) -> list[tuple[RunInfo, Summary | None]]:
        """Runs, newest first."""
        query = (
            select(schema.runs.c.info, schema.runs.c.summary)
            .order_by(schema.runs.c.created_at.desc(), schema.runs.c.id.desc())
            .limit(limit)
            .offset(offset)
        )
        with self.transaction() as connection:
            return [
                (_decode_info(info), None if summary is None else _decode_summary(summary))
                for info, summary in connection.execute(query)
            ]

    def count_runs(self) -> int:
        """How many runs there are."""
        with self.transaction() as connection:
            return int(connection.execute(select(func.count()).select_from(schema.runs)).scalar_one())

    def find_run(self, reference: str) -> RunInfo:
        """The run with this id, unique prefix, baseline name or name, or `latest`, `latest~1`, …"""
        if reference == "latest" or reference.startswith("latest~"):
            return self._latest(reference)
        runs = schema.runs.c
        with self.transaction() as connection:
            baseline = connection.execute(
                select(schema.baselines.c.run_id).where(schema.baselines.c.name == reference)
            ).scalar()
            wanted = baseline or reference
            exact = connection.execute(select(runs.info).where(runs.id == wanted)).scalar()
            if exact is not None:
                return _decode_info(exact)
            by_name = connection.execute(
                select(runs.info)
                .where(runs.name == wanted)
                .order_by(runs.created_at.desc(), runs.id.desc())
                .limit(1)
            ).scalar()
            if by_name is not None:
                return _decode_info(by_name)
            prefixed = connection.execute(
                select(runs.info).where(runs.id.startswith(wanted, autoescape=True)).limit(2)
            )
            found = [_decode_info(info) for (info,) in prefixed]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownNameError(
                f"run {reference!r} is ambiguous: several ids begin so; give more of the id"
            )
        raise UnknownNameError(f"no run {reference!r} in this store; `answerkey runs` lists them")

    def _latest(self, reference: str) -> RunInfo:
        _, _, back = reference.partition("~")
        if back and not back.isdecimal():
            raise UnknownNameError(f"run {reference!r}: write latest~1 for the run before the latest")
        found = self.list_infos(limit=1, offset=int(back or 0))
        if not found:
            raise UnknownNameError(f"no run {reference!r} in this store; `answerkey run` makes one")
        return found[0]

    def list_infos(self, *, limit: int | None = None, offset: int = 0) -> list[RunInfo]:
        """What runs there are, newest first, without their summaries."""
        runs = schema.runs.c
        query = select(runs.info).order_by(runs.created_at.desc(), runs.id.desc()).limit(limit).offset(offset)
        with self.transaction() as connection:
            return [_decode_info(info) for info in connection.execute(query).scalars()]

    def load_run(self, info: RunInfo) -> Run:
        """A run with its summary; its results are read when they are asked for."""
        with self.transaction() as connection:
            payload = connection.execute(
                select(schema.runs.c.summary).where(schema.runs.c.id == info.id)
            ).scalar()
        if payload is not None:
            summary = _decode_summary(payload)
        else:
            planned = self.count_questions(info.question_set_hash) * info.repeat
            summary = summarise(self.results(info), planned=planned, pass_mark=info.pass_mark)
        return Run(info=info, summary=summary, read_results=lambda: self.results(info))

    def summary_of(self, run_id: str) -> Summary | None:
        """A run's summary; None while it is under way."""
        with self.transaction() as connection:
            payload = connection.execute(
                select(schema.runs.c.summary).where(schema.runs.c.id == run_id)
            ).scalar()
        return None if payload is None else _decode_summary(payload)

    def finished_state(self, run_id: str) -> str | None:
        """Changes whenever what a finished run is or scored does; None while it is under way."""
        runs = schema.runs.c
        with self.transaction() as connection:
            row = connection.execute(select(runs.info, runs.summary).where(runs.id == run_id)).one()
        return None if row.summary is None else f"{row.info}\n{row.summary}"

    def questions(self, set_hash: str) -> Iterator[Question]:
        """A stored question set, in order."""
        items = schema.set_items.c
        query = (
            select(schema.questions.c.payload)
            .join(schema.set_items, items.content_hash == schema.questions.c.content_hash)
            .where(items.set_hash == set_hash)
            .order_by(items.position)
        )
        for (payload,) in self.stream(query):
            yield _decode_question(payload)

    def reply_keys(self, info: RunInfo) -> set[tuple[str, int]]:
        """Which (ask hash, trial) pairs already have a reply from this target."""
        replies = schema.replies.c
        query = select(replies.ask_hash, replies.trial).where(
            replies.run_id == info.id, replies.target_hash == info.target_hash
        )
        return {(ask_hash, trial) for ask_hash, trial in self.stream(query)}

    def trials_of(self, info: RunInfo, ask_hash: str) -> list[tuple[int, tuple[Reply, ...]]]:
        """The stored trials of one question, as far as it has been asked of this target."""
        replies = schema.replies.c
        query = (
            select(replies.trial, replies.payload)
            .where(
                replies.run_id == info.id,
                replies.ask_hash == ask_hash,
                replies.target_hash == info.target_hash,
            )
            .order_by(replies.trial)
        )
        with self.transaction() as connection:
            return [(trial, _decode_replies(payload)) for trial, payload in connection.execute(query)]

    def count_questions(self, set_hash: str) -> int:
        """How many questions a stored set has."""
        items = schema.set_items.c
        with self.transaction() as connection:
            return int(
                connection.execute(select(func.count()).where(items.set_hash == set_hash)).scalar_one()
            )

    def results(self, info: RunInfo, *where: Any) -> Iterator[Trial]:
        """The run's results in the set's order, trial by trial."""
        for position, trial, card, replies, question in self.stream(self.results_query(info, *where)):
            yield Trial(
                question=_decode_question(question),
                number=trial,
                position=position,
                replies=_decode_replies(replies),
                scorecard=_decode_scorecard(card),
            )

    def results_query(self, info: RunInfo, *where: Any) -> Select[Any]:
        """Scorecards of the run's current scoring with their question and replies."""
        cards, replies = schema.scorecards.c, schema.replies.c
        return (
            select(
                cards.position,
                cards.trial,
                cards.payload,
                replies.payload.label("replies"),
                schema.questions.c.payload.label("question"),
            )
            .join(
                schema.replies,
                and_(
                    replies.run_id == cards.run_id,
                    replies.ask_hash == cards.ask_hash,
                    replies.trial == cards.trial,
                ),
            )
            .join(schema.questions, schema.questions.c.content_hash == cards.content_hash)
            .where(cards.run_id == info.id, cards.scoring_hash == info.scoring_hash, *where)
            .order_by(cards.position, cards.trial)
        )

    def stream(self, query: Select[Any]) -> Iterator[Any]:
        """Rows of a query, fetched a batch at a time."""
        try:
            with self.engine.connect() as connection:
                yield from connection.execution_options(yield_per=_BATCH).execute(query)
        except DBAPIError as error:
            raise explain(error, self.engine.url) from None

    # What comparisons read: a few light columns, without replies, reasons or questions.

    def score_batches(self, info: RunInfo) -> Iterator[ScoreBatch]:
        """The run's trials under its current scoring, in the set's order, trial by trial."""
        cards = schema.scorecards.c
        query = (
            select(
                cards.question_id,
                cards.content_hash,
                cards.category,
                cards.score,
                cards.error_kind,
                cards.latency_ms,
                cards.cost,
                cards.payload,
            )
            .where(cards.run_id == info.id, cards.scoring_hash == info.scoring_hash)
            .order_by(cards.position, cards.trial)
        )
        try:
            with self.engine.connect() as connection:
                result = connection.execution_options(yield_per=_BATCH).execute(query)
                for rows in result.partitions():
                    ids, hashes, categories, scores, kinds, latencies, costs, payloads = zip(
                        *rows, strict=True
                    )
                    components, metrics = _values(payloads)
                    yield ScoreBatch(
                        ids, hashes, categories, scores, kinds, latencies, costs, components, metrics
                    )
        except DBAPIError as error:
            raise explain(error, self.engine.url) from None

    def question_clusters(self, set_hash: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
        """(content hash, cluster) of the questions whose metadata hold one of the fields, the first that is there."""
        items, questions = schema.set_items.c, schema.questions.c
        # A question without fields of its own has no such key. Where no question has, one look through them all is
        # several times as fast as looking up those of the set.
        with_fields = questions.payload.like('%"metadata"%')
        with self.transaction() as connection:
            if connection.execute(select(questions.content_hash).where(with_fields).limit(1)).first() is None:
                return
        query = (
            select(questions.content_hash, questions.payload)
            .join(schema.set_items, items.content_hash == questions.content_hash)
            .where(items.set_hash == set_hash, with_fields)
        )
        for content, payload in self.stream(query):
            metadata = _decode_question(payload).metadata
            for field in fields:
                value = metadata.get(field)
                if isinstance(value, str | int) and not isinstance(value, bool):
                    yield content, f"{field}={value}"
                    break

    def question_texts(self, info: RunInfo, ids: Sequence[str]) -> dict[str, str]:
        """The wording of a few of the run's questions, by id."""
        cards, questions = schema.scorecards.c, schema.questions.c
        query = (
            select(cards.question_id, questions.payload)
            .join(schema.questions, questions.content_hash == cards.content_hash)
            .where(
                cards.run_id == info.id,
                cards.scoring_hash == info.scoring_hash,
                cards.trial == 1,
                cards.question_id.in_(ids),
            )
        )
        with self.transaction() as connection:
            return {
                identity: _decode_question(payload).question
                for identity, payload in connection.execute(query)
            }

    # Baselines

    def set_baseline(self, name: str, run_id: str) -> None:
        """Give a run a name that stays until it is given to another."""
        with self.transaction() as connection:
            row = {"name": name, "run_id": run_id, "set_at": _now()}
            self.write(connection, "baselines", [row])

    def baselines(self) -> Mapping[str, str]:
        """Baseline name → run id."""
        with self.transaction() as connection:
            rows = connection.execute(select(schema.baselines.c.name, schema.baselines.c.run_id))
            return {name: run_id for name, run_id in rows}  # noqa: C416  # a Row is no pair for dict()


def _values(payloads: Sequence[str]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Components and metrics of some scorecards, one column for each name."""
    cards = [_decode_card(payload) for payload in payloads]
    components = _by_name([card.components for card in cards])
    return {
        name: [None if score is None else score.value for score in column]
        for name, column in components.items()
    }, _by_name([card.metrics for card in cards])


def _by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _text(value: Any) -> str:
    return _encode(value).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
