"""`answerkey feedback`: people's verdicts on replies, given here, imported from other tools, and added up."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.flags import FILE, JudgeFlags, flag, judge_flags, opened_store, store_flag, with_store
from answerkey.cli.outcome import Answer, answers
from answerkey.config import load_settings
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.model.feedback import FeedbackStats
    from answerkey.store.sql import SqlStore


@click.group()
def feedback() -> None:
    """Collect people's verdicts on replies and add them up.

    \b
    Examples:
      answerkey feedback add latest address up --comment "exactly right"
      answerkey feedback import langfuse scores.json
      answerkey feedback stats --json
    """


@feedback.command()
@click.argument("run")
@click.argument("question")
@click.argument("value")
@flag("--trial", "Which asking of the question.", type=int, default=1, show_default=True)
@flag("--comment", "Why.", default="")
@flag("--author", "Who says so.")
@with_store()
@answers
def add(
    run: str, question: str, value: str, trial: int, comment: str, author: str | None, store: "SqlStore"
) -> Answer:
    """Say whether the reply to a QUESTION (its id) in a RUN was good: VALUE is up, down or a number from 0 to 1.

    \b
    Example:
      answerkey feedback add latest address down --comment "wrong street"
    """
    from answerkey.model.feedback import COMMENT_LIMIT, Feedback, read_value
    from answerkey.store.database import now
    from answerkey.store.feedback import FeedbackBook, new_id
    from answerkey.store.questions import find_reply_key

    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"the comment has {len(comment):,} characters; at most {COMMENT_LIMIT:,} are kept")
    verdict = read_value(value)
    info = store.find_run(run)
    key = find_reply_key(store, info, question, trial)
    kept, _ = FeedbackBook(store).add(
        Feedback(id=new_id(), created_at=now(), value=verdict, comment=comment, author=author, reply=key)
    )
    thumb = "up" if kept.positive else "down"
    return Answer(kept, f"kept: {thumb} for {question} in {info.name} ({info.id})")


@feedback.command("import")
@click.argument(
    "format_name", metavar="FORMAT", type=click.Choice(["jsonl", "langfuse", "langsmith", "phoenix"])
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@flag("--scale LOW-HIGH", "The range of the export's numbers, as 1-5 (default 0-1).")
@flag(
    "--score NAME[=LOW-HIGH]",
    "Only this score (or column) of the export, with its range; may be given several times.",
    "scores",
    multiple=True,
)
@flag("--positive LABEL", "A label that counts as a thumb up.", multiple=True)
@flag("--negative LABEL", "A label that counts as a thumb down.", multiple=True)
@store_flag
@answers
def import_(
    format_name: str,
    files: tuple[Path, ...],
    scale: str | None,
    scores: tuple[str, ...],
    positive: tuple[str, ...],
    negative: tuple[str, ...],
    store: str | None,
) -> Answer:
    """Read verdicts from another tool's export (jsonl, langfuse, langsmith, phoenix); importing twice is harmless.

    \b
    Examples:
      answerkey feedback import langfuse scores.json
      answerkey feedback import jsonl ratings.csv --scale 1-5
      answerkey feedback import langfuse scores.json --score stars=1-5 --score thumb
    """
    from answerkey.datasets.feedback_files import Scale, read_feedback
    from answerkey.store.feedback import FeedbackBook

    low, high = (0.0, 1.0) if scale is None else _range("--scale", scale)
    reading = Scale(
        low=low,
        high=high,
        stated=scale is not None,
        positive=frozenset(positive),
        negative=frozenset(negative),
        scores=dict(map(_score, scores)),
    )
    read = [verdict for path in files for verdict in read_feedback(path, format_name, reading)]
    people = [verdict for verdict in read if verdict is not None]
    with opened_store(store, create=True) as opened:
        new, changed, matched = FeedbackBook(opened).add_all(people)
    figures = {
        "imported": new,
        "changed": changed,
        "matched": matched,
        "unmatched": len(people) - matched,
        "skipped": len(read) - len(people),
    }
    said = f"{new} imported, {changed} changed; {matched} of {len(people)} are about replies in this store"
    if figures["skipped"]:
        said += f"; {figures['skipped']} skipped (no person's verdict, or another score)"
    return Answer(figures, said)


@feedback.command()
@flag("--queries", "How many replies users got, if the store has not seen them.", type=click.IntRange(min=1))
@flag("--since DAY", "Only verdicts from this day on, as 2026-11-16.")
@flag("--until DAY", "Only verdicts up to this day.")
@with_store()
@answers
def stats(queries: int | None, since: str | None, until: str | None, store: "SqlStore") -> Answer:
    """Add up the feedback: satisfaction, feedback rate, by category and day, themes, agreement with the scores.

    \b
    Examples:
      answerkey feedback stats
      answerkey feedback stats --since 2026-11-01 --until 2026-11-30
      answerkey feedback stats --queries 12000 --json
    """
    from answerkey.store.feedback import FeedbackFilter
    from answerkey.store.production import feedback_stats

    figures = feedback_stats(store, queries=queries, wanted=FeedbackFilter(since=since, until=until))
    return Answer(figures, lambda: _show(figures))


def _score(given: str) -> tuple[str, tuple[float, float] | None]:
    """A score's name and, if it is given, its range."""
    name, equals, scale = given.rpartition("=")
    return (name, _range("--score", scale)) if equals else (given, None)


def _range(flag: str, scale: str) -> tuple[float, float]:
    low, _, high = scale.partition("-")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not ends[0] < ends[1]:
        raise UsageError(f"{flag} {scale!r}: write it as 1-5, the lowest and the highest value")
    return ends


def _show(figures: "FeedbackStats") -> None:
    from answerkey.report.wording import percent, score_percent
    from answerkey.text.normalise import one_line

    if not figures.feedback and not figures.reviews:
        click.echo(
            "no feedback yet; POST it to /api/feedback of `answerkey serve`, or `answerkey feedback import`"
        )
        return
    click.echo(
        f"satisfaction   {percent(figures.satisfaction)}  ({figures.positive} of {figures.feedback} positive)"
    )
    if figures.feedback_rate is None:
        click.echo("feedback rate  –  (no replies known; POST /api/replies, or give --queries)")
    else:
        click.echo(f"feedback rate  {percent(figures.feedback_rate)}  (of {figures.queries:,} replies)")
    if figures.unmatched:
        click.echo(f"unmatched      {figures.unmatched} about replies that this store does not know")
    if figures.reviews:
        click.echo(f"reviews        {figures.reviews_trusted} of {figures.reviews} trusted")
    for part in figures.categories:
        click.echo(f"  {one_line(part.category, 30):<30} {percent(part.satisfaction):>7}  ({part.feedback})")
    for theme in figures.themes:
        click.echo(f"  “{one_line(theme.words, 40)}” in {theme.comments} comments, {theme.negative} negative")
    agreement = figures.agreement
    if agreement.correlation is not None and agreement.low is not None and agreement.high is not None:
        click.echo(
            f"agreement      correlation with the scores {agreement.correlation:+.2f} "
            f"({agreement.low:+.2f} to {agreement.high:+.2f}, {agreement.pairs} replies); mean score "
            f"{score_percent(agreement.mean_score_positive)} where liked, "
            f"{score_percent(agreement.mean_score_negative)} where not"
        )


# `answerkey judge`: calibrate judges against people, and serve the small one that needs no key.


@click.group()
def judge() -> None:
    """Calibrate and run model judges.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge serve --port 8081
    """


@judge.command()
@flag("--port", "The port; 0 takes a free one.", type=click.IntRange(0, 65535), default=8081)
@flag("--model FILE", "A .gguf file instead of the small model.", type=FILE)
@flag("--with-parent", "End when standard input does.", is_flag=True, hidden=True)
@flag("--threads", "Processor threads (1).", type=click.IntRange(1, 256), default=1)
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
@flag(
    "--labels FILE",
    "People's verdicts: rows of id, trial and correct, verdict or score (default: the feedback in the store).",
    type=FILE,
)
@flag("--pass-mark", "The judge passes a reply from here on (the run's).", type=click.FloatRange(0, 1))
@flag("--base RUN", "Another labelled run: the change since it is corrected too.")
@flag("--base-labels FILE", "Its verdicts.", type=FILE)
@flag(
    "--within",
    "How narrow the corrected rate shall be, for how many more labels are needed (0.05: ± 5 points).",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
)
@flag(
    "--gate EXPR",
    "A condition on corrected numbers: corrected.low >= 0.8, corrected_mean.value >= 0.7, change.low >= -0.02.",
    multiple=True,
)
@flag(
    "--sentences FILE",
    "Replies with evidence and labelled sentences: calibrates groundedness instead, by the model or judge in force.",
    type=FILE,
    multiple=True,
)
@flag("-o FILE", "With --sentences: for [grounded] calibration.", "output", type=FILE)
@judge_flags
@store_flag
@answers
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
) -> Answer:
    """Compare a run's judge with people, and correct its pass rate by what that shows.

    Label a random sample of the replies (`judge sample` draws it). The corrected rate then holds for all of them.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge calibrate production --gate "corrected.low >= 0.8" --json
      answerkey judge calibrate --sentences labelled.jsonl -o calibration.json
    """
    if sentences:
        return _calibrate_sentences(sentences, output, judge)
    from answerkey.report.terminal_texts import calibration_lines
    from answerkey.report.wording import gate_words
    from answerkey.runs.judging import calibrate_stored, calibration_gates

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
    judged_by = None if info.judge is None else info.judge.model
    document = {"run": info.id, "judge": judged_by, **msgspec.to_builtins(calibration), "gates": gates}
    lines = [
        *calibration_lines(calibration, judge=str(judged_by or "judge"), run=info.name),
        *(f"{'passed' if result.passed else 'FAILED'}  {gate_words(result)}" for result in gates),
    ]
    return Answer(document, "\n".join(lines), 0 if all(result.passed for result in gates) else 1)


@judge.command()
@click.argument("run", default="latest")
@flag("-n", "How many replies.", "count", type=click.IntRange(1), default=50, show_default=True)
@flag("--seed", "Another seed draws others (0).", type=int, default=0)
@flag("-o FILE", "A .jsonl file.", "output", type=FILE, required=True)
@with_store()
def sample(run: str, count: int, seed: int, output: Path, store: "SqlStore") -> None:
    """Draw replies of a judged RUN at random for people to label; the judge's verdict is not shown to them.

    Fill in `correct` (true or false) in each row, then give the file to `judge calibrate --labels`. A larger sample of the same
    seed holds the smaller one.

    \b
    Examples:
      answerkey judge sample latest -n 50 -o to_label.jsonl
    """
    from answerkey.judge.calibration import draw_to_label, judged_replies

    if output.exists():
        raise UsageError(f"{output} is there already, perhaps with labels in it; name another file")
    info = store.find_run(run)
    judged = judged_replies(store.results(info), pass_mark=info.pass_mark)
    drawn = dict.fromkeys(draw_to_label(judged, count, seed=seed))
    rows = {
        (result.question.id, result.number): {
            "id": result.question.id,
            "trial": result.number,
            "question": result.question.question,
            "reference_answer": result.question.reference_answer,
            "reply": result.reply.text,
            "correct": None,
        }
        for result in store.results(info)
        if (result.question.id, result.number) in drawn
    }
    output.write_bytes(b"".join(msgspec.json.encode(rows[key]) + b"\n" for key in drawn))
    click.echo(
        f"{len(rows)} replies drawn; fill in `correct`, then: answerkey judge calibrate {run} --labels {output}"
    )


def _calibrate_sentences(paths: tuple[Path, ...], output: Path | None, flags: JudgeFlags) -> Answer:
    """Measure whatever gives groundedness on labelled sentences."""
    import asyncio

    from answerkey.judge.session import Judge
    from answerkey.runs.judging import calibrate_claims, calibrate_entailment

    if output is not None:
        from answerkey.report.files import refuse_to_overwrite

        refuse_to_overwrite(output, paths)
    settings = load_settings()
    judged_by = flags.settings(settings.judge)
    if settings.scoring.grounded.model and not flags.model:
        measured = calibrate_entailment(paths, settings.scoring.grounded.model, settings.folder)
    elif judged_by.models:
        measured = asyncio.run(
            calibrate_claims(paths, Judge(judged_by, folder=settings.folder, prices=settings.prices))
        )
    else:
        raise UsageError("nothing gives groundedness; name a judge with --judge MODEL, or [grounded] model")
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
    lines = [
        f"{measured.model}: {measured.in_words}",
        f"supported from {measured.threshold:.3g} on; {measured.unjudged} sentences without a verdict",
    ]
    if output is not None:
        lines.append(f'use it with: [grounded] calibration = "{output}"')
    return Answer(measured, "\n".join(lines))
