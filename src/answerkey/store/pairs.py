"""Pairs: the questions of two or more runs side by side, paired by id, filtered and sorted in the database."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from answerkey.errors import UsageError
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, round_score
from answerkey.model.trial import Trial
from answerkey.store.database import EPSILON, Connection, Row, Where, signs
from answerkey.store.feedback_book import ShortText
from answerkey.store.question_list import measure_means
from answerkey.store.row_filter import Ranged, RowFilter, of_trials
from answerkey.store.sql import RESULTS, SqlStore, read_result
from answerkey.store.writing import OF_RUN, of_run

Show = Literal["regressions", "improvements", "different", "all"]

_QUESTION_SHOWN = 300
# Pairs that are read at a time, where all are wanted.
_CHUNK = 500
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
        for start in range(0, len(keys), _CHUNK):
            with self._database.reading() as connection:
                found = self._read(connection, keys[start : start + _CHUNK])
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
