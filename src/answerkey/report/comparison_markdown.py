"""A comparison in words: its verdict in one line, a measure's change, and all of it as Markdown."""

from answerkey.model.comparison import Comparison, Measure
from answerkey.report.value_wording import count, metric_text, p_text, score_text
from answerkey.text.sanitise import for_markdown

__all__ = ["comparison_headline", "comparison_markdown", "measure_words", "points_text"]

_FLIPS_SHOWN = 20


def points_text(value: float, digits: int = 1) -> str:
    """A difference of scores in points: +8.5."""
    return f"{100 * value:+.{digits}f}"


def comparison_headline(comparison: Comparison) -> str:
    """The verdict in one line."""
    difference = comparison.difference
    return (
        f"{comparison.verdict}: {points_text(difference.mean)} points "
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
    return values, shown(difference.mean), interval, p_text(measure.p_adjusted)


def plain_text(value: float) -> str:
    """A difference of counts: +0.25."""
    return f"{value:+.2f}" if abs(value) < 10 else f"{value:+,.0f}"


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for job summaries and pull requests."""
    mark = {"better": "🟢", "worse": "🔴", "no clear difference": "⚪"}[comparison.verdict]
    base, candidate = comparison.base, comparison.candidate
    lines = [
        f"### {mark} {comparison_headline(comparison)}",
        "",
        f"{for_markdown(base.name)} ({base.id}) → {for_markdown(candidate.name)} ({candidate.id}), "
        f"{count(comparison.paired, 'question')} in both.",
    ]
    lines += [f"\n{for_markdown(sentence)}" for sentence in (*comparison.reasons, *comparison.notes)]
    lines += ["", "| | base → candidate | points | 95% interval | corrected p |", "|---|---|---|---|---|"]
    for measure in (comparison.score, *comparison.components, *comparison.categories):
        scores, change, interval, p = measure_words(measure)
        lines.append(f"| {for_markdown(measure.name)} | {scores} | {change} | {interval} | {p} |")
    if comparison.flips:
        lines += ["", f"**{comparison.broken} broken, {comparison.fixed} fixed**", ""]
        for flip in comparison.flips[:_FLIPS_SHOWN]:
            lines.append(
                f"- {flip.kind} {score_text(flip.score_from)} → {score_text(flip.score_to)}: {for_markdown(flip.id)}"
            )
    return "\n".join(lines) + "\n"
