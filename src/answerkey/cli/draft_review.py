"""`answerkey review --drafts`: a person accepts or rejects drafted cases, one at a time."""

import sys
from pathlib import Path

import click
import msgspec

from answerkey.cli.look import Keys, single_keys
from answerkey.cli.outcome import Answer
from answerkey.config import Settings, load_settings
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.report.files import append_row, atomic_file
from answerkey.runs.context import golden_set
from answerkey.runs.draft import accepted_case
from answerkey.text.normalise import for_terminal, one_line
from answerkey.transcripts.row_files import read_rows

_WIDTH = 110


def review_drafts(path: Path, questions: Path | None, author: str, *, only_list: bool) -> Answer:
    """Show the drafts of a file; accepted and rejected ones leave it."""
    settings = load_settings()
    drafts = [row for _, row in read_rows(path)]
    golden_path = questions or (settings.folder / settings.questions if settings.questions else None)
    interactive = not only_list and sys.stdin.isatty() and sys.stdout.isatty()

    def show() -> None:
        if not interactive:
            for draft in drafts:
                click.echo(_summary(draft))
            click.echo(f"{len(drafts)} drafts")
            return
        if golden_path is None:
            raise UsageError("add --questions FILE: the golden set that accepted cases are added to")
        if golden_path.suffix.lower() not in (".jsonl", ".ndjson"):
            raise UsageError(
                f"{golden_path}: cases are added to a .jsonl file; write one with: answerkey export jsonl {golden_path}"
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
            for_terminal(f"{accepted} cases added to {self._golden}, {len(self._waiting)} drafts left")
        )

    def _accept(self, draft: JsonObject) -> bool:
        try:
            row = accepted_case(draft, self._golden_set(), self._author)
        except UsageError as error:
            click.echo(for_terminal(f"not added: {error}"), err=True)
            return False
        append_row(self._golden, row)
        return True

    def _golden_set(self) -> QuestionSet:
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
    click.secho(f"{position}  {one_line(_wording(draft), _WIDTH)}", bold=True)
    click.echo(f"  asked {origin.get('asked', 1)} times, first in {one_line(str(origin.get('source')), 80)}")
    shown = {**draft, **_turns_of(draft)[-1]}
    for name in ("category", "persona", "expected_tools", "expected_keywords"):
        if shown.get(name):
            click.echo(f"  {name}: {one_line(msgspec.json.encode(shown[name]).decode(), _WIDTH)}")
    if origin.get("reply"):
        click.echo(f"  reply: {one_line(str(origin['reply']), 3 * _WIDTH)}")
    warnings = draft.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        click.secho(f"  ! {one_line(str(warning), _WIDTH)}", fg="yellow")
