"""Tally: results added up so that the parts of a run, added up apart and merged in any order, give the same summary.

Each question is counted once, as a cell: its slices and its values, the mean of its trials. Few scorings give many different
cells, so a tally of millions is small; one that has too many is folded into moments, which changes no figure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from answerkey.model.question import Question, group_of
from answerkey.model.reply import HARNESS_PROBLEMS, Reply
from answerkey.model.scorecard import PASS_MARK, Trial, letter_grade, round_score
from answerkey.model.slice_sums import (
    COST,
    ERRORS,
    TAKEN,
    TOOL,
    Names,
    Replies,
    ReplySums,
    Signature,
    SliceKey,
    SliceSums,
    Values,
    add_sums,
    columns_of,
    cost_of,
    is_bounded,
    keys_of,
    signature_of,
)
from answerkey.model.summary import Latency, Slice, Summary
from answerkey.model.whole_tally import WholeTally
from answerkey.stats.durations import Durations
from answerkey.stats.intervals import UnitMoments, fixed_point_mean, to_fixed_point

GRADES = "ABCDF"
# More different cells than these are folded.
_MOST_CELLS = 50_000
_OVERALL = ("overall", "overall")


class Tally:
    """Adds up trials, and the questions that they are of."""

    def __init__(self, pass_mark: float = PASS_MARK) -> None:
        self.pass_mark = pass_mark
        self.whole = WholeTally()
        # Of replies, by the slices of their question.
        self._replies: dict[Signature, Replies] = {}
        # Questions that are units themselves: how many have these slices and values; and those of each group.
        self._cells: Counter[tuple[Signature, Names, Values]] = Counter()
        self._groups: dict[str, Counter[tuple[Signature, Names, Values]]] = {}
        # What the replies of each group's questions add up to; and, of groups that were closed, slice by slice.
        self._group_replies: dict[str, list[tuple[Signature, ReplySums]]] = {}
        self._closed: dict[SliceKey, Replies] = {}
        # What they come to, slice by slice, as far as they were folded.
        self._slices: dict[SliceKey, SliceSums] = {}
        # Where each list of names, and each combination of slices, was seen first.
        self._names: dict[Names, int] = {}
        self._firsts: dict[Signature, int] = {}

    def add_reply(self, trial: Trial, signature: Signature, sums: ReplySums | None = None) -> None:
        """Count what is counted reply by reply, in the sums of its question too."""
        part = self._replies.get(signature)
        if part is None:
            part = self._replies[signature] = Replies()
        card = trial.scorecard
        part.trials += card.total is not None
        part.replies += len(trial.replies)
        errors = [turn.error.kind for turn in card.turns or (card,) if turn.error is not None]
        for kind in errors:
            part.errors[kind] = part.errors.get(kind, 0) + 1
        taken = [
            reply.timings.latency_ms
            for reply in trial.replies
            if reply.timings.latency_ms is not None
            and (reply.failure is None or reply.failure.kind not in HARNESS_PROBLEMS)
        ]
        part.taken.extend(taken)
        if sums is not None:
            _add_replies(sums, trial.replies, len(errors), taken)
        self.whole.add(trial)

    def add_measured(
        self, identity: str, reply: Reply, error: str | None, signature: Signature, sums: ReplySums
    ) -> None:
        """Count a reply that has a score, of which only the values are known, in the sums of its question too."""
        taken = reply.timings.latency_ms
        times = () if taken is None else (taken,)
        self.add_alike(signature, 1, error, times)
        _add_replies(sums, (reply,), int(error is not None), times)
        self.whole.add_time(identity, taken)
        self.whole.add_reply(reply)

    def add_alike(
        self, signature: Signature, replies: int, error: str | None, taken: Sequence[float] = ()
    ) -> None:
        """Count replies with a score that are in the same slices and have the same error, and what any took."""
        part = self._replies.get(signature)
        if part is None:
            part = self._replies[signature] = Replies()
        part.trials += replies
        part.replies += replies
        if error is not None:
            part.errors[error] = part.errors.get(error, 0) + replies
        part.taken.extend(taken)

    def add_question(
        self,
        signature: Signature,
        group: str | None,
        first: int,
        values: Mapping[tuple[Names, Values], int],
        questions: int = 1,
        replies: ReplySums | None = None,
    ) -> None:
        """Count a question, whose replies were all counted: its unit (None: itself), its place, and its trials' values.

        Several questions may be counted together that are alike in all but their places, of which the first is given, and the
        times that their replies took, which are added apart.
        """
        if len(values) == 1:
            ((names, means),) = values
        else:
            names, means = _mean_values(values)
        if self._names.get(names, first + 1) > first:
            self._names[names] = first
        if self._firsts.get(signature, first + 1) > first:
            self._firsts[signature] = first
        if group is None:
            self._cells[signature, names, means] += questions
            if replies is not None:
                self._replies.setdefault(signature, Replies()).add_unit(replies, questions)
            if len(self._cells) > _MOST_CELLS:
                self._fold_cells()
        else:
            self._groups.setdefault(group, Counter())[signature, names, means] += questions
            if replies is not None:
                self._group_replies.setdefault(group, []).append((signature, replies))

    def add_taken(self, signature: Signature, totals: Sequence[int], replies: int) -> None:
        """Count what the replies of questions that are units took, so many replies each."""
        part = self._replies.setdefault(signature, Replies())
        part.moments.setdefault(TAKEN, UnitMoments()).extend(totals, replies)

    def merge(self, other: "Tally") -> None:
        """Add what another has counted; a group's questions must all be in one of them."""
        self.whole.merge(other.whole)
        for signature, part in other._replies.items():
            self._replies.setdefault(signature, Replies()).merge(part)
        self._cells.update(other._cells)
        for group, cells in other._groups.items():
            self._groups.setdefault(group, Counter()).update(cells)
        for group, replies in other._group_replies.items():
            self._group_replies.setdefault(group, []).extend(replies)
        for key, part in other._closed.items():
            self._closed.setdefault(key, Replies()).merge(part)
        for key, sums in other._slices.items():
            self._slices.setdefault(key, SliceSums()).merge(sums)
        for names, first in other._names.items():
            self._names[names] = min(self._names.get(names, first), first)
        for signature, first in other._firsts.items():
            self._firsts[signature] = min(self._firsts.get(signature, first), first)
        if len(self._cells) > _MOST_CELLS:
            self._fold_cells()

    def close_groups(self) -> None:
        """Sum up the groups: no more of their questions will come."""
        for cells in self._groups.values():
            self._fold_unit(cells)
        self._groups.clear()
        for replies in self._group_replies.values():
            units: dict[SliceKey, ReplySums] = {}
            for signature, sums in replies:
                for key in (_OVERALL, *keys_of(signature)):
                    unit = units.setdefault(key, {})
                    for column, (total, size) in sums.items():
                        add_sums(unit, column, total, size)
            for key, unit in units.items():
                self._closed.setdefault(key, Replies()).add_unit(unit)
        self._group_replies.clear()

    def _fold_cells(self) -> None:
        for (signature, names, values), times in self._cells.items():
            columns = columns_of(names, values, self.pass_mark)
            for key in (_OVERALL, *keys_of(signature)):
                sums = self._sums(key)
                sums.add_question(values[0], times, self.pass_mark)
                sums.units += times
                sums.expecting_nothing += times * (signature[-1] and "checks" not in names[0])
                for column, value in columns:
                    sums.moments(column).add(
                        to_fixed_point(value), 1, times, bounded=is_bounded(column, value)
                    )
        self._cells.clear()

    def _fold_unit(self, cells: Counter[tuple[Signature, Names, Values]]) -> None:
        """Add one unit of several questions to all slices that it is in."""
        units: dict[SliceKey, dict[str, list[int]]] = {}
        for (signature, names, values), times in cells.items():
            columns = columns_of(names, values, self.pass_mark)
            for key in (_OVERALL, *keys_of(signature)):
                sums = self._sums(key)
                sums.add_question(values[0], times, self.pass_mark)
                sums.expecting_nothing += times * (signature[-1] and "checks" not in names[0])
                unit = units.setdefault(key, {})
                for column, value in columns:
                    found = unit.setdefault(column, [0, 0, 1])
                    found[0] += to_fixed_point(value) * times
                    found[1] += times
                    found[2] &= is_bounded(column, value)
        for key, unit in units.items():
            sums = self._sums(key)
            sums.units += 1
            for column, (total, size, bounded) in unit.items():
                sums.moments(column).add(total, size, bounded=bool(bounded))

    def _sums(self, key: SliceKey) -> "SliceSums":
        sums = self._slices.get(key)
        if sums is None:
            sums = self._slices[key] = SliceSums()
        return sums

    def summary(self, planned: int | None, unanswered: int = 0) -> Summary:
        """What it all comes to; without a plan, everything there is was planned, and a reply to each unanswered question."""
        self.close_groups()
        self._fold_cells()
        whole_run = self.whole
        ordered = sorted(self._firsts, key=lambda signature: (self._firsts[signature], repr(signature)))
        listed = list(dict.fromkeys(key for signature in ordered for key in keys_of(signature)))
        replies = self._replies_by_slice(listed)
        slices = {key: self._slice(key, replies[key]) for key in (_OVERALL, *listed)}
        overall = slices.pop(_OVERALL)
        unscored = whole_run.unscored_reasons()
        if planned is None:
            planned = overall.trials + sum(unscored.values()) + unanswered
        kinds = dict.fromkeys(kind for kind, _ in listed)
        return Summary(
            **{field: getattr(overall, field) for field in Slice.__struct_fields__},
            planned=planned,
            coverage=round_score(min(1.0, overall.trials / planned)) if planned else 1.0,
            expecting_nothing=self._sums(_OVERALL).expecting_nothing,
            tools_unobserved=whole_run.tools_unobserved,
            finishes=dict(sorted(whole_run.finishes.items())),
            unscored=unscored,
            harness=dict(sorted(whole_run.harness.items())),
            usage=whole_run.usage(),
            categories=tuple(part for (kind, _), part in slices.items() if kind == "category"),
            slices={
                kind: tuple(part for (of, _), part in slices.items() if of == kind)
                for kind in kinds
                if kind != "category"
            },
            tool_latency_ms={
                name: _latency(taken, replies[_OVERALL], TOOL + name)
                for name, taken in sorted(whole_run.tool_ms.items())
            },
            phases_ms=whole_run.phases_ms(),
            slowest=whole_run.slowest(),
        )

    def _replies_by_slice(self, listed: Sequence[SliceKey]) -> dict[SliceKey, "Replies"]:
        found = {key: Replies() for key in (_OVERALL, *listed)}
        for signature, part in self._replies.items():
            for key in (_OVERALL, *keys_of(signature)):
                found.setdefault(key, Replies()).merge(part)
        for key, part in self._closed.items():
            found.setdefault(key, Replies()).merge(part)
        return found

    def _slice(self, key: SliceKey, replies: "Replies") -> Slice:
        sums = self._sums(key)
        score, interval = sums.mean("score")
        components, metrics = self._listed(0), self._listed(1)
        means = {name: sums.mean(name) for name in (*components, *metrics)}
        scored = sum(sums.grades.values())
        return Slice(
            name=key[1],
            questions=sums.questions,
            units=sums.units,
            trials=replies.trials,
            replies=replies.replies,
            score=score,
            grade=None if score is None else letter_grade(score),
            interval=interval,
            components={name: means[name][0] for name in components},
            component_intervals={name: means[name][1] for name in components},
            passed=sums.passed,
            pass_rate=round_score(sums.passed / scored) if scored else None,
            pass_interval=sums.mean("passed")[1],
            grades={letter: sums.grades.get(letter, 0) for letter in GRADES},
            errors=dict(sorted(replies.errors.items())),
            error_rate=round_score(sum(replies.errors.values()) / replies.replies)
            if replies.replies
            else 0.0,
            error_interval=replies.interval(ERRORS, replies.replies),
            latency_ms=_latency(replies.taken, replies, TAKEN) if replies.taken.count else None,
            metrics={name: means[name][0] for name in metrics},
            metric_intervals={name: means[name][1] for name in metrics},
            cost=cost_of(sums),
        )

    def _listed(self, which: int) -> list[str]:
        """The components (0) or metrics (1) that any question has, in the order in which they were seen."""
        ordered = sorted(self._names, key=lambda names: (self._names[names], names))
        return [
            name for name in dict.fromkeys(name for names in ordered for name in names[which]) if name != COST
        ]


def _add_replies(sums: ReplySums, replies: Sequence[Reply], errors: int, taken: Sequence[float]) -> None:
    """Add replies to the sums of their question."""
    add_sums(sums, ERRORS, to_fixed_point(errors), len(replies))
    add_sums(sums, TAKEN, sum(map(to_fixed_point, taken)), len(taken))
    for reply in replies:
        for call in reply.tool_calls:
            if call.duration_ms is not None:
                add_sums(sums, TOOL + call.name, to_fixed_point(call.duration_ms), 1)


def values_of(trial: Trial) -> tuple[Names, Values]:
    """A trial's values, and what they are called."""
    card = trial.scorecard
    components, metrics = card.components, card.metrics
    scores = [score.value for score in components.values()]
    cost = trial.cost
    if cost is None:
        return (tuple(components), tuple(metrics)), (card.total, *scores, *metrics.values())
    return (tuple(components), (*metrics, COST)), (card.total, *scores, *metrics.values(), cost)


def _mean_values(values: Mapping[tuple[Names, Values], int]) -> tuple[Names, Values]:
    """The mean of a question's trials, each value over those that have it."""
    listed = sorted(names for names, _ in values)
    names = (
        tuple(dict.fromkeys(name for parts in listed for name in parts[0])),
        # The cost stands last, whatever trials have one.
        tuple(sorted(dict.fromkeys(name for parts in listed for name in parts[1]), key=COST.__eq__)),
    )
    columns: dict[str, list[tuple[float, int]]] = {}
    for (parts, numbers), times in values.items():
        for name, number in zip(("score", *parts[0], *parts[1]), numbers, strict=True):
            if number is not None:
                columns.setdefault(name, []).append((number, times))
    return names, tuple(_mean(columns.get(name, ())) for name in ("score", *names[0], *names[1]))


def _mean(counted: Sequence[tuple[float, int]]) -> float | None:
    if not counted:
        return None
    # Exact sums, so that the order of the trials does not matter.
    total = sum(to_fixed_point(value) * times for value, times in counted)
    return fixed_point_mean(total, sum(times for _, times in counted))


def _latency(taken: Durations, replies: Replies, column: str) -> Latency:
    """Times taken, as they are reported; the replies know the units of those in a column."""
    mean, half, p90, p95, p99, longest = (
        round(figure, 3) for figure in (taken.mean, *taken.percentiles((50, 90, 95, 99)), taken.longest)
    )
    return Latency(mean, half, p90, p95, p99, longest, replies.interval(column, taken.count))


def summarise(results: Iterable[Trial], *, planned: int | None, pass_mark: float = PASS_MARK) -> Summary:
    """Add up results that come grouped by question."""
    return _tally(results, pass_mark)[0].summary(planned)


def summarise_log(
    results: Iterable[Trial], *, questions: int, bad_rows: Mapping[str, int], pass_mark: float
) -> Summary:
    """Add up a recorded log's results, grouped by question: of so many questions those without a reply lack one each, and rows
    that could not be scored lack a score."""
    tally, answered = _tally(results, pass_mark)
    for reason, times in bad_rows.items():
        tally.whole.add_unscored(reason, times)
    return tally.summary(None, unanswered=max(0, questions - answered))


def _tally(results: Iterable[Trial], pass_mark: float) -> tuple[Tally, int]:
    """The results added up, and how many questions they are of."""
    tally, answered = Tally(pass_mark), 0
    for place, (_, trials) in enumerate(groupby(results, key=lambda trial: trial.question.id)):
        values: Counter[tuple[Names, Values]] = Counter()
        sums: ReplySums = {}
        question: Question | None = None
        for trial in trials:
            if question is None:
                question = trial.question
                signature = signature_of(question)
            own = signature if trial.question is question else signature_of(trial.question)
            tally.add_reply(trial, own, sums)
            values[values_of(trial)] += 1
        if question is not None:
            tally.add_question(signature, group_of(question), place, values, replies=sums)
            answered = place + 1
    return tally, answered
