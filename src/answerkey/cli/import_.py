"""`answerkey import`: another tool's files as a golden set or as recorded replies."""

import sys
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec

from answerkey.cli.flags import FILE
from answerkey.errors import UsageError

__all__ = ["import_"]


@click.command(name="import")
@click.argument("format_name", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@click.option("-o", "--output", type=FILE, help="Where to write (.jsonl); without it, to stdout.")
def import_(format_name: str, files: tuple[Path, ...], output: Path | None) -> int:
    """Turn another tool's files into JSON Lines that answerkey reads.

    FORMAT is beir (a dataset's folder or its files) or trec (qrels, a run, queries: which is which shows in the
    files). Judgements become a golden set with relevant_documents; a run becomes recorded replies.

    \b
    Examples:
      answerkey import beir scifact/ -o golden.jsonl
      answerkey import trec qrels.txt topics.txt -o golden.jsonl
      answerkey import trec qrels.txt results.txt -o replies.jsonl
    """
    from answerkey.plugins import importers
    from answerkey.text.sanitise import for_terminal

    if output is not None and output.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(f"-o {output}: write to a .jsonl file")
    imported = importers.get(format_name)(files)
    count = 0
    try:
        with nullcontext(sys.stdout.buffer) if output is None else output.open("wb") as stream:
            for count, row in enumerate(imported.rows, start=1):  # noqa: B007  # how many, at the end
                stream.write(msgspec.json.encode(row) + b"\n")
            stream.flush()
    except OSError as error:
        if output is None:
            raise
        raise UsageError(f"-o {output}: cannot be written: {error.strerror or error}") from None
    where = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {count} {imported.kind}{where}"), err=True)
    for note in imported.notes:
        click.echo(for_terminal(f"note: {note}"), err=True)
    return 0
