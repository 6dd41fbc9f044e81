"""`answerkey show`, `runs`, `report` and `review`: look at stored runs."""

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    answers,
    flag,
    json_flag,
    opened_store,
    output_flag,
    print_document,
    print_run,
    print_run_document,
    store_flag,
    with_store,
)
from answerkey.config import Settings, load_settings
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.text.normalise import count, for_terminal, one_line
from answerkey.text.patterns import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from answerkey.model.run import RunInfo, Summary
    from answerkey.store.feedback import ReviewItem, ReviewQueue
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("run", default="latest")
@flag("--failures", "Show every failed question with its reasons.", is_flag=True)
@flag("--question ID", "Show one question in full: replies, tool calls, reasons.", "question_id")
@flag(
    "--worst",
    "How many of the worst questions to list.",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
)
@with_store()
@json_flag
def show(
    run: str, failures: bool, question_id: str | None, worst: int, store: "SqlStore", as_json: bool
) -> None:
    """Show a run (default: the latest).

    \b
    Examples:
      answerkey show
      answerkey show latest~1 --failures
      answerkey show production --question rent-august
      answerkey show latest --json
    """
    from answerkey.report.layout import make_console
    from answerkey.report.terminal import print_failures, print_question
    from answerkey.report.view import failures_of, only_failures, only_question
    from answerkey.runs.stored import decided_run

    shown = decided_run(store, run)
    if question_id is not None:
        shown = only_question(shown, question_id)
    if failures and as_json:
        shown = only_failures(shown)
    if as_json:
        print_run_document(shown)
    elif question_id is not None:
        print_question(shown, make_console())
    elif failures:
        print_failures(shown.info, failures_of(shown), make_console())
    else:
        print_run(shown, worst=worst)


_yes_flag = flag("--yes", "Do not ask for confirmation.", is_flag=True)
_days = click.FloatRange(min=0, min_open=True)


@click.group(invoke_without_command=True)
@flag("--limit", "How many runs to list.", type=click.IntRange(min=1), default=20, show_default=True)
@store_flag
@json_flag
@click.pass_context
def runs(context: click.Context, limit: int, store: str | None, as_json: bool) -> None:
    """List runs, newest first; tag and delete them.

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
        print_document({"runs": [_run_row(info, summary) for info, summary in listed]})
    else:
        from answerkey.report.terminal import print_runs

        print_runs(listed, total)


@runs.command("rm")
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@_yes_flag
@with_store()
def remove(references: tuple[str, ...], yes: bool, store: "SqlStore") -> None:
    """Delete runs with their replies, scores and verdicts; baselines and running runs are refused.

    \b
    Examples:
      answerkey runs rm 4f2a
      answerkey runs rm latest latest~1 --yes
    """
    from answerkey.store.maintenance import delete_runs

    infos = list({info.id: info for info in map(store.find_run, references)}.values())
    _confirm_deletion(infos, yes)
    deleted = delete_runs(store, infos)
    click.echo(f"deleted: {count(deleted.runs, 'run')}, {count(deleted.feedback, 'verdict')} on them")


@runs.command()
@flag("--older-than DAYS", "Delete runs older than this.", type=_days)
@flag("--keep N", "Always keep the newest N runs.", type=click.IntRange(min=0))
@flag("--production DAYS", "Delete production replies older than this, with their verdicts.", type=_days)
@flag("--dry-run", "Only list the runs that would be deleted.", is_flag=True)
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
    """Delete old runs and production replies. Baselines, running runs and runs tagged keep are not deleted.

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
        return Answer({"would_go": [info.id for info in old]}, partial(_print_infos, old))
    if old or production is not None:
        _confirm_deletion(old, yes, production)
    deleted = delete_runs(store, old)
    replies, verdicts = 0, deleted.feedback
    if production is not None:
        with_replies = delete_production(store, older_than_days=production)
        replies, verdicts = with_replies.production_replies, verdicts + with_replies.feedback
    figures = {"runs": deleted.runs, "production_replies": replies, "feedback": verdicts}
    counted = f"{count(deleted.runs, 'run')}, {count(replies, 'production reply', 'production replies')}"
    return Answer(figures, f"deleted: {counted}, {count(verdicts, 'verdict')} on them")


@runs.command()
@click.argument("run")
@click.argument("tags", nargs=-1, required=True)
@flag("--remove", "Remove the tags.", is_flag=True)
@with_store()
def tag(run: str, tags: tuple[str, ...], remove: bool, store: "SqlStore") -> None:
    """Tag a run; a run tagged keep is never pruned.

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
        raise UsageError(f"run {info.id} is still running; tag it when it has ended")
    others = [name for name in info.tags if name not in tags]
    changed = msgspec.structs.replace(info, tags=tuple(others if remove else [*others, *dict.fromkeys(tags)]))
    store.update_run(changed)
    click.echo(f"{info.name} ({info.id}): {', '.join(changed.tags) or 'no tags'}")


def _confirm_deletion(infos: "Sequence[RunInfo]", yes: bool, production: float | None = None) -> None:

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was deleted; without a terminal to confirm on, add --yes")
    _print_infos(infos)
    replies = "" if production is None else f" and production replies older than {production:g} days"
    click.confirm(f"permanently delete {count(len(infos), 'run')}{replies}?", abort=True, err=True)


def _print_infos(infos: "Sequence[RunInfo]") -> None:

    for info in infos:
        click.echo(f"{info.id}  {info.created_at[:10]}  {one_line(info.name, 60)}")
    if not infos:
        click.echo("no runs")


def _run_row(info: "RunInfo", summary: "Summary | None") -> dict[str, Any]:
    """A run in `runs --json`; one that has not ended has no figures."""
    fields = ("id", "name", "status", "created_at", "target", "question_set", "tags")
    row = {name: getattr(info, name) for name in fields}
    row["target_version"] = info.target_version.words or None
    figures = ("questions", "score", "grade", "interval", "coverage", "passed")
    return row | {name: None if summary is None else getattr(summary, name) for name in figures}


@click.command()
@click.argument("run", default="latest")
@output_flag
@flag(
    "--site DIR",
    "Write a static site of the newest runs: trends, a page per run, each compared with the one before.",
    type=click.Path(path_type=Path, file_okay=False),
)
@flag(
    "--runs",
    "How many runs the site has.",
    "most",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
)
@with_store()
@answers
def report(run: str, outputs: tuple[Path, ...], site: Path | None, most: int, store: "SqlStore") -> Answer:
    """Write the report of a run to files; the endings select the formats.

    The baseline and the gates of the run are evaluated again.

    \b
    Examples:
      answerkey report latest -o report.html
      answerkey report latest -o answerkey.comment.md
      answerkey report production -o report.html -o results.csv -o junit.junit.xml
      answerkey report --site public --runs 30
    """
    from answerkey.report.result_files import report_endings, write_reports
    from answerkey.runs.stored import decided_run

    if site is not None:
        if outputs or run != "latest":
            raise UsageError("--site cannot be combined with RUN or -o")
        from answerkey.report.documents import write_site

        pages = write_site(store, site, most=most)
        text = f"wrote {len(pages)} pages; open {pages[0]}"
        document: dict[str, Any] = {"site": str(site), "written": list(map(str, pages))}
        return Answer(document, partial(click.echo, text, err=True))
    if not outputs:
        raise UsageError(f"no output file; add -o report.html (or {' '.join(report_endings())})")
    reported = decided_run(store, run)
    write_reports(reported, outputs)
    text = "\n".join(f"wrote {path}" for path in outputs)
    document = {"run": reported.id, "written": list(map(str, outputs))}
    return Answer(document, partial(click.echo, text, err=True))


@click.command()
@click.argument("run", default="latest")
@flag("--list", "List pending replies only.", "only_list", is_flag=True)
@flag("--author", "Reviewer name.", default="terminal", show_default=True)
@flag("--drafts FILE", "Accept or reject the drafts in this file instead.", type=FILE)
@flag("--questions", "With --drafts: golden set that accepted cases are added to.", type=FILE)
@store_flag
@answers
def review(
    run: str, only_list: bool, author: str, drafts: Path | None, questions: Path | None, store: str | None
) -> Answer:
    """Review the replies of a RUN that scored 40-70%, or where a judge disagrees with the score.

    With --drafts, shows the drafts of `answerkey draft` instead, and adds those you accept to the golden set.

    In a terminal, shows one reply at a time and waits for a key; otherwise lists them. Verdicts are stored as feedback of
    reviewers, for `answerkey judge calibrate`.

    \b
    Examples:
      answerkey review
      answerkey review production --list
      answerkey review latest --json
      answerkey review --drafts drafts.jsonl --questions golden.jsonl
    """
    if drafts is not None:
        return _review_drafts(drafts, questions, author, only_list=only_list)
    if questions is not None:
        raise UsageError("--questions can only be used with --drafts")
    with opened_store(store) as opened:
        return _review_run(opened, run, author, only_list=only_list)


def _review_run(store: "SqlStore", run: str, author: str, *, only_list: bool) -> Answer:
    from answerkey.store.feedback import ReviewQueue

    info = store.find_run(run)
    queue = ReviewQueue(store, info)
    waiting, done = queue.counts()
    items = queue.page(limit=10_000)

    def show() -> None:
        if only_list or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_queue(info, items, done)
        else:
            with single_keys():
                _review_items(store, queue, info, items, author)

    return Answer({"run": info.id, "waiting": waiting, "done": done, "queue": items}, show)


def _print_queue(info: "RunInfo", items: "list[ReviewItem]", done: int) -> None:
    from answerkey.report.wording import score_percent

    click.echo(f"{len(items)} pending, {done} done in {one_line(info.name, 60)} ({info.id})")
    for item in items:
        trial = f" trial {item.trial}" if item.trial > 1 else ""
        click.echo(
            f"{score_percent(item.score):>6}  {one_line(item.question_id, 24):<24}{trial} "
            f"{one_line(item.question, 70)} ({_review_reason(item)})"
        )


def _review_reason(item: "ReviewItem") -> str:
    from answerkey.report.wording import score_percent

    return item.reason if item.judge is None else f"{item.reason}, judge {score_percent(item.judge)}"


def _review_items(
    store: "SqlStore", queue: "ReviewQueue", info: "RunInfo", items: "list[ReviewItem]", author: str
) -> None:
    """Show one reply at a time, and store a verdict for the key pressed."""
    keys = Keys()
    reviewed: set[int] = set()
    comment = ""
    index = 0
    printed: int | None = None
    while index < len(items):
        item = items[index]
        if printed != index:
            _print_item(store, info, item, f"{index + 1} of {len(items)}")
            printed = index
        click.echo("t trust · d don't trust · c comment · s skip · b back · q quit ", nl=False)
        key = keys.next_of("tdcsbq")
        click.echo(key)
        if key in ("t", "d"):
            queue.record_verdict(
                item.question_id, item.trial, trusted=key == "t", comment=comment, author=author
            )
            reviewed.add(index)
        elif key == "c":
            with single_keys(False):
                comment = click.prompt("comment", default="", show_default=False)
        elif key == "q":
            break
        if key in ("t", "d", "s", "b"):
            comment = ""
            index = max(0, index - 1) if key == "b" else index + 1
    pending = len(items) - len(reviewed)
    click.echo(f"{len(reviewed)} reviewed, {pending} pending" if items else "nothing to review")


def _print_item(store: "SqlStore", info: "RunInfo", item: "ReviewItem", position: str) -> None:
    from answerkey.report.detail import Limits
    from answerkey.report.layout import make_console
    from answerkey.report.terminal import print_trial

    click.echo(f"\n{position} · {_review_reason(item)}")
    results = store.results_of(info, item.question_id, most=1000)
    result = next(result for result in results if result.number == item.trial)
    # Enough to decide; `answerkey show --question` shows the rest.
    limits = Limits(reply=4_000, tool_text=600, source_text=300, calls=10, sources=6)
    print_trial(result, make_console(None), limits)


# What arrow and function keys send; its letters must not be taken for keys.
_SEQUENCE = lazy(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?")


class Keys:
    """Reads single keys from standard input, inside `single_keys`."""

    def __init__(self) -> None:
        self._typed: deque[str] = deque()

    def next_of(self, meaningful: str) -> str:
        """The next key among these; others are ignored. Ctrl-C and Ctrl-D end the command."""
        while True:
            while not self._typed:
                self._typed.extend(_SEQUENCE.sub("", _read_typed()).lower())
            key = self._typed.popleft()
            if key in ("\x03", "\x04"):
                raise click.Abort
            if key in meaningful:
                return key


@contextmanager
def single_keys(on: bool = True) -> Iterator[None]:
    """Read keys without waiting for a line, and without echo; `on=False` restores whole lines meanwhile."""
    try:
        import termios
    except ModuleNotFoundError:
        # On Windows, click reads single keys.
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    now = termios.tcgetattr(fd)
    flags = termios.ICANON | termios.ECHO
    now[3] = now[3] & ~flags if on else now[3] | flags
    # Drain, not flush: keep what was typed already.
    termios.tcsetattr(fd, termios.TCSADRAIN, now)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _read_typed() -> str:
    """Wait for at least one key, and return all that were typed."""
    if os.name == "nt":
        return click.getchar()
    typed = os.read(sys.stdin.fileno(), 1024)
    if not typed:
        raise click.Abort
    return typed.decode(errors="replace")


# Drafts of golden cases.

_DRAFT_WIDTH = 110


def _review_drafts(path: Path, questions: Path | None, author: str, *, only_list: bool) -> Answer:
    """Show the drafts of a file; accepted and rejected ones leave it."""
    from answerkey.transcripts.row_files import read_rows
    from answerkey.transcripts.yaml_documents import EDITABLE

    settings = load_settings()
    drafts = [row for _, row in read_rows(path)]
    golden_path = questions or (settings.folder / settings.questions if settings.questions else None)
    interactive = not only_list and sys.stdin.isatty() and sys.stdout.isatty()

    def show() -> None:
        if not interactive:
            for draft in drafts:
                click.echo(_summary(draft))
            click.echo(count(len(drafts), "draft"))
            return
        if golden_path is None:
            raise UsageError("add --questions FILE: the golden set that accepted cases are added to")
        if golden_path.suffix.lower() not in EDITABLE:
            raise UsageError(
                f"{golden_path}: cases are added to a {', '.join(EDITABLE)} file; "
                f"write one with: answerkey export jsonl {golden_path}"
            )
        with single_keys():
            _Review(path, drafts, golden_path, settings, author).run()

    return Answer({"drafts": drafts}, show)


def _summary(draft: JsonObject) -> str:
    expects = msgspec.json.encode(_turns_of(draft)[-1].get("expected_keywords", [])).decode()
    return for_terminal(f"{one_line(_wording(draft), 70)}  {one_line(expects, 40)}")


def _turns_of(draft: JsonObject) -> list[JsonObject]:
    """The turns of a draft; of a plain question, the draft itself."""
    turns = draft.get("turns")
    return (
        [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) and turns else [draft]
    )


def _wording(draft: JsonObject) -> str:
    return " → ".join(str(turn.get("question")) for turn in _turns_of(draft))


class _Review:
    """Goes through the drafts of a file."""

    def __init__(
        self, path: Path, drafts: list[JsonObject], golden: Path, settings: Settings, author: str
    ) -> None:
        self._path, self._waiting, self._golden = path, drafts, golden
        self._settings, self._author = settings, author

    def run(self) -> None:
        from answerkey.report.result_files import atomic_file

        keys, index, accepted = Keys(), 0, 0
        while index < len(self._waiting):
            draft = self._waiting[index]
            _print_draft(draft, f"{index + 1} of {len(self._waiting)}")
            click.echo("a accept · e edit · r reject · s skip · q quit ", nl=False)
            key = keys.next_of("aersq")
            click.echo(key)
            if key == "e":
                self._edit(index)
            elif key == "q":
                break
            elif key == "s":
                index += 1
            elif key == "r" or self._accept(draft):
                accepted += key == "a"
                del self._waiting[index]
                with atomic_file(self._path) as file:
                    file.writelines(msgspec.json.encode(one) + b"\n" for one in self._waiting)
            else:
                index += 1
        click.echo(
            for_terminal(
                f"{count(accepted, 'case')} added to {self._golden}, {count(len(self._waiting), 'draft')} left"
            )
        )

    def _accept(self, draft: JsonObject) -> bool:
        from answerkey.report.result_files import append_row
        from answerkey.runs.draft import accepted_case

        try:
            row = accepted_case(draft, self._golden_set(), self._author)
        except UsageError as error:
            click.echo(for_terminal(f"not added: {error}"), err=True)
            return False
        append_row(self._golden, row)
        return True

    def _golden_set(self) -> QuestionSet:
        from answerkey.runs.context import golden_set

        if not self._golden.exists():
            return QuestionSet(name=self._golden.stem, questions=())
        return golden_set(self._golden, self._settings)

    def _edit(self, index: int) -> None:
        text = msgspec.json.format(msgspec.json.encode(self._waiting[index]), indent=2).decode()
        with single_keys(False):
            edited = click.edit(text, extension=".json")
        if edited is None:
            return
        try:
            self._waiting[index] = msgspec.json.decode(edited, type=dict)
        except msgspec.MsgspecError as error:
            click.echo(for_terminal(f"not changed: {error}"), err=True)


def _print_draft(draft: JsonObject, position: str) -> None:
    """The question, what is expected, and why."""
    evidence = draft.get("evidence")
    origin = evidence if isinstance(evidence, dict) else {}
    click.echo()
    click.secho(f"{position}  {one_line(_wording(draft), _DRAFT_WIDTH)}", bold=True)
    click.echo(f"  asked {origin.get('asked', 1)} times, first in {one_line(str(origin.get('source')), 80)}")
    shown = {**draft, **_turns_of(draft)[-1]}
    for name in ("category", "persona", "expected_tools", "expected_keywords"):
        if shown.get(name):
            click.echo(f"  {name}: {one_line(msgspec.json.encode(shown[name]).decode(), _DRAFT_WIDTH)}")
    if origin.get("reply"):
        click.echo(f"  reply: {one_line(str(origin['reply']), 3 * _DRAFT_WIDTH)}")
    warnings = draft.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        click.secho(f"  ! {one_line(str(warning), _DRAFT_WIDTH)}", fg="yellow")
