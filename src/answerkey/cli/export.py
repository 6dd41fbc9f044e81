"""`answerkey export`: a golden set in another tool's files."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

__all__ = ["export"]


@click.command()
@click.argument("format_name", metavar="FORMAT")
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write, or the folder where a format has several; without it, to stdout.",
)
def export(format_name: str, questions: Path | None, output: Path | None) -> int:
    """Write a golden set in another form, and say what could not be carried over.

    FORMAT is jsonl (answerkey's own form, complete), csv (for spreadsheets), trec (qrels and queries) or beir (a
    dataset's folder without its corpus).

    \b
    Examples:
      answerkey export jsonl golden.yaml -o golden.jsonl
      answerkey export csv golden.jsonl -o golden.csv
      answerkey export beir golden.jsonl -o dataset/
    """
    from answerkey.config import load_settings
    from answerkey.evaluation.assembly import golden_set
    from answerkey.plugins import exporters
    from answerkey.text.sanitise import for_terminal

    make = exporters.get(format_name)
    exported = make(golden_set(questions, load_settings()))
    if len(exported.files) == 1:
        [(name, content)] = exported.files.items()
        _write_one(name, content, output)
    else:
        _write_folder(exported.files.items(), output, format_name)
    where = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {exported.count} questions{where}"), err=True)
    for note in exported.notes:
        click.echo(for_terminal(f"note: {note}"), err=True)
    return 0


def _write_one(name: str, content: Iterable[bytes], output: Path | None) -> None:
    from answerkey.errors import UsageError
    from answerkey.report.files import atomic_file

    if output is None:
        sys.stdout.buffer.writelines(content)
        sys.stdout.buffer.flush()
        return
    ending = Path(name).suffix
    if output.suffix.lower() != ending and (output.is_file() or not output.exists()):
        raise UsageError(f"-o {output}: write to a {ending} file")
    with atomic_file(output) as file:
        file.writelines(content)


def _write_folder(
    files: Iterable[tuple[str, Iterable[bytes]]], output: Path | None, format_name: str
) -> None:
    from answerkey.errors import UsageError
    from answerkey.report.files import atomic_file

    if output is None:
        raise UsageError(f"{format_name} is several files; name a folder for them with -o FOLDER")
    for name, content in files:
        path = output / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {output}: cannot be a folder: {error.strerror or error}") from None
        with atomic_file(path) as file:
            file.writelines(content)
