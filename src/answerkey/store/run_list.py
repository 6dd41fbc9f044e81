"""RunList: runs page by page with what lists show of them, and how far one is that is under way."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.model.summary import Latency
from answerkey.stats.intervals import Interval
from answerkey.store.database import Where, signs
from answerkey.store.feedback import ShortText
from answerkey.store.row_filter import Ranged
from answerkey.store.run_rows import NAME_KEY, OF_RUN, of_run
from answerkey.store.sql import SqlStore


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What lists show of a run's summary; the rest of it is not even decoded."""

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
    # None while it is under way.
    figures: Figures | None
    # The names under which it is a baseline.
    baselines: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    id: str
    status: str
    done: int
    planned: int
    score: float | None
    grade: str | None
    passed: int
    errors: int


class RunFilter(Ranged, frozen=True, kw_only=True):
    """Which runs are wanted, and in what order."""

    # A part of a run's name or target, or the beginning of its id.
    text: ShortText | None = None
    # Only runs of this golden set, of this chatbot, with this tag.
    set: ShortText | None = None
    target: ShortText | None = None
    tag: ShortText | None = None
    status: Literal["running", "interrupted", "partial", "complete"] | None = None
    # A name of `figure_of`, or created_at, name, target, set or status.
    sort: ShortText = "-created_at"


# What rows can be sorted by in the database → its column.
_KEPT = {
    "created_at": "created_at",
    "name": "name",
    "target": "target",
    "set": "question_set",
    "status": "status",
}


def figure_of(figures: Figures | None, name: str) -> float | None:
    """A run's figure by the name of its column; None: it has none."""
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


def _value(found: tuple[str, float | str | None]) -> Any:
    return found[1]


def _with_ids(ids: Sequence[str]) -> Where:
    return Where(f"id IN ({signs(ids)})", *ids)


_decode_figures = msgspec.json.Decoder(Figures).decode


class RunList:
    """Reads what lists of runs show."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._database = store.database

    def page(
        self, wanted: RunFilter | None = None, *, limit: int = 25, offset: int = 0
    ) -> tuple[list[RunRow], int]:
        """Runs as wanted, and how many there are of them in all."""
        wanted = wanted or RunFilter()
        where, (name, largest_first) = self._conditions(wanted), wanted.order
        if name not in _KEPT or wanted.ranges:
            ids = self._by_measures(wanted, where)
            rows = {row.info.id: row for row in self._read(_with_ids(ids[offset : offset + limit]))}
            return [rows[run] for run in ids[offset : offset + limit] if run in rows], len(ids)
        way = "DESC" if largest_first else "ASC"
        order = f"ORDER BY {_KEPT[name]} {way}, created_at DESC, id DESC LIMIT ? OFFSET ?"
        with self._database.reading() as connection:
            total = int(connection.value(f"SELECT COUNT(*) FROM runs WHERE {where}", where.values))
        return self._read(where, order, limit, offset), total

    def _conditions(self, wanted: RunFilter) -> Where:
        where = Where()
        if wanted.text:
            (in_name, words), (in_target, _) = (
                self._database.contains(column, wanted.text) for column in ("name", "target")
            )
            beginning = "substr(id, 1, length(?)) = ?"
            plain = wanted.text.replace("\0", "")
            where.add(f"{in_name} OR {in_target} OR {beginning}", words, words, plain, plain)
        for column, value in (
            ("question_set", wanted.set),
            ("target", wanted.target),
            ("status", wanted.status),
        ):
            if value:
                where.add(f"{column} = ?", value)
        if wanted.tag:
            where.add(f"? IN ({self._database.json_texts('info', 'tags')})", wanted.tag)
        return where

    def _by_measures(self, wanted: RunFilter, where: Where) -> list[str]:
        """Ids in the order of what only their summaries tell; those without it come last."""
        name, largest_first = wanted.order
        found: list[tuple[str, float | str | None]] = []
        query = f"SELECT id, {_KEPT.get(name, 'NULL')}, summary FROM runs WHERE {where} ORDER BY created_at DESC, id DESC"
        for run, kept, summary in self._database.stream(query, where.values):
            figures = None if summary is None else _decode_figures(summary)
            if all(one.holds(figure_of(figures, one.name)) for one in wanted.ranges):
                found.append((run, kept if name in _KEPT else figure_of(figures, name)))
        known = sorted((one for one in found if one[1] is not None), key=_value, reverse=largest_first)
        return [run for run, _ in known] + [run for run, value in found if value is None]

    def _read(self, where: Where, order: str = "", *paging: int) -> list[RunRow]:
        names: dict[str, list[str]] = {}
        for name, run_id in self._store.baselines().items():
            names.setdefault(run_id, []).append(name)
        with self._database.reading() as connection:
            query = f"SELECT info, summary FROM runs WHERE {where} {order}"
            rows = connection.run(query, (*where.values, *paging)).fetchall()
            listed = [(self._store.read_info(connection, payload), summary) for payload, summary in rows]
        return [
            RunRow(
                info,
                None if summary is None else _decode_figures(summary),
                tuple(sorted(names.get(info.id, ()))),
            )
            for info, summary in listed
        ]

    def earlier(self, info: RunInfo, limit: int) -> list[RunRow]:
        """The finished runs before one, of the same chatbot on the same golden set, the newest first."""
        query = (
            "SELECT info, summary FROM runs WHERE question_set = ? AND target = ? AND created_at < ? "
            "AND summary IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?"
        )
        with self._database.reading() as connection:
            rows = connection.run(query, (info.question_set, info.target, info.created_at, limit)).fetchall()
            return [
                RunRow(self._store.read_info(connection, payload), _decode_figures(summary))
                for payload, summary in rows
            ]

    def question_sets(self) -> list[tuple[str, int]]:
        """(name, runs) of the golden sets that were asked, the one asked last first."""
        query = (
            "SELECT question_set, COUNT(*) FROM runs GROUP BY question_set "
            "ORDER BY MAX(created_at) DESC LIMIT 50"
        )
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.run(query)]

    def experiments(self, limit: int) -> list[tuple[str, str, int]]:
        """(golden set, chatbot, runs), the one that ran last first."""
        query = (
            "SELECT question_set, target, COUNT(*) FROM runs GROUP BY question_set, target "
            "ORDER BY MAX(created_at) DESC, question_set, target LIMIT ?"
        )
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.run(query, (limit,))]

    def progress(self, info: RunInfo) -> Progress:
        """How far a run is, from its scorecards so far."""
        query = (
            "SELECT COUNT(*), AVG(c.score), SUM(c.passed), COUNT(c.error_kind) FROM scorecards c "
            f"WHERE {OF_RUN}"
        )
        planned = f"SELECT COUNT(*) FROM set_items WHERE question_set = {NAME_KEY}"
        with self._database.reading() as connection:
            done, score, passed, errors = connection.run(query, of_run(info)).fetchone()
            questions = int(connection.value(planned, (info.question_set_hash,)))
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
