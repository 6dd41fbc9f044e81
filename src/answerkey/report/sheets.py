"""A comparison or a ranking as a sheet: a title, lines and tables, rendered as Markdown, HTML or JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Measure, QuestionChange
from answerkey.model.result_rows import encode
from answerkey.model.run import EarlierRun, Run, RunInfo
from answerkey.model.scorecard import COMPONENTS
from answerkey.model.summary import Summary
from answerkey.model.why import cause_lines
from answerkey.report.files import atomic_file
from answerkey.report.markup import policy_hash, report_style, report_template
from answerkey.report.measures import MeasureTable, measure_tables
from answerkey.report.wording import (
    ScoreWords,
    change_counts,
    comparison_facts,
    comparison_headline,
    confirmation_lines,
    count,
    family_verdict,
    gate_words,
    measure_words,
    metric_text,
    milliseconds,
    money,
    name_words,
    percent,
    range_text,
    score_percent,
    score_text,
)
from answerkey.stats.intervals import Interval
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_markdown, one_line

if TYPE_CHECKING:
    from answerkey.comparison.run_ranking import Mean, Ranked, Ranking


_ENDINGS = (".html", ".md", ".json")
_CHANGES_SHOWN = 50
_NAME = 40
# Characters of a changed reply.
_REPLY = 400


# The longest figure with its interval.
_FIGURE_WIDTH = 30


class SheetTable(msgspec.Struct, frozen=True):
    """A table of texts; the first column names the rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    # Whether the cells are sentences, not figures.
    wordy: bool = False
    # The question of each row, for pages that have one.
    ids: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[bool, ...]:
        """Whether each column has sentences, which pages wrap; names and figures stay on one line."""
        return tuple(
            any(len(row[column]) > _FIGURE_WIDTH for row in self.rows) for column in range(len(self.heads))
        )


class Sheet(msgspec.Struct, frozen=True):
    """A comparison or a ranking in words and tables."""

    title: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    tables: tuple[SheetTable, ...]
    # The measures of a comparison, for pages that draw their intervals instead of its plain tables.
    measures: tuple[MeasureTable, ...] = ()
    # What the page is about.
    subject: str = "Chatbot comparison"


def comparison_sheet(comparison: Comparison, score: ScoreWords = score_text) -> Sheet:
    """The sheet of a comparison of two runs."""
    base, candidate = comparison.base, comparison.candidate
    lines = (
        *cause_lines(comparison.causes, comparison.lost),
        f"runs: {base.name} ({base.id}) → {candidate.name} ({candidate.id})",
        *comparison_facts(comparison, score),
        *comparison.reasons,
        *confirmation_lines(comparison),
    )
    heads = ("", "base → candidate", "points", "95% interval", "p alone", "verdict")
    families = ((comparison.score,), comparison.components, comparison.categories)
    tables = [SheetTable("", heads, tuple(row for family in families for row in _measure_rows(family)))]
    if (changes := changes_table(comparison, _CHANGES_SHOWN, _REPLY, score)) is not None:
        # What changed is read first.
        tables.insert(0, changes)
    if comparison.metrics:
        rows = tuple(_measure_rows(comparison.metrics))
        tables.append(SheetTable("Other metrics", (*heads[:2], "change", *heads[3:]), rows))
    return Sheet(
        comparison_headline(comparison), lines, comparison.notes, tuple(tables), measure_tables(comparison)
    )


def _measure_rows(family: Sequence[Measure]) -> Iterator[tuple[str, ...]]:
    """Interval and p-value are of each measure alone; the verdict is corrected for the number of measures."""
    for measure in family:
        verdict = family_verdict(measure, len(family)) or measure.verdict
        yield (one_line(measure.name, _NAME), *measure_words(measure), verdict)


def changes_table(
    comparison: Comparison, most: int, width: int, score: ScoreWords = score_text
) -> SheetTable | None:
    """Questions that got worse, then fixed ones, with both replies cut to `width` characters; None if there are none."""
    changes = (*comparison.fallen, *(flip for flip in comparison.flips if flip.kind == "fixed"))
    if not changes:
        return None
    more = f", {most} of them here" if len(changes) > most else ""
    replies = (f"{comparison.base.name} replied", f"{comparison.candidate.name} replied")
    return SheetTable(
        f"Changed questions: {change_counts(comparison)}{more}",
        ("question", "", "score", "reason", *replies),
        tuple(_change_row(change, width, score) for change in changes[:most]),
        wordy=True,
    )


def trend_table(run: Run, score: ScoreWords = score_text) -> SheetTable | None:
    """Earlier runs and this one, oldest first; None for the first run."""
    if not run.earlier:
        return None
    runs: list[tuple[RunInfo | EarlierRun, Summary | EarlierRun]] = [(one, one) for one in run.earlier]
    rows = tuple(
        (
            f"{one_line(one.name, _NAME)} ({one.id})",
            local_time(one.created_at),
            f"{score(figures.score)} {figures.grade or ''}".rstrip(),
            range_text(figures.interval, score),
            f"{figures.passed:,}/{figures.questions:,}",
            milliseconds(figures.latency_ms.p95 if figures.latency_ms else None),
            "" if one.question_set_hash == run.info.question_set_hash else "different golden set",
        )
        for one, figures in [*runs, (run.info, run.summary)]
    )
    return SheetTable("Earlier runs", ("run", "", "score", "95% interval", "passed", "p95", ""), rows)


def _change_row(change: QuestionChange, width: int, score: ScoreWords) -> tuple[str, ...]:
    question = f"{change.id}: {change.question}" if change.question else change.id
    scores = f"{score(change.score_from)} → {score(change.score_to)}"
    texts = (one_line(text, width) for text in (change.because, change.reply_from, change.reply_to))
    return (one_line(question, 120), change.kind, scores, *texts)


def ranking_sheet(ranking: "Ranking", score: ScoreWords = score_text) -> Sheet:
    """The sheet of a ranking: a column per run, best first."""
    left_out = f", {ranking.left_out:,} left out because a run does not have them" if ranking.left_out else ""
    grouped = f" in {ranking.units:,} units" if ranking.units < ranking.questions else ""
    lines = (
        f"{count(ranking.questions, 'question')}{grouped} in all runs{left_out}.",
        "Runs that share a letter do not differ clearly (corrected for the number of pairs). ● marks runs that no other run "
        "clearly beats in score or cost without being clearly worse in the other. 95% intervals in brackets, not corrected.",
    )
    heads = ("", *(f"{run.rank}. {one_line(run.name, 24)}" for run in ranking.runs))
    return Sheet(
        f"{len(ranking.runs)} runs, best first",
        lines,
        (*ranking.notes, *_failed_gates(ranking.runs)),
        (SheetTable("", heads, tuple(_matrix(ranking.runs, score))),),
    )


def _matrix(runs: "Sequence[Ranked]", score: ScoreWords) -> Iterator[tuple[str, ...]]:
    """A row per figure."""

    def row(name: str, cells: Sequence[str]) -> tuple[str, ...]:
        return (one_line(name, _NAME), *cells)

    yield row("run", [run.id for run in runs])
    yield row("score", [f"{score(run.score)} ({range_text(run.interval, score)})" for run in runs])
    yield row("grade", [run.grade for run in runs])
    yield row("group", [run.groups + (" ●" if run.pareto else "") for run in runs])
    yield row("p50 per question", [milliseconds(run.latency_p50_ms) for run in runs])
    yield row("p95 per question", [milliseconds(run.latency_p95_ms) for run in runs])
    yield row("errors", [f"{percent(run.error_rate)}{_rates(run.error_interval)}" for run in runs])
    if any(run.cost is not None for run in runs):
        yield row("cost per question", [_cost_text(run.cost) for run in runs])
        yield row("cost per point", [_cost_text(run.cost_per_point) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.categories):
        yield row(f"· {name}", [_mean_text(run.categories.get(name), score) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.measures):
        # A metric has a scale of its own.
        shown = score if name in COMPONENTS else metric_text
        yield row(name_words(name), [_mean_text(run.measures.get(name), shown) for run in runs])
    if any(run.judge_reliable is not None for run in runs):
        words = {True: "reliable", False: "UNRELIABLE", None: "–"}
        yield row("judge", [words[run.judge_reliable] for run in runs])
    for gate in dict.fromkeys(result.gate for run in runs for result in run.gates):
        passed = [{result.gate: result.passed for result in run.gates}.get(gate) for run in runs]
        yield row(f"gate {gate}", [{True: "passed", False: "FAILED", None: "–"}[result] for result in passed])


def _failed_gates(runs: "Sequence[Ranked]") -> Iterator[str]:
    """The failed gates of each run."""
    for run in runs:
        for result in run.gates:
            if not result.passed:
                yield f"gate FAILED on {one_line(run.name, 24)}: {gate_words(result)}"


def _rates(interval: Interval | None) -> str:
    return "" if interval is None else f" ({percent(interval.low)}–{percent(interval.high)})"


def _cost_text(cost: "Mean | None") -> str:
    if cost is None:
        return "–"
    if cost.interval is None:
        return money(cost.mean)
    return f"{money(cost.mean)} ({money(max(0.0, cost.interval.low))}–{money(cost.interval.high)})"


def _mean_text(mean: "Mean | None", value: ScoreWords) -> str:
    if mean is None:
        return "–"
    return (
        value(mean.mean)
        if mean.interval is None
        else f"{value(mean.mean)} ({range_text(mean.interval, value)})"
    )


def check_sheet_output(path: Path) -> None:
    """Raise UsageError if a comparison cannot be written in the format of this path."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{path}: unknown format; a comparison can be written as {' '.join(_ENDINGS)}")


def scores_in(path: Path) -> ScoreWords:
    """How scores read in a file: a page shows percentages, as the dashboard does."""
    return score_percent if path.suffix.lower() == ".html" else score_text


def write_sheet(sheet: Sheet, document: Any, path: Path, *, home: str | None = None) -> None:
    """Write a sheet, or its document, in the format of the path's ending; `home` is the address of the index of a site."""
    check_sheet_output(path)
    ending = path.suffix.lower()
    if ending == ".json":
        content = encode(document) + b"\n"
    elif ending == ".md":
        content = sheet_markdown(sheet).encode()
    else:
        style = report_style()
        page = report_template("comparison.html.j2").render(
            sheet=sheet, style=style, style_hash=policy_hash(style), home=home
        )
        content = page.encode()
    with atomic_file(path) as file:
        file.write(content)


def sheet_markdown(sheet: Sheet) -> str:
    """The sheet as Markdown, for job summaries and pull requests."""
    lines = [sheet_heading(sheet)]
    lines += [f"\n{for_markdown(line)}" for line in (*sheet.lines, *sheet.warnings)]
    for table in sheet.tables:
        lines += ["", f"**{for_markdown(table.title)}**"] if table.title else []
        lines += table_markdown(table)
    return "\n".join(lines) + "\n"


def sheet_heading(sheet: Sheet) -> str:
    """The verdict with a coloured sign."""
    signs = {"better": "🟢 ", "worse": "🔴 ", "same": "🟰 ", "no clear difference": "⚪ "}
    return f"### {signs.get(sheet.title.partition(':')[0], '')}{for_markdown(sheet.title)}"


def table_markdown(table: SheetTable) -> Iterator[str]:
    """A table's lines as Markdown, the first one empty."""
    yield from ("", f"| {' | '.join(map(for_markdown, table.heads))} |", "|---" * len(table.heads) + "|")
    yield from (f"| {' | '.join(map(for_markdown, row))} |" for row in table.rows)
