"""QuestionList: a run's questions page by page, filtered and sorted in the database; no run is ever read whole."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import fsum, isnan
from typing import Any, Literal

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.feedback import ReplyKey
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, Trial, letter_grade, passes, round_score
from answerkey.model.summary import QuestionRow
from answerkey.store.database import EPSILON, Connection, Row, Where, signs
from answerkey.store.feedback import ShortText
from answerkey.store.row_filter import COUNTED, Ranged, RowFilter, of_questions, of_trials
from answerkey.store.run_rows import OF_RUN, of_run, read_measures, read_run_info, unpack_values
from answerkey.store.sql import RESULTS, SqlStore, read_result

_WITH_QUESTION = " JOIN questions q ON q.key = c.question"
_WITH_REPLIES = " JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
# Questions whose rows are read at a time, where all are wanted.
_CHUNK = 500
# What a scorecard has in columns of its own.
_PLAIN = ("latency_ms", "cost")


class Facets(msgspec.Struct, frozen=True):
    """What a run's questions can be filtered by, with how many there are of each."""

    categories: dict[str, int]
    errors: dict[str, int]
    personas: dict[str, int] = {}
    tags: dict[str, int] = {}


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one run."""

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


class QuestionList:
    """Reads what lists of questions show."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def rows(
        self, info: RunInfo, wanted: RowFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuestionRow], int]:
        """A page of a run's questions, and how many match in all."""
        with self._database.reading() as connection:
            if wanted.measures:
                every = self._by_measures(connection, info, wanted)
                positions, total = every[offset : offset + limit], len(every)
            else:
                positions, total = self._sorted(connection, info, wanted, limit, offset)
            found = self._chosen(connection, info, positions)
        return [found[position] for position in positions if position in found], total

    def every_row(self, info: RunInfo, wanted: RowFilter) -> Iterator[QuestionRow]:
        """All that match, in their order; never all of them in memory."""
        with self._database.reading() as connection:
            if wanted.measures:
                positions = self._by_measures(connection, info, wanted)
            else:
                positions, _ = self._sorted(connection, info, wanted, 2**31 - 1, 0)
        for start in range(0, len(positions), _CHUNK):
            part = positions[start : start + _CHUNK]
            with self._database.reading() as connection:
                found = self._chosen(connection, info, part)
            yield from (found[position] for position in part if position in found)

    def _sorted(
        self, connection: Connection, info: RunInfo, wanted: RowFilter, limit: int, offset: int
    ) -> tuple[list[int], int]:
        """The positions of a page's questions, and how many there are in all."""
        grouped, values = self._grouped(info, wanted)
        # Which ones first, and all about those afterwards: sorting narrow rows takes a tenth of sorting wide ones.
        # How many there are in all comes along where texts are searched, which are long: they are read once for both.
        searched = bool(wanted.text or wanted.tool)
        counted = "COUNT(*) OVER ()" if searched else "0"
        # What has no value is the worst: first where the smallest are, and last where the largest are.
        _, descending = wanted.order
        order = (
            "sorted IS NULL, sorted DESC, position" if descending else "sorted IS NOT NULL, sorted, position"
        )
        query = f"SELECT position, {counted} FROM ({grouped}) AS g ORDER BY {order} LIMIT ? OFFSET ?"
        chosen = connection.run(query, (*values, limit, offset)).fetchall()
        total = chosen[0][1] if searched and chosen else None
        if total is None:
            total = connection.value(f"SELECT COUNT(*) FROM ({grouped}) AS g", values)
        return [position for position, _ in chosen], int(total)

    def _by_measures(self, connection: Connection, info: RunInfo, wanted: RowFilter) -> list[int]:
        """The positions of all questions that match, where components or metrics decide which and in what order."""
        grouped, values = self._grouped(info, wanted)
        sorted_by = dict(connection.run(f"SELECT position, sorted FROM ({grouped}) AS g", values).fetchall())
        means = measure_means(connection, info, wanted.measures)
        for name in wanted.measures:
            if sorted_by and name not in means:
                raise UsageError(f"this run has no measure {name[:60]!r} to sort or filter by")
        limits = [one for one in wanted.ranges if one.name in wanted.measures]
        kept = [
            position
            for position in sorted_by
            if all(one.holds(means.get(one.name, {}).get(position)) for one in limits)
        ]
        name, descending = wanted.order
        by = means.get(name, sorted_by)
        known = sorted(
            (position for position in kept if by.get(position) is not None),
            key=lambda position: (-by[position], position) if descending else (by[position], position),
        )
        unknown = sorted(position for position in kept if by.get(position) is None)
        return known + unknown if descending else unknown + known

    def _chosen(
        self, connection: Connection, info: RunInfo, positions: Sequence[int]
    ) -> dict[int, QuestionRow]:
        if not positions:
            return {}
        query = f"{RESULTS} AND c.position IN ({signs(positions)}) ORDER BY c.position, c.trial"
        trials: dict[int, list[Trial]] = {}
        for row in connection.run(query, (*of_run(info), *positions)):
            trial = read_result(row)
            trials.setdefault(trial.position, []).append(trial)
        return {position: _row(info, asked) for position, asked in trials.items()}

    def _grouped(self, info: RunInfo, wanted: RowFilter) -> tuple[str, list[Any]]:
        """A query for the positions of a run's questions and what they are sorted by, with its values."""
        once = _asked_once(info)
        where = Where(OF_RUN, *of_run(info))
        trials = of_trials(wanted, self._database)
        searched = bool(wanted.text or wanted.tool)
        name, _ = wanted.order
        sorted_by = COUNTED.get(name, "c.position")
        by_question = _WITH_QUESTION if name in ("id", "category") else ""
        joined = by_question
        if searched or wanted.category is not None or wanted.persona is not None or wanted.tag is not None:
            joined = _WITH_QUESTION + (_WITH_REPLIES if searched else "")
        if trials and once:
            where.add(str(trials), *trials.values)
        elif trials:
            # A question is wanted if one of its trials is, and its figures are still those of all of them.
            some = f"SELECT c.position FROM scorecards c{joined} WHERE {OF_RUN} AND {trials}"
            where.add(f"c.position IN ({some})", *of_run(info), *trials.values)
            joined = by_question
        # Asked once, there is nothing to add up.
        value = (lambda name: _of_one(COUNTED[name])) if once else COUNTED.__getitem__
        scored = of_questions(wanted, info, value)
        if once:
            where.add(str(scored), *scored.values)
        sorted_by = _of_one(sorted_by) if once else sorted_by
        query = f"SELECT c.position, {sorted_by} AS sorted FROM scorecards c{joined} WHERE {where}"
        if once:
            return query, where.values
        return f"{query} GROUP BY c.position HAVING {scored}", [*where.values, *scored.values]

    def facets(self, info: RunInfo) -> Facets:
        """The categories and error kinds of a run."""
        with self._database.reading() as connection:
            categories = connection.run(
                f"SELECT q.category, COUNT(DISTINCT c.position) FROM scorecards c{_WITH_QUESTION} WHERE {OF_RUN} "
                "GROUP BY q.category ORDER BY q.category LIMIT 500",
                of_run(info),
            ).fetchall()
            errors = connection.run(
                f"SELECT c.error_kind, COUNT(*) FROM scorecards c WHERE {OF_RUN} AND c.error_kind IS NOT NULL "
                "GROUP BY c.error_kind ORDER BY COUNT(*) DESC",
                of_run(info),
            ).fetchall()
        return Facets(dict(categories), dict(errors))

    def distribution(self, info: RunInfo) -> list[int]:
        """Questions by score: ten equal steps, the last one includes 1.0."""
        once = _asked_once(info)
        score, gathered = ("c.score", "") if once else ("AVG(c.score)", "GROUP BY c.position")
        steps = " ".join(f"WHEN score < {edge / 10 - EPSILON!r} THEN {edge - 1}" for edge in range(1, 10))
        query = (
            f"SELECT step, COUNT(*) FROM (SELECT CASE {steps} ELSE 9 END AS step FROM (SELECT {score} AS score "
            f"FROM scorecards c WHERE {OF_RUN} AND c.score IS NOT NULL {gathered}) AS s) AS g GROUP BY step"
        )
        counts = [0] * 10
        with self._database.reading() as connection:
            for step, number in connection.run(query, of_run(info)):
                counts[step] = number
        return counts

    def reply_key(self, info: RunInfo, question_id: str, trial: int) -> ReplyKey:
        """The key of one reply of a run."""
        query = (
            f"SELECT q.ask_hash, t.name FROM scorecards c{_WITH_QUESTION} JOIN names t ON t.key = c.target "
            f"WHERE {OF_RUN} AND q.id = ? AND c.trial = ?"
        )
        with self._database.reading() as connection:
            row = connection.run(query, (*of_run(info), question_id.replace("\0", ""), trial)).fetchone()
        if row is None:
            raise UnknownNameError(
                f"run {info.id} has no reply to a question {question_id[:120]!r} in trial {trial}; "
                f"`answerkey show {info.id}` lists its questions"
            )
        return ReplyKey(info.id, row[0].hex(), trial, row[1])

    def history(self, question_id: str, *, limit: int = 50) -> list[HistoryPoint]:
        """The same question over runs, newest first, each under the run's current scoring."""
        query = (
            "SELECT runs.info, AVG(c.score), COUNT(*), MIN(c.score), MAX(c.score), MAX(c.error_kind), "
            "MAX(c.latency_ms) FROM questions q JOIN scorecards c ON c.question = q.key "
            "JOIN runs ON runs.key = c.run AND runs.scoring = c.scoring WHERE q.id = ? "
            "GROUP BY runs.key, runs.created_at, runs.id, runs.info "
            "ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?"
        )
        with self._database.reading() as connection:
            rows = connection.run(query, (question_id.replace("\0", ""), limit)).fetchall()
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


def _of_one(total: str) -> str:
    """What adds up trials, of a single one."""
    return "0.0" if " - " in total else re.sub(r"^[A-Z]+\((.*)\)$", r"\1", total)


def _row(info: RunInfo, trials: Sequence[Trial]) -> QuestionRow:
    asked, cards = trials[0], [trial.scorecard for trial in trials]
    scores = [card.total for card in cards if card.total is not None]
    score = round_score(fsum(scores) / len(scores)) if scores else None
    measured: dict[str, list[float | None]] = {}
    for card in cards:
        for name, part in card.components.items():
            measured.setdefault(name, []).append(part.value)
        for name, value in card.metrics.items():
            measured.setdefault(name, []).append(value)
    latencies = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    costs = [reply.usage.cost for trial in trials for reply in trial.replies if reply.usage is not None]
    known_costs = [cost for cost in costs if cost is not None]
    return QuestionRow(
        id=asked.question.id,
        position=asked.position,
        question=asked.question.question[:300],
        category=asked.question.category,
        persona=asked.question.persona,
        tags=asked.question.tags,
        score=score,
        grade=None if score is None else letter_grade(score),
        passed=passes(score, info.pass_mark),
        trials=len(trials),
        trials_passed=sum(card.passed for card in cards),
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        error=next((card.error.kind for card in cards if card.error is not None), None),
        latency_ms=max(latencies, default=None),
        cost=fsum(known_costs) if known_costs else None,
        tools=tuple(dict.fromkeys(name for reply in asked.replies for name in reply.tools_used)),
        measures={name: mean_of(values) for name, values in measured.items()},
        reply=(asked.replies[-1].text or "")[:300] if asked.replies else "",
        scorecard=min(cards, key=lambda card: -1.0 if card.total is None else card.total),
    )


def _asked_once(info: RunInfo) -> bool:
    # A log's own number of repeats may be wrong: earlier versions did not count the replies of each question.
    return info.repeat == 1 and not info.is_log


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of those that there are."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def measure_means(
    connection: Connection,
    info: RunInfo,
    names: Collection[str] | None = None,
    positions: Sequence[int] | None = None,
) -> dict[str, dict[int, float]]:
    """What is measured of a run's questions, out of packed columns that the database cannot look into.

    Component, metric, latency_ms or cost → position → its mean over the trials; a name that no trial has is left out.
    Of all names unless some are given, and of all questions unless some are.
    """
    chosen = "" if positions is None else f" AND c.position IN ({signs(positions)})"
    query = (
        "SELECT c.position, m.name, c.measured, c.latency_ms, c.cost FROM scorecards c "
        f"JOIN names m ON m.key = c.measures WHERE {OF_RUN}{chosen} ORDER BY c.position"
    )
    given: dict[str, dict[int, list[float]]] = {}
    places: dict[str, list[tuple[str, int]]] = {}
    for position, measures, measured, *plain in connection.run(query, (*of_run(info), *(positions or ()))):
        if measures not in places:
            read = read_measures(measures)
            columns = (*read.components, *read.metrics, *_PLAIN)
            places[measures] = [
                (name, place) for place, name in enumerate(columns) if names is None or name in names
            ]
        values = (*unpack_values(measured), *plain)
        for name, place in places[measures]:
            of_name = given.setdefault(name, {})
            if values[place] is not None and not isnan(values[place]):
                of_name.setdefault(position, []).append(values[place])
    return {
        name: {position: fsum(values) / len(values) for position, values in found.items()}
        for name, found in given.items()
    }


# Pairs: the questions of two or more runs side by side, paired by id, filtered and sorted in the database.


Show = Literal["regressions", "improvements", "different", "all"]

_QUESTION_SHOWN = 300
# Pairs that are read at a time, where all are wanted.
_CHUNK_PAIRS = 500
# What the database sorts by: scores, and the place in the base's set.
_SCORES = ("base", "candidate", "change", "position")
# Before the dot of another column's name → the runs that it is of.
_SIDES = {"base": (0,), "candidate": (1,), "change": (0, 1)}


class PairFilter(Ranged, frozen=True, kw_only=True):
    """Which questions are wanted, and in what order."""

    show: Show = "all"
    # Of a trial in one of the runs, as those of RowFilter.
    text: ShortText | None = None
    category: ShortText | None = None
    persona: ShortText | None = None
    tag: ShortText | None = None
    error: ShortText | None = None
    tool: ShortText | None = None
    # A name of _SCORES, or base., candidate. or change. and a measure; ranges are of the same.
    sort: ShortText = "change"

    @property
    def by_value(self) -> bool:
        """Whether the database alone cannot answer it."""
        return bool(self.ranges) or self.order[0] not in _SCORES

    @property
    def of_trials(self) -> RowFilter:
        """What single trials must meet."""
        return RowFilter(**self.conditions)


_ALL = PairFilter()


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question in all of the runs; the first one is the base."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    # What each run replied last, in its first trial; None: a null reply.
    replies: tuple[str | None, ...]
    # Of each run's first trial; None: it has none.
    cards: tuple[Scorecard | None, ...]
    # Of each run: components, metrics, latency_ms and cost, means of the trials.
    measures: tuple[dict[str, float], ...]


class Pairs:
    """The base and the candidates."""

    def __init__(self, store: SqlStore, base: RunInfo, candidates: Sequence[RunInfo]) -> None:
        self._database = store.database
        self._infos = (base, *candidates)

    def page(
        self, wanted: PairFilter = _ALL, *, limit: int = 20, offset: int = 0
    ) -> tuple[list[PairRow], int]:
        """A page of questions that all runs have, and how many match."""
        with self._database.reading() as connection:
            if wanted.by_value:
                every = self._by_value(connection, wanted)
                keys, total = every[offset : offset + limit], len(every)
            else:
                query, values = self._joined(wanted)
                rows = connection.run(f"{query} LIMIT ? OFFSET ?", (*values, limit, offset)).fetchall()
                keys, total = [row[1:] for row in rows], int(rows[0][0]) if rows else 0
            return self._read(connection, keys), total

    def every(self, wanted: PairFilter) -> Iterator[PairRow]:
        """All that match, in their order; never all of them in memory."""
        with self._database.reading() as connection:
            if wanted.by_value:
                keys = self._by_value(connection, wanted)
            else:
                keys = [row[1:] for row in connection.run(*self._joined(wanted))]
        for start in range(0, len(keys), _CHUNK_PAIRS):
            with self._database.reading() as connection:
                found = self._read(connection, keys[start : start + _CHUNK_PAIRS])
            yield from found

    def _by_value(self, connection: Connection, wanted: PairFilter) -> list[Row]:
        """The keys of all that match, where ranges or what the database cannot look into decide."""
        keys = [row[1:] for row in connection.run(*self._joined(wanted))]
        asked = [wanted.order[0], *(one.name for one in wanted.ranges)]
        measured = [name.partition(".") for name in asked if name not in _SCORES]
        means: list[dict[str, dict[int, float]]] = []
        for side in (0, 1):
            names = {measure for which, _, measure in measured if side in _SIDES.get(which, ())}
            # Each run is looked through once, and only where something of it is asked for.
            means.append(measure_means(connection, self._infos[side], names) if names else {})
        values = {name: self._values(name, keys, means) for name in dict.fromkeys(asked)}
        kept = [
            place
            for place in range(len(keys))
            if all(one.holds(values[one.name][place]) for one in wanted.ranges)
        ]
        by, (_, descending) = values[wanted.order[0]], wanted.order
        known = [(value, place) for place in kept if (value := by[place]) is not None]
        # The keys are in the set's order, which sorting keeps.
        known.sort(key=lambda pair: -pair[0] if descending else pair[0])
        # What has no value is the worst.
        unknown = [place for place in kept if by[place] is None]
        in_order = [place for _, place in known]
        return [keys[place] for place in (in_order + unknown if descending else unknown + in_order)]

    def _values(
        self, name: str, keys: Sequence[Row], means: Sequence[dict[str, dict[int, float]]]
    ) -> Sequence[float | None]:
        """What a name of a column is for each key."""
        if name in _SCORES:
            return [_score_value(name, key) for key in keys]
        which, _, measure = name.partition(".")
        sides = _SIDES.get(which, ())
        if not sides or (keys and any(measure not in means[side] for side in sides)):
            raise UsageError(f"these runs have no {name[:60]!r} to sort or filter by")
        found = [(side, means[side].get(measure, {})) for side in sides]
        read = [[of_side.get(key[2 * side + 1]) for key in keys] for side, of_side in found]
        return (
            read[0] if len(read) == 1 else [_less(after, before) for before, after in zip(*read, strict=True)]
        )

    def _joined(self, wanted: PairFilter) -> tuple[str, list[Any]]:
        """Rows of: how many match, then score and position in each run."""
        # Runs of the same set are paired by the place in it, which is the same as by id and faster.
        same_set = len({info.question_set_hash for info in self._infos}) == 1
        values: list[Any] = []
        tables = ""
        for number, info in enumerate(self._infos):
            paired = "position" if same_set else "id"
            on = f" ON g{number}.{paired} = g0.{paired}" if number else ""
            tables += (
                f"{' JOIN ' if number else ''}({_grouped(info, with_ids=not same_set)}) AS g{number}{on}"
            )
            values += of_run(info)
        where = Where()
        changes = [
            f"(COALESCE(g{number}.score, 0.0) - COALESCE(g0.score, 0.0))"
            for number in range(1, len(self._infos))
        ]
        if wanted.show == "regressions":
            where.add(" OR ".join(f"{change} < {-EPSILON!r}" for change in changes))
        elif wanted.show == "improvements":
            where.add(" OR ".join(f"{change} > {EPSILON!r}" for change in changes))
        elif wanted.show == "different":
            differ = [f"ABS({change}) > {EPSILON!r}" for change in changes]
            differ += [f"g{n}.reply_digest != g0.reply_digest" for n in range(1, len(self._infos))]
            where.add(" OR ".join(differ))
        self._add_trials(where, wanted)
        name, descending = wanted.order
        sorted_by = {"change": changes[0], "base": "g0.score", "candidate": "g1.score"}.get(name)
        if wanted.by_value or sorted_by is None:
            order = f"g0.position{' DESC' if descending and not wanted.by_value else ''}"
        else:
            # What has no score is the worst.
            missing = f"{sorted_by} IS {'' if descending else 'NOT '}NULL"
            order = f"{missing}, {sorted_by}{' DESC' if descending else ''}, g0.position"
        columns = ", ".join(f"g{number}.score, g{number}.position" for number in range(len(self._infos)))
        query = f"SELECT COUNT(*) OVER (), {columns} FROM {tables} WHERE {where} ORDER BY {order}"
        return query, [*values, *where.values]

    def _add_trials(self, where: Where, wanted: PairFilter) -> None:
        """What a trial of one of the runs must meet."""
        trials = of_trials(wanted.of_trials, self._database)
        if not trials:
            return
        replies = " JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
        joined = " JOIN questions q ON q.key = c.question" + (replies if wanted.text or wanted.tool else "")
        some = f"SELECT c.position FROM scorecards c{joined} WHERE {OF_RUN} AND {trials}"
        conditions = [f"g{number}.position IN ({some})" for number in range(len(self._infos))]
        where.add(
            " OR ".join(conditions), *(v for info in self._infos for v in (*of_run(info), *trials.values))
        )

    def _read(self, connection: Connection, keys: Sequence[Row]) -> list[PairRow]:
        """All about the questions of one page."""
        if not keys:
            return []
        trials, means = [], []
        for number, info in enumerate(self._infos):
            positions = [key[2 * number + 1] for key in keys]
            trials.append(self._first_trials(connection, number, positions))
            means.append(measure_means(connection, info, positions=positions))
        return [_pair(key, trials, means) for key in keys]

    def _first_trials(
        self, connection: Connection, number: int, positions: Sequence[int]
    ) -> dict[int, Trial]:
        """Position → the first trial in one of the runs, for the questions of one page."""
        # A log's rows may have any numbers.
        first = (
            "c.trial = (SELECT MIN(f.trial) FROM scorecards f "
            "WHERE f.run = c.run AND f.scoring = c.scoring AND f.position = c.position)"
        )
        query = f"{RESULTS} AND c.position IN ({signs(positions)}) AND {first}"
        found = connection.run(query, (*of_run(self._infos[number]), *positions))
        return {trial.position: trial for trial in map(read_result, found)}


def _score_value(name: str, key: Row) -> float | None:
    before, after = key[0], key[2]
    if name == "change":
        # As the database sorts by it: no score is none.
        return float((after or 0.0) - (before or 0.0))
    value = {"base": before, "candidate": after, "position": key[1]}[name]
    return None if value is None else float(value)


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _pair(
    key: Row, trials: Sequence[dict[int, Trial]], means: Sequence[dict[str, dict[int, float]]]
) -> PairRow:
    scores, positions = key[0::2], key[1::2]
    found = [known.get(position) for known, position in zip(trials, positions, strict=True)]
    asked = next((trial.question for trial in found if trial is not None), None)
    return PairRow(
        id="" if asked is None else asked.id,
        category="" if asked is None else asked.category,
        question="" if asked is None else asked.question[:_QUESTION_SHOWN],
        scores=tuple(None if score is None else round_score(score) for score in scores),
        replies=tuple(None if trial is None else trial.reply.text for trial in found),
        cards=tuple(None if trial is None else trial.scorecard for trial in found),
        measures=tuple(
            {name: of_name[position] for name, of_name in known.items() if position in of_name}
            for known, position in zip(means, positions, strict=True)
        ),
    )


def _grouped(info: RunInfo, *, with_ids: bool) -> str:
    """The questions of a run, over their trials; asked once, the table is read in its own order."""
    # A log's own number of repeats may be wrong: earlier versions did not count the replies of each question.
    once = info.repeat == 1 and not info.is_log
    score, digest = ("c.score", "c.reply_digest") if once else ("AVG(c.score)", "MIN(c.reply_digest)")
    columns = f"c.position, {score} AS score, {digest} AS reply_digest"
    joined = " JOIN questions q ON q.key = c.question" if with_ids else ""
    if with_ids:
        columns += ", q.id" if once else ", MIN(q.id) AS id"
    gathered = "" if once else " GROUP BY c.position"
    return f"SELECT {columns} FROM scorecards c{joined} WHERE {OF_RUN}{gathered}"
