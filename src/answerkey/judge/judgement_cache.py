"""Judgements under their keys: read before a judge is asked, written before its verdict counts.

Reads and writes of many calls share transactions: whatever is wanted while one is under way goes into the next.
A verdict counts only once it is on disk, so that a killed run never pays twice for what it had counted.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from answerkey.model.judge_answer import Answer

if TYPE_CHECKING:
    from answerkey.store.judgements import SqlJudgements

_GATHERING_S = 0.01


class _Job(NamedTuple):
    """An answer to be kept, or without one a key to be looked up."""

    key: str
    answer: Answer | None
    done: "asyncio.Future[str | None]"


class JudgementCache:
    """Batched access to the judgements of a store; without one, answers last as long as the process."""

    def __init__(self, store: "SqlJudgements | None", run_id: str, executor: Executor | None = None) -> None:
        self._store = store
        self._run_id = run_id
        self._executor = executor
        self._memory: dict[str, str] = {}
        self._jobs: list[_Job] = []
        self._work = asyncio.Event()
        self._clerk: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "JudgementCache":
        self._clerk = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._clerk is not None:
            self._clerk.cancel()
            with suppress(asyncio.CancelledError):
                await self._clerk
        # What arrived but was not written yet has been paid for.
        self._exchange([job for job in self._jobs if job.answer is not None])

    async def find(self, key: str) -> str | None:
        """The answer under a key, if it is there."""
        return await self._wait(key, None)

    async def add(self, answer: Answer) -> None:
        """Keep an answer; returns once it is on disk."""
        await self._wait(answer.key, answer)

    async def _wait(self, key: str, answer: Answer | None) -> str | None:
        job = _Job(key, answer, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._work.set()
        return await job.done

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        served = loop.time() - _GATHERING_S
        while True:
            await self._work.wait()
            # A moment for others to join: one transaction for many costs hardly more than one for each. The first of
            # many, or one of few, need not wait.
            await asyncio.sleep(max(0.0, served + _GATHERING_S - loop.time()))
            served = loop.time()
            jobs, self._jobs = self._jobs, []
            self._work.clear()
            try:
                # Shielded: what has been paid for is written even if nobody waits for it any more.
                found = await asyncio.shield(loop.run_in_executor(self._executor, self._exchange, jobs))
            except Exception as error:  # noqa: BLE001  # handed to those who wait, whatever it is
                for job in jobs:
                    if not job.done.done():
                        job.done.set_exception(error)
                continue
            for job in jobs:
                if not job.done.done():
                    job.done.set_result(found.get(job.key))

    def _exchange(self, jobs: Sequence[_Job]) -> Mapping[str, str]:
        answers = [job.answer for job in jobs if job.answer is not None]
        if self._store is None:
            self._memory.update((answer.key, answer.text) for answer in answers)
            return self._memory
        if answers:
            self._store.add_answers(self._run_id, answers)
        keys = list(dict.fromkeys(job.key for job in jobs if job.answer is None))
        return self._store.find_answers(keys) if keys else {}
