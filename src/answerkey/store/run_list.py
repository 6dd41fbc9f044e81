"""RunList: runs page by page with what lists show of them, and how far one is that is under way."""

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import grade, round_score
from answerkey.model.summary import Latency
from answerkey.stats.intervals import Interval
from answerkey.store.database import Where
from answerkey.store.sql import SqlStore
from answerkey.store.writing import NAME_KEY, OF_RUN, of_run

__all__ = ["Figures", "Progress", "RunList", "RunRow"]


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


_decode_figures = msgspec.json.Decoder(Figures).decode


class RunList:
    """Reads what lists of runs show."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._database = store.database

    def page(
        self,
        *,
        text: str | None = None,
        question_set: str | None = None,
        target: str | None = None,
        limit: int = 25,
        offset: int = 0,
    ) -> tuple[list[RunRow], int]:
        """Runs newest first, and how many there are in all."""
        where = Where()
        if text:
            (in_name, wanted), (in_target, _) = (
                self._database.contains(column, text) for column in ("name", "target")
            )
            beginning = "substr(id, 1, length(?)) = ?"
            plain = text.replace("\0", "")
            where.add(f"{in_name} OR {in_target} OR {beginning}", wanted, wanted, plain, plain)
        if question_set:
            where.add("question_set = ?", question_set)
        if target:
            where.add("target = ?", target)
        query = (
            f"SELECT info, summary FROM runs WHERE {where} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        )
        names: dict[str, list[str]] = {}
        for name, run_id in self._store.baselines().items():
            names.setdefault(run_id, []).append(name)
        with self._database.reading() as connection:
            total = int(connection.value(f"SELECT COUNT(*) FROM runs WHERE {where}", where.values))
            rows = connection.run(query, (*where.values, limit, offset)).fetchall()
            listed = [(self._store.read_info(connection, payload), summary) for payload, summary in rows]
        found = []
        for info, summary in listed:
            figures = None if summary is None else _decode_figures(summary)
            found.append(RunRow(info, figures, tuple(sorted(names.get(info.id, ())))))
        return found, total

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
            planned=max(questions * info.repeat, done),
            score=None if score is None else round_score(score),
            grade=None if score is None else grade(score),
            passed=int(passed or 0),
            errors=int(errors),
        )
