"""A comparison, an experiment and a ranking on the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from answerkey.model.comparison import Comparison, Measure
from answerkey.report.comparison_sheet import SheetTable, ranking_sheet
from answerkey.report.comparison_wording import (
    comparison_facts,
    comparison_headline,
    confirmation_lines,
    measure_words,
    points_text,
)
from answerkey.report.terminal import emit, make_console, plain_table
from answerkey.report.value_wording import count, name_words, p_text, percent, score_text
from answerkey.text.sanitise import one_line

if TYPE_CHECKING:
    from answerkey.comparison.run_ranking import Ranking
    from answerkey.evaluation.experiment import Experiment

COLOURS = {"better": "green", "worse": "red", "same": "cyan", "no clear difference": "yellow"}
_FLIPS_SHOWN = 20
_UNPAIRED_SHOWN = 10
# Between the columns of a table; and what the names of its rows keep where room is short.
_GAP = 2
_SHORTEST_NAMES = 14


def print_comparison(
    comparison: Comparison,
    *,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the verdict first, then what it rests on."""
    console = make_console(file, width=width)
    base, candidate = comparison.base, comparison.candidate
    head = _verdict(
        comparison.verdict, comparison_headline(comparison).removeprefix(comparison.verdict).lstrip(":")
    )
    runs = f"{one_line(base.name, 30)} ({base.id}) → {one_line(candidate.name, 30)} ({candidate.id})"
    emit(console, "", Text(runs, style="dim"), "", head)
    for line in (*comparison_facts(comparison), *comparison.reasons, *confirmation_lines(comparison)):
        emit(console, Text(line))
    for note in comparison.notes:
        emit(console, Text(f"! {one_line(note, 200)}", style="yellow"))
    for title, measures in (("Components", comparison.components), ("Categories", comparison.categories)):
        if measures:
            emit(console, "", _table(title, measures))
    if comparison.flips:
        flipped = f"Flipped: {comparison.pass_rate['broken']} broken, {comparison.fixed} fixed"
        emit(console, "", Text(flipped, style="bold"))
        for flip in comparison.flips[:_FLIPS_SHOWN]:
            line = f"  {flip.kind:7}{score_text(flip.score_from)} → {score_text(flip.score_to)}  "
            colour = COLOURS["better" if flip.kind == "fixed" else "worse"]
            text = Text(line + one_line(flip.id, 60), style=colour)
            if flip.question:
                text.append(f"  {one_line(flip.question, 200)}", style="dim")
            text.truncate(console.width, overflow="ellipsis")
            emit(console, text)
        _print_rest(console, len(comparison.flips) - _FLIPS_SHOWN)
    if comparison.unpaired:
        emit(console, "", Text(f"Not compared: {count(len(comparison.unpaired), 'question')}", style="bold"))
        for item in comparison.unpaired[:_UNPAIRED_SHOWN]:
            emit(console, Text(f"  {one_line(item.id, 60)}: {item.reason}"))
        _print_rest(console, len(comparison.unpaired) - _UNPAIRED_SHOWN)
    if comparison.metrics:
        emit(console, "", _table("Metrics", comparison.metrics))
    emit(console, "")


def _verdict(verdict: str, words: str) -> Text:
    return Text.assemble((f" {verdict} ", f"bold reverse {COLOURS[verdict]}"), (words, "bold"))


def _print_rest(console: Console, left_out: int) -> None:
    if left_out > 0:
        emit(console, Text(f"  … and {left_out:,} more; --json lists all", style="dim"))


def _table(title: str, measures: Sequence[Measure]) -> Table:
    change = "change" if any(measure.counted for measure in measures) else "points"
    table = plain_table(title, "from → to", change, "95% interval", "p", "corrected")
    for measure in measures:
        verdict = "" if measure.verdict == "no clear difference" else measure.verdict
        table.add_row(
            one_line(measure.name if title == "Categories" else name_words(measure.name), 24),
            *measure_words(measure),
            Text(verdict, style=COLOURS[measure.verdict]),
        )
    return table


def print_experiment(experiment: "Experiment") -> None:
    """Print how an experiment ended, then the comparison of its two runs."""
    console = make_console()
    asked = f"{experiment.asked:,} of {experiment.planned:,} trials asked"
    emit(console, "", Text(f"{asked}{', stopped early' if experiment.stopped_early else ''}", style="dim"))
    emit(console, *(Text(f"! {one_line(note, 300)}", style="yellow") for note in experiment.warnings))
    found = experiment.sequential
    if found is not None:
        words = (
            f" b − a {points_text(found['mean'])} points over {count(found['differences'], 'unit')}, "
            f"{percent(found['level'])} interval "
            f"{points_text(found['low'])} to {points_text(found['high'])}, {p_text(found['p_value'])}"
        )
        emit(
            console,
            _verdict(experiment.verdict, words),
            Text(f"{found['method']}; what follows does not allow for having looked early", style="dim"),
        )
    print_comparison(experiment.comparison)


def print_ranking(ranking: "Ranking", *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print runs best first, a column for each; runs that share a letter cannot be told apart."""
    console = make_console(file, width=width)
    sheet = ranking_sheet(ranking)
    [matrix] = sheet.tables
    emit(console, "", Text(sheet.title, style="bold"), "")
    for table in _fitting_tables(matrix, console.width):
        emit(console, table, "")
    emit(console, *(Text(line, style="dim") for line in sheet.lines))
    emit(console, *(Text(f"! {one_line(note, 400)}", style="yellow") for note in sheet.warnings), "")


def _fitting_tables(matrix: SheetTable, width: int) -> Iterator[Table]:
    """A matrix in as many tables, one below the other, as it takes: names are cut where room is short, figures never."""
    columns = list(zip(matrix.heads, *matrix.rows, strict=True))
    names, runs = columns[0], columns[1:]
    widths = [max(map(cell_len, column)) + _GAP for column in runs]
    if max(map(cell_len, names)) + sum(widths) > width:
        widths = [max(map(cell_len, column[1:])) + _GAP for column in runs]
    start = 0
    while start < len(runs):
        end = start + 1
        while end < len(runs) and _SHORTEST_NAMES + sum(widths[start : end + 1]) <= width:
            end += 1
        shown = [names, *runs[start:end]]
        table = plain_table(*(column[0] for column in shown))
        table.columns[0].max_width = max(_SHORTEST_NAMES, width - sum(widths[start:end]))
        for column, taken in zip(table.columns[1:], widths[start:end], strict=True):
            column.width = taken - _GAP
        for row in zip(*(column[1:] for column in shown), strict=True):
            table.add_row(*row)
        yield table
        start = end
