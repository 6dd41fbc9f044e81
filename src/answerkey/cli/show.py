"""`answerkey show`: a stored run on the terminal."""

from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import flag, json_flag, with_store
from answerkey.cli.outcome import print_run, print_run_document

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("run", default="latest")
@flag("--failures", "Every question that failed, with its reasons.", is_flag=True)
@flag("--question ID", "One question in full: replies, tool calls, reasons.", "question_id")
@flag("--worst", "How many of the worst to list.", type=click.IntRange(min=0), default=10, show_default=True)
@with_store()
@json_flag
def show(
    run: str, failures: bool, question_id: str | None, worst: int, store: "SqlStore", as_json: bool
) -> None:
    """Show a run: by default the latest.

    \b
    Examples:
      answerkey show
      answerkey show latest~1 --failures
      answerkey show production --question rent-august
      answerkey show latest --json
    """
    from answerkey.evaluation.verdicts import decided_run
    from answerkey.report.terminal import make_console
    from answerkey.report.terminal_detail import print_failures, print_question
    from answerkey.report.view import failures_of, only_failures, only_question

    found = decided_run(store, run)
    if question_id is not None:
        found = only_question(found, question_id)
    if failures and as_json:
        found = only_failures(found)
    if as_json:
        print_run_document(found)
    elif question_id is not None:
        print_question(found, make_console())
    elif failures:
        print_failures(found.info, failures_of(found), make_console())
    else:
        print_run(found, worst=worst)
