"""The target `replay:FILE`: recorded replies, looked up by question and trial."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from answerkey.config import settings_hash
from answerkey.errors import InputError
from answerkey.model.reply import Failure, Json, Reply
from answerkey.protocols import Ask, BaseTarget, TargetContext
from answerkey.targets.resolve import read_settings
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.payloads import ReplyMapping
from answerkey.transcripts.recorded_rows import question_in_row, reply_in_row
from answerkey.transcripts.row_files import open_rows

_Row = Mapping[str, Json]


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a replay."""

    # Recorded replies, as `answerkey score` reads them.
    replay: str
    reply: ReplyMapping | None = None


def make_replay_target(rest: str, context: TargetContext) -> "ReplayTarget":
    """The factory of the kind `replay`."""
    return ReplayTarget(read_settings(context, ReplaySettings), name=context.name, folder=context.folder)


class ReplayTarget(BaseTarget):
    """Recorded replies as a chatbot."""

    # The recorded timings are used.
    replays = True

    def __init__(
        self, settings: ReplaySettings, *, name: str | None = None, folder: Path | None = None
    ) -> None:
        self._path = (folder or Path()) / settings.replay
        if not self._path.is_file():
            raise InputError("there is no such file", path=self._path)
        self._settings = settings
        self.name = name or f"replay:{settings.replay}"
        with self._path.open("rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        self.fingerprint = settings_hash("replay", [content, settings.reply])
        # Question id or text → trial → the rows of its turns, in order.
        self._rows: dict[tuple[str, str], dict[int, dict[int, _Row]]] = {}

    async def __aenter__(self) -> "ReplayTarget":
        counted: dict[tuple[str, str], int] = {}
        for line, row in open_rows(self._path, "replies").rows:
            keys = _keys(row)
            if not keys:
                message = "has neither 'id' nor 'question', so its question is unknown"
                raise InputError(message, path=self._path, line=line)
            turn = _natural_number(row.get("turn"))
            trial = _natural_number(row.get("trial"))
            if trial is None:
                # Rows without a trial are numbered in order; further turns belong to the same trial.
                trial = counted.get(keys[0], 0) + (1 if not turn or keys[0] not in counted else 0)
                counted[keys[0]] = trial
            for key in keys:
                turns = self._rows.setdefault(key, {}).setdefault(trial, {})
                turns.setdefault(turn or 0, row)
        for key, trials in self._rows.items():
            if 0 in trials:
                # Recorded trials may count from 0, a run's count from 1.
                self._rows[key] = {trial + 1: turns for trial, turns in trials.items()}
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._rows = {}

    async def ask(self, ask: Ask) -> Reply:
        """The recorded reply; a failure if there is none."""
        for key in (("id", ask.question_id), ("question", ask.question)):
            turns = self._rows.get(key, {}).get(ask.trial)
            found = None if turns is None else self._find(turns, ask)
            if found is not None:
                return found
        what = f"{ask.question_id!r}" if ask.question_id else f"{ask.question!r}"
        turn = f", turn {ask.turn + 1}" if ask.turn else ""
        message = f"no recorded reply for {what} (trial {ask.trial}{turn}) in {self._path.name}"
        return Reply(failure=Failure("exception", failure_message(message)))

    def _find(self, turns: dict[int, _Row], ask: Ask) -> Reply | None:
        mapping = self._settings.reply
        if len(turns) == 1 and (0 in turns or 1 in turns):
            row = next(iter(turns.values()))
            return reply_in_row(row, ask.question, ask.turn, mapping)
        # One row for each turn, numbered from 0 or from 1.
        row_of_turn = turns.get(ask.turn + (0 if 0 in turns else 1))
        return None if row_of_turn is None else reply_in_row(row_of_turn, ask.question, 0, mapping)


def _keys(row: _Row) -> list[tuple[str, str]]:
    keys: list[tuple[str, str]] = []
    identity = next((row[name] for name in ("question_id", "id") if row.get(name) is not None), None)
    if isinstance(identity, (str, int)) and not isinstance(identity, bool):
        keys.append(("id", str(identity)))
    question = question_in_row(row)
    if question is not None:
        keys.append(("question", question))
    return keys


def _natural_number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
