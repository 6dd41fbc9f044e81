"""`answerkey run`: ask a golden set, grade, keep, report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.asking_flags import AskingFlags, asking_flags
from answerkey.cli.options import (
    JudgeFlags,
    json_flag,
    judge_flags,
    output_flag,
    run_store_opener,
    store_flag,
    store_opener,
)

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore
    from answerkey.store.sqlite_file import SqliteFile

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
@click.option("--engine", type=click.Choice(["local"]), help="Where the asking happens.")
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
    from answerkey.evaluation.inputs import golden_set
    from answerkey.evaluation.live import ask_questions
    from answerkey.evaluation.waiting import wait_for
    from answerkey.gate import check_gates
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
    # Everything that can be wrong is found before the first question is asked.
    check_gates(options.gates, options.baseline, components=options.scoring.weights)
    for path in outputs:
        check_output(path)
    chosen = golden_set(questions, settings)
    opened = run_store_opener(settings, store)
    if options.baseline is not None:
        # By its id: after this run, `latest` is another one.
        with store_opener(settings, store)() as before:
            options = msgspec.structs.replace(options, baseline=before.find_run(options.baseline).id)
    stores: list[SqlStore | SqliteFile] = []

    def open_once() -> "SqlStore | SqliteFile":
        stores.append(opened())
        return stores[-1]

    try:
        finished = wait_for(
            ask_questions(
                chosen,
                target or settings.target or "demo",
                options,
                settings=settings,
                open_store=open_once,
                progress=progress_for_terminal(quiet=as_json),
            )
        )
        return conclude(
            finished,
            # Read from only where the run is compared with another.
            store=stores[0].full if options.baseline is not None else None,
            gates=options.gates,
            baseline=options.baseline,
            outputs=outputs,
            as_json=as_json,
        )
    finally:
        for opened_store in stores:
            opened_store.close()
