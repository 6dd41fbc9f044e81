"""`answerkey schema`: JSON Schemas for editors and other programs."""

import click

from answerkey.cli.outcome import print_document

__all__ = ["schema"]


@click.command()
@click.argument("what", type=click.Choice(["questions", "config", "run"]))
def schema(what: str) -> int:
    """Print the JSON Schema of a golden set's line, of answerkey.toml, or of the run document.

    \b
    Examples:
      answerkey schema questions > golden.schema.json
      answerkey schema config > answerkey.schema.json
    """
    # Each loads what it describes.
    if what == "questions":
        from answerkey.datasets.question_schema import question_schema

        print_document(question_schema())
    elif what == "config":
        from answerkey.config import settings_schema

        print_document(settings_schema())
    else:
        from answerkey.model.run_schema import run_schema

        print_document(run_schema())
    return 0
