"""`answerkey show`: a stored run on the terminal."""

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_run_document

__all__ = ["show"]


@click.command()
@click.argument("run", default="latest")
@click.option("--failures", is_flag=True, help="Every question that failed, with its reasons.")
@click.option(
    "--question", "question_id", metavar="ID", help="One question in full: replies, tool calls, reasons."
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of the worst to list.",
)
@store_flag
@json_flag
def show(
    run: str, failures: bool, question_id: str | None, worst: int, store: str | None, as_json: bool
) -> int:
    """Show a run: by default the latest.

    \b
    Examples:
      answerkey show
      answerkey show latest~1 --failures
      answerkey show production --question rent-august
      answerkey show latest --json
    """
    from answerkey.evaluation.verdicts import decided_run
    from answerkey.report.comparison_text import print_comparison
    from answerkey.report.terminal import make_console, print_report
    from answerkey.report.terminal_detail import print_failures, print_question
    from answerkey.report.view import failures_of, only_failures, only_question

    with opened_store(store) as opened:
        found = decided_run(opened, run)
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
            print_report(found, worst=worst)
            if found.comparison is not None:
                print_comparison(found.comparison)
    return 0
