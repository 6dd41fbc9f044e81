"""`answerkey ab`: two targets side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import (
    AskingFlags,
    JudgeFlags,
    asking_flags,
    budget_flag,
    fail_on_flag,
    json_flag,
    judge_flags,
    margin_flag,
    opened_store,
    port_flag,
    questions_argument,
    store_flag,
)
from answerkey.cli.outcome import print_document, stopped_like_ctrl_c, verdict_code
from answerkey.config import load_settings
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.evaluation.experiment import Experiment
    from answerkey.judge.configured_judge import Judge
    from answerkey.judge.pairwise import Pairwise

__all__ = ["ab"]


@click.command()
@questions_argument
@click.option("--a", "first", metavar="T", help="The target that is in use.")
@click.option("--b", "second", metavar="T", help="The target that might take its place.")
@click.option(
    "--early-stop", is_flag=True, help="Stop as soon as the difference is shown; looking costs nothing."
)
@click.option(
    "--looks",
    type=click.IntRange(min=2),
    metavar="N",
    help="Stop, if the difference is shown, at one of N planned looks.",
)
@margin_flag
@click.option(
    "--resume", metavar="RUN", help="Go on with an interrupted experiment: the id of either of its runs."
)
@click.option("--name", metavar="N", help="A name: the runs are called N-a and N-b.")
@asking_flags
@budget_flag
@port_flag("--traces", 4318, "Receive the chatbots' OpenTelemetry spans and read their tool calls from them")
@port_flag("--proxy", 4319, "Record what passes between the chatbots and their models and MCP servers")
@fail_on_flag
@judge_flags
@store_flag
@json_flag
def ab(
    questions: Path | None,
    first: str | None,
    second: str | None,
    early_stop: bool,
    looks: int | None,
    margin: float | None,
    resume: str | None,
    name: str | None,
    asking: AskingFlags,
    budget: float | None,
    traces: int | None,
    proxy: int | None,
    fail_on: str | None,
    judge: JudgeFlags,
    store: str | None,
    as_json: bool,
) -> int:
    """Ask two targets the same questions, interleaved in random order, and say whether b is better than a.

    With --judge, a model grades the replies while they come in, as in run, and then says of each pair which is better;
    the judge's budget is shared out among the three. --budget counts both targets, and stops both after the same questions.

    \b
    Examples:
      answerkey ab golden.jsonl --a http://localhost:8000/chat --b http://localhost:8001/chat
      answerkey ab --a demo --b demo:flaky --early-stop --seed 7 --json
      answerkey ab --resume 4f2a
    """
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.evaluation.api import ab as run_ab

    if resume is not None and not (questions is None and first is None and second is None):
        raise UsageError("--resume goes on as the experiment began; give neither questions nor targets")
    settings = load_settings()
    judge = _shared(judge, settings.judge.budget)
    pair_judge = judge.pair_judge(settings)
    with stopped_like_ctrl_c():
        experiment = run_ab(
            questions,
            first,
            second,
            asking.options(
                settings,
                name=name,
                margin=margin,
                judge=judge.settings(settings.judge),
                store=store,
                budget=budget,
                traces=traces,
                proxy=proxy,
            ),
            early_stop=early_stop,
            looks=looks or 0,
            resume=resume,
            settings=settings,
            progress=progress_for_terminal(quiet=as_json),
        )
    _show(experiment, _judge_pairs(experiment, pair_judge, store), as_json)
    return verdict_code(experiment.verdict, fail_on)


def _judge_pairs(experiment: "Experiment", judge: "Judge | None", store: str | None) -> "Pairwise | None":
    """What the judge says of each pair; None without a judge."""
    if judge is None:
        return None
    from answerkey.evaluation.pair_judging import judge_runs
    from answerkey.evaluation.waiting import wait_for

    a, b = (run.info for run in experiment.runs)
    with opened_store(store) as opened:
        return wait_for(judge_runs(opened, a, b, judge))


def _show(experiment: "Experiment", judged: "Pairwise | None", as_json: bool) -> None:
    """What the experiment found, and what a judge says of its pairs."""
    if as_json:
        document = experiment.to_dict()
        if judged is not None:
            document["judge"] = judged
        print_document(document)
    else:
        from answerkey.report.comparison_text import print_experiment

        print_experiment(experiment)
        if judged is not None:
            from answerkey.report.judge_text import pairwise_lines

            click.echo("\n".join(pairwise_lines(judged)))


def _shared(judge: JudgeFlags, configured: float | None) -> JudgeFlags:
    """The judge with the part of the budget that each has of those it judges for: the two runs, and the pairs."""
    budget = configured if judge.budget is None else judge.budget
    parts = 3 if judge.model else 2
    return msgspec.structs.replace(judge, budget=None if budget is None else budget / parts)
