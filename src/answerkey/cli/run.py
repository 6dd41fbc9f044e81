"""`answerkey run`: ask a golden set, grade, keep, report."""

from pathlib import Path

import click

from answerkey.cli.flags import (
    AskingFlags,
    JudgeFlags,
    asking_flags,
    json_flag,
    judge_flags,
    output_flag,
    store_flag,
)

__all__ = ["run"]


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@click.option(
    "--target", metavar="T", help="The chatbot: demo, http://…, file.py:function, cmd:PROGRAM, openai:MODEL …"
)
@click.option("--name", metavar="N", help="A name for the run, by which other commands find it.")
@asking_flags
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help='A condition, as "score >= 0.85".')
@click.option("--baseline", metavar="RUN", help="A run to compare with: an id, a name, latest …")
@judge_flags
@store_flag
@click.option("--engine", metavar="E", help="Where the asking happens: local, or one that a package brings.")
@output_flag
@json_flag
def run(
    questions: Path | None,
    target: str | None,
    name: str | None,
    asking: AskingFlags,
    gates: tuple[str, ...],
    baseline: str | None,
    judge: JudgeFlags,
    store: str | None,
    engine: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Ask a chatbot every question of a golden set, grade the replies and keep them.

    Without arguments, the bundled questions are asked of the embedded reference chatbot.

    \b
    Examples:
      answerkey run
      answerkey run golden.jsonl --target http://localhost:8000/chat -o report.html
      answerkey run golden.jsonl --target bot.py:answer --repeat 3 --gate "score >= 0.85" --gate "error_rate < 0.02"
    """
    from answerkey.cli.outcome import conclude
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.config import load_settings
    from answerkey.evaluation.api import evaluate
    from answerkey.report.files import check_output

    settings = load_settings()
    options = asking.options(
        settings,
        name=name,
        judge=judge.settings(settings.judge),
        gates=gates or None,
        baseline=baseline,
        store=store,
        engine=engine,
    )
    for path in outputs:
        check_output(path)
    progress = progress_for_terminal(quiet=as_json)
    finished = evaluate(questions, target, options, settings=settings, progress=progress)
    return conclude(finished, outputs=outputs, as_json=as_json)
