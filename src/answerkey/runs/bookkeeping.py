"""How a run begins and ends: what it is, its summary, and whether the target was set up as it must be."""

import re
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.model.question import QuestionSet
from answerkey.model.reply import Failure, HarnessProblem
from answerkey.model.run import ExperimentLink, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial, unscored_card
from answerkey.model.tally import summarise
from answerkey.protocols import BaseTarget
from answerkey.runs.context import RunContext
from answerkey.runs.durable_writer import DurableWriter
from answerkey.runs.recorder import Recorder
from answerkey.runs.stored import run_warnings
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import target_labels, target_version

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession


def new_id() -> str:
    """An id that no other run has."""
    return secrets.token_hex(5)


def new_run(
    assembly: RunContext,
    target: BaseTarget,
    questions: QuestionSet,
    *,
    run_id: str,
    target_spec: str | None,
    name: str | None = None,
    experiment: ExperimentLink | None = None,
) -> RunInfo:
    """What a run is before the first question is asked."""
    options = assembly.options
    labels = target_labels(target_spec, assembly.settings.targets)
    return RunInfo(
        id=run_id,
        name=name or options.name or target.name,
        status="running",
        created_at=_now(),
        target=target.name,
        target_hash=target.fingerprint,
        target_spec=target_spec,
        target_version=target_version(target, labels),
        tags=tuple(dict.fromkeys((*labels.tags, *options.tags))),
        question_set=questions.name,
        question_set_hash=questions.hash,
        question_path=questions.path,
        repeat=options.repeat,
        options=options,
        experiment=experiment,
        **assembly.grader.run_fields,
    )


def going_on(info: RunInfo, assembly: RunContext) -> RunInfo:
    """A stored run as it goes on, perhaps with another judge."""
    return msgspec.structs.replace(
        info, status="running", stopped="", scoring_hash=assembly.grader.hash, options=assembly.options
    )


def changes_since(
    info: RunInfo, assembly: RunContext, target: BaseTarget, questions: QuestionSet | None = None
) -> list[str]:
    """What is not any more as it was when a run was asked: what was said then may not hold."""
    changed = []
    if target.fingerprint != info.target_hash:
        changed.append("the chatbot")
    if questions is not None and questions.hash != info.question_set_hash:
        changed.append("the golden set")
    # Another judge is a user's wish, and part of the scoring.
    if assembly.grader.hash != info.scoring_hash and assembly.options.judge == info.options.judge:
        changed.append("the scoring")
    return changed


def store_writer() -> ThreadPoolExecutor:
    """One thread for all that is written, so that batches are written one after the other."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")


def finish_run(
    store: SqlStore,
    info: RunInfo,
    status: Literal["interrupted", "partial", "complete"],
    *,
    recorder: Recorder,
    keeper: DurableWriter,
    judging: "JudgingSession | None",
    planned: int,
    stopped: str = "",
) -> Run:
    """Sum up: a small run that was just asked from memory, any other from the store, in flat memory."""
    judged = judging.record() if judging is not None else None
    if status == "complete" and keeper.set_aside:
        status = "partial"
    ended = msgspec.structs.replace(info, status=status, judge=judged, finished_at=_now(), stopped=stopped)
    in_memory = recorder.results()
    if in_memory is not None:
        in_memory = tuple(t for t in in_memory if (t.position, t.number) not in keeper.set_aside)
    results = StreamedResults(partial(store.results, ended)) if in_memory is None else in_memory
    run = keeper.run_owned(lambda: summed_up(store, ended, results, planned=planned))
    return msgspec.structs.replace(run, warnings=(*run.warnings, *keeper.warnings))


def keep_results(
    assembly: RunContext,
    results: Sequence[Trial],
    questions: QuestionSet,
    target: BaseTarget,
    store: SqlStore,
    *,
    target_spec: str | None,
) -> Run:
    """Results that somebody else asked for and scored, as a run of their own."""
    begun = new_run(assembly, target, questions, run_id=new_id(), target_spec=target_spec)
    whole = len(results) == len(questions) * begun.repeat
    store.create_run(begun, questions)
    store.add(begun, results)
    info = msgspec.structs.replace(
        begun, status="complete" if whole else "partial", finished_at=begun.created_at
    )
    return summed_up(store, info, results, planned=len(questions) * info.repeat)


def summed_up(store: SqlStore, info: RunInfo, results: Sequence[Trial], *, planned: int | None) -> Run:
    """A run with its summary, which the store keeps; `planned` is None for a log, of which nothing was."""
    if planned is None:
        # Whoever recorded it set up no target that could be put right.
        summary = store.summarise(info, results)
    else:
        results = without_configuration_errors(store, info, results)
        summary = summarise(results, planned=planned, pass_mark=info.pass_mark)
    store.finish_run(info, summary)
    return Run(info=info, summary=summary, warnings=run_warnings(info, summary), results=results)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


# Statuses that say: not with these credentials, not at this address, not by this method, not with this body.
_STATUS = re.compile(r"HTTP (401|403|404|405|422)\b")
# Neither the configured expression nor the usual names find a text.
_UNMAPPED = re.compile(r"reply\.text = .* finds nothing in the reply|the reply has no text under ")
_REMEDIES = {
    "401": "check the headers or the login of the target",
    "403": "check what the target's credentials allow",
    "404": "check the target's address",
    "405": "check the target's method",
    "422": "check the target's body",
}


def without_configuration_errors(store: SqlStore, info: RunInfo, results: Sequence[Trial]) -> Sequence[Trial]:
    """The results; where every reply is the same configuration error they are unscored, here and in the store."""
    found = configuration_error(results)
    if found is None:
        return results
    card = unscored_card(info.weights, *found)
    unscored = tuple(trial.scored(card) for trial in results)
    # In the place of their scores. The replies stay as they are: they are what was observed.
    store.add(info, unscored, with_replies=False)
    return unscored


def configuration_error(results: Sequence[Trial]) -> tuple[str, HarnessProblem] | None:
    """What is wrong with the target, if every reply says the same."""
    first: Failure | None = None
    status: str | None = None
    for trial in results:
        for reply in trial.replies:
            if reply.failure is None:
                return None
            kind = _kind(reply.failure)
            if kind is None or (first is not None and kind != status):
                return None
            first, status = first or reply.failure, kind
    if first is None or status is None:
        return None
    if status == "mapping":
        return (
            f"{first.message}; say where the text is under [targets.NAME.reply]: `answerkey ask` shows what came back",
            "mapping",
        )
    return f"every reply was {first.message}; {_REMEDIES[status]}", "configuration"


def _kind(failure: Failure) -> str | None:
    if failure.kind == "http" and (found := _STATUS.match(failure.message)):
        return found[1]
    return "mapping" if failure.kind in ("null", "malformed") and _UNMAPPED.match(failure.message) else None
