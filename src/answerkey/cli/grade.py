"""`answerkey run`, `resume`, `score`, `rescore` and `faults`: grade a chatbot's replies, also with its tools broken."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    JudgeFlags,
    answers,
    asking_flags,
    budget_flag,
    conclude,
    ends_with_run,
    flag,
    gate_flag,
    grouped,
    inputs_argument,
    interruptible,
    json_flag,
    judge_flags,
    map_flag,
    match_flag,
    option,
    output_flag,
    print_document,
    progress_for_terminal,
    questions_argument,
    ray_address_flag,
    scoring_for,
    shared,
    store_flag,
)
from answerkey.config import Settings, load_settings
from answerkey.errors import TargetUnreachableError, UsageError
from answerkey.model.options import Options
from answerkey.model.run import Run
from answerkey.protocols import Progress
from answerkey.transcripts.files import shown_path

if TYPE_CHECKING:
    from answerkey.runs.log_rows import ResultForm
    from answerkey.runs.logs import LogScoring


@click.command()
@questions_argument
@flag(
    "--target T",
    "Chatbot: demo, http://…, file.py:function, cmd:PROGRAM, openai:MODEL … Several: one run each, and a ranking.",
    "targets",
    multiple=True,
)
@ends_with_run("asking")
@asking_flags(
    "Name of the run, for other commands.",
    flag("--tag TAG", "Tag the run, e.g. release-12 (repeatable).", "tags", multiple=True),
    map_flag,
    gate_flag,
    flag("--baseline RUN", "Compare with this run: an id, a name, latest …"),
    flag(
        "--allow-missing-baseline",
        "If the baseline does not exist, say so and pass the gates that need it: for the first run.",
        is_flag=True,
        default=None,
    ),
    flag(
        "--confirm K",
        "Ask questions that got worse since the baseline K more times; those that recover are flaky.",
        type=int,
    ),
    flag("--reuse", "Reuse replies from the last run of this target.", is_flag=True, default=None),
    flag("--engine E", "Engine: local, ray, or one from a plug-in."),
    ray_address_flag,
)
def run(
    questions: Path | None,
    target: str | None,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Ask a chatbot every question of a golden set, grade the replies and store them.

    `answerkey run demo` asks the built-in demo chatbot its bundled questions. Without QUESTIONS and --target, the
    configured ones are used; the demo only if nothing is configured, no gate or baseline is given and this is not a CI
    job.

    \b
    Examples:
      answerkey run demo
      answerkey run golden.jsonl --target http://localhost:8000/chat -o report.html
      answerkey run golden.jsonl --target bot.py:answer --repeat 3 --gate "score >= 0.85" --gate "error_rate < 0.02"
      answerkey run golden.jsonl --target http://localhost:8000/chat --traces
      answerkey run golden.jsonl --target bot.py:answer --baseline production --confirm 5 --gate "worse == 0"
      answerkey run golden.jsonl --target openai:gpt-4o-mini --target ollama:llama3.2 -o ranking.html
    """
    from answerkey.runs.api import evaluate

    options = msgspec.structs.replace(options, judge=judge.settings(settings.judge))
    return evaluate(questions, target, options, settings=settings, progress=progress)


@click.command()
@click.argument("run", default="latest")
@flag("--target T", "Chatbot, if the run asked a Python object.")
@flag("--wait", "If another process owns the run, wait until it ends.", is_flag=True)
@flag(
    "--accept-changes",
    "If the chatbot, golden set or scoring changed, start a new run with the replies that are still valid.",
    is_flag=True,
)
@budget_flag
@judge_flags
@store_flag
@ends_with_run("asking")
def resume(
    run: str,
    target: str | None,
    wait: bool,
    accept_changes: bool,
    budget: float | None,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Finish an interrupted run: ask the questions without a reply, and judge what was not judged.

    \b
    Examples:
      answerkey resume
      answerkey resume 4f2a --json
      answerkey resume 4f2a --budget 5.00
      answerkey resume production --accept-changes
    """
    from answerkey.runs.api import resume as resume_run

    return resume_run(
        run,
        target=target,
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress,
        wait=wait,
        accept_changes=accept_changes,
        budget=budget,
    )


class ScoreFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `score`, except those of the judge and of the output."""

    questions: Path | None = option("--questions", "Golden set, if the rows have no expectations.", type=FILE)
    fields: dict[str, str] = shared(map_flag)
    sql: str = option("--sql SELECT", "Read this query's rows of the database in REPLIES.", default="")
    match: str | None = shared(match_flag)
    keep: tuple[str, ...] = option(
        "--keep COLUMN", "Keep this column of the rows in every output (repeatable).", multiple=True
    )
    worst_first: bool = option(
        "--worst-first", "List the worst replies first in .csv and .xlsx.", is_flag=True
    )
    qrels: Path | None = option("--qrels", "Relevance judgements; REPLIES is then a TREC run.", type=FILE)
    metrics: str | None = option("--metrics NAMES", "With --qrels: measures, e.g. nDCG@10,P@5,AP,RR.")
    gates: tuple[str, ...] = shared(gate_flag)
    store: str | None = shared(store_flag)
    name: str | None = option("--name N", "Store the scored log as a run of this name.")
    processes: int | None = option(
        "--processes N",
        "Scoring processes (default: one per core; one for small logs).",
        type=click.IntRange(min=1),
    )
    engine: Literal["local", "ray"] = option(
        "--engine",
        "Score on this machine or on a Ray cluster.",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
    )
    ray_address: str | None = shared(ray_address_flag)


@click.command()
@inputs_argument("replies")
@grouped(ScoreFlags, "flags")
@judge_flags
@output_flag
@json_flag
def score(
    replies: tuple[Path, ...],
    flags: ScoreFlags,
    judge: JudgeFlags,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Grade replies that were recorded earlier, one object a line; the chatbot is not asked.

    REPLIES are files (also gzip and zstd), folders, quoted patterns, URLs (s3://…), - for standard input, or a database
    with --sql. Rows that cannot be scored are written to a side file (.bad.jsonl). After an interruption, run the same
    command again to continue.

    With --name, the scored log is stored as a run that can be shown and compared. A judge's answers are cached in the
    store, so each is paid for once.

    \b
    Examples:
      answerkey score replies.jsonl --questions golden.jsonl
      answerkey score replies.jsonl --judge gpt-4o-mini --judge-budget 2.00 --judge-price 0.15/0.60
      answerkey score report.json --questions golden.jsonl --map answer=response --map tools_used=checks.tools
      answerkey score logs/ -o scored.parquet
      answerkey score 'logs/2026-11-*.jsonl.gz' --name november
      answerkey score sqlite:///app.db --sql "SELECT query AS question, response, tools FROM audit_log"
      answerkey score results.txt --qrels qrels.txt --metrics nDCG@10,P@5,AP,RR
    """
    if flags.qrels is not None or flags.metrics is not None:
        if flags.questions is not None or outputs or flags.gates or flags.fields or flags.match is not None:
            raise UsageError(
                "--qrels evaluates a TREC run; it can only be combined with --metrics and --json"
            )
        return _score_trec_run(replies, flags.qrels, flags.metrics, as_json)
    settings = load_settings()
    _check_outputs(outputs, replies, flags.questions)

    def score_log() -> Run:
        from answerkey.runs.api import score_replies

        run = score_replies(
            replies,
            flags.questions,
            scoring_for(settings, flags.match),
            judge.settings(settings.judge),
            how=_log_scoring(replies, flags, outputs, as_json=as_json),
            fields=flags.fields,
            gates=flags.gates,
            store=flags.store,
            name=flags.name,
            settings=settings,
            progress=progress_for_terminal(quiet=as_json, doing="scoring"),
        )
        return msgspec.structs.replace(run, tables_worst_first=flags.worst_first)

    return conclude(score_log, outputs=outputs, as_json=as_json)


def _check_outputs(outputs: Sequence[Path], replies: Sequence[Path], questions: Path | None) -> None:
    """Refuse, before scoring, outputs that cannot be written or would overwrite the log or the golden set."""
    if not outputs:
        return
    from answerkey.report.result_files import check_output
    from answerkey.runs.log_files import log_files
    from answerkey.transcripts.files import remote_url

    given = [path for path in replies if remote_url(path) is None]
    golden = None if questions is None else str(questions.resolve())
    inputs = log_files(given, golden).paths
    for path in outputs:
        check_output(path, [*inputs, *([questions] if questions else [])])


def _log_scoring(
    replies: Sequence[Path], flags: ScoreFlags, outputs: Sequence[Path], *, as_json: bool
) -> "LogScoring":
    """How the log is scored; what is kept of each reply depends on the outputs."""
    from answerkey.runs.logs import LogScoring

    # The terminal shows the summary and the worst replies; JSON and rows are only written, tables with less in them; reports need
    # the trials.
    endings = {path.suffix for path in outputs} | ({".json"} if as_json else set())
    results: ResultForm = "nothing"
    if os.environ.get("GITHUB_ACTIONS") == "true" or endings - {".json", ".jsonl", ".parquet"}:
        results = "trials"
    elif endings:
        results = "table_lines" if endings == {".parquet"} else "lines"
    return LogScoring(
        processes=flags.processes,
        results=results,
        sql=flags.sql,
        keep=flags.keep,
        bad_rows=_bad_rows_path(replies, outputs),
        resumable=True,
        engine=flags.engine,
        ray_address=flags.ray_address,
    )


def _bad_rows_path(replies: Sequence[Path], outputs: Sequence[Path]) -> Path:
    """The side file: beside the first output, else in the current folder."""
    if outputs and outputs[0].parent.is_dir():
        path = outputs[0].parent / f"{outputs[0].name.split('.')[0]}.bad.jsonl"
        # An output of the same name would overwrite it.
        return path.with_suffix(".2.jsonl") if path in outputs else path
    return Path(f"{shown_path(replies[0]).name.split('.')[0].replace('*', '_') or 'replies'}.bad.jsonl")


def _score_trec_run(runs: tuple[Path, ...], qrels: Path | None, metrics: str | None, as_json: bool) -> int:
    from answerkey.runs.api import TREC_MEASURES, evaluate_trec_run

    if qrels is None:
        raise UsageError("--metrics needs relevance judgements; add --qrels FILE")
    if len(runs) != 1:
        raise UsageError("--qrels evaluates one TREC run at a time")
    document = evaluate_trec_run(runs[0], qrels, TREC_MEASURES if metrics is None else metrics)
    if as_json:
        print_document(document)
        return 0
    width = max(len(name) for name in document["metrics"])
    for name, value in document["metrics"].items():
        click.echo(f"{name:<{width}}  {value:.4f}")
    click.echo(f"over {document['queries']} queries in both files", nl=False)
    click.echo(
        f" ({document['queries_without_judgements']} of the run have no judgements, "
        f"{document['queries_not_retrieved']} with judgements are not in the run)"
    )
    return 0


@click.command()
@click.argument("run", default="latest")
@match_flag
@flag("--questions", "Use the expectations of this golden set.", type=FILE)
@flag("--recompute-truth", "Compute expectations from the data as it is now.", is_flag=True)
@flag(
    "--change-baseline",
    "Rescore the run even if it is a baseline that `answerkey baseline set` named.",
    is_flag=True,
)
@judge_flags
@store_flag
@ends_with_run("scoring")
def rescore(
    run: str,
    match: str | None,
    questions: Path | None,
    recompute_truth: bool,
    change_baseline: bool,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Score the stored replies of a run again, with the current configuration; the chatbot is not asked.

    The expectations are those stored with the run; --questions uses those of a file. The run keeps its id; its own gates
    and baseline decide the exit code, and its reports say when it was rescored. The scores of a baseline change only with
    --change-baseline.

    \b
    Examples:
      answerkey rescore latest --match smart
      answerkey rescore latest --judge gpt-4o-mini
      answerkey rescore 4f2a --questions golden-v2.jsonl --json
    """
    from answerkey.runs.api import rescore as rescore_run
    from answerkey.runs.context import golden_set

    return rescore_run(
        run,
        scoring=scoring_for(settings, match),
        questions=None if questions is None else golden_set(questions, settings),
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress,
        recompute_truth=recompute_truth,
        change_baseline=change_baseline,
    )


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


class FaultFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `faults` that are not those of a run."""

    target: str | None = option("--target T", "The chatbot.")
    kinds: tuple[str, ...] = option(
        "--kinds K,...",
        "Kinds of faults: error, timeout, empty, truncated, garbage, rate_limit, wrong_record, stale, injection (default: all).",
        callback=_names,
    )
    tools: tuple[str, ...] = option(
        "--tools N,...", "Tools to break (default: those that the clean replies used).", callback=_names
    )
    per_question: int = option(
        "--per-question K", "Faults for each question (default 1).", default=1, type=click.IntRange(min=1)
    )
    again: int = option(
        "--confirm K",
        "Ask each question that was not handled K more times with the same fault.",
        "again",
        default=0,
        type=click.IntRange(min=0),
    )
    conditions: tuple[str, ...] = option(
        "--gate EXPR",
        'Fail unless this holds, e.g. "resilience >= 0.8", "fabricated == 0", "landed >= 20" (repeatable).',
        "conditions",
        multiple=True,
    )
    resume: str | None = option("--resume RUN", "Resume an interrupted run: the id of either of its runs.")
    written: tuple[Path, ...] = option(
        "-o, --output",
        "Write a report: .html .md .json .junit.xml (repeatable).",
        "written",
        multiple=True,
        type=FILE,
    )


@click.command()
@questions_argument
@grouped(FaultFlags, "flags")
@answers
@asking_flags("Name of the run; its two runs are called N-clean and N-faulted.")
def faults(
    questions: Path | None,
    flags: FaultFlags,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Ask each question twice, clean and with a broken tool result, and decide what the chatbot makes of it.

    The answer key, the recorded calls and the evidence decide: recovered, honest, partial; fabricated, misled, remembered,
    looped, crashed, obeyed; unclear. Resilience is the share of the first three. A fault that did not reach the chatbot is
    not counted. With --proxy, any agent can be tested without a change.

    \b
    Examples:
      answerkey faults --target demo
      answerkey faults golden.jsonl --target http://localhost:8000/chat --proxy --gate "fabricated == 0"
      answerkey faults golden.jsonl --target file.py:bot --kinds error,empty --per-question 2 -o faults.html
      answerkey faults --resume 4f2a
    """
    from answerkey.report.command_results import check_fault_output, print_faults, write_faults
    from answerkey.runs.api import faults as run_faults

    if flags.resume is not None and not (questions is None and flags.target is None):
        raise UsageError("--resume cannot be combined with questions or --target")
    for path in flags.written:
        check_fault_output(path)
    with interruptible():
        result = run_faults(
            questions,
            flags.target,
            options,
            kinds=flags.kinds,
            tools=flags.tools,
            per_question=flags.per_question,
            confirm=flags.again,
            resume=flags.resume,
            gates=flags.conditions,
            judge=judge.settings,
            settings=settings,
            progress=progress_for_terminal(quiet=quiet),
        )
    for path in flags.written:
        write_faults(result, path)
    error, code = "", int(not all(gate.passed for gate in result.gates))
    if not result.summary.landed:
        reason = next(iter(result.not_landed), "no question was asked")
        error, code = f"no fault landed: {reason}", TargetUnreachableError.exit_code
    return Answer(result.to_dict(), lambda: print_faults(result), code, error)
