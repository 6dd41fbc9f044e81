"""`answerkey review`: the same queue of borderline replies as the dashboard's, in the terminal."""

import sys
from typing import TYPE_CHECKING

import click

from answerkey.cli.options import json_flag, store_flag, store_opener

if TYPE_CHECKING:
    from answerkey.run import RunInfo
    from answerkey.store.browse import Browser
    from answerkey.store.review import ReviewItem
    from answerkey.store.sql import SqlStore

__all__ = ["review"]


@click.command()
@click.argument("run", default="latest")
@click.option("--list", "only_list", is_flag=True, help="Only list what waits.")
@click.option("--author", default="terminal", show_default=True, help="Who judges.")
@store_flag
@json_flag
def review(run: str, only_list: bool, author: str, store: str | None, as_json: bool) -> int:
    """Judge the replies of a RUN that scored 40-70%, or where a judge disagrees with the score.

    In a terminal it shows one reply after the other and asks; otherwise it lists them. Verdicts are kept as feedback
    of reviewers, for `answerkey judge calibrate` and `answerkey weights`.

    \b
    Examples:
      answerkey review
      answerkey review production --list
      answerkey review latest --json
    """
    from answerkey.config import load_settings
    from answerkey.store.review import ReviewQueue

    with store_opener(load_settings(), store)() as opened:
        info = opened.find_run(run)
        queue = ReviewQueue(opened, info)
        waiting, done = queue.counts()
        items = queue.page(limit=10_000)
        if as_json:
            import msgspec

            document = {"run": info.id, "waiting": waiting, "done": done, "queue": items}
            click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        elif only_list or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _list(info, items, done)
        else:
            _walk(opened, info, items, author)
    return 0


def _list(info: "RunInfo", items: "list[ReviewItem]", done: int) -> None:
    from answerkey.report.wording import score_percent
    from answerkey.text.sanitise import one_line

    click.echo(f"{len(items)} waiting, {done} done in {one_line(info.name, 60)} ({info.id})")
    for item in items:
        trial = f" trial {item.trial}" if item.trial > 1 else ""
        judge = f", judge {score_percent(item.judge)}" if item.judge is not None else ""
        click.echo(
            f"{score_percent(item.score):>6}  {one_line(item.question_id, 24):<24}{trial} "
            f"{one_line(item.question, 70)} ({item.reason}{judge})"
        )


def _walk(store: "SqlStore", info: "RunInfo", items: "list[ReviewItem]", author: str) -> None:
    from answerkey.feedback import Feedback
    from answerkey.store.browse import Browser
    from answerkey.store.feedback import FeedbackBook, new_id, now

    book, browser = FeedbackBook(store), Browser(store)
    for number, item in enumerate(items, start=1):
        _show(browser, info, item, f"{number} of {len(items)}")
        answer = click.prompt(
            "[t]rust, [d]on't trust, [s]kip, [q]uit", type=click.Choice(list("tdsq")), show_choices=False
        )
        if answer == "q":
            break
        if answer == "s":
            continue
        comment = click.prompt("why? (optional)", default="", show_default=False)
        key = browser.reply_key(info, item.question_id, item.trial)
        book.add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=1.0 if answer == "t" else 0.0,
                source="review",
                comment=comment,
                author=author,
                reply=key,
                idempotency_key=f"review:{author}:{key.run_id}:{key.ask_hash}:{key.trial}",
            )
        )
    else:
        click.echo("nothing waits for a review")


def _show(browser: "Browser", info: "RunInfo", item: "ReviewItem", place: str) -> None:
    from answerkey.report.losses import losses_of
    from answerkey.report.wording import score_percent
    from answerkey.text.sanitise import for_terminal

    result = next(
        found for found in browser.question(info, item.question_id, trials=1000) if found.trial == item.trial
    )
    click.echo(f"\n{place} · {item.reason} · {score_percent(item.score)} {item.grade or ''}")
    click.echo(f"question: {for_terminal(item.question)}")
    for reply in result.replies:
        said = "(no reply)" if reply.text is None else for_terminal(reply.text[:4000])
        click.echo(f"reply: {said}")
        if reply.tool_calls:
            click.echo(f"tools: {for_terminal(', '.join(reply.tools_used))}")
    if result.question.reference_answer:
        click.echo(f"reference: {for_terminal(result.question.reference_answer[:2000])}")
    for loss in losses_of(result.scorecard):
        click.echo(f"  - {loss}")
