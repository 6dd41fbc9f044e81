"""A judge against people's verdicts: their disagreements, the rubric, and the edited rubrics that were tried."""

import json
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import LabelAgreement, RubricVersion
from answerkey.model.run import RunInfo
from answerkey.report.sheets import SheetTable
from answerkey.report.wording import percent
from answerkey.server.views.tables import NoQuery
from answerkey.store.sql import SqlStore
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.judge.calibration import Alignment

_MOST_SHOWN = 200
_REPLY = 300


class AlignmentView(msgspec.Struct, frozen=True, kw_only=True):
    """How a run's judge agrees with people, where it does not, and which rubrics were tried."""

    info: RunInfo
    judge: str
    rubric: str
    # The whole rubric as JSON, to be edited; empty if it was not stored.
    rubric_text: str
    # Why nothing can be compared yet; empty if it can.
    problem: str
    warnings: tuple[str, ...]
    tables: tuple[SheetTable, ...]


def load_alignment(store: SqlStore, query: NoQuery, run: str) -> AlignmentView:
    """Read the page of a judged run; half of the labels are held out, and their disagreements never shown."""
    # Statistics take a while to import, and few pages need them.
    from answerkey.runs.judging import align_stored

    info = store.find_run(run)
    judge = info.judge
    if judge is None:
        raise UnknownNameError(
            f"run {info.id} has no judge; `answerkey rescore {info.id} --judge MODEL` adds one"
        )
    tables: list[SheetTable] = []
    warnings: tuple[str, ...] = ()
    problem = ""
    try:
        alignment, _ = align_stored(store, info, None)
    except UsageError as error:
        problem = str(error)
    else:
        tables, warnings = list(_tables(alignment)), alignment.warnings
    if judge.rubric_versions:
        tables.append(_versions_table(judge.rubric_versions))
    rubric = judge.rubric
    return AlignmentView(
        info=info,
        judge=judge.model,
        rubric=f"{one_line(rubric.name, 60)} ({rubric.hash[:8]})",
        rubric_text=""
        if rubric.content is None
        else json.dumps(rubric.content, indent=2, ensure_ascii=False),
        problem=problem,
        warnings=warnings,
        tables=tuple(tables),
    )


def _tables(alignment: "Alignment") -> list[SheetTable]:
    agreements = (("shown below", alignment.tuning.before), ("held out", alignment.held_out.before))
    found = [
        SheetTable(
            "Agreement with people",
            ("labels", "replies", "agreement", "95% interval", "Cohen κ"),
            tuple((name, str(one.labelled), *_figures(one)) for name, one in agreements),
        )
    ]
    if alignment.disagreements:
        shown = alignment.disagreements[:_MOST_SHOWN]
        more = f", {_MOST_SHOWN} of them here" if len(alignment.disagreements) > _MOST_SHOWN else ""
        found.append(
            SheetTable(
                f"Disagreements: {len(alignment.disagreements)}{more}",
                ("question", "people", "judge", "its reason", "reply"),
                tuple(
                    (
                        one.id,
                        "right" if one.right else "wrong",
                        f"{one.judge:.2f}",
                        one_line(one.because, _REPLY),
                        one_line(one.reply, _REPLY),
                    )
                    for one in shown
                ),
                wordy=True,
                ids=tuple(one.id for one in shown),
            )
        )
    if alignment.panel_disagreements:
        panel = alignment.panel_disagreements[:_MOST_SHOWN]
        found.append(
            SheetTable(
                f"Replies that the judges of the panel disagree on: {len(alignment.panel_disagreements)}",
                ("question", "judges"),
                tuple(
                    (
                        one.id,
                        ", ".join(f"{one_line(name, 30)} {value:.2f}" for name, value in one.judges.items()),
                    )
                    for one in panel
                ),
                wordy=True,
                ids=tuple(one.id for one in panel),
            )
        )
    return found


def _figures(agreement: LabelAgreement) -> tuple[str, str, str]:
    kappa = "–" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    return percent(agreement.share), f"{percent(agreement.low)}–{percent(agreement.high)}", kappa


def _versions_table(versions: tuple[RubricVersion, ...]) -> SheetTable:
    """Edited rubrics, newest first, with the agreement on held-out labels before and after."""
    rows = []
    for tried in reversed(versions):
        difference, after = tried.held_out.difference, tried.held_out.after or tried.held_out.before
        points = "" if difference is None else f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
        rubric = f"{one_line(tried.rubric.name, 40)} ({tried.rubric.hash[:8]})"
        change = f"{percent(tried.held_out.before.share)} → {percent(after.share)}"
        rows.append((rubric, local_time(tried.at), change, points))
    heads = ("rubric", "tried", "agreement on held-out labels", "change in points, 95% interval")
    return SheetTable("Rubrics that were tried", heads, tuple(rows))
