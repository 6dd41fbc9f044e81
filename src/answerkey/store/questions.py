"""Tables of questions: those of one run, and those of several runs side by side. No run is ever read whole."""

from collections.abc import Collection, Sequence
from math import fsum, isnan
from typing import ClassVar, Literal

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import ReplyKey
from answerkey.model.run import QuestionRow, RunInfo, question_row
from answerkey.model.scorecard import (
    GRADE_BOUNDS,
    Scorecard,
    Trial,
    highest_score,
    letter_grade,
    lowest_score,
    passes,
    round_score,
)
from answerkey.store.database import Connection, Database, Row, Sql, all_of, any_of, in_list, join_sql, sql
from answerkey.store.run_rows import (
    WITH_QUESTION,
    WITH_REPLIES,
    of_run,
    read_measures,
    read_run_info,
    unpack_values,
)
from answerkey.store.sql import SqlStore, read_result, select_results
from answerkey.store.table_query import Condition, ShortText, TableFilter, TableQuery, equals


class Facets(msgspec.Struct, frozen=True):
    """Values that a run's questions can be filtered by, with the number of questions for each."""

    categories: dict[str, int]
    errors: dict[str, int]
    personas: dict[str, int] = {}
    tags: dict[str, int] = {}


class TrialFilter(TableFilter, frozen=True, kw_only=True):
    """Filters that a question meets if one of its trials does."""

    # A text in the question or the reply.
    text: ShortText | None = None
    category: ShortText | None = None
    persona: ShortText | None = None
    tag: ShortText | None = None
    # A kind of error.
    error: ShortText | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # A cause of lost points, by its key; tables take the ids of its questions.
    cause: ShortText | None = None


def _contains_text(database: Database, text: str) -> Sql:
    texts = ("COALESCE(q.folded, q.asked)", "COALESCE(r.folded, r.text)")
    return any_of(database.contains(expression, text) for expression in texts)


# `c` is the scorecard, `q` the question, `r` the replies.
_TRIAL_CONDITIONS: dict[str, Condition] = {
    "text": _contains_text,
    "tool": lambda database, tool: database.has_tool("r.tools", tool),
    "category": equals("q.category"),
    "persona": lambda database, persona: sql(f"{database.json_text('q.payload', 'persona')} = ?", persona),
    "tag": lambda database, tag: sql(f"? IN ({database.json_texts('q.payload', 'tags')})", tag),
    "error": equals("c.error_kind"),
}


def _has_matching_trial(
    database: Database, info: RunInfo, question: str, criteria: TrialFilter, only: Collection[str] | None
) -> list[Sql]:
    """The condition that a trial of question `question` (an alias) meets the filters; none if no filter is set.

    `only` are the ids of the questions that are wanted; None: all.
    """
    filters = criteria.conditions
    conditions = [
        condition(database, filters[name]) for name, condition in _TRIAL_CONDITIONS.items() if name in filters
    ]
    if filters.get("result") == "error":
        conditions.append(Sql("c.error_kind IS NOT NULL"))
    if only is not None:
        conditions.append(sql("q.id IN {ids}", ids=in_list(list(only))))
    if not conditions:
        return []
    return [
        sql(
            "{question}.position IN (SELECT c.position FROM scorecards c{joins} WHERE {where})",
            question=question,
            joins=WITH_QUESTION + (WITH_REPLIES if criteria.text or criteria.tool else ""),
            where=all_of([of_run(info), *conditions]),
        )
    ]


# Value of a question → its SQL over the question's trials.
_VALUES = {
    "score": "AVG(c.score)",
    "latency_ms": "MAX(c.latency_ms)",
    "cost": "SUM(c.cost)",
    "judge": "AVG(c.judge)",
    "spread": "MAX(c.score) - MIN(c.score)",
    "error": "MAX(c.error_kind)",
    "reply_digest": "MIN(c.reply_digest)",
}


def _questions_of(info: RunInfo, values: Collection[str], *, with_ids: bool = False) -> Sql:
    """SELECT the position of each question of a run, and these values; `with_ids`, also its id and category."""
    columns = [f"{expression} AS {name}" for name, expression in _VALUES.items() if name in values]
    if with_ids:
        columns += ["MIN(q.id) AS id", "MIN(q.category) AS category"]
    return sql(
        "SELECT {columns} FROM scorecards c{joins} WHERE {where} GROUP BY c.position",
        columns=", ".join(["c.position AS position", *columns]),
        joins=WITH_QUESTION if with_ids else "",
        where=of_run(info),
    )


# The questions of one run


class QuestionFilter(TrialFilter, frozen=True, kw_only=True):
    """Which of a run's questions are wanted, and in what order."""

    result: Literal["failed", "passed", "lost", "error"] | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    # A name of _VALUES, `position`, `id` or `category`, or a component or metric.
    sort: ShortText = "score"


class QuestionTable(TableQuery[QuestionFilter, QuestionRow]):
    """The questions of a run."""

    tie_break = "t.position"
    text_columns = ("id", "category", "error")
    filters: ClassVar = {"grade": lambda _, letter: _grade_condition("g.score", letter)}

    def __init__(self, store: SqlStore, info: RunInfo, only: Collection[str] | None = None) -> None:
        self._info = info
        # The ids of the questions that are wanted; None: all.
        self._only = only
        sortable = (*_VALUES, "position", "id", "category")
        super().__init__(store.database, {name: f"g.{name}" for name in sortable})

    def counts_with_page(self, criteria: QuestionFilter) -> bool:
        """Long texts are searched once, for the page and the count."""
        return bool(criteria.text or criteria.tool)

    def matching(self, criteria: QuestionFilter, value: str) -> Sql:
        """SELECT the positions of the matching questions."""
        conditions = [
            *_has_matching_trial(self.database, self._info, "g", criteria, self._only),
            *self._result_condition(criteria),
            *self.conditions(criteria),
        ]
        return sql(
            "SELECT {value} AS value, g.position FROM ({questions}) AS g WHERE {where}",
            value=value,
            questions=_questions_of(
                self._info,
                {"score", *criteria.value_names},
                with_ids=criteria.sort_column in ("id", "category"),
            ),
            where=all_of(conditions),
        )

    def _result_condition(self, criteria: QuestionFilter) -> list[Sql]:
        if criteria.result == "passed":
            return [sql("g.score >= ?", lowest_score(self._info.pass_mark))]
        if criteria.result in ("failed", "lost"):
            bound = self._info.pass_mark if criteria.result == "failed" else 1.0
            return [sql("g.score IS NULL OR g.score < ?", lowest_score(bound))]
        return []

    def measured(
        self, connection: Connection, criteria: QuestionFilter, names: Sequence[str], keys: Sequence[Row]
    ) -> dict[str, Sequence[float | None]]:
        """The means of components and metrics, for each key."""
        means = measure_means(connection, self._info, names)
        for name in names:
            if keys and name not in means:
                raise UsageError(f"this run has no measure {name[:60]!r} to sort or filter by")
        return {name: [means.get(name, {}).get(position) for (position,) in keys] for name in names}

    def read(self, connection: Connection, keys: Sequence[Row]) -> list[QuestionRow]:
        """The questions at these positions, with what lists show of them."""
        positions = [position for (position,) in keys]
        trials: dict[int, list[Trial]] = {}
        condition = sql("c.position IN {positions}", positions=in_list(positions))
        for row in connection.run(*select_results(self._info, condition)):
            trial = read_result(row)
            trials.setdefault(trial.position, []).append(trial)
        mark = self._info.pass_mark
        return [question_row(trials[position], mark) for position in positions if position in trials]

    def facets(self) -> Facets:
        """The categories and error kinds of the run."""
        categories = sql(
            "SELECT q.category, COUNT(DISTINCT c.position) FROM scorecards c{joins} WHERE {where} "
            "GROUP BY q.category ORDER BY q.category LIMIT 500",
            joins=WITH_QUESTION,
            where=of_run(self._info),
        )
        errors = sql(
            "SELECT c.error_kind, COUNT(*) FROM scorecards c WHERE {where} AND c.error_kind IS NOT NULL "
            "GROUP BY c.error_kind ORDER BY COUNT(*) DESC",
            where=of_run(self._info),
        )
        with self.database.reading() as connection:
            return Facets(
                dict(connection.run(*categories).fetchall()), dict(connection.run(*errors).fetchall())
            )

    def distribution(self) -> list[int]:
        """Questions by score, in ten equal steps; the last one includes 1.0."""
        steps = join_sql(
            " ", [sql(f"WHEN g.score < ? THEN {edge - 1}", lowest_score(edge / 10)) for edge in range(1, 10)]
        )
        query = sql(
            "SELECT step, COUNT(*) FROM (SELECT CASE {steps} ELSE 9 END AS step FROM ({questions}) AS g "
            "WHERE g.score IS NOT NULL) AS s GROUP BY step",
            steps=steps,
            questions=_questions_of(self._info, ["score"]),
        )
        counts = [0] * 10
        with self.database.reading() as connection:
            for step, number in connection.run(*query):
                counts[step] = number
        return counts


def _grade_condition(score: str, letter: str) -> Sql:
    """Scores from the lowest of a grade up to the lowest of the next better one."""
    bounds = [*GRADE_BOUNDS, ("F", None)]
    place = [name for name, _ in bounds].index(letter)
    conditions = []
    lowest, next_better = bounds[place][1], bounds[place - 1][1] if place else None
    if lowest is not None:
        conditions.append(Sql(f"{score} >= ?", (lowest_score(lowest),)))
    if next_better is not None:
        conditions.append(Sql(f"{score} < ?", (lowest_score(next_better),)))
    return all_of(conditions)


def measure_means(
    connection: Connection,
    info: RunInfo,
    names: Collection[str] | None = None,
    positions: Sequence[int] | None = None,
) -> dict[str, dict[int, float]]:
    """Means of components, metrics, latency_ms and cost over trials, unpacked from columns that SQL cannot read.

    Args:
        connection: A connection to the store.
        info: The run.
        names: The measures to return; None: all.
        positions: The questions to read; None: all.

    Returns:
        Measure → position → mean. A measure that no trial has is left out.
    """
    conditions = [of_run(info)]
    if positions is not None:
        conditions.append(sql("c.position IN {positions}", positions=in_list(positions)))
    query = sql(
        "SELECT c.position, m.name, c.measured, c.latency_ms, c.cost FROM scorecards c "
        "JOIN names m ON m.key = c.measures WHERE {where} ORDER BY c.position",
        where=all_of(conditions),
    )
    values: dict[str, dict[int, list[float]]] = {}
    layouts: dict[str, list[tuple[str, int]]] = {}
    for position, measures, measured, *plain in connection.run(*query):
        if measures not in layouts:
            read = read_measures(measures)
            columns = (*read.components, *read.metrics, "latency_ms", "cost")
            layouts[measures] = [
                (name, place) for place, name in enumerate(columns) if names is None or name in names
            ]
        row = (*unpack_values(measured), *plain)
        for name, place in layouts[measures]:
            by_position = values.setdefault(name, {})
            if row[place] is not None and not isnan(row[place]):
                by_position.setdefault(position, []).append(row[place])
    return {
        name: {position: fsum(known) / len(known) for position, known in by_position.items()}
        for name, by_position in values.items()
    }


# One question


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A question in one run."""

    run_id: str
    run_name: str
    created_at: str
    target: str
    score: float | None
    grade: str | None
    passed: bool
    trials: int
    lowest: float | None
    highest: float | None
    error: str | None
    latency_ms: float | None


def question_history(store: SqlStore, question_id: str, *, limit: int = 50) -> list[HistoryPoint]:
    """A question over runs, newest first, each under the run's current scoring."""
    query = sql(
        "SELECT runs.info, AVG(c.score), COUNT(*), MIN(c.score), MAX(c.score), MAX(c.error_kind), "
        "MAX(c.latency_ms) FROM questions q JOIN scorecards c ON c.question = q.key "
        "JOIN runs ON runs.key = c.run AND runs.scoring = c.scoring WHERE q.id = ? "
        "GROUP BY runs.key, runs.created_at, runs.id, runs.info "
        "ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?",
        question_id.replace("\0", ""),
        limit,
    )
    with store.database.reading() as connection:
        rows = connection.run(*query).fetchall()
    points = []
    for payload, mean, trials, lowest, highest, error_kind, latency_ms in rows:
        info, score = read_run_info(payload), None if mean is None else round_score(mean)
        points.append(
            HistoryPoint(
                run_id=info.id,
                run_name=info.name,
                created_at=info.created_at,
                target=info.target,
                score=score,
                grade=None if score is None else letter_grade(score),
                passed=passes(score, info.pass_mark),
                trials=trials,
                lowest=lowest,
                highest=highest,
                error=error_kind,
                latency_ms=latency_ms,
            )
        )
    return points


def find_reply_key(store: SqlStore, info: RunInfo, question_id: str, trial: int) -> ReplyKey:
    """The key of one reply of a run; raises UnknownNameError if the run does not have it."""
    query = sql(
        "SELECT q.ask_hash, t.name FROM scorecards c{joins} JOIN names t ON t.key = c.target "
        "WHERE {run} AND q.id = ? AND c.trial = ?",
        question_id.replace("\0", ""),
        trial,
        joins=WITH_QUESTION,
        run=of_run(info),
    )
    with store.database.reading() as connection:
        row = connection.run(*query).fetchone()
    if row is None:
        raise UnknownNameError(
            f"run {info.id} has no reply to a question {question_id[:120]!r} in trial {trial}; "
            f"`answerkey show {info.id}` lists its questions"
        )
    return ReplyKey(info.id, row[0].hex(), trial, row[1])


# The questions of two or more runs side by side, paired by id


# The runs by the names of their columns, the base first.
SIDES = ("base", "candidate", "run2", "run3", "run4", "run5")
# The side in a column such as `change.response_quality` → the runs that it needs.
_SIDES: dict[str, tuple[int, ...]] = {name: (number,) for number, name in enumerate(SIDES)} | {
    "change": (0, 1)
}


class PairFilter(TrialFilter, frozen=True, kw_only=True):
    """Which questions are wanted, and in what order; a trial in any of the runs may meet the filters."""

    show: Literal["regressions", "improvements", "different", "all"] = "all"
    # A side, `change` (of several candidates the largest loss), `gain` or position; a side or `change` also with a measure:
    # change.response_quality.
    sort: ShortText = "change"


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question in all of the runs; the first one is the base."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    # The last reply of each run's first trial; None: a null reply.
    replies: tuple[str | None, ...]
    # The scorecard of each run's first trial; None: there is none.
    cards: tuple[Scorecard | None, ...]
    # For each run: components, metrics, latency_ms and cost, means of the trials.
    measures: tuple[dict[str, float], ...]


class PairTable(TableQuery[PairFilter, PairRow]):
    """The questions that a base and its candidates have in common."""

    tie_break = "t.position0"

    def __init__(
        self,
        store: SqlStore,
        base: RunInfo,
        candidates: Sequence[RunInfo],
        only: Collection[str] | None = None,
    ) -> None:
        self._infos = (base, *candidates)
        self._only = only
        # A missing score counts as zero.
        self._changes = [
            f"(COALESCE(g{number}.score, 0.0) - COALESCE(g0.score, 0.0))"
            for number in range(1, len(self._infos))
        ]
        scores = {name: f"g{number}.score" for number, name in enumerate(SIDES[: len(self._infos)])}
        least, most = ("LEAST", "GREATEST") if store.database.dialect == "postgresql" else ("MIN", "MAX")
        every = ", ".join(self._changes)
        several = len(candidates) > 1
        change, gain = (f"{least}({every})", f"{most}({every})") if several else (every, every)
        super().__init__(
            store.database, {**scores, "change": change, "gain": gain, "position": "g0.position"}
        )

    def counts_with_page(self, criteria: PairFilter) -> bool:
        """The runs are joined once, for the page and the count."""
        return True

    def matching(self, criteria: PairFilter, value: str) -> Sql:
        """SELECT score and position in each run of the matching questions."""
        # Runs of the same set are paired by position, which is faster and the same.
        same_set = len({info.question_set_hash for info in self._infos}) == 1
        paired = "position" if same_set else "id"
        tables = [
            sql(
                f"({{questions}}) AS g{number}" + (f" ON g{number}.{paired} = g0.{paired}" if number else ""),
                questions=_questions_of(info, ["score", "reply_digest"], with_ids=not same_set),
            )
            for number, info in enumerate(self._infos)
        ]
        numbers = range(len(self._infos))
        return sql(
            "SELECT {value} AS value, {keys} FROM {tables} WHERE {where}",
            value=value,
            keys=", ".join(f"g{n}.score AS score{n}, g{n}.position AS position{n}" for n in numbers),
            tables=join_sql(" JOIN ", tables),
            where=all_of([*self._show_conditions(criteria), *self._in_any_run(criteria)]),
        )

    def _in_any_run(self, criteria: PairFilter) -> list[Sql]:
        """The condition that a trial in one of the runs meets the filters; none if no filter is set."""
        conditions = [
            condition
            for number, info in enumerate(self._infos)
            for condition in _has_matching_trial(self.database, info, f"g{number}", criteria, self._only)
        ]
        return [any_of(conditions)] if conditions else []

    def _show_conditions(self, criteria: PairFilter) -> list[Sql]:
        regressions = [Sql(f"{change} < ?", (lowest_score(0.0),)) for change in self._changes]
        improvements = [Sql(f"{change} > ?", (highest_score(0.0),)) for change in self._changes]
        other_texts = [
            Sql(f"g{number}.reply_digest != g0.reply_digest") for number in range(1, len(self._infos))
        ]
        conditions = {
            "regressions": regressions,
            "improvements": improvements,
            "different": [*regressions, *improvements, *other_texts],
        }
        shown = [] if criteria.show == "all" else [any_of(conditions[criteria.show])]
        return [*shown, *self.conditions(criteria)]

    def measured(
        self, connection: Connection, criteria: PairFilter, names: Sequence[str], keys: Sequence[Row]
    ) -> dict[str, Sequence[float | None]]:
        """The value of each column such as `change.response_quality`, for each key."""
        parts = [name.partition(".") for name in names]
        means: list[dict[str, dict[int, float]]] = []
        for run in range(len(self._infos)):
            measures = {measure for side, _, measure in parts if run in _SIDES.get(side, ())}
            # Each run is read once, and only if one of its measures is needed.
            means.append(measure_means(connection, self._infos[run], measures) if measures else {})
        return {name: self._pair_values(name, keys, means) for name in names}

    def _pair_values(
        self, name: str, keys: Sequence[Row], means: Sequence[dict[str, dict[int, float]]]
    ) -> list[float | None]:
        side, _, measure = name.partition(".")
        runs = _SIDES.get(side, ())
        if not runs or runs[-1] >= len(means) or (keys and any(measure not in means[run] for run in runs)):
            raise UsageError(f"these runs have no {name[:60]!r} to sort or filter by")
        values = [
            [means[run].get(measure, {}).get(key[2 * run + 1]) for key in keys]  # a key is score, position, …
            for run in runs
        ]
        if len(values) == 1:
            return values[0]
        return [difference(before, after) for before, after in zip(*values, strict=True)]

    def read(self, connection: Connection, keys: Sequence[Row]) -> list[PairRow]:
        trials, means = [], []
        for number, info in enumerate(self._infos):
            positions = [key[2 * number + 1] for key in keys]
            trials.append(_first_trials(connection, info, positions))
            means.append(measure_means(connection, info, positions=positions))
        return [_pair_row(key, trials, means) for key in keys]


def difference(before: float | None, after: float | None) -> float | None:
    """The change between two values; None if one is missing."""
    return None if before is None or after is None else after - before


def _first_trials(connection: Connection, info: RunInfo, positions: Sequence[int]) -> dict[int, Trial]:
    """Position → the first trial in a run."""
    # Trials of a log may have any numbers.
    first = Sql(
        "c.trial = (SELECT MIN(f.trial) FROM scorecards f "
        "WHERE f.run = c.run AND f.scoring = c.scoring AND f.position = c.position)"
    )
    chosen = sql("c.position IN {positions}", positions=in_list(positions))
    rows = connection.run(*select_results(info, chosen, first))
    return {trial.position: trial for trial in map(read_result, rows)}


def _pair_row(
    key: Row, trials: Sequence[dict[int, Trial]], means: Sequence[dict[str, dict[int, float]]]
) -> PairRow:
    scores, positions = key[0::2], key[1::2]
    found = [known.get(position) for known, position in zip(trials, positions, strict=True)]
    question = next((trial.question for trial in found if trial is not None), None)
    return PairRow(
        id="" if question is None else question.id,
        category="" if question is None else question.category,
        question="" if question is None else question.question,
        scores=tuple(None if score is None else round_score(score) for score in scores),
        replies=tuple(None if trial is None else trial.reply.text for trial in found),
        cards=tuple(None if trial is None else trial.scorecard for trial in found),
        measures=tuple(
            {name: values[position] for name, values in known.items() if position in values}
            for known, position in zip(means, positions, strict=True)
        ),
    )
