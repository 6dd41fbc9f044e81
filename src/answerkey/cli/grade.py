"""`answerkey run`: ask a golden set, grade, keep, report."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from answerkey.cli.flags import (
    FILE,
    JudgeFlags,
    asking_flags,
    budget_flag,
    flag,
    gate_flag,
    json_flag,
    judge_flags,
    map_flag,
    match_flag,
    output_flag,
    questions_argument,
    scoring_for,
    store_flag,
)
from answerkey.cli.outcome import conclude, ends_with_run, print_document, stopped_like_ctrl_c
from answerkey.config import Settings, load_settings
from answerkey.errors import UsageError
from answerkey.model.options import Options
from answerkey.model.run import Run
from answerkey.runs.progress import Progress
from answerkey.transcripts.files import shown_path

if TYPE_CHECKING:
    from answerkey.runs.logs import Kept, LogScoring
    from answerkey.runs.progress import Progress


@click.command()
@questions_argument
@flag("--target T", "The chatbot: demo, http://…, file.py:function, cmd:PROGRAM, openai:MODEL …")
@ends_with_run("asking")
@asking_flags(
    "A name for the run, by which other commands find it.",
    flag("--tag TAG", "What else lists show it by, as release-12.", "tags", multiple=True),
    map_flag,
    gate_flag,
    flag("--baseline RUN", "A run to compare with: an id, a name, latest …"),
    flag(
        "--confirm K",
        "Ask questions that flipped since the baseline K times more: one that then always fails is broken.",
        type=int,
    ),
    flag(
        "--reuse",
        "Do not ask again what the last run of the same target was asked: use its replies.",
        is_flag=True,
        default=None,
    ),
    flag("--engine E", "Where the asking happens: local, ray, or one that a package brings."),
    flag("--ray-address HOST:PORT", "The Ray cluster; the one of this machine otherwise."),
)
def run(
    questions: Path | None,
    target: str | None,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    progress: "Progress",
) -> Run:
    """Ask a chatbot every question of a golden set, grade the replies and keep them.

    Without arguments, the bundled questions are asked of the embedded reference chatbot.

    \b
    Examples:
      answerkey run
      answerkey run golden.jsonl --target http://localhost:8000/chat -o report.html
      answerkey run golden.jsonl --target bot.py:answer --repeat 3 --gate "score >= 0.85" --gate "error_rate < 0.02"
      answerkey run golden.jsonl --target http://localhost:8000/chat --traces
      answerkey run golden.jsonl --target bot.py:answer --baseline production --confirm 5 --gate "broken == 0"
    """
    from answerkey.runs.api import evaluate

    options = msgspec.structs.replace(options, judge=judge.settings(settings.judge))
    return evaluate(questions, target, options, settings=settings, progress=progress)


# `answerkey resume`: ask only what a run is missing.


@click.command()
@click.argument("run", default="latest")
@flag("--target T", "The chatbot, if the run asked a Python object that has no name.")
@flag("--wait", "If another process is asking the run, wait for its end.", is_flag=True)
@flag(
    "--accept-changes",
    "If the chatbot, the golden set or the scoring has changed, make a new run from the replies that still hold.",
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
    """Ask the questions of a run that have no reply yet; judge what is not judged.

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


# `answerkey score`: grade recorded replies.


@click.command()
@click.argument("replies", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="REPLIES...")
@click.option("--questions", type=FILE, help="The golden set, where rows carry no expectations.")
@map_flag
@match_flag
@click.option("--qrels", type=FILE, help="Judgements: REPLIES is then a TREC run.")
@click.option("--metrics", metavar="NAMES", help="With --qrels: measures, as nDCG@10,P@5,AP,RR.")
@gate_flag
@judge_flags
@store_flag
@click.option("--name", help="Keep the scored log in the store as a run of this name.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Processes that score; by default one for every core, and one alone for a small log.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the scoring happens: on this machine, or on a Ray cluster.",
)
@click.option(
    "--ray-address", metavar="HOST:PORT", help="The Ray cluster; the one of this machine otherwise."
)
@output_flag
@json_flag
def score(
    replies: tuple[Path, ...],
    questions: Path | None,
    fields: dict[str, str],
    match: str | None,
    qrels: Path | None,
    metrics: str | None,
    gates: tuple[str, ...],
    judge: JudgeFlags,
    store: str | None,
    name: str | None,
    processes: int | None,
    engine: Literal["local", "ray"],
    ray_address: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Grade replies that were recorded earlier, one object a line; the chatbot is not asked.

    REPLIES are files (also gzip and zstd), folders, patterns in quotes, addresses (s3://…), or - for standard input. A row
    that cannot be scored goes to a side file (.bad.jsonl). Interrupted, the same command goes on where it stopped.

    With --name, the scored log is kept as a run that can be shown and compared. With a judge, its answers are kept in the
    store, so that each is paid for once.

    \b
    Examples:
      answerkey score replies.jsonl --questions golden.jsonl
      answerkey score replies.jsonl --judge gpt-4o-mini --judge-budget 2.00 --judge-price 0.15/0.60
      answerkey score report.json --questions golden.jsonl --map answer=response --map tools_used=checks.tools
      answerkey score logs/ -o scored.parquet
      answerkey score 'logs/2026-11-*.jsonl.gz' --name november
      answerkey score results.txt --qrels qrels.txt --metrics nDCG@10,P@5,AP,RR
    """
    if qrels is not None or metrics is not None:
        if questions is not None or outputs or gates or fields or match is not None:
            raise UsageError("--qrels evaluates a TREC run alone; it takes --metrics and --json only")
        return _score_trec_run(replies, qrels, metrics, as_json)
    settings = load_settings()
    _check_outputs(outputs, replies, questions)
    how = _log_scoring(replies, outputs, processes, engine, ray_address, as_json=as_json)
    from answerkey.cli.outcome import progress_for_terminal
    from answerkey.runs.api import score_replies

    # Own scorers and Ray may print; standard output belongs to what is concluded.
    with stopped_like_ctrl_c(), redirect_stdout(sys.stderr):
        scored = score_replies(
            replies,
            questions,
            scoring_for(settings, match),
            judge.settings(settings.judge),
            how=how,
            fields=fields,
            gates=gates,
            store=store,
            name=name,
            settings=settings,
            progress=progress_for_terminal(quiet=as_json, doing="scoring"),
        )
    return conclude(scored, outputs=outputs, as_json=as_json)


def _check_outputs(outputs: Sequence[Path], replies: Sequence[Path], questions: Path | None) -> None:
    """Refuse, before anything is scored, what could not be written or would overwrite the log or the golden set."""
    if not outputs:
        return
    from answerkey.report.files import check_output
    from answerkey.runs.log_files import log_files
    from answerkey.transcripts.files import remote_url

    # What is elsewhere is looked for once, when it is read.
    read = log_files(path for path in replies if remote_url(path) is None)
    for path in outputs:
        check_output(path, [*read, *([questions] if questions else [])])


def _log_scoring(
    replies: Sequence[Path],
    outputs: Sequence[Path],
    processes: int | None,
    engine: Literal["local", "ray"],
    ray_address: str | None,
    *,
    as_json: bool,
) -> "LogScoring":
    """How the log is scored: with what is kept of each reply for what will be shown or written of it."""
    from answerkey.runs.logs import LogScoring

    # The terminal shows the summary and the lowest; documents and rows are only written; anything else is read one by one.
    endings = {path.suffix for path in outputs} | ({".json"} if as_json else set())
    kept: Kept = "nothing"
    if os.environ.get("GITHUB_ACTIONS") == "true" or endings - {".json", ".jsonl", ".parquet"}:
        kept = "trials"
    elif endings:
        kept = "lines"
    return LogScoring(
        processes=processes,
        kept=kept,
        bad_rows=_bad_rows_path(replies, outputs),
        resumable=True,
        engine=engine,
        ray_address=ray_address,
    )


def _bad_rows_path(replies: Sequence[Path], outputs: Sequence[Path]) -> Path:
    """Beside the first output; without one, here."""
    if outputs and outputs[0].parent.is_dir():
        path = outputs[0].parent / f"{outputs[0].name.split('.')[0]}.bad.jsonl"
        # An output may have the very name, and is written later.
        return path.with_suffix(".2.jsonl") if path in outputs else path
    return Path(f"{shown_path(replies[0]).name.split('.')[0].replace('*', '_') or 'replies'}.bad.jsonl")


def _score_trec_run(runs: tuple[Path, ...], qrels: Path | None, metrics: str | None, as_json: bool) -> int:
    from answerkey.runs.trec_run import TREC_MEASURES, evaluate_trec_run

    if qrels is None:
        raise UsageError("--metrics needs the judgements: give them with --qrels FILE")
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
        f" ({document['queries_without_judgements']} of the run are not judged, "
        f"{document['queries_not_retrieved']} judged ones are not in the run)"
    )
    return 0


# `answerkey rescore`: new scores from stored replies.


@click.command()
@click.argument("run", default="latest")
@match_flag
@flag("--questions", "Score against this golden set's expectations instead.", type=FILE)
@judge_flags
@store_flag
@ends_with_run("scoring")
def rescore(
    run: str,
    match: str | None,
    questions: Path | None,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Score the stored replies of a run anew, under the scoring configured now; the chatbot is not asked again.

    \b
    Examples:
      answerkey rescore latest --match smart
      answerkey rescore latest --judge gpt-4o-mini
      answerkey rescore production --questions golden-v2.jsonl --json
    """
    from answerkey.datasets.golden_sets import read_questions
    from answerkey.runs.api import rescore as rescore_run

    return rescore_run(
        run,
        scoring=scoring_for(settings, match),
        questions=None if questions is None else read_questions(questions, registry=settings.scorer_registry),
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress,
    )
