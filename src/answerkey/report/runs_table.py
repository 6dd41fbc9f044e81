"""Runs as a table on the terminal."""

from collections.abc import Sequence
from typing import TextIO

from answerkey.report.terminal import GRADE_COLOURS, emit, make_console
from answerkey.report.wording import percent, score_text
from answerkey.run import RunInfo
from answerkey.summary import Summary
from answerkey.text.sanitise import one_line

__all__ = ["print_runs"]


def print_runs(
    listed: Sequence[tuple[RunInfo, Summary | None]],
    total: int,
    *,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print runs, with what is left out said."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(file, width=width)
    if not listed:
        console.print("no runs yet; `answerkey run` makes one")
        return
    wide = console.width >= 110
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("id", "when", "name", "target"):
        table.add_column(head, no_wrap=True, overflow="ellipsis")
    for head in ("questions", "score"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("grade", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for info, summary in listed:
        grade = summary.grade if summary is not None else None
        table.add_row(
            one_line(info.id, 40),
            one_line(info.created_at.replace("T", " ")[: 16 if wide else 10], 16),
            one_line(info.name, 40 if wide else 14),
            one_line(info.target, 40 if wide else 14),
            "–" if summary is None else f"{summary.questions:,}",
            _score(summary),
            Text(grade or "–", style=f"bold {GRADE_COLOURS.get(grade or '', 'dim')}"),
            _status(info, summary),
        )
    emit(console, table)
    if total > len(listed):
        console.print(f"… and {total - len(listed):,} older; --limit {total} lists all", style="dim")


def _score(summary: Summary | None) -> str:
    if summary is None or summary.score is None:
        return "–"
    if summary.interval is None:
        return score_text(summary.score)
    # An interval need not be even on both sides: half its width says how sure the score is.
    return f"{score_text(summary.score)} ± {(summary.interval.high - summary.interval.low) / 2:.3f}"


def _status(info: RunInfo, summary: Summary | None) -> str:
    if summary is not None and summary.coverage < 1:
        return f"{info.status}, {percent(summary.coverage)} covered"
    return info.status
