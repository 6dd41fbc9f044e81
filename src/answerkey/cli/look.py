"""`answerkey show`: a stored run on the terminal."""

import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from answerkey.cli.flags import flag, json_flag, opened_store, output_flag, store_flag, with_store
from answerkey.cli.outcome import Answer, answers, print_document, print_run, print_run_document
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from answerkey.model.run import RunInfo
    from answerkey.model.summary import Summary
    from answerkey.store.review import ReviewItem, ReviewQueue
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("run", default="latest")
@flag("--failures", "Every question that failed, with its reasons.", is_flag=True)
@flag("--question ID", "One question in full: replies, tool calls, reasons.", "question_id")
@flag("--worst", "How many of the worst to list.", type=click.IntRange(min=0), default=10, show_default=True)
@with_store()
@json_flag
def show(
    run: str, failures: bool, question_id: str | None, worst: int, store: "SqlStore", as_json: bool
) -> None:
    """Show a run: by default the latest.

    \b
    Examples:
      answerkey show
      answerkey show latest~1 --failures
      answerkey show production --question rent-august
      answerkey show latest --json
    """
    from answerkey.report.terminal import make_console, print_failures, print_question
    from answerkey.report.view import failures_of, only_failures, only_question
    from answerkey.runs.verdicts import decided_run

    found = decided_run(store, run)
    if question_id is not None:
        found = only_question(found, question_id)
    if failures and as_json:
        found = only_failures(found)
    if as_json:
        print_run_document(found)
    elif question_id is not None:
        print_question(found, make_console())
    elif failures:
        print_failures(found.info, failures_of(found), make_console())
    else:
        print_run(found, worst=worst)


# `answerkey runs`: the runs of a store, listed, tagged and deleted.


_yes_flag = flag("--yes", "Do not ask first.", is_flag=True)
_days = click.FloatRange(min=0, min_open=True)


@click.group(invoke_without_command=True)
@flag("--limit", "How many to list, newest first.", type=click.IntRange(min=1), default=20, show_default=True)
@store_flag
@json_flag
@click.pass_context
def runs(context: click.Context, limit: int, store: str | None, as_json: bool) -> None:
    """List runs, the newest first; tag and delete them.

    \b
    Examples:
      answerkey runs
      answerkey runs --limit 100 --json
      answerkey runs rm before-the-fix
      answerkey runs prune --older-than 90 --keep 100
    """
    if context.invoked_subcommand is not None:
        return
    with opened_store(store) as opened:
        listed = opened.list_runs(limit=limit)
        total = opened.count_runs()
    if as_json:
        print_document({"runs": [_document(info, summary) for info, summary in listed]})
    else:
        from answerkey.report.terminal import print_runs

        print_runs(listed, total)


@runs.command("rm")
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@_yes_flag
@with_store()
def remove(references: tuple[str, ...], yes: bool, store: "SqlStore") -> None:
    """Delete runs with their replies, scores and verdicts; baselines and runs under way are refused.

    \b
    Examples:
      answerkey runs rm 4f2a
      answerkey runs rm latest latest~1 --yes
    """
    from answerkey.store.maintenance import delete_runs

    found = {info.id: info for info in map(store.find_run, references)}
    _ask_first(list(found.values()), yes)
    gone = delete_runs(store, list(found.values()))
    click.echo(f"deleted: {_count(gone.runs, 'run')}, {_count(gone.feedback, 'verdict')} on them")


@runs.command()
@flag("--older-than DAYS", "Runs that are older than this.", type=_days)
@flag("--keep N", "The newest so many stay in any case.", type=click.IntRange(min=0))
@flag("--production DAYS", "Production replies that are older than this, with their verdicts.", type=_days)
@flag("--dry-run", "Only say which runs would go.", is_flag=True)
@_yes_flag
@with_store()
@answers
def prune(
    older_than: float | None,
    keep: int | None,
    production: float | None,
    dry_run: bool,
    yes: bool,
    store: "SqlStore",
) -> Answer:
    """Delete what is old: runs, and what real users were told. Baselines, runs under way and those tagged keep stay.

    \b
    Examples:
      answerkey runs prune --older-than 90 --keep 100
      answerkey runs prune --keep 500 --dry-run
      answerkey runs prune --production 30 --yes
    """
    from answerkey.store.maintenance import delete_production, delete_runs, old_runs

    by_age = older_than is not None or keep is not None or production is None
    old = old_runs(store, older_than_days=older_than, keep=keep) if by_age else []
    if dry_run:
        return Answer({"would_go": [info.id for info in old]}, lambda: _say_which(old))
    if old or production is not None:
        _ask_first(old, yes, production)
    gone = delete_runs(store, old)
    said = None if production is None else delete_production(store, older_than_days=production)
    figures = {
        "runs": gone.runs,
        "production_replies": 0 if said is None else said.production_replies,
        "feedback": gone.feedback + (0 if said is None else said.feedback),
    }
    replies = _count(figures["production_replies"], "production reply", "production replies")
    verdicts = _count(figures["feedback"], "verdict")
    return Answer(figures, f"deleted: {_count(gone.runs, 'run')}, {replies}, {verdicts} on them")


@runs.command()
@click.argument("run")
@click.argument("tags", nargs=-1, required=True)
@flag("--remove", "Take the tags away.", is_flag=True)
@with_store()
def tag(run: str, tags: tuple[str, ...], remove: bool, store: "SqlStore") -> None:
    """Give a run tags, which lists show; one tagged keep is never pruned.

    \b
    Examples:
      answerkey runs tag latest release-12 keep
      answerkey runs tag latest keep --remove
    """
    import msgspec

    from answerkey.model.options import check_label

    for name in tags:
        check_label(name, "tag")
    info = store.find_run(run)
    if info.status == "running":
        raise UsageError(f"run {info.id} is under way; tag it when it has ended")
    kept = [name for name in info.tags if name not in tags]
    changed = msgspec.structs.replace(info, tags=tuple(kept if remove else [*kept, *dict.fromkeys(tags)]))
    store.update_run(changed)
    click.echo(f"{info.name} ({info.id}): {', '.join(changed.tags) or 'no tag'}")


def _ask_first(infos: "Sequence[RunInfo]", yes: bool, production: float | None = None) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was deleted; where nobody can be asked, say --yes")
    _say_which(infos)
    more = "" if production is None else f" and production replies older than {production:g} days"
    click.confirm(f"delete {_count(len(infos), 'run')}{more} for good?", abort=True, err=True)


def _say_which(infos: "Sequence[RunInfo]") -> None:
    from answerkey.text.normalise import one_line

    for info in infos:
        click.echo(f"{info.id}  {info.created_at[:10]}  {one_line(info.name, 60)}")
    if not infos:
        click.echo("no run")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _document(info: "RunInfo", summary: "Summary | None") -> dict[str, Any]:
    known = ("id", "name", "status", "created_at", "target", "question_set", "tags")
    found = ("questions", "score", "grade", "interval", "coverage", "passed")
    # A run that has not ended has no summary.
    document = {name: getattr(info, name) for name in known}
    document["target_version"] = info.target_version.words or None
    return document | {name: getattr(summary, name, None) for name in found}


# `answerkey report`: a stored run's report as files.


@click.command()
@click.argument("run", default="latest")
@output_flag
@flag(
    "--site DIR",
    "Write a static site of the newest runs: an index with trends, a page a run, neighbours compared.",
    type=click.Path(path_type=Path, file_okay=False),
)
@flag("--runs", "Runs of a site.", "most", type=click.IntRange(1, 1000), default=50, show_default=True)
@with_store()
@answers
def report(run: str, outputs: tuple[Path, ...], site: Path | None, most: int, store: "SqlStore") -> Answer:
    """Write the report of a run to files; their endings choose the formats.

    A run that was made with a baseline or gates is held against them anew.

    \b
    Examples:
      answerkey report latest -o report.html
      answerkey report latest -o answerkey.comment.md
      answerkey report production -o report.html -o results.csv -o junit.junit.xml
      answerkey report --site public --runs 30
    """
    from answerkey.report.files import check_output, report_endings, write_report
    from answerkey.runs.verdicts import decided_run

    if site is not None:
        if outputs or run != "latest":
            raise UsageError("--site is of many runs: name neither a run nor -o with it")
        from answerkey.report.html_file import write_site

        pages = write_site(store, site, most=most)
        written = [str(path) for path in pages]
        said = f"wrote {len(pages)} pages; open {pages[0]}"
        return Answer({"site": str(site), "written": written}, partial(click.echo, said, err=True))
    if not outputs:
        raise UsageError(f"no file is named; add -o report.html (or {' '.join(report_endings())})")
    for path in outputs:
        check_output(path)
    found = decided_run(store, run)
    for path in outputs:
        write_report(found, path)
    written = [str(path) for path in outputs]
    said = "\n".join(f"wrote {path}" for path in written)
    return Answer({"run": found.id, "written": written}, partial(click.echo, said, err=True))


# `answerkey review`: the same queue of borderline replies as the dashboard's, in the terminal.


@click.command()
@click.argument("run", default="latest")
@flag("--list", "Only list what waits.", "only_list", is_flag=True)
@flag("--author", "Who judges.", default="terminal", show_default=True)
@with_store()
@answers
def review(run: str, only_list: bool, author: str, store: "SqlStore") -> Answer:
    """Judge the replies of a RUN that scored 40-70%, or where a judge disagrees with the score.

    In a terminal it shows one reply after the other and waits for a key; otherwise it lists them. Verdicts are kept as feedback
    of reviewers, for `answerkey judge calibrate`.

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
    from answerkey.report.wording import score_percent
    from answerkey.text.normalise import one_line

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
    from answerkey.report.terminal import make_console, print_trial
    from answerkey.report.wording import score_percent

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
