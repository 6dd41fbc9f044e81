"""`answerkey judge`: calibrate judges against people, and serve the small one that needs no key."""

from pathlib import Path

import click

from answerkey.cli.flags import JudgeFlags, json_flag, judge_flags, opened_store, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["judge"]


@click.group()
def judge() -> None:
    """Calibrate and run model judges.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge serve --port 8081
    """


@judge.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8081, help="The port; 0 takes a free one.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A .gguf file instead of the small model.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input does.")
@click.option("--threads", type=click.IntRange(1, 256), default=1, help="Processor threads (1).")
def serve(port: int, model: Path | None, threads: int, with_parent: bool) -> int:
    """Serve a local judge on 127.0.0.1, with llama.cpp's OpenAI-compatible API, until it is stopped.

    `--judge local` starts and stops one by itself. The small model is a weak judge: see what its canaries say.

    \b
    Examples:
      answerkey judge serve
      answerkey judge serve --model qwen2.5-7b-instruct.gguf --threads 8
    """
    import os
    import signal
    import sys
    import threading

    from answerkey.judge.llama_server import ADDRESS_PREFIX
    from answerkey.judge.llama_server import serve as start

    _server, address = start(port=port, model=model, threads=threads)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    click.echo(f"{ADDRESS_PREFIX}{address}")
    click.echo(f"use it with: answerkey run --judge local-model --judge-base-url {address}")
    if with_parent:

        def wait_for_parent() -> None:
            sys.stdin.buffer.read()
            stop.set()

        threading.Thread(target=wait_for_parent, daemon=True).start()
    stop.wait()
    sys.stdout.flush()
    # Taking llama.cpp's threads down in order can wait for ever; they hold nothing that must be kept.
    os._exit(0)


@judge.command()
@click.argument("run", default="latest")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="People's verdicts: rows of id, trial and correct, verdict or score (default: the feedback in the store).",
)
@click.option(
    "--pass-mark", type=click.FloatRange(0, 1), help="The judge passes a reply from here on (the run's)."
)
@click.option(
    "--sentences",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Replies with evidence and labelled sentences: calibrates groundedness instead, by the model or judge in force.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --sentences: for [grounded] calibration.",
)
@judge_flags
@store_flag
@json_flag
def calibrate(
    run: str,
    labels: Path | None,
    pass_mark: float | None,
    sentences: tuple[Path, ...],
    output: Path | None,
    judge: JudgeFlags,
    store: str | None,
    as_json: bool,
) -> int:
    """Compare a run's judge with people, and correct its pass rate by what that shows.

    Label a random sample of the replies; thirty are a start. The corrected rate then holds for all of them.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge calibrate production --json
      answerkey judge calibrate --sentences labelled.jsonl -o calibration.json
    """
    if sentences:
        return _calibrate_sentences(sentences, output, judge, as_json=as_json)
    import msgspec

    from answerkey.errors import UsageError
    from answerkey.judge.calibration import calibrate as compared
    from answerkey.judge.calibration import judge_values
    from answerkey.judge.labels import labels_from_feedback, labels_from_file
    from answerkey.report.judge_text import calibration_lines
    from answerkey.store.feedback_book import FeedbackBook

    with opened_store(store) as opened:
        info = opened.find_run(run)
        mark = info.pass_mark if pass_mark is None else pass_mark
        found = judge_values(opened.results(info))
        if labels is not None:
            given = labels_from_file(labels, found, pass_mark=mark)
        else:
            replies = {
                (result.question.ask_hash, result.number): (result.question.id, result.number)
                for result in opened.results(info)
            }
            given = labels_from_feedback(FeedbackBook(opened).verdicts(info.id), replies)
            if not given.right:
                raise UsageError(
                    f"nobody has given a verdict on run {info.id} yet; give some with `answerkey review` or "
                    "`answerkey feedback`, or name a file with --labels"
                )
    calibration = compared(found, given, pass_mark=mark)
    if as_json:
        measured = msgspec.to_builtins(calibration)
        print_document({"run": info.id, "judge": info.judge.get("model"), **measured})
        return 0
    for line in calibration_lines(calibration, judge=str(info.judge.get("model") or "judge"), run=info.name):
        click.echo(line)
    return 0


def _calibrate_sentences(
    paths: tuple[Path, ...], output: Path | None, flags: JudgeFlags, *, as_json: bool
) -> int:
    """Measure whatever gives groundedness on labelled sentences."""
    import asyncio

    import msgspec

    from answerkey.config import load_settings
    from answerkey.errors import UsageError
    from answerkey.evaluation.labelled_sentences import calibrate_judge, calibrate_model
    from answerkey.judge.configured_judge import Judge

    settings = load_settings()
    judged_by = flags.settings(settings.judge)
    if settings.scoring.grounded.model and not flags.model:
        measured = calibrate_model(paths, settings.scoring.grounded.model, settings.folder)
    elif judged_by.models:
        measured = asyncio.run(calibrate_judge(paths, Judge(judged_by, folder=settings.folder)))
    else:
        raise UsageError("nothing gives groundedness; name a judge with --judge MODEL, or [grounded] model")
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
    if as_json:
        print_document(msgspec.to_builtins(measured))
        return 0
    click.echo(f"{measured.model}: {measured.in_words}")
    click.echo(f"supported from {measured.threshold:.3g} on; {measured.unjudged} sentences without a verdict")
    if output is not None:
        click.echo(f'use it with: [grounded] calibration = "{output}"')
    return 0
