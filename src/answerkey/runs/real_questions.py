"""Real questions: from logs, databases, lists, stored runs, production replies and feedback."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from answerkey.config import Settings
from answerkey.errors import InputError, StoreMissingError, UnknownNameError, UsageError
from answerkey.model.feedback import POSITIVE, read_value
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.runs.log_files import LogBlocks, log_files
from answerkey.runs.log_rows import RowReader, UnreadableRow
from answerkey.runs.stored import open_configured_store, stored_trials
from answerkey.store.feedback import FeedbackStore
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.sql import SqlStore
from answerkey.transcripts.files import database_url, input_path, remote_url

# Sources that are in the store.
PRODUCTION, FEEDBACK = "production", "feedback"
_LISTS = (".md", ".markdown", ".txt")
# Columns of a log with a person's verdict.
_VERDICTS = ("feedback", "rating", "thumbs", "verdict")
_LISTED_PROBLEMS = 3


class RealQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One real question, with its reply if it is known."""

    text: str
    # The first question of its conversation, if it is a later turn.
    opening: str = ""
    # File and line, run, or the id of a production reply.
    source: str
    reply: Reply | None = None
    # Whether a person disliked the reply.
    disliked: bool = False
    category: str = ""


class QuestionSources:
    """The questions of some sources; reading them again is not possible where one is standard input."""

    def __init__(
        self,
        sources: Sequence[str],
        settings: Settings,
        *,
        sql: str = "",
        fields: Mapping[str, str] | None = None,
        store: str | None = None,
    ) -> None:
        self._sources, self._settings = sources, settings
        self._sql, self._fields, self._store = sql, fields, store
        # Rows that could not be read.
        self.unreadable = 0
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[RealQuestion]:
        logs: list[Path] = []
        for source in self._sources:
            path = input_path(source)
            if path.suffix.lower() in _LISTS and path.exists():
                yield from self._of_list(path)
            elif source == "-" or database_url(path) or remote_url(path) or _is_file(path):
                logs.append(path)
            else:
                yield from self._of_store(source)
        if logs:
            yield from self._of_logs(logs)
        elif self._sql:
            raise UsageError("--sql reads a database; give sqlite:///FILE or postgresql://…")

    def _of_list(self, path: Path) -> Iterator[RealQuestion]:
        from answerkey.datasets.table_formats import import_list

        for number, row in enumerate(import_list([path]).rows, start=1):
            category = row.get("category")
            text = category if isinstance(category, str) else ""
            yield RealQuestion(text=str(row["question"]), source=f"{path}: question {number}", category=text)

    def _of_logs(self, paths: Sequence[Path]) -> Iterator[RealQuestion]:
        reader = RowReader(None, keep=_VERDICTS, registry=self._settings.scorer_registry)
        rows = 0
        for block in LogBlocks(log_files(paths), self._fields or self._settings.map, paths, self._sql):
            for row in reader.read(block):
                if isinstance(row, UnreadableRow):
                    self.unreadable += 1
                    if len(self.problems) < _LISTED_PROBLEMS:
                        self.problems.append(str(InputError(row.reason, path=block.path, line=row.line)))
                    continue
                rows += 1
                line = row.trial.origin.line if row.trial.origin is not None else None
                where = f"{block.path}:{line}" if line is not None else block.path
                yield from _of_trial(row.trial, where, has_reply=row.row_without_text is None)
        if not rows and self.problems:
            raise UsageError(f"{self.problems[0]} (none of {self.unreadable:,} rows can be read)")

    def _of_store(self, source: str) -> Iterator[RealQuestion]:
        try:
            opened = open_configured_store(self._settings, self._store, create=False)
        except StoreMissingError as error:
            if source in (PRODUCTION, FEEDBACK):
                raise
            raise InputError(
                f"no such file, and no run, since there is no store ({error})", path=source
            ) from None
        with opened as store:
            if source == PRODUCTION:
                yield from _of_production(store)
            elif source == FEEDBACK:
                for verdict in FeedbackStore(store).negative():
                    if verdict.question:
                        yield RealQuestion(
                            text=verdict.question, source=f"feedback {verdict.id}", disliked=True
                        )
            else:
                try:
                    info = store.find_run(source)
                except UnknownNameError:
                    raise UnknownNameError(
                        f"{source}: no such file, and no run of this name; a source is a file, a folder, a database, a run, "
                        "production or feedback"
                    ) from None
                for trial in stored_trials(store, info, list(store.questions(info.question_set_hash))):
                    yield from _of_trial(trial, f"run {info.id}", has_reply=True)


def _is_file(path: Path) -> bool:
    return path.exists() or any(mark in str(path) for mark in "*?[")


def _of_trial(trial: Trial, where: str, *, has_reply: bool) -> Iterator[RealQuestion]:
    """Each turn with its reply."""
    question = trial.question
    turns: Sequence[Question] = question.turns or (question,)
    disliked = trial.origin is not None and any(map(_is_negative, (trial.origin.columns or {}).values()))
    for number, turn in enumerate(turns):
        reply = trial.replies[number] if has_reply and number < len(trial.replies) else None
        yield RealQuestion(
            text=turn.question,
            opening=turns[0].question if number else "",
            source=where,
            reply=reply,
            disliked=disliked,
        )


def _is_negative(verdict: object) -> bool:
    with suppress(UsageError, ValueError, TypeError):
        return read_value(verdict) < POSITIVE
    return False


def _of_production(store: SqlStore) -> Iterator[RealQuestion]:
    replies, disliked = ProductionReplies(store), set()
    for verdict in FeedbackStore(store).negative():
        disliked.add(verdict.production_id)
    for item in replies.every(ProductionFilter()):
        yield RealQuestion(
            text=item.question,
            source=f"production {item.id}",
            reply=item.reply,
            disliked=item.id in disliked,
            category=item.category or "",
        )
