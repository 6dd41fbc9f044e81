"""`answerkey run`: ask a golden set, grade, keep, report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import JudgeFlags, asking_flags, flag, gate_flag, map_flag, questions_argument
from answerkey.cli.outcome import ends_with_run
from answerkey.config import Settings
from answerkey.model.options import Options
from answerkey.model.run import Run

if TYPE_CHECKING:
    from answerkey.evaluation.waiting import Progress


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
    from answerkey.evaluation.api import evaluate

    options = msgspec.structs.replace(options, judge=judge.settings(settings.judge))
    return evaluate(questions, target, options, settings=settings, progress=progress)
