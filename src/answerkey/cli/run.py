"""`answerkey run`: ask a golden set, grade, keep, report."""

from pathlib import Path

import click

from answerkey.cli.flags import (
    AskingFlags,
    JudgeFlags,
    asking_flags,
    budget_flag,
    gate_flag,
    judge_flags,
    map_flag,
    margin_flag,
    port_flag,
    questions_argument,
    store_flag,
)
from answerkey.cli.outcome import ends_with_run
from answerkey.config import Settings
from answerkey.evaluation.progress import Progress
from answerkey.model.run import Run

__all__ = ["run"]


@click.command()
@questions_argument
@click.option(
    "--target", metavar="T", help="The chatbot: demo, http://…, file.py:function, cmd:PROGRAM, openai:MODEL …"
)
@click.option("--name", metavar="N", help="A name for the run, by which other commands find it.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="What else lists show it by, as release-12."
)
@map_flag
@asking_flags
@gate_flag
@click.option("--baseline", metavar="RUN", help="A run to compare with: an id, a name, latest …")
@click.option(
    "--confirm",
    type=int,
    metavar="K",
    help="Ask questions that flipped since the baseline K times more: one that then always fails is broken.",
)
@margin_flag
@budget_flag
@click.option(
    "--reuse",
    is_flag=True,
    default=None,
    help="Do not ask again what the last run of the same target was asked: use its replies.",
)
@judge_flags
@store_flag
@click.option(
    "--engine", metavar="E", help="Where the asking happens: local, ray, or one that a package brings."
)
@click.option(
    "--ray-address", metavar="HOST:PORT", help="The Ray cluster; the one of this machine otherwise."
)
@port_flag("--traces", 4318, "Receive the chatbot's OpenTelemetry spans and read its tool calls from them")
@port_flag("--proxy", 4319, "Record what passes between the chatbot and its models and MCP servers")
@ends_with_run("asking")
def run(
    questions: Path | None,
    target: str | None,
    name: str | None,
    tags: tuple[str, ...],
    fields: dict[str, str],
    asking: AskingFlags,
    gates: tuple[str, ...],
    baseline: str | None,
    confirm: int | None,
    margin: float | None,
    budget: float | None,
    reuse: bool | None,
    judge: JudgeFlags,
    store: str | None,
    engine: str | None,
    ray_address: str | None,
    traces: int | None,
    proxy: int | None,
    settings: Settings,
    progress: Progress,
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
    from answerkey.evaluation.api import evaluate

    options = asking.options(
        settings,
        name=name,
        tags=tags or None,
        map=fields or None,
        judge=judge.settings(settings.judge),
        gates=gates or None,
        baseline=baseline,
        confirm=confirm,
        margin=margin,
        budget=budget,
        reuse=reuse,
        store=store,
        engine=engine,
        ray_address=ray_address,
        traces=traces,
        proxy=proxy,
    )
    return evaluate(questions, target, options, settings=settings, progress=progress)
