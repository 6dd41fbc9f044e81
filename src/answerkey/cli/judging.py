"""`answerkey feedback` and `judge`: people's verdicts on replies, and model judges."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    JudgeFlags,
    answers,
    flag,
    gate_flag,
    grouped,
    judge_flags,
    opened_store,
    option,
    print_gates,
    shared,
    store_flag,
    with_store,
)
from answerkey.config import load_settings
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.model.judgement import FeedbackStats
    from answerkey.store.sql import SqlStore


@click.group()
def feedback() -> None:
    """Collect and summarise people's verdicts on replies.

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
@flag("--trial", "Trial of the question.", type=int, default=1, show_default=True)
@flag("--comment", "Reason for the verdict.", default="")
@flag("--author", "Who gives the verdict.")
@with_store()
@answers
def add(
    run: str, question: str, value: str, trial: int, comment: str, author: str | None, store: "SqlStore"
) -> Answer:
    """Rate the reply to a QUESTION (its id) in a RUN; VALUE is up, down or a number from 0 to 1.

    \b
    Example:
      answerkey feedback add latest address down --comment "wrong street"
    """
    from answerkey.model.judgement import COMMENT_LIMIT, Feedback, read_value
    from answerkey.store.database import now
    from answerkey.store.feedback import FeedbackStore, new_id
    from answerkey.store.questions import find_reply_key

    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"the comment has {len(comment):,} characters; the limit is {COMMENT_LIMIT:,}")
    verdict = read_value(value)
    info = store.find_run(run)
    key = find_reply_key(store, info, question, trial)
    stored, _ = FeedbackStore(store).add(
        Feedback(id=new_id(), created_at=now(), value=verdict, comment=comment, author=author, reply=key)
    )
    thumb = "up" if stored.positive else "down"
    return Answer(stored, f"stored: {thumb} for {question} in {info.name} ({info.id})")


@feedback.command("import")
@click.argument(
    "format_name", metavar="FORMAT", type=click.Choice(["jsonl", "langfuse", "langsmith", "phoenix"])
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@flag("--scale LOW-HIGH", "Range of the export's numbers, e.g. 1-5 (default 0-1).")
@flag(
    "--score NAME[=LOW-HIGH]",
    "Use only this score or column of the export, with its range (repeatable).",
    "scores",
    multiple=True,
)
@flag("--positive LABEL", "Label that counts as a thumb up (repeatable).", multiple=True)
@flag("--negative LABEL", "Label that counts as a thumb down (repeatable).", multiple=True)
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
    """Import verdicts from another tool's export (jsonl, langfuse, langsmith, phoenix); importing twice is harmless.

    \b
    Examples:
      answerkey feedback import langfuse scores.json
      answerkey feedback import jsonl ratings.csv --scale 1-5
      answerkey feedback import langfuse scores.json --score stars=1-5 --score thumb
    """
    from answerkey.datasets.conversion import Scale, read_feedback
    from answerkey.store.feedback import FeedbackStore

    low, high = (0.0, 1.0) if scale is None else _read_range("--scale", scale)
    reading = Scale(
        low=low,
        high=high,
        stated=scale is not None,
        positive=frozenset(positive),
        negative=frozenset(negative),
        scores=dict(map(_read_score, scores)),
    )
    rows = [verdict for path in files for verdict in read_feedback(path, format_name, reading)]
    verdicts = [verdict for verdict in rows if verdict is not None]
    with opened_store(store, create=True) as opened:
        new, changed, matched = FeedbackStore(opened).add_all(verdicts)
    figures = {
        "imported": new,
        "changed": changed,
        "matched": matched,
        "unmatched": len(verdicts) - matched,
        "skipped": len(rows) - len(verdicts),
    }
    text = f"{new} imported, {changed} changed; {matched} of {len(verdicts)} match replies in this store"
    if figures["skipped"]:
        text += f"; {figures['skipped']} skipped (not a person's verdict, or another score)"
    return Answer(figures, text)


@feedback.command()
@flag(
    "--queries", "Number of replies users got, if the store does not have them.", type=click.IntRange(min=1)
)
@flag("--since DAY", "First day, e.g. 2026-11-16.")
@flag("--until DAY", "Last day.")
@gate_flag
@with_store()
@answers
def stats(
    queries: int | None, since: str | None, until: str | None, gates: tuple[str, ...], store: "SqlStore"
) -> Answer:
    """Summarise feedback: satisfaction, feedback rate, categories, days, themes, agreement with the scores.

    \b
    Examples:
      answerkey feedback stats
      answerkey feedback stats --since 2026-11-01 --until 2026-11-30
      answerkey feedback stats --queries 12000 --json
      answerkey feedback stats --gate "satisfaction >= 0.8" --gate "satisfaction.low >= 0.7"
    """
    from answerkey.gates import GateSubject, evaluate_gates, parse_gate
    from answerkey.store.feedback import FeedbackFilter
    from answerkey.store.production import feedback_stats

    figures = feedback_stats(store, queries=queries, criteria=FeedbackFilter(since=since, until=until))
    subject = GateSubject(numbers=figures.gate_numbers)
    results = evaluate_gates([parse_gate(gate) for gate in gates], subject)
    notify = load_settings().notify
    if notify.configured:
        from answerkey.report.wording import feedback_notice, send_notice

        if (notice := feedback_notice(figures, results, notify)) is not None:
            for problem in send_notice(notice, notify):
                click.echo(f"answerkey: {problem}", err=True)
    document = msgspec.to_builtins(figures) | ({"gates": msgspec.to_builtins(results)} if gates else {})

    def show() -> None:
        _print_stats(figures)
        print_gates(results)

    return Answer(document, show, 0 if all(result.passed for result in results) else 1)


def _read_score(text: str) -> tuple[str, tuple[float, float] | None]:
    """A score's name and, if given, its range."""
    name, equals, scale = text.rpartition("=")
    return (name, _read_range("--score", scale)) if equals else (text, None)


def _read_range(option: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not ends[0] < ends[1]:
        raise UsageError(f"{option} {text!r}: write the lowest and the highest value, e.g. 1-5")
    return ends


def _print_stats(figures: "FeedbackStats") -> None:
    from answerkey.report.wording import percent, rate_range_text, score_percent
    from answerkey.text.normalise import one_line

    if not figures.feedback and not figures.reviews:
        click.echo(
            "no feedback yet; POST it to /api/feedback of `answerkey serve`, or use `answerkey feedback import`"
        )
        return
    click.echo(
        f"satisfaction   {percent(figures.satisfaction)}  ({figures.positive} of {figures.feedback} positive"
        f"{rate_range_text(figures.satisfaction_interval)})"
    )
    if figures.feedback_rate is None:
        click.echo(
            "feedback rate  –  (the number of replies is unknown; POST them to /api/replies, or use --queries)"
        )
    else:
        click.echo(f"feedback rate  {percent(figures.feedback_rate)}  (of {figures.queries:,} replies)")
    if figures.unmatched:
        click.echo(f"unmatched      {figures.unmatched} about replies that are not in this store")
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


@click.group()
def judge() -> None:
    """Calibrate, align and serve model judges.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge align latest --labels verdicts.jsonl --judge-rubric strict.toml
      answerkey judge serve --port 8081
    """


@judge.command()
@flag("--port", "Port; 0 picks a free one.", type=click.IntRange(0, 65535), default=8081)
@flag("--model FILE", ".gguf file to use instead of the bundled small model.", type=FILE)
@flag("--with-parent", "End when standard input does.", is_flag=True, hidden=True)
@flag("--threads", "CPU threads (default 1).", type=click.IntRange(1, 256), default=1)
def serve(port: int, model: Path | None, threads: int, with_parent: bool) -> int:
    """Serve a local judge on 127.0.0.1 with llama.cpp's OpenAI-compatible API; stop it with Ctrl-C.

    `--judge local` starts and stops one automatically. The small model is a weak judge; check its canaries.

    \b
    Examples:
      answerkey judge serve
      answerkey judge serve --model qwen2.5-7b-instruct.gguf --threads 8
    """
    from answerkey.judge.client import ADDRESS_PREFIX
    from answerkey.judge.client import serve as start

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
    # Joining llama.cpp's threads can block for ever, and they hold nothing that must be saved.
    os._exit(0)


class CalibrateFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `judge calibrate`, except those of the judge."""

    labels: Path | None = option(
        "--labels FILE",
        "People's verdicts: rows of id, trial and correct, verdict or score (default: feedback in the store).",
        type=FILE,
    )
    pass_mark: float | None = option(
        "--pass-mark",
        "Score from which the judge passes a reply (default: the run's).",
        type=click.FloatRange(0, 1),
    )
    base: str | None = option("--base RUN", "Another labelled run; corrects the change since it too.")
    base_labels: Path | None = option("--base-labels FILE", "Verdicts on --base.", type=FILE)
    within: float = option(
        "--within",
        "Target half-width of the corrected rate, to estimate how many more labels it needs (0.05 = ±5 points).",
        type=click.FloatRange(0, 0.5, min_open=True),
        default=0.05,
        show_default=True,
    )
    gate: tuple[str, ...] = option(
        "--gate EXPR",
        "Fail unless this holds: corrected.low >= 0.8, corrected_mean.value >= 0.7, change.low >= -0.02 (repeatable).",
        multiple=True,
    )
    sentences: tuple[Path, ...] = option(
        "--sentences FILE",
        "Calibrate groundedness instead, on replies with evidence and labelled sentences (repeatable).",
        type=FILE,
        multiple=True,
    )
    output: Path | None = option(
        "-o FILE", "With --sentences: write the file for [grounded] calibration.", "output", type=FILE
    )
    store: str | None = shared(store_flag)


@judge.command()
@click.argument("run", default="latest")
@grouped(CalibrateFlags, "flags")
@judge_flags
@answers
def calibrate(run: str, flags: CalibrateFlags, judge: JudgeFlags) -> Answer:
    """Compare a run's judge with people, and correct its pass rate accordingly.

    Label a random sample of the replies (`judge sample` draws it); the corrected rate then holds for all replies.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge calibrate production --gate "corrected.low >= 0.8" --json
      answerkey judge calibrate --sentences labelled.jsonl -o calibration.json
    """
    if flags.sentences:
        return _calibrate_sentences(flags.sentences, flags.output, judge)
    from answerkey.report.terminal_texts import calibration_lines
    from answerkey.report.wording import gate_words
    from answerkey.runs.judging import calibrate_stored, calibration_gates

    with opened_store(flags.store) as store:
        info = store.find_run(run)
        calibration = calibrate_stored(
            store,
            info,
            flags.labels,
            base=None if flags.base is None else store.find_run(flags.base),
            base_labels=flags.base_labels,
            pass_mark=flags.pass_mark,
            half_width=flags.within,
        )
    gates = calibration_gates(calibration, flags.gate)
    model = None if info.judge is None else info.judge.model
    document = {"run": info.id, "judge": model, **msgspec.to_builtins(calibration), "gates": gates}
    lines = [
        *calibration_lines(calibration, judge=str(model or "judge"), run=info.name),
        *(f"{'passed' if result.passed else 'FAILED'}  {gate_words(result)}" for result in gates),
    ]
    return Answer(document, "\n".join(lines), 0 if all(result.passed for result in gates) else 1)


@judge.command()
@click.argument("run", default="latest")
@flag("-n", "Number of replies.", "count", type=click.IntRange(1), default=50, show_default=True)
@flag("--seed", "Random seed.", type=int, default=0, show_default=True)
@flag("-o FILE", "File to write (.jsonl).", "output", type=FILE, required=True)
@with_store()
def sample(run: str, count: int, seed: int, output: Path, store: "SqlStore") -> None:
    """Draw a random sample of a judged RUN's replies for people to label, without the judge's verdicts.

    Fill in `correct` (true or false) in each row, then pass the file to `judge calibrate --labels`. A larger sample with
    the same seed contains the smaller one.

    \b
    Examples:
      answerkey judge sample latest -n 50 -o to_label.jsonl
    """
    from answerkey.judge.calibration import draw_to_label, judged_replies

    if output.exists():
        raise UsageError(f"{output} already exists, perhaps with labels; name another file")
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


@judge.command()
@click.argument("run", default="latest")
@flag(
    "--labels FILE",
    "People's verdicts, as for `judge calibrate` (default: feedback in the store).",
    type=FILE,
)
@judge_flags
@with_store()
@answers
def align(run: str, labels: Path | None, judge: JudgeFlags, store: "SqlStore") -> Answer:
    """Edit a judge's rubric until it agrees with people: show disagreements, then measure an edited rubric.

    Half of the labels are held out. The disagreements on the other half are listed, with the judge's reasons. With
    --judge-rubric, the labelled replies are graded by the edited rubric, and the agreement on the held-out labels is
    compared before and after. Every rubric is stored; `judge rubrics` lists them.

    \b
    Examples:
      answerkey judge align latest --labels verdicts.jsonl
      answerkey judge align latest --labels verdicts.jsonl --judge-rubric strict.toml
    """
    from answerkey.judge.session import Judge
    from answerkey.report.command_results import alignment_sheet
    from answerkey.report.terminal import print_sheet
    from answerkey.runs.judging import align_stored

    info = store.find_run(run)
    settings = load_settings()
    edited = None
    if judge.rubric is not None:
        chosen = judge.settings(info.options.judge if info.options.judge.models else settings.judge)
        edited = Judge(
            msgspec.structs.replace(chosen, claims=False), folder=settings.folder, prices=settings.prices
        )
    found, version = align_stored(store, info, labels, edited)
    record = info.judge
    assert record is not None  # align_stored refuses a run without a judge
    document = {
        "run": info.id,
        "judge": record.model,
        "rubric": record.rubric,
        "edited": None if version is None else version.rubric,
        **msgspec.to_builtins(found),
    }
    sheet = alignment_sheet(found, record, None if version is None else version.rubric, run=info.name)
    return Answer(document, lambda: print_sheet(sheet))


@judge.command()
@click.argument("version", required=False)
@flag("-o FILE", "Write this version as a rubric file (.json).", "output", type=FILE)
@with_store()
@answers
def rubrics(version: str | None, output: Path | None, store: "SqlStore") -> Answer:
    """List the rubrics of judged runs and of `judge align`; or show one VERSION (the beginning of its hash).

    \b
    Examples:
      answerkey judge rubrics
      answerkey judge rubrics 3f9a -o earlier.json
    """
    from answerkey.report.terminal_texts import rubric_lines
    from answerkey.runs.judging import stored_rubrics

    rows = list(stored_rubrics(store))
    if version is None:
        document = [
            {"run": info.id, "name": rubric.name, "hash": rubric.hash, "tried": tried}
            for info, rubric, tried in rows
        ]
        return Answer(document, "\n".join(rubric_lines(rows)))
    contents = {rubric.hash: rubric.content for _, rubric, _ in rows if rubric.hash.startswith(version)}
    if len(contents) != 1:
        what = "is ambiguous; use more of the hash" if contents else "is not in this store"
        raise UsageError(f"rubric version {version!r} {what}; list them with: answerkey judge rubrics")
    [content] = contents.values()
    if content is None:
        raise UsageError(f"rubric version {version!r} was stored by an older answerkey, without its content")
    text = msgspec.json.format(msgspec.json.encode(content)).decode()
    if output is None:
        return Answer(content, text)
    if output.exists():
        raise UsageError(f"{output} already exists; name another file")
    output.write_text(f"{text}\n", encoding="utf-8")
    return Answer(content, f"written to {output}; use it with: --judge-rubric {output}")


def _calibrate_sentences(paths: tuple[Path, ...], output: Path | None, flags: JudgeFlags) -> Answer:
    """Measure the groundedness model or judge on labelled sentences."""
    import asyncio

    from answerkey.judge.session import Judge
    from answerkey.runs.judging import calibrate_claims, calibrate_entailment

    if output is not None:
        from answerkey.report.result_files import refuse_to_overwrite

        refuse_to_overwrite(output, paths)
    settings = load_settings()
    judge_settings = flags.settings(settings.judge)
    if settings.scoring.grounded.model and not flags.model:
        measured = calibrate_entailment(paths, settings.scoring.grounded.model, settings.folder)
    elif judge_settings.models:
        measured = asyncio.run(
            calibrate_claims(paths, Judge(judge_settings, folder=settings.folder, prices=settings.prices))
        )
    else:
        raise UsageError("nothing measures groundedness; use --judge MODEL, or set [grounded] model")
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
    lines = [
        f"{measured.model}: {measured.in_words}",
        f"supported from {measured.threshold:.3g} on; {measured.unjudged} sentences without a verdict",
    ]
    if output is not None:
        lines.append(f'use it with: [grounded] calibration = "{output}"')
    return Answer(measured, "\n".join(lines))
