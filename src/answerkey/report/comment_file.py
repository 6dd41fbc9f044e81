"""A pull request's comment: the verdict, the gates and the questions that flipped, short enough to be read in passing.

Its first line is hidden and the same for each run of a golden set and a chatbot, so that the comment that was made for the
last push can be found and written anew.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO

from answerkey.model.run import Run
from answerkey.report.comparison_sheet import comparison_sheet, flips_table, sheet_heading, table_markdown
from answerkey.report.markdown_file import gate_lines
from answerkey.report.value_wording import count, percent, range_text, score_text
from answerkey.text.sanitise import for_markdown, one_line

__all__ = ["write_comment"]

_FLIPS = 10
# Of each reply.
_REPLY = 160


def write_comment(run: Run, file: BinaryIO) -> None:
    """Write the comment on a run."""
    file.write(("\n".join(_lines(run)) + "\n").encode("utf-8"))


def _lines(run: Run) -> Iterator[str]:
    info, summary, comparison = run.info, run.summary, run.comparison
    marker = sha256(f"{info.question_set}\0{info.target}".encode("utf-8", "replace")).hexdigest()[:12]
    yield f"<!-- answerkey {marker} -->"
    interval = f" ({range_text(summary.interval)})" if summary.interval else ""
    name = for_markdown(one_line(info.name or info.id, 60))
    result = f"{summary.grade or '–'} · {score_text(summary.score)}{interval}"
    passed = (
        f"{summary.passed:,} of {count(summary.questions, 'question')} passed ({percent(summary.pass_rate)})"
    )
    if comparison is None:
        yield f"### {name}: {result}"
        yield f"\n{passed}."
    else:
        sheet = comparison_sheet(comparison)
        yield sheet_heading(sheet)
        yield f"\n**{name}: {result}**, {passed}.  "
        yield from (f"{for_markdown(line)}  " for line in (*sheet.lines, *sheet.warnings))
    for warning in run.warnings:
        yield f"\n> ⚠️ {for_markdown(one_line(warning, 300))}"
    if run.gates:
        yield ""
        yield from gate_lines(run.gates)
    if comparison is not None and comparison.flips:
        flips = flips_table(comparison, _FLIPS, _REPLY)
        more = f", {_FLIPS} of them here" if len(comparison.flips) > _FLIPS else ""
        yield f"\n<details><summary>{flips.title}{more}</summary>"
        yield from table_markdown(flips)
        yield "\n</details>"
    if run.earlier:
        scores = " → ".join(map(score_text, [*(one.score for one in run.earlier), summary.score]))
        yield f"\nThe score of the runs before, and of this: {scores}"
    yield f"\n<sub>answerkey · run {info.id}</sub>"
