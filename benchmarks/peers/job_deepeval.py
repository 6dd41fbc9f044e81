"""The job in DeepEval: asked first, then its `evaluate` with a metric of our own; its cache off, which is quadratic."""

import asyncio

import standard
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class StandardScore(BaseMetric):
    """The standard score."""

    threshold = 0.0
    async_mode = True
    include_reason = False
    skipped = False

    def measure(self, test_case: LLMTestCase, *args, **kwargs) -> float:
        self.score = standard.score(**(test_case.metadata or test_case.additional_metadata))
        self.success = True
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args, **kwargs) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return True

    @property
    def __name__(self) -> str:
        return "standard"


async def asked(case: dict, session, turn: asyncio.Semaphore) -> LLMTestCase:
    async with turn:
        reply = await standard.ask(session, case["question"])
    name = "metadata" if "metadata" in LLMTestCase.model_fields else "additional_metadata"
    given = {name: {"question": case, "reply": reply}}
    return LLMTestCase(input=case["question"], actual_output=reply["answer"], **given)


async def all_asked() -> list[LLMTestCase]:
    turn = asyncio.Semaphore(standard.CONCURRENCY)
    async with standard.new_session() as session:
        return await asyncio.gather(*(asked(case, session, turn) for case in standard.questions()))


found = evaluate(
    test_cases=asyncio.run(all_asked()),
    metrics=[StandardScore()],
    async_config=AsyncConfig(max_concurrent=standard.CONCURRENCY, throttle_value=0),
    cache_config=CacheConfig(write_cache=False, use_cache=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
)
standard.print_mean([one.metrics_data[0].score for one in found.test_results])
