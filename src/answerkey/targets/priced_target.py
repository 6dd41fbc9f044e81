"""A target whose replies get their cost from a price."""

from typing import Any

import msgspec

from answerkey.model.prices import Price, priced
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, RetryableError, Target


class PricedTarget:
    """Another target, with a price."""

    def __init__(self, target: Target, price: Price) -> None:
        self._target = target
        self._price = price
        self.name = target.name
        self.fingerprint = target.fingerprint

    def __getattr__(self, name: str) -> Any:
        # What the engine looks for besides, such as its capacity.
        return getattr(self._target, name)

    async def __aenter__(self) -> "PricedTarget":
        await self._target.__aenter__()
        # Some know what they are only once they are open.
        self.name, self.fingerprint = self._target.name, self._target.fingerprint
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._target.__aexit__(*exc)

    def so_far(self, ask: Ask) -> Reply | None:
        """What was done of a turn that was given up, where the target knows it."""
        known = getattr(self._target, "so_far", None)
        done: Reply | None = None if known is None else known(ask)
        return None if done is None else priced(done, self._price)

    async def ask(self, ask: Ask) -> Reply:
        """Ask it, and reckon what that cost."""
        try:
            return priced(await self._target.ask(ask), self._price)
        except RetryableError as error:
            if error.so_far is not None:
                error.so_far = priced(
                    msgspec.structs.replace(error.so_far, failure=error.failure), self._price
                )
            raise
