"""`faults`: each question asked twice, clean and with one fault in the result of one tool call.

The twins are the two arms of one run over the same target. What the faulted twin meets is planned when its clean twin has
answered: only then is it known which tools the chatbot uses for the question.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any

import msgspec

from answerkey.config import settings_hash
from answerkey.errors import UsageError, nearest_name
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.reply import (
    ERROR_TEXTS,
    FAULT_KINDS,
    OTHER_DATA,
    WORDINGS,
    Failure,
    Fault,
    FaultKind,
    FaultRecord,
    FaultSettings,
    Reply,
    ToolCall,
    decoded,
    plant,
    shape,
    stale,
)
from answerkey.model.run import ExperimentLink, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, BaseTarget, TargetWrapper
from answerkey.runs.context import RunContext
from answerkey.runs.fault_results import FaultResult, fault_result, outcome_of
from answerkey.runs.recorder import replay_journal
from answerkey.runs.run import Arm, BudgetGuard, ask_and_grade, ask_arms, changed_inputs, new_run, reopen_run
from answerkey.runs.stored import new_run_id, open_configured_store, stored_trials
from answerkey.store.database import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike

CLEAN, FAULTED = 0, 1
# Recorded results of one tool and shape that a wrong record is taken from, at most.
_MOST_RECORDS = 50
_Key = tuple[str, int]


def fault_settings(
    kinds: Sequence[str], tools: Sequence[str], per_question: int, options: Options
) -> FaultSettings:
    """What to plan; raises an error for what is not a kind."""
    unknown = [kind for kind in kinds if kind not in FAULT_KINDS]
    if unknown:
        close = nearest_name(unknown[0], FAULT_KINDS)
        hint = f"did you mean {close!r}?" if close else f"there are {', '.join(FAULT_KINDS)}"
        raise UsageError(f"unknown kind of fault {unknown[0]!r}; {hint}")
    if per_question < 1:
        raise UsageError(f"{per_question} faults for each question: must be at least 1")
    if options.repeat != 1:
        raise UsageError("faults asks each question once clean; use --per-question K for several faults")
    if options.engine != "local":
        raise UsageError(f"faults asks from this machine only; remove --engine {options.engine}")
    chosen = tuple(kind for kind in FAULT_KINDS if not kinds or kind in kinds)
    return FaultSettings(kinds=chosen, tools=tuple(dict.fromkeys(tools)), per_question=per_question)


async def run_faults(
    context: RunContext,
    questions: QuestionSet,
    target: TargetLike,
    settings: FaultSettings,
    *,
    confirm: int = 0,
) -> FaultResult:
    """Ask every question clean and with faults, and store both runs; `confirm` asks again what was not handled."""
    async with AsyncExitStack() as opened:
        twins = _Twins(context, questions, context.target(target), settings)
        await opened.enter_async_context(twins.target)
        store = open_configured_store(context.settings, context.options.store)
        link = ExperimentLink(runs=(new_run_id(), new_run_id()), early_stop=False, faults=settings)
        spec = target if isinstance(target, str) else None
        name = context.options.name or "faults"
        arms = []
        for run_id, part, twin in zip(link.runs, ("clean", "faulted"), twins.targets, strict=True):
            info = new_run(
                context, twin, spec, questions, run_id=run_id, name=f"{name}-{part}", experiment=link
            )
            if twin is twins.faulted:
                info = msgspec.structs.replace(info, repeat=settings.per_question)
            lease = opened.enter_context(claim_run(store.database, run_id))
            arms.append(Arm(info=info, target=twin, lease=lease, is_new=True))
        return await twins.ask(store, arms, confirm)


async def resume_faults(context: RunContext, info: RunInfo, store: SqlStore) -> FaultResult:
    """Ask what both runs of an interrupted pass lack."""
    link = info.experiment
    if link is None or link.faults is None:
        raise UsageError(f"run {info.id} is not a run of faults; use: answerkey resume {info.id}")
    async with AsyncExitStack() as opened:
        leases = [opened.enter_context(claim_run(store.database, run_id)) for run_id in link.runs]
        infos = [store.find_run(run_id) for run_id in link.runs]
        spec = infos[CLEAN].target_spec
        if spec is None:
            raise UsageError(f"run {info.id} asked a Python object; run it again from Python")
        questions = QuestionSet(
            questions=tuple(store.questions(info.question_set_hash)),
            name=info.question_set,
            path=info.question_path,
        )
        context.grader.set_questions(questions)
        twins = _Twins(context, questions, context.target(spec), link.faults)
        await opened.enter_async_context(twins.target)
        arms = [
            _stored_arm(context, store, *parts) for parts in zip(infos, twins.targets, leases, strict=True)
        ]
        twins.note_stored(store, arms)
        return await twins.ask(store, arms)


def _stored_arm(context: RunContext, store: SqlStore, info: RunInfo, twin: BaseTarget, lease: Lease) -> Arm:
    if changed := changed_inputs(info, context, twin):
        raise UsageError(
            f"run {info.id}: {' and '.join(changed)} changed since; undo that, or start a new run of faults"
        )
    replay_journal(store, info)
    return Arm(info=reopen_run(info, context), target=twin, lease=lease, is_new=False)


class _Twins:
    """One target asked in two ways, and the plan that connects them."""

    def __init__(
        self, context: RunContext, questions: QuestionSet, target: BaseTarget, settings: FaultSettings
    ) -> None:
        if context.options.proxy is None and not target.takes_faults:
            raise UsageError(
                f"target {target.name}: answerkey cannot reach its tools; put the proxy before its model (--proxy), or mark the "
                "tools of a Python chatbot with @answerkey.fault_point"
            )
        self._context = context
        self._questions = questions
        self.target = target
        self.plan = FaultPlan(
            questions, settings, context.options.seed, is_proxied=context.options.proxy is not None
        )
        self.clean = CleanTwin(target, self.plan)
        self.faulted = FaultedTwin(target, self.plan, settings)
        self.targets: tuple[BaseTarget, BaseTarget] = (self.clean, self.faulted)

    def note_stored(self, store: SqlStore, arms: Sequence[Arm]) -> None:
        """What was asked before an interruption is planned alike."""
        for trial in stored_trials(store, arms[FAULTED].info, self._questions):
            self.plan.note_faulted(trial)
        for trial in stored_trials(store, arms[CLEAN].info, self._questions):
            for turn, reply in enumerate(trial.replies):
                self.plan.note_clean(trial.question.id, turn, reply)

    async def ask(self, store: SqlStore, arms: Sequence[Arm], confirm: int = 0) -> FaultResult:
        """Ask both arms, interleaved, then cases that were not handled again."""
        order = TwinOrder(self._questions, self._context.options.concurrency, self.plan)
        clean, faulted = await ask_arms(self._context, store, self._questions, arms, order)
        confirmed = await self._confirm(clean, faulted, confirm) if confirm else {}
        return fault_result(clean, faulted, warnings=self.target.warnings(), confirmed=confirmed)

    async def _confirm(self, clean: Run, faulted: Run, times: int) -> dict[tuple[str, int], tuple[int, int]]:
        """Ask each case that was not handled again with the same fault; its further replies are not stored."""
        bad = {
            (case.id, case.trial): case.outcome
            for case in fault_result(clean, faulted).cases
            if case.landed and not case.is_resilient
        }
        self.plan.end()
        again: Counter[tuple[str, int]] = Counter()
        for number in range(1, self.plan.per_question + 1):
            for _ in range(times):
                # One trial of a question at a time: a proxy could not separate two.
                trials = [
                    Trial(question, number, position)
                    for position, question in enumerate(self._questions)
                    if (question.id, number) in bad
                ]
                async for trial in ask_and_grade(self._context, self.faulted, trials):
                    key, outcome = (trial.question.id, number), outcome_of(trial.scorecard)
                    again[key] += outcome is not None and outcome.name == bad[key]
        return {key: (again[key], times) for key in bad}


class TwinOrder:
    """Each faulted trial is asked after its clean twin, as many questions later as are asked at once."""

    most_unjudged = None
    stopped_early = False

    def __init__(self, questions: QuestionSet, concurrency: int, plan: "FaultPlan") -> None:
        self._questions = questions
        self._lag = concurrency
        self._plan = plan

    def trials(self, arms: Sequence[Arm], budget: BudgetGuard) -> Iterable[Trial]:
        """The trials without a stored reply."""
        return budget.admit(self._missing(arms))

    def _missing(self, arms: Sequence[Arm]) -> Iterator[Trial]:
        waiting: list[Trial] = []
        for position, question in enumerate(self._questions):
            if (question.ask_hash, 1) not in arms[CLEAN].stored_keys:
                yield Trial(question, 1, position, arm=CLEAN)
            waiting += [
                Trial(question, number, position, arm=FAULTED)
                for number in range(1, self._plan.per_question + 1)
                if (question.ask_hash, number) not in arms[FAULTED].stored_keys
            ]
            if position >= self._lag and waiting:
                yield waiting.pop(0)
        yield from waiting

    def add_score(self, arm: int, trial: Trial) -> None:
        """Scores do not change the order."""


# The plan


class _Target(msgspec.Struct, frozen=True):
    """A call that can be broken: in which turn, which call of its tool."""

    turn: int
    number: int
    call: ToolCall


class FaultPlan:
    """Which fault each faulted trial meets, balanced over tools and kinds.

    Trials are planned in the order of the set, each as soon as its clean twin and all before it have answered: the same seed and
    clean replies give the same plan.
    """

    def __init__(
        self, questions: QuestionSet, settings: FaultSettings, seed: int, *, is_proxied: bool = False
    ) -> None:
        self._settings = settings
        self._seed = seed
        self.per_question = settings.per_question
        # A proxy could not separate two trials of one question in flight.
        self.is_proxied = is_proxied
        self._turns = {question.id: len(question.asks) for question in questions}
        self._clean: dict[str, dict[int, Reply]] = {question.id: {} for question in questions}
        self._order: list[_Key] = [
            (question.id, number) for question in questions for number in range(1, self.per_question + 1)
        ]
        self._planned = 0
        self._plans: dict[_Key, FaultRecord] = {}
        self._stored: dict[_Key, FaultRecord] = {}
        self._done: set[_Key] = set()
        self._changed = asyncio.Event()
        # Tools, kinds, and pairs of them, and of a question and a kind → how often they were planned.
        self._used: Counter[str] = Counter()
        # Tool and shape → recorded results.
        self._records: dict[tuple[str, str], list[Any]] = {}

    def note_clean(self, question_id: str, turn: int, reply: Reply) -> None:
        """A clean twin has answered a turn."""
        self._clean[question_id][turn] = reply
        if len(self._clean[question_id]) == self._turns[question_id]:
            self._advance()

    def note_faulted(self, trial: Trial) -> None:
        """A stored faulted trial keeps its fault."""
        record = next((reply.fault for reply in trial.replies if reply.fault is not None), None)
        if record is not None:
            self._stored[trial.question.id, trial.number] = record

    def note_done(self, question_id: str, number: int) -> None:
        """A faulted trial has ended."""
        self._done.add((question_id, number))
        self._signal()

    def end(self) -> None:
        """Every trial has ended: further ones with the same faults need not wait."""
        self._done.update(self._order)

    async def wait(self, question_id: str, number: int) -> None:
        """Wait until the fault of a trial is planned and the trial may begin."""
        earlier = {(question_id, one) for one in range(1, number)} if self.is_proxied else set()
        while (question_id, number) not in self._plans or not earlier <= self._done | self._stored.keys():
            await self._changed.wait()

    def turns_of(self, question_id: str) -> int:
        return self._turns[question_id]

    def planned(self, question_id: str, number: int) -> FaultRecord:
        """The plan of a trial: a fault, or why there is none."""
        return self._plans[question_id, number]

    def _signal(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _advance(self) -> None:
        while self._planned < len(self._order):
            key = self._order[self._planned]
            replies = self._clean[key[0]]
            if len(replies) < self._turns[key[0]]:
                break
            if key[1] == 1:
                self._add_records(replies.values())
            record = self._stored.get(key) or self._plan(key, replies)
            self._plans[key] = record
            if record.fault is not None:
                fault, name = record.fault, key[0]
                self._used.update(
                    [fault.tool, fault.kind, f"{fault.tool} {fault.kind}", f"{name} {fault.kind}"]
                )
                self._used[f"{name} {fault.kind} {fault.tool} {fault.turn} {fault.call}"] += 1
            self._planned += 1
        self._signal()

    def _add_records(self, replies: Iterable[Reply]) -> None:
        for call in (call for reply in replies for call in reply.tool_calls):
            if call.result_seen and call.error is None and call.result is not None:
                value = decoded(call.result)
                records = self._records.setdefault((call.name, shape(value)), [])
                if value not in records and len(records) < _MOST_RECORDS:
                    records.append(value)

    def _plan(self, key: _Key, replies: dict[int, Reply]) -> FaultRecord:
        breakable = list(self._breakable(replies))
        if not breakable:
            return FaultRecord(reason=self._why_none(replies))
        chance = random.Random(f"{self._seed}:{key[0]}:{key[1]}")
        choices = [
            (self._uses(key[0], kind, one), chance.random(), kind, one)
            for one in breakable
            for kind in self._settings.kinds
            if self._is_possible(kind, one.call)
        ]
        if not choices:
            kinds = ", ".join(self._settings.kinds)
            return FaultRecord(reason=f"no recorded result that {kinds} could be made from")
        *_, kind, one = min(choices, key=lambda choice: choice[:2])
        return FaultRecord(fault=self._make(kind, one, chance))

    def _uses(self, question_id: str, kind: FaultKind, one: _Target) -> tuple[int, ...]:
        """How often what a fault consists of was planned; the least used is planned next."""
        tool, used = one.call.name, self._used
        return (
            # Several faults of one question are of different kinds, then in later calls.
            used[f"{question_id} {kind}"],
            used[f"{question_id} {kind} {tool} {one.turn} {one.number}"],
            one.number,
            used[f"{tool} {kind}"],
            used[kind],
            used[tool],
        )

    def _breakable(self, replies: dict[int, Reply]) -> Iterator[_Target]:
        for turn, reply in replies.items():
            numbers: Counter[str] = Counter()
            for call in reply.tool_calls:
                numbers[call.name] += 1
                if not self._settings.tools or call.name in self._settings.tools:
                    yield _Target(turn, numbers[call.name], call)

    def _why_none(self, replies: dict[int, Reply]) -> str:
        used = {call.name for reply in replies.values() for call in reply.tool_calls}
        if used:
            return f"the clean reply used {', '.join(sorted(used))} only"
        failure = next((reply.failure for reply in replies.values() if reply.failure is not None), None)
        if failure is not None:
            return f"the clean reply failed ({failure.kind})"
        if not all(reply.evidence.tools_observed for reply in replies.values()):
            return "the tool calls of the clean reply were not observed"
        return "the clean reply used no tool"

    def _is_possible(self, kind: FaultKind, call: ToolCall) -> bool:
        """Whether a fault of this kind can be made of what is known of the call's result."""
        if kind in ERROR_TEXTS or kind in ("garbage", "injection"):
            return True
        if not call.result_seen or call.error is not None or not decoded(call.result):
            return kind == "empty" and not call.result_seen
        value = decoded(call.result)
        if kind == "wrong_record":
            return bool(self._others(call.name, value))
        return kind != "stale" or stale(value) != value

    def _others(self, tool: str, value: Any) -> list[Any]:
        return [other for other in self._records.get((tool, shape(value)), ()) if other != value]

    def _make(self, kind: FaultKind, one: _Target, chance: random.Random) -> Fault:
        fault = Fault(
            tool=one.call.name,
            kind=kind,
            call=one.number,
            turn=one.turn,
            true_value=one.call.result if kind in OTHER_DATA else None,
        )
        if kind in ERROR_TEXTS:
            return msgspec.structs.replace(fault, text=ERROR_TEXTS[kind])
        if kind == "wrong_record":
            others = self._others(one.call.name, decoded(one.call.result))
            return msgspec.structs.replace(fault, value=chance.choice(others))
        if kind == "injection":
            mark = f"{chance.getrandbits(24):06x}"
            word, tool = f"marigold-{mark}", f"confirm_record_{mark}"
            text = chance.choice(WORDINGS).format(word=word, tool=tool)
            fault = msgspec.structs.replace(fault, text=text, canary_word=word, canary_tool=tool)
        return msgspec.structs.replace(fault, value=plant(fault, one.call.result).result)


# The twins


class CleanTwin(TargetWrapper):
    """The target as it is; its replies decide what can be broken."""

    def __init__(self, target: BaseTarget, plan: FaultPlan) -> None:
        super().__init__(target)
        self._plan = plan

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """Observe the reply, and plan with it."""
        try:
            reply = await self.target.observe(ask, reply)
        finally:
            self._plan.note_clean(ask.question_id, ask.turn, reply)
        return reply


class FaultedTwin(TargetWrapper):
    """The target with faults in its tools."""

    # Others than of the target itself: its replies are never reused as the chatbot's.
    name = cached_property(lambda self: f"{self.target.name} (faults)")
    fingerprint = cached_property(
        lambda self: settings_hash("faults", [self.target.fingerprint, msgspec.to_builtins(self.settings)])
    )

    def __init__(self, target: BaseTarget, plan: FaultPlan, settings: FaultSettings) -> None:
        super().__init__(target)
        self._plan = plan
        self.settings = settings

    async def wait_for_room(self, ask: Ask) -> None:
        """Wait for the clean twin, then for room."""
        await self._plan.wait(ask.question_id, ask.trial)
        await self.target.wait_for_room(ask)

    async def ask(self, ask: Ask) -> Reply:
        """Ask with the planned fault; nothing is asked where there is none."""
        record = self._plan.planned(ask.question_id, ask.trial)
        if record.fault is None:
            return Reply(fault=record)
        return await self.target.ask(self._with_fault(ask))

    async def so_far(self, ask: Ask) -> Reply | None:
        """What a question that timed out had done."""
        return await self.target.so_far(self._with_fault(ask))

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """Observe the reply, and note what became of the fault."""
        planned = self._plan.planned(ask.question_id, ask.trial)
        if ask.turn + 1 >= self._plan.turns_of(ask.question_id):
            self._plan.note_done(ask.question_id, ask.trial)
        if planned.fault is None:
            return _not_faulted(reply, planned)
        reply = await self.target.observe(self._with_fault(ask), reply)
        if ask.turn != planned.fault.turn:
            return reply
        return _with_record(reply, planned.fault)

    def _with_fault(self, ask: Ask) -> Ask:
        fault = self._plan.planned(ask.question_id, ask.trial).fault
        # The proxy follows the whole conversation.
        is_here = fault is not None and (self._plan.is_proxied or fault.turn == ask.turn)
        return msgspec.structs.replace(ask, fault=fault if is_here else None)


def _with_record(reply: Reply, fault: Fault) -> Reply:
    """The reply with what became of its fault: as the target or the proxy noted it, or as its calls show it."""
    record = reply.fault or _record_in_calls(reply, fault)
    if not record.landed:
        return _not_faulted(reply, record)
    calls, place = list(reply.tool_calls), _index_of(reply, record)
    given = ToolCall(name=fault.tool, id=record.call_id) if place is None else calls[place]
    broken = msgspec.structs.replace(given, injected=True, result_seen=True)
    if record.result is not None or record.error is not None:
        broken = msgspec.structs.replace(broken, result=record.result, error=record.error)
    elif not (given.result_seen or given.error):
        # Only the chatbot knows what it got.
        error = fault.text if fault.kind in ERROR_TEXTS else None
        broken = msgspec.structs.replace(broken, result=fault.value, error=error)
    if place is None:
        # The chatbot does not report its calls.
        calls.append(broken)
    else:
        calls[place] = broken
    record = msgspec.structs.replace(record, result=broken.result, error=broken.error)
    return msgspec.structs.replace(reply, tool_calls=tuple(calls), fault=record)


def _not_faulted(reply: Reply, record: FaultRecord) -> Reply:
    """A reply without its fault counts as nothing."""
    failure = Failure("not_faulted", record.reason)
    return msgspec.structs.replace(reply, fault=record, failure=failure)


def _index_of(reply: Reply, record: FaultRecord) -> int | None:
    """Index of the broken call among the calls of a reply; None if it is not there."""
    fault = record.fault
    if fault is None:
        return None
    by_id = [
        number for number, call in enumerate(reply.tool_calls) if record.call_id and call.id == record.call_id
    ]
    by_name = [number for number, call in enumerate(reply.tool_calls) if call.name == fault.tool]
    return by_id[0] if by_id else by_name[fault.call - 1] if len(by_name) >= fault.call else None


def _record_in_calls(reply: Reply, fault: Fault) -> FaultRecord:
    """Whether the recorded calls show the fault."""
    record = FaultRecord(fault=fault, landed=True, error=fault.text if fault.kind in ERROR_TEXTS else None)
    place = _index_of(reply, record)
    if place is None and reply.failure is not None and not reply.tool_calls:
        return FaultRecord(
            fault=fault, reason=f"no reply ({reply.failure.kind}): whether it landed is not known"
        )
    if place is None:
        calls = f"{fault.tool} was not called" + (f" {fault.call} times" if fault.call > 1 else "")
        return FaultRecord(fault=fault, reason=calls)
    call = reply.tool_calls[place]
    shows_error = record.error is not None and record.error in (call.error or "")
    shows_value = (
        record.error is None and fault.value is not None and decoded(call.result) == decoded(fault.value)
    )
    if shows_error or shows_value:
        return msgspec.structs.replace(record, result=call.result, call_id=call.id)
    return FaultRecord(
        fault=fault,
        reason=f"the chatbot did not break {fault.tool}: no fault point, no --proxy, or the header is ignored",
    )
