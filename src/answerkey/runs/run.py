"""Asking a run: plan → ask → grade → store → summary, for any number of arms.

A live run has one arm, an experiment two. All arms are asked by one engine, under one concurrency limit, rate and
budget; each is a stored run of its own, with its own journal, recorder and judge session.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence, Set
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from answerkey.errors import (
    InterruptedRunError,
    JudgeUnusableError,
    StoreAwayError,
    StoreError,
    StoreFullError,
)
from answerkey.model.options import TargetVersion
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Failure, HarnessProblem
from answerkey.model.run import ExperimentLink, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial, unscored_card
from answerkey.model.tally import summarise
from answerkey.protocols import BaseTarget, RunningScore
from answerkey.runs.context import RunContext, with_key_quality
from answerkey.runs.recorder import (
    MOST_IN_MEMORY,
    DurableWriter,
    Recorder,
    StoreRetry,
    open_judge,
    open_writer,
    store_executor,
)
from answerkey.runs.stored import new_run_id, resume_command, run_warnings, stored_trials
from answerkey.store.database import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import target_labels, target_version
from answerkey.text.patterns import lazy
from answerkey.transcripts.payloads import is_never_text, is_unmapped

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession


# Run infos


def new_run(
    context: RunContext,
    target: BaseTarget,
    target_spec: str | None,
    questions: QuestionSet,
    *,
    run_id: str | None = None,
    name: str | None = None,
    made_from: str | None = None,
    experiment: ExperimentLink | None = None,
) -> RunInfo:
    """The info of a run before its first question."""
    options = context.options
    labels = target_labels(target_spec, context.settings.targets)
    return RunInfo(
        id=run_id or new_run_id(),
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
        made_from=made_from,
        experiment=experiment,
        truth=context.truth,
        **context.grader.run_fields,
    )


def reopen_run(info: RunInfo, context: RunContext) -> RunInfo:
    """The info of a stored run that is continued, perhaps with another judge."""
    return msgspec.structs.replace(
        info, status="running", stopped="", scoring_hash=context.grader.hash, options=context.options
    )


def changed_inputs(
    info: RunInfo, context: RunContext, target: BaseTarget, questions: QuestionSet | None = None
) -> list[str]:
    """What changed since a run was asked, so that its replies or scores may be stale."""
    changed = []
    if target.fingerprint != info.target_hash:
        changed.append("the chatbot")
    if questions is not None and questions.hash != info.question_set_hash:
        changed.append("the golden set")
    # Another judge is chosen by the user, and part of the scoring.
    if context.grader.hash != info.scoring_hash and context.options.judge == info.options.judge:
        changed.append("the scoring")
    return changed


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


# Arms, order and budget


class Arm(msgspec.Struct, kw_only=True):
    """One chatbot of a run that this process owns."""

    info: RunInfo
    # Open.
    target: BaseTarget
    lease: Lease
    # Whether the run is yet to be created in the store.
    is_new: bool
    # (ask hash, trial number) of the stored replies.
    stored_keys: Set[tuple[str, int]] = frozenset()


# With a budget, replies are asked for one by one until a price is known, up to this number of failures.
_MOST_ASKED_FOR_PRICE = 5


class BudgetGuard:
    """Stops asking when replies and judging have cost as much as the budget allows."""

    def __init__(
        self, budget: float | None, before: Iterable[Trial], judging: "Sequence[JudgingSession | None]"
    ) -> None:
        """`before` are the trials that the run has paid for already."""
        self._budget = budget
        self._judging = judging
        self._spent = 0.0
        self._answered = self._priced = self._in_flight = 0
        self._cost_unknown = False
        # Why no more is asked; empty while asking may continue.
        self.stop_reason = ""
        for trial in before:
            self._count(trial)

    def admit(self, trials: Iterable[Trial]) -> Iterable[Trial]:
        """The trials, until the budget does not cover the next one."""
        return trials if self._budget is None else self._admit(trials)

    def _admit(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        for trial in trials:
            if not self.reserve(1):
                return
            yield trial

    @property
    def needs_price(self) -> bool:
        """Whether nothing is known yet of what a reply costs, so that it is too early to ask several questions at once."""
        is_known = self._budget is None or self._priced > 0 or self._cost_unknown
        return not is_known and self._answered < _MOST_ASKED_FOR_PRICE

    def reserve(self, count: int) -> bool:
        """Whether the budget covers `count` more trials and those in flight, at the mean cost so far."""
        self.stop_reason = self._reason(count)
        if not self.stop_reason:
            self._in_flight += count
        return not self.stop_reason

    def add(self, trial: Trial) -> None:
        """Count an answered trial."""
        if self._budget is not None:
            self._in_flight -= 1
            self._count(trial)

    def _count(self, trial: Trial) -> None:
        self._answered += 1
        cost = trial.cost
        if cost is not None:
            self._spent += cost
            self._priced += 1
        elif any(reply.failure is None for reply in trial.replies):
            self._cost_unknown = True

    def _reason(self, more: int) -> str:
        if self._budget is None:
            return ""
        if self._cost_unknown:
            return (
                f"the budget of {self._budget:g} cannot be enforced, because the cost of a reply is unknown; set the "
                "price of the chatbot or its model under [prices]"
            )
        judge = sum(session.cost for session in self._judging if session is not None)
        # Of those with a cost: what failed before it cost anything says nothing of the next reply.
        mean = self._spent / self._priced if self._priced else 0.0
        spent = self._spent + judge
        if spent + (self._in_flight + more) * mean > self._budget or spent >= self._budget:
            return f"the budget of {self._budget:g} is used up ({spent:.4g} spent, {self._in_flight} questions in flight)"
        return ""


class AskingOrder(Protocol):
    """In which order arms are asked, and whether asking ends early."""

    @property
    def most_unjudged(self) -> int | None:
        """How far asking may run ahead of grading and judging; None: no limit of its own."""

    @property
    def stopped_early(self) -> bool:
        """Whether enough was asked, so that the missing trials are not a gap."""

    def trials(self, arms: Sequence[Arm], budget: BudgetGuard) -> Iterable[Trial]:
        """The trials without a stored reply, in order."""

    def add_score(self, arm: int, trial: Trial) -> None:
        """Called with each scored trial of an arm."""


class QuestionOrder:
    """One arm: all questions for the first trial, then all for the second, and so on."""

    most_unjudged = None
    stopped_early = False

    def __init__(self, questions: QuestionSet) -> None:
        self._questions = questions

    def trials(self, arms: Sequence[Arm], budget: BudgetGuard) -> Iterable[Trial]:
        """The trials without a stored reply, in order."""
        return budget.admit(self._missing(arms[0]))

    def _missing(self, arm: Arm) -> Iterator[Trial]:
        for number in range(1, arm.info.repeat + 1):
            for position, question in enumerate(self._questions):
                # A new run need not hash its questions.
                if not arm.stored_keys or (question.ask_hash, number) not in arm.stored_keys:
                    yield Trial(question, number, position)

    def add_score(self, arm: int, trial: Trial) -> None:
        """Scores do not change the order."""


# Asking


async def ask_run(
    context: RunContext,
    store: SqlStore,
    questions: QuestionSet,
    target: BaseTarget,
    info: RunInfo,
    *,
    copy_replies: Callable[[RunInfo], object] | None = None,
) -> Run:
    """Ask a new run of one chatbot; `copy_replies` first stores replies of another run in it."""
    with claim_run(store.database, info.id) as lease:
        arm = Arm(info=info, target=target, lease=lease, is_new=copy_replies is None)
        if copy_replies is not None:
            store.create_run(info, questions)
            copy_replies(info)
        return await ask_arm(context, store, questions, arm)


async def ask_arm(context: RunContext, store: SqlStore, questions: QuestionSet, arm: Arm) -> Run:
    """Ask what a run of one chatbot lacks."""
    [run] = await ask_arms(context, store, questions, [arm], QuestionOrder(questions))
    return msgspec.structs.replace(run, warnings=(*run.warnings, *arm.target.warnings()))


async def ask_arms(
    context: RunContext, store: SqlStore, questions: QuestionSet, arms: Sequence[Arm], order: AskingOrder
) -> list[Run]:
    """Ask, grade and store what all arms lack; stored replies are graded again, since some may have no score.

    However it ends, what was asked is stored; an interrupted run says how to continue.
    """
    async with AsyncExitStack() as opened:
        session = _Session(context, store, questions, arms, order)
        await session.open(opened)
        command = resume_command(arms[0].info)
        try:
            # A task, so that each reply resumes one coroutine instead of all that wait for the run.
            await asyncio.create_task(session.ask())
            return session.finish()
        except asyncio.CancelledError:
            session.finish("interrupted")
            raise InterruptedRunError(f"interrupted; continue with: {command}") from None
        except JudgeUnusableError as error:
            if session.wrote_nothing:
                session.discard()
                raise JudgeUnusableError(f"{error}; nothing was judged or stored") from None
            session.finish("interrupted")
            raise JudgeUnusableError(
                f"{error}; the replies are stored; continue with: {command} --judge MODEL"
            ) from None
        except (StoreAwayError, StoreFullError) as error:
            # If that cannot be written either, the lease of an ended process marks the run as interrupted.
            with suppress(StoreError):
                session.finish("interrupted")
            notes = [str(error), *session.journal_notes, f"then continue with: {command}"]
            raise InterruptedRunError("; ".join(notes)) from None


async def ask_and_grade(
    context: RunContext, target: BaseTarget, trials: Iterable[Trial]
) -> AsyncIterator[Trial]:
    """Ask trials that are not stored, and grade them without a judge."""
    async for trial in context.engine.ask_all([target], trials):
        yield trial.scored(context.grader.grade(trial.question, trial.replies))


class _Session:
    """The open parts of a run: writers, judges and recorders, one of each per arm."""

    def __init__(
        self,
        context: RunContext,
        store: SqlStore,
        questions: QuestionSet,
        arms: Sequence[Arm],
        order: AskingOrder,
    ) -> None:
        self._context = context
        self._store = store
        self._questions = questions
        self._arms = arms
        self._order = order
        self._retry = StoreRetry(context.options.store_patience)
        self._judging: list[JudgingSession | None] = []
        self._writers: list[DurableWriter] = []
        self._recorders: list[Recorder] = []
        self._budget = BudgetGuard(None, (), ())
        # Trials of each arm.
        self._planned = [len(questions) * arm.info.repeat for arm in arms]

    async def open(self, opened: AsyncExitStack) -> None:
        """Open the judges first: if one does not work, no run is created."""
        context, store = self._context, self._store
        executors = [store_executor() for _ in self._arms]
        for arm, executor in zip(self._arms, executors, strict=True):
            judge = open_judge(
                store,
                context.judge,
                arm.info.id,
                executor,
                retry=self._retry,
                canaries_in_background=arm.is_new,
            )
            self._judging.append(await opened.enter_async_context(judge))
        running = RunningScore()
        parts = zip(self._arms, executors, self._judging, strict=True)
        for index, (arm, executor, judging) in enumerate(parts):
            if arm.is_new:
                begin = partial(store.create_run, arm.info, self._questions)
            else:
                arm.stored_keys = store.reply_keys(arm.info)
                begin = partial(store.update_run, arm.info)
            writer = opened.enter_context(open_writer(store, arm.info, arm.lease, self._retry, begin))
            self._writers.append(writer)
            self._recorders.append(
                Recorder(
                    writer,
                    arm.info,
                    context.grader,
                    context.progress,
                    running=running,
                    judging=judging,
                    executor=executor,
                    on_scored=partial(self._order.add_score, index) if len(self._arms) > 1 else None,
                    keep_in_memory=arm.is_new and sum(self._planned) <= MOST_IN_MEMORY,
                    defer_until_judge_ok=arm.is_new,
                    most_unjudged=self._order.most_unjudged,
                )
            )

    async def ask(self) -> None:
        """Ask what has no reply yet; grade and store it as it arrives."""
        context, arms, recorders = self._context, self._arms, self._recorders
        try:
            async with AsyncExitStack() as recording:
                for recorder in recorders:
                    await recording.enter_async_context(recorder.recording())
                context.progress.begin(arms[0].info, planned=sum(self._planned), done=0)
                with self._retry.until_stopped():
                    for arm, recorder in zip(arms, recorders, strict=True):
                        if arm.stored_keys and len(arms) == 1 and context.judge is None:
                            await recorder.add_unscored(self._store, self._questions, arm.stored_keys)
                        elif arm.stored_keys:
                            # An experiment's order depends on all scores, and a judge may be another one.
                            await recorder.add_stored(self._store, self._questions)
                    self._budget = self._open_budget()
                    trials = iter(self._order.trials(arms, self._budget))
                    while self._budget.needs_price and (first := next(trials, None)) is not None:
                        await self._ask_trials([first])
                    await self._ask_trials(trials)
        finally:
            context.progress.end()

    async def _ask_trials(self, trials: Iterable[Trial]) -> None:
        targets = [arm.target for arm in self._arms]
        async for trial in self._context.engine.ask_all(targets, trials, self._journal()):
            await self._recorders[trial.arm].add(trial)

    def _open_budget(self) -> BudgetGuard:
        budget = self._context.options.budget
        before: list[Trial] = []
        if budget is not None:
            for arm in self._arms:
                before += stored_trials(self._store, arm.info, self._questions) if arm.stored_keys else ()
        return BudgetGuard(budget, before, self._judging)

    def _journal(self) -> Callable[[Trial], None]:
        """What the engine calls the moment that a trial is answered."""
        if len(self._writers) == 1 and self._context.options.budget is None:
            return self._writers[0].append

        def journal(trial: Trial) -> None:
            self._writers[trial.arm].append(trial)
            self._budget.add(trial)

        return journal

    @property
    def wrote_nothing(self) -> bool:
        """Whether the judge proved unusable before any arm wrote anything."""
        return all(recorder.wrote_nothing for recorder in self._recorders)

    @property
    def journal_notes(self) -> list[str]:
        """Which replies only the journals have."""
        return [writer.journal_note for writer in self._writers if writer.journal_note]

    def discard(self) -> None:
        for writer in self._writers:
            writer.discard()

    def finish(self, status: Literal["interrupted"] | None = None) -> list[Run]:
        """Sum up and store each arm; without a status, by how far asking came."""
        reason = self._budget.stop_reason
        ended: Literal["interrupted", "partial", "complete"] = "complete"
        if status is not None or reason:
            ended = "interrupted"
        elif self._order.stopped_early:
            ended = "partial"
        parts = zip(self._arms, self._writers, self._recorders, self._judging, self._planned, strict=True)
        return [self._finish_arm(*part, ended, reason) for part in parts]

    def _finish_arm(
        self,
        arm: Arm,
        writer: DurableWriter,
        recorder: Recorder,
        judging: "JudgingSession | None",
        planned: int,
        status: Literal["interrupted", "partial", "complete"],
        reason: str,
    ) -> Run:
        """A small new run is summed up from memory, any other from the store in constant memory."""
        info = msgspec.structs.replace(
            arm.info,
            status="partial" if status == "complete" and writer.set_aside else status,
            judge=None if judging is None else judging.record(),
            finished_at=_now(),
            stopped=reason,
            target_version=_with_seen_hashes(arm.info.target_version, arm.target),
        )
        results: Sequence[Trial] | None = recorder.results()
        if results is None:
            results = StreamedResults(partial(self._store.results, info))
        elif writer.set_aside:
            results = tuple(t for t in results if (t.position, t.number) not in writer.set_aside)
        summed = partial(store_summary, self._context, self._store, info, self._questions, results)
        run = writer.run_owned(partial(summed, planned=planned))
        return msgspec.structs.replace(run, warnings=(*run.warnings, *writer.warnings))


# Results and summaries


def _with_seen_hashes(version: TargetVersion, target: BaseTarget) -> TargetVersion:
    """The version with the hashes that only requests to models show."""
    return msgspec.structs.replace(
        version,
        prompt_hash=version.prompt_hash or target.prompt_hash,
        tools_hash=version.tools_hash or target.tools_hash,
    )


def store_results(
    context: RunContext,
    store: SqlStore,
    results: Sequence[Trial],
    questions: QuestionSet,
    target: BaseTarget,
    target_spec: str | None,
) -> Run:
    """Store results that were asked and scored elsewhere as a run."""
    begun = new_run(context, target, target_spec, questions)
    planned = len(questions) * begun.repeat
    store.create_run(begun, questions)
    store.add(begun, results)
    status: Literal["complete", "partial"] = "complete" if len(results) == planned else "partial"
    info = msgspec.structs.replace(begun, status=status, finished_at=begun.created_at)
    return store_summary(context, store, info, questions, results, planned=planned)


def store_summary(
    context: RunContext,
    store: SqlStore,
    info: RunInfo,
    questions: QuestionSet | None,
    results: Sequence[Trial],
    *,
    planned: int | None,
) -> Run:
    """Sum up a run and store its summary; `planned` is None for a recorded log, which may have no golden set."""
    if planned is None:
        # A log has no target whose configuration could be wrong.
        summary = store.summarise(info, results)
    else:
        results = _without_configuration_errors(store, info, results)
        summary = summarise(results, planned=planned, pass_mark=info.pass_mark)
    summary = with_key_quality(summary, questions, context.options.scoring, info, store)
    store.finish_run(info, summary)
    return Run(info=info, summary=summary, warnings=run_warnings(info, summary), results=results)


# Statuses that point at credentials, address, method or body of the request; a redirect or a web page may be a sign-in.
_STATUS = lazy(r"HTTP (30[12378]|401|403|404|405|422|2\d\d: a web page)\b")
# A program that ends before it reads a question: its file, an interpreter or a module is missing, or it cannot be executed.
_NOT_STARTED = lazy(
    r"the program ended with exit code (?:(?:2|126|127)\b|\d+: .*"
    r"(?:ModuleNotFoundError|ImportError|SyntaxError|IndentationError|Cannot find module|can't open file))"
)
_SIGN_IN = "check that the target's address is the API's, and its headers or login"
_REMEDIES = {
    "401": "check the headers or the login of the target",
    "403": "check the permissions of the target's credentials",
    "404": "check the target's address",
    "405": "check the target's method",
    "422": "check the target's body",
}


def _without_configuration_errors(
    store: SqlStore, info: RunInfo, results: Sequence[Trial]
) -> Sequence[Trial]:
    """The results; if every reply is the same configuration error, they are unscored, here and in the store."""
    error = configuration_error(results)
    if error is None:
        return results
    card = unscored_card(info.weights, *error)
    unscored = tuple(trial.scored(card) for trial in results)
    # The replies stay as they are: they are what was observed.
    store.add(info, unscored, with_replies=False)
    return unscored


def configuration_error(results: Sequence[Trial]) -> tuple[str, HarnessProblem] | None:
    """What is wrong with the configuration of the target, if every reply is the same error of that kind."""
    first: Failure | None = None
    first_kind: str | None = None
    for trial in results:
        for reply in trial.replies:
            if reply.failure is None:
                return None
            kind = _configuration_kind(reply.failure)
            if kind is None or (first is not None and kind != first_kind):
                return None
            first, first_kind = first or reply.failure, kind
    if first is None or first_kind is None:
        return None
    if first_kind == "mapping":
        return (
            f"{first.message}; map the text under [targets.NAME.reply]: `answerkey ask` shows the reply",
            "mapping",
        )
    if first_kind == first.message:
        return f"no question could be asked: {first.message}; check the target's cmd", "configuration"
    return f"every reply was {first.message}; {_REMEDIES.get(first_kind, _SIGN_IN)}", "configuration"


def _configuration_kind(failure: Failure) -> str | None:
    """HTTP status, "mapping", or the message of a program that does not start; None: it does not point at the configuration."""
    if _NOT_STARTED.match(failure.message):
        return failure.message
    if failure.kind == "http" and (status := _STATUS.match(failure.message)):
        return status[1]
    return "mapping" if is_unmapped(failure) or is_never_text(failure) else None
