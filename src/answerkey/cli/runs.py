"""`answerkey runs`: the runs of a store, listed, tagged and deleted."""

import sys
from typing import TYPE_CHECKING, Any

import click

from answerkey.cli.flags import flag, json_flag, opened_store, store_flag, with_store
from answerkey.cli.outcome import Answer, answers, print_document
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from answerkey.model.run import RunInfo
    from answerkey.model.summary import Summary
    from answerkey.store.sql import SqlStore

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
        from answerkey.report.terminal_detail import print_runs

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
    from answerkey.store.deleting import delete_runs

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
    from answerkey.store.deleting import delete_production, delete_runs, old_runs

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

    from answerkey.model.target_version import check_label

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
    from answerkey.text.sanitise import one_line

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
