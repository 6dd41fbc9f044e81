"""A comparison and a ranking on the terminal, and a comparison in Markdown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from answerkey.comparison.run_ranking import Ranking
from answerkey.model.comparison import Comparison, Measure
from answerkey.report.terminal import GRADE_COLOURS, emit, make_console
from answerkey.report.value_wording import (
    count,
    metric_text,
    milliseconds,
    money,
    name_words,
    p_text,
    percent,
    range_text,
    score_text,
)
from answerkey.text.sanitise import for_markdown, one_line

if TYPE_CHECKING:
    from answerkey.evaluation.experiment import Experiment

__all__ = [
    "comparison_headline",
    "comparison_markdown",
    "print_comparison",
    "print_experiment",
    "print_ranking",
]

COLOURS = {"better": "green", "worse": "red", "no clear difference": "yellow"}
_FLIPS_SHOWN = 20
_UNPAIRED_SHOWN = 10


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


def _change(measure: Measure) -> tuple[str, str, str, str]:
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


def print_comparison(
    comparison: Comparison,
    *,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the verdict first, then what it rests on."""
    from rich.text import Text

    console = make_console(file, width=width)
    base, candidate = comparison.base, comparison.candidate
    head = Text()
    head.append(f" {comparison.verdict} ", style=f"bold reverse {COLOURS[comparison.verdict]}")
    head.append(comparison_headline(comparison).partition(":")[2], style="bold")
    runs = f"{one_line(base.name, 30)} ({base.id}) → {one_line(candidate.name, 30)} ({candidate.id})"
    emit(console, "", Text(runs, style="dim"), "", head)
    for line in (*_facts(comparison), *comparison.reasons):
        emit(console, Text(line))
    for note in comparison.notes:
        emit(console, Text(f"! {one_line(note, 200)}", style="yellow"))
    for title, measures in (("Components", comparison.components), ("Categories", comparison.categories)):
        if measures:
            emit(console, "", _table(title, measures))
    if comparison.flips:
        emit(
            console, "", Text(f"Flipped: {comparison.broken} broken, {comparison.fixed} fixed", style="bold")
        )
        for flip in comparison.flips[:_FLIPS_SHOWN]:
            line = f"  {flip.kind:7}{score_text(flip.score_from)} → {score_text(flip.score_to)}  "
            colour = COLOURS["better" if flip.kind == "fixed" else "worse"]
            text = Text(line + one_line(flip.id, 60), style=colour)
            if flip.question:
                text.append(f"  {one_line(flip.question, 200)}", style="dim")
            text.truncate(console.width, overflow="ellipsis")
            emit(console, text)
        if len(comparison.flips) > _FLIPS_SHOWN:
            rest = len(comparison.flips) - _FLIPS_SHOWN
            emit(console, Text(f"  … and {rest:,} more; --json lists all", style="dim"))
    if comparison.unpaired:
        emit(console, "", Text(f"Not compared: {count(len(comparison.unpaired), 'question')}", style="bold"))
        for item in comparison.unpaired[:_UNPAIRED_SHOWN]:
            emit(console, Text(f"  {one_line(item.id, 60)}: {item.reason}"))
        if len(comparison.unpaired) > _UNPAIRED_SHOWN:
            rest = len(comparison.unpaired) - _UNPAIRED_SHOWN
            emit(console, Text(f"  … and {rest:,} more; --json lists all", style="dim"))
    if comparison.metrics:
        emit(console, "", _table("Metrics", comparison.metrics))
    emit(console, "")


def _table(title: str, measures: Sequence[Measure]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    change = "change" if any(measure.counted for measure in measures) else "points"
    for heading in (title, "from → to", change, "95% interval", "corrected p", ""):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for measure in measures:
        verdict = "" if measure.verdict == "no clear difference" else measure.verdict
        table.add_row(
            one_line(measure.name if title == "Categories" else name_words(measure.name), 24),
            *_change(measure),
            Text(verdict, style=COLOURS[measure.verdict]),
        )
    return table


def _facts(comparison: Comparison) -> Iterator[str]:
    rate = comparison.pass_rate
    base, candidate = comparison.base, comparison.candidate
    clusters = comparison.difference.clusters
    grouped = f", {count(clusters, 'cluster')}" if clusters < comparison.paired else ""
    yield (
        f"score {score_text(base.score)} → {score_text(candidate.score)} "
        f"over {count(comparison.paired, 'question')} in both{grouped}"
    )
    yield (
        f"passed {percent(rate['base'])} → {percent(rate['candidate'])} "
        f"({rate['fixed']} fixed, {rate['broken']} broken, {p_text(rate['p_value'])})"
    )
    latency, cost = comparison.latency, comparison.cost
    if latency is not None:
        before, after = comparison.base.latency_ms or {}, comparison.candidate.latency_ms or {}
        change = "" if latency.difference is None else f", {p_text(latency.difference.p_value)}"
        yield (
            f"latency mean {milliseconds(latency.base)} → {milliseconds(latency.candidate)}, "
            f"p95 {milliseconds(before.get('p95'))} → {milliseconds(after.get('p95'))}{change}"
        )
    if cost is not None:
        yield f"cost per question {money(cost.base)} → {money(cost.candidate)}"
    if comparison.new_errors:
        kinds = ", ".join(f"{n} {name_words(kind)}" for kind, n in comparison.new_errors.items())
        yield f"new kinds of error: {kinds}"


def print_experiment(
    experiment: "Experiment",
    *,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print how an experiment ended, then the comparison of its two runs."""
    from rich.text import Text

    console = make_console(file, width=width)
    asked = f"{experiment.asked:,} of {experiment.planned:,} trials asked"
    emit(console, "", Text(f"{asked}{', stopped early' if experiment.stopped_early else ''}", style="dim"))
    found = experiment.sequential
    if found is not None:
        head = Text()
        head.append(f" {experiment.verdict} ", style=f"bold reverse {COLOURS[experiment.verdict]}")
        head.append(
            f" b − a {points_text(found['mean'])} points, {found['level']:.0%} at any time "
            f"{points_text(found['low'])} to {points_text(found['high'])}, {p_text(found['p_value'])}",
            style="bold",
        )
        emit(console, head, Text("what follows does not allow for having looked early", style="dim"))
    print_comparison(experiment.comparison, file=file, width=width)


def print_ranking(ranking: Ranking, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print runs best first; runs that share a letter cannot be told apart."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(file, width=width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", "run", "score", "95% interval", "group", "p50", "cost", "front"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for run in ranking.runs:
        table.add_row(
            str(run.rank),
            one_line(f"{run.name} ({run.id})", 32),
            Text(f"{score_text(run.score)} {run.grade}", style=GRADE_COLOURS[run.grade]),
            range_text(run.interval),
            run.groups,
            milliseconds(run.latency_p50_ms),
            "–" if run.cost is None else money(run.cost),
            "●" if run.pareto else "",
        )
    emit(console, "", table, "")
    notes = [
        f"{count(ranking.questions, 'question')} in all runs"
        + (f", {ranking.left_out:,} left out because a run lacks them" if ranking.left_out else ""),
        "runs that share a letter cannot be told apart; ● no other run is better in score, latency and cost at once",
    ]
    emit(console, *(Text(note, style="dim") for note in notes), "")


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
        scores, change, interval, p = _change(measure)
        lines.append(f"| {for_markdown(measure.name)} | {scores} | {change} | {interval} | {p} |")
    if comparison.flips:
        lines += ["", f"**{comparison.broken} broken, {comparison.fixed} fixed**", ""]
        for flip in comparison.flips[:_FLIPS_SHOWN]:
            lines.append(
                f"- {flip.kind} {score_text(flip.score_from)} → {score_text(flip.score_to)}: {for_markdown(flip.id)}"
            )
    return "\n".join(lines) + "\n"
