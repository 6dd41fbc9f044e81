"""The job in Ragas: asked first, then its `evaluate` with a metric of our own that needs no model."""

import asyncio
import json
from dataclasses import dataclass, field

import standard
from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
from ragas.metrics.base import MetricType, SingleTurnMetric


@dataclass
class StandardScore(SingleTurnMetric):
    """The standard score."""

    name: str = "standard"
    _required_columns: dict = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input", "response", "reference"}}
    )

    def init(self, run_config: RunConfig) -> None:
        pass

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks) -> float:
        return standard.score(json.loads(sample.reference), json.loads(sample.response))


async def asked(case: dict, session, turn: asyncio.Semaphore) -> SingleTurnSample:
    async with turn:
        reply = await standard.ask(session, case["question"])
    return SingleTurnSample(
        user_input=case["question"], response=json.dumps(reply), reference=json.dumps(case)
    )


async def all_asked() -> list[SingleTurnSample]:
    turn = asyncio.Semaphore(standard.CONCURRENCY)
    async with standard.new_session() as session:
        return await asyncio.gather(*(asked(case, session, turn) for case in standard.questions()))


found = evaluate(
    EvaluationDataset(samples=asyncio.run(all_asked())),
    metrics=[StandardScore()],
    run_config=RunConfig(max_workers=standard.CONCURRENCY),
    show_progress=False,
)
standard.print_mean(found["standard"])
