"""`answerkey review`: the same queue of borderline replies as the dashboard's, in the terminal."""

import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import flag, with_store
from answerkey.cli.outcome import Answer, answers

if TYPE_CHECKING:
    from answerkey.model.run import RunInfo
    from answerkey.store.review import ReviewItem, ReviewQueue
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("run", default="latest")
@flag("--list", "Only list what waits.", "only_list", is_flag=True)
@flag("--author", "Who judges.", default="terminal", show_default=True)
@with_store()
@answers
def review(run: str, only_list: bool, author: str, store: "SqlStore") -> Answer:
    """Judge the replies of a RUN that scored 40-70%, or where a judge disagrees with the score.

    In a terminal it shows one reply after the other and waits for a key; otherwise it lists them. Verdicts are kept as feedback
    of reviewers, for `answerkey judge calibrate` and `answerkey weights`.

    \b
    Examples:
      answerkey review
      answerkey review production --list
      answerkey review latest --json
    """
    from answerkey.store.review import ReviewQueue

    info = store.find_run(run)
    queue = ReviewQueue(store, info)
    waiting, done = queue.counts()
    items = queue.page(limit=10_000)

    def show() -> None:
        if only_list or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _list(info, items, done)
        else:
            with single_keys():
                _walk(store, queue, info, items, author)

    return Answer({"run": info.id, "waiting": waiting, "done": done, "queue": items}, show)


def _list(info: "RunInfo", items: "list[ReviewItem]", done: int) -> None:
    from answerkey.report.value_wording import score_percent
    from answerkey.text.sanitise import one_line

    click.echo(f"{len(items)} waiting, {done} done in {one_line(info.name, 60)} ({info.id})")
    for item in items:
        trial = f" trial {item.trial}" if item.trial > 1 else ""
        judge = f", judge {score_percent(item.judge)}" if item.judge is not None else ""
        click.echo(
            f"{score_percent(item.score):>6}  {one_line(item.question_id, 24):<24}{trial} "
            f"{one_line(item.question, 70)} ({item.reason}{judge})"
        )


def _walk(
    store: "SqlStore", queue: "ReviewQueue", info: "RunInfo", items: "list[ReviewItem]", author: str
) -> None:
    """One reply after the other, each judged by a key."""

    keys = Keys()
    judged: set[int] = set()
    comment = ""
    place = 0
    shown: int | None = None
    while place < len(items):
        item = items[place]
        if shown != place:
            _show(store, info, item, f"{place + 1} of {len(items)}")
            shown = place
        click.echo("t trust · d don't trust · c comment · s skip · b back · q quit ", nl=False)
        key = keys.next_of("tdcsbq")
        click.echo(key)
        if key in ("t", "d"):
            queue.judge(item.question_id, item.trial, trusted=key == "t", comment=comment, author=author)
            judged.add(place)
        elif key == "c":
            with single_keys(False):
                comment = click.prompt("comment", default="", show_default=False)
        elif key == "q":
            break
        if key in ("t", "d", "s", "b"):
            comment = ""
            place = max(0, place - 1) if key == "b" else place + 1
    left = len(items) - len(judged)
    click.echo(f"{len(judged)} judged, {left} waiting" if items else "nothing waits for a review")


def _show(store: "SqlStore", info: "RunInfo", item: "ReviewItem", place: str) -> None:
    from answerkey.report.detail import Limits
    from answerkey.report.terminal import make_console
    from answerkey.report.terminal_detail import print_trial
    from answerkey.report.value_wording import score_percent

    results = store.results_of(info, item.question_id, most=1000)
    judge = "" if item.judge is None else f", judge {score_percent(item.judge)}"
    click.echo(f"\n{place} · {item.reason}{judge}")
    chosen = next(found for found in results if found.number == item.trial)
    # Enough to judge it by: the rest is in `answerkey show --question`.
    limits = Limits(reply=4_000, tool_text=600, source_text=300, calls=10, sources=6)
    print_trial(chosen, make_console(None), limits)


# What arrow and function keys send: none of its letters is a key of ours.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?")


class Keys:
    """Reads standard input key by key, within `single_keys`."""

    def __init__(self) -> None:
        self._typed: deque[str] = deque()

    def next_of(self, meaningful: str) -> str:
        """The next key among these; others are passed over. Ctrl-C and Ctrl-D end the command."""
        while True:
            while not self._typed:
                self._typed.extend(_SEQUENCE.sub("", _read()).lower())
            key = self._typed.popleft()
            if key in ("\x03", "\x04"):
                raise click.Abort
            if key in meaningful:
                return key


@contextmanager
def single_keys(on: bool = True) -> Iterator[None]:
    """The terminal gives each key at once and shows none; with `on` false, whole lines again for a while."""
    try:
        import termios
    except ModuleNotFoundError:
        # Windows: click reads single keys by itself.
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    now = termios.tcgetattr(fd)
    flags = termios.ICANON | termios.ECHO
    now[3] = now[3] & ~flags if on else now[3] | flags
    # Drain, not flush: what was typed already counts.
    termios.tcsetattr(fd, termios.TCSADRAIN, now)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _read() -> str:
    """What was typed, at least one key."""
    if os.name == "nt":
        return click.getchar()
    typed = os.read(sys.stdin.fileno(), 1024)
    if not typed:
        raise click.Abort
    return typed.decode(errors="replace")
