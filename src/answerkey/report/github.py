"""GitHub: the job summary, at most ten annotations, the worst first, and a pull request's comment.

What a chatbot said goes into all of them, so it is made harmless: a line that begins with `::` would be a command to the
runner, and Markdown could hide or fake results. A comment is short enough to be read in passing; its first line is hidden and
the same for each run of a golden set and a chatbot, so that the one that was made for the last push can be written anew.
"""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TextIO

from answerkey.model.run import Run
from answerkey.report.comparison_sheet import comparison_sheet, flips_table, sheet_heading, table_markdown
from answerkey.report.comparison_wording import comparison_headline
from answerkey.report.losses import losses_of
from answerkey.report.markdown_file import gate_lines, markdown_report
from answerkey.report.value_wording import count, gate_words, percent, range_text, score_text
from answerkey.text.sanitise import for_markdown, for_terminal, one_line

# GitHub shows ten annotations of a step and drops the rest.
MOST_ANNOTATIONS = 10
# GitHub refuses a step's summary above one mebibyte.
_LONGEST_SUMMARY = 900_000


def write_to_github(run: Run, stream: TextIO) -> None:
    """Write annotations to a stream that the runner reads, and the job summary to the file it names."""
    for line in annotations(run):
        stream.write(line + "\n")
    stream.flush()
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    text = markdown_report(run)
    if len(text.encode()) > _LONGEST_SUMMARY:
        text = (
            text.encode()[:_LONGEST_SUMMARY].decode(errors="ignore")
            + "\n\n… cut; the report files hold the rest\n"
        )
    try:
        with Path(place).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        stream.write(
            _command("warning", "answerkey", f"the job summary cannot be written: {error.strerror}") + "\n"
        )


def annotations(run: Run) -> list[str]:
    """Workflow commands: failed gates, then broken questions, then the worst of the failed ones."""
    found = [_command("error", "Gate failed", gate_words(gate)) for gate in run.gates if not gate.passed]
    named: set[str] = set()
    comparison = run.comparison
    if comparison is not None:
        if comparison.verdict == "worse":
            found.append(_command("error", "Regression", comparison_headline(comparison)))
        for flip in comparison.flips:
            if flip.kind == "broken":
                named.add(flip.id)
                change = f"{score_text(flip.score_from)} → {score_text(flip.score_to)}"
                found.append(_command("warning", f"Broken: {flip.id}", change))
    if len(found) < MOST_ANNOTATIONS:
        found += _worst(run, named, MOST_ANNOTATIONS - len(found))
    if len(found) > MOST_ANNOTATIONS:
        more = len(found) - MOST_ANNOTATIONS + 1
        found = [
            *found[: MOST_ANNOTATIONS - 1],
            _command("notice", "answerkey", f"{more} more in the job summary"),
        ]
    return found


def _worst(run: Run, named: set[str], most: int) -> Iterator[str]:
    import heapq

    failed = (
        (result.scorecard.total or 0.0, index, result)
        for index, result in enumerate(run.results)
        if not result.scorecard.passed and result.question.id not in named and result.number == 1
    )
    for score, _, result in heapq.nsmallest(most, failed, key=lambda entry: entry[:2]):
        reasons = "; ".join(str(loss) for loss in losses_of(result.scorecard))
        yield _command(
            "warning", f"Failed: {result.question.id}", f"score {score_text(score)}: {reasons}"[:600]
        )


def _command(level: str, title: str, message: str) -> str:
    """A workflow command whose data cannot become another: GitHub's own escapes for its special characters."""
    return f"::{level} title={_escape(title, property_value=True)}::{_escape(message)}"


def _escape(text: str, *, property_value: bool = False) -> str:
    safe = " ".join(for_terminal(text).split())
    safe = safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return safe.replace(":", "%3A").replace(",", "%2C") if property_value else safe


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
