"""`answerkey import`: another tool's files as a golden set or as recorded replies."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import click

__all__ = ["import_"]


@click.command(name="import")
@click.argument("format_name", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Where to write (.jsonl); without it, to stdout."
)
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

    imported = importers.get(format_name)(files)
    if output is None:
        count = _write(imported.rows, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        count = _write_file(imported.rows, output)
    where = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {count} {imported.kind}{where}"), err=True)
    for note in imported.notes:
        click.echo(for_terminal(f"note: {note}"), err=True)
    return 0


def _write_file(rows: Iterable[dict[str, Any]], output: Path) -> int:
    from answerkey.errors import UsageError

    if output.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(f"-o {output}: write to a .jsonl file")
    try:
        with output.open("wb") as stream:
            return _write(rows, stream)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot be written: {error.strerror or error}") from None


def _write(rows: Iterable[dict[str, Any]], stream: BinaryIO) -> int:
    import msgspec

    count = 0
    for row in rows:
        stream.write(msgspec.json.encode(row) + b"\n")
        count += 1
    return count
