"""`answerkey feedback`: people's verdicts on replies, given here, imported from other tools, and added up."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import FILE, flag, opened_store, store_flag, with_store
from answerkey.cli.outcome import Answer, answers
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
    from answerkey.store.feedback_book import FeedbackBook, new_id
    from answerkey.store.question_list import QuestionList

    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"the comment has {len(comment):,} characters; at most {COMMENT_LIMIT:,} are kept")
    verdict = read_value(value)
    info = store.find_run(run)
    key = QuestionList(store).reply_key(info, question, trial)
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
    from answerkey.datasets.feedback_exports import Scale, read_feedback
    from answerkey.store.feedback_book import FeedbackBook

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
    from answerkey.store.feedback_book import FeedbackFilter
    from answerkey.store.feedback_sums import feedback_stats

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
    from answerkey.report.value_wording import percent, score_percent
    from answerkey.text.sanitise import one_line

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
