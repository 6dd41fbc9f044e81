"""Tally: results added up column by column, so that every slice of a run is a list of rows and memory stays flat."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, nan

import msgspec

from answerkey.model.question import Question, group_of
from answerkey.model.reply import HARNESS_PROBLEMS, Reply
from answerkey.model.scorecard import PASS_MARK, Scorecard, grade, harness_problem, round_score
from answerkey.model.summary import Cost, Latency, Slice, SlowQuestion, Summary
from answerkey.model.trial import Trial
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.quantiles import percentiles

__all__ = ["Tally", "summarise"]

GRADES = "ABCDF"
# In the place of a grade, where there is no score.
_UNGRADED = 255
# Longer names than these are for people; the bounds are words in the question.
_LENGTHS = ((8, "short (up to 8 words)"), (20, "medium (9 to 20 words)"), (None, "long (over 20 words)"))
_SLOWEST_LISTED = 5
# Reasons may hold a message of any kind: so many different ones are told apart, up to this length.
_REASONS_LISTED = 20
_REASON_LENGTH = 200


class Tally:
    """Adds up trials one by one."""

    def __init__(self, pass_mark: float, *, grouped: bool) -> None:
        self._pass_mark = pass_mark
        # Whether a question's trials come one after the other: then memory stays flat, else it grows with the questions.
        self._grouped = grouped
        # Questions to which further trials may come, by id.
        self._open: dict[str, tuple[Question, _Measured]] = {}
        self._rows = 0
        self._trials = array("l")
        self._replies = array("l")
        # The unit that each question belongs to, by number; while no two share one, each is its own.
        self._units = array("l")
        self._groups: dict[str, int] = {}
        # One number a question; NaN where a question has none.
        self._scores = array("d")
        # A question's place in GRADES, and whether it passed; only where it has a score.
        self._grades = bytearray()
        self._passed = bytearray()
        self._components: dict[str, array[float]] = {}
        self._metrics: dict[str, array[float]] = {}
        self._costs = array("d")
        self._latencies = array("d")
        # Where each question's latencies end.
        self._ends = array("l")
        # Only questions with errors have an entry.
        self._errors: dict[int, dict[str, int]] = {}
        # Kind of slice → its name → the rows in it.
        self._slices: dict[str, dict[str, array[int]]] = defaultdict(dict)
        self._expecting_nothing = 0
        self._whole = _WholeRun()

    def add(self, trial: Trial) -> None:
        """Count one more trial."""
        self._whole.add(trial)
        found = self._open.get(trial.question.id)
        if found is None:
            if self._grouped:
                self._close_questions()
            found = self._open[trial.question.id] = (trial.question, _Measured())
        found[1].add(trial)

    def _close_questions(self) -> None:
        for question, measured in self._open.values():
            self._add_question(question, measured)
        self._open.clear()

    def _add_question(self, question: Question, measured: "_Measured") -> None:
        """Count a question, its trials averaged."""
        row = self._rows
        self._rows += 1
        group = group_of(question)
        self._units.append(row if group is None else self._groups.setdefault(group, row))
        self._trials.append(measured.trials)
        self._replies.append(measured.replies)
        score, components, metrics = measured.means()
        self._expecting_nothing += question.expects_nothing and "checks" not in components
        self._scores.append(nan if score is None else score)
        self._grades.append(_UNGRADED if score is None else GRADES.index(grade(score)))
        self._passed.append(score is not None and round_score(score) >= self._pass_mark)
        _fill(self._components, components, row)
        _fill(self._metrics, metrics, row)
        cost = _mean(measured.costs)
        self._costs.append(nan if cost is None else cost)
        self._latencies.extend(measured.latencies)
        self._ends.append(len(self._latencies))
        if measured.errors:
            self._errors[row] = measured.errors
        for kind, name in _slice_names(question):
            rows = self._slices[kind].get(name)
            if rows is None:
                rows = self._slices[kind][name] = array("l")
            rows.append(row)

    def summary(self, planned: int | None) -> Summary:
        """What it all comes to; without a plan, everything there is was planned."""
        self._close_questions()
        whole = self._whole
        overall = self._slice("overall", range(self._rows))
        planned = overall.trials + whole.unscored.total() if planned is None else planned
        return Summary(
            **{field: getattr(overall, field) for field in Slice.__struct_fields__},
            planned=planned,
            coverage=round_score(min(1.0, overall.trials / planned)) if planned else 1.0,
            expecting_nothing=self._expecting_nothing,
            tools_unobserved=whole.tools_unobserved,
            finishes=dict(sorted(whole.finishes.items())),
            unscored=dict(whole.unscored),
            harness=dict(sorted(whole.harness.items())),
            usage=whole.usage(),
            categories=tuple(self._slice(name, rows) for name, rows in self._slices["category"].items()),
            slices={
                kind: tuple(self._slice(name, rows) for name, rows in named.items())
                for kind, named in self._slices.items()
                if kind != "category"
            },
            tool_latency_ms={name: _latency(taken) for name, taken in sorted(whole.tool_ms.items())},
            phases_ms={
                name: round(fsum(taken) / len(taken), 3) for name, taken in whole.phases.items() if taken
            },
            slowest=tuple(whole.slowest),
        )

    def _slice(self, name: str, rows: Sequence[int]) -> Slice:
        score, interval = self._mean(self._scores, rows)
        components = {key: self._mean(column, rows) for key, column in self._components.items()}
        metrics = {key: self._mean(column, rows) for key, column in self._metrics.items()}
        letters = Counter(_chosen(self._grades, rows))
        passed = sum(_chosen(self._passed, rows))
        scored = [row for row in rows if self._scores[row] == self._scores[row]]
        replies = sum(_chosen(self._replies, rows))
        errors: Counter[str] = Counter()
        for row in self._errors if len(rows) == self._rows else (row for row in rows if row in self._errors):
            errors.update(self._errors[row])
        taken = self._taken(rows)
        return Slice(
            name=name,
            questions=len(rows),
            units=len(set(_chosen(self._units, rows))) if self._groups else len(rows),
            trials=sum(_chosen(self._trials, rows)),
            replies=replies,
            score=score,
            grade=None if score is None else grade(score),
            interval=interval,
            components={key: mean for key, (mean, _) in components.items()},
            component_intervals={key: found for key, (_, found) in components.items()},
            passed=passed,
            pass_rate=round_score(passed / len(scored)) if scored else None,
            pass_interval=self._mean(self._passed, scored)[1],
            grades={letter: letters[place] for place, letter in enumerate(GRADES)},
            errors=dict(sorted(errors.items())),
            error_rate=round_score(errors.total() / replies) if replies else 0.0,
            latency_ms=_latency(taken) if taken else None,
            metrics={key: mean for key, (mean, _) in metrics.items()},
            metric_intervals={key: found for key, (_, found) in metrics.items()},
            cost=self._cost(rows),
        )

    def _cost(self, rows: Sequence[int]) -> Cost | None:
        known = [row for row in rows if self._costs[row] == self._costs[row]]
        mean, interval = self._mean(self._costs, known, money=True)
        if mean is None:
            return None
        if interval is not None:
            interval = msgspec.structs.replace(interval, low=max(0.0, interval.low))
        scored = [row for row in known if self._scores[row] == self._scores[row]]
        worth = fsum(self._scores[row] for row in scored)
        paid = fsum(self._costs[row] for row in scored)
        point = round_score(paid / worth) if worth > 0 else None
        return Cost(questions=len(known), question=mean, interval=interval, point=point)

    def _mean(
        self, column: Sequence[float], rows: Sequence[int], *, money: bool = False
    ) -> tuple[float | None, Interval | None]:
        """The mean of a column over the rows that have a value, and its interval over their units."""
        # NaN is the one number that differs from itself.
        known = [row for row in rows if column[row] == column[row]]
        values = [column[row] for row in known]
        if not values:
            return None, None
        # A count or a duration is not bounded.
        bounded = not money and min(values) >= 0.0 and max(values) <= 1.0
        units = [self._units[row] for row in known] if self._groups else None
        return round_score(fsum(values) / len(values)), mean_interval(values, units, bounded=bounded)

    def _taken(self, rows: Sequence[int]) -> Sequence[float]:
        if len(rows) == self._rows:
            return self._latencies
        taken = array("d")
        for row in rows:
            taken.extend(self._latencies[self._ends[row - 1] if row else 0 : self._ends[row]])
        return taken


class _Measured:
    """A question's trials added up: what every mean over questions is made of."""

    __slots__ = ("_components", "_metrics", "_scores", "costs", "errors", "latencies", "replies", "trials")

    def __init__(self) -> None:
        self.trials = self.replies = 0
        self.errors: dict[str, int] = {}
        self.latencies: list[float] = []
        self.costs: list[float | None] = []
        # The values of each trial.
        self._scores: list[float | None] = []
        self._components: list[dict[str, float | None]] = []
        self._metrics: list[dict[str, float | None]] = []

    def add(self, trial: Trial) -> None:
        """Count one trial."""
        card = trial.scorecard
        self.trials += card.total is not None
        self.replies += len(trial.replies)
        self._scores.append(card.total)
        self.costs.append(trial.cost)
        self._components.append({name: score.value for name, score in card.components.items()})
        self._metrics.append(card.metrics)
        for turn in card.turns or (card,):
            if turn.error is not None:
                self.errors[turn.error.kind] = self.errors.get(turn.error.kind, 0) + 1
        for reply in trial.replies:
            own = reply.failure is not None and reply.failure.kind in HARNESS_PROBLEMS
            if reply.timings.latency_ms is not None and not own:
                self.latencies.append(reply.timings.latency_ms)

    def means(self) -> tuple[float | None, dict[str, float | None], dict[str, float | None]]:
        """Score, components and metrics, each the mean of the trials that have it."""
        if len(self._scores) == 1:
            return self._scores[0], self._components[0], self._metrics[0]
        return _mean(self._scores), _means(self._components), _means(self._metrics)


def _means(trials: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    return {
        name: _mean([values.get(name) for values in trials])
        for name in dict.fromkeys(name for values in trials for name in values)
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


class _WholeRun:
    """What is only added up for the run as a whole."""

    def __init__(self) -> None:
        self.tools_unobserved = 0
        self.finishes = Counter[str]()
        self.unscored: Counter[str] = Counter()
        self.harness: Counter[str] = Counter()
        self.tool_ms: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.phases: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.slowest: list[SlowQuestion] = []
        self._usage: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        if trial.scorecard.total is None:
            problem = harness_problem(trial.scorecard)
            reason = _unscored_reason(trial.scorecard, problem)
            if problem is not None:
                self.harness[problem] += 1
            listed = reason in self.unscored or len(self.unscored) < _REASONS_LISTED
            self.unscored[reason if listed else "other reasons"] += 1
        for reply in trial.replies:
            self._add_reply(reply)
        taken = trial.latency_ms
        if taken is not None and (len(self.slowest) < _SLOWEST_LISTED or taken > self.slowest[-1].latency_ms):
            self._add_slow(trial.question.id, round(taken, 3))

    def _add_slow(self, identity: str, taken: float) -> None:
        others = [slow for slow in self.slowest if slow.id != identity]
        known = next((slow.latency_ms for slow in self.slowest if slow.id == identity), 0.0)
        self.slowest = sorted(
            [*others, SlowQuestion(identity, max(known, taken))], key=lambda slow: -slow.latency_ms
        )
        del self.slowest[_SLOWEST_LISTED:]

    def _add_reply(self, reply: Reply) -> None:
        self.tools_unobserved += not reply.evidence.tools_observed and reply.failure is None
        if reply.finish is not None:
            self.finishes[reply.finish] += 1
        tools_ms = 0.0
        for call in reply.tool_calls:
            if call.duration_ms is not None:
                tools_ms += call.duration_ms
                self.tool_ms[call.name].append(call.duration_ms)
        timings = reply.timings
        if timings.latency_ms is not None:
            self.phases["tools"].append(tools_ms)
            self.phases["rest"].append(max(0.0, timings.latency_ms - tools_ms))
            if timings.first_byte_ms is not None:
                self.phases["first_byte"].append(timings.first_byte_ms)
            self.phases["queue"].append(timings.queue_ms)
            self.phases["retry"].append(timings.retry_ms)
        if reply.usage is not None:
            for name in reply.usage.__struct_fields__:
                amount = getattr(reply.usage, name)
                if amount is not None:
                    self._usage[name] += amount

    def usage(self) -> dict[str, float]:
        return {name: round(amount, 9) for name, amount in self._usage.items()}


def _unscored_reason(card: Scorecard, problem: str | None) -> str:
    """Why a trial has no score: the first component that has a weight and no value."""
    for score in card.components.values():
        if score.value is None and score.weight:
            if problem not in (None, "scorer"):
                return f"harness: {problem}: {score.reason[:_REASON_LENGTH]}"
            return f"{score.name}: {score.reason[:_REASON_LENGTH]}"
    return "not scored"


def _slice_names(question: Question) -> Iterator[tuple[str, str]]:
    yield "category", question.category
    if question.persona:
        yield "persona", question.persona
    for tag in question.tags:
        yield "tag", tag
    tools = sorted({tool.name for turn in question.asks for tool in turn.expected_tools})
    yield "tools", " + ".join(tools) or "(none)"
    words = len(question.question.split())
    yield "length", next(name for most, name in _LENGTHS if most is None or words <= most)


def _fill(columns: dict[str, "array[float]"], values: Mapping[str, float | None], row: int) -> None:
    """Add a row to columns; a column that is new, or that the row lacks, has NaN there."""
    for name, value in values.items():
        column = columns.get(name)
        if column is None:
            column = columns[name] = array("d", [nan]) * row
        column.append(nan if value is None else value)
    if len(columns) != len(values):
        for column in columns.values():
            if len(column) <= row:
                column.append(nan)


def _chosen(column: Sequence[int], rows: Sequence[int]) -> Iterable[int]:
    # All rows, as for the whole run: the column as it is.
    return column if len(rows) == len(column) else [column[row] for row in rows]


def _latency(taken: Sequence[float]) -> Latency:
    figures = (fsum(taken) / len(taken), *percentiles(taken, (50, 90, 95, 99)), max(taken))
    return Latency(*[round(figure, 3) for figure in figures])


def summarise(results: Iterable[Trial], *, planned: int | None, pass_mark: float = PASS_MARK) -> Summary:
    """Add up results that come grouped by question."""
    tally = Tally(pass_mark, grouped=True)
    for trial in results:
        tally.add(trial)
    return tally.summary(planned)
