"""A comparison or a ranking as a sheet: a title, lines and tables with drawn intervals, rendered as Markdown, HTML or JSON."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Measure, QuestionChange, cause_lines
from answerkey.model.run import EarlierRun, Run, RunInfo, Summary
from answerkey.model.run_document import encode
from answerkey.model.scorecard import COMPONENTS
from answerkey.report.result_files import atomic_file
from answerkey.report.view import component_words
from answerkey.report.wording import (
    ScoreWords,
    change_counts,
    change_text,
    comparison_facts,
    comparison_headline,
    confirmation_lines,
    count,
    family_verdict,
    gate_words,
    measure_words,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    name_words,
    p_text,
    percent,
    points_change,
    range_text,
    score_percent,
    score_text,
    tone_of,
)
from answerkey.stats.intervals import Interval
from answerkey.stats.paired import Difference
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_markdown, one_line

if TYPE_CHECKING:
    from answerkey.comparison.run_ranking import Mean, Ranked, Ranking


_MEASURE_NAME = 50
# The scale of a chart is at least two points.
_LEAST_REACH = 0.02
# Width of the mark of a mean, and minimum width of an interval, in percent of the chart.
_STROKE = 1.2
_LEAST_WIDTH = 0.6


class IntervalMarks(msgspec.Struct, frozen=True):
    """The position of an interval in a chart that is 100 wide with zero in the middle."""

    low: float
    width: float
    # The left edge of its mark.
    mean: float


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs."""

    name: str
    # The whole name of a category.
    category: str = ""
    # Under the name.
    verdict: str = ""
    p: str = ""
    # The colour of its change.
    tone: str = ""
    change: str
    # The likely range of the change.
    likely: str = ""
    base: str
    candidate: str
    # None: not drawn.
    marks: IntervalMarks | None = None


class MeasureTable(msgspec.Struct, frozen=True):
    """Measures of one kind."""

    id: str
    title: str
    # The unit of a change, in the column's header.
    unit: str
    rows: tuple[MeasureRow, ...]
    note: str = ""
    # Whether the intervals are drawn.
    drawn: bool = False


def measure_tables(comparison: Comparison) -> tuple[MeasureTable, ...]:
    """The tables below the verdict that are not empty."""
    components = _scored(comparison.components, component_words)
    categories = tuple(
        msgspec.structs.replace(row, category=part.name)
        for row, part in zip(
            _scored(comparison.categories, lambda name: one_line(name, _MEASURE_NAME)),
            comparison.categories,
            strict=True,
        )
    )
    metrics = tuple(
        _measured(
            one_line(name_words(part.name), _MEASURE_NAME),
            part,
            metric_text,
            change_text,
            verdict=part.verdict,
        )
        for part in comparison.metrics
    )
    notes = [
        f"Each interval (95%) and its p-value are of one measure alone. The verdict is corrected for {words}, so it "
        "may be unclear although an interval excludes zero."
        for words in (
            count(len(components), "component"),
            count(len(categories), "category", "categories"),
            count(len(metrics), "metric"),
        )
    ]
    tables = (
        MeasureTable("scored-title", "What was scored", "Points", components, notes[0], drawn=True),
        MeasureTable("rest-title", "Passed, speed, cost and errors", "Change", tuple(_rest(comparison))),
        MeasureTable("changed-categories-title", "By category", "Points", categories, notes[1], drawn=True),
        MeasureTable("changed-metrics-title", "Other metrics", "Change", metrics, notes[2]),
    )
    return tuple(table for table in tables if table.rows)


def _scored(parts: Sequence[Measure], name_of: Callable[[str], str]) -> tuple[MeasureRow, ...]:
    """Components or categories: scores whose changes are points, drawn on one scale."""
    ends = [abs(end) for part in parts if (known := part.difference) for end in (known.low, known.high)]
    reach = max([*ends, _LEAST_REACH]) * 1.05
    return tuple(
        _measured(
            name_of(part.name),
            part,
            score_percent,
            points_change,
            verdict=part.verdict,
            marks=None if part.difference is None else _marks(part.difference, reach),
        )
        for part in parts
    )


def _measured(
    name: str,
    part: Measure,
    in_words: Callable[[float], str],
    change_in_words: Callable[[float], str],
    *,
    verdict: str = "",
    marks: IntervalMarks | None = None,
) -> MeasureRow:
    known = part.difference
    return MeasureRow(
        name=name,
        verdict=verdict,
        p="" if known is None else _p(known.p_value),
        tone=tone_of(part.verdict),
        change=change_in_words(part.candidate - part.base if known is None else known.mean),
        likely=""
        if known is None or known.low == known.high
        else _range(known.low, known.high, change_in_words),
        base=in_words(part.base),
        candidate=in_words(part.candidate),
        marks=marks,
    )


def _rest(comparison: Comparison) -> Iterator[MeasureRow]:
    """Pass rate, speed, cost and errors."""
    rate, base, candidate = comparison.pass_rate, comparison.base, comparison.candidate
    yield MeasureRow(
        name="Passed",
        p=_p(rate["p_value"]),
        change=points_change(rate["difference"]),
        likely="" if rate["low"] is None else _range(rate["low"], rate["high"], points_change),
        base=percent(rate["base"]),
        candidate=percent(rate["candidate"]),
    )
    if comparison.latency is not None:
        yield _measured("Mean time", comparison.latency, milliseconds, milliseconds_change)
    if base.latency_ms and candidate.latency_ms:
        slow, slow_now = base.latency_ms["p95"], candidate.latency_ms["p95"]
        yield MeasureRow(
            name="Slow (p95)",
            change=milliseconds_change(slow_now - slow),
            base=milliseconds(slow),
            candidate=milliseconds(slow_now),
        )
    if comparison.cost is not None:
        yield _measured("Cost of a question", comparison.cost, money, lambda change: change_text(change, 4))
    if comparison.error_rate is not None:
        yield _measured("Errors", comparison.error_rate, percent, points_change)


def _range(low: float, high: float, in_words: Callable[[float], str]) -> str:
    return f"{in_words(low)} to {in_words(high)}"


def _marks(difference: Difference, reach: float) -> IntervalMarks:
    return IntervalMarks(
        low=round(50 + 50 * difference.low / reach, 2),
        width=round(max(50 * (difference.high - difference.low) / reach, _LEAST_WIDTH), 2),
        mean=round(50 - _STROKE / 2 + 50 * difference.mean / reach, 2),
    )


def _p(value: float | None) -> str:
    return "" if value is None else p_text(value)


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


def comparison_sheet(comparison: Comparison, score: ScoreWords = score_text, *, causes: bool = True) -> Sheet:
    """The sheet of a comparison of two runs; its `causes` are left out where they are shown already."""
    base, candidate = comparison.base, comparison.candidate
    lines = (
        *(cause_lines(comparison.causes, comparison.lost) if causes else ()),
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
    def row(name: str, cells: Sequence[str]) -> tuple[str, ...]:
        return (one_line(name, _NAME), *cells)

    yield row("run", [run.id for run in runs])
    yield row("score", [f"{score(run.score)} ({range_text(run.interval, score)})" for run in runs])
    yield row("grade", [run.grade for run in runs])
    yield row("group", [run.groups + (" ●" if run.pareto else "") for run in runs])
    measures = dict.fromkeys(name for run in runs for name in run.measures)

    def measure_row(name: str) -> tuple[str, ...]:
        # A metric has a scale of its own.
        shown = score if name in COMPONENTS else metric_text
        return row(name_words(name), [_mean_text(run.measures.get(name), shown) for run in runs])

    yield from map(measure_row, filter(COMPONENTS.__contains__, measures))
    yield row("p50 per question", [milliseconds(run.latency_p50_ms) for run in runs])
    yield row("p95 per question", [milliseconds(run.latency_p95_ms) for run in runs])
    yield row("errors", [percent(run.error_rate) + _in_brackets(run.error_interval, percent) for run in runs])
    if any(run.cost is not None for run in runs):
        yield row("cost per question", [_cost_text(run.cost) for run in runs])
        yield row("cost per point", [_cost_text(run.cost_per_point) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.categories):
        yield row(f"category {name}", [_mean_text(run.categories.get(name), score) for run in runs])
    yield from (measure_row(name) for name in measures if name not in COMPONENTS)
    if any(run.judge_reliable is not None for run in runs):
        words = {True: "reliable", False: "UNRELIABLE", None: "–"}
        yield row("judge", [words[run.judge_reliable] for run in runs])
    for gate in dict.fromkeys(result.gate for run in runs for result in run.gates):
        passed = [{result.gate: result.passed for result in run.gates}.get(gate) for run in runs]
        yield row(f"gate {gate}", [{True: "passed", False: "FAILED", None: "–"}[result] for result in passed])


def _failed_gates(runs: "Sequence[Ranked]") -> Iterator[str]:
    for run in runs:
        for result in run.gates:
            if not result.passed:
                yield f"gate FAILED on {one_line(run.name, 24)}: {gate_words(result)}"


def _cost_text(cost: "Mean | None") -> str:
    # An interval may reach below zero, a cost cannot.
    return _mean_text(cost, lambda value: money(max(0.0, value or 0.0)))


def _mean_text(mean: "Mean | None", value: ScoreWords) -> str:
    return "–" if mean is None else value(mean.mean) + _in_brackets(mean.interval, value)


def _in_brackets(interval: Interval | None, value: ScoreWords) -> str:
    return "" if interval is None else f" ({range_text(interval, value)})"


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
        from answerkey.report.markup import policy_hash, report_style, report_template  # slow to load

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
    """A table's lines as Markdown, the first one empty; figures are aligned to the right."""
    rest = ("|---" if table.wordy else "|---:") * (len(table.heads) - 1)
    yield from ("", f"| {' | '.join(map(for_markdown, table.heads))} |", f"|---{rest}|")
    yield from (f"| {' | '.join(map(for_markdown, row))} |" for row in table.rows)
