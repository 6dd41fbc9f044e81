"""Two chatbots as one target, for an experiment that asks them side by side."""

from contextlib import AsyncExitStack
from typing import Literal

import msgspec

from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, BaseTarget


class TargetPair(BaseTarget):
    """Both targets behind one: odd trials are the first target's, even ones the second's.

    So the engine that asks one target asks both, under one limit of concurrency and one rate, and knows nothing of it.
    """

    def __init__(self, targets: list[BaseTarget]) -> None:
        self.targets = targets
        self._open = AsyncExitStack()
        self.name = " and ".join(target.name for target in targets)
        self.fingerprint = "+".join(target.fingerprint for target in targets)
        capacities = [target.capacity for target in targets if target.capacity is not None]
        self.capacity = min(capacities, default=None)
        self.replays = all(target.replays for target in targets)

    async def __aenter__(self) -> "TargetPair":
        try:
            for target in self.targets:
                await self._open.enter_async_context(target)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    async def wait_for_room(self, ask: Ask) -> None:
        """Wait until the chatbot that is asked can take the question."""
        target, own = self._arm(ask)
        await target.wait_for_room(own)

    async def ask(self, ask: Ask) -> Reply:
        """Ask the chatbot whose trial it is."""
        target, own = self._arm(ask)
        return await target.ask(own)

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """What the arm's target saw."""
        target, own = self._arm(ask)
        return await target.observe(own, reply)

    async def so_far(self, ask: Ask) -> Reply | None:
        """What the arm's target had done."""
        target, own = self._arm(ask)
        return await target.so_far(own)

    def warnings(self) -> list[str]:
        """Those of both."""
        return [line for target in self.targets for line in target.warnings()]

    def _arm(self, ask: Ask) -> tuple[BaseTarget, Ask]:
        arm, trial = _arm_and_trial(ask.trial)
        return self.targets[arm], msgspec.structs.replace(ask, trial=trial)


def _arm_and_trial(number: int) -> tuple[Literal[0, 1], int]:
    return (0 if number % 2 else 1), (number + 1) // 2


def own_trial(trial: Trial) -> tuple[Literal[0, 1], Trial]:
    """An arm, and the trial as that arm's run numbers it."""
    arm, number = _arm_and_trial(trial.number)
    return arm, msgspec.structs.replace(trial, number=number)
