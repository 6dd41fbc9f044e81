"""The table of runs, and the progress of a run."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.model.summary import Latency
from answerkey.stats.intervals import Interval
from answerkey.store.database import Connection, Row, Sql, all_of, any_of, in_list, sql
from answerkey.store.run_rows import of_run
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import ShortText, TableFilter, TableQuery


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's summary that lists show."""

    questions: int
    score: float | None
    grade: str | None
    interval: Interval | None = None
    components: dict[str, float | None] = {}
    passed: int = 0
    pass_rate: float | None = None
    error_rate: float = 0.0
    errors: dict[str, int] = {}
    coverage: float = 1.0
    latency_ms: Latency | None = None
    usage: dict[str, float] = {}
    metrics: dict[str, float | None] = {}


class RunRow(msgspec.Struct, frozen=True):
    """A run in a list."""

    info: RunInfo
    # None until it is finished.
    figures: Figures | None
    # Its baseline names.
    baselines: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a run."""

    id: str
    status: str
    done: int
    planned: int
    score: float | None
    grade: str | None
    passed: int
    errors: int


class RunFilter(TableFilter, frozen=True, kw_only=True):
    """Which runs are wanted, and in what order."""

    # A part of a run's name or target, or the beginning of its id.
    text: ShortText | None = None
    # Only runs of this golden set, of this chatbot, with this tag.
    set: ShortText | None = None
    target: ShortText | None = None
    tag: ShortText | None = None
    status: Literal["running", "interrupted", "partial", "complete"] | None = None
    # A name of _COLUMNS or `figure_of`.
    sort: ShortText = "-created_at"


_COLUMNS = {
    "created_at": "created_at",
    "name": "name",
    "target": "target",
    "set": "question_set",
    "status": "status",
}


def figure_of(figures: Figures | None, name: str) -> float | None:
    """A run's figure by the name of its column; None if the run does not have it."""
    if figures is None:
        return None
    if name in ("score", "questions", "passed", "pass_rate", "error_rate", "coverage"):
        return getattr(figures, name)  # type: ignore[no-any-return]
    if name in ("low", "high"):
        return None if figures.interval is None else getattr(figures.interval, name)
    if name in ("p50", "p95"):
        return None if figures.latency_ms is None else getattr(figures.latency_ms, name)
    if name == "cost":
        return figures.usage.get("cost")
    value = figures.components.get(name)
    return figures.metrics.get(name) if value is None else value


_decode_figures = msgspec.json.Decoder(Figures).decode
_NEWEST = RunFilter()


class RunTable(TableQuery[RunFilter, RunRow]):
    """The runs of a store."""

    tie_break = "t.created_at DESC, t.id DESC"
    missing_last = True
    text_columns = tuple(_COLUMNS)

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store.database, _COLUMNS)
        self._store = store

    def page(
        self, criteria: RunFilter = _NEWEST, *, limit: int = 25, offset: int = 0
    ) -> tuple[list[RunRow], int]:
        """A page of runs, and how many match."""
        return super().page(criteria, limit=limit, offset=offset)

    def matching(self, criteria: RunFilter, value: str) -> Sql:
        """SELECT the ids of the matching runs."""
        return sql(
            "SELECT {value} AS value, id, created_at FROM runs WHERE {where}",
            value=value,
            where=self._where(criteria),
        )

    def _where(self, criteria: RunFilter) -> Sql:
        conditions = [
            Sql(f"{_COLUMNS[name]} = ?", (value,))
            for name, value in criteria.conditions.items()
            if name in ("set", "target", "status")
        ]
        if criteria.text:
            beginning = criteria.text.replace("\0", "")
            matches = [self.database.contains(column, criteria.text) for column in ("name", "target")]
            matches.append(Sql("substr(id, 1, length(?)) = ?", (beginning, beginning)))
            conditions.append(any_of(matches))
        if criteria.tag:
            conditions.append(Sql(f"? IN ({self.database.json_texts('info', 'tags')})", (criteria.tag,)))
        return all_of([*conditions, *self.range_conditions(criteria)])

    def measured(
        self, connection: Connection, criteria: RunFilter, names: Sequence[str], keys: Sequence[Row]
    ) -> dict[str, Sequence[float | None]]:
        """Figures of the runs' summaries."""
        figures: dict[str, list[float | None]] = {}
        query = sql("SELECT id, summary FROM runs WHERE {where}", where=self._where(criteria))
        for run_id, summary in connection.run(*query):
            decoded = None if summary is None else _decode_figures(summary)
            figures[run_id] = [figure_of(decoded, name) for name in names]
        return {
            name: [figures[run_id][place] if run_id in figures else None for run_id, _ in keys]
            for place, name in enumerate(names)
        }

    def read(self, connection: Connection, keys: Sequence[Row]) -> list[RunRow]:
        """The runs with these ids."""
        names: dict[str, list[str]] = {}
        for name, run_id in connection.run("SELECT name, run_id FROM baselines ORDER BY name"):
            names.setdefault(run_id, []).append(name)
        ids = [run_id for run_id, _ in keys]
        query = sql("SELECT id, info, summary FROM runs WHERE id IN {ids}", ids=in_list(ids))
        rows = {
            run_id: RunRow(
                self._store.read_info(connection, payload),
                None if summary is None else _decode_figures(summary),
                tuple(names.get(run_id, ())),
            )
            for run_id, payload, summary in connection.run(*query).fetchall()
        }
        return [rows[run_id] for run_id in ids if run_id in rows]

    def earlier(self, info: RunInfo, limit: int) -> list[RunRow]:
        """Earlier finished runs of the same chatbot on the same golden set, newest first."""
        query = (
            "SELECT info, summary FROM runs WHERE question_set = ? AND target = ? AND created_at < ? "
            "AND summary IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?"
        )
        with self.database.reading() as connection:
            rows = connection.run(query, (info.question_set, info.target, info.created_at, limit)).fetchall()
            return [
                RunRow(self._store.read_info(connection, payload), _decode_figures(summary))
                for payload, summary in rows
            ]

    def question_sets(self) -> list[tuple[str, int]]:
        """(name, number of runs) of the golden sets, most recently used first."""
        query = (
            "SELECT question_set, COUNT(*) FROM runs GROUP BY question_set "
            "ORDER BY MAX(created_at) DESC LIMIT 50"
        )
        with self.database.reading() as connection:
            return [tuple(row) for row in connection.run(query)]

    def experiments(self, limit: int) -> list[tuple[str, str, int]]:
        """(golden set, chatbot, number of runs), most recently run first."""
        query = (
            "SELECT question_set, target, COUNT(*) FROM runs GROUP BY question_set, target "
            "ORDER BY MAX(created_at) DESC, question_set, target LIMIT ?"
        )
        with self.database.reading() as connection:
            return [tuple(row) for row in connection.run(query, (limit,))]

    def progress(self, info: RunInfo) -> Progress:
        """The progress of a run, from its scorecards so far."""
        query = sql(
            "SELECT COUNT(*), AVG(c.score), SUM(c.passed), COUNT(c.error_kind) FROM scorecards c WHERE {run}",
            run=of_run(info),
        )
        questions = self._store.count_questions(info.question_set_hash)
        with self.database.reading() as connection:
            done, score, passed, errors = connection.run(*query).fetchone()
            now = connection.value("SELECT info FROM runs WHERE id = ?", (info.id,))
            status = info.status if now is None else self._store.read_info(connection, now).status
        return Progress(
            id=info.id,
            status=status,
            done=done,
            planned=max(questions * (1 if info.is_log else info.repeat), done),
            score=None if score is None else round_score(score),
            grade=None if score is None else letter_grade(score),
            passed=int(passed or 0),
            errors=int(errors),
        )
