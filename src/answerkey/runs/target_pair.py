"""Two chatbots as one target, for an experiment that asks them side by side."""

from contextlib import AsyncExitStack
from typing import Literal

import msgspec

from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, Target


class TargetPair:
    """Both targets behind one: odd trials are the first target's, even ones the second's.

    So the engine that asks one target asks both, under one limit of concurrency and one rate, and knows nothing of it.
    """

    def __init__(self, targets: list[Target]) -> None:
        self.targets = targets
        self._open = AsyncExitStack()
        self.name = " and ".join(target.name for target in targets)
        self.fingerprint = "+".join(target.fingerprint for target in targets)

    @property
    def capacity(self) -> int | None:
        """What the smaller of them can take at once."""
        known = [
            capacity for target in self.targets if (capacity := getattr(target, "capacity", None)) is not None
        ]
        return min(known) if known else None

    @property
    def replays(self) -> bool:
        """Both give back what was recorded."""
        return all(getattr(target, "replays", False) for target in self.targets)

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
        wait_for_room = getattr(self.targets[_arm_and_trial(ask.trial)[0]], "wait_for_room", None)
        if wait_for_room is not None:
            await wait_for_room(ask)

    async def ask(self, ask: Ask) -> Reply:
        """Ask the chatbot whose trial it is."""
        arm, trial = _arm_and_trial(ask.trial)
        return await self.targets[arm].ask(msgspec.structs.replace(ask, trial=trial))


def _arm_and_trial(number: int) -> tuple[Literal[0, 1], int]:
    return (0 if number % 2 else 1), (number + 1) // 2


def own_trial(trial: Trial) -> tuple[Literal[0, 1], Trial]:
    """An arm, and the trial as that arm's run numbers it."""
    arm, number = _arm_and_trial(trial.number)
    return arm, msgspec.structs.replace(trial, number=number)
