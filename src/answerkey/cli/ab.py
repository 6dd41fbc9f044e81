"""`answerkey ab`: two targets side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.cli.flags import JudgeFlags, asking_flags, fail_on_flag, flag, opened_store, questions_argument
from answerkey.cli.outcome import (
    Answer,
    answers,
    gates_with,
    print_gates,
    progress_for_terminal,
    stopped_like_ctrl_c,
    verdict_code,
)
from answerkey.config import Settings
from answerkey.errors import UsageError
from answerkey.model.options import Options

if TYPE_CHECKING:
    from answerkey.evaluation.experiment import Experiment
    from answerkey.judge.pairwise import Pairwise


@click.command()
@questions_argument
@flag("--a T", "The target that is in use.", "first")
@flag("--b T", "The target that might take its place.", "second")
@flag("--early-stop", "Stop as soon as the difference is shown; looking costs nothing.", is_flag=True)
@flag("--looks N", "Stop, if the difference is shown, at one of N planned looks.", type=click.IntRange(min=2))
@flag("--resume RUN", "Go on with an interrupted experiment: the id of either of its runs.")
@fail_on_flag
# Not `gates`: those of the configuration are for runs.
@flag("--gate EXPR", "A condition on b against a.", "conditions", multiple=True)
@answers
@asking_flags("A name: the runs are called N-a and N-b.")
def ab(
    questions: Path | None,
    first: str | None,
    second: str | None,
    early_stop: bool,
    looks: int | None,
    resume: str | None,
    fail_on: str | None,
    conditions: tuple[str, ...],
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Ask two targets the same questions, interleaved in random order, and say whether b is better than a.

    With --judge, a model grades the replies while they come in, as in run, and then says of each pair which is better;
    the judge's budget is shared out among the three. --budget counts both targets, and stops both after the same questions.

    \b
    Examples:
      answerkey ab golden.jsonl --a http://localhost:8000/chat --b http://localhost:8001/chat
      answerkey ab --a demo --b demo:flaky --early-stop --seed 7 --json
      answerkey ab --resume 4f2a
    """
    from answerkey.evaluation.api import ab as run_ab

    if resume is not None and not (questions is None and first is None and second is None):
        raise UsageError("--resume goes on as the experiment began; give neither questions nor targets")
    judge = _shared(judge, settings.judge.budget)
    pair_judge = judge.pair_judge(settings)
    with stopped_like_ctrl_c():
        experiment = run_ab(
            questions,
            first,
            second,
            msgspec.structs.replace(options, judge=judge.settings(settings.judge)),
            early_stop=early_stop,
            looks=looks or 0,
            resume=resume,
            gates=gates_with(fail_on, conditions),
            settings=settings,
            progress=progress_for_terminal(quiet=quiet),
        )
    judged: Pairwise | None = None
    if pair_judge is not None:
        from answerkey.evaluation.pair_judging import judge_runs
        from answerkey.evaluation.waiting import wait_for

        a, b = (run.info for run in experiment.runs)
        with opened_store(options.store) as store:
            judged = wait_for(judge_runs(store, a, b, pair_judge))
    document: dict[str, Any] = experiment.to_dict() | ({} if judged is None else {"judge": judged})
    code = verdict_code(experiment.verdict, fail_on, experiment.gates)
    return Answer(document, lambda: _show(experiment, judged), code)


def _show(experiment: "Experiment", judged: "Pairwise | None") -> None:
    """What the experiment found, and what a judge says of its pairs."""
    from answerkey.report.comparison_text import print_experiment
    from answerkey.report.judge_text import pairwise_lines

    print_experiment(experiment)
    if judged is not None:
        click.echo("\n".join(pairwise_lines(judged)))
    print_gates(experiment.gates)


def _shared(judge: JudgeFlags, configured: float | None) -> JudgeFlags:
    """The judge with the part of the budget that each has of those it judges for: the two runs, and the pairs."""
    budget = configured if judge.budget is None else judge.budget
    parts = 3 if judge.model else 2
    return msgspec.structs.replace(judge, budget=None if budget is None else budget / parts)
