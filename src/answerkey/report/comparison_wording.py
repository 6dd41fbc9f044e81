"""A comparison in words: its verdict in one line, a measure's change, what was confirmed."""

from collections.abc import Iterator

from answerkey.model.comparison import Comparison, Measure
from answerkey.report.value_wording import count, metric_text, p_text, score_text

__all__ = ["comparison_headline", "confirmation_lines", "measure_words", "points_text"]

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
