"""Numbers, comparisons and changes in words; scores are never rounded up into a better grade.

Notifications say that a gate failed, of a regression, or of satisfaction below a bound, to a webhook, Slack or by mail. One that
cannot be sent is reported as a warning; it never changes a result or an exit code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from answerkey.config import NoticeEvent, NotifySettings, Secrets, SmtpSettings
from answerkey.errors import ConfigError
from answerkey.model.comparison import Comparison, Measure, QuestionChange
from answerkey.model.judgement import FeedbackStats, JudgeRecord
from answerkey.model.run import Cost, GateResult, KeyStrength, Run, Summary
from answerkey.model.scorecard import Scorecard, details, round_down, shown_score
from answerkey.stats.intervals import Interval
from answerkey.text.normalise import count as count
from answerkey.text.normalise import count_of, for_terminal, one_line

# The standard's own words.
GRADE_MEANINGS = {
    "A": "Excellent response",
    "B": "Good response, minor issues",
    "C": "Acceptable, needs improvement",
    "D": "Below acceptable, investigation needed",
    "F": "Poor response, significant issues",
}


# Above this share of failing or unscored questions or replies, a grade is not called good.
_MOST_FAILING = 0.1


def grade_words(summary: Summary, in_words: Callable[[float], str] = shown_score) -> str:
    """What a run's grade means and how much of it failed; if the answer key refuses too little, that instead of praise."""
    failing = failing_words(summary)
    if summary.is_weak_key:
        weakness = _weakness(summary, in_words)
        return f"{weakness}; {failing}" if _fails_often(summary) else weakness
    is_praise = (summary.grade or "") in "ABC"
    if is_praise and summary.coverage < 1 - _MOST_FAILING:
        unscored = f"only {score_percent(summary.coverage)} of what was planned has a score"
        return f"but {failing}, and {unscored}" if _fails_often(summary) else f"but {unscored}"
    meaning = GRADE_MEANINGS.get(summary.grade or "", "")
    if not failing:
        return meaning
    return f"but {failing}" if is_praise and _fails_often(summary) else f"{meaning}; {failing}"


def _weakness(summary: Summary, in_words: Callable[[float], str]) -> str:
    if summary.is_silent_key:
        verb = "expects" if summary.expecting_nothing == 1 else "expect"
        return f"but {summary.expecting_nothing:,} of {count(summary.questions, 'question')} {verb} nothing of the text"
    if summary.is_beaten:
        return f"but {_floor_words(summary, in_words)}"
    strength = summary.strength
    return "" if strength is None else f"but {_weak_questions(strength)}"


def _fails_often(summary: Summary) -> bool:
    shares = (summary.pass_rate, summary.trial_pass_rate)
    return any(share is not None and 1 - share > _MOST_FAILING for share in shares)


def failing_words(summary: Summary) -> str:
    """`7 of 15 questions failed`; where questions have several replies, of replies; empty if none failed."""
    if summary.trials > summary.questions:
        failed, of = summary.trials - summary.trials_passed, count(summary.trials, "reply", "replies")
    else:
        scored = scored_questions(summary)
        failed, of = scored - summary.passed, count(scored, "question")
    return f"{failed:,} of {of} failed" if failed else ""


def _floor_words(summary: Summary, in_words: Callable[[float], str]) -> str:
    floor = summary.floor
    if floor is None:
        return ""
    return f"a bot that knows no answer scores {in_words(floor.value)} (it {floor.bot})"


def _weak_questions(strength: KeyStrength, sampled: str = "") -> str:
    return f"{strength.weak:,} of {strength.questions:,}{sampled} questions let a wrong reply pass"


def key_lines(summary: Summary, in_words: Callable[[float], str] = shown_score) -> list[str]:
    """What the answer key refuses, without what the grade's words say already."""
    lines = []
    headline = _weakness(summary, in_words) if summary.is_weak_key else ""
    strength, floor = summary.strength, summary.floor
    if strength is not None:
        interval = f"{percent(strength.low, 0)}–{percent(strength.high, 0)}"
        is_sample = floor is not None and floor.questions < summary.questions
        words = f"key strength {percent(strength.value, 0)} ({interval})"
        is_said = "let a wrong reply pass" in headline
        lines.append(words if is_said else f"{words}: {_weak_questions(strength, ' sampled' * is_sample)}")
    if floor is not None and "a bot that knows no answer" not in headline:
        lines.append(_floor_words(summary, in_words))
    if summary.always_wrong_score is not None:
        lines.append(f"replies with every fact wrong score {in_words(summary.always_wrong_score)}")
    return lines


def critical_line(summary: Summary) -> str:
    """Which critical questions failed; empty if none did."""
    if not summary.critical_failures:
        return ""
    listed = ", ".join(one_line(identity, 60) for identity in summary.critical_failed)
    more = summary.critical_failures - len(summary.critical_failed)
    return (
        f"{summary.critical_failures:,} of {count(summary.critical, 'critical question')} failed: {listed}"
        + (f" and {more:,} more" if more else "")
    )


# How a score reads: as 0.864 in texts, as 86.4% on pages (docs/reading-the-report.md).
ScoreWords = Callable[[float | None], str]

# A score as 0.864, rounded down: 0.899999 is a B and must not read 0.900.
score_text = shown_score


def score_percent(score: float | None) -> str:
    """A score as 86.4%, rounded down too."""
    return "–" if score is None else _percent(round_down(score, 3), 1)


def scored_questions(summary: Summary) -> int:
    return sum(summary.grades.values())


def passed_texts(summary: Summary) -> list[str]:
    """How many of the scored questions passed and, where questions have several replies, how many replies did."""
    rate = f"{percent(summary.pass_rate)}{rate_range_text(summary.pass_interval)}"
    scored = scored_questions(summary)
    if scored < summary.questions:
        texts = [
            f"{summary.passed:,} of {scored:,} scored questions passed ({rate}); "
            f"{summary.questions - scored:,} of {count(summary.questions, 'question')} not scored"
        ]
    else:
        texts = [f"{summary.passed:,} of {count(summary.questions, 'question')} passed ({rate})"]
    if summary.trials > summary.questions:
        replies = f"{summary.trials_passed:,} of {count(summary.trials, 'reply', 'replies')}"
        texts.append(f"{replies} passed ({percent(summary.trial_pass_rate)})")
    return texts


def percent(share: float | None, digits: int = 1) -> str:
    """A share as 86.7%; only 1 is 100%."""
    if share is None:
        return "–"
    return _percent(min(share, 1 - 10 ** -(digits + 2)) if share < 1 else share, digits)


def _percent(share: float, digits: int) -> str:
    value = f"{share * 100:.{digits}f}"
    return f"{value.rstrip('0').rstrip('.') if '.' in value else value}%"


def points(lost: float | None) -> str:
    """Lost points as (−0.08); empty if unknown."""
    if lost is None:
        return ""
    digits = 2 if lost >= 0.005 else 3
    return f"(−{lost:.{digits}f})"


def range_text(interval: Interval | None, score: ScoreWords = score_text) -> str:
    """An interval of a score as 0.812–0.901."""
    return "" if interval is None else f"{score(interval.low)}–{score(interval.high)}"


def metric_range_text(interval: Interval | None) -> str:
    """An interval of a metric or a count, in brackets."""
    return "" if interval is None else f" ({metric_text(interval.low)}–{metric_text(interval.high)})"


def rate_range_text(interval: Interval | None) -> str:
    """An interval of a rate, as ", 95% interval 71%–93%"."""
    if interval is None:
        return ""
    return f", {interval.level:.0%} interval {percent(interval.low, 0)}–{percent(interval.high, 0)}"


def milliseconds(duration: float | None) -> str:
    """A time in milliseconds, seconds or minutes."""
    if duration is None:
        return "–"
    if duration < 10:
        return f"{duration:.1f} ms" if duration >= 0.1 or duration == 0 else f"{duration:.2f} ms"
    if duration < 1000:
        return f"{duration:.0f} ms"
    if duration < 120_000:
        return f"{duration / 1000:.{2 if duration < 10_000 else 1}f} s"
    return f"{duration / 60_000:.1f} min"


def time_range_text(interval: Interval | None) -> str:
    """An interval of a time as 280–344 ms; – if unknown."""
    if interval is None:
        return "–"
    low, high = milliseconds(interval.low), milliseconds(interval.high)
    alike = low.split()[-1] == high.split()[-1]
    return f"{low.split()[0] if alike else low}–{high}"


def points_change(change: float | None) -> str:
    """A difference of scores as +3.2 or −0.5 points of a hundred."""
    if change is None:
        return "–"
    points = change * 100
    if abs(points) < 0.05:
        return "±0"
    return f"{'+' if points > 0 else '−'}{abs(points):.1f}"


def change_text(value: float, digits: int = 3) -> str:
    """A difference of a metric as +0.203 or −0.048."""
    return f"{value:+.{digits}f}".replace("-", "−")


def milliseconds_change(change: float) -> str:
    """A difference of times as +120 ms or −1.20 s."""
    return f"{'+' if change > 0 else '−' if change < 0 else '±'}{milliseconds(abs(change))}"


def list_words(counts: Mapping[str, int]) -> str:
    """`2 timeout, 1 empty`, most first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name_words(name)}" for name, number in ordered if number)


def first_names(names: Sequence[str], most: int) -> str:
    """`a, b, c and 4 more`."""
    listed = ", ".join(one_line(name, 60) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def name_words(name: str) -> str:
    """A component's or an error kind's name as words."""
    return name.replace("_", " ")


def metric_text(value: float | None) -> str:
    """A metric's value with few digits, rounded down as scores are."""
    return score_text(value) if value is None or abs(value) < 10 else f"{value:,.1f}"


def gate_value(value: Any) -> str:
    """A gate's value; for several slices, each with its name."""
    if isinstance(value, Mapping):
        return one_line(", ".join(f"{name} {gate_value(part)}" for name, part in value.items()), 120)
    if value is None:
        return "no value"
    return metric_text(value) if isinstance(value, float) else one_line(str(value), 60)


def suspected_lines(summary: Summary) -> list[str]:
    """The replies that are suspected to be errors, one a line, the likeliest first."""
    return [
        f"{one_line(reply.id, 60)}: {name_words(reply.kind)} {reply.probability:.0%} “{one_line(reply.words, 120)}”"
        for reply in summary.suspected_replies
    ]


def gate_words(gate: GateResult) -> str:
    """A gate with its value: `score >= 0.9: the value is 0.866`, `no regression: worse`."""
    value = "there is no value" if gate.value is None else gate_value(gate.value)
    if isinstance(gate.value, int | float):
        value = f"the value is {value}"
    return f"{gate.gate}: {value}{_bound_words(gate)}{gate.because}"


def _bound_words(gate: GateResult) -> str:
    """Which end of an interval a gate's value is: one-sided, so that the truth is beyond it in 2.5% of cases."""
    end = {"low": "below", "high": "above"}.get(gate.gate.split(maxsplit=1)[0].rpartition("_")[2])
    if end is None or gate.value is None:
        return ""
    return f", one end of the 95% interval (the true value is {end} it with a probability of 2.5%)"


def money(amount: float) -> str:
    """A cost in dollars, with enough digits."""
    if amount >= 1:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.001 or not amount else f"${amount:.6f}"


def money_change(change: float) -> str:
    """A difference of costs as +$0.0012."""
    return f"{'+' if change > 0 else '−' if change < 0 else '±'}{money(abs(change))}"


def cost_line(cost: Cost | None) -> str:
    """`$0.0021 per question (0.0019–0.0023), $0.0025 per point`; empty if the cost is unknown."""
    if cost is None:
        return ""
    low_high = "" if cost.interval is None else f" ({money(cost.interval.low)}–{money(cost.interval.high)})"
    point = "" if cost.point is None else f", {money(cost.point)} per point"
    return f"{money(cost.question)} per question{low_high}{point}"


def used_text(amount: float, name: str) -> str:
    """An amount of usage: money, or a number of tokens."""
    return money(amount) if name == "cost" else f"{amount:,.0f}"


def p_text(p: float | None) -> str:
    """A p-value with two digits, never rounded to zero."""
    if p is None:
        return "no p-value"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def judge_line(judge: JudgeRecord | None) -> str:
    """`judged by gpt-4o-mini: 106 of 106 replies, 110 calls, canaries passed, never calibrated`; empty without a judge."""
    if judge is None:
        return ""
    parts = [
        f"{judge.judged:,} of {count(judge.judged + judge.unscored, 'reply', 'replies')}",
        count(judge.calls, "call"),
    ]
    if judge.cached:
        parts.append(f"{judge.cached:,} cached")
    if judge.cost is not None:
        parts.append(f"cost {money(judge.cost)}")
    if judge.panel_agreement is not None:
        low = ", too low" if judge.panel_disagrees else ""
        parts.append(f"panel agreement (Krippendorff α) {judge.panel_agreement:.2f}{low}")
    if judge.canaries:
        outcomes = {True: "canaries passed", False: "UNRELIABLE: canaries failed"}
        parts.append("canaries not all judged" if judge.reliable is None else outcomes[judge.reliable])
    own = judge.own_canaries
    if own is not None:
        span = (
            ""
            if own.low is None or own.high is None
            else f", {percent(own.low, 0)} to {percent(own.high, 0)}"
        )
        parts.append(
            f"fails {own.refused} of {count(own.wrong, 'wrong reply', 'wrong replies')} made from this run's "
            f"({percent(own.specificity, 0)}{span})"
        )
    parts.append(calibration_words(judge))
    return f"judged by {one_line(judge.model, 80)}: {', '.join(parts)}"


def calibration_words(judge: JudgeRecord) -> str:
    """How a judge was compared with people: `never calibrated`, or its agreement."""
    found = judge.calibration
    if found is None:
        return "never calibrated"
    return f"agrees with people on {percent(found.agreement, 0)} of {count(found.labelled, 'labelled reply', 'labelled replies')}"


_BROKEN_NAMED = 5


def points_text(value: float) -> str:
    """A difference of scores in points: +8.5."""
    return f"{100 * value:+.1f}"


def comparison_headline(comparison: Comparison) -> str:
    """The verdict in one line; questions that are confirmed broken come before the mean."""
    difference = comparison.difference
    verdict = comparison.score.verdict
    margin = "" if verdict != "same" else f" within ±{100 * (comparison.margin or 0.0):g} points"
    mean = (
        f"{verdict}{margin}: {points_text(difference.mean)} points "
        f"({difference.level:.0%} interval {points_text(difference.low)} to {points_text(difference.high)}, "
        f"{p_text(difference.p_value)})"
    )
    return f"{comparison.verdict}: {comparison.because}; mean: {mean}" if comparison.because else mean


def comparison_facts(comparison: Comparison, score: ScoreWords = score_text) -> Iterator[str]:
    """Score, pass rate, latency, cost and errors of both runs, each change with its interval."""
    rate = comparison.pass_rate
    base, candidate = comparison.base, comparison.candidate
    grouped = f", {count(comparison.units, 'unit')}" if comparison.units < comparison.paired else ""
    yield (
        f"score {score(base.score)} → {score(candidate.score)} "
        f"over {count(comparison.paired, 'question')} in both{grouped}"
    )
    yield (
        f"passed {percent(rate['base'])} → {percent(rate['candidate'])} "
        f"({change_counts(comparison)}, "
        f"{points_text(rate['low'])} to {points_text(rate['high'])} points, {p_text(rate['p_value'])})"
    )
    if (latency := comparison.latency) is not None:
        before, after = base.latency_ms or {}, candidate.latency_ms or {}
        untested = (
            "" if latency.tested else "; the runs were made at different times: `answerkey ab` tests it"
        )
        yield (
            f"latency mean {milliseconds(latency.base)} → {milliseconds(latency.candidate)}"
            f"{_change(latency, milliseconds_change)}, "
            f"p95 {milliseconds(before.get('p95'))} → {milliseconds(after.get('p95'))}{untested}"
        )
    if (cost := comparison.cost) is not None:
        yield f"cost per question {money(cost.base)} → {money(cost.candidate)}{_change(cost, money_change)}"
    if (errors := comparison.error_rate) is not None and errors.base + errors.candidate > 0:
        change = _change(errors, points_text).replace(",", " points,")
        yield f"errors {percent(errors.base)} → {percent(errors.candidate)}{change}"
    if comparison.new_errors:
        kinds = ", ".join(f"{n} {name_words(kind)}" for kind, n in comparison.new_errors.items())
        yield f"new kinds of error: {kinds}"


def _change(measure: Measure, format_value: Callable[[float], str]) -> str:
    """The interval of a change with its p-value; empty if there is too little data."""
    found = measure.difference
    if found is None or not found.changed:
        return ""
    return f" ({format_value(found.low)} to {format_value(found.high)}, {p_text(found.p_value)})"


def measure_words(measure: Measure) -> tuple[str, str, str, str]:
    """Both values, their difference, its interval and its p-value; shares in points, counts as they are."""
    difference = measure.difference
    # As in the report of a run: only graded values are never rounded up.
    value = score_text if measure.graded else metric_text
    values = f"{value(measure.base)} → {value(measure.candidate)}"
    if difference is None:
        return values, "–", "too few pairs", p_text(None)
    shown = plain_text if measure.counted else points_text
    interval = f"{shown(difference.low)} to {shown(difference.high)}"
    if difference.pairs == 1:
        interval = "one question"
    elif measure.counted and not difference.changed:
        # A count has no upper bound, so no interval can be given.
        interval = "no change"
    return values, shown(difference.mean), interval, p_text(difference.p_value)


def family_verdict(measure: Measure, tests: int) -> str:
    """A measure's verdict after correction for `tests` tests; it says so if only the correction makes it inconclusive."""
    if measure.verdict != "no clear difference":
        return measure.verdict
    found = measure.difference
    alone = found is not None and found.p_value is not None and found.p_value < 1.0 - found.level
    return f"unclear among {tests}" if alone else ""


def plain_text(value: float) -> str:
    """A difference of counts: +0.25."""
    return f"{value:+.2f}" if abs(value) < 10 else f"{value:+,.0f}"


def change_counts(comparison: Comparison) -> str:
    """`4 worse (1 broken), 2 flaky, 0 fixed`: broken questions are among the worse ones."""
    flaky = f", {comparison.flaky} flaky" if comparison.flaky else ""
    return f"{comparison.worse} worse ({comparison.broken} broken){flaky}, {comparison.fixed} fixed"


def change_words(change: QuestionChange) -> str:
    """A change of a score with its reason: `1.000 → 0.600: did not call get_product`."""
    scores = f"{score_text(change.score_from)} → {score_text(change.score_to)}"
    return f"{scores}: {change.because}" if change.because else scores


def confirmation_lines(comparison: Comparison) -> Iterator[str]:
    """The result of asking the changed questions again."""
    found = comparison.confirmation
    if found is None:
        return
    if not found.questions:
        yield "no question changed, so none was asked again"
        return
    nature = "replies did not vary" if found.deterministic else "replies varied"
    also = f", and {count(found.controls, 'question')} that failed in both runs" if found.controls else ""
    yield f"{count(len(found.questions), 'changed question')} asked {found.times} or more times{also}: {nature}"
    meanings = {
        "broken": "confirmed broken (a regression regardless of the mean)",
        "worse": "confirmed worse (a lower score every time)",
    }
    for kind, meaning in meanings.items():
        confirmed = [asked.id for asked in found.questions if asked.confirmed and asked.kind == kind]
        if confirmed:
            yield f"{meaning}: {first_names(confirmed, _BROKEN_NAMED)}"


_LISTED = 5
_SAME = 5e-4


class Change(msgspec.Struct, frozen=True):
    """One difference between two replies."""

    # better or worse; empty if unknown.
    tone: str
    words: str

    def __str__(self) -> str:
        return self.words


def changes_between(base: Scorecard | None, candidate: Scorecard | None) -> tuple[Change, ...]:
    """What the candidate does worse, then what it does better; empty if both do the same."""
    if base is None or candidate is None:
        return ()
    found = dict.fromkeys(_changes(base, candidate))
    return tuple(sorted(found, key=lambda change: change.tone != "worse"))


def _changes(base: Scorecard, candidate: Scorecard) -> Iterator[Change]:
    before, now = (None if card.error is None else card.error.kind for card in (base, candidate))
    if before != now:
        if now is not None:
            yield Change("worse", f"now ends in an error: {name_words(now)}")
        elif before is not None:
            yield Change("better", f"no longer ends in an error: {name_words(before)}")
    explained = {"error_handling"} if before != now else set()
    pairs = zip(base.turns or (base,), candidate.turns or (candidate,), strict=False)
    for old, new in pairs:
        for name, key, lost, gained in (
            ("response_quality", "missing", "no longer says", "now says"),
            (
                "response_quality",
                "forbidden",
                "now says forbidden text:",
                "no longer says forbidden text:",
            ),
            ("tool_usage", "missing", "no longer calls", "now calls"),
            ("tool_usage", "extra", "now also calls", "no longer also calls"),
        ):
            had, has = _listed(old, name, key), _listed(new, name, key)
            if worse := [item for item in has if item not in had]:
                yield Change("worse", f"{lost} {first_names(worse, _LISTED)}")
            if better := [item for item in had if item not in has]:
                yield Change("better", f"{gained} {first_names(better, _LISTED)}")
            if had != has:
                explained.add(name)
    values = [(name, part.value) for name, part in base.components.items() if name not in explained]
    for name, old_value in [*values, ("judge", base.metrics.get("judge"))]:
        part = candidate.components.get(name)
        new_value = candidate.metrics.get(name) if part is None else part.value
        if old_value is None or new_value is None or abs(new_value - old_value) < _SAME:
            continue
        words = f"{name_words(name)} {score_percent(old_value)} → {score_percent(new_value)}"
        yield Change("better" if new_value > old_value else "worse", words)


def _listed(card: Scorecard, component: str, key: str) -> list[str]:
    part = card.components.get(component)
    listed: Any = () if part is None else details(part).get(key) or ()
    return [str(item) for item in listed]


def tone_of(verdict: str) -> str:
    """The colour of a verdict."""
    return verdict if verdict in ("better", "worse") else "flat"


_TIMEOUT_S = 10.0
_LINES = 12
_WIDTH = 300


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent; a webhook gets all of it as JSON."""

    # What happened, the first one first.
    events: tuple[NoticeEvent, ...]
    title: str
    # The reasons, most important first.
    lines: tuple[str, ...]
    run: str = ""
    target: str = ""
    score: float | None = None
    grade: str | None = None

    @property
    def text(self) -> str:
        return "\n".join([self.title, *(f"- {line}" for line in self.lines)])


def run_notice(run: Run, settings: NotifySettings) -> Notice | None:
    """The notice of a finished run; None if nothing happened that the settings name."""
    failed = [gate for gate in run.gates if not gate.passed]
    comparison = run.comparison
    worse = comparison is not None and comparison.regression
    events = _notice_events({"gate": bool(failed), "regression": worse}, settings)
    if not events:
        return None
    # The view words its parts with this module.
    from answerkey.report.view import compared_causes, own_causes

    headline = [] if comparison is None else [comparison_headline(comparison)]
    name = one_line(run.info.name or run.id, 80)
    what = f"{len(failed)} of {len(run.gates)} gates failed" if failed else "worse than the baseline"
    return Notice(
        events=events,
        title=f"answerkey: {name}: {what} ({run.summary.grade or '–'}, {score_text(run.summary.score)})",
        lines=_notice_lines(
            [*compared_causes(run), *(gate_words(gate) for gate in failed), *headline, *own_causes(run)]
        ),
        run=run.id,
        target=one_line(run.info.target, 200),
        score=run.summary.score,
        grade=run.summary.grade,
    )


def feedback_notice(
    figures: FeedbackStats, gates: Sequence[GateResult], settings: NotifySettings
) -> Notice | None:
    """The notice of users' verdicts: satisfaction below its bound, or a failed gate on it."""
    failed = [gate_words(gate) for gate in gates if not gate.passed]
    low, bound = figures.satisfaction, settings.satisfaction
    below = low is not None and bound is not None and low < bound
    events = _notice_events({"satisfaction": below, "gate": bool(failed)}, settings)
    if not events:
        return None
    about = [f"satisfaction {percent(low)} is below {percent(bound)}"] if below else []
    counts = f"{count_of(figures.positive, figures.feedback, 'verdict', 'is', 'are')} positive"
    return Notice(
        events=events,
        title=f"answerkey: satisfaction {percent(low)}",
        lines=_notice_lines([*about, *failed, counts]),
    )


def _notice_events(happened: dict[NoticeEvent, bool], settings: NotifySettings) -> tuple[NoticeEvent, ...]:
    return tuple(event for event, did in happened.items() if did and event in settings.on)


def _notice_lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(one_line(line, _WIDTH) for line in lines[:_LINES])


def send_notice(notice: Notice, settings: NotifySettings) -> Iterator[str]:
    """Send a notice everywhere that is configured; yields a line for each place that could not be reached."""
    from http.client import HTTPException  # few runs send notices

    secrets = Secrets()
    senders: dict[str, Callable[[], None]] = {}
    if settings.webhook:
        senders["webhook"] = partial(_post, settings.webhook, notice, secrets)
    if settings.slack:
        senders["slack"] = partial(_post, settings.slack, {"text": _for_slack(notice.text)}, secrets)
    if settings.smtp is not None:
        senders["smtp"] = partial(_mail, notice, settings.smtp, secrets)
    for name, send in senders.items():
        try:
            send()
        except (OSError, ValueError, HTTPException, ConfigError) as error:
            message = one_line(for_terminal(secrets.redact(str(error))), _WIDTH) or type(error).__name__
            yield f"[notify] {name}: not sent: {message}; the result is stored, and the exit code is unchanged"


def _post(address: str, body: object, secrets: Secrets) -> None:
    from urllib.request import Request, urlopen

    url = str(secrets.expand(address, "[notify]"))
    if not url.startswith(("http://", "https://")):
        raise ConfigError("the address must begin with https:// or http://")
    request = Request(url, data=msgspec.json.encode(body), headers={"Content-Type": "application/json"})  # noqa: S310  # checked
    with urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310  # checked above
        response.read(1)


def _for_slack(text: str) -> str:
    """A text in which nothing is Slack's markup: <!channel> would alert everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mail(notice: Notice, smtp: SmtpSettings, secrets: Secrets) -> None:
    from email.message import EmailMessage
    from smtplib import SMTP, SMTP_SSL
    from ssl import create_default_context

    message = EmailMessage()
    message["Subject"] = one_line(notice.title, 200)
    message["From"], message["To"] = smtp.sender, ", ".join(smtp.to)
    message.set_content(notice.text + "\n")
    connect = SMTP_SSL if smtp.tls == "always" else SMTP
    with connect(smtp.host, smtp.port, timeout=_TIMEOUT_S) as server:
        if smtp.tls == "starttls":
            server.starttls(context=create_default_context())
        if smtp.user:
            server.login(
                secrets.expand(smtp.user, "[notify.smtp]"), secrets.expand(smtp.password, "[notify.smtp]")
            )
        server.send_message(message)
