"""Every wrapper forwards every ability of a target: one that forgot some lost calls, costs and warnings."""

import asyncio
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.engine import AskingWorker, SpreadTarget
from answerkey.model.options import Options, Price
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import FaultSettings, Reply, ToolCall, Usage
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.protocols import Ask, BaseTarget, TargetWrapper
from answerkey.runs.faults import CleanTwin, FaultedTwin, FaultPlan
from answerkey.targets.resolve import PricedTarget, TargetAdapter, resolve_target

ASK = Ask(question="What?", conversation_id="c")
DONE = Reply(tool_calls=(ToolCall(name="query"),), usage=Usage(input_tokens=10, output_tokens=5))

# Members with a value, each different from BaseTarget's default.
VALUES: dict[str, Any] = {
    "name": "the wrapped one",
    "fingerprint": "f-1",
    "capacity": 7,
    "replays": True,
    "code": Path("bot.py"),
    "model": "some-model",
    "base_url": "http://127.0.0.1/v1",
    "prompt_hash": "p-1",
    "tools_hash": "t0015",
    "takes_faults": True,
}
# Members with behaviour, and how each is used.
CALLS: dict[str, Callable[[Any], Any]] = {
    "__aenter__": lambda target: target.__aenter__(),
    "__aexit__": lambda target: target.__aexit__(None, None, None),
    "check_reachable": lambda target: target.check_reachable(),
    "wait_for_room": lambda target: target.wait_for_room(ASK),
    "ask": lambda target: target.ask(ASK),
    "observe": lambda target: target.observe(ASK, DONE),
    "so_far": lambda target: target.so_far(ASK),
    "warnings": lambda target: target.warnings(),
}


class Noting:
    """A target that notes what is called; it does not derive from BaseTarget."""

    def __init__(self) -> None:
        self.called: list[str] = []
        vars(self).update(VALUES)

    async def __aenter__(self) -> "Noting":
        self.called.append("__aenter__")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.called.append("__aexit__")

    async def check_reachable(self) -> bool:
        self.called.append("check_reachable")
        return True

    async def wait_for_room(self, ask: Ask) -> None:
        self.called.append("wait_for_room")

    async def ask(self, ask: Ask) -> Reply:
        self.called.append("ask")
        return DONE

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        self.called.append("observe")
        return reply

    def so_far(self, ask: Ask) -> Reply:
        self.called.append("so_far")
        return DONE

    def warnings(self) -> list[str]:
        self.called.append("warnings")
        return ["something is missing"]


class NotingBase(Noting, BaseTarget):  # type: ignore[misc]  # so_far need not be a coroutine in a user's target
    """The same, derived from BaseTarget."""

    async def so_far(self, ask: Ask) -> Reply:  # type: ignore[override]
        return super().so_far(ask)


class RemoteMethod:
    """A method of a worker, called as Ray calls it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.remote = method


class LocalWorker:
    """A worker in this process."""

    def __init__(self, target: BaseTarget) -> None:
        self._worker = AskingWorker(lambda: target, ".")

    def __getattr__(self, name: str) -> RemoteMethod:
        return RemoteMethod(getattr(self._worker, name))


class LocalSpreadTarget(SpreadTarget):
    """SpreadTarget with one worker in this process instead of a cluster."""

    def __init__(self, target: BaseTarget) -> None:
        super().__init__(target, lambda: target, Options())

    async def __aenter__(self) -> "LocalSpreadTarget":
        self._workers = [LocalWorker(self.target)]
        await self._workers[0].start.remote()
        self._ray = type("Ray", (), {"kill": lambda worker: None, "exceptions": NoErrors})
        return self


class NoErrors:
    RayTaskError = RayError = ZeroDivisionError


WRAPPERS: dict[type, Callable[[], tuple[BaseTarget, Noting]]] = {}
# Values that a wrapper has of its own, on purpose.
OWN_VALUES: dict[type, set[str]] = {FaultedTwin: {"name", "fingerprint"}}


def wrapper(kind: type, make: Callable[[Any], BaseTarget], inner: type = NotingBase) -> None:
    def both() -> tuple[BaseTarget, Noting]:
        noting = inner()
        return make(noting), noting

    WRAPPERS[kind] = both


wrapper(TargetWrapper, TargetWrapper)
wrapper(PricedTarget, lambda target: PricedTarget(target, Price(input=1.0, output=1.0)))
wrapper(ObservedTarget, lambda target: ObservedTarget(target, Observers(Options(traces=0, trace_quiet=0.01))))
wrapper(SpreadTarget, LocalSpreadTarget)
wrapper(TargetAdapter, TargetAdapter, inner=Noting)
wrapper(CleanTwin, lambda target: CleanTwin(target, make_plan()))
wrapper(FaultedTwin, lambda target: FaultedTwin(target, make_plan(), FaultSettings()))


def make_plan() -> FaultPlan:
    """The plan of a question whose clean twin has answered."""
    plan = FaultPlan(
        QuestionSet(questions=(Question(id=ASK.question_id, question=ASK.question),)), FaultSettings(), seed=1
    )
    plan.note_clean(ASK.question_id, ASK.turn, DONE)
    return plan


def members() -> set[str]:
    declared = {name for name in inspect.get_annotations(BaseTarget) if not name.startswith("_")}
    methods = {name for name, value in vars(BaseTarget).items() if inspect.isfunction(value)}
    return declared | methods


def subclasses(kind: type) -> set[type]:
    found = set(kind.__subclasses__())
    return found | {below for one in found for below in subclasses(one)}


def test_every_member_of_a_target_is_tested_here() -> None:
    assert members() == {*VALUES, *CALLS}


def test_every_wrapper_is_tested_here() -> None:
    root = Path(answerkey.__file__).parent
    for path in root.rglob("*.py"):
        if "(TargetWrapper)" in path.read_text():
            importlib.import_module(".".join(["answerkey", *path.relative_to(root).with_suffix("").parts]))
    ours = {kind for kind in subclasses(TargetWrapper) if kind.__module__.startswith("answerkey.")}
    assert ours <= set(WRAPPERS)


@pytest.mark.parametrize("kind", WRAPPERS)
@pytest.mark.parametrize("name", VALUES)
def test_every_wrapper_forwards_every_value(kind: type, name: str) -> None:
    target, _ = WRAPPERS[kind]()
    assert (getattr(target, name) == VALUES[name]) == (name not in OWN_VALUES.get(kind, ()))


@pytest.mark.parametrize("kind", WRAPPERS)
def test_every_wrapper_forwards_every_call(kind: type) -> None:
    async def use(target: BaseTarget) -> tuple[Reply, Reply | None]:
        async with target:
            await target.check_reachable()
            await target.wait_for_room(ASK)
            reply = await target.observe(ASK, await target.ask(ASK))
            return reply, await target.so_far(ASK)

    target, noting = WRAPPERS[kind]()
    reply, so_far = asyncio.run(use(target))
    assert target.warnings()[0] == "something is missing"
    assert set(noting.called) == set(CALLS)
    assert so_far is not None
    assert reply.tools_used == so_far.tools_used == ("query",)


def test_what_a_price_adds_is_part_of_a_question_that_timed_out() -> None:
    target, _ = WRAPPERS[PricedTarget]()
    done = asyncio.run(target.so_far(ASK))
    assert done is not None
    assert done.usage is not None
    assert done.usage.cost == pytest.approx(15 / 1e6)


def test_a_plain_target_needs_none_of_the_optional_members() -> None:
    class Plain:
        name = fingerprint = "plain"

        async def __aenter__(self) -> "Plain":
            return self

        async def __aexit__(self, *exc: object) -> None:
            """Nothing is open."""

        async def ask(self, ask: Ask) -> Reply:
            return Reply(text="nul\0")

    target = resolve_target(Plain())
    defaults = {name: vars(BaseTarget).get(name, "plain") for name in VALUES}
    assert {name: getattr(target, name) for name in VALUES} == defaults
    assert asyncio.run(target.so_far(ASK)) is None
    assert asyncio.run(target.observe(ASK, DONE)) == DONE
    assert target.warnings() == []
    assert "\0" not in (asyncio.run(target.ask(ASK)).text or ""), "a reply that can be stored"
