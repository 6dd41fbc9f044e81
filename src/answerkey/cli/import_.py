"""`answerkey import`: another tool's files as a golden set or as recorded replies."""

import sys
from contextlib import nullcontext
from inspect import signature
from pathlib import Path

import click
import msgspec

from answerkey.cli.flags import FILE, flag, map_flag
from answerkey.errors import UsageError


@click.command(name="import")
@click.argument("format_name", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@map_flag
@flag("-o, --output", "Where to write (.jsonl); without it, to stdout.", type=FILE)
def import_(format_name: str, files: tuple[Path, ...], fields: dict[str, str], output: Path | None) -> None:
    """Turn another tool's files into JSON Lines that answerkey reads, and say what could not be carried over.

    FORMAT is promptfoo, deepeval, ragas, inspect, langsmith, langfuse, openai-evals, bfcl, tau2, hf (any table), beir
    (a dataset's folder or its files) or trec (qrels, a run, queries: which is which shows in the files). What holds
    replies too becomes recorded replies with their expectations.

    \b
    Examples:
      answerkey import promptfoo promptfooconfig.yaml -o golden.jsonl
      answerkey import langsmith examples.jsonl --map question=inputs.text -o golden.jsonl
      answerkey import beir scifact/ -o golden.jsonl
      answerkey import trec qrels.txt topics.txt -o golden.jsonl
      answerkey import trec qrels.txt results.txt -o replies.jsonl
    """
    from answerkey.plugins import importers
    from answerkey.report.files import atomic_file, refuse_to_overwrite
    from answerkey.text.sanitise import for_terminal

    if output is not None and output.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(f"-o {output}: write to a .jsonl file")
    if output is not None:
        refuse_to_overwrite(output, files)
    importer = importers.get(format_name)
    if fields and "fields" not in signature(importer).parameters:
        raise UsageError(f"{format_name} has its fields in fixed places; import it without --map")
    imported = importer(files, **({"fields": fields} if fields else {}))
    count = 0
    with nullcontext(sys.stdout.buffer) if output is None else atomic_file(output) as stream:
        for count, row in enumerate(imported.rows, start=1):  # noqa: B007  # how many, at the end
            stream.write(msgspec.json.encode(row) + b"\n")
        stream.flush()
    where = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {count} {imported.kind}{where}"), err=True)
    for note in imported.notes:
        click.echo(for_terminal(f"note: {note}"), err=True)
