"""`answerkey runs`: the runs of a store."""

import sys
from typing import TYPE_CHECKING, Any

import click

from answerkey.cli.flags import json_flag, store_flag, store_opener

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
    from answerkey.config import load_settings
    from answerkey.report.result_rows import encode

    with store_opener(load_settings(), store)() as opened:
        listed = opened.list_runs(limit=limit)
        total = opened.count_runs()
    if as_json:
        sys.stdout.buffer.write(
            encode({"runs": [_document(info, summary) for info, summary in listed]}) + b"\n"
        )
        sys.stdout.buffer.flush()
        return 0
    from answerkey.report.runs_table import print_runs

    print_runs(listed, total)
    return 0


def _document(info: "RunInfo", summary: "Summary | None") -> dict[str, Any]:
    import msgspec

    return {
        "id": info.id,
        "name": info.name,
        "status": info.status,
        "created_at": info.created_at,
        "target": info.target,
        "question_set": info.question_set,
        "questions": None if summary is None else summary.questions,
        "score": None if summary is None else summary.score,
        "grade": None if summary is None else summary.grade,
        "interval": None if summary is None else msgspec.to_builtins(summary.interval),
        "coverage": None if summary is None else summary.coverage,
        "passed": None if summary is None else summary.passed,
    }
