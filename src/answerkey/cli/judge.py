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
@click.option("--base", metavar="RUN", help="Another labelled run: the change since it is corrected too.")
@click.option("--base-labels", type=click.Path(path_type=Path), metavar="FILE", help="Its verdicts.")
@click.option(
    "--within",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    help="How narrow the corrected rate shall be, for how many more labels are needed (0.05: ± 5 points).",
)
@click.option(
    "--gate",
    multiple=True,
    metavar="EXPR",
    help="A condition on corrected numbers: corrected.low >= 0.8, corrected_mean.value >= 0.7, change.low >= -0.02.",
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
    base: str | None,
    base_labels: Path | None,
    within: float,
    gate: tuple[str, ...],
    sentences: tuple[Path, ...],
    output: Path | None,
    judge: JudgeFlags,
    store: str | None,
    as_json: bool,
) -> int:
    """Compare a run's judge with people, and correct its pass rate by what that shows.

    Label a random sample of the replies (`judge sample` draws it). The corrected rate then holds for all of them.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge calibrate production --gate "corrected.low >= 0.8" --json
      answerkey judge calibrate --sentences labelled.jsonl -o calibration.json
    """
    if sentences:
        return _calibrate_sentences(sentences, output, judge, as_json=as_json)
    import msgspec

    from answerkey.evaluation.calibrating import calibrate_stored, calibration_gates
    from answerkey.report.judge_text import calibration_lines

    with opened_store(store) as opened:
        info = opened.find_run(run)
        calibration = calibrate_stored(
            opened,
            info,
            labels,
            base=None if base is None else opened.find_run(base),
            base_labels=base_labels,
            pass_mark=pass_mark,
            half_width=within,
        )
    gates = calibration_gates(calibration, gate)
    if as_json:
        measured = msgspec.to_builtins(calibration)
        shown = {"run": info.id, "judge": info.judge.get("model"), **measured}
        print_document({**shown, "gates": msgspec.to_builtins(gates)})
    else:
        judged_by = str(info.judge.get("model") or "judge")
        for line in calibration_lines(calibration, judge=judged_by, run=info.name):
            click.echo(line)
        from answerkey.report.value_wording import gate_words

        for result in gates:
            click.echo(f"{'passed' if result.passed else 'FAILED'}  {gate_words(result)}")
    return 0 if all(result.passed for result in gates) else 1


@judge.command()
@click.argument("run", default="latest")
@click.option("-n", "count", type=click.IntRange(1), default=50, show_default=True, help="How many replies.")
@click.option("--seed", type=int, default=0, help="Another seed draws others (0).")
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="FILE", required=True, help="A .jsonl file."
)
@store_flag
def sample(run: str, count: int, seed: int, output: Path, store: str | None) -> int:
    """Draw replies of a judged RUN at random for people to label; the judge's verdict is not shown to them.

    Fill in `correct` (true or false) in each row, then give the file to `judge calibrate --labels`. A larger sample of the same
    seed holds the smaller one.

    \b
    Examples:
      answerkey judge sample latest -n 50 -o to_label.jsonl
    """
    import msgspec

    from answerkey.errors import UsageError
    from answerkey.judge.calibration import draw_to_label, judged_replies

    if output.exists():
        raise UsageError(f"{output} is there already, perhaps with labels in it; name another file")
    with opened_store(store) as opened:
        info = opened.find_run(run)
        drawn = draw_to_label(
            judged_replies(opened.results(info), pass_mark=info.pass_mark), count, seed=seed
        )
        places = {key: place for place, key in enumerate(drawn)}
        rows: list[dict[str, object]] = [{} for _ in drawn]
        for result in opened.results(info):
            place = places.get((result.question.id, result.number))
            if place is not None:
                rows[place] = {
                    "id": result.question.id,
                    "trial": result.number,
                    "question": result.question.question,
                    "reference_answer": result.question.reference_answer,
                    "reply": result.reply.text,
                    "correct": None,
                }
    output.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    click.echo(
        f"{len(rows)} replies drawn; fill in `correct`, then: answerkey judge calibrate {run} --labels {output}"
    )
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
        measured = asyncio.run(
            calibrate_judge(paths, Judge(judged_by, folder=settings.folder, prices=settings.prices))
        )
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
