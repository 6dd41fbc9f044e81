"""`answerkey ab`: two targets side by side."""

import sys
from pathlib import Path

import click
import msgspec

from answerkey.cli.flags import (
    AskingFlags,
    JudgeFlags,
    asking_flags,
    json_flag,
    judge_flags,
    store_flag,
)

__all__ = ["ab"]


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@click.option("--a", "first", metavar="T", help="The target that is in use.")
@click.option("--b", "second", metavar="T", help="The target that might take its place.")
@click.option(
    "--early-stop", is_flag=True, help="Stop as soon as the difference is shown; looking costs nothing."
)
@click.option(
    "--resume", metavar="RUN", help="Go on with an interrupted experiment: the id of either of its runs."
)
@click.option("--name", metavar="N", help="A name: the runs are called N-a and N-b.")
@asking_flags
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "inconclusive"]),
    help="Exit 1 if b is worse; with inconclusive also 4 if there is no clear difference.",
)
@judge_flags
@store_flag
@json_flag
def ab(
    questions: Path | None,
    first: str | None,
    second: str | None,
    early_stop: bool,
    resume: str | None,
    name: str | None,
    asking: AskingFlags,
    fail_on: str | None,
    judge: JudgeFlags,
    store: str | None,
    as_json: bool,
) -> int:
    """Ask two targets the same questions, interleaved in random order, and say whether b is better than a.

    With --judge, a model grades the replies while they come in, as in run, and then says of each pair which is better;
    a budget is shared out among the three.

    \b
    Examples:
      answerkey ab golden.jsonl --a http://localhost:8000/chat --b http://localhost:8001/chat
      answerkey ab --a demo --b demo:flaky --early-stop --seed 7 --json
      answerkey ab --resume 4f2a
    """
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.config import load_settings
    from answerkey.errors import UsageError
    from answerkey.evaluation.api import ab as run_ab
    from answerkey.evaluation.pairwise import judge_runs
    from answerkey.evaluation.stored import open_configured_store
    from answerkey.evaluation.waiting import wait_for
    from answerkey.report.comparison_text import print_experiment
    from answerkey.report.result_rows import encode

    if resume is not None and not (questions is None and first is None and second is None):
        raise UsageError("--resume goes on as the experiment began; give neither questions nor targets")
    settings = load_settings()
    judge = _shared(judge, settings.judge.budget)
    pair_judge = judge.pair_judge(settings)
    experiment = run_ab(
        questions,
        first,
        second,
        asking.options(settings, name=name, judge=judge.settings(settings.judge), store=store),
        early_stop=early_stop,
        resume=resume,
        settings=settings,
        progress=progress_for_terminal(quiet=as_json),
    )
    judged = None
    if pair_judge is not None:
        with open_configured_store(settings, store) as opened:
            a, b = (run.info for run in experiment.runs)
            judged = wait_for(judge_runs(opened, a, b, pair_judge))
    if as_json:
        document = experiment.to_dict()
        if judged is not None:
            document["judge"] = msgspec.to_builtins(judged)
        sys.stdout.buffer.write(encode(document) + b"\n")
    else:
        print_experiment(experiment)
        if judged is not None:
            from answerkey.report.pairwise_text import pairwise_lines

            click.echo("\n".join(pairwise_lines(judged)))
    if fail_on is not None and experiment.verdict == "worse":
        return 1
    if fail_on == "inconclusive" and experiment.verdict == "no clear difference":
        return 4
    return 0


def _shared(judge: JudgeFlags, configured: float | None) -> JudgeFlags:
    """The judge with the part of the budget that each has of those it judges for: the two runs, and the pairs."""
    budget = configured if judge.budget is None else judge.budget
    parts = 3 if judge.models else 2
    return msgspec.structs.replace(judge, budget=None if budget is None else budget / parts)
