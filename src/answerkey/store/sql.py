"""SqlStore: runs on SQLite or PostgreSQL, appended in small durable batches and read back as streams."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Select, and_, delete, func, select
from sqlalchemy.exc import DBAPIError

from answerkey.errors import UnknownNameError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Scorecard
from answerkey.model.summary import Summary
from answerkey.model.tally import summarise
from answerkey.model.trial import Trial
from answerkey.store import schema
from answerkey.store.connect import connect, explain
from answerkey.store.score_columns import keep_columns
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
    def full(self) -> "SqlStore":
        """This store: it can read everything."""
        return self

    # Writing; a run's own rows are RunWriter's.

    @contextmanager
    def statements(self) -> Iterator["_Statements"]:
        """A transaction straight through the driver."""
        with self.transaction() as connection:
            yield self._through(connection)

    def _through(self, connection: Connection) -> "_Statements":
        return _Statements(connection, "?" if self.engine.dialect.name == "sqlite" else "%s")

    def keep_columns(self, info: RunInfo) -> None:
        """Keep what comparisons read of a run that has ended."""
        keep_columns(self, info)

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
        return Run(info=info, summary=summary, results=StreamedResults(lambda: self.results(info)))

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
        for position, number, card, replies, question in self.stream(self.results_query(info, *where)):
            yield Trial(
                _decode_question(question),
                number,
                position,
                _decode_replies(replies),
                _decode_scorecard(card),
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


def _text(value: Any) -> str:
    return _encode(value).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
