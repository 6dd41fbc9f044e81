"""Runs as a table on the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from answerkey.model.run import RunInfo
from answerkey.model.summary import Summary
from answerkey.report.terminal import GRADE_COLOURS, emit, make_console
from answerkey.report.value_wording import percent, score_text
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

__all__ = ["print_runs"]

_HEADS = ("id", "when", "name", "target", "questions", "score", "grade", "status")
_NAME, _TARGET, _GRADE = _HEADS.index("name"), _HEADS.index("target"), _HEADS.index("grade")


def print_runs(listed: Sequence[tuple[RunInfo, Summary | None]], total: int) -> None:
    """Print runs, with what is left out said."""
    console = make_console()
    if not listed:
        console.print("no runs yet; `answerkey run` makes one")
        return
    wide = console.width >= 110
    gap = 2 if wide else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    rows = [_cells(info, summary, wide=wide) for info, summary in listed]
    widths = [max(len(row[column]) for row in (_HEADS, *rows)) for column in range(len(_HEADS))]
    # Only the name and the target give way where the terminal is narrow.
    room = console.width - sum(widths) - gap * len(_HEADS) + widths[_NAME] + widths[_TARGET]
    widths[_NAME] = min(widths[_NAME], max(6, room - widths[_TARGET], room // 2))
    widths[_TARGET] = min(widths[_TARGET], max(6, room - widths[_NAME]))
    for head, width in zip(_HEADS, widths, strict=True):
        table.add_column(
            head, no_wrap=True, width=width, justify="right" if head in ("questions", "score") else "left"
        )
    for row in rows:
        cells: list[str | Text] = [one_line(cell, width) for cell, width in zip(row, widths, strict=True)]
        cells[_GRADE] = Text(row[_GRADE], style=f"bold {GRADE_COLOURS.get(row[_GRADE], 'dim')}")
        table.add_row(*cells)
    emit(console, table)
    if total > len(listed):
        console.print(f"… and {total - len(listed):,} older; --limit {total} lists all", style="dim")


def _cells(info: RunInfo, summary: Summary | None, *, wide: bool) -> tuple[str, ...]:
    when = local_time(info.created_at)
    return (
        one_line(info.id, 40),
        one_line(when if wide else when[:10], 30),
        one_line(" ".join([info.name, *(f"[{tag}]" for tag in info.tags)]), 60),
        one_line(" · ".join(part for part in (info.target, info.target_version.words) if part), 100),
        "–" if summary is None else f"{summary.questions:,}",
        _score(summary),
        (summary.grade if summary is not None else None) or "–",
        _status(info, summary),
    )


def _score(summary: Summary | None) -> str:
    if summary is None or summary.score is None:
        return "–"
    if summary.interval is None:
        return score_text(summary.score)
    # An interval need not be even on both sides: half its width says how sure the score is.
    return f"{score_text(summary.score)} ± {(summary.interval.high - summary.interval.low) / 2:.3f}"


def _status(info: RunInfo, summary: Summary | None) -> str:
    if summary is not None and summary.coverage < 1:
        return f"{info.status} {percent(summary.coverage, 0)}"
    return info.status
