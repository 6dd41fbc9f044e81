"""`answerkey lint`, `audit`, `draft`, `import`, `export` and `schema`: write and check golden sets."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from inspect import signature
from pathlib import Path

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    answers,
    flag,
    gate_flag,
    inputs_argument,
    map_flag,
    match_flag,
    print_document,
    print_gates,
    print_read_as,
    questions_argument,
    scoring_for,
    store_flag,
)
from answerkey.config import load_settings
from answerkey.errors import UsageError
from answerkey.plugins import load_object
from answerkey.text.normalise import count, for_terminal


@click.command()
@click.argument("questions", nargs=-1, type=FILE)
@map_flag
@flag("--strict", "Exit with code 1 on warnings too.", is_flag=True)
@answers
def lint(questions: tuple[Path, ...], fields: dict[str, str], strict: bool) -> Answer:
    """Check golden sets: keyword guidelines, echoes, duplicates, mistyped tools, thin categories.

    Without QUESTIONS, checks the configured or bundled set. Exits with code 1 if there are errors (with --strict:
    or warnings), and with code 2 if the set or some of its rows cannot be read.

    \b
    Examples:
      answerkey lint golden.jsonl
      answerkey lint golden/*.jsonl
      answerkey lint golden.jsonl --strict --json
      answerkey lint colleagues.xlsx --map question="What to ask"
    """
    from answerkey.golden.lint import lint_questions, problem_findings, worst_severity
    from answerkey.report.terminal_texts import print_findings
    from answerkey.runs.context import load_golden_set

    settings = load_settings()
    loaded = [load_golden_set(path, settings, fields) for path in questions or (None,)]
    is_whole = settings.scoring.whole_numbers or settings.scoring.match == "smart"
    sets = [one.questions for one in loaded]
    findings_by_set = [
        problem_findings(one.problems) + lint_questions(one.questions, whole_numbers=is_whole)
        for one in loaded
    ]
    # With several sets, each finding names its file.
    rows = [
        msgspec.to_builtins(finding) | ({"file": str(path)} if len(sets) > 1 else {})
        for path, findings in zip(questions or ("",), findings_by_set, strict=True)
        for finding in findings
    ]

    def show() -> None:
        for chosen, findings in zip(sets, findings_by_set, strict=True):
            if len(sets) > 1:
                click.echo(for_terminal(f"{chosen.path or chosen.name}:"))
            print_findings(findings, chosen)

    for chosen in sets:
        print_read_as(chosen.read_as)
    severities = {worst_severity(findings) for findings in findings_by_set}
    failed = "error" in severities or (strict and "warning" in severities)
    unreadable = sum(len(one.problems) for one in loaded)
    if not unreadable:
        return Answer({"findings": rows}, show, int(failed))
    problems = "1 problem" if unreadable == 1 else f"{unreadable:,} problems"
    error = f"{problems} to correct before the golden set can be used (code unreadable)"
    return Answer({"findings": rows}, show, UsageError.exit_code, error)


@click.command()
@questions_argument
@match_flag
@flag("--run RUN", "Make wrong replies from the passing replies of this run.")
@gate_flag
@flag("-o, --output", "File for the proposed changes of weak questions (.jsonl).", type=FILE)
@flag("--bots-only", "Score the trivial bots only; do not try wrong replies.", is_flag=True)
@flag("--max-floor F", "Exit with code 1 if the floor is above F.", type=click.FloatRange(0, 1))
@answers
def audit(
    questions: Path | None,
    match: str | None,
    run: str | None,
    gates: tuple[str, ...],
    output: Path | None,
    bots_only: bool,
    max_floor: float | None,
) -> Answer:
    """Test the answer key: would wrong replies pass, and what do trivial bots score?

    Wrong replies are made from good ones: another figure, date or name, the reply to a similar question, no answer at
    all. A question is strong if it refuses all of them; the strength is the share of strong questions. The floor is the
    best score of bots that know no answer. Gates: strength, floor, always_wrong_score.

    \b
    Examples:
      answerkey audit golden.jsonl
      answerkey audit golden.jsonl --run latest --gate "strength >= 0.9" --gate "floor <= 0.65"
      answerkey audit golden.jsonl -o proposals.jsonl
    """
    from answerkey.datasets.golden_sets import question_row
    from answerkey.report.command_results import audit_sheet
    from answerkey.report.terminal import print_sheet
    from answerkey.runs.audit import audit_document, audit_gates, audit_questions, proposed_questions
    from answerkey.runs.context import golden_set, with_truth
    from answerkey.runs.stored import recorded_trials

    settings = load_settings()
    chosen, _ = with_truth(golden_set(questions, settings), settings)
    _check_rows_output(output, [Path(chosen.path)] if chosen.path else [])
    if max_floor is not None:
        gates = (*gates, f"floor <= {max_floor:g}")
    trials = [] if run is None else recorded_trials(settings, run, chosen)
    result = audit_questions(
        chosen, scoring_for(settings, match), settings, trials=trials, bots_only=bots_only
    )
    if output is not None:
        proposed = [question_row(question) for question in proposed_questions(result, chosen)]
        _write_rows(output, proposed, count(len(proposed), "changed question"))
    results = audit_gates(result, gates)
    document = audit_document(result) | {"gates": [msgspec.to_builtins(gate) for gate in results]}

    def show() -> None:
        print_sheet(audit_sheet(result, len(chosen)))
        print_gates(results)

    return Answer(document, show, int(not all(gate.passed for gate in results)))


def _check_rows_output(output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse a file of rows that is not JSON Lines, or that would overwrite an input."""
    from answerkey.report.result_files import refuse_to_overwrite

    if output is not None:
        if output.suffix.lower() not in (".jsonl", ".ndjson"):
            raise UsageError(f"-o {output}: write to a .jsonl file")
        refuse_to_overwrite(output, inputs)


def _write_rows(output: Path, rows: Iterable[object], what: str) -> None:
    """Write rows as JSON Lines; `what` they are is printed to stderr."""
    from answerkey.report.result_files import atomic_file

    with atomic_file(output) as stream:
        stream.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    if what:
        _print_written(what, output, [])


@click.command()
@questions_argument
@flag("--twin FOLDER", "Copy the data with other figures, and write a golden set for it.", type=FILE)
@answers
def truth(questions: Path | None, twin: Path | None) -> Answer:
    """Compute the expectations of a golden set from its data, and check the preconditions; nothing is asked.

    Sources are configured under [truth.NAME], preconditions under [[world]]. Exits with code 3 if a precondition does
    not hold or a value is missing.

    \b
    Examples:
      answerkey truth
      answerkey truth golden.jsonl --json
      answerkey truth --twin twin/
    """
    if twin is not None:
        return _twin(questions, twin)
    from answerkey.report.command_results import print_truth
    from answerkey.runs.context import compute_truth, golden_set, truth_document

    settings = load_settings()
    resolved = compute_truth(golden_set(questions, settings), settings)
    code = 3 if resolved.problems else 0
    return Answer(truth_document(resolved), lambda: print_truth(resolved), code)


def _twin(questions: Path | None, folder: Path) -> Answer:
    """Write a changed copy of the data, and golden.jsonl with the new values."""
    from answerkey.datasets.golden_sets import question_row
    from answerkey.golden.truth import make_twin
    from answerkey.runs.context import golden_set

    if folder.exists():
        raise UsageError(f"--twin {folder}: exists already; name a new folder")
    settings = load_settings()
    twin = make_twin(golden_set(questions, settings), settings.truth, settings.folder, folder)
    output = folder / "golden.jsonl"
    _write_rows(output, map(question_row, twin.questions), "")
    document = {
        "questions": str(output),
        "files": [str(path) for path in twin.files],
        "columns": twin.columns,
        "changed": [msgspec.to_builtins(value) for value in twin.changed],
        "unchanged": twin.unchanged,
    }
    lines = [f"  {one.id}  {_plain(one.old)} → {_plain(one.new)}" for one in twin.changed]
    left_out = f", {len(twin.unchanged)} left out (no value of theirs changed)" if twin.unchanged else ""
    lines += [
        f"{len(twin.questions)} questions with other values in {output}{left_out}",
        f"next: point the chatbot at the data in {folder}, then `answerkey run {output}`",
    ]
    return Answer(document, for_terminal("\n".join(lines)), 0)


def _plain(value: object) -> str:
    """A value without digits that only floating point has."""
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


@click.command()
@inputs_argument("sources")
@flag("--questions", "Golden set (default: the configured one).", type=FILE)
@map_flag
@flag("--sql SELECT", "Read this query's rows of the database in SOURCES.", default="")
@flag("-o, --output", "File for the drafts (.jsonl).", type=FILE)
@store_flag
@answers
def draft(
    sources: tuple[Path, ...],
    questions: Path | None,
    fields: dict[str, str],
    sql: str,
    output: Path | None,
    store: str | None,
) -> Answer:
    """Compare real questions with a golden set, and draft cases for those that it lacks.

    SOURCES are logs that `score` reads, lists of questions (.md, .txt, CSV), a database with --sql, a run, `production`
    (stored replies to real users) or `feedback`. Drafts expect the tools that were called, and figures, dates and names
    that link to a tool result. Accept them one by one with `answerkey review --drafts FILE`.

    \b
    Examples:
      answerkey draft logs/*.jsonl --questions golden.jsonl -o drafts.jsonl
      answerkey draft production feedback -o drafts.jsonl
      answerkey draft sample-questions.md --json
      answerkey draft sqlite:///app.db --sql "SELECT query AS question, response FROM audit_log"
    """
    from answerkey.report.command_results import draft_sheet
    from answerkey.report.terminal import print_sheet
    from answerkey.runs.context import golden_set, with_truth
    from answerkey.runs.draft import draft_cases
    from answerkey.runs.production import QuestionSources
    from answerkey.transcripts.files import database_url

    _check_rows_output(output, [path for path in sources if path.is_file()])
    settings = load_settings()
    golden, _ = with_truth(golden_set(questions, settings), settings)
    texts = [database_url(path) or str(path) for path in sources]
    traffic = QuestionSources(texts, settings, sql=sql, fields=fields, store=store)
    drafted = draft_cases(traffic, golden, settings)
    if questions is None and not settings.questions:
        click.echo("note: compared with the golden set of the demo; add --questions FILE", err=True)
    if output is not None:
        _write_rows(output, drafted.drafts, count(len(drafted.drafts), "draft"))
    if traffic.unreadable:
        click.echo(
            for_terminal(f"note: {count(traffic.unreadable, 'row')} cannot be read: {traffic.problems[0]}"),
            err=True,
        )
    return Answer(msgspec.to_builtins(drafted), lambda: print_sheet(draft_sheet(drafted, golden)))


@click.command(name="import")
@click.argument("format_name", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@map_flag
@flag("-o, --output", "File to write (.jsonl; default: stdout).", type=FILE)
def import_(format_name: str, files: tuple[Path, ...], fields: dict[str, str], output: Path | None) -> None:
    """Convert another tool's files to JSON Lines that answerkey reads, and list what was not converted.

    FORMAT is promptfoo, deepeval, ragas, inspect, langsmith, langfuse, openai-evals, bfcl, tau2, hf (any table), beir
    (a dataset's folder or its files), list (Markdown or text, a question a bullet or line) or trec (qrels, a run,
    queries, recognised by their content). Files that contain
    replies become recorded replies with their expectations.

    \b
    Examples:
      answerkey import promptfoo promptfooconfig.yaml -o golden.jsonl
      answerkey import langsmith examples.jsonl --map question=inputs.text -o golden.jsonl
      answerkey import list questions.md -o golden.jsonl
      answerkey import beir scifact/ -o golden.jsonl
      answerkey import trec qrels.txt topics.txt -o golden.jsonl
      answerkey import trec qrels.txt results.txt -o replies.jsonl
    """
    from answerkey.plugins import importers
    from answerkey.report.result_files import atomic_file

    _check_rows_output(output, files)
    importer = importers.get(format_name)
    if fields and "fields" not in signature(importer).parameters:
        raise UsageError(f"{format_name} has fixed fields; remove --map")
    imported = importer(files, **({"fields": fields} if fields else {}))
    number = 0
    with nullcontext(sys.stdout.buffer) if output is None else atomic_file(output) as stream:
        for number, row in enumerate(imported.rows, start=1):  # noqa: B007  # it is printed below
            stream.write(msgspec.json.encode(row) + b"\n")
        stream.flush()
    _print_written(f"{number} {imported.kind}", output, imported.notes)


def _print_written(what: str, output: Path | None, notes: Iterable[str]) -> None:
    destination = "" if output is None else f" to {output}"
    click.echo(for_terminal(f"wrote {what}{destination}"), err=True)
    for note in notes:
        click.echo(for_terminal(f"note: {note}"), err=True)


@click.command()
@click.argument("format_name", metavar="FORMAT")
@questions_argument
@flag(
    "-o, --output",
    "File to write, or folder for a format of several files (default: stdout).",
    type=FILE,
)
def export(format_name: str, questions: Path | None, output: Path | None) -> None:
    """Convert a golden set to another format, and list what was not converted.

    FORMAT is jsonl (answerkey's own format, complete), csv (for spreadsheets), hf (Parquet), promptfoo, deepeval, ragas,
    inspect, langsmith, langfuse, openai-evals, bfcl, tau2, trec (qrels and queries) or beir (a dataset's folder
    without its corpus).

    \b
    Examples:
      answerkey export jsonl golden.yaml -o golden.jsonl
      answerkey export csv golden.jsonl -o golden.csv
      answerkey export promptfoo golden.jsonl -o tests.yaml
      answerkey export beir golden.jsonl -o dataset/
    """
    from answerkey.plugins import exporters
    from answerkey.report.result_files import atomic_file, refuse_to_overwrite
    from answerkey.runs.context import golden_set

    make = exporters.get(format_name)
    golden = golden_set(questions, load_settings())
    exported = make(golden)
    for path, content in _destinations(exported.files, output, format_name):
        if path is None:
            sys.stdout.buffer.writelines(content)
            sys.stdout.buffer.flush()
            continue
        refuse_to_overwrite(path, [Path(golden.path)] if golden.path else [])
        with atomic_file(path) as file:
            file.writelines(content)
    _print_written(f"{exported.count} questions", output, exported.notes)


def _destinations(
    files: Mapping[str, Iterable[bytes]], output: Path | None, format_name: str
) -> Iterator[tuple[Path | None, Iterable[bytes]]]:
    """Where each file goes: one file to `output` (None: stdout), several into the folder `output`."""
    if len(files) == 1:
        [(name, content)] = files.items()
        ending = Path(name).suffix
        if output is not None and output.suffix.lower() != ending and not output.is_dir():
            raise UsageError(f"-o {output}: write to a {ending} file")
        yield output, content
        return
    if output is None:
        raise UsageError(f"{format_name} has several files; add -o FOLDER")
    for name, content in files.items():
        path = output / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {output}: cannot create the folder: {error.strerror or error}") from None
        yield path, content


_SCHEMAS = {
    "questions": "answerkey.datasets.golden_sets:question_schema",
    "config": "answerkey.config:settings_schema",
    "run": "answerkey.model.run_document:run_schema",
}


@click.command()
@click.argument("what", type=click.Choice(list(_SCHEMAS)))
def schema(what: str) -> None:
    """Print the JSON Schema of a golden case, of answerkey.toml, or of the run document.

    \b
    Examples:
      answerkey schema questions > golden.schema.json
      answerkey schema config > answerkey.schema.json
    """
    print_document(load_object(_SCHEMAS[what])())
