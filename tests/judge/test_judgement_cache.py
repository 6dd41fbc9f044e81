"""JudgementCache: what has been paid for is kept, however a run ends."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from answerkey.judge.panel import JudgementCache
from answerkey.model.judgement import Answer, Spent


class Kept:
    """A store in memory that counts its transactions."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.writes = 0

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        return {key: self.answers[key] for key in keys if key in self.answers}

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        self.writes += 1
        self.answers.update((answer.key, answer.text) for answer in answers)

    def spent_on(self, run_id: str) -> Spent:
        return Spent()


def answer(number: int) -> Answer:
    return Answer(key=f"k{number}", model="m", text=f"verdict {number}")


def test_an_answer_that_waits_for_the_writing_thread_is_kept_when_the_run_ends() -> None:
    kept, go_on, handed_over = Kept(), threading.Event(), threading.Event()

    class HeldUp(ThreadPoolExecutor):
        def submit(self, *given, **named):  # type: ignore[no-untyped-def]  # as the executor has it
            handed_over.set()
            return super().submit(*given, **named)

    async def run(writer: ThreadPoolExecutor) -> None:
        async with JudgementCache(kept, "run", writer) as cache:
            adding = asyncio.create_task(cache.add(answer(1)))
            await asyncio.to_thread(handed_over.wait)
        # The run ends while the answer still waits for the thread.
        adding.cancel()
        go_on.set()

    with HeldUp(max_workers=1) as writer:
        ThreadPoolExecutor.submit(writer, go_on.wait)
        asyncio.run(run(writer))
    assert kept.answers == {"k1": "verdict 1"}


def test_answers_that_come_together_share_a_transaction() -> None:
    kept = Kept()

    async def run() -> list[str | None]:
        async with JudgementCache(kept, "run") as cache:
            await asyncio.gather(*(cache.add(answer(number)) for number in range(40)))
            return await asyncio.gather(*(cache.find(key) for key in ("k0", "k39", "k40")))

    assert asyncio.run(run()) == ["verdict 0", "verdict 39", None]
    assert kept.writes == 1
