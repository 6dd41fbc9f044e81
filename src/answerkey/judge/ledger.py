"""Ledger: what judging has cost, and whether the budget allows another call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from answerkey.judge.verdict import UnjudgedError
from answerkey.model.judge_answer import Spent
from answerkey.model.prices import Price
from answerkey.model.reply import Usage

# Before the first verdict nobody knows how long they are; later the longest seen counts.
_OUTPUT_GUESS = 600
# Fewer characters per token than any usual tokenizer, so that the guess is on the safe side.
_CHARS_PER_TOKEN = 2.5


def spent_on(usage: Usage | None, price: Price | None) -> Spent:
    """What a completion's usage comes to; a cost that the provider states itself counts without a price."""
    used = usage or Usage()
    cost = used.cost if price is None else price.cost(used)
    return Spent(used.input_tokens or 0, used.output_tokens or 0, cost)


class Ledger:
    """Counts calls. A call begins only if the budget still covers it and all others under way."""

    def __init__(self, budget: float | None, before: Spent, *, priced: bool) -> None:
        self._budget = budget
        # What calls under way may cost, each.
        self._reserved: list[float] = []
        self._ended = asyncio.Event()
        self._longest_output = 0
        self.input_tokens = before.input_tokens
        self.output_tokens = before.output_tokens
        self.cost = before.cost or 0.0
        # False: some call's cost is unknown, and so is the sum.
        self.cost_known = priced
        self.calls = 0
        # Calls that the budget did not allow.
        self.refused = 0

    @asynccontextmanager
    async def reserved(self, characters: int, price: Price | None) -> AsyncIterator[None]:
        """Set aside what a call may cost while it is under way.

        Raises UnjudgedError if the budget does not cover it once all other calls have ended.
        """
        if self._budget is None or price is None:
            yield
            return
        while True:
            output = self._longest_output or _OUTPUT_GUESS
            usage = Usage(input_tokens=round(characters / _CHARS_PER_TOKEN), output_tokens=output)
            guess = price.cost(usage) or 0.0
            if self.cost + sum(self._reserved) + guess <= self._budget:
                break
            if not self._reserved:
                self.refused += 1
                raise UnjudgedError(f"the judge's budget of {self._budget:g} is used up", "budget")
            # Those under way may turn out cheaper than was set aside for them.
            await self._ended.wait()
        self._reserved.append(guess)
        try:
            yield
        finally:
            self._reserved.remove(guess)
            self._ended.set()
            self._ended = asyncio.Event()

    def add(self, spent: Spent) -> None:
        """Count a call that was answered."""
        self.calls += 1
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens
        self._longest_output = max(self._longest_output, spent.output_tokens)
        if spent.cost is not None:
            self.cost += spent.cost
            self.cost_known = self.cost_known or self.calls == 1
        else:
            self.cost_known = False
