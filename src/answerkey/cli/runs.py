"""`answerkey runs`: the runs of a store."""

from typing import TYPE_CHECKING, Any

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document

if TYPE_CHECKING:
    from answerkey.model.run import RunInfo
    from answerkey.model.summary import Summary

__all__ = ["runs"]


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many to list, newest first.",
)
@store_flag
@json_flag
def runs(limit: int, store: str | None, as_json: bool) -> int:
    """List runs, the newest first.

    \b
    Examples:
      answerkey runs
      answerkey runs --limit 100 --json
    """

    with opened_store(store) as opened:
        listed = opened.list_runs(limit=limit)
        total = opened.count_runs()
    if as_json:
        print_document({"runs": [_document(info, summary) for info, summary in listed]})
        return 0
    from answerkey.report.runs_table import print_runs

    print_runs(listed, total)
    return 0


def _document(info: "RunInfo", summary: "Summary | None") -> dict[str, Any]:
    known = ("id", "name", "status", "created_at", "target", "question_set")
    found = ("questions", "score", "grade", "interval", "coverage", "passed")
    # A run that has not ended has no summary.
    return {name: getattr(info, name) for name in known} | {
        name: getattr(summary, name, None) for name in found
    }
