"""`answerkey schema`: JSON Schemas for editors and other programs."""

import click

from answerkey.cli.outcome import print_document
from answerkey.plugins import load_object

_SCHEMAS = {
    "questions": "answerkey.datasets.question_schema:question_schema",
    "config": "answerkey.config:settings_schema",
    "run": "answerkey.model.run_schema:run_schema",
}


@click.command()
@click.argument("what", type=click.Choice(list(_SCHEMAS)))
def schema(what: str) -> None:
    """Print the JSON Schema of a golden set's line, of answerkey.toml, or of the run document.

    \b
    Examples:
      answerkey schema questions > golden.schema.json
      answerkey schema config > answerkey.schema.json
    """
    print_document(load_object(_SCHEMAS[what])())
