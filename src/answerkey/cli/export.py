"""`answerkey export`: a golden set in another tool's files."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from answerkey.cli.flags import FILE, flag, questions_argument
from answerkey.config import load_settings
from answerkey.errors import UsageError


@click.command()
@click.argument("format_name", metavar="FORMAT")
@questions_argument
@flag(
    "-o, --output",
    "The file to write, or the folder where a format has several; without it, to stdout.",
    type=FILE,
)
def export(format_name: str, questions: Path | None, output: Path | None) -> None:
    """Write a golden set in another form, and say what could not be carried over.

    FORMAT is jsonl (answerkey's own form, complete), csv (for spreadsheets), hf (Parquet), promptfoo, deepeval, ragas,
    inspect, langsmith, langfuse, openai-evals, bfcl, tau2, trec (qrels and queries) or beir (a dataset's folder
    without its corpus).

    \b
    Examples:
      answerkey export jsonl golden.yaml -o golden.jsonl
      answerkey export csv golden.jsonl -o golden.csv
      answerkey export promptfoo golden.jsonl -o tests.yaml
      answerkey export beir golden.jsonl -o dataset/
    """
    from answerkey.evaluation.assembly import golden_set
    from answerkey.plugins import exporters
    from answerkey.report.files import atomic_file, refuse_to_overwrite
    from answerkey.text.sanitise import for_terminal

    make = exporters.get(format_name)
    golden = golden_set(questions, load_settings())
    exported = make(golden)
    for path, content in _places(exported.files, output, format_name):
        if path is None:
            sys.stdout.buffer.writelines(content)
            sys.stdout.buffer.flush()
            continue
        refuse_to_overwrite(path, [Path(golden.path)] if golden.path else [])
        with atomic_file(path) as file:
            file.writelines(content)
    where = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {exported.count} questions{where}"), err=True)
    for note in exported.notes:
        click.echo(for_terminal(f"note: {note}"), err=True)


def _places(
    files: Mapping[str, Iterable[bytes]], output: Path | None, format_name: str
) -> Iterator[tuple[Path | None, Iterable[bytes]]]:
    """Where each file goes: one file where the user says (None: to stdout), several to a folder."""
    if len(files) == 1:
        [(name, content)] = files.items()
        ending = Path(name).suffix
        if output is not None and output.suffix.lower() != ending and not output.is_dir():
            raise UsageError(f"-o {output}: write to a {ending} file")
        yield output, content
        return
    if output is None:
        raise UsageError(f"{format_name} is several files; name a folder for them with -o FOLDER")
    for name, content in files.items():
        path = output / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {output}: cannot be a folder: {error.strerror or error}") from None
        yield path, content
