"""Judgements under their keys: read before a judge is asked, written before its verdict counts.

Reads and writes of many calls share transactions: whatever is wanted while one is under way goes into the next.
A verdict counts only once it is on disk, so that a killed run never pays twice for what it had counted.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Protocol

from answerkey.model.judge_answer import Answer, Spent

__all__ = ["JudgementCache", "JudgementStore"]

_MOST_PER_BATCH = 500
_GATHERING_S = 0.01


class JudgementStore(Protocol):
    """Where answers last."""

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → text, of those that are there."""
        ...

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Keep answers, durably."""
        ...

    def spent_on(self, run_id: str) -> Spent:
        """What a run has paid so far."""
        ...


class JudgementCache:
    """Batched access to a JudgementStore; without one, answers last as long as the process."""

    def __init__(self, store: JudgementStore | None, run_id: str, executor: Executor | None = None) -> None:
        self._store = store
        self._run_id = run_id
        self._executor = executor
        self._memory: dict[str, str] = {}
        self._wanted: list[tuple[tuple[str, ...], asyncio.Future[Mapping[str, str]]]] = []
        self._written: list[tuple[Answer, asyncio.Future[None]]] = []
        self._work = asyncio.Event()
        self._clerk: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "JudgementCache":
        if self._store is not None:
            self._clerk = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._clerk is not None:
            self._clerk.cancel()
            with suppress(asyncio.CancelledError):
                await self._clerk
        # What arrived but was not written yet has been paid for.
        if self._store is not None and self._written:
            self._store.add_answers(self._run_id, [answer for answer, _ in self._written])
            self._written = []

    async def find(self, keys: tuple[str, ...]) -> Mapping[str, str]:
        """The answers that are there, by key."""
        if self._store is None:
            return {key: self._memory[key] for key in keys if key in self._memory}
        future: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._wanted.append((keys, future))
        self._work.set()
        return await future

    async def add(self, answer: Answer) -> None:
        """Keep an answer; returns once it is on disk."""
        if self._store is None:
            self._memory[answer.key] = answer.text
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._written.append((answer, future))
        self._work.set()
        await future

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        served = loop.time() - _GATHERING_S
        while True:
            await self._work.wait()
            # A moment for others to join: one transaction for many costs hardly more than one for each. The first of
            # many, or one of few, need not wait.
            await asyncio.sleep(max(0.0, served + _GATHERING_S - loop.time()))
            served = loop.time()
            wanted, self._wanted = self._wanted[:_MOST_PER_BATCH], self._wanted[_MOST_PER_BATCH:]
            written, self._written = self._written, []
            if not self._wanted:
                self._work.clear()
            keys = list(dict.fromkeys(key for part, _ in wanted for key in part))
            batch = [answer for answer, _ in written]
            try:
                # Shielded: what has been paid for is written even if nobody waits for it any more.
                found = await asyncio.shield(
                    loop.run_in_executor(self._executor, self._exchange, batch, keys)
                )
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  # handed to those who wait, whatever it is
                waiting: list[asyncio.Future[Any]] = [future for _, future in wanted]
                waiting += [future for _, future in written]
                for failed in waiting:
                    if not failed.done():
                        failed.set_exception(error)
                continue
            for _, done in written:
                if not done.done():
                    done.set_result(None)
            for part, future in wanted:
                if not future.done():
                    future.set_result({key: found[key] for key in part if key in found})

    def _exchange(self, batch: Sequence[Answer], keys: Sequence[str]) -> Mapping[str, str]:
        if self._store is None:
            return {}
        if batch:
            self._store.add_answers(self._run_id, batch)
        return self._store.find_answers(keys) if keys else {}
