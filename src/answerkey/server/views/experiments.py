"""Experiments: a golden set asked of a chatbot again and again; how each stands, and what of them needs somebody."""

from collections.abc import Iterator, Mapping
from math import sqrt
from urllib.parse import quote, urlencode

import msgspec

from answerkey.errors import AnswerkeyError, UsageError
from answerkey.evaluation.verdicts import gates_of_stored
from answerkey.gate import parse_gate
from answerkey.model.comparison import Comparison
from answerkey.model.run import RunInfo
from answerkey.report.value_wording import count, percent, points_change
from answerkey.server.cached_figures import compare_stored, feedback_figures
from answerkey.store.review import ReviewQueue
from answerkey.store.run_list import Figures, RunFilter, RunList, RunRow
from answerkey.store.sql import SqlStore
from answerkey.text.sanitise import one_line

_LISTED = 12
# Comparing takes time: only so many, and none with more questions, are held against the run before.
_JUDGED = 6
_LARGE = 20_000
_WEEK = 7
_FEWEST_VERDICTS = 20


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest run is held against, and what came of it."""

    id: str
    # "the baseline production" or "the run before".
    words: str
    verdict: str
    mean: float
    low: float
    high: float


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set and a chatbot, with the newest of its runs."""

    question_set: str
    target: str
    runs: int
    last: RunInfo
    figures: Figures | None
    # None: its first run, or nothing to compare.
    against: Against | None

    @property
    def address(self) -> str:
        """Its page: the trend and its runs."""
        return "/?" + urlencode({"set": self.question_set, "target": self.target})

    @property
    def compare_address(self) -> str:
        """The comparison of its newest run with what it is held against, the losses first."""
        base = "" if self.against is None else f"base={quote(self.against.id, safe='')}&"
        return f"/compare?{base}run={quote(self.last.id, safe='')}"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody should look at."""

    kind: str
    words: str
    address: str


def load_experiments(store: SqlStore) -> tuple[Experiment, ...]:
    """The experiments that ran last."""
    listed, baselines = RunList(store), store.baselines()
    found = []
    for number, (question_set, target, runs) in enumerate(listed.experiments(_LISTED)):
        rows, _ = listed.page(RunFilter(set=question_set, target=target), limit=3)
        # One that is under way says nothing yet.
        rows = [row for row in rows if row.figures is not None] or rows
        against = _against(store, rows, baselines) if number < _JUDGED else None
        found.append(
            Experiment(
                question_set=question_set,
                target=target,
                runs=runs,
                last=rows[0].info,
                figures=rows[0].figures,
                against=against,
            )
        )
    return tuple(found)


def _against(store: SqlStore, rows: list[RunRow], baselines: Mapping[str, str]) -> Against | None:
    """The newest run against its set's baseline, or else against the run before."""
    last = rows[0]
    if last.figures is None or last.figures.questions > _LARGE:
        return None
    known = {}
    for name, run_id in sorted(baselines.items()):
        base = store.find_run(run_id)
        if base.question_set == last.info.question_set and base.id != last.info.id:
            known[base.id] = (base, f"the baseline {one_line(name, 40)}")
    if not known and len(rows) > 1 and rows[1].figures is not None:
        known = {rows[1].info.id: (rows[1].info, "the run before")}
    for base, words in known.values():
        try:
            found = compare_stored(store, base, last.info)
        except UsageError:
            # Nothing in common: the set was replaced.
            continue
        return Against(
            id=base.id,
            words=words,
            verdict=found.verdict,
            mean=found.difference.mean,
            low=found.difference.low,
            high=found.difference.high,
        )
    return None


def needs_of(store: SqlStore, experiments: tuple[Experiment, ...]) -> tuple[Need, ...]:
    """What needs somebody, the gravest first."""
    return (
        *(need for one in experiments[:_JUDGED] for need in _gates(store, one)),
        *_regressions(experiments),
        *_satisfaction(store),
        *_reviews(store, experiments),
    )


def _gates(store: SqlStore, one: Experiment) -> Iterator[Need]:
    if one.figures is None or not one.last.options.gates:
        return
    comparison: Comparison | None = None
    try:
        if one.against is not None:
            comparison = compare_stored(store, store.find_run(one.against.id), one.last)
        results = gates_of_stored(
            store, one.last, [parse_gate(text) for text in one.last.options.gates], comparison
        )
    except AnswerkeyError:
        # A gate on a run that is gone, or that this version no longer reads, is nobody's to mend here.
        return
    failed = [result for result in results if not result.passed]
    if failed:
        words = ", ".join(one_line(result.gate, 60) for result in failed[:3])
        yield Need(
            kind="gate",
            words=f"“{one_line(one.last.name, 60)}” fails {count(len(failed), 'gate')}: {words}",
            address=f"/runs/{quote(one.last.id, safe='')}?result=failed",
        )


def _regressions(experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments:
        if one.against is not None and one.against.verdict == "worse":
            likely = f"{points_change(one.against.low)} to {points_change(one.against.high)}"
            yield Need(
                kind="regression",
                words=f"“{one_line(one.last.name, 60)}” is worse than {one.against.words}: "
                f"{points_change(one.against.mean)} points, likely {likely}",
                address=one.compare_address,
            )


def _satisfaction(store: SqlStore) -> Iterator[Need]:
    """The last seven days with feedback against the seven before: told only where chance does not explain it."""
    days = feedback_figures(store).days
    late, early = days[-_WEEK:], days[-2 * _WEEK : -_WEEK]
    sizes = [sum(day.feedback for day in part) for part in (early, late)]
    if min(sizes) < _FEWEST_VERDICTS:
        return
    before, now = (
        sum(day.positive for day in part) / size for part, size in zip((early, late), sizes, strict=True)
    )
    pooled = (before * sizes[0] + now * sizes[1]) / sum(sizes)
    error = sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))
    if error and (before - now) / error > 1.96:
        yield Need(
            kind="satisfaction",
            words=f"Satisfaction fell from {percent(before, 0)} to {percent(now, 0)}",
            address=f"/feedback?since={late[0].day}&value=down",
        )


def _reviews(store: SqlStore, experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments[:1]:
        waiting, _ = ReviewQueue(store, one.last).counts()
        if waiting:
            verb = "waits" if waiting == 1 else "wait"
            name = one_line(one.last.name, 60)
            words = f"{count(waiting, 'reply', 'replies')} of “{name}” {verb} for a review"
            yield Need(kind="review", words=words, address=f"/review?run={quote(one.last.id, safe='')}")
