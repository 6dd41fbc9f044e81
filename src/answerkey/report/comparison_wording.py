"""A comparison in words: its verdict in a line, a measure's change, what was confirmed, what changed between two replies."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from answerkey.model.comparison import Comparison, Measure
from answerkey.model.scorecard import Scorecard
from answerkey.report.value_wording import (
    count,
    first_names,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    money_change,
    name_words,
    p_text,
    percent,
    score_percent,
    score_text,
)

_BROKEN_NAMED = 5


def points_text(value: float, digits: int = 1) -> str:
    """A difference of scores in points: +8.5."""
    return f"{100 * value:+.{digits}f}"


def comparison_headline(comparison: Comparison) -> str:
    """The verdict in one line."""
    difference = comparison.difference
    margin = "" if comparison.verdict != "same" else f" within ±{100 * (comparison.margin or 0.0):g} points"
    return (
        f"{comparison.verdict}{margin}: {points_text(difference.mean)} points "
        f"({difference.level:.0%} interval {points_text(difference.low)} to {points_text(difference.high)}, "
        f"{p_text(difference.p_value)})"
    )


def comparison_facts(comparison: Comparison) -> Iterator[str]:
    """What both runs come to: score, passes, time, money and errors, each change with its interval."""
    rate = comparison.pass_rate
    base, candidate = comparison.base, comparison.candidate
    grouped = f", {count(comparison.units, 'unit')}" if comparison.units < comparison.paired else ""
    yield (
        f"score {score_text(base.score)} → {score_text(candidate.score)} "
        f"over {count(comparison.paired, 'question')} in both{grouped}"
    )
    yield (
        f"passed {percent(rate['base'])} → {percent(rate['candidate'])} "
        f"({rate['fixed']} fixed, {rate['broken']} broken, "
        f"{points_text(rate['low'])} to {points_text(rate['high'])} points, {p_text(rate['p_value'])})"
    )
    if (latency := comparison.latency) is not None:
        before, after = base.latency_ms or {}, candidate.latency_ms or {}
        yield (
            f"latency mean {milliseconds(latency.base)} → {milliseconds(latency.candidate)}"
            f"{_change(latency, milliseconds_change)}, "
            f"p95 {milliseconds(before.get('p95'))} → {milliseconds(after.get('p95'))}"
        )
    if (cost := comparison.cost) is not None:
        yield f"cost per question {money(cost.base)} → {money(cost.candidate)}{_change(cost, money_change)}"
    if (errors := comparison.error_rate) is not None and errors.base + errors.candidate > 0:
        change = _change(errors, points_text).replace(",", " points,")
        yield f"errors {percent(errors.base)} → {percent(errors.candidate)}{change}"
    if comparison.new_errors:
        kinds = ", ".join(f"{n} {name_words(kind)}" for kind, n in comparison.new_errors.items())
        yield f"new kinds of error: {kinds}"


def _change(measure: Measure, shown: Callable[[float], str]) -> str:
    """The interval of a change of time or money, with its p-value; empty where too little is known to say."""
    found = measure.difference
    if found is None or not found.changed:
        return ""
    return f" ({shown(found.low)} to {shown(found.high)}, {p_text(found.p_value)})"


def measure_words(measure: Measure) -> tuple[str, str, str, str]:
    """Both values, their difference, its interval and its p-value; shares in points, counts as they are."""
    difference = measure.difference
    # As the report of a run has them: only what is graded is never rounded up.
    value = score_text if measure.graded else metric_text
    values = f"{value(measure.base)} → {value(measure.candidate)}"
    if difference is None:
        return values, "–", "too few to say", p_text(None)
    shown = plain_text if measure.counted else points_text
    interval = f"{shown(difference.low)} to {shown(difference.high)}"
    if difference.pairs == 1:
        interval = "one question"
    elif measure.counted and not difference.changed:
        # Nothing bounds how far a count could have moved.
        interval = "no change seen"
    return values, shown(difference.mean), interval, p_text(difference.p_value)


def plain_text(value: float) -> str:
    """A difference of counts: +0.25."""
    return f"{value:+.2f}" if abs(value) < 10 else f"{value:+,.0f}"


def confirmation_lines(comparison: Comparison) -> Iterator[str]:
    """What asking the flipped questions again showed, in a sentence or two."""
    found = comparison.confirmation
    if found is None:
        return
    if not found.questions:
        yield "no question flipped, so none was asked again"
        return
    nature = "always answered alike" if found.deterministic else "did not always answer alike"
    yield f"{count(len(found.questions), 'flipped question')} asked {found.times} times more: they {nature}"
    broken = [question.id for question in found.questions if question.confirmed]
    if broken:
        yield f"a regression whatever the mean, broken for sure: {', '.join(broken[:_BROKEN_NAMED])}" + (
            f" and {len(broken) - _BROKEN_NAMED} more" if len(broken) > _BROKEN_NAMED else ""
        )


_LISTED = 5
_SAME = 5e-4


class Change(msgspec.Struct, frozen=True):
    """One thing that is not as it was."""

    # better or worse; empty where that is not known.
    tone: str
    words: str

    def __str__(self) -> str:
        return self.words


def changes_between(base: Scorecard | None, candidate: Scorecard | None) -> tuple[Change, ...]:
    """What the candidate does worse and then what it does better; empty where both do the same."""
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
                "now says what is forbidden:",
                "no longer says what is forbidden:",
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
    listed: Any = () if part is None else part.details.get(key) or ()
    return [str(item) for item in listed]
