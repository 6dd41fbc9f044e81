"""A comparison or a ranking as a sheet of words and tables, and the sheet as Markdown, HTML or JSON."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Flip
from answerkey.report.comparison_wording import comparison_headline, confirmation_lines, measure_words
from answerkey.report.files import atomic_file
from answerkey.report.markup import make_environment, policy_hash, report_style
from answerkey.report.result_rows import encode
from answerkey.report.value_wording import (
    count,
    metric_range_text,
    metric_text,
    milliseconds,
    money,
    name_words,
    percent,
    range_text,
    score_text,
)
from answerkey.text.sanitise import for_markdown, one_line

if TYPE_CHECKING:
    from jinja2 import Template

    # Ranking takes NumPy, which whoever shows one has loaded.
    from answerkey.comparison.run_ranking import Mean, Ranked, Ranking

__all__ = [
    "Sheet",
    "SheetTable",
    "check_sheet_output",
    "comparison_sheet",
    "ranking_sheet",
    "sheet_markdown",
    "write_sheet",
]

_ENDINGS = (".html", ".md", ".json")
_FLIPS_SHOWN = 50
_NAME = 40
# Of a reply that flipped.
_REPLY = 400


class SheetTable(msgspec.Struct, frozen=True):
    """A table of texts; the first column names the rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    # Whether its cells are sentences rather than figures.
    wordy: bool = False


class Sheet(msgspec.Struct, frozen=True):
    """What a comparison says."""

    title: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    tables: tuple[SheetTable, ...]


def comparison_sheet(comparison: Comparison) -> Sheet:
    """Two runs."""
    base, candidate = comparison.base, comparison.candidate
    lines = (
        f"{base.name} ({base.id}) → {candidate.name} ({candidate.id}), "
        f"{count(comparison.paired, 'question')} in both.",
        *comparison.reasons,
        *confirmation_lines(comparison),
        *_time_and_money(comparison),
    )
    heads = ("", "base → candidate", "points", "95% interval", "corrected p")
    measures = (comparison.score, *comparison.components, *comparison.categories)
    tables = [SheetTable("", heads, tuple((one_line(m.name, _NAME), *measure_words(m)) for m in measures))]
    if comparison.flips:
        broken = sum(flip.kind == "broken" for flip in comparison.flips)
        title = f"{broken} broken, {comparison.fixed} fixed"
        sides = ("question", "", "score", f"{base.name} said", f"{candidate.name} says", "because")
        tables.append(
            SheetTable(title, sides, tuple(map(_flip_row, comparison.flips[:_FLIPS_SHOWN])), wordy=True)
        )
    if comparison.metrics:
        rows = tuple((one_line(m.name, _NAME), *measure_words(m)) for m in comparison.metrics)
        tables.append(SheetTable("Beside the score", (*heads[:2], "change", *heads[3:]), rows))
    return Sheet(comparison_headline(comparison), lines, comparison.notes, tuple(tables))


def _time_and_money(comparison: Comparison) -> Iterator[str]:
    """What a reply takes and costs in both runs."""
    if (latency := comparison.latency) is not None:
        yield f"latency {milliseconds(latency.base)} → {milliseconds(latency.candidate)}: {latency.verdict}"
    if (cost := comparison.cost) is not None:
        yield f"cost of a question {money(cost.base)} → {money(cost.candidate)}: {cost.verdict}"


def _flip_row(flip: Flip) -> tuple[str, ...]:
    """A question that flipped, with both replies side by side."""
    asks = f"{flip.id}: {flip.question}" if flip.question else flip.id
    change = f"{score_text(flip.score_from)} → {score_text(flip.score_to)}"
    said = (one_line(text, _REPLY) for text in (flip.reply_from, flip.reply_to, flip.because))
    return (one_line(asks, 120), flip.kind, change, *said)


def ranking_sheet(ranking: "Ranking") -> Sheet:
    """Many runs: a column for each, the best first."""
    left_out = f", {ranking.left_out:,} left out because a run lacks them" if ranking.left_out else ""
    grouped = f" in {ranking.units:,} units" if ranking.units < ranking.questions else ""
    lines = (
        f"{count(ranking.questions, 'question')}{grouped} in all runs{left_out}.",
        "Runs that share a letter cannot be told apart; ● no other run is clearly better in score, latency or cost "
        "without being clearly worse in another of these. Intervals of 95% in brackets.",
    )
    heads = ("", *(f"{run.rank}. {one_line(run.name, 24)} ({run.id})" for run in ranking.runs))
    return Sheet(
        f"{len(ranking.runs)} runs, best first",
        lines,
        ranking.notes,
        (SheetTable("", heads, tuple(_matrix(ranking.runs))),),
    )


def _matrix(runs: "Sequence[Ranked]") -> Iterator[tuple[str, ...]]:
    """A row for everything that is known of a run."""

    def row(name: str, cells: Sequence[str]) -> tuple[str, ...]:
        return (one_line(name, _NAME), *cells)

    yield row("score", [f"{score_text(run.score)} {run.grade} ({range_text(run.interval)})" for run in runs])
    yield row("group", [run.groups + (" ●" if run.pareto else "") for run in runs])
    yield row("latency p50", [milliseconds(run.latency_p50_ms) for run in runs])
    yield row("latency p95", [milliseconds(run.latency_p95_ms) for run in runs])
    yield row("errors", [percent(run.error_rate) for run in runs])
    if any(run.cost is not None for run in runs):
        yield row("cost a question", [_cost_text(run.cost) for run in runs])
        yield row("cost a point", [_money(run.cost_per_point) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.categories):
        yield row(f"· {name}", [_mean_text(run.categories.get(name)) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.measures):
        yield row(name_words(name), [_mean_text(run.measures.get(name)) for run in runs])
    if any(run.judge_reliable is not None for run in runs):
        words = {True: "reliable", False: "UNRELIABLE", None: "–"}
        yield row("judge", [words[run.judge_reliable] for run in runs])
    for gate in dict.fromkeys(result.gate for run in runs for result in run.gates):
        passed = [{result.gate: result.passed for result in run.gates}.get(gate) for run in runs]
        yield row(f"gate {gate}", [{True: "passed", False: "FAILED", None: "–"}[result] for result in passed])


def _money(amount: float | None) -> str:
    return "–" if amount is None else money(amount)


def _cost_text(cost: "Mean | None") -> str:
    if cost is None or cost.interval is None:
        return _money(None if cost is None else cost.mean)
    return f"{money(cost.mean)} ({money(max(0.0, cost.interval.low))}–{money(cost.interval.high)})"


def _mean_text(mean: "Mean | None") -> str:
    return "–" if mean is None else f"{metric_text(mean.mean)}{metric_range_text(mean.interval)}"


def check_sheet_output(path: Path) -> None:
    """Refuse a file whose ending no comparison can be written in."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{path}: a comparison is written as one of {' '.join(_ENDINGS)}")


def write_sheet(sheet: Sheet, document: Any, path: Path, *, home: str | None = None) -> None:
    """Write a sheet, or the document it is of, in the format of the path's ending; `home` is the page of all runs."""
    check_sheet_output(path)
    ending = path.suffix.lower()
    if ending == ".json":
        content = encode(document) + b"\n"
    elif ending == ".md":
        content = sheet_markdown(sheet).encode()
    else:
        style = report_style()
        page = _template().render(sheet=sheet, style=style, style_hash=policy_hash(style), home=home)
        content = page.encode()
    with atomic_file(path) as file:
        file.write(content)


def sheet_markdown(sheet: Sheet) -> str:
    """The sheet for job summaries and pull requests."""
    mark = {"better": "🟢 ", "worse": "🔴 ", "same": "🟰 ", "no clear difference": "⚪ "}.get(
        sheet.title.partition(":")[0], ""
    )
    lines = [f"### {mark}{for_markdown(sheet.title)}"]
    lines += [f"\n{for_markdown(line)}" for line in (*sheet.lines, *sheet.warnings)]
    for table in sheet.tables:
        lines += ["", f"**{for_markdown(table.title)}**"] if table.title else []
        lines += ["", f"| {' | '.join(map(for_markdown, table.heads))} |", "|---" * len(table.heads) + "|"]
        lines += [f"| {' | '.join(map(for_markdown, row))} |" for row in table.rows]
    return "\n".join(lines) + "\n"


@cache
def _template() -> "Template":
    return make_environment(lambda _: None).get_template("comparison.html.j2")
