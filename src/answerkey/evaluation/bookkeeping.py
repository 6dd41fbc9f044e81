"""How a run that asks begins and ends: what it is, the options that resuming needs, and its summary."""

import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from answerkey.config import Options
from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.warnings import run_warnings
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.tally import summarise
from answerkey.model.trial import Trial
from answerkey.protocols import Target
from answerkey.scorers.grader import Grader

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession
    from answerkey.store.sql import SqlStore
    from answerkey.store.sqlite_file import SqliteFile

__all__ = ["finish_run", "kept_options", "new_id", "new_run", "options_of", "store_writer"]


def new_id() -> str:
    """An id that no other run has."""
    return secrets.token_hex(5)


def new_run(
    target: Target,
    questions: QuestionSet,
    options: Options,
    grader: Grader,
    *,
    run_id: str,
    name: str,
    kept: dict[str, Any],
) -> RunInfo:
    """What a run is before the first question is asked; `kept` are its options as resuming needs them."""
    return RunInfo(
        id=run_id,
        name=name,
        status="running",
        created_at=_now(),
        target=target.name,
        target_hash=target.fingerprint,
        question_set=questions.name,
        question_set_hash=questions.hash,
        question_path=questions.path,
        repeat=options.repeat,
        match=options.scoring.match,
        weights=options.scoring.weights,
        directions=grader.lower_is_better,
        pass_mark=options.scoring.pass_mark,
        options=kept,
        scoring_hash=grader.hash,
    )


def kept_options(options: Options, target: object, **more: Any) -> dict[str, Any]:
    """The options as a resumed run needs them; the target only if it can be named again."""
    plain: dict[str, Any] = msgspec.to_builtins(options)
    if isinstance(target, str):
        plain["target"] = target
    return plain | more


def options_of(info: RunInfo) -> Options:
    """The options that a run was begun with."""
    plain = {name: value for name, value in info.options.items() if name not in ("target", "experiment")}
    return msgspec.convert(plain, Options)


def store_writer() -> ThreadPoolExecutor:
    """One thread for all that is written, so that batches are written one after the other."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")


def finish_run(
    store: "SqlStore | SqliteFile",
    info: RunInfo,
    status: Literal["partial", "complete"],
    recorder: Recorder,
    judging: "JudgingSession | None",
    *,
    planned: int,
) -> Run:
    """Sum up: a small run that was just asked from memory, any other from the store, in flat memory."""
    judged = judging.document() if judging is not None else {}
    ended = msgspec.structs.replace(info, status=status, judge=judged, finished_at=_now())
    kept = recorder.results()
    read: Callable[[], Iterable[Trial]] = (lambda: store.results(ended)) if kept is None else (lambda: kept)
    summary = summarise(read(), planned=planned, pass_mark=ended.pass_mark)
    store.finish_run(ended, summary)
    return Run(info=ended, summary=summary, warnings=run_warnings(ended, summary), read_results=read)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
