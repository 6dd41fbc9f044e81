"""SqlStore: runs in an SQL database, written in small durable transactions and read as streams; and the table of runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.question import Question, group_of
from answerkey.model.reply import Reply
from answerkey.model.run import Latency, Run, RunInfo, StreamedResults, Summary
from answerkey.model.scorecard import RowOrigin, ScoreBatch, Trial, letter_grade, round_score
from answerkey.model.tally import summarise, summarise_log
from answerkey.stats.intervals import Interval
from answerkey.store.database import (
    Connection,
    Database,
    Row,
    Sql,
    all_of,
    any_of,
    create_tables,
    in_list,
    insert,
    now,
    sql,
    with_true_status,
)
from answerkey.store.run_rows import (
    CARD_COLUMNS,
    WITH_QUESTION,
    WITH_REPLIES,
    RunWriter,
    name_key_sql,
    of_run,
    read_measures,
    read_run_info,
    run_key_sql,
    unpack_card,
    unpack_replies,
    unpack_values,
)
from answerkey.store.table_query import Day, ShortText, TableFilter, TableQuery, equals, within_days

_decode_question = msgspec.json.Decoder(Question).decode
_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_origin = msgspec.json.Decoder(RowOrigin).decode

_NEWEST = "ORDER BY created_at DESC, id DESC"
# More than databases and Python differ in a mean.
_ROUNDING = 1e-6
# Scorecards `c` with their question `q`, replies `r` and details `d`.
_RESULT_TABLES = (
    f"scorecards c{WITH_QUESTION}{WITH_REPLIES} JOIN scorecard_details d ON d.run = c.run "
    "AND d.scoring = c.scoring AND d.position = c.position AND d.trial = c.trial JOIN names m ON m.key = c.measures"
)


def select_results(info: RunInfo, *conditions: Sql) -> Sql:
    """SELECT a run's trials in the set's order, as `read_result` takes them."""
    return sql(
        "SELECT c.position, c.trial, q.payload, r.text, r.payload, r.origin, {card} FROM {tables} WHERE {where} "
        "ORDER BY c.position, c.trial",
        card=CARD_COLUMNS,
        tables=_RESULT_TABLES,
        where=all_of([of_run(info), *conditions]),
    )


def read_result(row: Row) -> Trial:
    """A trial with its replies and scorecard."""
    position, number, question, text, replies, origin, *card = row
    return Trial(
        question=_decode_question(question),
        number=number,
        position=position,
        replies=unpack_replies(text, replies),
        scorecard=unpack_card(*card),
        origin=None if origin is None else _decode_origin(origin),
    )


class _Grouped(msgspec.Struct):
    """The fields of a question that define its group."""

    group: str | None = None
    metadata: dict[str, Any] = {}


_decode_grouped = msgspec.json.Decoder(_Grouped).decode


class SqlStore(RunWriter):
    """A store in an SQL database; RunWriter has the methods that write runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        try:
            create_tables(database)
        except BaseException:
            database.close()
            raise

    @property
    def address(self) -> str:
        """The store's address, without a password."""
        return self.database.address

    def tune_for_serving(self) -> None:
        self.database.tune_for_serving()

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> "SqlStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Runs

    def list_runs(self, *, limit: int | None = None, offset: int = 0) -> list[tuple[RunInfo, Summary | None]]:
        """Runs, newest first."""
        with self.database.reading() as connection:
            rows = connection.run(
                f"SELECT info, summary FROM runs {_NEWEST} LIMIT ? OFFSET ?", (_limit(limit), offset)
            ).fetchall()
            return [
                (self.read_info(connection, info), None if summary is None else _decode_summary(summary))
                for info, summary in rows
            ]

    def list_infos(self, *, limit: int | None = None, offset: int = 0) -> list[RunInfo]:
        """Runs, newest first, without their summaries."""
        query = f"SELECT info FROM runs {_NEWEST} LIMIT ? OFFSET ?"
        with self.database.reading() as connection:
            rows = connection.run(query, (_limit(limit), offset)).fetchall()
            return [self.read_info(connection, info) for (info,) in rows]

    def read_info(self, connection: Connection, payload: str) -> RunInfo:
        """Decode a run, with its actual status."""
        return with_true_status(self.database, connection, read_run_info(payload))

    def count_runs(self) -> int:
        with self.database.reading() as connection:
            return int(connection.value("SELECT COUNT(*) FROM runs"))

    def find_run(self, reference: str) -> RunInfo:
        """The run with this id, unique prefix, baseline name or name, or `latest`, `latest~1`, …"""
        if reference == "latest" or reference.startswith("latest~"):
            return self._latest(reference)
        with self.database.reading() as connection:
            matches = self._find_infos(connection, reference)
            if len(matches) == 1:
                return self.read_info(connection, matches[0])
        if matches:
            raise UnknownNameError(f"run {reference!r} is ambiguous; use a longer prefix")
        remedy = "`answerkey runs` lists them"
        if Path(reference).is_file():
            remedy = (
                f"{reference} is a file, not a run: to grade replies in it, answerkey score {reference}; "
                f"to name the result for other commands, add --name N"
            )
        raise UnknownNameError(f"no run {reference!r} in this store; {remedy}")

    def _find_infos(self, connection: Connection, reference: str) -> list[str]:
        # No database accepts NUL.
        reference = reference.replace("\0", "")
        baseline = connection.value("SELECT run_id FROM baselines WHERE name = ?", (reference,))
        run = baseline or reference
        for query in (
            "SELECT info FROM runs WHERE id = ?",
            f"SELECT info FROM runs WHERE name = ? {_NEWEST} LIMIT 1",
            "SELECT info FROM runs WHERE substr(id, 1, length(?)) = ? LIMIT 2",
        ):
            matches = [info for (info,) in connection.run(query, (run,) * query.count("?"))]
            if matches:
                return matches
        return []

    def _latest(self, reference: str) -> RunInfo:
        _, _, back = reference.partition("~")
        if back and not back.isdecimal():
            raise UnknownNameError(f"run {reference!r}: write latest~1 for the run before the latest")
        # Databases limit the offset.
        found = self.list_infos(limit=1, offset=min(int(back or 0), 2**31))
        if not found:
            raise UnknownNameError(f"no run {reference!r} in this store; `answerkey run` makes one")
        return found[0]

    def load_run(self, info: RunInfo) -> Run:
        """A run with its summary; results are read when they are used."""
        summary = self.summary_of(info.id)
        if summary is None:
            summary = self.summarise(info, self.results(info))
        results = StreamedResults(
            lambda: self.results(info),
            lambda question_id: self._results_of(info, question_id, None),
            lambda score: self._results_below(info, score),
        )
        return Run(info=info, summary=summary, results=results)

    def summarise(self, info: RunInfo, results: Iterable[Trial]) -> Summary:
        """The summary of a run's results, which must be grouped by question."""
        questions, mark = self.count_questions(info.question_set_hash), info.pass_mark
        if info.is_log:
            return summarise_log(results, questions=questions, bad_rows=info.bad_rows, pass_mark=mark)
        return summarise(results, planned=questions * info.repeat, pass_mark=mark)

    def summary_of(self, run_id: str) -> Summary | None:
        """A run's summary; None until it is finished."""
        with self.database.reading() as connection:
            payload = connection.value("SELECT summary FROM runs WHERE id = ?", (run_id,))
        return None if payload is None else _decode_summary(payload)

    def earlier_summary(self, info: RunInfo) -> Summary | None:
        """The summary of the newest other run of the same golden set, unchanged, under the same scoring."""
        query = sql(
            "SELECT info, summary FROM runs WHERE question_set = ? AND scoring = {scoring} AND id <> ? "
            "AND summary IS NOT NULL {newest} LIMIT 1",
            info.question_set,
            info.id,
            scoring=name_key_sql(info.scoring_hash),
            newest=_NEWEST,
        )
        with self.database.reading() as connection:
            for earlier, summary in connection.run(*query).fetchall():
                if self.read_info(connection, earlier).question_set_hash == info.question_set_hash:
                    return _decode_summary(summary)
        return None

    def finished_state(self, run_id: str) -> str | None:
        """A text that changes whenever a finished run or its scores do; None until it is finished."""
        with self.database.reading() as connection:
            row = connection.run("SELECT info, summary FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None or row[1] is None else "\n".join(row)

    # Baselines

    def set_baseline(self, name: str, run_id: str) -> None:
        with self.database.transaction() as connection:
            connection.run(insert("baselines", replace=True), (name, run_id, now()))

    def name_baseline(self, name: str, reference: str) -> RunInfo:
        """Make a run the baseline `name`; raises UsageError if the name is invalid or the run incomplete."""
        if (
            not name.strip()
            or name == "latest"
            or name.startswith(("latest~", "-"))
            or not name.isprintable()
        ):
            raise UsageError(f"{name[:80]!r} cannot name a baseline; use a word such as production")
        info = self.find_run(reference)
        if info.status != "complete":
            raise UsageError(
                f"run {info.id} is not complete and cannot be a baseline; first: answerkey resume {info.id}"
            )
        self.set_baseline(name, info.id)
        return info

    def remove_baseline(self, name: str) -> bool:
        """Remove a baseline name, not its run; False if there is no such name."""
        with self.database.transaction() as connection:
            return bool(connection.run("DELETE FROM baselines WHERE name = ?", (name,)).rowcount)

    def baselines(self) -> Mapping[str, str]:
        """Baseline name → run id."""
        with self.database.reading() as connection:
            return dict(connection.run("SELECT name, run_id FROM baselines").fetchall())

    # Questions, replies and results

    def questions(self, set_hash: str) -> Iterator[Question]:
        """A stored question set, in order."""
        query = sql(
            "SELECT q.payload FROM set_items i JOIN questions q ON q.key = i.question "
            "WHERE i.question_set = {set} ORDER BY i.position",
            set=name_key_sql(set_hash),
        )
        for (payload,) in self.database.stream(*query):
            yield _decode_question(payload)

    def count_questions(self, set_hash: str) -> int:
        """The number of questions of a stored set."""
        query = sql("SELECT COUNT(*) FROM set_items WHERE question_set = {set}", set=name_key_sql(set_hash))
        with self.database.reading() as connection:
            return int(connection.value(*query))

    def reply_keys(self, info: RunInfo) -> set[tuple[str, int]]:
        """The (ask hash, trial) pairs that have a reply from the run's target."""
        query = sql("SELECT ask_hash, trial FROM replies WHERE {where}", where=_from_target(info))
        return {(ask_hash.hex(), trial) for ask_hash, trial in self.database.stream(*query)}

    def scored_trials(self, info: RunInfo) -> Iterator[tuple[int, int, float | None, str | None]]:
        """(position, trial, score, kind of error) of the scorecards under the run's current scoring."""
        query = sql(
            "SELECT c.position, c.trial, c.score, c.error_kind FROM scorecards c WHERE {run}",
            run=of_run(info),
        )
        for row in self.database.stream(*query):
            position, trial, score, kind = row
            yield position, trial, score, kind

    def trials_of(self, info: RunInfo, ask_hash: str) -> list[tuple[int, tuple[Reply, ...]]]:
        """The stored trials of one question with the run's target."""
        query = sql(
            "SELECT trial, text, payload FROM replies WHERE {where} AND ask_hash = ? ORDER BY trial",
            bytes.fromhex(ask_hash),
            where=_from_target(info),
        )
        with self.database.reading() as connection:
            rows = connection.run(*query).fetchall()
        return [(trial, unpack_replies(text, payload)) for trial, text, payload in rows]

    def results(self, info: RunInfo) -> Iterator[Trial]:
        """The run's results in the set's order, trial by trial."""
        for row in self.database.stream(*select_results(info)):
            yield read_result(row)

    def results_of(self, info: RunInfo, question_id: str, *, most: int = 20) -> list[Trial]:
        """The trials of one question; raises UnknownNameError if the run has none."""
        found = self._results_of(info, question_id, most)
        if not found:
            raise UnknownNameError(f"run {info.id} has no scored question {question_id[:120]!r}")
        return found

    def _results_of(self, info: RunInfo, question_id: str, most: int | None) -> list[Trial]:
        asked = question_id.replace("\0", "")
        # In this order, from the question to its positions: the other way round the whole run would be read.
        position = sql(
            "c.position IN (SELECT s.position FROM questions k CROSS JOIN scorecards s "
            "WHERE k.id = ? AND s.question = k.key AND s.run = {run})",
            asked,
            run=run_key_sql(info.id),
        )
        query = sql(
            "{results} LIMIT ?", _limit(most), results=select_results(info, position, sql("q.id = ?", asked))
        )
        with self.database.reading() as connection:
            return [read_result(row) for row in connection.run(*query)]

    def _results_below(self, info: RunInfo, score: float) -> Iterator[Trial]:
        """The results of the questions whose mean score is below a limit or unknown, and of a few just above."""
        position = sql(
            "c.position IN (SELECT s.position FROM scorecards s WHERE s.run = {run} AND s.scoring = {scoring} "
            "GROUP BY s.position HAVING COALESCE(AVG(s.score), 0) < ?)",
            score + _ROUNDING,
            run=run_key_sql(info.id),
            scoring=name_key_sql(info.scoring_hash),
        )
        for row in self.database.stream(*select_results(info, position)):
            yield read_result(row)

    # For comparisons: a few short columns, without replies, reasons or questions.

    def score_batches(self, info: RunInfo) -> Iterator[ScoreBatch]:
        """The run's scores under its current scoring, column by column, in the set's order, trial by trial."""
        query = sql(
            "SELECT q.id, q.content_hash, q.category, c.score, c.error_kind, c.latency_ms, c.cost, m.name, "
            "c.measured FROM scorecards c JOIN questions q ON q.key = c.question JOIN names m "
            "ON m.key = c.measures WHERE {run} ORDER BY c.position, c.trial",
            run=of_run(info),
        )
        for rows in self.database.batches(*query):
            for measures, alike in groupby(rows, key=itemgetter(7)):
                ids, hashes, categories, scores, kinds, latencies, costs, _, measured = zip(
                    *alike, strict=True
                )
                names, values = read_measures(measures), unpack_values(*measured)
                columns = [*names.components, *names.metrics]
                found = [values[place :: len(columns)] for place in range(len(columns))]
                components = dict(zip(names.components, found, strict=False))
                metrics = dict(zip(names.metrics, found[len(components) :], strict=True))
                yield ScoreBatch(
                    ids, hashes, categories, scores, kinds, latencies, costs, components, metrics
                )

    def question_groups(self, set_hash: str, fields: Sequence[str]) -> Iterator[tuple[bytes, str]]:
        """(content hash, group) of the questions that have one of the fields; the first field counts."""
        query = sql(
            "SELECT q.content_hash, q.payload FROM set_items i JOIN questions q ON q.key = i.question WHERE "
            "i.question_set = {set} AND (q.payload LIKE '%\"metadata\"%' OR q.payload LIKE '%\"group\"%')",
            set=name_key_sql(set_hash),
        )
        for content, payload in self.database.stream(*query):
            group = group_of(_decode_grouped(payload), fields)
            if group is not None:
                yield content, group


def _from_target(info: RunInfo) -> Sql:
    """A condition: a reply belongs to a run and its current target."""
    return sql(
        "run = {run} AND target = {target}", run=run_key_sql(info.id), target=name_key_sql(info.target_hash)
    )


def _limit(limit: int | None) -> int:
    return 2**31 - 1 if limit is None else limit


# The table of runs


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


class ExperimentRuns(NamedTuple):
    """A golden set and a chatbot, with their newest runs."""

    question_set: str
    target: str
    # The number of all runs.
    total: int
    # Newest first. Ended: complete or partial; the others are running or were interrupted.
    ended: list[RunRow]
    unfinished: list[RunRow]


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
    # The first and the last day, in the time zone of this machine.
    since: Day | None = None
    until: Day | None = None
    # A name of _RUN_COLUMNS or `figure_of`.
    sort: ShortText = "-created_at"


_RUN_COLUMNS = {
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


def _names_run(database: Database, text: str) -> Sql:
    """The condition that a text is in a run's name or target, or begins its id."""
    beginning = text.replace("\0", "")
    in_names = [database.contains(column, text) for column in ("name", "target")]
    return any_of([*in_names, sql("substr(id, 1, length(?)) = ?", beginning, beginning)])


_decode_figures = msgspec.json.Decoder(Figures).decode


class RunTable(TableQuery[RunFilter, RunRow]):
    """The runs of a store."""

    tie_break = "t.created_at DESC, t.id DESC"
    missing_last = True
    text_columns = tuple(_RUN_COLUMNS)
    filters: ClassVar = {
        "set": equals("question_set"),
        "target": equals("target"),
        "status": equals("status"),
        "tag": lambda database, tag: sql(f"? IN ({database.json_texts('info', 'tags')})", tag),
        "text": _names_run,
    }

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store.database, _RUN_COLUMNS)
        self._store = store

    def matching(self, criteria: RunFilter, value: str) -> Sql:
        """SELECT the ids of the matching runs."""
        return sql(
            "SELECT {value} AS value, id, created_at FROM runs WHERE {where}",
            value=value,
            where=all_of(self.conditions(criteria)),
        )

    def conditions(self, criteria: RunFilter) -> list[Sql]:
        return [*super().conditions(criteria), *within_days("created_at", criteria)]

    def measured(
        self, connection: Connection, criteria: RunFilter, names: Sequence[str], keys: Sequence[Row]
    ) -> dict[str, Sequence[float | None]]:
        """Figures of the runs' summaries."""
        figures: dict[str, list[float | None]] = {}
        query = sql("SELECT id, summary FROM runs WHERE {where}", where=all_of(self.conditions(criteria)))
        for run_id, summary in connection.run(*query):
            decoded = None if summary is None else _decode_figures(summary)
            figures[run_id] = [figure_of(decoded, name) for name in names]
        return {
            name: [figures[run_id][place] if run_id in figures else None for run_id, _ in keys]
            for place, name in enumerate(names)
        }

    def read(self, connection: Connection, keys: Sequence[Row]) -> list[RunRow]:
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
        """Earlier runs of the same chatbot on the same golden set that ended, newest first; no interrupted ones."""
        query = (
            "SELECT info, summary FROM runs WHERE question_set = ? AND target = ? AND created_at < ? "
            "AND status IN ('complete', 'partial') AND summary IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?"
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

    def experiments(self, *, newest: int = 2) -> list[ExperimentRuns]:
        """Every pair of golden set and chatbot, most recently run first, with its `newest` runs of either kind."""
        query = (
            "SELECT id, question_set, target, total, ended FROM (SELECT id, question_set, target, created_at, ended, "
            "COUNT(*) OVER (PARTITION BY question_set, target) AS total, ROW_NUMBER() OVER "
            "(PARTITION BY question_set, target, ended ORDER BY created_at DESC, id DESC) AS place "
            "FROM (SELECT id, question_set, target, created_at, CASE WHEN status IN ('complete', 'partial') "
            "AND summary IS NOT NULL THEN 1 ELSE 0 END AS ended FROM runs) AS r) AS p "
            "WHERE place <= ? ORDER BY created_at DESC, id DESC"
        )
        with self.database.reading() as connection:
            keys = connection.run(query, (newest,)).fetchall()
            rows = {row.info.id: row for row in self.read(connection, [(key[0], None) for key in keys])}
        experiments: dict[tuple[str, str], ExperimentRuns] = {}
        for run_id, question_set, target, total, ended in keys:
            one = experiments.setdefault(
                (question_set, target), ExperimentRuns(question_set, target, total, [], [])
            )
            if run_id in rows:
                (one.ended if ended else one.unfinished).append(rows[run_id])
        return list(experiments.values())

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
